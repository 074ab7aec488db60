//! What a recording says of one mapped file: every store, flush and fence, in order.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx::line::Line;
use sardonyx::trace::{Level, Op, Provenance, TraceReader};
use serde::Deserialize;

use crate::PersistError;
use crate::state::Platform;
use crate::versions::{Versions, words_of};

/// Bytes of a line.
pub const LINE: usize = 64;
/// No site is known.
pub const NOWHERE: u32 = u32::MAX;

/// What a record did to the file, or to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The line's bytes are this version from now on; the version that they were if the store changed nothing.
    Store {
        /// Which line, as an index of [`Recording::lines`].
        slot: u32,
        /// Which version, as an index of the line's; 0 is the ground.
        version: u32,
        /// It went past the caches, and waits for a fence only.
        past: bool,
    },
    /// A flush of a line that was stored to at some time.
    Flush {
        /// Which line.
        slot: u32,
        /// clflush, which waits for nothing.
        ordered: bool,
    },
    /// A flush of a line of the file that was never stored to.
    FlushClean,
    /// A flush, or a store past the caches, of a line that is not the file's.
    Foreign,
    /// A fence, or an instruction that is one.
    Fence,
}

/// One record of the recording.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Its row.
    pub row: u64,
    /// The thread.
    pub thread: u16,
    /// Where in the program, or [`NOWHERE`].
    pub site: u32,
    /// What it did.
    pub act: Act,
}

/// A unit of persistence that was stored to: a line of the file, or a sector or a page of a file on a disk.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The number of its first line in the file.
    pub line: u32,
    /// Its contents, the ground's first.
    pub versions: Versions,
}

/// A place in the program.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The site of the call, plus 1.
    pub parent: u32,
    /// The instruction; 0 for a system call.
    pub pc: u64,
    /// It is locked.
    pub locked: bool,
}

/// A part of a file in the program's memory.
#[derive(Clone, Debug, Deserialize)]
pub struct Module {
    /// The file.
    pub path: PathBuf,
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// The offset in the file, in bytes, of the first address.
    pub offset: u64,
    /// The first site of the program that had it there; later ones may be of another that it became.
    #[serde(default)]
    pub first_site: u32,
    /// A hash of the file's contents when it was recorded.
    #[serde(default)]
    pub hash: String,
}

/// The file before the program.
#[derive(Debug)]
pub enum Ground {
    /// Nothing but zeros.
    Zeros,
    /// As in this file.
    File(PathBuf),
}

/// A recording as far as it is about one mapped file: the contents of its lines, and every store, flush and
/// fence.
#[derive(Debug)]
pub struct Recording {
    /// The trace.
    pub path: PathBuf,
    /// The file, as the recorded program called it.
    pub pool: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it held before.
    pub ground: Ground,
    /// All that happened to it, and all fences.
    pub events: Vec<Event>,
    /// The lines that were stored to, in the order of their first store.
    pub lines: Vec<Slot>,
    /// Places; empty if the recording has none.
    pub sites: Vec<Site>,
    /// Where code is.
    pub modules: Vec<Module>,
    /// Marks, by the row that they come before.
    pub marks: Vec<(u64, String)>,
    /// What was printed, by the row that it comes before.
    pub acks: Vec<(u64, Vec<u8>)>,
    /// Whether it keeps what was printed.
    pub has_acks: bool,
    /// The program.
    pub program: String,
    /// Rows in all.
    pub rows: u64,
    /// What a reader of the report should know of the recording, a sentence each.
    pub notes: Vec<String>,
    /// Sites whose stores count as persistent at once.
    pub assumed: FxHashSet<u32>,
    /// Where the file's first byte lay in the program's memory, and how far from there it was mapped.
    pub mapped: Vec<(u64, u64)>,
    /// The file holds other contents than its stores make.
    pub elsewhere: bool,
    /// Whose units these are.
    pub platform: Platform,
    /// What the program does so that its stores are sure to be there.
    pub sure: Sure,
}

/// How a program makes sure of what it stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sure {
    /// Flushes of the file's lines, and stores past the caches.
    pub flushes: u64,
    /// System calls that wait until the file is on the disk: msync with MS_SYNC, fsync and their like.
    pub syncs: u64,
}

#[derive(Deserialize)]
struct Kept {
    bytes: u64,
    hash: String,
    #[serde(default)]
    zeros: bool,
}

#[derive(Deserialize)]
struct FileEntry {
    path: PathBuf,
    first_line: u64,
    bytes: u64,
    ground: Option<Kept>,
    after: Option<Kept>,
    /// Line, address and bytes of each place where some of it was mapped.
    #[serde(default)]
    mapped: Vec<(u64, u64, u64)>,
}

/// Bytes of a file that are hashed together.
const PART: usize = 1 << 20;
/// Lines set apart for a file.
const FILE_LINES: u64 = 1 << 38;

fn entry<T: for<'a> Deserialize<'a> + Default>(provenance: &Provenance, key: &str) -> T {
    let value = provenance.more.get(key).cloned().unwrap_or_default();
    serde_json::from_value(value).unwrap_or_default()
}

impl Recording {
    /// Reads the recording at `path`, as far as it is about `pool`.
    ///
    /// # Errors
    /// It is none of level `cpu`, does not hold the file, or not from its beginning.
    pub fn open(path: &Path, pool: &Path) -> Result<Recording, PersistError> {
        Recording::open_on(path, pool, Platform::Adr)
    }

    /// Reads it in the units that persist on a platform, and leaves out what does nothing there: where a file lies on a disk, flushes and
    /// fences of the processor.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_on(
        path: &Path,
        pool: &Path,
        platform: Platform,
    ) -> Result<Recording, PersistError> {
        let mut reader = TraceReader::open(path)?;
        let provenance = reader.provenance().clone();
        let refuse = |problem: String| {
            let message = format!("{}: {problem}", path.display());
            Err(PersistError::Request(message))
        };
        let again = format!(
            "sardonyx trace record --level cpu --pc -- {}",
            match &provenance.description {
                words if words.is_empty() => "PROGRAM",
                words => words,
            }
        );
        if provenance.level != Level::Cpu {
            return refuse(format!(
                "is of level memory, below the caches, and a crash test needs every store; record it again: {again}"
            ));
        }
        if provenance.more.contains_key("cut") || provenance.more.contains_key("mixed") {
            return refuse("is a part or a mix of recordings; give the whole one".to_owned());
        }
        let window = provenance.more.get("window");
        let skipped = |key: &str| window.is_some_and(|w| w[key].as_u64().unwrap_or(0) > 0);
        if skipped("skip") || skipped("skip_instructions") {
            return refuse(format!(
                "leaves out the beginning, and with it stores; record all of it: {again}"
            ));
        }
        let files: Vec<FileEntry> = entry(&provenance, "files");
        let file = match find(&files, pool) {
            Ok(file) => file,
            Err(problem) => return refuse(problem),
        };
        let (ground, ground_bytes) = match &file.ground {
            None => {
                return refuse(format!(
                    "does not say what {} held before; it is of an older Sardonyx, or the program could only read the \
                     file: record it again: {again}",
                    file.path.display()
                ));
            }
            Some(kept) if kept.zeros => (Ground::Zeros, kept.bytes),
            Some(kept) => (Ground::File(ground(path, kept)?), kept.bytes),
        };
        let sites: Vec<(u32, u64, bool)> = entry(&provenance, "sites");
        let acks: Vec<(u64, String)> = entry(&provenance, "acks");
        let mut recording = Recording {
            path: path.to_owned(),
            pool: file.path.clone(),
            bytes: ground_bytes.max(file.bytes),
            ground,
            events: Vec::new(),
            lines: Vec::new(),
            sites: sites
                .into_iter()
                .map(|(parent, pc, locked)| Site { parent, pc, locked })
                .collect(),
            modules: entry(&provenance, "modules"),
            marks: entry(&provenance, "marks"),
            has_acks: provenance.more.contains_key("acks"),
            acks: acks
                .into_iter()
                .map(|(row, text)| (row, text.chars().map(|c| c as u8).collect()))
                .collect(),
            program: provenance.program.clone(),
            rows: 0,
            notes: Vec::new(),
            assumed: FxHashSet::default(),
            mapped: bases(file),
            elsewhere: false,
            platform,
            sure: Sure::default(),
        };
        let syncs: Vec<(u64, u64)> = entry(&provenance, "syncs");
        recording.read(&mut reader, file.first_line, &syncs)?;
        if provenance.more.get("complete").and_then(|c| c.as_bool()) == Some(false) {
            let note = "the program was ended while it was recorded; what follows is not tested";
            recording.notes.push(note.to_owned());
        }
        if let Some(after) = &file.after {
            recording.bytes = recording.bytes.max(after.bytes);
            recording.elsewhere = recording.last_hash()? != after.hash;
            if recording.elsewhere && !recording.lines.is_empty() {
                recording.notes.push(format!(
                    "{} ended with other contents than the recording's stores make: the program, or another one, also \
                     wrote to it in a way that was not recorded (through a descriptor, or from a child)",
                    file.path.display()
                ));
            }
        }
        if let Some((address, count)) = recording.addresses() {
            recording.notes.push(format!(
                "{} holds {count} address{} of its own, of where it lay while it was recorded ({address:#x}): the recovery must \
                 map it there as well (mmap with that address; for libpmem PMEM_MMAP_HINT={address:x} in the environment of both)",
                file.path.display(),
                if count > 1 { "es" } else { "" },
            ));
        }
        Ok(recording)
    }

    /// Where the file lay in memory while it was recorded, and how many of its words are addresses of itself there at the end; none if
    /// no word is.
    pub fn addresses(&self) -> Option<(u64, usize)> {
        let count = |&(address, bytes): &(u64, u64)| {
            let words = (self.lines.iter()).flat_map(|slot| slot.versions.at_end());
            let word = words.flat_map(|(_, data)| words_of(&data));
            (
                address,
                word.filter(|word| (address..address + bytes).contains(word))
                    .count(),
            )
        };
        let most = self
            .mapped
            .iter()
            .map(count)
            .max_by_key(|(_, count)| *count);
        most.filter(|(_, count)| *count > 0)
    }

    fn read(
        &mut self,
        reader: &mut TraceReader,
        first: u64,
        syncs: &[(u64, u64)],
    ) -> Result<(), PersistError> {
        let mut syncs = syncs.iter().copied().peekable();
        let (on_disk, unit) = (self.platform.is_disk(), self.platform.unit() / LINE as u32);
        let ground = self.ground_file()?;
        let ground = match &ground {
            // SAFETY: the file is beside the recording or our own; whoever shortens it meanwhile ends us, as with any map.
            Some(file) => {
                Some(unsafe { memmap2::Mmap::map(file) }.map_err(PersistError::io("the ground"))?)
            }
            None => None,
        };
        let ground_line = |line: u32| -> Line {
            let at = line as usize * LINE;
            let mut bytes = [0; LINE];
            if let Some(ground) = &ground {
                let from = &ground[at.min(ground.len())..(at + LINE).min(ground.len())];
                bytes[..from.len()].copy_from_slice(from);
            }
            bytes
        };
        let mut slots: FxHashMap<u32, u32> = FxHashMap::default();
        let (mut batch, mut at) = (Vec::new(), Vec::new());
        let (mut row, mut synced) = (0, false);
        while reader.next_batch_at(&mut batch, Some(&mut at))? {
            for (record, site) in batch.iter().zip(&at) {
                while syncs.next_if(|&(_, end)| end <= row).is_some() {}
                let by_sync = syncs.peek().is_some_and(|&(from, _)| from <= row);
                row += 1;
                let inside = (first..first + FILE_LINES).contains(&record.line.0);
                let line = record.line.0.wrapping_sub(first) as u32;
                let act = match record.op {
                    // On a disk nothing is sure but what a system call waited for.
                    Op::Fence | Op::Clwb | Op::ClflushOpt | Op::Clflush if on_disk && !by_sync => {
                        self.sure.flushes += u64::from(record.op != Op::Fence && inside);
                        continue;
                    }
                    Op::Fence => {
                        self.sure.syncs += u64::from(by_sync && synced);
                        synced = false;
                        Act::Fence
                    }
                    Op::Store | Op::NonTemporalWrite if inside => {
                        let past = record.op == Op::NonTemporalWrite;
                        self.sure.flushes += u64::from(past);
                        let lines = &mut self.lines;
                        let slot = *slots.entry(line / unit).or_insert_with(|| {
                            lines.push(Slot {
                                line: line / unit * unit,
                                versions: Versions::new(unit == 1),
                            });
                            lines.len() as u32 - 1
                        });
                        let versions = &mut lines[slot as usize].versions;
                        let data = record
                            .data
                            .expect("the reader checks that a store has data");
                        let event = self.events.len() as u32;
                        Act::Store {
                            slot,
                            version: versions.push(line, &data, event, || ground_line(line)),
                            past: past && !on_disk,
                        }
                    }
                    Op::Clwb | Op::ClflushOpt | Op::Clflush if inside => {
                        self.sure.flushes += u64::from(!by_sync);
                        synced |= by_sync;
                        match slots.get(&(line / unit)) {
                            Some(&slot) => Act::Flush {
                                slot,
                                ordered: record.op == Op::Clflush,
                            },
                            None => Act::FlushClean,
                        }
                    }
                    Op::Clwb | Op::ClflushOpt | Op::NonTemporalWrite => Act::Foreign,
                    _ => continue,
                };
                self.events.push(Event {
                    row: row - 1,
                    thread: record.thread,
                    site: site.unwrap_or(NOWHERE),
                    act,
                });
            }
        }
        self.rows = row;
        for slot in &mut self.lines {
            slot.versions.shrink();
        }
        let lines = self.lines.iter().flat_map(|slot| slot.versions.lines(0));
        let last = lines.map(|(line, _)| (u64::from(line) + 1) * LINE as u64);
        self.bytes = self.bytes.max(last.max().unwrap_or(0));
        Ok(())
    }

    /// The ground's file, open; nothing if it is zeros.
    pub fn ground_file(&self) -> Result<Option<File>, PersistError> {
        match &self.ground {
            Ground::Zeros => Ok(None),
            Ground::File(path) => File::open(path)
                .map(Some)
                .map_err(PersistError::io(path.display())),
        }
    }

    /// The hash of what the file holds after all stores.
    fn last_hash(&self) -> Result<String, PersistError> {
        let mut ground = self.ground_file()?;
        let mut slots: Vec<&Slot> = self.lines.iter().collect();
        slots.sort_unstable_by_key(|slot| slot.line);
        let mut slots = slots.into_iter().peekable();
        let mut hasher = blake3::Hasher::new();
        let mut part = vec![0; PART];
        for begin in (0..self.bytes as usize).step_by(PART) {
            let part = &mut part[..PART.min(self.bytes as usize - begin)];
            part.fill(0);
            if let Some(file) = &mut ground {
                let mut at = 0;
                while let read = file
                    .read(&mut part[at..])
                    .map_err(PersistError::io("the ground"))?
                    && read > 0
                {
                    at += read;
                }
            }
            while let Some(slot) =
                slots.next_if(|slot| slot.line as usize * LINE < begin + part.len())
            {
                // No unit lies in two parts.
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

    /// How many bytes had been printed before a row.
    pub fn acked(&self, row: u64) -> usize {
        let before = self.acks.iter().take_while(|(at, _)| *at <= row);
        before.map(|(_, text)| text.len()).sum()
    }

    /// The first so many bytes that were printed.
    pub fn printed(&self, bytes: usize) -> Vec<u8> {
        let all = self.acks.iter().flat_map(|(_, text)| text);
        all.take(bytes).copied().collect()
    }

    /// The last mark before a row.
    pub fn mark(&self, row: u64) -> Option<&str> {
        let before = self.marks.iter().take_while(|(at, _)| *at <= row);
        before.last().map(|(_, text)| text.as_str())
    }
}

/// Where the first byte of a file lay in memory, and how far from there it was mapped.
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

/// The file of the recording that `pool` means.
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
    let known: Vec<_> = files.iter().map(|f| f.path.display().to_string()).collect();
    Err(match known.is_empty() {
        true => format!(
            "holds no mapped file, and so not {}: the program did not map one as shared; persistent memory is mapped \
             with MAP_SHARED",
            pool.display()
        ),
        false => format!(
            "does not hold {}; it holds {}: name one of these",
            pool.display(),
            known.join(", ")
        ),
    })
}

/// The file beside the recording that holds the ground.
fn ground(trace: &Path, kept: &Kept) -> Result<PathBuf, PersistError> {
    let path = beside(trace, &kept.hash);
    let lost = |what: String| {
        PersistError::new(format!(
            "{}: {what}; it holds the pool as it was before the recording, so copy it along with {}, or record again",
            path.display(),
            trace.display()
        ))
    };
    let mut file = File::open(&path).map_err(|e| lost(format!("cannot be read: {e}")))?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut file, &mut hasher).map_err(|e| lost(format!("cannot be read: {e}")))?;
    match hasher.finalize().to_hex().as_str() == kept.hash {
        true => Ok(path),
        false => Err(lost("is not what was recorded".to_owned())),
    }
}

/// Where the ground of this hash is kept; `sardonyx_record::grounds` puts it there.
fn beside(trace: &Path, hash: &str) -> PathBuf {
    let mut name = trace.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}.pool", &hash[..16]));
    trace.with_file_name(name)
}
