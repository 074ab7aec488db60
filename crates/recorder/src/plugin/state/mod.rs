//! The state that the callbacks share: the caches, the write-combining buffers, and the way out.

mod buffers;
mod code;
mod end;
mod mappings;
mod pages;
mod processes;

pub use code::{Code, Flush};
pub use mappings::Vacated;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::out::{EVERYWHERE, Out};
use super::verify::CheckCounts;
use super::word::Word;
use super::{counters, guest, threads};
use crate::caches::{Caches, FirstLevel, NAMELESS};
use crate::codec::op;
use crate::frames::{PAGE_BYTES, PAGE_LINES, Regions};
use crate::maps::{FILES, SYSTEM};
use crate::options::{Level, PluginOptions};
use buffers::Buffer;

/// If this variable is set, every frame of a page is sent, for tests.
const TELL_FRAMES: &str = "SARDONYX_RECORDER_FRAMES";

#[repr(C)]
pub struct PluginState {
    /// The first core's L1, which every access of the only thread looks at; nothing if there are more threads.
    first: FirstLevel,
    level: Level,
    firsts: Vec<FirstLevel>,
    pub caches: Caches,
    pub out: Out,
    buffers: Vec<Buffer>,
    pub options: PluginOptions,
    /// Each thread's system call: its arguments, and what it removes from the address space.
    pub calls: HashMap<u32, ([u64; 6], Vec<Vacated>)>,
    /// The end of the heap of `brk`; 0 before that is known.
    pub heap: u64,
    pub code: Code,
    /// Files that were copied before they were mapped for writing, by device and inode.
    pub grounds: HashSet<(u64, u64)>,
    pub checked: Option<CheckCounts>,
    pub cleared: BTreeSet<u64>,
    /// Addresses of lines whose stores may have come after their mark was taken.
    pub late: BTreeSet<u64>,
    pub regions: Regions,
    tell_frames: bool,
    /// Missing system calls that were called, with their names.
    pub refused: BTreeSet<(i64, &'static str)>,
    cleared_pages: u64,
    has_forked: bool,
    left_out: u64,
    copied_pages: u64,
    /// Blocks that ran and were sent, of code that is still mapped: maps each beginning to the address after the end.
    ran: BTreeMap<u64, u64>,
}

impl PluginState {
    pub fn new(options: PluginOptions, out: Out) -> Result<PluginState, String> {
        let caches = Caches::new(&options.caches)?;
        let firsts: Vec<FirstLevel> = (0..caches.cores()).map(|core| caches.first(core)).collect();
        Ok(PluginState {
            first: firsts[0],
            level: options.level,
            firsts,
            caches,
            out,
            buffers: Vec::new(),
            options,
            calls: HashMap::new(),
            heap: 0,
            code: Code::default(),
            grounds: HashSet::new(),
            checked: None,
            cleared: BTreeSet::new(),
            late: BTreeSet::new(),
            regions: Regions::default(),
            tell_frames: std::env::var_os(TELL_FRAMES).is_some(),
            refused: BTreeSet::new(),
            cleared_pages: 0,
            has_forked: false,
            left_out: 0,
            copied_pages: 0,
            ran: BTreeMap::new(),
        })
    }

    #[inline(always)]
    pub fn first(&self) -> FirstLevel {
        self.first
    }

    #[inline(always)]
    pub fn first_of(&self, vcpu: u32) -> FirstLevel {
        self.firsts[vcpu as usize % self.firsts.len()]
    }

    fn core(&self, vcpu: u32) -> usize {
        match vcpu {
            0 => 0,
            _ => vcpu as usize % self.firsts.len(),
        }
    }

    fn orders_threads(&self) -> bool {
        self.level == Level::Cpu && self.out.sites.is_some() && threads::threaded()
    }

    pub fn calls_system(&mut self, vcpu: u32) {
        if self.orders_threads() && !self.out.child {
            self.begin(vcpu);
            self.out.record(op::LOAD, SYSTEM, None);
        }
    }

    /// Notes that a call looked at the word there, on which its effect depends.
    pub fn looked_at_by_system(&mut self, vcpu: u32, address: u64) {
        if self.orders_threads() {
            self.touch(vcpu, address, 4, false);
        }
    }

    /// Notes the end of a thread: the kernel is about to clear its number, by which others see that it has ended. The
    /// address of the number is not known.
    pub fn thread_ends(&mut self, vcpu: u32) {
        if self.orders_threads() {
            for address in self.cleared.clone() {
                self.touch(vcpu, address, 4, true);
            }
        }
    }

    pub fn knows_store(&self, line: u64) -> bool {
        self.caches.dirty(line) || self.out.owed.contains(&line)
    }

    pub fn more_threads(&mut self) {
        counters::take();
        threads::more();
        self.first = FirstLevel::NOTHING;
        self.caches.use_cores(usize::MAX);
    }

    /// Handles an access of `size` bytes; a stored value is in memory already.
    pub fn access(&mut self, vcpu: u32, address: u64, size: u64, store: bool) {
        self.settle(vcpu);
        let end = address.saturating_add(size.max(1));
        self.out.stored = if store { address..end } else { 0..0 };
        let mut at = address;
        while at < end {
            let line = self.place(vcpu, at, store);
            let next = (at | 63) + 1;
            self.out.loaded =
                (!store && line >= FILES && (threads::threaded() || threads::shared()))
                    .then(|| ((at % 64) as u8, (end.min(next) - at) as u8));
            self.line(vcpu, line, at / 64, store);
            at = next;
        }
        self.out.stored = 0..0;
    }

    /// Handles an access by the kernel, as far as there are pages.
    pub fn touch(&mut self, vcpu: u32, address: u64, bytes: u64, write: bool) {
        if address == 0 || bytes == 0 {
            return;
        }
        // A wild length must not become a wild loop: a missing page ends it.
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end && guest::is_readable(at) {
            let next = end.min((at | (PAGE_BYTES - 1)) + 1);
            self.access(vcpu, at, next - at, write);
            at = next;
        }
    }

    /// Notes that the instruction that begins is about to store there, without a callback: the lines count as stored to
    /// when the thread does anything else.
    pub fn will_store(&mut self, vcpu: u32, address: u64, bytes: u64) {
        self.settle(vcpu);
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end && guest::is_readable(at) {
            let line = self.place(vcpu, at, true);
            self.out.owed.push(line);
            if threads::threaded() {
                // Another thread may act before that.
                self.late.insert(at);
            }
            at = (at | 63) + 1;
        }
    }

    /// Handles an access of the only thread within one line of a known page; returns `false`, and does nothing, if it
    /// has to go the long way. `coming` says that the block has yet to store to the line.
    #[inline(always)]
    pub fn alone(&mut self, vcpu: u32, address: u64, store: bool, coming: bool) -> bool {
        let Some(first) = self.out.frames.quick(address / PAGE_BYTES, store) else {
            return false;
        };
        let (line, name) = (first + address / 64 % PAGE_LINES, address / 64);
        if self.caches.cores_in_use() > 1 {
            return false;
        }
        if self.caches.again(line, name, store) {
            return true;
        }
        if !self.out.owed.is_empty() || !self.buffers.is_empty() {
            return false;
        }
        self.begin(vcpu);
        if coming {
            self.out.to_come.push(line);
        }
        if store {
            self.out.stored = EVERYWHERE;
        }
        self.caches.miss(0, line, name, store, &mut self.out);
        self.out.stored = 0..0;
        self.out.to_come.clear();
        true
    }

    /// Whether the first core's L1 has the line of an access of the only thread, which then only needs to be marked as
    /// used.
    #[inline(always)]
    pub fn again(&mut self, address: u64, store: bool) -> bool {
        let Some(first) = self.out.frames.quick(address / PAGE_BYTES, store) else {
            return false;
        };
        let line = first + address / 64 % PAGE_LINES;
        self.caches.cores_in_use() == 1 && self.caches.again(line, address / 64, store)
    }

    /// The line of the address; the access may give its page a frame.
    #[inline]
    pub fn place(&mut self, vcpu: u32, address: u64, store: bool) -> u64 {
        if self.level == Level::Cpu {
            return self.out.maps.line(address);
        }
        let page = address / PAGE_BYTES;
        let first = match self.out.frames.quick(page, store) {
            Some(first) => first,
            None => self.walk(vcpu, address, store),
        };
        first + address / 64 % PAGE_LINES
    }

    pub fn line_at(&self, address: u64) -> u64 {
        match self.out.frames.look(address / PAGE_BYTES) {
            Some(place) => place.line + address / 64 % PAGE_LINES,
            None => self.out.maps.line(address),
        }
    }

    #[inline(always)]
    pub fn expect(&mut self, vcpu: u32, list: usize) {
        if list != 0 {
            for at in 0..self.code.lists.open(list).len() {
                self.expect_stores(vcpu, self.code.lists.open(list)[at]);
            }
        }
    }

    pub fn expect_stores(&mut self, vcpu: u32, group: Word) {
        for start in group.to_come() {
            let line = self.place(vcpu, start, true);
            self.out.to_come.push(line);
        }
    }

    #[inline]
    pub fn begin(&mut self, vcpu: u32) {
        self.out.thread = counters::number(vcpu);
        if self.out.full {
            self.leave();
        }
    }

    /// Marks lines that were evicted before all stores to them had happened, once these have. Later events are the
    /// thread's.
    #[inline]
    pub fn settle(&mut self, vcpu: u32) {
        self.begin(vcpu);
        if !self.out.owed.is_empty() {
            self.settle_owed(vcpu);
        }
    }

    #[cold]
    fn settle_owed(&mut self, vcpu: u32) {
        self.out.stored = EVERYWHERE;
        for line in std::mem::take(&mut self.out.owed) {
            if self.out.to_come.contains(&line) {
                self.out.owed.push(line);
            } else {
                self.line(vcpu, line, NAMELESS, true);
            }
        }
        self.out.stored = 0..0;
    }

    fn line(&mut self, vcpu: u32, line: u64, name: u64, store: bool) {
        if self.level == Level::Cpu {
            if self.out.child && line < FILES {
                return; // its own memory, at the addresses of its parent's
            }
            if !store {
                return self.out.read(op::LOAD, line);
            }
            // A store to the caches is not past them, and memory has it already.
            if let Some(at) = self.buffers.iter().position(|b| b.line == line) {
                let buffer = self.buffers.remove(at);
                self.out.write_past(line, buffer.site, buffer.held);
            }
            return self.out.write(op::STORE, line);
        }
        if !self.buffers.is_empty() {
            self.empty_buffers(|buffer| buffer.line == line);
        }
        let core = self.core(vcpu);
        (self.caches).access(core, line, name, store, &mut self.out);
    }
}
