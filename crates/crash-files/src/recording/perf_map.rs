//! Functions of code that a program has made while it ran, as the program lists them for profilers: `/tmp/perf-PID.map`
//! (Linux's `tools/perf/Documentation/jit-interface.txt`). Only functions with a file and a line count, as those of V8.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::SystemTime;

use sardonyx_crash_test::recording::ScriptFrame;

/// The list may have this many bytes.
const LONGEST: u64 = 1 << 28;

/// Functions by their first addresses, with their lengths.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    functions: BTreeMap<u64, (u64, ScriptFrame)>,
}

impl PerfMap {
    /// The list of a process, unless it is older than the recording: then it is another process's of this number. Others
    /// may write to the folder as well: a list that is not this user's, a link or a pipe says nothing.
    pub(super) fn read(process: i32, began: SystemTime) -> PerfMap {
        let path = format!("/tmp/perf-{process}.map");
        let text = PerfMap::text(&path, began).unwrap_or_default();
        PerfMap::parse(&String::from_utf8_lossy(&text))
    }

    fn text(path: &str, began: SystemTime) -> Option<Vec<u8>> {
        let user = fs::metadata("/proc/self").ok()?.uid(); // the process itself has ended
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).custom_flags(flags).open(path);
        let file = file.ok()?;
        let known = file.metadata().ok()?;
        let is_its = known.is_file() && known.uid() == user && known.modified().ok()? >= began;
        let mut text = Vec::new();
        if is_its && known.len() <= LONGEST {
            file.take(LONGEST).read_to_end(&mut text).ok()?;
        }
        Some(text)
    }

    /// Each line has an address, a length, and a name. Later code may lie where earlier code was.
    fn parse(text: &str) -> PerfMap {
        let one = |line: &str| {
            let (start, rest) = line.split_once(' ')?;
            let (length, name) = rest.split_once(' ')?;
            let hex = |text| u64::from_str_radix(text, 16).ok();
            Some((hex(start)?, (hex(length)?, function(name)?)))
        };
        let functions = text.lines().filter_map(one).collect();
        PerfMap { functions }
    }

    pub(super) fn at(&self, address: u64) -> Option<&ScriptFrame> {
        let (start, (length, frame)) = self.functions.range(..=address).next_back()?;
        (address - start < *length).then_some(frame)
    }
}

/// `KIND:~NAME PATH:LINE:COLUMN`, where a sign stands for how well the code is optimised.
fn function(name: &str) -> Option<ScriptFrame> {
    let (_, rest) = name.split_once(':')?;
    let (function, place) = rest
        .trim_start_matches(['~', '^', '*', '+'])
        .split_once(' ')?;
    let (place, column) = place.rsplit_once(':')?;
    let (file, line) = place.rsplit_once(':')?;
    column.parse::<u32>().ok()?;
    let file = file.strip_prefix("file://").unwrap_or(file);
    Some(ScriptFrame {
        line: line.parse().ok(),
        function: (!function.is_empty()).then(|| function.to_owned()),
        library: !file.starts_with('/') || file.contains("/node_modules/"),
        file: file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_a_link_and_an_old_list_say_nothing_and_block_nobody() {
        let folder = std::env::temp_dir().join(format!("perf-map-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (list, link, pipe) = (
            folder.join("list"),
            folder.join("link"),
            folder.join("pipe"),
        );
        let began = SystemTime::now() - std::time::Duration::from_secs(60);
        fs::write(&list, "1000 10 JS:~put /app/a.js:2:13\n").unwrap();
        std::os::unix::fs::symlink(&list, &link).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap();
        assert!(made.success());
        let text = |path: &std::path::Path, began| {
            PerfMap::text(path.to_str().unwrap(), began)
                .unwrap_or_default()
                .len()
        };
        assert_eq!(text(&list, began), 31);
        assert_eq!([&link, &pipe].map(|path| text(path, began)), [0, 0]);
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(text(&list, later), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_function_is_found_by_an_address_in_it() {
        let map = PerfMap::parse(
            "1000 10 JS:~put /app/a b.js:2:13\n1010 8 JS:^ file:///app/m.mjs:1:1\nx\n\
             2000 10 LazyCompile:*write node:fs:9:2\n3000 10 Builtin:Abort\n",
        );
        let at = |address| {
            let frame = map.at(address)?;
            Some((frame.file.as_str(), frame.line?, frame.library))
        };
        assert_eq!(at(0x1000), Some(("/app/a b.js", 2, false)));
        assert_eq!(at(0x100f), Some(("/app/a b.js", 2, false)));
        assert_eq!(at(0x1010), Some(("/app/m.mjs", 1, false)));
        assert_eq!(at(0x2001), Some(("node:fs", 9, true)));
        assert_eq!([0xfff, 0x1018, 0x3000].map(at), [None; 3]);
        assert_eq!(map.at(0x1000).unwrap().function.as_deref(), Some("put"));
        assert_eq!(map.at(0x1010).unwrap().function, None);
    }
}
