//! Everything that the callbacks share: the caches, the write-combining buffers, the way out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use iced_x86::Instruction;

use super::guest::Area;
use super::lists::GroupLists;
use super::out::Out;
use super::verify::CheckCounts;
use super::word::Word;
use super::{counters, guest, threads};
use crate::caches::{Caches, FirstLevel, NAMELESS, Unfetched};
use crate::codec::{CacheContents, RecorderEvent, op};
use crate::frames::FrameNumbers;
use crate::frames::{FirstContents, FramePlace, PAGE_BYTES, PAGE_LINES, Regions, ZERO};
use crate::maps::{FILES, SYSTEM};
use crate::options::{Clearing, Level, PluginOptions};
use crate::ring::Ring;

/// Lines that one thread can be writing past the caches at a time (Intel's processors have ten or twelve buffers).
const BUFFERS: usize = 10;
const CHILD_RING: u64 = 4 << 20;

struct Buffer {
    thread: u16,
    line: u64,
    bytes: u64,
    site: Option<u32>,
    /// At level `cpu`, what the line held after that store.
    held: Option<[u8; 64]>,
}

/// The pages that a system call takes out of the address space, with where they lay, and parts of mapped files as
/// address, length and line.
#[derive(Default)]
pub struct Vacated {
    pub pages: Vec<(u64, FramePlace)>,
    /// The first page, and the one after the last, whether they had been touched or not.
    pub range: (u64, u64),
    pub files: Vec<(u64, u64, u64)>,
}

/// The variable that has every frame told that a page gets, for tests.
const TELL_FRAMES: &str = "SARDONYX_RECORDER_FRAMES";

/// Instructions and addresses of translated code that callbacks know.
#[derive(Default)]
pub struct Code {
    /// Signal handlers: where they begin, the kernel has just written a frame.
    pub handlers: HashSet<u64>,
    /// Flush instructions with their operations' codes, which QEMU's translations point to.
    flushes: HashMap<(Instruction, u64), &'static Flush>,
    pub lists: GroupLists,
}

/// A flush instruction, or one whose accesses are not told: its operation's code, and where it is.
pub struct Flush {
    pub code: u8,
    pub instruction: Instruction,
    pub pc: u64,
}

impl Code {
    /// The flush instruction, which lives as long as QEMU.
    pub fn flush(&mut self, code: u8, instruction: Instruction, pc: u64) -> &'static Flush {
        let known = self.flushes.entry((instruction, pc));
        known.or_insert_with(|| {
            Box::leak(Box::new(Flush {
                code,
                instruction,
                pc,
            }))
        })
    }
}

#[repr(C)]
pub struct PluginState {
    /// The first core's L1, at which every access of the only thread looks; nothing when there are more.
    first: FirstLevel,
    level: Level,
    firsts: Vec<FirstLevel>,
    pub caches: Caches,
    pub out: Out,
    buffers: Vec<Buffer>,
    pub options: PluginOptions,
    /// Each thread's system call: its arguments, and what it takes out of the address space.
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
    /// System calls that were asked for and are not there, with their names.
    pub refused: BTreeSet<(i64, &'static str)>,
    cleared_pages: u64,
    has_forked: bool,
    left_out: u64,
    copied_pages: u64,
    /// Where blocks that ran begin, with the address after each: those that were told, of code that is still mapped.
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

    /// The first core's L1, at which every access of the only thread looks.
    #[inline(always)]
    pub fn first(&self) -> FirstLevel {
        self.first
    }

    #[inline(always)]
    pub fn first_of(&self, vcpu: u32) -> FirstLevel {
        self.firsts[vcpu as usize % self.firsts.len()]
    }

    fn orders_threads(&self) -> bool {
        self.level == Level::Cpu && self.out.sites.is_some() && threads::threaded()
    }

    /// The thread begins a system call, or returns from it.
    pub fn calls_system(&mut self, vcpu: u32) {
        if self.orders_threads() && !self.out.child {
            self.begin(vcpu);
            self.out.record(op::LOAD, SYSTEM, None);
        }
    }

    /// A call looked at the word there, on which what it did depends.
    pub fn looked_at_by_system(&mut self, vcpu: u32, address: u64) {
        if self.orders_threads() {
            self.touch(vcpu, address, 4, false);
        }
    }

    /// The thread ends, and the kernel is about to clear its number, by which others see that it has. Which number is its is not known.
    pub fn thread_ends(&mut self, vcpu: u32) {
        if self.orders_threads() {
            for address in self.cleared.clone() {
                self.touch(vcpu, address, 4, true);
            }
        }
    }

    /// The caches know of a store to the line, or will.
    pub fn knows_store(&self, line: u64) -> bool {
        self.caches.dirty(line) || self.out.owed.contains(&line)
    }

    /// A child begins with cold caches and a ring of its own, or records nothing.
    pub fn restart_in_child(&mut self) {
        counters::reset();
        self.caches.clear();
        self.buffers.clear();
        self.late.clear();
        (self.cleared_pages, self.copied_pages) = (0, 0);
        (self.left_out, self.has_forked) = (0, true);
        if threads::shared() {
            self.cleared.clear();
            threads::take_between();
            self.out.restart_shared();
            return;
        }
        let follow = self.options.follow_fork && self.out.on();
        let process = std::process::id();
        let ring = follow.then(|| self.child_ring(process)).flatten();
        self.out.restart(ring);
    }

    pub fn forks(&mut self) {
        if self.options.one_order && self.out.share() {
            self.out.forks(true);
        }
    }

    pub fn forked(&mut self, result: i64) {
        match u32::try_from(result) {
            _ if !threads::shared() => {}
            Ok(process @ 1..) => self.out.tell(&RecorderEvent::Forked(process)),
            Ok(_) => {}
            Err(_) => self.out.forks(false),
        }
    }

    pub fn count_child(&mut self) {
        self.has_forked = true;
        if !self.options.follow_fork && !self.options.one_order {
            self.left_out += 1;
            // What the child runs is not known, so everything may run.
            self.runs(0, u64::MAX);
        }
    }

    /// A block was translated, and is about to run.
    pub fn runs(&mut self, start: u64, end: u64) {
        if self.level != Level::Cpu || self.out.sites.is_none() {
            return;
        }
        let known = self.ran.entry(start).or_default();
        if *known < end {
            *known = end;
            self.out.tell(&RecorderEvent::Ran { start, end });
        }
    }

    /// Code that ran lies in `start..end`.
    pub fn has_run(&self, start: u64, end: u64) -> bool {
        self.ran.range(start..end.max(start)).next().is_some()
    }

    /// Code of `start..end` is about to be unmapped: tells what file it is of, while that is known.
    pub fn unmaps_code(&mut self, start: u64, end: u64, areas: &[Area]) {
        let mut rest = self.ran.split_off(&start);
        self.ran.append(&mut rest.split_off(&end));
        self.tell_modules(areas);
    }

    fn child_ring(&self, process: u32) -> Option<Ring> {
        use std::sync::atomic::Ordering;
        let path = Path::new(&self.options.folder).join(Ring::name(process));
        let ring = Ring::create(&path, CHILD_RING, self.options.reader).ok()?;
        ring.header().writer.store(process, Ordering::Relaxed);
        ring.header().begun.store(1, Ordering::Release);
        Some(ring)
    }

    pub fn more_threads(&mut self) {
        counters::take();
        threads::more();
        self.first = FirstLevel::NOTHING;
        self.caches.use_cores(usize::MAX);
    }

    /// An access of `size` bytes; what it stored is in memory already.
    pub fn access(&mut self, vcpu: u32, address: u64, size: u64, store: bool) {
        self.settle(vcpu);
        let end = address.saturating_add(size.max(1));
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
    }

    /// An access by the kernel, as far as there are pages.
    pub fn touch(&mut self, vcpu: u32, address: u64, bytes: u64, write: bool) {
        if address == 0 || bytes == 0 {
            return;
        }
        // A wild length must not become a wild loop: pages that are not there end it.
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end && guest::is_readable(at) {
            let next = end.min((at | (PAGE_BYTES - 1)) + 1);
            self.access(vcpu, at, next - at, write);
            at = next;
        }
    }

    /// The instruction that begins is about to store there, and nobody will tell: the lines are stored to when the thread does anything else.
    pub fn will_store(&mut self, vcpu: u32, address: u64, bytes: u64) {
        self.settle(vcpu);
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end && guest::is_readable(at) {
            let line = self.place(vcpu, at, true);
            self.out.owed.push(line);
            if threads::threaded() {
                // Another thread may do something before.
                self.late.insert(at);
            }
            at = (at | 63) + 1;
        }
    }

    /// An access of the only thread within one line of a page that is known; `false`, and nothing is done, if it is to be made
    /// the long way. `coming` says that the block has yet to store to the line.
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
        self.caches.miss(0, line, name, store, &mut self.out);
        self.out.to_come.clear();
        true
    }

    /// The first core's L1 has the line of an access of the only thread, and needs no more than to know of its use.
    #[inline(always)]
    pub fn again(&mut self, address: u64, store: bool) -> bool {
        let Some(first) = self.out.frames.quick(address / PAGE_BYTES, store) else {
            return false;
        };
        let line = first + address / 64 % PAGE_LINES;
        self.caches.cores_in_use() == 1 && self.caches.again(line, address / 64, store)
    }

    /// The line that the address is in, which the access may give its page a frame for.
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

    /// The first line of the address's page, which gets a frame if it needs one.
    fn walk(&mut self, vcpu: u32, address: u64, store: bool) -> u64 {
        let page = address / PAGE_BYTES;
        let before = self.out.frames.place(page);
        if let Some(place) = before
            && (place.own || !store)
        {
            return place.line;
        }
        if before.is_some() {
            self.caches
                .forget(page * PAGE_LINES..(page + 1) * PAGE_LINES);
        }
        let line = self.out.maps.line(page * PAGE_BYTES);
        if line >= FILES {
            return self.settle_in(page, FramePlace { line, own: true });
        }
        match (self.contents(page), store) {
            (FirstContents::Zeros, false) => {
                let line = ZERO * PAGE_LINES;
                self.settle_in(page, FramePlace { line, own: false })
            }
            (FirstContents::Zeros, true) | (FirstContents::SharedZeros, _) => {
                let line = self.frame(page).0;
                self.clear_page(vcpu, line);
                self.settle_in(page, FramePlace { line, own: true })
            }
            (FirstContents::Copied, false) => {
                let line = self.filled_frame(page);
                self.settle_in(page, FramePlace { line, own: false })
            }
            (FirstContents::Shared, _) => {
                let line = self.filled_frame(page);
                self.settle_in(page, FramePlace { line, own: true })
            }
            (FirstContents::Copied, true) => {
                let from = match before {
                    Some(place) => place.line,
                    None => self.filled_frame(page),
                };
                let to = self.frame(page).0;
                self.copy_page(vcpu, from, to, address);
                self.settle_in(
                    page,
                    FramePlace {
                        line: to,
                        own: true,
                    },
                )
            }
        }
    }

    /// The page lies there; gives its first line.
    pub fn settle_in(&mut self, page: u64, place: FramePlace) -> u64 {
        self.out.frames.put(page, place);
        let frame = place.line / PAGE_LINES;
        if self.tell_frames && frame != ZERO {
            self.out.tell(&RecorderEvent::Frame { page, frame });
        }
        place.line
    }

    fn contents(&mut self, page: u64) -> FirstContents {
        let address = page * PAGE_BYTES;
        if self.regions.find(address).is_none() {
            self.regions = self.regions_of_the_kernel();
        }
        let found = self.regions.find(address);
        if found.is_none() {
            // What the kernel does not show as mapped is not asked for again.
            (self.regions).set(address, address + PAGE_BYTES, FirstContents::Zeros);
        }
        match found.unwrap_or(FirstContents::Zeros) {
            FirstContents::Zeros if self.out.frames.is_inherited(page) => FirstContents::Copied,
            FirstContents::SharedZeros if self.out.frames.is_inherited(page) => {
                FirstContents::Shared
            }
            contents => contents,
        }
    }

    fn regions_of_the_kernel(&self) -> Regions {
        let mut regions = Regions::default();
        guest::each_area(|area, permissions, inode| {
            let device_of_zeros = area.path.starts_with("/dev/zero");
            let contents = match permissions.ends_with('s') {
                true if device_of_zeros || area.path.starts_with("/SYSV") => {
                    FirstContents::SharedZeros
                }
                true => FirstContents::Shared,
                false if inode == "0" || device_of_zeros => FirstContents::Zeros,
                false => FirstContents::Copied,
            };
            regions.set(area.start, area.end, contents);
        });
        regions
    }

    /// A frame for the page: its first line, and whether a page had it before.
    fn frame(&mut self, page: u64) -> (u64, bool) {
        let kernel = match self.options.numbers {
            FrameNumbers::Kernel => self.out.frame(page),
            _ => None,
        };
        if kernel == Some(0) {
            self.out.tell(&RecorderEvent::Frame { page, frame: 0 });
        }
        let given = self.out.frames.give(kernel);
        let line = given.frame * PAGE_LINES;
        if given.again && self.options.clearing == Clearing::Unrecorded {
            self.emptied(line);
        }
        (line, given.again)
    }

    /// A frame whose bytes were there without a store of a processor: from a device, or another process.
    fn filled_frame(&mut self, page: u64) -> u64 {
        let (line, again) = self.frame(page);
        if again && self.options.clearing != Clearing::Unrecorded {
            self.emptied(line);
        }
        line
    }

    /// Takes a frame out of the caches without a write-back: its contents are gone.
    fn emptied(&mut self, first: u64) {
        for line in first..first + PAGE_LINES {
            self.caches.flush(line, true);
            self.out.captured.remove(&line);
        }
        self.out.forget(first, PAGE_LINES);
        self.out.tell(&RecorderEvent::Gone {
            line: first,
            lines: PAGE_LINES,
        });
    }

    fn clear_page(&mut self, vcpu: u32, first: u64) {
        if self.options.clearing == Clearing::Unrecorded {
            return;
        }
        self.cleared_pages += 1;
        let core = self.core(vcpu);
        counters::add_kernel(self.options.kernel.fault);
        for line in first..first + PAGE_LINES {
            counters::add_kernel(self.options.kernel.line);
            self.overwrite(core, line);
            self.out.zeros = first..line + 1;
        }
        self.out.zeros = 0..0;
        self.settled(first);
    }

    /// The kernel copies a frame to one that nobody has yet, because of a store to the address. What is copied is what the page
    /// holds now, and so the line that was stored to comes last.
    fn copy_page(&mut self, vcpu: u32, from: u64, to: u64, address: u64) {
        if self.options.clearing == Clearing::Unrecorded {
            return;
        }
        self.copied_pages += 1;
        counters::add_kernel(self.options.kernel.fault);
        let core = self.core(vcpu);
        let (page, last) = (address / PAGE_BYTES, address / 64 % PAGE_LINES);
        for at in (last + 1..PAGE_LINES).chain(0..=last) {
            counters::add_kernel(2 * self.options.kernel.line);
            (self.caches).access(core, from + at, NAMELESS, false, &mut self.out);
            self.overwrite(core, to + at);
            let bytes = self.out.bytes_at(page * PAGE_BYTES + at * 64);
            self.out.captured.insert(to + at, bytes);
        }
        self.settled(to);
    }

    fn overwrite(&mut self, core: usize, line: u64) {
        match self.options.clearing {
            Clearing::Fetched => (self.caches).access(core, line, NAMELESS, true, &mut self.out),
            _ => (self.caches).access(core, line, NAMELESS, true, &mut Unfetched(&mut self.out)),
        }
    }

    /// From now on memory has the frame's bytes.
    fn settled(&mut self, first: u64) {
        if self.out.captured.is_empty() {
            return;
        }
        for line in first..first + PAGE_LINES {
            self.out.captured.remove(&line);
        }
    }

    fn core(&self, vcpu: u32) -> usize {
        match vcpu {
            0 => 0,
            _ => vcpu as usize % self.firsts.len(),
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

    #[cold]
    fn leave(&mut self) {
        self.out.full = false;
        let dirty = self.caches.all_dirty(|_| true);
        let cached = self.cached(&dirty);
        self.out.leave(cached);
    }

    fn cached(&self, dirty: &[u64]) -> CacheContents {
        CacheContents {
            dirty: dirty.len() as u64,
            gone: (dirty.iter().filter(|line| self.out.is_gone(**line))).count() as u64,
            cleared: self.cleared_pages,
            copied: self.copied_pages,
            frames: self.out.frames.counted(),
        }
    }

    /// Marks the lines that were evicted before all stores to them had happened, once these have. What comes next is the
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
        for line in std::mem::take(&mut self.out.owed) {
            if self.out.to_come.contains(&line) {
                self.out.owed.push(line);
            } else {
                self.line(vcpu, line, NAMELESS, true);
            }
        }
    }

    fn line(&mut self, vcpu: u32, line: u64, name: u64, store: bool) {
        if self.level == Level::Cpu {
            if self.out.child && line < FILES {
                return; // its own memory, at the addresses of its parent's
            }
            if !store {
                return self.out.read(op::LOAD, line);
            }
            // A store to the caches is none of what goes past them, and memory has it already.
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

    /// A store past the caches: of a whole line sooner or later, as a rule.
    pub fn past_caches(&mut self, vcpu: u32, address: u64, size: u64) {
        let thread = counters::number(vcpu);
        self.settle(vcpu);
        for byte in address..address + size {
            let (line, bit) = (self.place(vcpu, byte, true), 1 << (byte % 64));
            let known = |b: &Buffer| b.line == line && b.thread == thread;
            let at = self
                .buffers
                .iter()
                .position(known)
                .unwrap_or_else(|| self.new_buffer(thread, line));
            if line >= FILES && self.out.now.is_some() {
                self.buffers[at].site = self.out.site();
            }
            self.buffers[at].bytes |= bit;
            if self.level == Level::Cpu && (byte == address + size - 1 || byte % 64 == 63) {
                self.buffers[at].held = self.out.bytes(line);
            }
            if self.buffers[at].bytes == u64::MAX {
                self.empty_buffers(|b| known(b));
            }
        }
    }

    fn new_buffer(&mut self, thread: u16, line: u64) -> usize {
        if self.level == Level::Memory && self.caches.flush(line, true) {
            self.out.write(op::EVICT, line);
        }
        if self.buffers.iter().filter(|b| b.thread == thread).count() == BUFFERS {
            let mut oldest = true;
            self.empty_buffers(|b| b.thread == thread && std::mem::take(&mut oldest));
        }
        self.buffers.push(Buffer {
            thread,
            line,
            bytes: 0,
            site: None,
            held: None,
        });
        self.buffers.len() - 1
    }

    fn empty_buffers(&mut self, mut which: impl FnMut(&Buffer) -> bool) {
        let out = &mut self.out;
        self.buffers.retain(|buffer| {
            let go = which(buffer);
            if go {
                out.write_past(buffer.line, buffer.site, None);
            }
            !go
        });
    }

    pub fn fence(&mut self, vcpu: u32) {
        self.settle(vcpu);
        let thread = counters::number(vcpu);
        self.empty_buffers(|buffer| buffer.thread == thread);
        self.out.fence();
    }

    pub fn flush(&mut self, vcpu: u32, code: u8, address: u64) {
        self.settle(vcpu);
        let line = self.place(vcpu, address, false);
        self.empty_buffers(|buffer| buffer.line == line);
        if threads::threaded() || threads::shared() {
            self.out.catch_up(line);
        }
        self.out.record(code, line, None);
        if self.level == Level::Memory && self.caches.flush(line, code != op::CLWB) {
            if threads::threaded() {
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            }
            self.out.write(op::WRITE_BACK, line);
        }
    }

    /// A system call has made what was stored to lines persistent, each range a first line and how many: flushed, and waited for.
    pub fn synced(&mut self, vcpu: u32, ranges: impl IntoIterator<Item = (u64, u64)>) {
        if self.level != Level::Cpu {
            return;
        }
        let thread = counters::number(vcpu);
        self.out.thread = thread;
        // Before the recorder, which knows all processes' stores, finds out which lines are sure.
        self.empty_buffers(|buffer| buffer.thread == thread);
        let ranges: Vec<(u64, u64)> = ranges.into_iter().collect();
        if !ranges.is_empty() {
            let site = self.out.site().map_or(0, |site| site + 1);
            self.out.tell(&RecorderEvent::Synced {
                thread,
                site,
                ranges,
            });
        }
    }

    /// The addresses `start..end` will no longer be readable, or be something else. Dirty lines stay in the caches, and what
    /// they hold is kept.
    pub fn vacate(&mut self, vcpu: u32, start: u64, end: u64) -> Vacated {
        self.settle(vcpu);
        // Stores that nobody told yet; later there is no memory to read them from.
        for address in take(&mut self.cleared, start, end) {
            self.touch(vcpu, address, 4, true);
        }
        for address in take(&mut self.late, start, end) {
            self.touch(vcpu, address, 1, true);
        }
        self.leaving(start, end);
        let files = match self.level {
            Level::Memory => self.out.maps.remove(start, end),
            Level::Cpu => self.out.maps.clone().remove(start, end),
        };
        if self.level == Level::Cpu {
            let lines = start / 64..end.div_ceil(64);
            self.empty_buffers(|buffer| lines.contains(&buffer.line));
            for (_, length, line) in &files {
                self.empty_buffers(|b| (*line..line + length / 64).contains(&b.line));
            }
            return Vacated::default();
        }
        self.regions.remove(start, end);
        self.caches.forget(start / 64..end.div_ceil(64));
        (self.out.blind).retain(|page| !(start..end).contains(&(page * PAGE_BYTES)));
        let (first, end) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let taken = self.out.frames.take(first, end);
        Vacated {
            pages: taken,
            range: (first, end),
            files,
        }
    }

    fn leaving(&mut self, start: u64, end: u64) {
        if self.level == Level::Cpu {
            return;
        }
        let (first, end) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let pages = self.out.frames.pages(first, end);
        let firsts: Vec<u64> = pages.iter().map(|(_, place)| place.line).collect();
        if !self.buffers.is_empty() {
            let of: BTreeSet<u64> = firsts.iter().copied().collect();
            self.empty_buffers(|buffer| of.contains(&(buffer.line / PAGE_LINES * PAGE_LINES)));
        }
        self.out.capture(self.caches.dirty_of(&firsts));
    }

    /// The pages `start..end` can no longer be read, but stay.
    pub fn hide(&mut self, vcpu: u32, start: u64, end: u64) {
        self.settle(vcpu);
        if self.level == Level::Cpu {
            self.vacate(vcpu, start, end);
            return;
        }
        self.leaving(start, end);
        let pages = self
            .out
            .frames
            .pages(start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        self.out.blind.extend(pages.iter().map(|(page, _)| *page));
    }

    pub fn show(&mut self, start: u64, end: u64) {
        if !self.out.blind.is_empty() {
            (self.out.blind).retain(|page| !(start..end).contains(&(page * PAGE_BYTES)));
        }
    }

    /// The frames of pages that went are free, and what a child had of its parent there is none of theirs any more.
    pub fn free(&mut self, vacated: &Vacated) {
        for (_, place) in &vacated.pages {
            if let Some(frame) = place.frame() {
                self.out.frames.free(frame);
            }
        }
        let (first, end) = vacated.range;
        self.out.frames.disinherit(first, end);
    }

    pub fn put_back(&mut self, vacated: Vacated) {
        for (start, length, line) in vacated.files {
            self.out.maps.add(start, length, line);
        }
        for (page, place) in vacated.pages {
            self.settle_in(page, place);
        }
    }

    /// At level `cpu`, what the trace knows of `start..end` is no longer so. At level `memory` it is of frames.
    pub fn gone(&mut self, start: u64, end: u64) {
        if self.level == Level::Memory {
            return;
        }
        let (line, lines) = (start / 64, end.saturating_sub(start) / 64);
        self.out.maps.remove(start, end);
        self.out.forget(line, lines);
        if !self.out.child {
            self.out.tell(&RecorderEvent::Gone { line, lines });
        }
    }

    /// Sends what goes past the caches, and takes in what nobody told yet.
    fn complete(&mut self) {
        self.settle(0);
        self.empty_buffers(|_| true);
        for address in std::mem::take(&mut self.cleared) {
            self.touch(0, address, 4, true);
        }
        for address in std::mem::take(&mut self.late) {
            self.touch(0, address, 1, true);
        }
    }

    /// The program ends here and the caches go on with the next: keeps what dirty lines hold.
    pub fn capture_all(&mut self) {
        self.complete();
        if self.level == Level::Memory {
            self.out.capture(self.caches.all_dirty(|_| true));
        }
    }

    /// The end, or what may be the end, and how it comes about.
    pub fn finish(&mut self, how: &RecorderEvent, areas: &[Area]) {
        if !self.out.on() {
            return;
        }
        self.complete();
        if self.level == Level::Memory {
            let dirty = self.caches.drain();
            let cached = self.cached(&dirty);
            for line in dirty {
                self.out.write(op::FINAL, line);
            }
            self.out.tell(&RecorderEvent::Cached(cached));
        }
        if *how == RecorderEvent::End {
            let shared = self.has_forked || self.options.follow_fork || self.options.one_order;
            let shared = shared.then(|| self.regions_of_the_kernel());
            let found = |at| shared.as_ref().and_then(|regions| regions.find(at));
            (self.out).tell_held(|at| found(at).is_some_and(FirstContents::is_shared));
        }
        for (thread, instructions) in counters::each().enumerate() {
            if self.out.child && instructions == 0 {
                continue; // its parent's
            }
            self.out.tell(&RecorderEvent::Thread {
                thread: thread as u16,
                instructions,
            });
        }
        self.remark(areas);
        self.out.tell(how);
    }

    /// Tells what else there is to know of the program that ends here.
    pub fn remark(&mut self, areas: &[Area]) {
        if self.out.unreadable > 0 {
            let note = format!(
                "{} dirty lines could not be read when they were evicted",
                self.out.unreadable
            );
            self.out.tell(&RecorderEvent::Note(note.into_bytes()));
        }
        if self.left_out > 0 {
            let remedy = match self.level {
                Level::Memory => "--follow-fork records each in a file of its own",
                Level::Cpu => "--pc --follow-fork records them in one order with it",
            };
            let note = format!(
                "{} child processes are not in this trace; {remedy}",
                self.left_out
            );
            self.out.tell(&RecorderEvent::Note(note.into_bytes()));
        }
        if self.out.sites.is_some() {
            self.tell_modules(areas);
        }
        for (_, name) in std::mem::take(&mut self.refused) {
            let note =
                format!("the program asked for {name}, which is not there under QEMU (ENOSYS)");
            self.out.tell(&RecorderEvent::Note(note.into_bytes()));
        }
        if let Some(checked) = &self.checked {
            self.out
                .tell(&RecorderEvent::Note(checked.note().into_bytes()));
        }
    }

    fn tell_modules(&mut self, areas: &[Area]) {
        for area in areas {
            if area.path.starts_with('/') {
                self.out.tell(&RecorderEvent::Module {
                    start: area.start,
                    end: area.end,
                    offset: area.offset,
                    path: area.path.clone().into_bytes(),
                });
            }
        }
    }
}

fn take(set: &mut BTreeSet<u64>, start: u64, end: u64) -> Vec<u64> {
    let mut taken = set.split_off(&start);
    set.append(&mut taken.split_off(&end));
    taken.into_iter().collect()
}
