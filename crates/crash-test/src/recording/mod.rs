//! The mapped files of a recording that are cut: every store, flush and fence, in one order.

pub mod coverage;
pub mod events;
pub mod lint;
pub mod orders;
pub mod persistence;
pub mod pools;
pub(crate) mod provenance;
pub mod races;
pub mod reading;
pub mod source;
pub mod versions;

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use sardonyx_trace::{Level, Provenance, TraceReader};
use serde::Deserialize;

use crate::interrupt::Interrupt;
use crate::recording::coverage::Ran;
use crate::recording::events::Events;
use crate::recording::persistence::Platform;
use crate::recording::pools::{Pool, chosen, places};
use crate::recording::provenance::{acks, ended, entry, files, modules, sites};
use crate::recording::reading::Reading;
use crate::recording::versions::{Versions, words_of};
use crate::recovery::ending::Ended;
use crate::report::verdict::Doubt;
use crate::{CrashTestError, Result};

pub const LINE: usize = 64;
/// Stands for an unknown site.
pub const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The line holds this version from now on, which is the version before if the store changed nothing.
    Store {
        slot: u32,
        /// The version, as an index of the line's; 0 is what the line held before the recording.
        version: u32,
        past: bool,
    },
    /// A flush of a line that was stored to at some time.
    Flush {
        /// The line, as an index of [`Recording::lines`].
        slot: u32,
        ordered: bool,
    },
    /// A flush of a line of the files that was never stored to.
    FlushClean,
    /// A flush, or a store past the caches, of a line in no file that is cut.
    Foreign,
    /// A fence, or another instruction that acts as one.
    Fence,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub row: u64,
    pub thread: u16,
    /// A place in the program, or [`NOWHERE`].
    pub site: u32,
    pub act: Act,
}

#[derive(Clone, Debug)]
pub struct PersistenceUnit {
    /// The file, as an index of [`Recording::pools`].
    pub file: u16,
    pub line: u32,
    pub versions: Versions,
}

#[derive(Clone, Debug, Default)]
pub struct Acks {
    text: Vec<u8>,
    /// The number of bytes that had been printed before each row.
    ends: Vec<(u64, usize)>,
}

impl Acks {
    pub fn next_after(&self, row: u64) -> Option<u64> {
        let before = self.ends.partition_point(|(at, _)| *at <= row);
        self.ends.get(before).map(|(at, _)| *at)
    }

    /// Makes it of printed texts, each with the row before which it was printed; a character is a byte.
    pub fn from_parts(parts: Vec<(u64, String)>) -> Acks {
        let mut acks = Acks::default();
        for (row, part) in parts {
            acks.text.extend(part.chars().map(|c| c as u8));
            acks.ends.push((row, acks.text.len()));
        }
        acks
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.ends.iter().map(|(row, _)| *row)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The index of the calling site plus 1; 0 if none is known.
    pub parent: u32,
    /// The instruction's address; 0 for a system call.
    pub pc: u64,
    pub locked: bool,
    /// The number of its program, among those that the recorded processes ran.
    pub program: u32,
}

/// A part of a file in the program's memory, in which addresses of instructions are looked up.
#[derive(Clone, Debug, Deserialize)]
pub struct Module {
    pub path: PathBuf,
    pub start: u64,
    pub end: u64,
    /// The offset of the first address in the file.
    pub offset: u64,
    /// The first site of the program that had the file at these addresses; later sites may be of another program.
    #[serde(default)]
    pub first_site: u32,
    /// The number of that program, among those that the recorded processes ran.
    #[serde(default)]
    pub of_program: u32,
    #[serde(default)]
    pub hash: String,
}

/// A recording, reduced to some mapped files: the contents of their lines, and every store, flush and fence.
#[derive(Debug, Default)]
pub struct Recording {
    pub path: PathBuf,
    /// Ends what reads or compares all of it.
    pub interrupt: Interrupt,
    pub pools: Vec<Pool>,
    pub events: Events,
    /// The units that were stored to, in the order of their first store.
    pub lines: Vec<PersistenceUnit>,
    pub sites: Vec<Site>,
    pub modules: Vec<Module>,
    /// Marks, each with the row that it comes before.
    pub marks: Vec<(u64, String)>,
    pub acks: Acks,
    pub has_acks: bool,
    /// The events before which something was acknowledged, each once; the power is cut there too.
    pub promises: Vec<u32>,
    pub program: String,
    pub rows: u64,
    pub notes: Vec<String>,
    /// Reasons why a search without a violation says nothing.
    pub doubts: Vec<Doubt>,
    /// What a search without a violation rests on, where that is little.
    pub rests_on: Vec<String>,
    /// Whether the program was ended while it was recorded.
    pub cut_short: bool,
    /// How the program ended, if the recording says so.
    pub ended: Option<Ended>,
    pub assumed: FxHashSet<u32>,
    /// Files that the program stored to and that are not cut, with the number of stores.
    pub unnamed: Vec<(PathBuf, u64)>,
    pub platform: Platform,
    pub sure: Sure,
    pub processes: usize,
    pub calls: bool,
    /// The code that ran; `None` if the recording does not say.
    pub ran: Option<Vec<Ran>>,
    /// The range of events, from the first to before the second, that are in another order than recorded. Only they are
    /// cut.
    pub scope: Option<(u32, u32)>,
    /// The event before which a thread is held back in that order.
    pub held: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Sure {
    /// Flushes of the files' lines, and stores past the caches.
    pub flushes: u64,
    /// System calls that wait until a file is on the disk: msync with MS_SYNC, fsync and the like.
    pub syncs: u64,
}

/// Refuses a recording that lacks stores: one taken below the caches, a part, a mix, or one whose beginning was
/// skipped.
fn check_whole(provenance: &Provenance, again: &str) -> Result<(), String> {
    if provenance.level != Level::Cpu {
        return Err(format!(
            "is of level memory, below the caches, and a crash test needs every store; record it again: {again}"
        ));
    }
    if provenance.more.contains_key("cut") || provenance.more.contains_key("mixed") {
        return Err("is a part or a mix of recordings; give the whole one".to_owned());
    }
    let window = provenance.more.get("window");
    let skipped = |key: &str| window.is_some_and(|w| w[key].as_u64().unwrap_or(0) > 0);
    if skipped("skip") || skipped("skip_instructions") {
        return Err(format!(
            "leaves out the beginning, and with it stores; record all of it: {again}"
        ));
    }
    Ok(())
}

fn ran(provenance: &Provenance) -> Result<Vec<Ran>, String> {
    let told: Vec<Vec<u64>> = entry(provenance, "ran")?;
    let of_program = |entry: Vec<u64>| Ran::from_lengths(&entry);
    Ok(told.into_iter().map(of_program).collect())
}

impl Recording {
    /// Reads the recording at `path`, reduced to `pools`: files, or folders for all files in them.
    ///
    /// # Errors
    /// It is not of level `cpu`, does not hold one of the files, or not from its beginning.
    pub fn open(path: &Path, pools: &[PathBuf], interrupt: &Interrupt) -> Result<Recording> {
        Recording::open_on(path, pools, Platform::Adr, interrupt)
    }

    /// Reads the recording in the units that persist on a platform. For a file on a disk the flushes and fences of the
    /// processor are left out, because they do nothing.
    pub fn open_on(
        path: &Path,
        pools: &[PathBuf],
        platform: Platform,
        interrupt: &Interrupt,
    ) -> Result<Recording> {
        let mut reader = TraceReader::open(path)?;
        let provenance = reader.provenance().clone();
        let again = format!(
            "sardonyx trace record --level cpu --pc -- {}",
            match &provenance.description {
                words if words.is_empty() => "PROGRAM",
                words => words,
            }
        );
        let refused = |problem| CrashTestError::Request(format!("{}: {problem}", path.display()));
        check_whole(&provenance, &again).map_err(refused)?;
        let files = files(&provenance).map_err(refused)?;
        let named = chosen(&files, pools).map_err(refused)?;
        let found = named
            .iter()
            .map(|file| Pool::from_entry(file, path, &again, interrupt));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let mut recording = Recording {
            path: path.to_owned(),
            interrupt: interrupt.clone(),
            pools: found,
            sites: sites(&provenance).map_err(refused)?,
            modules: modules(&provenance).map_err(refused)?,
            marks: entry(&provenance, "marks").map_err(refused)?,
            has_acks: provenance.more.contains_key("acks"),
            acks: Acks::from_parts(acks(&provenance).map_err(refused)?),
            promises: Vec::new(),
            program: provenance.program.clone(),
            platform,
            processes: entry::<Vec<serde_json::Value>>(&provenance, "processes")
                .map_err(refused)?
                .len()
                .max(1),
            calls: provenance.more.contains_key("calls"),
            cut_short: provenance.more.get("complete") == Some(&false.into()),
            ended: ended(&provenance).map_err(refused)?,
            ran: match provenance.more.contains_key("ran") {
                true => Some(ran(&provenance).map_err(refused)?),
                false => None,
            },
            ..Recording::default()
        };
        let syncs = entry(&provenance, "syncs").map_err(refused)?;
        Reading::of_files(&recording, &files, &named, syncs)?.read(&mut recording, &mut reader)?;
        recording.look_back(&provenance)?;
        Ok(recording)
    }

    /// Adds the warnings for a reader, now that all stores are known.
    fn look_back(&mut self, provenance: &Provenance) -> Result<()> {
        if self.cut_short {
            let note = "the program was ended while it was recorded; what follows is not tested";
            self.notes.push(note.to_owned());
        }
        if self.processes > 1 {
            self.notes.push(format!(
                "the program forked: its {} processes are cut in one order",
                self.processes
            ));
        }
        let recorder: Vec<String> = entry(provenance, "notes").map_err(|problem| {
            CrashTestError::new(format!("{}: {problem}", self.path.display()))
        })?;
        let told = recorder.iter().map(|note| format!("recorded: {note}"));
        self.notes.extend(told);
        for number in 0..self.pools.len() {
            let slots = self.lines.iter();
            let slots = slots.filter(|slot| usize::from(slot.file) == number);
            let note = self.pools[number].compare(slots, &self.interrupt)?;
            self.notes.extend(note);
        }
        for (path, stores) in &self.unnamed {
            self.notes.push(format!(
                "the program also stored to {} ({stores} stores), which no --pool names: nothing of it is cut, and the recovery gets no \
                 copy of it; if it is \
                 persistent, name it with another --pool, so that both have one order",
                path.display()
            ));
        }
        for pool in &self.pools {
            if let Some((address, count)) = self.addresses_of(pool) {
                self.notes.push(format!(
                    "{} holds {count} address{} of its own, of where it lay while it was recorded ({address:#x}): the recovery must \
                     map it there as well (mmap with that address; for libpmem PMEM_MMAP_HINT={address:x} in the environment of both)",
                    pool.path.display(),
                    if count > 1 { "es" } else { "" },
                ));
            }
        }
        Ok(())
    }

    /// The address at which a file lay while it was recorded, and the number of words that hold such addresses at the
    /// end; `None` if no word does.
    pub fn addresses(&self) -> Option<(u64, usize)> {
        let all = self.pools.iter().filter_map(|pool| self.addresses_of(pool));
        all.max_by_key(|(_, count)| *count)
    }

    fn addresses_of(&self, pool: &Pool) -> Option<(u64, usize)> {
        let count = |&(address, bytes): &(u64, u64)| {
            let lines = (self.lines.iter()).flat_map(|slot| slot.versions.at_end());
            let words = lines.flat_map(|(_, data)| words_of(&data));
            // A file may be mapped from its middle on at an address below that offset.
            let own = words.filter(|word| word.wrapping_sub(address) < bytes);
            (address, own.count())
        };
        let most = pool.mapped.iter().map(count);
        let most = most.max_by_key(|(_, count)| *count);
        most.filter(|(_, count)| *count > 0)
    }

    /// The stores that are not cut, in words; empty if all are cut.
    pub fn not_cut(&self) -> Vec<String> {
        let unnamed = self.unnamed.iter();
        let told = unnamed.map(|(path, stores)| format!("{stores} stores to {}", path.display()));
        told.collect()
    }

    /// The number of threads, of all processes, that stored to the files or flushed their lines.
    pub fn threads(&self) -> usize {
        let of = |event: &Event| matches!(event.act, Act::Store { .. } | Act::Flush { .. });
        let threads = self.walk().filter(of).map(|event| event.thread);
        threads.collect::<FxHashSet<u16>>().len()
    }

    pub fn called(&self) -> String {
        let names = self
            .pools
            .iter()
            .map(|pool| pool.path.display().to_string());
        names.collect::<Vec<_>>().join(" and ")
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.bytes).sum()
    }

    /// The name of a unit's file, if there are several files.
    pub fn pool_of(&self, slot: u32) -> Option<String> {
        let file = usize::from(self.lines[slot as usize].file);
        (self.pools.len() > 1).then(|| {
            let place = &places(&self.pools)[file];
            place.display().to_string()
        })
    }

    /// The first page of each file, with the files one after the other, and the page after the last.
    pub fn pages(&self) -> Vec<u64> {
        let mut next = 0;
        let mut firsts = vec![0];
        for pool in &self.pools {
            next += pool.bytes.div_ceil(4096);
            firsts.push(next);
        }
        firsts
    }

    /// The number of a unit's first line among the lines of all files, with the files one after the other.
    pub fn line_of_all(&self, slot: &PersistenceUnit, pages: &[u64]) -> u64 {
        pages[usize::from(slot.file)] * (4096 / LINE as u64) + u64::from(slot.line)
    }

    /// The number of bytes that had been printed before a row.
    pub fn acked(&self, row: u64) -> usize {
        let before = self.acks.ends.partition_point(|(at, _)| *at <= row);
        before
            .checked_sub(1)
            .map_or(0, |last| self.acks.ends[last].1)
    }

    /// Has the power cut wherever something was acknowledged, fence or no fence.
    pub fn cut_at_promises(&mut self) {
        let before = self.acks.rows().map(|row| self.events.before(row) as u32);
        self.promises = before.collect();
        self.promises.dedup();
    }

    pub fn printed(&self, bytes: usize) -> &[u8] {
        &self.acks.text[..bytes.min(self.acks.text.len())]
    }

    pub fn event(&self, number: u32) -> Event {
        self.events.get(number as usize, &self.lines)
    }

    pub fn walk(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.walk(self.lines.len())
    }

    /// The row of an event; the number of rows stands for the end.
    pub fn row(&self, event: u32) -> u64 {
        match (event as usize) < self.events.len() {
            true => self.events.row(event as usize),
            false => self.rows,
        }
    }

    pub fn mark(&self, row: u64) -> Option<&str> {
        let before = self.marks.iter().take_while(|(at, _)| *at <= row);
        before.last().map(|(_, text)| text.as_str())
    }
}
