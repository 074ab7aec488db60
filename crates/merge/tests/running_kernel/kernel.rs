//! The running kernel's KSM: its knobs, which are restored however it ends, and its thread, a pass at a time.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use sardonyx_merge::images::ImageError;

pub(super) const KSM: &str = "/sys/kernel/mm/ksm";
/// Knobs that are set here, or that setting another one changes, in the order in which they are restored.
const KNOBS: [&str; 7] = [
    "advisor_mode",
    "max_page_sharing",
    "use_zero_pages",
    "smart_scan",
    "stable_node_chains_prune_millisecs",
    "pages_to_scan",
    "sleep_millisecs",
];
/// A pass takes well below a second here; a thread that does not answer in this time is stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

pub(super) const LONG_MS: u64 = 10_000_000;

pub(super) type Result<T> = std::result::Result<T, ImageError>;

pub(super) fn error(problem: impl std::fmt::Display) -> ImageError {
    ImageError(problem.to_string())
}

pub(super) fn read(name: &str) -> Result<String> {
    let path = format!("{KSM}/{name}");
    let text = fs::read_to_string(&path).map_err(|problem| error(format!("{path}: {problem}")))?;
    Ok(text.trim().to_owned())
}

pub(super) fn number(name: &str) -> Result<i64> {
    let text = read(name)?;
    text.parse()
        .map_err(|_| error(format!("{KSM}/{name}: {text}: is not a number")))
}

pub(super) fn write(name: &str, value: impl std::fmt::Display) -> Result<()> {
    let path = format!("{KSM}/{name}");
    fs::write(&path, value.to_string()).map_err(|problem| {
        let remedy = match problem.kind() {
            io::ErrorKind::PermissionDenied => "; run as root",
            _ => "",
        };
        error(format!("{path}: {problem}{remedy}"))
    })
}

pub(super) struct Restore {
    knobs: Vec<(&'static str, String)>,
    run: String,
}

impl Restore {
    pub(super) fn new() -> Result<Restore> {
        let mut knobs = Vec::new();
        for name in KNOBS {
            if fs::exists(format!("{KSM}/{name}")).unwrap_or(false) {
                knobs.push((name, chosen(&read(name)?)));
            }
        }
        Ok(Restore {
            knobs,
            run: read("run")?,
        })
    }
}

/// The chosen word of a knob that shows all words, with this one in brackets.
fn chosen(text: &str) -> String {
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(text, |(word, _)| word).to_owned()
}

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = write("run", 2);
        for (name, value) in &self.knobs {
            let _ = write(name, value);
        }
        let _ = write("run", &self.run);
    }
}

/// An error unless KSM exists, may be driven, and is not in use.
pub(super) fn available() -> Result<()> {
    if !fs::exists(KSM).unwrap_or(false) {
        return Err(error(format!(
            "{KSM}: there is none: this kernel was built without CONFIG_KSM, or sysfs is not mounted; use another kernel"
        )));
    }
    let run = read("run")?;
    write("run", &run)?;
    let shared = number("pages_shared")? + number("pages_sharing")?;
    if run != "0" || shared > 0 {
        return Err(error(format!(
            "{KSM}: KSM is in use (run {run}, {shared} pages merged); stop its users, then `echo 2 > {KSM}/run; echo 0 > {KSM}/run`"
        )));
    }
    let processes = fs::read_dir("/proc").map_err(error)?;
    for process in processes.flatten() {
        let smaps = fs::read_to_string(process.path().join("smaps")).unwrap_or_default();
        let mergeable = |line: &str| {
            line.starts_with("VmFlags:") && line.split_whitespace().any(|flag| flag == "mg")
        };
        if smaps.lines().any(mergeable) {
            let pid = process.file_name();
            return Err(error(format!(
                "process {} has memory that KSM would merge meanwhile; end it (QEMU: mem-merge=off)",
                pid.display()
            )));
        }
    }
    Ok(())
}

/// Wakes the thread for pass `pass` and waits for its end.
pub(super) fn one_pass(pass: usize, sleep_ms: u64) -> Result<()> {
    let before = number("full_scans")?;
    if pass == 1 {
        write("run", 1)?;
    } else {
        // Writing another value ends the sleep.
        write("sleep_millisecs", sleep_ms + pass as u64 % 2)?;
    }
    let began = Instant::now();
    while number("full_scans")? == before {
        if began.elapsed() > PATIENCE {
            return Err(error(format!(
                "{KSM}: no pass in {} s; is the thread ksmd stopped?",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}

pub(super) fn thread_ns() -> Option<u64> {
    let processes = fs::read_dir("/proc").ok()?;
    let thread = processes.flatten().find(|process| {
        fs::read_to_string(process.path().join("comm")).is_ok_and(|comm| comm.trim() == "ksmd")
    })?;
    let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
    stat.split_whitespace().next()?.parse().ok()
}

/// Stops the kernel's thread and takes all merged pages apart.
pub(super) fn stop() -> Result<()> {
    write("run", 2)?;
    write("run", 0)
}
