//! An end in time: a signal that would end the program ends it, whatever it does.
//!
//! Python's own handlers run between steps of Python. A call into native code, or one that waits for a file, may
//! never come back to it. So Python's runtime also writes the signal's number to a pipe, which a thread of ours reads:
//! it gives Python some time to clean up and then ends the process.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::bad;

/// The time Python has to end by itself, without the time in which one of our threads waits for a processor.
const GRACE: Duration = Duration::from_millis(1500);
/// How often that is looked at, and the most that it is waited for.
const LOOK: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(60);
/// The time that our last words have.
const SAID: Duration = Duration::from_millis(50);
/// Whether the program ends in its own time.
static PATIENT: AtomicBool = AtomicBool::new(false);

/// Starts to watch for the signals that end us, and returns the descriptor for `signal.set_wakeup_fd`.
///
/// # Errors
/// There is no room for a pipe or a thread.
#[pyfunction]
pub fn end_in_time() -> PyResult<i32> {
    let (mut signals, wakeup) = std::io::pipe().map_err(bad)?;
    // SAFETY: the descriptor is the pipe's, which is open, and the call changes its flags only.
    let flags = unsafe { libc::fcntl(wakeup.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if flags < 0 {
        return Err(bad(std::io::Error::last_os_error()));
    }
    let watch = move || {
        let mut signal = [0];
        while signals.read_exact(&mut signal).is_ok() {
            let number = i32::from(signal[0]);
            let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&number);
            if !ends || PATIENT.load(Ordering::Relaxed) {
                continue;
            }
            give_time();
            // Nobody may read what we say.
            std::thread::spawn(move || writeln!(std::io::stderr(), "{}", last_words(number)));
            std::thread::sleep(SAID);
            // SAFETY: ends the process without what runs at its exit, which may wait for the thread that does not end.
            unsafe { libc::_exit(128 + number) };
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .map_err(bad)?;
    Ok(wakeup.into_raw_fd())
}

fn give_time() {
    let (began, waited) = (Instant::now(), waited());
    loop {
        std::thread::sleep(LOOK);
        let (all, busy) = (began.elapsed(), self::waited().saturating_sub(waited));
        if all.saturating_sub(busy) >= GRACE || all >= MOST {
            return;
        }
    }
}

/// The most that one of our threads has waited for a processor; 0 where the kernel does not say.
fn waited() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let waited = threads.flatten().filter_map(|thread| {
        let told = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        told.split(' ').nth(1)?.parse().ok()
    });
    Duration::from_nanos(waited.max().unwrap_or(0))
}

/// Outputs get their names once they are whole, so nothing half-written has one.
fn last_words(signal: i32) -> String {
    let name = match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        _ => "SIGHUP",
    };
    format!("error: ended by {name} while it worked; no output was left half-written")
}

/// Says that the program ends in its own time after a signal (`true`), or no longer.
#[pyfunction]
pub fn end_patiently(patient: bool) {
    PATIENT.store(patient, Ordering::Relaxed);
}
