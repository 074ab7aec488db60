//! Queued accesses of one direction: for each bank a list in order of arrival, and the oldest access
//! that hits the open row. So the scheduler looks at two entries of a bank.

use super::channel::Slots;
use super::constraints::MOST;
use crate::plan::steps::Step;

pub(crate) const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueEntry {
    pub step: Step,
    pub place: u64,
    pub row: u64,
    pub slots: Slots,
    pub sequence: u64,
    pub bank: u8,
    /// Whether a row was opened for it, where it leaves its queue then.
    pub opened: bool,
    /// Its neighbours in the list of its bank.
    pub before: u16,
    pub after: u16,
}

#[derive(Clone, Copy)]
struct List {
    head: u16,
    tail: u16,
    hit: u16,
}

const EMPTY: List = List {
    head: NONE,
    tail: NONE,
    hit: NONE,
};

const TAG_BITS: u32 = 10;

/// Hashes a bank and a row to a tag, which different rows may share (Fibonacci hashing).
#[inline]
fn tag(bank: usize, row: u64) -> usize {
    let row = row.wrapping_mul(MOST as u64) | bank as u64;
    (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - TAG_BITS)) as usize
}

pub(crate) struct Lists {
    entries: Vec<QueueEntry>,
    /// The number of entries with each tag, to find quickly that a row has none.
    tags: [u16; 1 << TAG_BITS],
    free: Vec<u16>,
    lists: [List; MOST],
    banks: u64,
    len: usize,
}

impl Lists {
    pub fn new() -> Lists {
        Lists {
            entries: Vec::new(),
            tags: [0; 1 << TAG_BITS],
            free: Vec::new(),
            lists: [EMPTY; MOST],
            banks: 0,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn banks(&self) -> u64 {
        self.banks
    }

    #[inline]
    pub fn head(&self, bank: usize) -> u16 {
        self.lists[bank % MOST].head
    }

    /// The oldest entry that hits the open row.
    #[inline]
    pub fn hit(&self, bank: usize) -> u16 {
        self.lists[bank % MOST].hit
    }

    pub fn miss(&self, bank: usize, row: u64) -> u16 {
        self.first(self.lists[bank % MOST].head, |entry| entry.row != row)
    }

    #[inline]
    pub fn sequence(&self, entry: u16) -> u64 {
        self.entries[entry as usize].sequence
    }

    #[inline]
    pub fn bank(&self, entry: u16) -> usize {
        self.entries[entry as usize].bank as usize
    }

    pub fn access(&self, entry: u16) -> (Step, u64) {
        let entry = &self.entries[entry as usize];
        (entry.step, entry.place)
    }

    pub fn oldest(&self, banks: u64) -> u16 {
        let mut banks = banks & self.banks;
        let mut best = (u64::MAX, NONE);
        while banks != 0 {
            let head = self.lists[banks.trailing_zeros() as usize % MOST].head;
            banks &= banks - 1;
            best = best.min((self.sequence(head), head));
        }
        best.1
    }

    #[inline]
    pub fn insert(&mut self, bank: usize, mut entry: QueueEntry, open: Option<u64>) {
        entry.bank = bank as u8;
        let mut before = self.lists[bank % MOST].tail;
        // A write that had to wait for its line may become visible after younger accesses.
        while before != NONE && self.entries[before as usize].sequence > entry.sequence {
            before = self.entries[before as usize].before;
        }
        entry.before = before;
        entry.after = match before {
            NONE => self.lists[bank % MOST].head,
            before => self.entries[before as usize].after,
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.entries.push(entry);
                self.entries.len() as u16 - 1
            }
        };
        self.entries[index as usize] = entry;
        self.tags[tag(bank, entry.row)] += 1;
        self.link(bank, entry.before, index);
        self.link_back(bank, entry.after, index);
        let hit = self.lists[bank % MOST].hit;
        if open == Some(entry.row) && (hit == NONE || self.sequence(hit) > entry.sequence) {
            self.lists[bank % MOST].hit = index;
        }
        self.banks |= 1 << bank;
        self.len += 1;
    }

    #[inline(always)]
    pub fn remove(&mut self, index: u16, open: Option<u64>) -> QueueEntry {
        let entry = self.entries[index as usize];
        let bank = entry.bank as usize;
        self.link(bank, entry.before, entry.after);
        self.link_back(bank, entry.after, entry.before);
        if self.lists[bank % MOST].hit == index {
            // The list is in order, so the next oldest hit comes after this one.
            self.lists[bank % MOST].hit = self.first(entry.after, |e| Some(e.row) == open);
        }
        if self.lists[bank % MOST].head == NONE {
            self.banks &= !(1 << bank);
        }
        self.free.push(index);
        self.tags[tag(bank, entry.row)] -= 1;
        self.len -= 1;
        entry
    }

    pub fn row_changed(&mut self, bank: usize, row: u64) {
        self.lists[bank % MOST].hit = match self.may_contain(bank, row) {
            true => self.first(self.lists[bank % MOST].head, |entry| entry.row == row),
            false => NONE,
        };
    }

    /// Whether an entry may hit `row`. Most rows of scattered accesses have none, and walking a list costs a
    /// mispredicted branch at its end.
    #[inline]
    fn may_contain(&self, bank: usize, row: u64) -> bool {
        self.tags[tag(bank, row)] > 0
    }

    pub fn row_closed(&mut self, bank: usize) {
        self.lists[bank % MOST].hit = NONE;
    }

    fn first(&self, from: u16, wanted: impl Fn(&QueueEntry) -> bool) -> u16 {
        let mut index = from;
        while index != NONE && !wanted(&self.entries[index as usize]) {
            index = self.entries[index as usize].after;
        }
        index
    }

    #[inline]
    fn link(&mut self, bank: usize, before: u16, to: u16) {
        match before {
            NONE => self.lists[bank % MOST].head = to,
            before => self.entries[before as usize].after = to,
        }
    }

    #[inline]
    fn link_back(&mut self, bank: usize, after: u16, to: u16) {
        match after {
            NONE => self.lists[bank % MOST].tail = to,
            after => self.entries[after as usize].before = to,
        }
    }
}
