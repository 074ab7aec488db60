//! The mapped files of a recording that are cut: every store, flush and fence, in one order.

pub mod coverage;
pub mod events;
pub mod lint;
pub mod orders;
pub mod persistence;
pub mod platform;
pub mod pools;
pub(crate) mod provenance;
pub mod races;
pub mod reading;
pub mod sites;
pub mod source;
pub mod versions;

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use crate::interrupt::Interrupt;
use crate::recording::events::Events;
use crate::recording::platform::Platform;
use crate::recording::pools::{Pool, places};
use crate::recording::sites::Ran;
use crate::recording::versions::words_of;
use crate::recovery::ending::Ended;
use crate::verdict::Doubt;

pub use crate::recording::events::{Act, Event};
pub use crate::recording::sites::{Module, NOWHERE, SCRIPTS, ScriptFrame, Site};
pub use crate::recording::versions::{LINE, PersistenceUnit};

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
    /// Calls without code of their own, which sites name by [`SCRIPTS`].
    pub scripts: Vec<ScriptFrame>,
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

impl Recording {
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
