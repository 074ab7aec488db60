//! Everything that the callbacks share: the caches, the write-combining buffers, the way out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use iced_x86::Instruction;

use super::api::{Api, PAGE_READ};
use super::out::Out;
use super::plan::Known;
use super::verify::Checked;
use super::{counters, grouped};
use crate::caches::{Caches, First};
use crate::codec::{Event, op};
use crate::maps::FILES;
use crate::options::{Level, Options};
use crate::ring::Ring;

/// Lines that one thread can be writing past the caches at a time (Intel's processors have ten or twelve buffers).
const BUFFERS: usize = 10;
/// Accesses after which QEMU's descriptions are known to be as expected.
const CHECKED: u32 = 100_000;
/// Bytes of a child's ring.
const CHILD_RING: u64 = 4 << 20;

/// A line being written past the caches.
struct Buffer {
    thread: u16,
    line: u64,
    /// Bit i: byte i was written.
    bytes: u64,
    /// Of the latest store to it.
    site: Option<u32>,
    /// At level `cpu`, what the line held after that store.
    held: Option<[u8; 64]>,
}

/// A flush instruction: its operation's code, and where it is.
pub struct Flush {
    pub code: u8,
    pub instruction: Instruction,
    pub pc: u64,
}

#[repr(C)]
pub struct State {
    /// The first core's L1, at which every access of the only thread looks; nothing when there are more.
    pub first: First,
    /// Accesses whose description is still held against the API.
    pub to_check: u32,
    pub api: Api,
    pub level: Level,
    /// Each core's L1.
    pub firsts: Vec<First>,
    pub caches: Caches,
    pub out: Out,
    buffers: Vec<Buffer>,
    pub options: Options,
    /// Arguments of the system call that each thread is in.
    pub calls: HashMap<u32, [u64; 6]>,
    /// Signal handlers: where they begin, the kernel has just written a frame.
    pub handlers: HashSet<u64>,
    /// Where the kernel clears a thread's number when it ends.
    pub cleared: BTreeSet<u64>,
    pub heap_end: u64,
    /// Addresses of lines whose stores may have come after their mark was taken.
    pub late: BTreeSet<u64>,
    /// Flush instructions with their operations' codes, which QEMU's translations point to.
    pub flushes: HashMap<(Instruction, u64), &'static Flush>,
    /// What the callbacks of translated blocks are given.
    pub known: Known,
    /// What was checked, if that is wanted.
    pub checked: Option<Checked>,
    /// First lines of the files that were copied before they were mapped for writing.
    pub grounds: HashSet<u64>,
    /// Whether registers are as of the instruction, and not of the last load or store.
    pub registers_are_stored: bool,
}

impl State {
    pub fn new(api: Api, options: Options, out: Out) -> Result<State, String> {
        let caches = Caches::new(&options.caches)?;
        let firsts: Vec<First> = (0..caches.cores()).map(|core| caches.first(core)).collect();
        Ok(State {
            first: firsts[0],
            to_check: CHECKED,
            api,
            level: options.level,
            firsts,
            caches,
            out,
            buffers: Vec::new(),
            options,
            calls: HashMap::new(),
            handlers: HashSet::new(),
            cleared: BTreeSet::new(),
            heap_end: 0,
            late: BTreeSet::new(),
            flushes: HashMap::new(),
            known: Known::default(),
            checked: None,
            grounds: HashSet::new(),
            registers_are_stored: false,
        })
    }

    /// A child begins with cold caches and a ring of its own, or records nothing.
    pub fn restart_in_child(&mut self) {
        counters::reset();
        grouped::reset();
        self.caches.clear();
        self.buffers.clear();
        self.late.clear();
        let follow = self.options.follow_fork && self.out.on();
        let process = std::process::id();
        let ring = follow.then(|| self.child_ring(process)).flatten();
        self.out.restart(ring);
    }

    fn child_ring(&self, process: u32) -> Option<Ring> {
        use std::sync::atomic::Ordering;
        let path = Path::new(&self.options.folder).join(Ring::name(process));
        let ring = Ring::create(&path, CHILD_RING, self.options.reader).ok()?;
        ring.header().writer.store(process, Ordering::Relaxed);
        ring.header().begun.store(1, Ordering::Release);
        Some(ring)
    }

    /// Another thread is about to begin.
    pub fn more_threads(&mut self) {
        super::THREADED.store(true, std::sync::atomic::Ordering::SeqCst);
        self.first = First::NOTHING;
        self.caches.use_cores(usize::MAX);
    }

    /// Names the lines of `length` bytes at `start` from `line` on; the caches have none of them by their address.
    pub fn map_file(&mut self, start: u64, length: u64, line: u64) {
        let lines = start / 64..start.saturating_add(length).div_ceil(64);
        self.caches.flush_range(lines.start, lines.end);
        self.out.maps.add(start, length, line);
    }

    /// An access of `size` bytes; what it stored is in memory already.
    pub fn access(&mut self, vcpu: u32, address: u64, size: u64, store: bool) {
        self.settle(vcpu);
        if address % 64 + size <= 64 && self.out.maps.is_empty() {
            return self.line(vcpu, address / 64, store);
        }
        let end = address.saturating_add(size.max(1));
        let mut at = address;
        while at < end {
            let line = self.out.maps.line(at);
            self.line(vcpu, line, store);
            at = (at | 63) + 1;
        }
    }

    /// Whether the first core's L1 has the line, dirty if that is wanted, and needs no more than to know of its use. For the
    /// one line of an access of the only thread.
    #[inline(always)]
    pub fn again(&mut self, address: u64, store: bool) -> bool {
        self.to_check == 0 && self.caches.again(address / 64, store)
    }

    /// Tells that the groups of a list have stores to come.
    #[inline(always)]
    pub fn expect(&mut self, list: usize) {
        if list != 0 {
            for at in 0..self.known.open(list).len() {
                self.known.open(list)[at].expect(self);
            }
        }
    }

    /// Marks the lines that were evicted before all stores to them had happened, once these have. What comes next is the
    /// thread's.
    #[inline]
    fn settle(&mut self, vcpu: u32) {
        self.out.thread = counters::number(vcpu);
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
                self.line(vcpu, line, true);
            }
        }
    }

    fn line(&mut self, vcpu: u32, line: u64, store: bool) {
        if self.level == Level::Cpu {
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
        let core = match vcpu {
            0 => 0,
            _ => vcpu as usize % self.firsts.len(),
        };
        self.caches.access(core, line, store, &mut self.out);
    }

    /// A store past the caches: of a whole line sooner or later, as a rule.
    pub fn past_caches(&mut self, vcpu: u32, address: u64, size: u64) {
        let thread = counters::number(vcpu);
        self.settle(vcpu);
        for byte in address..address + size {
            let (line, bit) = (self.out.maps.line(byte), 1 << (byte % 64));
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

    /// Sends the buffers that `which` wants.
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
        let thread = counters::number(vcpu);
        self.out.thread = thread;
        self.empty_buffers(|buffer| buffer.thread == thread);
        self.out.fence();
    }

    pub fn flush(&mut self, vcpu: u32, code: u8, address: u64) {
        self.settle(vcpu);
        let line = self.out.maps.line(address);
        self.empty_buffers(|buffer| buffer.line == line);
        self.out.record(code, line, None);
        if self.level == Level::Memory && self.caches.flush(line, code != op::CLWB) {
            if super::threaded() {
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            }
            self.out.write(op::WRITE_BACK, line);
        }
    }

    /// A system call has made the lines that `which` wants persistent: flushed, and waited for.
    pub fn synced(&mut self, vcpu: u32, which: impl Fn(u64) -> bool) {
        if self.level != Level::Cpu {
            return;
        }
        self.out.thread = counters::number(vcpu);
        let all = std::mem::take(&mut self.out.dirty);
        let (synced, left) = all.into_iter().partition(|&line| which(line));
        self.out.dirty = left;
        let synced: BTreeSet<u64> = synced;
        for &line in &synced {
            self.out.record(op::CLWB, line, None);
        }
        if !synced.is_empty() {
            self.fence(vcpu);
        }
    }

    /// Evicts what the caches have of `first..end`, while it can still be read.
    fn evict(&mut self, first: u64, end: u64) {
        self.empty_buffers(|buffer| (first..end).contains(&buffer.line));
        for line in self.caches.flush_range(first, end) {
            self.out.write(op::EVICT, line);
        }
    }

    /// The addresses `start..end` will no longer be readable, or be something else.
    pub fn vacate(&mut self, vcpu: u32, start: u64, end: u64) {
        self.settle(vcpu);
        // Stores that nobody told yet; later there is no memory to read them from.
        for address in take(&mut self.cleared, start, end) {
            self.access(vcpu, address, 4, true);
        }
        for address in take(&mut self.late, start, end) {
            self.access(vcpu, address, 1, true);
        }
        self.evict(start / 64, end.div_ceil(64));
        for (_, length, line) in self.out.maps.clone().remove(start, end) {
            self.evict(line, line + length / 64);
        }
    }

    /// What the trace knows of `start..end` is no longer so.
    pub fn gone(&mut self, start: u64, end: u64) {
        let (line, lines) = (start / 64, end.saturating_sub(start) / 64);
        self.out.maps.remove(start, end);
        self.out.forget(line, lines);
        self.out.tell(&Event::Gone { line, lines });
    }

    /// Sends what is dirty, as `op`, and what nobody told yet.
    pub fn empty(&mut self, op: u8) {
        self.settle(0);
        self.empty_buffers(|_| true);
        for address in std::mem::take(&mut self.cleared) {
            self.access(0, address, 4, true);
        }
        for address in std::mem::take(&mut self.late) {
            self.access(0, address, 1, true);
        }
        if self.level == Level::Memory {
            for line in self.caches.drain() {
                self.out.write(op, line);
            }
        }
    }

    /// The end, or what may be the end, and how it comes about.
    pub fn finish(&mut self, how: &Event) {
        if !self.out.on() {
            return;
        }
        self.empty(op::FINAL);
        for (thread, instructions) in counters::each().enumerate() {
            self.out.tell(&Event::Thread {
                thread: thread as u16,
                instructions,
            });
        }
        self.remark();
        self.out.tell(how);
    }

    /// Tells what else there is to know of the program that ends here.
    pub fn remark(&mut self) {
        if self.out.unreadable > 0 {
            let note = format!(
                "{} dirty lines could not be read when they were evicted",
                self.out.unreadable
            );
            self.out.tell(&Event::Note(note.into_bytes()));
        }
        if self.out.sites.is_some() {
            self.tell_modules();
        }
        if let Some(checked) = &self.checked {
            self.out.tell(&Event::Note(checked.note().into_bytes()));
        }
        if !self.registers_are_stored && !self.flushes.is_empty() {
            let note = "this QEMU shows registers as of the last load or store: some flushes' addresses may be stale";
            self.out.tell(&Event::Note(note.into()));
        }
    }

    /// Where the program's files are in memory.
    fn tell_modules(&mut self) {
        for mapping in self.mappings() {
            if mapping.path.starts_with('/') {
                self.out.tell(&Event::Module {
                    start: mapping.start,
                    end: mapping.end,
                    offset: mapping.offset,
                    path: mapping.path.into_bytes(),
                });
            }
        }
    }

    /// What the program has mapped and can read, as the kernel has it; QEMU loads the program itself without a system call of
    /// the program's.
    pub fn mappings(&self) -> Vec<Mapping> {
        // SAFETY: QEMU's variable, set before any code of the guest ran.
        let base = unsafe { *self.api.guest_base } as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mapping = |line: &str| {
            let hex = |text: &str| u64::from_str_radix(text, 16).ok();
            // Start and end, permissions, offset, device, inode, path.
            let mut words = line.splitn(6, ' ');
            let (start, end) = words.next()?.split_once('-')?;
            let offset = hex(words.nth(1)?)?;
            let path = words.nth(2)?.trim_start();
            let start = hex(start)?.checked_sub(base)?;
            // What the program does not see is the emulator's.
            ((self.api.page_flags)(start) & PAGE_READ != 0).then_some(Mapping {
                start,
                end: hex(end)? - base,
                offset,
                path: path.trim_end_matches(" (deleted)").to_owned(),
            })
        };
        maps.lines().filter_map(mapping).collect()
    }
}

/// A part of the program's memory.
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Where it is in its file.
    pub offset: u64,
    /// Its file, if it begins with a slash.
    pub path: String,
}

/// Takes the addresses in `start..end` out of a set.
fn take(set: &mut BTreeSet<u64>, start: u64, end: u64) -> Vec<u64> {
    let mut taken = set.split_off(&start);
    set.append(&mut taken.split_off(&end));
    taken.into_iter().collect()
}
