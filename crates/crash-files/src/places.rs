//! Places that asked for operations, and which of them are one place.

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_crash_test::recording::Module;
use sardonyx_crash_test::recording::source::{Frame, Sources, caller};
use sardonyx_crash_test::recovery::without_numbers;

use crate::operations::{Act, Inode, Operation};
use crate::recording::{RecordedRun, runs_scripts, without_version};

/// More files than this that differ in numbers only are a series.
const SERIES: usize = 4;
/// The place of the file in a [`CallSite::key`].
const FILE: usize = 1;
/// A name of at least this many hexadecimal digits is a hash: *assumed*, 64 bits.
const HASH: usize = 16;
/// At most this many functions tell two operations of one line apart: the innermost ones.
const FUNCTIONS: usize = 4;
/// The line of code, or the command, that asked for an operation.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// `FILE:LINE`, or the command.
    pub text: String,
    pub frame: Option<Frame>,
    pub stack: Vec<Frame>,
    /// What else tells this operation from others: the call, the file, and the user's functions that led to it.
    pub key: Vec<String>,
}

pub(crate) fn places(recording: &RecordedRun) -> Vec<CallSite> {
    let mut sources = Sources::new(&recording.places);
    let place = |(one, file): (&Operation, String)| {
        let mut place = place(recording, &mut sources, one.site, one.command);
        let call = one.shown.split('(').next().unwrap_or_default();
        let own = place.stack.iter().filter(|frame| frame.own());
        let mut functions: Vec<String> = own.filter_map(|frame| frame.function.clone()).collect();
        functions.dedup();
        functions.truncate(FUNCTIONS);
        let position = std::mem::take(&mut place.key);
        place.key = vec![call.to_owned(), file];
        place.key.extend(functions.into_iter().chain(position));
        place
    };
    let mut places: Vec<CallSite> = {
        let operations = recording.operations.iter();
        operations.zip(files(recording)).map(place).collect()
    };
    join_series(&mut places);
    places
}

/// A path without what its file's contents have made of it, as of git's objects: such a name is new in each run.
fn without_hashes(path: &str) -> String {
    let hexadecimal = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = path.split('/').collect();
    let hash =
        |part: Option<&&str>| part.is_some_and(|part| part.len() >= HASH && hexadecimal(part));
    let one = |(at, part): (usize, &&str)| {
        let above = part.len() == 2 && hexadecimal(part) && hash(parts.get(at + 1));
        match above || hash(Some(part)) {
            true => "#".to_owned(),
            false => (*part).to_owned(),
        }
    };
    let told: Vec<String> = parts.iter().enumerate().map(one).collect();
    told.join("/")
}

/// Gives files one name whose names differ in their numbers only, if one place of the program treats many of them: a
/// loop has made them, and one fault is in all. Few are told apart, because an interpreter's one line does all that its
/// script does.
fn join_series(places: &mut [CallSite]) {
    let pattern = |place: &CallSite| {
        let mut key = place.key.clone();
        key[FILE] = without_numbers(&key[FILE]);
        (place.text.clone(), key)
    };
    let mut files: FxHashMap<_, FxHashSet<String>> = FxHashMap::default();
    for place in places.iter() {
        let names = files.entry(pattern(place)).or_default();
        names.insert(place.key[FILE].clone());
    }
    for place in places {
        let (text, key) = pattern(place);
        if files[&(text, key.clone())].len() > SERIES {
            place.key = key;
        }
    }
}

/// The file that each operation is done to, by the last path that its inode was given: a file that is written under a
/// temporary name is known by its final one, also where the temporary one goes.
fn files(recording: &RecordedRun) -> Vec<String> {
    let inodes = 0..recording.start.nodes.len() as Inode;
    let known = |inode| Some((inode, recording.start.path(inode)?));
    let mut last: FxHashMap<Inode, String> = inodes.filter_map(known).collect();
    let mut at: FxHashMap<String, Inode> =
        last.iter().map(|(i, path)| (path.clone(), *i)).collect();
    let mut inodes = Vec::with_capacity(recording.operations.len());
    for one in &recording.operations {
        inodes.push(match one.act {
            Act::Unlink { .. } => at.remove(&one.path),
            _ => one.act.inode(),
        });
        if let Act::Create { inode, .. } | Act::Link { inode, .. } | Act::Rename { inode, .. } =
            one.act
        {
            last.insert(inode, one.path.clone());
            at.insert(one.path.clone(), inode);
        }
    }
    let file = |(one, inode): (&Operation, Option<Inode>)| {
        let last = inode.and_then(|inode| last.get(&inode));
        without_hashes(last.unwrap_or(&one.path))
    };
    recording.operations.iter().zip(inodes).map(file).collect()
}

/// A line of source if the program has lines; or else its command and the position in its code, with the line of the
/// script or program that ran it.
pub(crate) fn place(
    recording: &RecordedRun,
    sources: &mut Sources<'_>,
    site: u32,
    command: u32,
) -> CallSite {
    let outer = sources.stack(outer(recording, site, command));
    let mut stack = sources.stack(site);
    stack.truncate(stack.len() - outer.len());
    let mut modules = recording.places.modules.iter();
    let own = modules.find(|m| m.of_program == command);
    let program = own.and_then(|m| m.path.file_name()).unwrap_or_default();
    let program = program.to_string_lossy();
    if stack.iter().any(Frame::of_a_script) || runs_scripts(&program) {
        stack.retain(|frame| !of_runtime(frame, &program));
    }
    let frame = caller(&stack).cloned();
    stack.extend_from_slice(&outer);
    if let Some(frame) = frame {
        return CallSite {
            text: frame.place(),
            frame: Some(frame),
            stack,
            key: Vec::new(),
        };
    }
    let position = position(recording, site, command);
    let Some(frame) = caller(&outer).cloned() else {
        return CallSite {
            text: position,
            frame: None,
            stack,
            key: Vec::new(),
        };
    };
    CallSite {
        text: format!("'{}' of {}", label(recording, command), frame.place()),
        frame: Some(frame),
        stack,
        key: vec![position],
    }
}

/// Whether a frame is of what runs a script, which its user did not write: the program itself, its library, or a module
/// that comes with it, as of a Python whose frames are not read.
fn of_runtime(frame: &Frame, program: &str) -> bool {
    let library = format!("lib{}", without_version(program));
    let file = frame.file.as_deref().unwrap_or_default();
    !frame.of_a_script()
        && (frame.module == program
            || frame.module.starts_with(&library)
            || file.contains("/Modules/_") && program.contains("python"))
}

/// The innermost site of another command, which ran this one.
fn outer(recording: &RecordedRun, site: u32, command: u32) -> u32 {
    let mut next = site;
    while let Some(at) = recording.places.sites.get(next as usize)
        && at.program == command
    {
        next = at.parent.wrapping_sub(1);
    }
    next
}

fn label(recording: &RecordedRun, command: u32) -> &str {
    let label = recording.labels.get(command as usize);
    label.map_or("?", String::as_str)
}

/// A command without its arguments, and where the innermost call in its own code is: a program without lines has one
/// place for each, whatever it is asked to do. What runs a script has none, because its code is the same for all scripts.
fn position(recording: &RecordedRun, site: u32, command: u32) -> String {
    let label = label(recording, command);
    let places = &recording.places;
    let program = label.split(' ').next();
    let inside = |pc: u64| {
        let mut all = places.modules.iter();
        let here = |m: &&Module| {
            let name = m.path.file_name().and_then(|name| name.to_str());
            m.of_program == command && name == program && (m.start..m.end).contains(&pc)
        };
        all.find(here).map(|m| pc - m.start + m.offset)
    };
    let mut next = site;
    while let Some(at) = places.sites.get(next as usize) {
        if at.program == command
            && let Some(offset) = inside(at.pc)
        {
            return format!("'{label}'+{offset:#x}");
        }
        next = at.parent.wrapping_sub(1);
    }
    format!("'{label}'")
}

/// A number for each place.
pub(crate) fn keys(places: &[CallSite]) -> Vec<u32> {
    let mut known = FxHashMap::default();
    let mut numbers = Vec::with_capacity(places.len());
    for place in places {
        let new = known.len() as u32;
        numbers.push(*known.entry((&place.text, &place.key)).or_insert(new));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_its_contents_make_is_no_other_in_each_run() {
        let object = ".git/objects/e6/9de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        assert_eq!(without_hashes(object), ".git/objects/#/#");
        assert_eq!(without_hashes("ab/log.12"), "ab/log.12");
        assert_eq!(without_hashes("cafe/deadbeef"), "cafe/deadbeef");
    }

    #[test]
    fn what_runs_a_script_is_not_its_users_own() {
        let frame = |module: &str, file: &str| Frame {
            file: Some(file.to_owned()),
            line: Some(1),
            function: None,
            module: module.to_owned(),
            inlined: false,
            apart: false,
        };
        let runtime = |module, file| of_runtime(&frame(module, file), "python3.10");
        assert!(runtime("python3.10", "/src/Python/ceval.c"));
        assert!(runtime("libpython3.10.so.1.0", "/src/Python/ceval.c"));
        assert!(runtime("_io.so", "/src/Modules/_io/fileio.c"));
        assert!(!runtime("own.cpython-310.so", "/app/own.c"));
        assert!(!runtime("", "/app/own.py"));
    }

    #[test]
    fn few_numbered_files_are_told_apart_and_many_are_a_series() {
        let joined = |count: usize| {
            let place = |number: usize| CallSite {
                text: "'script'".to_owned(),
                frame: None,
                stack: Vec::new(),
                key: vec!["write".to_owned(), format!("log.{number}")],
            };
            let mut places: Vec<CallSite> = (0..count).map(place).collect();
            join_series(&mut places);
            keys(&places).into_iter().max().unwrap() as usize + 1
        };
        assert_eq!(
            [1, 2, SERIES, SERIES + 1, 100].map(joined),
            [1, 2, SERIES, 1, 1]
        );
    }
}
