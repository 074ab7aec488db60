//! Ends processes that recoveries leave behind because they have left their group (`setsid`, daemons). All that a
//! recovery starts has a mark in its environment; a process that clears its environment as well stays.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The variable that marks the processes of a recovery with the folder that it was given.
pub const MARK: &str = "SARDONYX_RECOVERY";
/// At most this many looks follow each other, each of which may find what a process has started since the last.
const LOOKS: usize = 100;
/// The pause between two looks, in which killed processes end.
const DYING: Duration = Duration::from_millis(1);

pub fn environment(folder: &Path) -> impl Iterator<Item = OsString> {
    let joined = |name: &std::ffi::OsStr, value: &std::ffi::OsStr| {
        let mut pair = name.to_owned();
        pair.push("=");
        pair.push(value);
        pair
    };
    let ours = joined(MARK.as_ref(), folder.as_os_str());
    let others = std::env::vars_os().filter(|(name, _)| name != MARK);
    others
        .map(move |(name, value)| joined(&name, &value))
        .chain([ours])
}

/// Ends what recoveries of a folder left, none of which runs.
pub fn end(folder: &Path) {
    let mut looks_without_any = 0;
    for _ in 0..LOOKS {
        let left = marked(folder);
        if left.is_empty() {
            // A process that becomes another program has no environment for a moment.
            looks_without_any += 1;
            if looks_without_any == 2 {
                return;
            }
            continue;
        }
        looks_without_any = 0;
        for process in left {
            // SAFETY: a system call without memory; no recovery of the folder runs, so the process is one that was
            // left.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
        std::thread::sleep(DYING);
    }
}

fn marked(folder: &Path) -> Vec<libc::pid_t> {
    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_mark = |process: &libc::pid_t| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|pair| pair == mark)
    };
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(has_mark)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_has_left_its_group_is_ended_and_that_of_another_folder_is_not() {
        let started = |folder: &str| {
            let shell = "setsid sleep 600 > /dev/null 2>&1 & echo $!";
            let output = Command::new("sh")
                .args(["-c", shell])
                .env(MARK, folder)
                .output();
            let said = String::from_utf8(output.unwrap().stdout).unwrap();
            let process = said.trim().parse::<libc::pid_t>().unwrap();
            let runs = || std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap();
            while runs() != "sleep\n" {
                std::thread::yield_now();
            }
            process
        };
        let ours = format!("left-behind-{}", std::process::id());
        let theirs = format!("{ours}-other");
        let other = Path::new(&theirs);
        let (one, two) = (started(&ours), started(&theirs));
        end(Path::new(&ours));
        assert!(!marked(Path::new(&ours)).contains(&one));
        assert_eq!(marked(other), [two], "it still runs");
        end(other);
        assert!(marked(other).is_empty());
    }
}
