//! The request of a recording, and the same options as users write them: sizes like `16M:16`, names like `random:7`.

use std::ffi::OsString;
use std::path::PathBuf;

use sardonyx_question::{Bytes, Given, Place, Question, question};
use sardonyx_recorder::caches::{Geometry, Hierarchy};
use sardonyx_recorder::frames::Reuse;
use sardonyx_recorder::options::{Clearing, KernelTime, Level};

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

question! {
    /// Run a program and write down what it asks of memory, with the bytes.
    ///
    /// Any x86-64 Linux program, unmodified. A program that it becomes by exec is recorded too, its children only with
    /// --follow-fork or --pc. The exit status is the program's; if a signal ends it, 128 and the signal's number, and the
    /// trace is kept. io_uring, AIO, userfaultfd, ptrace and process_vm_readv answer ENOSYS.
    ///
    /// The program's input and output are its own; the trace appears when it has ended.
    ///
    /// Example: sardonyx trace record -o t.parquet -- sqlite3 my.db .dump
    pub struct Wanted {
        /// What to run, after --.
        #[schemars(extend("argument" = "-- PROGRAM ARGS..."))]
        program: Vec<String>,
        /// The trace; by default PROGRAM.parquet, here.
        #[schemars(extend("short" = "o"))]
        output: Option<Place>,
        /// memory: below the last-level cache. cpu: every load and store. By default memory, and cpu with --pc or
        /// --acks.
        level: Option<String>,
        /// Each core's first level, SIZE:WAYS.
        #[schemars(extend("rare" = true))]
        l1: String = "32K:8".into(),
        /// Each core's second level, SIZE:WAYS.
        #[schemars(extend("rare" = true))]
        l2: String = "256K:8".into(),
        /// The shared last level, SIZE:WAYS, or none.
        llc: String = "16M:16".into(),
        /// The last level does not include the others.
        #[schemars(extend("rare" = true))]
        non_inclusive: bool,
        /// Cores; threads take turns on them.
        #[schemars(range(max = 1024), extend("rare" = true))]
        cores: usize = 4,
        /// Where pages lie: sequential (frames in order of first touch), random[:SEED], pagemap (the kernel's; needs
        /// root), or, at level cpu only, virtual (the program's addresses). By default sequential, and virtual at level
        /// cpu.
        pages: Option<String>,
        /// Which free frame a page gets: last-freed, first-freed, or never one that another page had (with --pages
        /// sequential).
        #[schemars(extend("rare" = true))]
        reuse: String = "last-freed".into(),
        /// How the kernel clears a new page: whole-lines (overwritten, not fetched, as processors with fast strings
        /// do), fetched (each line is read first), or none (left out).
        #[schemars(extend("rare" = true))]
        clearing: String = "whole-lines".into(),
        /// Instructions of the kernel for each page that it clears, and for each of its 64 lines; twice as many for a
        /// copied line.
        #[schemars(extend("value" = "FAULT:LINE", "rare" = true))]
        kernel_instructions: String = "1000:8".into(),
        /// Size of physical memory for random page placement.
        #[schemars(extend("rare" = true))]
        memory: Bytes = Bytes(17179869184),
        /// Records left out first.
        skip: u64,
        /// Records kept; then the program is ended.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
        /// Instructions before the first record.
        #[schemars(extend("rare" = true))]
        skip_instructions: u64,
        /// Instructions kept; then the program is ended.
        #[schemars(range(min = 1), extend("rare" = true))]
        limit_instructions: Option<u64>,
        /// Record forked children too, in NAME.1.parquet and so on. With --pc (where it is the default) their stores to
        /// mapped files go into the program's trace, in one order.
        follow_fork: Option<bool>,
        /// The first read of a line has its contents, which are what memory held.
        #[schemars(extend("rare" = true))]
        read_data: bool = true,
        /// Record the place in the program of each store, flush and fence; for crash-test.
        pc: bool,
        /// With --pc: a thread rests so long after each of its first 16 stores to files at a place, so that threads
        /// overlap; 0: never.
        #[schemars(range(max = 1000000), extend("value" = "MICROSECONDS", "rare" = true, "requires" = "pc"))]
        rest: u32 = 100,
        /// Record what the program had printed at each moment; for crash-test.
        acks: bool,
        /// The same for this descriptor instead of 1.
        #[schemars(range(min = 0, max = 1048576), extend("rare" = true))]
        acks_fd: Option<i32>,
        /// At the end, hold the trace against the program's memory, page by page.
        verify: bool,
        /// QEMU's qemu-x86_64, 10.0 or newer, if not the one that comes with Sardonyx.
        #[schemars(extend("rare" = true))]
        qemu: Option<Place>,
    }
}

impl Question for Wanted {
    fn check(&self, given: &Given) -> Result<(), String> {
        let (level, pages) = (self.level(), self.pages());
        let mut chosen = format!("with --level {level} --pages {pages}");
        let mut idle = Vec::new();
        let below = level == "memory";
        if !below {
            idle.extend(["l1", "l2", "llc", "non_inclusive", "clearing"]);
        } else if self.clearing != Wanted::default().clearing {
            chosen += &format!(" --clearing {}", self.clearing);
        }
        if !below || self.clearing == "none" {
            idle.push("kernel_instructions");
        }
        if !below || pages != "sequential" {
            idle.push("reuse");
        }
        if !pages.starts_with("random") {
            idle.push("memory");
        }
        if self.acks_fd.is_some() {
            idle.push("acks");
        }
        given.idle(&idle, &chosen)?;
        let request = self.clone().request(PathBuf::new());
        request.map(|_| ()).map_err(|error| error.to_string())
    }
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
    /// The level of the records: below the caches, unless crash tests are to see every store.
    fn level(&self) -> &str {
        let every = self.pc || self.acknowledged().is_some();
        (self.level.as_deref()).unwrap_or(if every { "cpu" } else { "memory" })
    }

    fn pages(&self) -> &str {
        let usual = match self.level() {
            "cpu" => "virtual",
            _ => "sequential",
        };
        self.pages.as_deref().unwrap_or(usual)
    }

    /// The descriptor to which acknowledgements are printed.
    fn acknowledged(&self) -> Option<i32> {
        self.acks_fd.or(self.acks.then_some(1))
    }

    /// Turns the options into a request, for a recording by this plugin.
    ///
    /// # Errors
    /// An option makes no sense; the message names it.
    pub fn request(self, plugin: PathBuf) -> Result<Request> {
        let acks = self.acknowledged();
        let level = match self.level() {
            "memory" => Level::Memory,
            "cpu" => Level::Cpu,
            other => return refused(format!("--level {other}: is none; known: memory, cpu")),
        };
        let pages = self.where_pages_lie(level)?;
        let reuse = self.frames_again()?;
        let clearing = self.how_pages_are_cleared()?;
        let kernel = kernel_time(&self.kernel_instructions)?;
        if level == Level::Memory && (self.pc || acks.is_some()) {
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
            output: self.output.unwrap_or_default().0,
            qemu: self.qemu.map(|qemu| qemu.0),
            plugin,
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
            follow_fork: self.follow_fork.unwrap_or(self.pc),
            read_data: self.read_data,
            pc: self.pc,
            rest: self.rest,
            acks,
            verify: self.verify,
        })
    }

    fn where_pages_lie(&self, level: Level) -> Result<PageFrames> {
        let frames = match self.memory.0 {
            bytes @ 4096.. => bytes / 4096,
            bytes => return refused(format!("--memory {bytes}: is not a SIZE, as in 16G")),
        };
        let random = |seed| PageFrames::Random { seed, frames };
        let wanted = self.pages();
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

    fn frames_again(&self) -> Result<Reuse> {
        match self.reuse.as_str() {
            "last-freed" => Ok(Reuse::LastFreed),
            "first-freed" => Ok(Reuse::FirstFreed),
            "never" => Ok(Reuse::Never),
            other => refused(format!(
                "--reuse {other}: is none; known: last-freed, first-freed, never"
            )),
        }
    }

    fn how_pages_are_cleared(&self) -> Result<Clearing> {
        match self.clearing.as_str() {
            "whole-lines" => Ok(Clearing::WholeLines),
            "fetched" => Ok(Clearing::Fetched),
            "none" => Ok(Clearing::Unrecorded),
            other => refused(format!(
                "--clearing {other}: is none; known: whole-lines, fetched, none"
            )),
        }
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
        let mut wanted = Wanted {
            program: vec!["ls".to_owned()],
            ..Wanted::default()
        };
        change(&mut wanted);
        wanted.request(PathBuf::new()).map_err(|e| e.to_string())
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
        let core = wanted(|w| w.level = Some("cpu".into())).unwrap();
        assert_eq!(core.pages, PageFrames::Virtual);
        assert_eq!(
            wanted(|w| w.level = Some("cpu".into())).unwrap().level,
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
        assert!(problem(|w| w.level = Some("disk".into())).contains("memory, cpu"));
        assert!(problem(|w| w.pages = Some("random:x".into())).contains("random:SEED"));
        assert!(problem(|w| w.pages = Some("virtual".into())).contains("--level cpu"));
        assert!(problem(|w| w.reuse = "again".into()).contains("first-freed"));
        assert!(problem(|w| w.clearing = "no".into()).contains("fetched"));
        for bad in ["1000", "1000:", "-1:8", "8:1000001"] {
            let said = wanted(|w| w.kernel_instructions = bad.into()).unwrap_err();
            assert!(said.contains("1000:8"), "{said}");
        }
        assert!(problem(|w| w.memory = Bytes(4)).contains("16G"));
        assert!(problem(|w| w.cores = 0).contains("--cores"));
    }
}
