//! The question of `sardonyx store compare`, and the runs that it asks for, a design each.

use sardonyx_base::names::did_you_mean;
use sardonyx_question::{Bytes, Given, Names, Pairs, Place, question};

use crate::block_trace::BlockTrace;
use crate::compare::{Asked, Question};
use crate::designs::{DESIGNS, Key, Named, Needs};
use crate::workload::{Stream, Tree, Workload};

/// The most bytes that a stream writes.
const MOST: u64 = 1 << 46;

question! {
    /// Compare deduplicating stores: the resistive CAM simulated, the conventional one executed.
    ///
    /// Example: sardonyx store compare --block 8K --bytes 50G
    ///
    /// Example: sardonyx store compare --designs recam --bytes 50G --set recam.compare=single --json -
    ///
    /// Example: sardonyx store compare --tree docs --designs recam,conventional
    pub struct Comparison {
        /// Designs, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("recam,conventional"),
        /// Size of a block: the paper's are 1K to 8K.
        #[schemars(extend("value" = "BYTES"))]
        block: Bytes = Bytes(4096),
        /// Share of writes whose content was written before; default: 0.3, and of --trace what its digests say.
        #[schemars(range(min = 0, max = 1))]
        duplicates: Option<f64>,
        /// What the stream writes, as in 50G.
        #[schemars(extend("value" = "BYTES"))]
        bytes: Bytes = Bytes(2147483648),
        /// The most that an executed store really writes of it.
        #[schemars(extend("value" = "BYTES"))]
        written: Bytes = Bytes(2147483648),
        /// Share of operations that are reads, as in 0.7.
        #[schemars(range(min = 0, max = 1))]
        reads: f64 = 0.0,
        /// Encrypt each write before the store gets it.
        encrypted: bool,
        /// Seed of the stream.
        seed: u64,
        /// Write the files below this directory instead.
        #[schemars(extend("value" = "PATH"))]
        tree: Option<Place>,
        /// Replay a block trace instead: FIU's with digests; MSR's, fio's, MQSim's or blkparse's, with --duplicates.
        #[schemars(extend("value" = "FILE"))]
        trace: Option<Place>,
        /// Set a key of a design, as in recam.row_bits=512 (a wrong name lists all); repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Folder for the temporary files of an executed store.
        dir: Option<Place>,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j"))]
        jobs: Option<u64>,
    }
}

impl sardonyx_question::Question for Comparison {
    fn check(&self, given: &Given) -> Result<(), String> {
        let designs = self.known()?;
        let names: Vec<&str> = designs.iter().map(|design| design.name).collect();
        let mut form = format!("with --designs {}", names.join(","));
        let mut idle = Vec::new();
        if let Some(tree) = &self.tree {
            form += &format!(" and --tree {}", tree.display());
            idle.extend(["trace", "duplicates", "seed"]);
        } else if let Some(trace) = &self.trace {
            form += &format!(" and --trace {}", trace.display());
            if self.duplicates.is_none() {
                idle.push("seed"); // which chooses duplicates
            }
        }
        let executed = designs.iter().any(|design| design.executed);
        if !self.is_stream() {
            idle.extend(["bytes", "reads", "encrypted"]);
        }
        if !executed || !self.is_stream() {
            idle.push("written");
        }
        if !executed {
            idle.push("dir");
        }
        given.idle(&idle, &form)?;
        for (name, text) in &self.set.0 {
            let (whose, key) = self.key(name)?;
            if !designs.iter().any(|design| design.name == whose) || !self.matters(whose, key) {
                return Err(format!(
                    "--set {name}={text}: does nothing {form}; leave it out"
                ));
            }
        }
        self.block.within("--block", 64, 1 << 20)?;
        if self.is_stream() {
            self.bytes.within("--bytes", self.block.0, MOST)?;
            if executed {
                self.written.within("--written", self.block.0, MOST)?;
            }
        }
        for run in self.runs()? {
            run.check().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Comparison {
    /// A run of each design.
    ///
    /// # Errors
    /// A design that is not known, or a key's value that makes no sense.
    pub fn runs(&self) -> Result<Vec<Question>, String> {
        let designs = self.known()?;
        let runs = designs.into_iter().map(|design| {
            Ok(Question {
                design: Asked {
                    name: design,
                    keys: self.keys(design)?,
                    folder: None,
                },
                workload: self.workload(design.executed),
                block_bytes: self.block.0 as u32,
            })
        });
        runs.collect()
    }

    fn known(&self) -> Result<Vec<Named>, String> {
        let found = self.designs.0.iter().map(|name| Named::find(name));
        found
            .collect::<Result<_, _>>()
            .map_err(|error| format!("--designs: {error}"))
    }

    fn is_stream(&self) -> bool {
        self.tree.is_none() && self.trace.is_none()
    }

    fn workload(&self, executed: bool) -> Workload {
        if let Some(tree) = &self.tree {
            return Workload::Tree(Tree {
                path: tree.0.clone(),
            });
        }
        if let Some(trace) = &self.trace {
            return Workload::Trace(BlockTrace {
                path: trace.0.clone(),
                duplicates: self.duplicates,
                seed: self.seed,
            });
        }
        let most = if executed { self.written.0 } else { u64::MAX };
        Workload::Stream(Stream {
            bytes: self.bytes.0.min(most),
            span: 0,
            duplicates: self.duplicates.unwrap_or(0.3),
            reads: self.reads,
            seed: self.seed,
            encrypted: self.encrypted,
        })
    }

    /// Those of a design's keys that are set, to another value than by default.
    fn keys(&self, design: Named) -> Result<Vec<(String, String)>, String> {
        let mut set: Vec<(String, String)> = Vec::new();
        for (name, text) in &self.set.0 {
            let (whose, key) = self.key(name)?;
            let is_default = key.is_default(text);
            let is_default =
                is_default.map_err(|problem| format!("--set {name}={text}: {problem}"))?;
            if whose == design.name {
                set.retain(|(known, _)| known != key.name); // the last of several counts
                if !is_default {
                    set.push((key.name.to_owned(), text.clone()));
                }
            }
        }
        Ok(set)
    }

    /// The key of this name, and its design's.
    fn key(&self, name: &str) -> Result<(&'static str, &'static Key), String> {
        let every = DESIGNS.iter().flat_map(|design| {
            let own = design.keys.iter();
            own.map(|key| (format!("{}.{}", design.name, key.name), design.name, key))
        });
        let every: Vec<(String, &str, &Key)> = every.collect();
        if let Some((_, whose, key)) = every.iter().find(|(known, ..)| known == name) {
            return Ok((whose, key));
        }
        let known: Vec<&str> = every.iter().map(|(known, ..)| &**known).collect();
        let (near, known) = (did_you_mean(name, &known), known.join(", "));
        Err(format!(
            "--set {name}: there is no such key; {near}known: {known}"
        ))
    }

    /// Whether a key of a design has an effect.
    fn matters(&self, whose: &str, key: &Key) -> bool {
        match key.needs {
            None => true,
            Some(Needs::Files) => self.tree.is_some(),
            Some(Needs::Flag(flag)) => {
                let name = format!("{whose}.{flag}");
                let set = self.set.0.iter().rev().find(|(known, _)| *known == name);
                let flag = self.key(&name).ok().and_then(|(_, key)| key.default);
                set.map(|(_, text)| &**text).or(flag) == Some("true")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_the_defaults_is_set() {
        let set = [
            ("recam.compare", "single"),
            ("recam.compared_bit_fj", "2-3"),
            ("recam.row_bits", "512"),
            ("recam.row_bits", "256"),
            ("conventional.verify", "false"),
        ];
        let asked = Comparison {
            set: Pairs(set.map(|(key, value)| (key.into(), value.into())).into()),
            ..Comparison::default()
        };
        let [recam, conventional] = &asked.runs().unwrap()[..] else {
            panic!("two designs")
        };
        let set = |one: &Question| one.design.keys.clone();
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let array = [pair("compare", "single"), pair("compared_bit_fj", "2-3")];
        assert_eq!(set(recam), array);
        assert_eq!(set(conventional), [pair("verify", "false")]);
    }
}
