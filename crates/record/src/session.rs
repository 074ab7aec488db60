//! One recording from its start to the last process's end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sardonyx_recorder::caches::Caches;
use sardonyx_recorder::frames::FrameNumbers;
use sardonyx_recorder::options::{Level, PluginOptions};
use sardonyx_recorder::ring::{self, FIRST, Ring};
use tempfile::TempDir;

use crate::error::{RecordError, Result};
use crate::folder::Folder;
use crate::grounds;
use crate::pages::PageFrames;
use crate::program;
use crate::provenance::provenance;
use crate::reader::{IDLE, Live, Reader};
use crate::request::Request;
use crate::stream::{RecordedTrace, TraceStream};

const RING: u64 = 16 << 20;
/// The time a program has to end by itself once the trace is long enough, or the user wants it to end.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, serde::Serialize)]
pub struct RecordOutcome {
    /// A trace for each process recorded, the first process's first.
    pub traces: Vec<RecordedTrace>,
    /// The exit status of the first process; `None` if a signal or the recorder ended it.
    pub status: Option<i32>,
    /// The signal that ended it; `None` if the recorder sent it, because the trace was long enough or the user asked.
    pub signal: Option<i32>,
    pub seconds: f64,
}

struct FollowedProcess {
    done: Arc<OnceLock<ExitStatus>>,
    thread: JoinHandle<Result<Option<RecordedTrace>>>,
}

/// Runs the program and writes its traces.
///
/// # Errors
/// Nothing was written: QEMU or the program is not there or cannot run, or the trace cannot be written.
pub fn record(request: &Request, live: &Arc<Live>) -> Result<RecordOutcome> {
    if !sardonyx_recorder::RECORDS {
        return Err(RecordError::new(
            "there is no recorder for this processor; record on x86-64 Linux and bring the trace here",
        ));
    }
    Caches::new(&request.caches).map_err(RecordError::new)?;
    let command = program::command(&request.program)?;
    if !request.plugin.is_file() {
        return Err(RecordError::new(format!(
            "{}: the recorder's plugin is not there; install Sardonyx again",
            request.plugin.display()
        )));
    }
    let qemu = program::qemu(request.qemu.as_deref(), &request.plugin)?;
    let session = Session {
        folder: Folder::create()?,
        ground: grounds::folder(request)?,
        request,
        live,
    };
    session.run(&qemu, &command)
}

struct Session<'a> {
    folder: Folder,
    /// A folder in the trace's folder with copies of files as they were before the program wrote to them.
    ground: Option<TempDir>,
    request: &'a Request,
    live: &'a Arc<Live>,
}

impl Session<'_> {
    fn run(&self, qemu: &Path, command: &[OsString]) -> Result<RecordOutcome> {
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
            if let Err(e) = self.welcome(&mut seen, &mut recorded) {
                problem = Some(e);
            }
            if status.is_none() {
                status = child.try_wait().ok().flatten();
                if let Some(status) = status {
                    let _ = recorded[0].done.set(status);
                }
            }
            let failed = recorded[0].thread.is_finished() || problem.is_some();
            if self.live.is_stopped() || failed && status.is_none() {
                self.ask_to_end(&child, &mut asked);
            }
            if status.is_some() && recorded.iter().all(|r| r.thread.is_finished()) {
                // A child may have begun just now.
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
        Ok(RecordOutcome {
            traces,
            status: status.code().filter(|_| asked.is_none()),
            signal: status.signal().filter(|_| asked.is_none()),
            seconds,
        })
    }

    /// Asks the program to end, whose own handler may do so in order. It is killed if it was `asked` too long ago, or
    /// if the user stops it again.
    fn ask_to_end(&self, child: &Child, asked: &mut Option<Instant>) {
        let stopped = self.live.is_stopped();
        let since = asked.get_or_insert_with(|| {
            self.end_program(child, stopped, false);
            Instant::now()
        });
        if since.elapsed() > GRACE || self.live.stops.load(Ordering::Relaxed) > 1 {
            self.end_program(child, stopped, true);
        }
    }

    /// Asks the program to end, or ends it; with its children if the user wants no more of it.
    fn end_program(&self, first: &Child, with_children: bool, at_once: bool) {
        // Its number is a child's that was not waited for, or that has ended a moment ago.
        ring::end(first.id(), at_once);
        // The emulator's arguments name our folder; a child has its parent's.
        let folder = self.folder.path().as_os_str().as_bytes();
        let named = |process: &u32| {
            let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            command.windows(folder.len()).any(|part| part == folder)
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for process in processes.filter(|_| with_children).filter(named) {
            ring::end(process, at_once);
        }
    }

    fn welcome(&self, seen: &mut BTreeSet<u32>, recorded: &mut Vec<FollowedProcess>) -> Result<()> {
        for process in self.newcomers(seen) {
            let path = self.folder.path().join(Ring::name(process));
            let stream = self.stream(recorded.len())?;
            match Ring::open(&path) {
                Ok(ring) => recorded.push(self.follow(ring, stream, process, false)),
                Err(_) => {
                    seen.remove(&process); // not complete yet
                }
            }
        }
        Ok(())
    }

    fn start(&self, qemu: &Path, command: &[OsString]) -> Result<Child> {
        let request = self.request;
        let options = PluginOptions {
            folder: self.folder.path().to_string_lossy().into_owned(),
            plugin: request.plugin.to_string_lossy().into_owned(),
            reader: std::process::id(),
            caches: request.caches,
            level: request.level,
            read_data: request.read_data,
            follow_fork: request.follow_fork && !request.in_one_order(),
            one_order: request.in_one_order(),
            numbers: match request.pages {
                PageFrames::Virtual | PageFrames::Sequential => FrameNumbers::InOrder,
                PageFrames::Random { seed, frames } => FrameNumbers::Random { seed, frames },
                PageFrames::PageMap => FrameNumbers::Kernel,
            },
            reuse: request.reuse,
            clearing: request.clearing,
            kernel: request.kernel,
            page_map: request.level == Level::Cpu && request.pages == PageFrames::PageMap,
            skip: request.skip_instructions,
            sites: request.pc,
            rest: request.rest,
            acks: request.acks,
            verify: request.verify,
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

    fn stream(&self, index: usize) -> Result<TraceStream> {
        let request = self.request;
        let mut window = request.window;
        if index > 0 {
            window.skip = 0;
        }
        let provenance = provenance(self.request, index);
        let mut stream = TraceStream::create(
            &self.path(index),
            provenance,
            match request.level {
                Level::Memory => PageFrames::Virtual,
                Level::Cpu => request.pages,
            },
            window,
            request.pc,
        )?;
        stream.acks = request.acks.is_some();
        if let (Level::Memory, PageFrames::Random { frames, .. }) = (request.level, request.pages) {
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

    fn newcomers(&self, seen: &mut BTreeSet<u32>) -> Vec<u32> {
        if !self.request.follow_fork || self.request.in_one_order() {
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

    fn follow(
        &self,
        ring: Ring,
        stream: TraceStream,
        process: u32,
        first: bool,
    ) -> FollowedProcess {
        let done = Arc::new(OnceLock::new());
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
        FollowedProcess { done, thread }
    }
}
