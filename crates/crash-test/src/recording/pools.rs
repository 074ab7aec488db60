//! The mapped files of a recording that are cut together: each with its contents before, its addresses, and its name.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use sardonyx_base::regular;
use sardonyx_trace::line::Line;
use serde::Deserialize;

use crate::interrupt::Interrupt;
use crate::recording::versions::{LINE, PersistenceUnit};
use crate::{CrashTestError, Result};

const PART: usize = 1 << 20;
/// The recorder numbers the lines of mapped files from this one on, and sets this many apart for each.
pub(crate) const FILES: u64 = 1 << 57;
pub(crate) const FILE_LINES: u64 = 1 << 38;
/// A file may have this many bytes, because a line's number in its file has 32 bits here.
pub(crate) const MOST_BYTES: u64 = (LINE as u64) << 32;
/// No processor has more addresses.
const ADDRESSES: u64 = 1 << 57;
/// The digits of a hash, and those of them in the name of a kept file.
const HASH: usize = 64;
const HASH_SHOWN: usize = 16;

#[derive(Clone, Debug)]
pub enum Ground {
    Zeros,
    File(PathBuf),
}

#[derive(Debug)]
pub struct Pool {
    pub path: PathBuf,
    pub bytes: u64,
    pub ground: Ground,
    /// The address of the first byte in the program's memory, and the number of bytes mapped from there.
    pub mapped: Vec<(u64, u64)>,
    pub elsewhere: bool,
    /// The hash of the contents when the program had ended, and their length.
    after: Option<Kept>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Kept {
    bytes: u64,
    hash: String,
    #[serde(default)]
    zeros: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) path: PathBuf,
    first_line: u64,
    bytes: u64,
    ground: Option<Kept>,
    after: Option<Kept>,
    /// The line, the address and the bytes of each part that was mapped.
    #[serde(default)]
    mapped: Vec<(u64, u64, u64)>,
}

impl FileEntry {
    /// Whether the file has a path under which it can be found after a crash.
    pub(crate) fn lasts(&self) -> bool {
        let path = self.path.to_string_lossy();
        let nameless = ["/memfd:", "/SYSV", "/dev/zero"];
        !nameless.iter().any(|start| path.starts_with(start)) && !path.ends_with(" (deleted)")
    }

    pub(crate) fn number(&self) -> Option<u64> {
        number(self.first_line)
    }

    /// What is wrong with the numbers of an entry that no recorder has written.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let kept = || [&self.ground, &self.after].into_iter().flatten();
        let lengths = kept().map(|kept| kept.bytes).chain([self.bytes]);
        if lengths.into_iter().any(|bytes| bytes > MOST_BYTES) {
            return Err("has more than 256 GiB");
        }
        let digits = |hash: &str| {
            let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            hash.len() == HASH && hash.bytes().all(digit)
        };
        if !kept().all(|kept| digits(&kept.hash)) {
            return Err("has a hash that is none");
        }
        let Some(number) = self.number().filter(|_| within_all(self.first_line) == 0) else {
            return Err("begins at a line that is no file's first");
        };
        let inside = |&(line, address, bytes): &(u64, u64, u64)| {
            self::number(line) == Some(number)
                && is_within(line)
                && address < ADDRESSES
                && bytes < ADDRESSES
        };
        match self.mapped.iter().all(inside) {
            true => Ok(()),
            false => Err("was mapped beyond its lines or beyond all addresses"),
        }
    }
}

/// The number of the file that a line belongs to, if there is one.
pub(crate) fn number(line: u64) -> Option<u64> {
    line.checked_sub(FILES).map(|line| line / FILE_LINES)
}

/// The number of a line in its file; a file has fewer than [`MOST_BYTES`], which [`is_within`] asks of each line.
pub(crate) fn within(line: u64) -> u32 {
    within_all(line) as u32
}

pub(crate) fn is_within(line: u64) -> bool {
    within_all(line) < MOST_BYTES / LINE as u64
}

fn within_all(line: u64) -> u64 {
    line.saturating_sub(FILES) % FILE_LINES
}

/// Whether it is a path as recorders write them: from the root, without `..`, with a name at its end. Copies of the
/// files lie at these paths below a folder, and must not lie elsewhere.
pub(crate) fn is_plain(path: &Path) -> bool {
    let names = |part: Component<'_>| matches!(part, Component::Normal(_));
    let below = path.strip_prefix("/").ok();
    below.is_some_and(|below| below.components().all(names)) && path.file_name().is_some()
}

impl Pool {
    #[cfg(test)]
    pub(crate) fn zeros(path: &str, bytes: u64) -> Pool {
        Pool {
            path: PathBuf::from(path),
            bytes,
            ground: Ground::Zeros,
            mapped: Vec::new(),
            elsewhere: false,
            after: None,
        }
    }

    /// The file of an entry of the recording at `trace`; `again` says how to record it.
    pub(crate) fn from_entry(
        file: &FileEntry,
        trace: &Path,
        again: &str,
        interrupt: &Interrupt,
    ) -> Result<Pool> {
        if !is_plain(&file.path) {
            return Err(CrashTestError::new(format!(
                "{}: the path of its file {} is none that a recorder writes: it is not from the root, or has `..` in it; record \
                 it again: {again}",
                trace.display(),
                file.path.display()
            )));
        }
        let (kept, bytes) = match &file.ground {
            None => {
                return Err(CrashTestError::new(format!(
                    "{}: does not say what {} held before; it is of an older Sardonyx, or the program could only read the \
                     file: record it again: {again}",
                    trace.display(),
                    file.path.display()
                )));
            }
            Some(kept) if kept.zeros => (Ground::Zeros, kept.bytes),
            Some(kept) => (Ground::File(ground(trace, kept, interrupt)?), kept.bytes),
        };
        let after = file.after.as_ref().map_or(0, |after| after.bytes);
        Ok(Pool {
            path: file.path.clone(),
            bytes: bytes.max(file.bytes).max(after),
            ground: kept,
            mapped: bases(file),
            elsewhere: false,
            after: file.after.clone(),
        })
    }

    /// Opens the file's contents from before; `None` if they are zeros.
    pub fn ground_file(&self) -> Result<Option<File>> {
        match &self.ground {
            Ground::Zeros => Ok(None),
            Ground::File(path) => regular::open(path)
                .map(Some)
                .map_err(CrashTestError::io(path.display())),
        }
    }

    pub(crate) fn lines(&self) -> Result<impl Fn(u32) -> Line + use<>> {
        let ground = match self.ground_file()? {
            // SAFETY: the file lies with the recording or is our own; shortening it meanwhile ends us, as with any map.
            Some(file) => Some(
                unsafe { memmap2::Mmap::map(&file) }.map_err(CrashTestError::io("the ground"))?,
            ),
            None => None,
        };
        Ok(move |line: u32| -> Line {
            let at = line as usize * LINE;
            let mut bytes = [0; LINE];
            if let Some(ground) = &ground {
                let from = &ground[at.min(ground.len())..(at + LINE).min(ground.len())];
                bytes[..from.len()].copy_from_slice(from);
            }
            bytes
        })
    }

    /// Compares the contents at the end with the result of these stores, and warns if they differ.
    pub(crate) fn compare<'a>(
        &mut self,
        slots: impl Iterator<Item = &'a PersistenceUnit>,
        interrupt: &Interrupt,
    ) -> Result<Option<String>> {
        let Some(after) = &self.after else {
            return Ok(None);
        };
        let mut slots: Vec<&PersistenceUnit> = slots.collect();
        self.elsewhere = self.last_hash(&mut slots, interrupt)? != after.hash;
        Ok((self.elsewhere && !slots.is_empty()).then(|| {
            format!(
                "{} ended with other contents than the recording's stores make: the program, or another one, also \
                 wrote to it in a way that was not recorded (through a descriptor, or from a child that was left out)",
                self.path.display()
            )
        }))
    }

    fn last_hash(&self, slots: &mut [&PersistenceUnit], interrupt: &Interrupt) -> Result<String> {
        let mut ground = self.ground_file()?;
        slots.sort_unstable_by_key(|slot| slot.line);
        let mut slots = slots.iter().peekable();
        let mut hasher = blake3::Hasher::new();
        let mut part = vec![0; PART];
        for begin in (0..self.bytes as usize).step_by(PART) {
            interrupt.check()?;
            let part = &mut part[..PART.min(self.bytes as usize - begin)];
            part.fill(0);
            if let Some(file) = &mut ground {
                let mut at = 0;
                while let read = file
                    .read(&mut part[at..])
                    .map_err(CrashTestError::io("the ground"))?
                    && read > 0
                {
                    at += read;
                }
            }
            while let Some(slot) =
                slots.next_if(|slot| slot.line as usize * LINE < begin + part.len())
            {
                // A unit never lies in two parts.
                for (line, data) in slot.versions.at_end() {
                    let at = line as usize * LINE - begin;
                    let end = (at + LINE).min(part.len());
                    part[at..end].copy_from_slice(&data[..end - at]);
                }
            }
            hasher.update(part);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// The hash of what a file holds.
///
/// # Errors
/// The user wants an end; or, within, it cannot be read.
pub(crate) fn hash(
    file: &mut File,
    interrupt: &Interrupt,
) -> Result<std::io::Result<blake3::Hash>> {
    let (mut hasher, mut part) = (blake3::Hasher::new(), vec![0; PART]);
    loop {
        interrupt.check()?;
        match file.read(&mut part) {
            Ok(0) => return Ok(Ok(hasher.finalize())),
            Ok(read) => hasher.update(&part[..read]),
            Err(e) => return Ok(Err(e)),
        };
    }
}

/// The address of a file's first byte in memory, and the number of bytes mapped from there.
fn bases(file: &FileEntry) -> Vec<(u64, u64)> {
    let mut bases: Vec<(u64, u64)> = Vec::new();
    for &(line, address, bytes) in &file.mapped {
        let offset = line.wrapping_sub(file.first_line).wrapping_mul(LINE as u64);
        let base = address.wrapping_sub(offset);
        match bases.iter_mut().find(|(known, _)| *known == base) {
            Some((_, far)) => *far = (*far).max(offset + bytes),
            None => bases.push((base, offset + bytes)),
        }
    }
    bases
}

/// The files that `names` mean: all writable files of a folder, or else the one file of that path or name.
pub(crate) fn chosen<'a>(
    files: &'a [FileEntry],
    names: &[PathBuf],
) -> Result<Vec<&'a FileEntry>, String> {
    let mut all: Vec<&FileEntry> = Vec::new();
    for name in names {
        let found = match name.is_dir() {
            true => inside(files, name)?,
            false => vec![find(files, name)?],
        };
        for file in found {
            if all.iter().any(|known| known.path == file.path) {
                return Err(format!(
                    "--pool names {} twice; name each file once",
                    file.path.display()
                ));
            }
            if let Some(other) = (all.iter()).find(|other| overlap(&other.path, &file.path)) {
                return Err(format!(
                    "{} and {} cannot both be files, one lies below the other; record it again",
                    other.path.display(),
                    file.path.display()
                ));
            }
            all.push(file);
        }
    }
    match u16::try_from(all.len()) {
        Ok(_) => Ok(all),
        Err(_) => Err(format!("--pool names {} files; name fewer", all.len())),
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The files in a folder that the program could write, in the order of their paths.
fn inside<'a>(files: &'a [FileEntry], folder: &Path) -> Result<Vec<&'a FileEntry>, String> {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut found: Vec<_> = (files.iter())
        .filter(|file| file.ground.is_some() && file.path.starts_with(&full))
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    match found.is_empty() {
        false => Ok(found),
        true => Err(format!(
            "holds no file of the folder {} that was mapped to be written{}",
            folder.display(),
            listed(files)
        )),
    }
}

fn listed(files: &[FileEntry]) -> String {
    let known: Vec<_> = files.iter().map(|f| f.path.display().to_string()).collect();
    match known.is_empty() {
        true => String::new(),
        false => format!("; it holds {}: name one of these", known.join(", ")),
    }
}

fn find<'a>(files: &'a [FileEntry], pool: &Path) -> Result<&'a FileEntry, String> {
    let full = pool.canonicalize().unwrap_or_else(|_| pool.to_owned());
    let exactly = files
        .iter()
        .find(|file| file.path == full || file.path == pool);
    let named: Vec<_> = (files.iter())
        .filter(|file| file.path.file_name() == pool.file_name())
        .collect();
    if let Some(file) = exactly {
        return Ok(file);
    }
    if let [file] = named[..] {
        return Ok(file);
    }
    Err(match files.is_empty() {
        true => format!(
            "holds no mapped file, and so not {}: the program did not map one as shared; persistent memory is mapped \
             with MAP_SHARED",
            pool.display()
        ),
        false => format!("does not hold {}{}", pool.display(), listed(files)),
    })
}

/// The path of each file's copy in the folder of copies: its name, after those folders that tell it from the others.
pub fn places(pools: &[Pool]) -> Vec<PathBuf> {
    let parent = |pool: &Pool| pool.path.parent().unwrap_or(Path::new("")).to_owned();
    let mut common = pools.first().map(parent).unwrap_or_default();
    for pool in pools {
        while !pool.path.starts_with(&common) && common.pop() {}
    }
    let place = |pool: &Pool| {
        let below = pool.path.strip_prefix(&common).unwrap_or(&pool.path);
        match below.as_os_str().is_empty() {
            true => PathBuf::from("pool"),
            false => below.to_owned(),
        }
    };
    pools.iter().map(place).collect()
}

fn ground(trace: &Path, kept: &Kept, interrupt: &Interrupt) -> Result<PathBuf> {
    let path = beside(trace, &kept.hash);
    let lost = |what: String| {
        CrashTestError::new(format!(
            "{}: {what}; it holds the pool as it was before the recording, so copy it along with {}, or record again",
            path.display(),
            trace.display()
        ))
    };
    let mut file = regular::open(&path).map_err(|e| lost(format!("cannot be read: {e}")))?;
    let hash = hash(&mut file, interrupt)?.map_err(|e| lost(format!("cannot be read: {e}")))?;
    match hash.to_hex().as_str() == kept.hash {
        true => Ok(path),
        false => Err(lost("is not what was recorded".to_owned())),
    }
}

/// The path of the ground with this hash; `sardonyx_record::grounds` puts it there.
fn beside(trace: &Path, hash: &str) -> PathBuf {
    let mut name = trace.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}.pool", &hash[..HASH_SHOWN]));
    trace.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_recording_is_from_the_root_and_has_names_only() {
        for plain in ["/a", "/a/b c/d", "/memfd:x (deleted)"] {
            assert!(is_plain(Path::new(plain)), "{plain}");
        }
        for strange in ["", "/", "a", "a/b", "./a", "/a/../b", "/..", "../a"] {
            assert!(!is_plain(Path::new(strange)), "{strange}");
        }
    }

    #[test]
    fn copies_lie_below_what_their_files_have_in_common() {
        let at = |paths: &[&str]| -> Vec<String> {
            let pools: Vec<Pool> = paths.iter().map(|path| Pool::zeros(path, 1)).collect();
            let places = places(&pools).into_iter();
            places.map(|place| place.display().to_string()).collect()
        };
        assert_eq!(at(&["/mnt/a/x"]), ["x"]);
        assert_eq!(at(&["/mnt/a/x", "/mnt/a/y"]), ["x", "y"]);
        assert_eq!(at(&["/mnt/a/x", "/mnt/b/x"]), ["a/x", "b/x"]);
        assert_eq!(at(&["/mnt/a/x", "/mnt/x"]), ["a/x", "x"]);
        assert_eq!(at(&["pool"]), ["pool"]);
    }
}
