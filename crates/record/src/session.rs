//! One recording from its start to the last process's end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sardonyx_recorder::caches::{Caches, Geometry, Hierarchy};
use sardonyx_recorder::codec::Cached;
use sardonyx_recorder::frames::{Numbers, PAGE_BYTES, Reuse};
use sardonyx_recorder::options::{Clearing, KernelTime, Level, Options};
use sardonyx_recorder::ring::{FIRST, Ring, terminate};
use sardonyx_trace::{self as trace, Provenance};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::folder::Folder;
use crate::grounds;
use crate::pages::Pages;
use crate::stream::{Finished, Stream, Window};
use crate::{RecordError, program};

/// Bytes of the first process's ring.
const RING: u64 = 16 << 20;
/// Bytes read from a ring at a time.
const CHUNK: usize = 1 << 20;
/// How long to wait where there is nothing to read: a ring takes far longer to fill.
const IDLE: Duration = Duration::from_millis(5);
/// How long a program has to end by itself once the trace is long enough.
const GRACE: Duration = Duration::from_secs(3);

/// How long a program has to say what its caches hold once the trace is long enough.
const LAST_WORD: Duration = Duration::from_secs(1);

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Variables of its environment besides the recorder's own.
    pub environment: Vec<(OsString, OsString)>,
    /// The trace of the first process; children's have a number before the suffix.
    pub output: PathBuf,
    /// QEMU, if not the one in `PATH`.
    pub qemu: Option<PathBuf>,
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The caches.
    pub caches: Hierarchy,
    /// Where records are taken.
    pub level: Level,
    /// Where pages lie. At level `memory` they lie in frames.
    pub pages: Pages,
    /// At level `memory`: how frames of pages that went come back, where they are counted.
    pub reuse: Reuse,
    /// At level `memory`: how the kernel clears and copies pages.
    pub clearing: Clearing,
    /// At level `memory`: what it runs for that.
    pub kernel: KernelTime,
    /// Instructions before the first record.
    pub skip_instructions: u64,
    /// What is kept.
    pub window: Window,
    /// Children too.
    pub follow_fork: bool,
    /// The first read of a line carries its bytes.
    pub read_data: bool,
    /// Flushes, fences and stores to mapped files carry their place in the program.
    pub pc: bool,
    /// What the program writes to this descriptor is kept.
    pub acks: Option<i32>,
}

/// How far a recording is; anyone may look.
#[derive(Debug, Default)]
pub struct Live {
    /// Instructions of the first process.
    pub instructions: AtomicU64,
    /// Records of all processes.
    pub records: AtomicU64,
    /// Bytes that came from the plugin.
    pub bytes: AtomicU64,
    /// Somebody wants the recording to end; what there is is kept.
    pub stop: AtomicBool,
}

/// What became of a recording.
#[derive(Debug, serde::Serialize)]
pub struct Outcome {
    /// A trace for each process recorded, the first process's first.
    pub traces: Vec<Finished>,
    /// The first process's exit status.
    pub status: Option<i32>,
    /// The signal that killed it, unless the recorder did since the trace was long enough or somebody asked.
    pub signal: Option<i32>,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// A process being recorded.
struct Recorded {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Option<Finished>, RecordError>>,
}

/// Runs the program and writes its traces.
///
/// # Errors
/// Nothing was written: QEMU or the program is not there or cannot run, or the trace cannot be written.
pub fn record(request: &Request, live: &Arc<Live>) -> Result<Outcome, RecordError> {
    Caches::new(&request.caches).map_err(RecordError::new)?;
    let qemu = program::qemu(request.qemu.as_deref())?;
    let command = program::command(&request.program)?;
    if !request.plugin.is_file() {
        return Err(RecordError::new(format!(
            "{}: the recorder's plugin is not there; install Sardonyx again",
            request.plugin.display()
        )));
    }
    let session = Session {
        folder: Folder::create()?,
        ground: grounds::folder(request)?,
        request,
        live,
    };
    session.run(&qemu, &command)
}

/// What lines are, and how pages got their frames if the plugin gave them.
fn address_space(request: &Request) -> (Value, Option<Value>) {
    if request.level == Level::Cpu {
        let space = match request.pages {
            Pages::Virtual => json!("virtual"),
            Pages::Sequential => json!("frames in order of first touch"),
            Pages::Random { seed, frames } => json!({"frames": frames, "seed": seed}),
            Pages::PageMap => json!("frames of the kernel's page map"),
        };
        return (space, None);
    }
    let mut frames = match request.pages {
        Pages::Virtual | Pages::Sequential => json!({
            "numbers": "in order of first touch",
            "reuse": match request.reuse {
                Reuse::LastFreed => "last freed first",
                Reuse::FirstFreed => "first freed first",
                Reuse::Never => "never",
            },
        }),
        Pages::Random { seed, frames } => {
            json!({"numbers": "random", "of": frames, "seed": seed})
        }
        Pages::PageMap => json!({"numbers": "of the kernel's page map"}),
    };
    frames["page_bytes"] = PAGE_BYTES.into();
    frames["clearing"] = match request.clearing {
        Clearing::WholeLines => "whole lines, not fetched".into(),
        Clearing::Fetched => "lines fetched, then stored to".into(),
        Clearing::Unrecorded => "not recorded".into(),
    };
    if request.clearing != Clearing::Unrecorded {
        let KernelTime { fault, line } = request.kernel;
        frames["kernel_instructions"] = json!({"fault": fault, "line": line});
    }
    (json!("frames"), Some(frames))
}

struct Session<'a> {
    folder: Folder,
    /// Where files are copied before they are written, beside the trace.
    ground: Option<TempDir>,
    request: &'a Request,
    live: &'a Arc<Live>,
}

impl Session<'_> {
    fn run(&self, qemu: &Path, command: &[OsString]) -> Result<Outcome, RecordError> {
        let ring = Ring::create(&self.folder.path().join(FIRST), RING, std::process::id()).map_err(|e| {
            RecordError::new(format!(
                "{}: no room for {} MiB between the program and the recorder: {e}; make room there",
                self.folder.path().display(),
                RING >> 20
            ))
        })?;
        let first = self.stream(0)?;
        let started = Instant::now();
        let mut child = self.start(qemu, command)?;
        let mut recorded = vec![self.follow(ring, first, child.id(), true)];
        let mut seen = BTreeSet::from([child.id()]);
        let mut asked = None;
        let mut status = None;
        let mut problem = None;
        loop {
            for process in self.newcomers(&mut seen) {
                let path = self.folder.path().join(Ring::name(process));
                let index = recorded.len();
                match self.stream(index) {
                    Ok(stream) => match Ring::open(&path) {
                        Ok(ring) => recorded.push(self.follow(ring, stream, process, false)),
                        Err(_) => {
                            seen.remove(&process); // not complete yet
                        }
                    },
                    Err(e) => problem = Some(e),
                }
            }
            if status.is_none() {
                status = child.try_wait().ok().flatten();
                if status.is_some() {
                    recorded[0].done.store(true, Ordering::Release);
                }
            }
            let failed = recorded[0].thread.is_finished() || problem.is_some();
            if status.is_none() && (failed || self.live.stop.load(Ordering::Relaxed)) {
                let since = asked.get_or_insert_with(|| {
                    // Its own handler may end it in order; the number is a child's that was not waited for.
                    terminate(child.id());
                    Instant::now()
                });
                if since.elapsed() > GRACE {
                    let _ = child.kill();
                }
            }
            if status.is_some() && recorded.iter().all(|r| r.thread.is_finished()) {
                // A last look: a child may have begun just now.
                if self.newcomers(&mut seen.clone()).is_empty() {
                    break;
                }
            }
            std::thread::sleep(IDLE);
        }
        let seconds = started.elapsed().as_secs_f64();
        let mut traces = Vec::new();
        for one in recorded {
            match one.thread.join().expect("a reader does not panic") {
                Ok(trace) => traces.extend(trace),
                Err(e) => problem = Some(problem.unwrap_or(e)),
            }
        }
        if let Some(e) = problem {
            return Err(e);
        }
        let status = status.unwrap_or_default();
        if traces.is_empty() {
            let what = Path::new(&self.request.program[0]).display();
            return Err(RecordError::new(format!(
                "{what}: did not start under QEMU ({status}); what QEMU said stands above"
            )));
        }
        Ok(Outcome {
            traces,
            status: status.code(),
            signal: status.signal().filter(|_| asked.is_none()),
            seconds,
        })
    }

    fn start(&self, qemu: &Path, command: &[OsString]) -> Result<Child, RecordError> {
        let request = self.request;
        let options = Options {
            folder: self.folder.path().to_string_lossy().into_owned(),
            reader: std::process::id(),
            caches: request.caches,
            level: request.level,
            read_data: request.read_data,
            follow_fork: request.follow_fork,
            numbers: match request.pages {
                Pages::Virtual | Pages::Sequential => Numbers::InOrder,
                Pages::Random { seed, frames } => Numbers::Random { seed, frames },
                Pages::PageMap => Numbers::Kernel,
            },
            reuse: request.reuse,
            clearing: request.clearing,
            kernel: request.kernel,
            page_map: request.level == Level::Cpu && request.pages == Pages::PageMap,
            skip: request.skip_instructions,
            sites: request.pc,
            acks: request.acks,
            ground: (self.ground.as_ref()).map(|g| g.path().to_string_lossy().into_owned()),
        };
        let plugin = request.plugin.to_string_lossy().replace(',', ",,");
        let plugin = format!("{plugin},{}", options.argument());
        Command::new(qemu)
            .args(["-cpu", "max", "-plugin", &plugin])
            .args(command)
            .envs(request.environment.iter().cloned())
            .spawn()
            .map_err(|e| {
                RecordError::new(format!(
                    "{}: cannot be run: {e}; reinstall it",
                    qemu.display()
                ))
            })
    }

    fn stream(&self, index: usize) -> Result<Stream, RecordError> {
        let request = self.request;
        let mut window = request.window;
        if index > 0 {
            window.skip = 0;
        }
        let provenance = self.provenance(index);
        let mut stream = Stream::create(
            &self.path(index),
            provenance,
            match request.level {
                Level::Memory => Pages::Virtual,
                Level::Cpu => request.pages,
            },
            window,
            request.pc,
        )?;
        stream.acks = request.acks.is_some();
        if let (Level::Memory, Pages::Random { frames, .. }) = (request.level, request.pages) {
            stream.memory = Some(frames);
        }
        if index == 0 {
            stream.ground = (self.ground.as_ref()).map(|ground| ground.path().to_owned());
        }
        Ok(stream)
    }

    fn path(&self, index: usize) -> PathBuf {
        let output = &self.request.output;
        if index == 0 {
            return output.clone();
        }
        let mut name = output.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{index}"));
        if let Some(suffix) = output.extension() {
            name.push(".");
            name.push(suffix);
        }
        output.with_file_name(name)
    }

    fn provenance(&self, index: usize) -> Provenance {
        let request = self.request;
        let words = request.program.iter();
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        let cache = |g: Geometry| json!({"bytes": g.bytes, "ways": g.ways});
        let caches = &request.caches;
        let mut provenance = Provenance {
            program: Path::new(&request.program[0])
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            description: words.join(" "),
            level: match request.level {
                Level::Memory => trace::Level::Memory,
                Level::Cpu => trace::Level::Cpu,
            },
            ..Provenance::default()
        };
        let more = &mut provenance.more;
        if request.level == Level::Memory {
            let shown = json!({
                "l1": cache(caches.l1), "l2": cache(caches.l2), "llc": caches.llc.map(cache),
                "llc_policy": if caches.inclusive { "inclusive" } else { "non-inclusive" },
                "cores": caches.cores, "replacement": "lru", "write": "back, allocate",
            });
            more.insert("caches".into(), shown);
        }
        let (space, frames) = address_space(request);
        more.insert("address_space".into(), space);
        if let Some(frames) = frames {
            more.insert("frames".into(), frames);
        }
        more.insert("line_bytes".into(), 64.into());
        more.insert("recorder".into(), env!("CARGO_PKG_VERSION").into());
        if request.skip_instructions > 0 || request.window != Window::default() {
            let shown = json!({
                "skip_instructions": request.skip_instructions, "skip": request.window.skip,
                "limit": request.window.limit, "limit_instructions": request.window.instructions,
            });
            more.insert("window".into(), shown);
        }
        if index > 0 {
            more.insert("child".into(), index.into());
        }
        provenance
    }

    /// Processes whose rings are new.
    fn newcomers(&self, seen: &mut BTreeSet<u32>) -> Vec<u32> {
        if !self.request.follow_fork {
            return Vec::new();
        }
        let Ok(entries) = std::fs::read_dir(self.folder.path()) else {
            return Vec::new();
        };
        let writers = entries.filter_map(|e| Ring::writer_of(&e.ok()?.file_name()));
        let mut new: Vec<u32> = writers.filter(|&process| seen.insert(process)).collect();
        new.sort_unstable();
        new
    }

    fn follow(&self, ring: Ring, stream: Stream, process: u32, first: bool) -> Recorded {
        let done = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            ring,
            stream,
            live: self.live.clone(),
            done: done.clone(),
            process,
            first,
            emulator: std::fs::read_link(format!("/proc/{process}/exe")).ok(),
        };
        let thread = std::thread::spawn(move || reader.run());
        Recorded { done, thread }
    }
}

/// What one thread does for one process.
struct Reader {
    ring: Ring,
    stream: Stream,
    live: Arc<Live>,
    done: Arc<AtomicBool>,
    process: u32,
    first: bool,
    /// What it runs as long as it is recorded.
    emulator: Option<PathBuf>,
}

impl Reader {
    fn run(mut self) -> Result<Option<Finished>, RecordError> {
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            // Looked at before the ring is, so that nothing can come after the last look.
            let ended = self.ended();
            let read = self.ring.read(&mut bytes, CHUNK);
            let before = self.stream.records();
            if let Err(e) = self.stream.take(&mut bytes) {
                self.ring.header().stop.store(1, Ordering::Relaxed);
                return Err(e);
            }
            let new = self.stream.records() - before;
            self.live.records.fetch_add(new, Ordering::Relaxed);
            self.live.bytes.fetch_add(read as u64, Ordering::Relaxed);
            if self.first {
                let instructions = self.ring.header().instructions.load(Ordering::Relaxed);
                self.live
                    .instructions
                    .store(instructions, Ordering::Relaxed);
            }
            if self.stream.is_full() {
                self.ring.header().stop.store(1, Ordering::Relaxed);
                self.last_word();
                break;
            }
            let lost = self.first && self.stream.lost().is_some();
            if read == 0 && lost && (ended || self.program() != self.emulator) {
                let path = self.stream.lost().unwrap_or_default();
                return Err(RecordError::new(format!(
                    "the program became {path} by exec, which is no x86-64 program that can be read, and ran unrecorded; \
                     have it call an x86-64 program instead"
                )));
            }
            match (read, ended) {
                (0, true) => break,
                (0, false) => std::thread::sleep(IDLE),
                _ => {}
            }
        }
        let nothing = self.first && self.stream.records() == 0;
        if nothing && self.stream.has_ended() {
            return Err(RecordError::new(
                "the program ended before the first record that was to be kept; skip less",
            ));
        }
        if nothing || self.ring.header().begun.load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        Ok(Some(self.stream.finish()?))
    }

    /// Waits until the program, whose trace is long enough, has said what its caches hold: it does so when it next has a record.
    fn last_word(&mut self) {
        let header = self.ring.header();
        let asked = Instant::now();
        while header.told.load(Ordering::Acquire) == 0 {
            if asked.elapsed() > LAST_WORD || self.ended() {
                return;
            }
            std::thread::sleep(IDLE);
        }
        let words = header.cached.each_ref().map(|w| w.load(Ordering::Relaxed));
        self.stream.cached(Cached::of(words));
    }

    /// What the process runs: QEMU, until the program becomes another. None when it is dead.
    fn program(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/exe", self.process)).ok()
    }

    /// Whether the process writes no more. A child that nobody has waited for yet is still there, but no longer runs.
    fn ended(&self) -> bool {
        if self.first {
            return self.done.load(Ordering::Acquire);
        }
        match std::fs::read_to_string(format!("/proc/{}/stat", self.process)) {
            Ok(stat) => stat
                .rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
            Err(_) => true,
        }
    }
}
