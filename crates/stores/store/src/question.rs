//! The question of `sardonyx store compare`, and the runs that it asks for, a design each.

use sardonyx_question::{Bytes, Given, Names, Place, Range, question};
use serde_json::Value;

use crate::block_trace::BlockTrace;
use crate::compare::{Asked, Question};
use crate::designs::{DESIGNS, Design, Key, KeyKind, Named, Needs};
use crate::workload::{Stream, Tree, Workload};

/// The most bytes that a stream writes.
const MOST: u64 = 1 << 46;

question! {
    /// Compare deduplicating stores: the resistive CAM simulated, the conventional one executed.
    ///
    /// Example: sardonyx store compare --block 8K --bytes 50G
    ///
    /// Example: sardonyx store compare --designs recam --bytes 50G --single --json -
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
        /// Replay a block trace instead: FIU's with digests; MSR's or fio's, with --duplicates.
        #[schemars(extend("value" = "FILE"))]
        trace: Option<Place>,
        /// recam: bytes of data in the array.
        #[schemars(extend("value" = "BYTES"))]
        capacity: Bytes = Bytes(274877906944),
        /// recam: data bits of a row.
        width: u64 = 256,
        /// recam: modules that work in parallel.
        modules: u64 = 1,
        /// recam: no compare deactivates a row.
        single: bool,
        /// recam: the first compare activates block starts alone.
        #[schemars(extend("rare" = true))]
        starts: bool,
        /// recam: a write compares for an empty row first.
        free_row: bool,
        /// recam: an overwrite searches before it deletes.
        #[schemars(extend("rare" = true))]
        search_first: bool,
        /// recam: a row with so many bits of a hash first.
        #[schemars(extend("value" = "BITS"))]
        fingerprint: u64,
        /// recam: femtojoules of a bit compared, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        compared_bit: Range = Range(0.1, 17.0),
        /// recam: femtojoules of a match line, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        match_line: Range = Range(0.0, 0.0),
        /// recam: femtojoules of a bit written, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        written_bit: Range = Range(1000.0, 10000.0),
        /// recam: writes that a row survives, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        endurance: Range = Range(1e6, 1e12),
        /// conventional: find duplicates; without, store all.
        deduplicate: bool = true,
        /// conventional: compare bytes before believing a hash.
        verify: bool = true,
        /// conventional: cut the tree's files by content.
        by_content: bool,
        /// conventional: chunks whose places are kept in memory.
        #[schemars(extend("rare" = true))]
        cache_entries: u64 = 262144,
        /// conventional: the processors' clock.
        clock_mhz: u64 = 2700,
        /// conventional: cores that share the work.
        #[schemars(extend("rare" = true))]
        rival_cores: u64 = 1,
        /// conventional: cycles of a request's file system, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        request_cycles: Range = Range(5000.0, 50000.0),
        /// conventional: cycles of SHA-1 a byte, or A-B.
        #[schemars(extend("value" = "A-B"))]
        hash_cycles: Range = Range(4.99, 7.7),
        /// conventional: cycles of a compare a byte, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        compare_cycles: Range = Range(0.1, 1.0),
        /// conventional: cycles of a look-up in memory, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        lookup_cycles: Range = Range(300.0, 3000.0),
        /// conventional: microseconds of a look-up on the drive, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        fetch_us: Range = Range(20.0, 100.0),
        /// conventional: the drive works while the processors do.
        #[schemars(extend("rare" = true))]
        overlap: bool,
        /// conventional: watts of its processors, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        processor_watts: Range = Range(16.25, 520.0),
        /// conventional: watts of its memory, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        memory_watts: Range = Range(3.0, 24.0),
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
        let fields = self.fields();
        let unread: Vec<String> = (DESIGNS.iter())
            .flat_map(|design| design.keys.iter().map(move |key| (*design, key)))
            .filter(|(design, key)| {
                let asked = designs.iter().any(|asked| asked.name == design.name);
                !asked || !self.matters(design, key, &fields)
            })
            .filter_map(|(_, key)| key.field())
            .collect();
        idle.extend(unread.iter().map(String::as_str));
        given.idle(&idle, &form)?;
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
        let fields = self.fields();
        let runs = designs.into_iter().map(|design| {
            Ok(Question {
                design: Asked {
                    name: design,
                    keys: self.keys(&design, &fields)?,
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

    /// The question's fields by their names.
    fn fields(&self) -> Value {
        serde_json::to_value(self).expect("a question is written as JSON")
    }

    /// Those of a design's keys that have another value than by default.
    fn keys(&self, design: &Design, fields: &Value) -> Result<Vec<(String, String)>, String> {
        let mut set = Vec::new();
        for key in design.keys {
            let (Some(field), true) = (key.field(), self.matters(design, key, fields)) else {
                continue;
            };
            let text = key.text(&fields[&field]);
            let is_default = key.is_default(&text).map_err(|problem| {
                let option = field.replace('_', "-");
                format!("--{option} {text}: {problem}")
            })?;
            if !is_default {
                set.push((key.name.to_owned(), text));
            }
        }
        Ok(set)
    }

    /// Whether a key has an effect.
    fn matters(&self, design: &Design, key: &Key, fields: &Value) -> bool {
        match key.needs {
            None => true,
            Some(Needs::Files) => self.tree.is_some(),
            Some(Needs::Flag(name)) => (design.keys.iter())
                .find(|key| key.name == name)
                .and_then(Key::field)
                .is_some_and(|field| fields[&field] == Value::Bool(true)),
        }
    }
}

impl Key {
    /// The field of the question that sets it.
    fn field(&self) -> Option<String> {
        let (option, _) = self.option?.split_once('/').unwrap_or((self.option?, ""));
        Some(option.trim_start_matches('-').replace('-', "_"))
    }

    /// The value of its field, as it is written for the design.
    fn text(&self, value: &Value) -> String {
        match (self.kind, value) {
            (KeyKind::Choice { words }, Value::Bool(on)) => {
                (if *on { words.last() } else { words.first() })
                    .expect("a choice has words")
                    .to_string()
            }
            (_, Value::Array(ends)) => {
                let ends: Vec<String> = ends.iter().map(Value::to_string).collect();
                ends.join("-")
            }
            _ => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_has_the_default_and_the_words_of_its_key() {
        let schema = sardonyx_question::declared::<Comparison>();
        let fields = Comparison::default().fields();
        let mut options = 0;
        for (design, key) in DESIGNS
            .iter()
            .flat_map(|of| of.keys.iter().map(move |key| (of, key)))
        {
            let Some(field) = key.field() else { continue };
            let said = schema["properties"][&field]["description"].as_str();
            let told = said.unwrap_or_default().replace('\n', " ");
            assert_eq!(told, format!("{}: {}", design.name, key.line), "{field}");
            assert_eq!(
                key.is_default(&key.text(&fields[&field])),
                Ok(true),
                "{field}"
            );
            options += 1;
        }
        assert!(options > 20);
    }

    #[test]
    fn only_what_differs_from_the_defaults_is_set() {
        let asked = Comparison {
            single: true,
            compared_bit: Range(2.0, 3.0),
            verify: false,
            ..Comparison::default()
        };
        let [recam, conventional] = &asked.runs().unwrap()[..] else {
            panic!("two designs")
        };
        let set = |one: &Question| one.design.keys.clone();
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let array = [
            pair("compare", "single"),
            pair("compared_bit_fj", "2.0-3.0"),
        ];
        assert_eq!(set(recam), array);
        assert_eq!(set(conventional), [pair("verify", "false")]);
    }
}
