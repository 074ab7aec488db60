//! Runs the program's recovery on a file, within limits, and tells how it ended.

pub mod bench;
pub mod damage;
pub mod ending;
pub mod left_behind;
pub mod opened_files;
pub mod oracle;
pub mod registers;
pub mod touched;

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::interrupt::{Interrupt, LOOK_EVERY};
use crate::recovery::ending::Ended;
use crate::recovery::oracle::Oracle;
use crate::recovery::touched::TouchedPages;
use crate::{CrashTestError, Result};

/// At most this much of a recovery's output is kept, from its end.
const OUTPUT: u64 = 2000;

#[derive(Clone, Debug)]
pub struct Recovery {
    /// The command's words, with `{pool}`, `{pool2}` .., `{pools}` and `{acks}` for the files.
    pub words: Vec<String>,
    pub ok: Vec<i32>,
    pub time: Duration,
    /// The limit of the address space, in bytes.
    pub memory: u64,
    pub oracle: Option<Oracle>,
    /// Ends a recovery that runs.
    pub interrupt: Interrupt,
}

/// The reason for a recovery's failure: how it ended, and the last line that it printed without its numbers, because
/// the same fault at another cut or of another key prints other numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    ended: Ended,
    line: String,
}

impl Reason {
    pub fn from_ending(ended: Ended, said: &str) -> Reason {
        let line = match ended {
            Ended::Status(_) => said.lines().next_back().unwrap_or_default(),
            // If a signal or the time-out ends it, the last line is whatever came before, and may be half of one.
            Ended::Signal(_) | Ended::TimedOut => "",
            // The rest of the line is about the operation that was cut.
            Ended::NoPrefix => said.split(':').next().unwrap_or_default(),
        };
        Reason {
            ended,
            line: without_numbers(line),
        }
    }
}

/// Replaces each word with a digit in it by `#`.
pub fn without_numbers(line: &str) -> String {
    let word = |part: &str| match part.contains(|c: char| c.is_ascii_digit()) {
        true => "#".to_owned(),
        false => part.to_owned(),
    };
    line.split_inclusive(|c: char| !c.is_alphanumeric())
        .map(
            |part| match part.strip_suffix(|c: char| !c.is_alphanumeric()) {
                Some(bare) => word(bare) + &part[bare.len()..],
                None => word(part),
            },
        )
        .collect()
}

#[derive(Clone, Copy, Debug)]
pub struct RecoveryFiles<'a> {
    pub pools: &'a [PathBuf],
    pub folder: &'a Path,
    pub acks: &'a Path,
}

impl RecoveryFiles<'_> {
    /// The file that a name in braces stands for.
    fn named(&self, name: &str) -> Option<&Path> {
        match name {
            "pool" => self.pools.first().map(PathBuf::as_path),
            "pools" => Some(self.folder),
            "acks" => Some(self.acks),
            _ => {
                let number: usize = name.strip_prefix("pool")?.parse().ok()?;
                self.pools.get(number.checked_sub(1)?).map(PathBuf::as_path)
            }
        }
    }

    fn replaced(&self, word: &str) -> OsString {
        let mut done = OsString::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('{') {
            done.push(before);
            let named =
                (after.split_once('}')).and_then(|(name, after)| Some((self.named(name)?, after)));
            rest = match named {
                Some((path, after)) => {
                    done.push(path);
                    after
                }
                None => {
                    done.push("{");
                    after
                }
            };
        }
        done.push(rest);
        done
    }
}

/// The first placeholder in some words for a pool that does not exist.
pub fn unknown_pool(words: &[String], pools: usize) -> Option<String> {
    let names = words.iter().flat_map(|word| word.split('{').skip(1));
    let mut names = names
        .filter_map(|part| part.split_once('}'))
        .map(|(name, _)| name);
    let none = |name: &&str| {
        let number = name
            .strip_prefix("pool")
            .and_then(|number| number.parse().ok());
        number.is_some_and(|number: usize| number == 0 || number > pools)
    };
    names.find(none).map(|name| format!("{{{name}}}"))
}

impl Recovery {
    pub fn wants_acks(&self) -> bool {
        self.oracle.as_ref().is_some_and(Oracle::wants_acks) || self.names_acks()
    }

    pub fn names_acks(&self) -> bool {
        self.words.iter().any(|word| word.contains("{acks}"))
    }

    pub fn fails(&self, ended: Ended) -> bool {
        !matches!(ended, Ended::Status(status) if self.ok.contains(&status))
    }

    pub fn command(&self, files: RecoveryFiles<'_>) -> Vec<OsString> {
        let words = self.words.iter();
        words.map(|word| files.replaced(word)).collect()
    }

    /// Runs the recovery on some files within some time; its output and errors go to the file `output`.
    pub fn run(&self, given: RecoveryFiles<'_>, output: &Path, time: Duration) -> Result<Ended> {
        match self.oracle {
            Some(_) => self.run_apart(given, output, time),
            None => self.run_to(given, (output, None), time),
        }
    }

    /// Runs the recovery as [`Recovery::run`] does, and returns also the pages that it touched in the pools that are
    /// followed, or all pages if that cannot be seen.
    pub fn run_seen(
        &self,
        given: RecoveryFiles<'_>,
        output: &Path,
        time: Duration,
        followed: &[Option<Metadata>],
    ) -> Result<(Ended, TouchedPages)> {
        if followed.iter().any(Option::is_some) {
            let words = self.command(given);
            let errors = self
                .oracle
                .is_some()
                .then(|| output.with_extension("errors"));
            let (said, errors) = files(output, errors.as_deref())?;
            let environment: Vec<OsString> = left_behind::environment(given.folder).collect();
            let command = (&words[..], &environment[..]);
            let limits = (time, self.memory, &self.interrupt);
            if let Ok(told) = touched::run(command, (&said, &errors), followed, limits) {
                return match self.interrupt.is_set() {
                    true => Err(CrashTestError::Late),
                    false => Ok(told),
                };
            }
        }
        let ended = self.run(given, output, time)?;
        Ok((ended, TouchedPages::WHOLE))
    }

    /// Runs the recovery as [`Recovery::run`] does, with its errors in another file beside `output`.
    pub fn run_apart(
        &self,
        given: RecoveryFiles<'_>,
        output: &Path,
        time: Duration,
    ) -> Result<Ended> {
        let errors = output.with_extension("errors");
        self.run_to(given, (output, Some(&errors)), time)
    }

    /// In turn: the command starts in a group of its own; its memory is limited; it ends, or its time does, or the user
    /// wants an end; and then all of the group is killed.
    fn run_to(
        &self,
        given: RecoveryFiles<'_>,
        (output, errors): (&Path, Option<&Path>),
        time: Duration,
    ) -> Result<Ended> {
        let failed = || CrashTestError::io(output.display());
        let (file, errors) = files(output, errors)?;
        let words = self.command(given);
        // The standard library starts the command by posix_spawn as long as nothing here needs a fork.
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .env(left_behind::MARK, given.folder)
            .spawn()
            .map_err(|e| {
                CrashTestError::new(format!(
                    "--recover: {} cannot be run: {e}; give a program with its path, or one in PATH",
                    words[0].display()
                ))
            })?;
        let id = child.id() as libc::pid_t;
        let limit = libc::rlimit {
            rlim_cur: self.memory,
            rlim_max: self.memory,
        };
        // SAFETY: the child has not been waited for, so the number is its own; the limit lives through the call.
        let in_time = unsafe {
            libc::prlimit(id, libc::RLIMIT_AS, &raw const limit, std::ptr::null_mut());
            let process = libc::syscall(libc::SYS_pidfd_open, id, 0) as i32;
            let mut waited = libc::pollfd {
                fd: process,
                events: libc::POLLIN,
                revents: 0,
            };
            let started = std::time::Instant::now();
            let mut ready = 0;
            while ready <= 0 && started.elapsed() < time && !self.interrupt.is_set() {
                // Another signal may come between.
                let left = time.saturating_sub(started.elapsed()).min(LOOK_EVERY);
                ready = libc::poll(&raw mut waited, 1, left.as_millis() as i32 + 1);
            }
            libc::close(process);
            // The recovery's descendants end with it. It is still a zombie, so the group is its own.
            libc::kill(-id, libc::SIGKILL);
            ready > 0
        };
        let status = child.wait().map_err(failed())?;
        if !in_time && self.interrupt.is_set() {
            return Err(CrashTestError::Late);
        }
        Ok(match (in_time, status.code(), status.signal()) {
            (false, ..) => Ended::TimedOut,
            (_, Some(status), _) => Ended::Status(status),
            (_, _, signal) => Ended::Signal(signal.unwrap_or_default()),
        })
    }
}

/// Opens the files for the output and for the errors, which are one file if no other is named.
fn files(output: &Path, errors: Option<&Path>) -> Result<(File, File)> {
    let failed = || CrashTestError::io(output.display());
    let file = File::create(output).map_err(failed())?;
    let errors = match errors {
        Some(path) => File::create(path).map_err(CrashTestError::io(path.display()))?,
        None => file.try_clone().map_err(failed())?,
    };
    Ok((file, errors))
}

pub fn said(output: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(output) {
        let length = file.metadata().map_or(0, |m| m.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT)));
        let _ = file.take(OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_end_and_the_last_line_without_its_numbers() {
        let of = |status, said| Reason::from_ending(Ended::Status(status), said);
        assert_eq!(of(1, "a\nkey 17 is gone"), of(1, "b\nkey 0x2f is gone"));
        assert_ne!(of(1, "key 17 is gone"), of(1, "key 17 is twice"));
        assert_ne!(of(1, "gone"), of(2, "gone"));
        let crash = |said| Reason::from_ending(Ended::Signal(11), said);
        assert_eq!(crash("key 17"), crash("other"));
        assert_eq!(
            without_numbers("at 0x7f3a: node 3, left"),
            "at #: node #, left"
        );
    }
}
