//! Runs a program and all that it starts, and handles their stops, of which each may be a call that matters.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_crash_test::interrupt::Interrupt;
use sardonyx_crash_test::recording::{NOWHERE, Recording};
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::{CrashTestError, Result};

use crate::operations::Act;
use crate::recording::interpreters::Interpreters;
use crate::recording::machine::{self, Registers};
use crate::recording::process;
use crate::recording::stack::Stacks;
use crate::recording::{
    Begun, Fault, Faultable, PendingAct, Process, RecordedRun, Recorder, Thread, calls,
};
use crate::tree::{FileTree, too_large};

/// `PTRACE_O_*`: stops are told apart, all children are followed, and all end with us.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_EXITKILL;
/// The pause between two looks while nothing stops: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_micros(5), Duration::from_millis(1));
const AT_CALL: i32 = libc::SIGTRAP | 0x80;
/// A thread that sleeps at this many looks in a row, a pause apart, waits for what another one does.
const ASLEEP: u32 = 8;
#[derive(Clone)]
pub struct Run<'a> {
    pub words: &'a [String],
    pub folder: &'a Path,
    pub limit: Duration,
    pub outputs: [&'a Path; 2],
    pub acks_fd: i32,
    pub acks_socket: bool,
    pub fault: Option<Fault>,
    pub interrupt: &'a Interrupt,
}

/// Runs a program to its end and records it.
///
/// # Errors
/// The folder cannot be read; the program cannot be run or traced.
pub fn record(run: &Run<'_>) -> Result<RecordedRun> {
    let run = run.clone();
    // A thread of its own has only the recorded program's processes to wait for.
    std::thread::scope(|scope| {
        let recorded = scope.spawn(move || Recorder::new(&run)?.run(&run));
        recorded
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Recorder {
    fn new(run: &Run<'_>) -> Result<Recorder> {
        let failed = || CrashTestError::io(run.folder.display());
        let root = run.folder.canonicalize().map_err(failed())?;
        let (tree, identities) = FileTree::read(&root, run.interrupt)?;
        let numbered = identities.into_iter().zip(0..);
        let bytes = tree.bytes();
        Ok(Recorder {
            began: SystemTime::now(),
            device: root.metadata().map_err(failed())?.dev(),
            root,
            start: tree.clone(),
            tree,
            inodes: numbered.collect(),
            outputs: Vec::new(),
            acks: (run.acks_fd, None),
            acks_socket: run.acks_socket,
            other_acks: BTreeSet::new(),
            first: 0,
            operations: Vec::new(),
            commands: Vec::new(),
            labels: Vec::new(),
            threads: FxHashMap::default(),
            processes: FxHashMap::default(),
            mapped: BTreeMap::new(),
            places: Recording::default(),
            sites: FxHashMap::default(),
            stacks: Stacks::default(),
            interpreters: Interpreters::default(),
            scripts: FxHashMap::default(),
            ran: Vec::new(),
            made: FxHashMap::default(),
            unmade: FxHashSet::default(),
            notes: BTreeSet::new(),
            faultable: Vec::new(),
            fault: run.fault,
            failed_at: None,
            busy: None,
            waiting: VecDeque::new(),
            slept: 0,
            bytes,
            written: 0,
            grown: false,
        })
    }

    fn spawn(&mut self, run: &Run<'_>) -> Result<i32> {
        let mut files = Vec::new();
        for path in run.outputs {
            let file = File::create(path).map_err(CrashTestError::io(path.display()))?;
            let metadata = file
                .metadata()
                .map_err(CrashTestError::io(path.display()))?;
            self.outputs.push(process::identity(&metadata));
            files.push(file);
        }
        let errors = files.pop().expect("the second");
        let filter = machine::filter(&calls::stopping(), calls::MISSING);
        let mut command = Command::new(&run.words[0]);
        command
            .args(&run.words[1..])
            .stdin(Stdio::null())
            .stdout(files.pop().expect("the first"))
            .stderr(errors);
        // SAFETY: only system calls between fork and exec.
        unsafe { command.pre_exec(move || machine::be_traced(&filter)) };
        let child = command.spawn().map_err(|e| {
            CrashTestError::new(format!(
                "{}: cannot be run and traced: {e}; give a program with its path, or one in PATH, where ptrace is allowed",
                run.words[0]
            ))
        })?;
        Ok(child.id() as i32)
    }

    /// Handles stops until no process is left.
    ///
    /// In turn: when the time is over, the files have grown too large or the user wants an end, all are killed; if nothing
    /// has stopped, it pauses, longer each time; a stop is handled; and the first process's end is kept.
    fn run(mut self, run: &Run<'_>) -> Result<RecordedRun> {
        let began = Instant::now();
        let first = self.spawn(run)?;
        self.first = first;
        let known = usize::try_from(run.acks_fd - 1).ok();
        self.acks.1 = known.and_then(|known| self.outputs.get(known).copied());
        let mut ended = None;
        let (mut late, mut cancelled) = (false, false);
        let mut pause = PAUSES.0;
        loop {
            let mut status = 0;
            // SAFETY: waits for processes that this thread has started, and for their children.
            let thread = unsafe {
                libc::waitpid(
                    -1,
                    &raw mut status,
                    libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG,
                )
            };
            let over = began.elapsed() > run.limit;
            if !cancelled && (over || self.grown || run.interrupt.is_set()) {
                (late, cancelled) = (over, true);
                self.kill();
            }
            match thread {
                0 => {
                    if pause == PAUSES.1 {
                        self.look_at_busy();
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES.1);
                    continue;
                }
                ..0 => break,
                _ if libc::WIFSTOPPED(status) => {
                    self.stopped(thread, status);
                    if cancelled {
                        self.kill(); // one that was being started meanwhile
                    }
                }
                _ => {
                    self.gone(thread);
                    if thread == first {
                        ended = Some(status);
                    }
                }
            }
            pause = PAUSES.0;
        }
        run.interrupt.check()?;
        if self.grown {
            return Err(too_large(run.folder));
        }
        if late {
            let limit = run.limit.as_secs_f64();
            self.note(&format!(
                "the program was ended after {limit} s; --record-limit allows more"
            ));
        }
        if self.commands.is_empty() {
            return Err(CrashTestError::new(format!(
                "{}: ended before it began; ptrace and seccomp must be allowed, and it must be a program",
                run.words[0]
            )));
        }
        let status = ended.unwrap_or_default();
        let ended = match (late, libc::WIFEXITED(status)) {
            (true, _) => Ended::TimedOut,
            (_, true) => Ended::Status(libc::WEXITSTATUS(status)),
            (_, false) => Ended::Signal(libc::WTERMSIG(status)),
        };
        self.finish(ended, began.elapsed().as_secs_f64(), run.interrupt)
    }

    fn finish(mut self, ended: Ended, seconds: f64, interrupt: &Interrupt) -> Result<RecordedRun> {
        self.compare_mapped(0, NOWHERE);
        self.tell_what_ran();
        self.name_calls();
        let unexplained = self.tree.difference(&self.root, interrupt)?;
        Ok(RecordedRun {
            start: self.start,
            operations: self.operations,
            commands: self.commands,
            labels: self.labels,
            places: self.places,
            notes: self.notes.into_iter().collect(),
            faultable: self.faultable,
            failed_at: self.failed_at,
            unexplained,
            ended,
            other_acks: self.other_acks,
            seconds,
        })
    }

    fn kill(&self) {
        for &thread in self.threads.keys() {
            // SAFETY: threads that we trace.
            unsafe { libc::kill(thread, libc::SIGKILL) };
        }
    }

    fn gone(&mut self, thread: i32) {
        self.threads.remove(&thread);
        // It may have been about to say where it made them.
        for child in std::mem::take(&mut self.unmade) {
            resume(child, libc::PTRACE_CONT, 0);
        }
        self.waiting.retain(|&waiting| waiting != thread);
        self.free(thread);
    }

    /// Handles a stop: at a call, at a signal, or because the thread began, started another, or is about to end.
    fn stopped(&mut self, thread: i32, status: i32) {
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        if !self.threads.contains_key(&thread) {
            self.met(thread);
            // SAFETY: it is stopped and ours.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, OPTIONS) };
            if self.unmade.contains(&thread) {
                return;
            }
            if event == 0 {
                return resume(thread, libc::PTRACE_CONT, 0);
            }
        }
        match event {
            libc::PTRACE_EVENT_SECCOMP => self.at_call(thread),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.makes(thread);
                resume(thread, libc::PTRACE_CONT, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.executed(thread);
                resume(thread, libc::PTRACE_CONT, 0);
            }
            libc::PTRACE_EVENT_EXIT => {
                self.compare_mapped(thread, NOWHERE);
                self.free(thread);
                resume(thread, libc::PTRACE_CONT, 0);
            }
            0 if signal == AT_CALL => self.after_call(thread),
            0 => resume(thread, libc::PTRACE_CONT, signal),
            _ => resume(thread, libc::PTRACE_CONT, 0),
        }
    }

    /// Finds where a thread makes a process, which waits for that if it has stopped first.
    fn makes(&mut self, thread: i32) {
        let child = message(thread) as i32;
        let process = self.threads.get(&thread).map(|known| known.process);
        if process == Some(process::of_thread(child)) {
            return; // only a thread
        }
        if let (Some(known), Ok(registers)) =
            (self.threads.get_mut(&thread), Registers::read(thread))
        {
            known.registers = Some(registers);
        }
        let site = self.site(thread);
        match self.unmade.remove(&child) {
            true => {
                self.made(child, site);
                resume(child, libc::PTRACE_CONT, 0);
            }
            false => {
                self.made.insert(child, site);
            }
        }
    }

    fn made(&mut self, process: i32, site: u32) {
        if let Some(known) = self.processes.get_mut(&process) {
            known.made_at = site;
        }
    }

    /// Handles a thread that was unknown: the first of all, or one that was just started.
    fn met(&mut self, thread: i32) {
        let process = process::of_thread(thread);
        if !self.processes.contains_key(&process) {
            let parent = parent(process);
            let known = match self.processes.get(&parent) {
                Some(parent) => Process {
                    command: parent.command,
                    code: parent.code.clone(),
                    interpreter: parent.interpreter.clone(),
                    mappings: parent.mappings.clone(),
                    run_at: parent.run_at,
                    made_at: NOWHERE,
                },
                None => Process::default(),
            };
            self.processes.insert(process, known);
            match self.made.remove(&process) {
                _ if self.commands.is_empty() => self.executed(process),
                Some(site) => self.made(process, site),
                None => {
                    self.unmade.insert(process);
                }
            }
        }
        let known = Thread {
            process,
            begun: None,
            failing: None,
            registers: None,
        };
        self.threads.insert(thread, known);
    }

    fn executed(&mut self, thread: i32) {
        let process = process::of_thread(thread);
        self.commands.push(process::command(process));
        self.labels.push(process::label(process));
        self.ran.push(process);
        let before = self.processes.get(&process);
        let mut new = Process {
            command: (self.commands.len() - 1) as u32,
            run_at: before.map_or(NOWHERE, |before| before.made_at),
            ..Process::default()
        };
        self.look_up_code(process, &mut new);
        // The program itself comes first, because the first module counts as the user's own.
        let own = new.code.iter().find(|code| code.is_of_file());
        let own = own.map(|code| code.start);
        if let Some(start) = own {
            self.add_module(&new, start);
        }
        self.processes.insert(process, new);
    }

    fn at_call(&mut self, thread: i32) {
        if message(thread) as u16 == machine::FOREIGN {
            self.note("a 32-bit program ran, and what it did is not recorded");
            return resume(thread, libc::PTRACE_CONT, 0);
        }
        if self.busy.is_some() {
            return self.waiting.push_back(thread);
        }
        let Ok(registers) = Registers::read(thread) else {
            return;
        };
        let (call, arguments) = (registers.number(), registers.arguments());
        if let Some(known) = self.threads.get_mut(&thread) {
            known.registers = Some(registers);
        }
        match self.begin(thread, call, arguments) {
            None => resume(thread, libc::PTRACE_CONT, 0),
            Some(mut begun) => {
                if begun.site == 0 {
                    begun.site = self.site(thread);
                }
                let waits = matches!(begun.pending, PendingAct::Acknowledge { .. })
                    || ["splice", "sendfile"]
                        .iter()
                        .any(|call| begun.shown.starts_with(call));
                self.compare_mapped(thread, begun.site);
                self.consider_fault(thread, &begun);
                if let Some(known) = self.threads.get_mut(&thread) {
                    known.begun = Some(begun);
                }
                if !waits {
                    self.busy = Some(thread);
                }
                resume(thread, libc::PTRACE_SYSCALL, 0);
            }
        }
    }

    /// Makes a sync or a write fail if it is the one that has to.
    fn consider_fault(&mut self, thread: i32, begun: &Begun) {
        let syncs = match &begun.pending {
            PendingAct::Write { .. } => false,
            PendingAct::Done(acts) if matches!(acts[..], [Act::Sync { .. }]) => true,
            _ => return,
        };
        let number = self.faultable.len();
        let process = self
            .threads
            .get(&thread)
            .map_or(thread, |known| known.process);
        self.faultable.push(Faultable {
            shown: begun.shown.clone(),
            command: self
                .processes
                .get(&process)
                .map_or(0, |process| process.command),
            site: begun.site,
            syncs,
        });
        if let Some(fault) = self.fault
            && fault.number == number
            && let Some(known) = self.threads.get_mut(&thread)
            && let Some(registers) = &mut known.registers
            && registers.skip_call(thread).is_ok()
        {
            known.failing = Some(fault.error);
            self.failed_at = Some(self.operations.len());
        }
    }

    fn after_call(&mut self, thread: i32) {
        let known = self.threads.get_mut(&thread);
        let begun = known.and_then(|known| Some((known.begun.take()?, known.failing.take())));
        if let (Some((begun, failing)), Ok(mut registers)) = (begun, Registers::read(thread)) {
            match failing {
                None => self.end(thread, begun, registers.answer()),
                Some(error) => {
                    let answer = -i64::from(error);
                    if registers.set_answer(thread, answer).is_err() {
                        self.note("an error could not be given to the program");
                    }
                    if let PendingAct::Done(acts) = &begun.pending
                        && let [Act::Sync { inode, .. }] = acts[..]
                    {
                        self.push(thread, &begun, Act::Fail { inode });
                    }
                }
            }
        }
        resume(thread, libc::PTRACE_CONT, 0);
        self.free(thread);
    }

    /// Lets the next operation begin if the one that is under way waits for what another process does: to open the other
    /// end of a pipe, or to give up a lease. It comes in the order when it ends. A call that waits for a disk cannot be
    /// interrupted and does not sleep so.
    fn look_at_busy(&mut self) {
        let asleep = self.busy.filter(|&busy| process::sleeps(busy));
        self.slept = if asleep.is_some() { self.slept + 1 } else { 0 };
        if let Some(busy) = asleep.filter(|_| self.slept >= ASLEEP) {
            self.free(busy);
        }
    }

    /// Lets the next operation begin if this thread's was under way.
    fn free(&mut self, thread: i32) {
        if self.busy != Some(thread) {
            return;
        }
        (self.busy, self.slept) = (None, 0);
        while self.busy.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            self.at_call(next);
        }
    }
}

fn resume(thread: i32, how: libc::c_uint, signal: i32) {
    // SAFETY: it is stopped and ours; if it has gone meanwhile, the next wait tells so.
    unsafe { libc::ptrace(how, thread, 0, signal) };
}

/// The message of a thread's stop.
fn message(thread: i32) -> libc::c_ulong {
    let mut data = 0;
    // SAFETY: it is stopped and ours, and the word lives through the call.
    unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut data) };
    data
}

fn parent(process: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent
        .and_then(|id| id.trim().parse().ok())
        .unwrap_or_default()
}
