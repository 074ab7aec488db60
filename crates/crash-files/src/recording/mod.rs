//! Runs a program and all that it starts, and writes down what they do to the files below a folder: by ptrace, with a
//! filter that stops a thread only at calls that may matter.
//!
//! One such call is let through at a time, so that the operations have one order. What a program stores to files that
//! it maps is found by comparing them before each operation. Left out: 32-bit programs, and calls that
//! [`calls`] does not name.

mod calls;
mod ends;
mod go;
mod interpreters;
mod java;
mod machine;
mod perf_map;
mod process;
mod python;
mod shell;
mod sites;
mod stack;
mod syncs;
pub mod tracing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_crash_test::recording::{NOWHERE, Recording, ScriptFrame};
use sardonyx_crash_test::recovery::ending::Ended;

use crate::content::FileContent;
use crate::operations::{Act, Inode, Name, Operation};
use crate::recording::interpreters::{Interpreter, Interpreters};
use crate::recording::machine::Registers;
use crate::recording::process::MappedCode;
pub(crate) use crate::recording::process::{runs_scripts, without_version};
use crate::recording::stack::Stacks;
use crate::tree::{FileTree, MOST_BYTES};

/// A program may write this many bytes in all, because each operation is kept with its bytes.
const MOST_WRITTEN: u64 = 2 * MOST_BYTES;

#[derive(Debug)]
pub struct RecordedRun {
    /// The folder before the run, with every inode that there ever was.
    pub start: FileTree,
    pub operations: Vec<Operation>,
    pub commands: Vec<String>,
    /// The names of the commands, without their arguments.
    pub labels: Vec<String>,
    /// The places of calls, and the files that they lie in; nothing else.
    pub places: Recording,
    pub notes: Vec<String>,
    /// The syncs and writes that may be made to fail.
    pub faultable: Vec<Faultable>,
    /// The number of operations before the call that was made to fail.
    pub failed_at: Option<usize>,
    /// The first path that differs in the end from what the recorded operations make.
    pub unexplained: Option<String>,
    /// [`Ended::TimedOut`] if its limit ended it.
    pub ended: Ended,
    /// The kinds of places to which the program wrote text that is not kept, each with how it is named.
    pub other_acks: BTreeSet<OtherAcks>,
    pub seconds: f64,
}

/// A kind of place to which a program may write what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtherAcks {
    Output,
    Error,
    Socket,
}

impl OtherAcks {
    /// The place, and the option that names it.
    pub fn named(self) -> &'static str {
        match self {
            OtherAcks::Output => "standard output (--acks-fd 1)",
            OtherAcks::Error => "standard error (--acks-fd 2)",
            OtherAcks::Socket => "a socket (--acks-socket)",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Faultable {
    pub shown: String,
    pub command: u32,
    pub site: u32,
    pub syncs: bool,
}

/// The number of a faultable call, from 0 on, and the error with which it ends.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub number: usize,
    pub error: i32,
}

/// A part of a file below the folder in a process's memory.
#[derive(Clone, Debug)]
struct Mapping {
    start: u64,
    length: u64,
    offset: u64,
    inode: Inode,
    path: String,
    file: Arc<File>,
    site: u32,
}

#[derive(Debug)]
struct Process {
    command: u32,
    code: Vec<MappedCode>,
    interpreter: Option<Interpreter>,
    /// The site at which its program was run by another, and the one at which the process was made.
    run_at: u32,
    made_at: u32,
    mappings: Vec<Mapping>,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            command: 0,
            code: Vec::new(),
            interpreter: None,
            run_at: NOWHERE,
            made_at: NOWHERE,
            mappings: Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Thread {
    process: i32,
    begun: Option<Begun>,
    /// The error with which the call fails instead of doing anything.
    failing: Option<i32>,
    /// The registers of the call at which the thread has stopped.
    registers: Option<Registers>,
}

struct Recorder {
    began: SystemTime,
    root: PathBuf,
    device: u64,
    start: FileTree,
    tree: FileTree,
    inodes: FxHashMap<(u64, u64), Inode>,
    /// Standard output and standard error, by identity.
    outputs: Vec<(u64, u64)>,
    /// The descriptor of the first process whose text is kept, and the file behind it once something was written to it.
    acks: (i32, Option<(u64, u64)>),
    acks_socket: bool,
    other_acks: BTreeSet<OtherAcks>,
    first: i32,
    operations: Vec<Operation>,
    commands: Vec<String>,
    labels: Vec<String>,
    threads: FxHashMap<i32, Thread>,
    processes: FxHashMap<i32, Process>,
    /// Files that a process may have stored to.
    mapped: BTreeMap<Inode, Mapping>,
    places: Recording,
    sites: FxHashMap<(u32, u64, u32), u32>,
    stacks: Stacks,
    interpreters: Interpreters,
    scripts: FxHashMap<ScriptFrame, u64>,
    /// The first process of each command.
    ran: Vec<i32>,
    /// Sites at which processes were made that have not stopped yet, and processes that wait for theirs.
    made: FxHashMap<i32, u32>,
    unmade: FxHashSet<i32>,
    notes: BTreeSet<String>,
    faultable: Vec<Faultable>,
    fault: Option<Fault>,
    failed_at: Option<usize>,
    /// The thread whose operation is under way, and those that wait for its end.
    busy: Option<i32>,
    waiting: VecDeque<i32>,
    /// The number of looks in a row at which that thread slept.
    slept: u32,
    /// The bytes of all files, those that were written in all, and whether either are too many.
    bytes: u64,
    written: u64,
    grown: bool,
}

/// The place at which a write begins.
#[derive(Debug)]
enum At {
    /// It ends at the descriptor's position.
    Position,
    Offset(u64),
    /// It ends at the position in a word of the caller's.
    Word(u64),
}

/// The operation to record when a call has succeeded.
#[derive(Debug)]
enum PendingAct {
    Done(Vec<Act>),
    Create {
        name: Name,
        path: PathBuf,
    },
    Anonymous,
    Write {
        fd: i32,
        inode: Inode,
        at: At,
        flags: u64,
    },
    /// Any byte of the file may differ from before.
    Whole {
        fd: i32,
        inode: Inode,
    },
    Map(Mapping),
    Acknowledge {
        operation: usize,
    },
}

/// A call that has begun: its name, its objects, and the operation to record.
#[derive(Debug)]
struct Begun {
    shown: String,
    path: String,
    pending: PendingAct,
    site: u32,
}

impl Recorder {
    fn note(&mut self, text: &str) {
        self.notes.insert(text.to_owned());
    }

    fn push(&mut self, thread: i32, begun: &Begun, act: Act) -> usize {
        let size = |tree: &FileTree| {
            let content = act.inode().and_then(|inode| tree.content(inode));
            content.map_or(0, FileContent::size)
        };
        let before = size(&self.tree);
        self.tree.apply(&act);
        self.bytes = (self.bytes.saturating_add(size(&self.tree))).saturating_sub(before);
        if let Act::Write { data, .. } = &act {
            self.written += data.len() as u64;
        }
        self.grown |= self.bytes > MOST_BYTES || self.written > MOST_WRITTEN;
        let process = self
            .threads
            .get(&thread)
            .map_or(thread, |known| known.process);
        let command = self
            .processes
            .get(&process)
            .map_or(0, |process| process.command);
        self.operations.push(Operation {
            act,
            shown: begun.shown.clone(),
            path: begun.path.clone(),
            command,
            thread,
            site: begun.site,
        });
        self.operations.len() - 1
    }

    /// Records stores to mapped files since the last time.
    fn compare_mapped(&mut self, thread: i32, site: u32) {
        if self.grown {
            return; // nothing of it is told
        }
        for mapping in self.mapped.values().cloned().collect::<Vec<_>>() {
            let Some(content) = self.tree.content(mapping.inode) else {
                continue;
            };
            for (offset, data) in content.differences(&mapping.file).unwrap_or_default() {
                let end = offset + data.len() as u64;
                let begun = Begun {
                    shown: format!("stores({}, [{offset}, {end}))", mapping.path),
                    path: mapping.path.clone(),
                    pending: PendingAct::Anonymous,
                    site: if site == NOWHERE { mapping.site } else { site },
                };
                let inode = mapping.inode;
                self.push(
                    thread,
                    &begun,
                    Act::Write {
                        inode,
                        offset,
                        data,
                    },
                );
            }
        }
    }
}
