//! Runs the program's recovery on a file, with limits, and says how it ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::PersistError;

/// The most of a recovery's output that is kept.
const OUTPUT: u64 = 2000;

/// What to run, and what it may use.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Words of the command, with `{pool}` and `{acks}` for the files.
    pub words: Vec<String>,
    /// Exit statuses that mean that all is well.
    pub ok: Vec<i32>,
    /// How long it may take.
    pub time: Duration,
    /// How much memory it may ask for, in bytes.
    pub memory: u64,
}

/// How a recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// Not in time.
    TimedOut,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Status(status) => write!(f, "exit status {status}"),
            Ended::Signal(signal) => write!(f, "signal {signal}"),
            Ended::TimedOut => write!(f, "no end in time"),
        }
    }
}

fn replaced(word: &str, pool: &Path, acks: &Path) -> OsString {
    let mut bytes = word.as_bytes().to_vec();
    for (name, path) in [("{pool}", pool), ("{acks}", acks)] {
        let (name, with) = (name.as_bytes(), path.as_os_str().as_bytes());
        while let Some(at) = bytes.windows(name.len()).position(|part| part == name) {
            bytes.splice(at..at + name.len(), with.iter().copied());
        }
    }
    OsString::from_vec(bytes)
}

impl Recovery {
    /// Whether it asks for what was acknowledged.
    pub fn wants_acks(&self) -> bool {
        self.words.iter().any(|word| word.contains("{acks}"))
    }

    /// Whether an end is none that should be.
    pub fn fails(&self, ended: Ended) -> bool {
        !matches!(ended, Ended::Status(status) if self.ok.contains(&status))
    }

    /// The command's words for these files.
    pub fn command(&self, pool: &Path, acks: &Path) -> Vec<OsString> {
        let words = self.words.iter();
        words.map(|word| replaced(word, pool, acks)).collect()
    }

    /// Runs it on `pool`, at most so long; what it says goes to the file `output`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(
        &self,
        pool: &Path,
        acks: &Path,
        output: &Path,
        time: Duration,
    ) -> Result<Ended, PersistError> {
        let failed = || PersistError::io(output.display());
        let file = File::create(output).map_err(failed())?;
        let words = self.command(pool, acks);
        // Nothing here needs a fork: the standard library starts it by posix_spawn.
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed())?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .map_err(|e| {
                PersistError::new(format!(
                    "--recover: {} cannot be run: {e}; give a program with its path, or one in PATH",
                    words[0].display()
                ))
            })?;
        let id = child.id() as libc::pid_t;
        let limit = libc::rlimit {
            rlim_cur: self.memory,
            rlim_max: self.memory,
        };
        // SAFETY: the child has not been waited for, so the number is its; the limit lives through the call.
        let in_time = unsafe {
            libc::prlimit(id, libc::RLIMIT_AS, &raw const limit, std::ptr::null_mut());
            let process = libc::syscall(libc::SYS_pidfd_open, id, 0) as i32;
            let mut waited = libc::pollfd {
                fd: process,
                events: libc::POLLIN,
                revents: 0,
            };
            let most = time.as_millis().min(i32::MAX as u128) as i32;
            let started = std::time::Instant::now();
            let mut ready = libc::poll(&raw mut waited, 1, most);
            while ready < 0 && started.elapsed() < time {
                ready = libc::poll(&raw mut waited, 1, most); // a signal of ours came between
            }
            libc::close(process);
            // What it started goes with it; it is still a zombie, so that the group is its own.
            libc::kill(-id, libc::SIGKILL);
            ready > 0
        };
        let status = child.wait().map_err(failed())?;
        Ok(match (in_time, status.code(), status.signal()) {
            (false, ..) => Ended::TimedOut,
            (_, Some(status), _) => Ended::Status(status),
            (_, _, signal) => Ended::Signal(signal.unwrap_or_default()),
        })
    }
}

/// The beginning of what a recovery said.
pub fn said(output: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(output) {
        let _ = file.take(OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
