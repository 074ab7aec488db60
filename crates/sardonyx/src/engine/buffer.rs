//! A memory module's buffer with the cells behind it, in the place of a channel's banks. Blocks are read whole, and
//! written whole or in part. A block whose lines are all new is written at once and stays, with nothing new in it; when
//! the buffer is full some block leaves, and its new lines are written first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;
use sardonyx_base::random::SplitMix64;

use super::channel::{NEVER, Transaction};
use crate::medium::buffer::{BufferParams, Victim};
use crate::medium::params::Timing;
use crate::stats::Direction;
use crate::units::Time;

/// Counts of the cells' work for the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks read.
    pub reads: u64,
    /// Blocks written, whole or in part.
    pub writes: u64,
}

#[derive(Clone, Default)]
struct BufferEntry {
    block: u64,
    /// Lines whose bytes are in the buffer, and those of them that the cells have not been given.
    valid: u64,
    fresh: u64,
    fetching: bool,
    /// The block is queued to be written, is being written, and leaves after that.
    queued: bool,
    writing: bool,
    leaving: bool,
    used: u64,
    waiting: Vec<Transaction>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CellJob {
    Fetch,
    Write,
}

/// The buffer and its cells. Times are cycles of the memory's clock.
pub(super) struct Buffer {
    params: BufferParams,
    hit: u64,
    read: u64,
    intervals: [u64; 2],
    accept: u64,
    burst: u64,
    whole: u64,
    shift: u32,
    entries: Vec<BufferEntry>,
    of: FxHashMap<u64, usize>,
    free: Vec<usize>,
    draw: SplitMix64,
    fetches: VecDeque<usize>,
    writes: VecDeque<usize>,
    jobs: BinaryHeap<Reverse<(u64, CellJob, usize)>>,
    cells_free: u64,
    now: u64,
    /// The cycles from which the next command, the next written line and the next read line can pass.
    bus_free: u64,
    accept_free: u64,
    data_free: u64,
    done: VecDeque<(Transaction, u64)>,
    blocked: bool,
    uses: u64,
    fetching: usize,
    pub blocks: Blocks,
}

impl Buffer {
    pub fn new(params: BufferParams, timing: &Timing, channel: usize) -> Buffer {
        let cycles = |time: Time| time.ps().div_ceil(timing.clock.ps());
        Buffer {
            hit: cycles(params.hit),
            read: cycles(params.read),
            intervals: [params.read_interval, params.write_interval]
                .map(|time| cycles(time).max(1)),
            accept: cycles(params.accept),
            burst: timing.tBURST,
            whole: u64::MAX >> (64 - params.lines),
            shift: params.lines.trailing_zeros(),
            entries: vec![BufferEntry::default(); params.blocks],
            of: FxHashMap::default(),
            free: (0..params.blocks).rev().collect(),
            draw: SplitMix64(channel as u64),
            fetches: VecDeque::new(),
            writes: VecDeque::new(),
            jobs: BinaryHeap::new(),
            cells_free: 0,
            now: 0,
            bus_free: 0,
            accept_free: 0,
            data_free: 0,
            done: VecDeque::new(),
            blocked: false,
            uses: 0,
            fetching: 0,
            blocks: Blocks::default(),
            params,
        }
    }

    pub fn has_work(&self) -> bool {
        !self.done.is_empty() || self.entries.iter().any(|entry| !entry.waiting.is_empty())
    }

    /// Executes everything that happens up to `cycle`, and returns an access whose end is then known.
    pub fn act(&mut self, cycle: u64) -> Option<(Transaction, u64)> {
        loop {
            let (over, begun) = (self.next_over(), self.next_begun());
            if over.min(begun) > cycle {
                break;
            }
            self.now = over.min(begun);
            if over <= begun {
                let Reverse((at, job, entry)) = self.jobs.pop().expect("there is one");
                self.over(at, job, entry);
            } else {
                self.begin(begun);
            }
        }
        self.now = cycle;
        let (access, done) = self.done.pop_front()?;
        let done = done.max(cycle);
        Some((access, done))
    }

    /// The next cycle after `cycle` in which something happens without a new request.
    pub fn next(&self, cycle: u64) -> u64 {
        if !self.done.is_empty() {
            return cycle + 1;
        }
        self.next_over().min(self.next_begun()).max(cycle + 1)
    }

    fn next_over(&self) -> u64 {
        self.jobs.peek().map_or(NEVER, |Reverse(job)| job.0)
    }

    fn next_begun(&self) -> u64 {
        match self.fetches.is_empty() && self.writes.is_empty() {
            true => NEVER,
            false => self.cells_free.max(self.now),
        }
    }

    /// The cycle from which the buffer takes an access of `direction`; [`NEVER`] while an access must wait for room.
    pub fn takes_from(&self, direction: usize) -> u64 {
        match direction {
            _ if self.blocked => NEVER,
            READ => self.bus_free,
            _ => self.bus_free.max(self.accept_free),
        }
    }

    /// Takes an access if there is room for its block, and returns whether it hit.
    pub fn take(&mut self, cycle: u64, mut access: Transaction) -> Option<bool> {
        let block = access.place >> self.shift;
        let line = 1 << (access.place & ((1 << self.shift) - 1));
        let held = self.of.get(&block).map(|entry| &self.entries[*entry]);
        let fetch = access.direction == READ
            && held.is_none_or(|held| held.valid & line == 0 && !held.fetching);
        // The module fetches only so many blocks at once. The read waits outside, and so does every access behind it.
        if fetch && self.fetching == self.params.fetches {
            self.blocked = true;
            return None;
        }
        let entry = match self.of.get(&block) {
            Some(entry) => *entry,
            None => match self.room() {
                Some(entry) => {
                    self.of.insert(block, entry);
                    self.entries[entry].block = block;
                    entry
                }
                None => {
                    self.blocked = true;
                    return None;
                }
            },
        };
        self.bus_free = cycle + self.burst;
        self.uses += 1;
        let held = &mut self.entries[entry];
        held.used = self.uses;
        access.hit = held.valid & line != 0;
        let hit = access.hit;
        if access.direction != READ {
            held.valid |= line;
            held.fresh |= line;
            self.accept_free = cycle + self.accept;
            let done = cycle + self.burst;
            self.done.push_back((access, done));
            self.write_if_whole(entry);
        } else if hit {
            self.answer(access, cycle);
        } else {
            held.waiting.push(access);
            if !held.fetching {
                held.fetching = true;
                self.fetching += 1;
                self.fetches.push_back(entry);
            }
        }
        // Room for the next block is made before an access asks for it.
        if self.free.is_empty() {
            self.make_room();
        }
        Some(hit)
    }

    /// Has a read's line leave the module, one line after the other.
    fn answer(&mut self, access: Transaction, from: u64) {
        let done = (from + self.hit).max(self.data_free);
        self.data_free = done + self.burst;
        self.done.push_back((access, done));
    }

    fn write_if_whole(&mut self, entry: usize) {
        let held = &mut self.entries[entry];
        if held.fresh == self.whole && !held.queued && !held.writing {
            held.queued = true;
            self.writes.push_back(entry);
        }
    }

    /// Takes a free entry for another block, and has a block leave if there is none.
    fn room(&mut self) -> Option<usize> {
        if self.free.is_empty() {
            self.make_room();
        }
        self.free.pop()
    }

    fn make_room(&mut self) {
        if self.entries.iter().any(|entry| entry.leaving) {
            return;
        }
        let idle = |entry: &BufferEntry| !entry.fetching && !entry.writing;
        let mut idle = (0..self.entries.len()).filter(|&entry| idle(&self.entries[entry]));
        let victim = match self.params.victim {
            Victim::Oldest => idle.min_by_key(|&entry| self.entries[entry].used),
            Victim::Random => match idle.clone().count() as u64 {
                0 => None,
                count => idle.nth(self.draw.below(count) as usize),
            },
        };
        let Some(victim) = victim else { return };
        if self.entries[victim].fresh == 0 {
            self.clear(victim);
        } else {
            if self.entries[victim].queued {
                self.writes.retain(|other| *other != victim);
            }
            (self.entries[victim].leaving, self.entries[victim].queued) = (true, true);
            self.writes.push_front(victim);
        }
    }

    fn clear(&mut self, entry: usize) {
        self.of.remove(&self.entries[entry].block);
        self.entries[entry] = BufferEntry::default();
        self.free.push(entry);
    }

    /// Begins the next job of the cells: reads first, unless an access waits for the room that a write makes.
    fn begin(&mut self, at: u64) {
        let write = !self.writes.is_empty() && (self.blocked || self.fetches.is_empty());
        let job = if write {
            CellJob::Write
        } else {
            CellJob::Fetch
        };
        let queue = if write {
            &mut self.writes
        } else {
            &mut self.fetches
        };
        let entry = queue.pop_front().expect("there is one");
        let held = &mut self.entries[entry];
        self.cells_free = at + self.intervals[usize::from(write)];
        let over = match job {
            CellJob::Fetch => {
                self.blocks.reads += 1;
                at + self.read
            }
            CellJob::Write => {
                self.blocks.writes += 1;
                // Lines that come while the cells are at work are new again: the cells have the bytes of before.
                (held.queued, held.writing, held.fresh) = (false, true, 0);
                self.cells_free
            }
        };
        self.jobs.push(Reverse((over, job, entry)));
    }

    fn over(&mut self, at: u64, job: CellJob, entry: usize) {
        self.blocked = false;
        let held = &mut self.entries[entry];
        match job {
            CellJob::Fetch => {
                (held.fetching, held.valid) = (false, self.whole);
                self.fetching -= 1;
                for access in std::mem::take(&mut held.waiting) {
                    self.answer(access, at);
                }
            }
            CellJob::Write => {
                held.writing = false;
                let leaves = std::mem::take(&mut held.leaving);
                // A block that was written or asked for meanwhile stays.
                if leaves && held.fresh == 0 && !held.fetching {
                    self.clear(entry);
                } else {
                    self.write_if_whole(entry);
                }
            }
        }
    }
}

const READ: usize = Direction::Read as usize;
