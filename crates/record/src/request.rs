//! The request of a recording, and the same options as users write them: sizes like `16M:16`, names like `random:7`.

use std::ffi::OsString;
use std::path::PathBuf;

use sardonyx_recorder::caches::{Geometry, Hierarchy};
use sardonyx_recorder::frames::Reuse;
use sardonyx_recorder::options::{Clearing, KernelTime, Level};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::{RecordError, Result};
use crate::pages::PageFrames;

/// The part of the stream of records that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub skip: u64,
    pub limit: Option<u64>,
    /// The most instructions to keep, counted from where recording begins.
    pub instructions: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub program: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    /// The trace of the first process; children's have a number before the suffix.
    pub output: PathBuf,
    /// The emulator; by default the one in `PATH`.
    pub qemu: Option<PathBuf>,
    pub plugin: PathBuf,
    pub caches: Hierarchy,
    pub level: Level,
    pub pages: PageFrames,
    /// The order in which freed frames are used again at level `memory`, where frames are counted.
    pub reuse: Reuse,
    pub clearing: Clearing,
    pub kernel: KernelTime,
    pub skip_instructions: u64,
    pub window: Window,
    /// Set if children are recorded too: with `pc` in the same trace, in one order, else in traces of their own.
    pub follow_fork: bool,
    /// Set if the first read of a line carries its bytes.
    pub read_data: bool,
    /// Set if flushes, fences and stores to mapped files carry their place in the program.
    pub pc: bool,
    /// Microseconds that a thread rests after a store to a file.
    pub rest: u32,
    pub acks: Option<i32>,
    /// Set if the trace is compared with the program's memory at its end.
    pub verify: bool,
}

impl Request {
    /// Whether children's stores to mapped files, flushes and fences go into the first process's trace.
    pub fn in_one_order(&self) -> bool {
        self.follow_fork && self.pc
    }
}

/// The options of `sardonyx trace record`, as the user writes them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RecordRequest")]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The trace.
    pub output: PathBuf,
    /// The plugin.
    pub plugin: PathBuf,
    /// QEMU.
    pub qemu: Option<PathBuf>,
    /// SIZE:WAYS.
    pub l1: String,
    /// SIZE:WAYS.
    pub l2: String,
    /// SIZE:WAYS or `none`.
    pub llc: String,
    /// The last level does not include the others.
    pub non_inclusive: bool,
    /// Cores with private caches.
    pub cores: usize,
    /// `memory` or `cpu`.
    pub level: String,
    /// `virtual`, `sequential`, `random[:SEED]` or `pagemap`; by default `sequential`, and at level `cpu` `virtual`.
    pub pages: Option<String>,
    /// `last-freed`, `first-freed` or `never`.
    pub reuse: String,
    /// How the kernel clears pages: `whole-lines`, `fetched` or `none`.
    pub clearing: String,
    /// FAULT:LINE, instructions of the kernel for a page and for each line that it clears.
    pub kernel_instructions: String,
    /// The size of the memory for random frames, as in `8G`.
    pub memory: String,
    /// Records to leave out at the beginning.
    pub skip: u64,
    /// The most records to keep.
    pub limit: Option<u64>,
    /// Instructions to leave out at the beginning.
    pub skip_instructions: u64,
    /// The most instructions to keep.
    pub limit_instructions: Option<u64>,
    /// Children are recorded too.
    pub follow_fork: bool,
    /// The first read of a line carries its bytes.
    pub read_data: bool,
    /// Flushes, fences and stores to mapped files carry their place in the program.
    pub pc: bool,
    /// Microseconds that a thread rests after each of its first stores to files at a place.
    pub rest: u32,
    /// The descriptor to which acknowledgements are printed.
    pub acks: Option<i32>,
    /// The trace is held against the program's memory at its end.
    #[serde(default)]
    pub verify: bool,
}

/// Parses a number of bytes with K, M or G (powers of 1024).
fn cache(option: &str, text: &str) -> Result<Geometry> {
    let parsed = text.split_once(':').and_then(|(bytes, ways)| {
        Some(Geometry {
            bytes: sardonyx_base::sizes::parse(bytes)?,
            ways: ways.parse().ok()?,
        })
    });
    let geometry = parsed.ok_or_else(|| {
        RecordError::new(format!("{option} {text}: is not SIZE:WAYS, as in 32K:8"))
    })?;
    geometry
        .sets()
        .map_err(|e| RecordError::new(format!("{option} {text}: {e}; choose others")))?;
    Ok(geometry)
}

fn kernel_time(text: &str) -> Result<KernelTime> {
    let count = |digits: &str| digits.parse().ok().filter(|&count| count <= 1_000_000);
    let parsed = text.split_once(':').and_then(|(fault, line)| {
        Some(KernelTime {
            fault: count(fault)?,
            line: count(line)?,
        })
    });
    parsed.ok_or_else(|| {
        RecordError::new(format!(
            "--kernel-instructions {text}: is not FAULT:LINE, each at most 1000000, as in 1000:8"
        ))
    })
}

fn refused<T>(message: impl Into<String>) -> Result<T> {
    Err(RecordError::new(message))
}

impl Wanted {
    /// Turns the options into a request.
    ///
    /// # Errors
    /// An option makes no sense; the message names it.
    pub fn request(self) -> Result<Request> {
        let level = match self.level.as_str() {
            "memory" => Level::Memory,
            "cpu" => Level::Cpu,
            other => return refused(format!("--level {other}: is none; known: memory, cpu")),
        };
        let pages = self.where_pages_lie(level)?;
        let reuse = self.frames_again(level, pages)?;
        let clearing = self.how_pages_are_cleared(level)?;
        let kernel = self.time_of_the_kernel(level, clearing)?;
        if level == Level::Memory && (self.pc || self.acks.is_some()) {
            let option = if self.pc { "--pc" } else { "--acks" };
            return refused(format!(
                "{option}: is for crash tests, which need every store; add --level cpu"
            ));
        }
        if !(1..=64).contains(&self.cores) {
            return refused(format!("--cores {}: is not 1 to 64", self.cores));
        }
        Ok(Request {
            caches: self.hierarchy()?,
            program: self.program.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            output: self.output,
            qemu: self.qemu,
            plugin: self.plugin,
            level,
            pages,
            reuse,
            clearing,
            kernel,
            skip_instructions: self.skip_instructions,
            window: Window {
                skip: self.skip,
                limit: self.limit,
                instructions: self.limit_instructions,
            },
            follow_fork: self.follow_fork,
            read_data: self.read_data,
            pc: self.pc,
            rest: self.rest,
            acks: self.acks,
            verify: self.verify,
        })
    }

    fn where_pages_lie(&self, level: Level) -> Result<PageFrames> {
        let frames = match sardonyx_base::sizes::parse(&self.memory) {
            Some(bytes @ 4096..) => bytes / 4096,
            _ => {
                return refused(format!(
                    "--memory {}: is not a SIZE, as in 16G",
                    self.memory
                ));
            }
        };
        let random = |seed| PageFrames::Random { seed, frames };
        let wanted = match (&self.pages, level) {
            (Some(wanted), _) => wanted.as_str(),
            (None, Level::Memory) => "sequential",
            (None, Level::Cpu) => "virtual",
        };
        let seeded = wanted
            .split_once(':')
            .map(|(kind, seed)| (kind, seed.parse()));
        Ok(match seeded {
            None if wanted == "virtual" && level == Level::Memory => {
                return refused(
                    "--pages virtual: caches hold lines of frames, and a page that is gone may have a line there; \
                     choose sequential, random or pagemap, or --level cpu",
                );
            }
            None if wanted == "virtual" => PageFrames::Virtual,
            None if wanted == "sequential" => PageFrames::Sequential,
            None if wanted == "pagemap" => PageFrames::PageMap,
            None if wanted == "random" => random(0),
            Some(("random", Ok(seed))) => random(seed),
            _ => {
                return refused(format!(
                    "--pages {wanted}: is none; known: virtual, sequential, random, random:SEED, pagemap"
                ));
            }
        })
    }

    fn frames_again(&self, level: Level, pages: PageFrames) -> Result<Reuse> {
        let reuse = match self.reuse.as_str() {
            "last-freed" => Reuse::LastFreed,
            "first-freed" => Reuse::FirstFreed,
            "never" => Reuse::Never,
            other => {
                return refused(format!(
                    "--reuse {other}: is none; known: last-freed, first-freed, never"
                ));
            }
        };
        if reuse != Reuse::default() && (level, pages) != (Level::Memory, PageFrames::Sequential) {
            return refused(format!(
                "--reuse {}: is for frames that are counted below the caches; leave out --pages and --level",
                self.reuse
            ));
        }
        Ok(reuse)
    }

    fn how_pages_are_cleared(&self, level: Level) -> Result<Clearing> {
        let clearing = match self.clearing.as_str() {
            "whole-lines" => Clearing::WholeLines,
            "fetched" => Clearing::Fetched,
            "none" => Clearing::Unrecorded,
            other => {
                return refused(format!(
                    "--clearing {other}: is none; known: whole-lines, fetched, none"
                ));
            }
        };
        if clearing != Clearing::default() && level == Level::Cpu {
            return refused(format!(
                "--clearing {}: is for level memory; leave it out",
                self.clearing
            ));
        }
        Ok(clearing)
    }

    fn time_of_the_kernel(&self, level: Level, clearing: Clearing) -> Result<KernelTime> {
        let kernel = kernel_time(&self.kernel_instructions)?;
        let unrecorded = level == Level::Cpu || clearing == Clearing::Unrecorded;
        if kernel != KernelTime::default() && unrecorded {
            return refused(format!(
                "--kernel-instructions {}: is for the kernel's clearing, which is not recorded; leave it out",
                self.kernel_instructions
            ));
        }
        Ok(kernel)
    }

    fn hierarchy(&self) -> Result<Hierarchy> {
        Ok(Hierarchy {
            l1: cache("--l1", &self.l1)?,
            l2: cache("--l2", &self.l2)?,
            llc: match self.llc.as_str() {
                "none" => None,
                llc => Some(cache("--llc", llc)?),
            },
            inclusive: !self.non_inclusive,
            cores: self.cores,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(change: impl FnOnce(&mut Wanted)) -> Result<Request, String> {
        let mut wanted: Wanted = serde_json::from_str(
            r#"{"program": ["ls"], "output": "t.parquet", "plugin": "p.so", "qemu": null, "l1": "32K:8",
                "l2": "256K:8", "llc": "16M:16", "non_inclusive": false, "cores": 4, "level": "memory",
                "pages": null, "reuse": "last-freed", "clearing": "whole-lines", "kernel_instructions": "1000:8",
                "memory": "16G", "skip": 0, "limit": null, "skip_instructions": 0,
                "limit_instructions": null, "follow_fork": false, "read_data": false, "pc": false,
                "rest": 100, "acks": null}"#,
        )
        .unwrap();
        change(&mut wanted);
        wanted.request().map_err(|e| e.to_string())
    }

    #[test]
    fn options_mean_what_they_say() {
        let request = wanted(|_| ()).unwrap();
        let llc = Geometry {
            bytes: 16 << 20,
            ways: 16,
        };
        assert_eq!(request.caches.llc, Some(llc));
        assert_eq!(
            request.caches.l1,
            Geometry {
                bytes: 32 << 10,
                ways: 8
            }
        );
        assert!(request.caches.inclusive);
        assert_eq!(wanted(|w| w.llc = "none".into()).unwrap().caches.llc, None);
        let random = PageFrames::Random {
            seed: 7,
            frames: 1 << 22,
        };
        assert_eq!(
            wanted(|w| w.pages = Some("random:7".into())).unwrap().pages,
            random
        );
        assert_eq!(request.pages, PageFrames::Sequential);
        assert_eq!(request.reuse, Reuse::LastFreed);
        assert_eq!(request.clearing, Clearing::WholeLines);
        assert_eq!(request.kernel, KernelTime::default());
        let slow = wanted(|w| w.kernel_instructions = "7:0".into()).unwrap();
        assert_eq!(slow.kernel, KernelTime { fault: 7, line: 0 });
        let never = wanted(|w| w.reuse = "never".into()).unwrap();
        assert_eq!(never.reuse, Reuse::Never);
        let core = wanted(|w| w.level = "cpu".into()).unwrap();
        assert_eq!(core.pages, PageFrames::Virtual);
        assert_eq!(
            wanted(|w| w.level = "cpu".into()).unwrap().level,
            Level::Cpu
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let problem = |change: fn(&mut Wanted)| wanted(change).unwrap_err();
        assert!(problem(|w| w.l1 = "32K".into()).starts_with("--l1 32K: "));
        assert!(problem(|w| w.l1 = "32KK:8".into()).starts_with("--l1 "));
        assert!(problem(|w| w.llc = "3M:16".into()).contains("power of two"));
        assert!(problem(|w| w.llc = "99999999999G:16".into()).starts_with("--llc "));
        assert!(problem(|w| w.level = "disk".into()).contains("memory, cpu"));
        assert!(problem(|w| w.pages = Some("random:x".into())).contains("random:SEED"));
        assert!(problem(|w| w.pages = Some("virtual".into())).contains("--level cpu"));
        assert!(problem(|w| w.reuse = "again".into()).contains("first-freed"));
        let reuse = |w: &mut Wanted| {
            (w.reuse, w.level) = ("never".into(), "cpu".into());
        };
        assert!(wanted(reuse).unwrap_err().starts_with("--reuse"));
        let clearing = |w: &mut Wanted| (w.clearing, w.level) = ("none".into(), "cpu".into());
        assert!(wanted(clearing).unwrap_err().starts_with("--clearing"));
        assert!(problem(|w| w.clearing = "no".into()).contains("fetched"));
        let unused = |w: &mut Wanted| {
            (w.clearing, w.kernel_instructions) = ("none".into(), "1:1".into());
        };
        assert!(wanted(unused).unwrap_err().starts_with("--kernel-instr"));
        for bad in ["1000", "1000:", "-1:8", "8:1000001"] {
            let said = wanted(|w| w.kernel_instructions = bad.into()).unwrap_err();
            assert!(said.contains("1000:8"), "{said}");
        }
        assert!(problem(|w| w.memory = "4".into()).contains("16G"));
        assert!(problem(|w| w.cores = 0).contains("--cores"));
    }
}
