//! Functions of code that a program has made while it ran, as the program lists them for profilers: `/tmp/perf-PID.map`
//! (Linux's `tools/perf/Documentation/jit-interface.txt`). Only functions with a file and a line count, as those of V8.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use sardonyx_crash_test::recording::ScriptFrame;

/// The list may have this many bytes.
const LONGEST: u64 = 1 << 30;

/// Functions by their first addresses, with their lengths.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    functions: BTreeMap<u64, (u64, ScriptFrame)>,
}

impl PerfMap {
    /// The list of a process, unless it is older than the recording: then it is another process's of this number.
    pub(super) fn read(process: i32, began: SystemTime) -> PerfMap {
        let path = format!("/tmp/perf-{process}.map");
        let is_its = |m: &fs::Metadata| {
            m.is_file() && m.len() <= LONGEST && m.modified().is_ok_and(|changed| changed >= began)
        };
        let text = match fs::symlink_metadata(&path).is_ok_and(|m| is_its(&m)) {
            true => fs::read(&path).unwrap_or_default(),
            false => Vec::new(),
        };
        PerfMap::parse(&String::from_utf8_lossy(&text))
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
