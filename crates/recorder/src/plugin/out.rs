//! The way out of the plugin: records with their gaps and bytes, into the ring.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::sites::Sites;
use super::threads::{self, threaded};
use super::{counters, guest};
use crate::caches::MemoryTraffic;
use rustc_hash::FxHashMap;

use crate::codec::{CacheContents, Encoder, LONGEST_RECORD, Record, RecorderEvent, hash, op};
use crate::frames::{Frames, PAGE_BYTES, ZERO};
use crate::maps::{FILES, Maps};
use crate::options::{Level, PluginOptions};
use crate::ring::Ring;

const WAIT: Duration = Duration::from_micros(100);
/// After this many waits the plugin checks whether the reader still lives.
const LOOK: u32 = 1000;
const PAGE_LINES: u64 = 64;
pub const EVERYWHERE: Range<u64> = 0..u64::MAX;
/// The most rests of threads at a site, and in all.
const RESTS: (u8, u32) = (16, 4096);

/// A page as it was at its first touch, and which of its lines were stored to already.
struct FirstBytes {
    bytes: Box<[u8; PAGE_BYTES as usize]>,
    lost: u64,
}

pub struct Out {
    ring: Option<Ring>,
    encoder: Encoder,
    /// The number of instructions at the last record; a further program of this process begins with its predecessor's.
    pub last: u64,
    pub skip: u64,
    pub thread: u16,
    pub maps: Maps,
    /// The lines whose contents the trace has, by page; `None` if reads have no bytes.
    known: Option<FxHashMap<u64, u64>>,
    /// The addresses that the access stores to. They hold the new bytes already, so a line fetched for them has lost
    /// its own.
    pub stored: Range<u64>,
    before: FxHashMap<u64, FirstBytes>,
    /// The first lines of pages with bytes in the trace, if their contents at the end are wanted.
    verified: Option<BTreeSet<u64>>,
    pub frames: Frames,
    /// The bytes of dirty lines whose pages are gone or cannot be read.
    pub captured: FxHashMap<u64, [u8; 64]>,
    /// The lines of a frame while the kernel clears it.
    pub zeros: Range<u64>,
    pub blind: HashSet<u64>,
    /// Set if the reader wants no more, and waits to be told what the caches hold.
    pub full: bool,
    /// The pages whose frames were sent, with the kernel's page map.
    told: Option<HashSet<u64>>,
    /// The number of dirty lines that could not be read when they were evicted.
    pub unreadable: u64,
    /// Lines that the running block has yet to store to, although the caches count them as stored to.
    pub to_come: Vec<u64>,
    pub owed: Vec<u64>,
    pub sites: Option<Sites>,
    level: Level,
    /// Set for a child that writes to its parent's ring, in which only mapped files of its memory count.
    pub child: bool,
    /// The file of acknowledgements, by device and inode; what a child writes to another file is none.
    pub promised: Option<(u64, u64)>,
    pub execs: u32,
    /// This process's number, which marks its turns in a ring of several.
    process: u32,
    /// The running instruction: its thread, its address, whether it is locked.
    pub now: Option<(u32, u64, bool)>,
    /// The first byte and the length of the part of a line that is loaded, if a load is to have its place.
    pub loaded: Option<(u8, u8)>,
    /// The hash of the bytes that were last sent of each line of files, with places.
    held: FxHashMap<u64, u64>,
    /// The number of rests after a store, by its site and in all, and whether the running thread is to rest now.
    rests: Vec<u8>,
    rested: u32,
    pub rest: bool,
    pub resting: Duration,
}

fn identity(descriptor: i32) -> Option<(u64, u64)> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a call that fills the structure if it succeeds.
    let found =
        unsafe { (libc::fstat(descriptor, found.as_mut_ptr()) == 0).then(|| found.assume_init())? };
    Some((found.st_dev, found.st_ino))
}

impl Out {
    pub fn new(ring: Ring, options: &PluginOptions) -> Out {
        let skip = options.skip;
        Out {
            ring: Some(ring),
            encoder: Encoder::default(),
            last: skip,
            skip,
            thread: 0,
            maps: Maps::default(),
            known: options.read_data.then(FxHashMap::default),
            stored: 0..0,
            before: FxHashMap::default(),
            verified: options.verify.then(BTreeSet::new),
            frames: Frames::new(options.numbers, options.reuse),
            captured: FxHashMap::default(),
            zeros: 0..0,
            blind: HashSet::new(),
            full: false,
            told: options.page_map.then(HashSet::new),
            unreadable: 0,
            to_come: Vec::new(),
            owed: Vec::new(),
            sites: options.sites.then(Sites::default),
            level: options.level,
            child: false,
            promised: options.acks.and_then(identity),
            execs: 0,
            process: std::process::id(),
            now: None,
            loaded: None,
            held: FxHashMap::default(),
            rests: Vec::new(),
            rested: 0,
            rest: false,
            resting: Duration::from_micros(options.rest.into()),
        }
    }

    /// Whether writes to a descriptor are acknowledgements; it must have the number that was asked for.
    pub fn promises(&mut self, descriptor: i32) -> bool {
        if !self.child {
            self.promised = self.promised.or_else(|| identity(descriptor));
            return true;
        }
        self.promised.is_none() || self.promised == identity(descriptor)
    }

    /// Turns it into a child's, with a ring of its own or none, and nothing known yet.
    pub fn restart(&mut self, ring: Option<Ring>) {
        self.ring = ring;
        self.encoder = Encoder::default();
        self.frames.fork();
        self.captured.clear();
        self.verified = self.verified.as_ref().map(|_| BTreeSet::new());
        self.full = false;
        self.to_come.clear();
        self.owed.clear();
        (self.last, self.skip, self.unreadable) = (0, 0, 0);
        self.sites = self.sites.as_ref().map(|_| Sites::default());
        self.forget(0, u64::MAX);
    }

    /// Prepares a fork whose child will write to the same ring. Returns whether there is a ring.
    pub fn share(&mut self) -> bool {
        let Some(ring) = &self.ring else { return false };
        if !threads::shared() {
            // SAFETY: a ring that is shared is never unmapped, see `close`.
            unsafe { threads::share(&raw const ring.header().lock) };
            ring.header().turn.store(self.process, Ordering::Relaxed);
            ring.header().shared.store(1, Ordering::Release);
            self.tell(&RecorderEvent::Turn(self.process));
        }
        true
    }

    /// Turns it into a child's in the ring of its parent: it knows the files, and where the program is.
    pub fn restart_shared(&mut self) {
        let parent = std::mem::replace(&mut self.process, std::process::id());
        self.child = true;
        self.verified = None;
        self.captured.clear();
        self.to_come.clear();
        self.owed.clear();
        (self.last, self.skip, self.unreadable, self.full) = (0, 0, 0, false);
        let Some(ring) = &mut self.ring else { return };
        ring.catch_up();
        ring.header().turn.store(self.process, Ordering::Relaxed);
        self.tell(&RecorderEvent::Child {
            process: self.process,
            parent,
            sites: self.sites.as_ref().map_or(0, Sites::next),
            files: self.maps.files().len() as u32,
            execs: self.execs,
        });
    }

    /// Counts the processes in the shared ring: one more, or one fewer.
    pub fn forks(&self, more: bool) {
        if let Some(ring) = &self.ring {
            match more {
                true => ring.header().forks.fetch_add(1, Ordering::AcqRel),
                false => ring.header().forks.fetch_sub(1, Ordering::AcqRel),
            };
        }
    }

    /// Continues in a ring of several processes where another of them stopped.
    #[inline]
    fn take_turn(&mut self) {
        if threads::shared() {
            self.take_turn_of_several();
        }
    }

    fn take_turn_of_several(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        ring.catch_up();
        let turn = &ring.header().turn;
        if turn.load(Ordering::Relaxed) != self.process {
            turn.store(self.process, Ordering::Relaxed);
            let bytes = self.encoder.event(&RecorderEvent::Turn(self.process));
            self.send(&bytes);
        }
    }

    /// Closes the ring, which is no longer read. A ring whose lock others hold stays mapped.
    fn close(&mut self) {
        let ring = self.ring.take();
        if threads::shared() {
            std::mem::forget(ring);
        }
    }

    pub fn on(&self) -> bool {
        self.ring.is_some()
    }

    fn send(&mut self, bytes: &[u8]) {
        let Some(ring) = &mut self.ring else { return };
        let mut waits = 0u32;
        while !ring.write(bytes) {
            waits += 1;
            let gone = waits.is_multiple_of(LOOK)
                && !Ring::lives(ring.header().reader.load(Ordering::Relaxed));
            if ring.header().stop.load(Ordering::Relaxed) != 0 {
                self.full = true;
                return;
            }
            if gone {
                self.close();
                return;
            }
            std::thread::sleep(WAIT);
        }
    }

    /// Tells a reader that wants no more what the caches hold, and ends.
    pub fn leave(&mut self, cached: CacheContents) {
        let Some(ring) = &self.ring else { return };
        let header = ring.header();
        for (word, value) in header.cached.iter().zip(cached.words()) {
            word.store(value, Ordering::Relaxed);
        }
        header.told.store(1, Ordering::Release);
        self.close();
    }

    pub fn tell(&mut self, event: &RecorderEvent) {
        if self.on() {
            self.take_turn();
            let bytes = self.encoder.event(event);
            self.send(&bytes);
        }
    }

    /// The number of the running instruction's site, which is sent if it is new.
    pub fn site(&mut self) -> Option<u32> {
        let (vcpu, pc, locked) = self.now?;
        let mut sites = self.sites.take()?;
        let number = sites.number(vcpu, pc, |parent, at| {
            let locked = locked && at == pc;
            self.tell(&RecorderEvent::Site {
                parent,
                pc: at,
                locked,
            });
        });
        self.sites = Some(sites);
        Some(number)
    }

    /// The number of the part of a line that the running instruction loads, which is sent if it is new.
    fn site_of_load(&mut self) -> Option<u32> {
        let part = self.loaded.take()?;
        let site = self.site()?;
        let mut sites = self.sites.take()?;
        let number = sites.part(site, part, |parent, pc| {
            self.tell(&RecorderEvent::Site {
                parent,
                pc,
                locked: false,
            });
        });
        self.sites = Some(sites);
        Some(number)
    }

    /// Sends a record. Records of mapped files and fences have their site, if sites are wanted; loads only among
    /// several threads.
    #[inline]
    pub fn record(&mut self, op: u8, line: u64, data: Option<[u8; 64]>) {
        let site = match self.now {
            Some(_) if op == op::LOAD && line >= FILES => self.site_of_load(),
            Some(_) if op == op::FENCE || line >= FILES && op != op::LOAD => self.site(),
            _ => None,
        };
        self.record_at(op, line, data, site);
        if let (op::STORE, Some(site)) = (op, site)
            && !self.resting.is_zero()
            && (threaded() || threads::shared())
        {
            self.rest_at(site as usize);
        }
    }

    /// Has the thread rest after a store to a file, a few times at each site, so that another thread may load bytes
    /// that are not persistent yet. A recording of threads that hardly overlap never shows that.
    fn rest_at(&mut self, site: usize) {
        if self.rests.len() <= site {
            self.rests.resize(site + 1, 0);
        }
        if self.rests[site] < RESTS.0 && self.rested < RESTS.1 {
            self.rests[site] += 1;
            self.rested += 1;
            self.rest = true;
        }
    }

    #[inline]
    pub fn record_at(&mut self, op: u8, line: u64, data: Option<[u8; 64]>, site: Option<u32>) {
        self.take_turn();
        let Some(ring) = &self.ring else { return };
        let now = counters::all();
        if now < self.skip {
            return;
        }
        let header = ring.header();
        if !self.child {
            header.instructions.store(now, Ordering::Relaxed);
        }
        if header.stop.load(Ordering::Relaxed) != 0 {
            self.full = true;
            return;
        }
        let gap = now.saturating_sub(self.last);
        self.last = now.max(self.last);
        if self.told.is_some() {
            self.tell_frame(line);
        }
        if let Some(pages) = &mut self.verified
            && data.is_some()
        {
            pages.insert(line / PAGE_LINES * PAGE_LINES);
        }
        let mut bytes = [0; LONGEST_RECORD];
        let record = Record {
            gap,
            thread: self.thread,
            op,
            line,
            data,
            site,
        };
        let length = self.encoder.record(&mut bytes, &record);
        self.send(&bytes[..length]);
    }

    pub fn fence(&mut self) {
        self.record(op::FENCE, self.encoder.line(), None);
    }

    /// Notes the bytes that the trace has of a line of a file. Returns whether they are new.
    #[inline]
    fn holds(&mut self, line: u64, data: &[u8; 64]) -> bool {
        if line < FILES || self.level != Level::Cpu || self.sites.is_none() {
            return false;
        }
        let now = hash(data);
        self.held.insert(line, now) != Some(now)
    }

    /// Sends a store that another thread has made and not sent yet, before a flush of the line, because the flush wrote
    /// it back too. It has no place, and the thread's own record follows.
    pub fn catch_up(&mut self, line: u64) {
        if let Some(data) = self.bytes(line).filter(|data| self.holds(line, data)) {
            self.record_at(op::STORE, line, Some(data), None);
        }
    }

    /// Sends a record with the line's present bytes; nothing if they cannot be read.
    #[inline]
    pub fn write(&mut self, op: u8, line: u64) {
        match self.bytes(line) {
            Some(data) => {
                self.now_known(line);
                self.holds(line, &data);
                self.record(op, line, Some(data));
            }
            None => self.unreadable += 1,
        }
        if !self.captured.is_empty() {
            self.captured.remove(&line);
        }
    }

    /// Sends a write of a line past the caches, from a site: with the bytes `held` then, or with the present ones.
    pub fn write_past(&mut self, line: u64, site: Option<u32>, held: Option<[u8; 64]>) {
        match held.or_else(|| self.bytes(line)) {
            Some(data) => {
                self.now_known(line);
                self.holds(line, &data);
                self.record_at(op::NON_TEMPORAL, line, Some(data), site);
            }
            None => self.unreadable += 1,
        }
    }

    /// Sends a read, with the bytes if they are wanted and new.
    pub fn read(&mut self, op: u8, line: u64) {
        let data = match self.known.is_some() {
            true if self.is_stored(line) => self.bytes_before(line),
            true => self.bytes(line).or_else(|| self.bytes_shown(line)),
            false => None,
        };
        let data = data.filter(|_| self.now_known(line));
        self.record(op, line, data);
    }

    /// The bytes of a line of a file or a parent that a page shows.
    fn bytes_shown(&self, line: u64) -> Option<[u8; 64]> {
        let address = self.frames.shown_at(line)?;
        match self.blind.contains(&(address / PAGE_BYTES)) {
            true => None,
            false => guest::read(address),
        }
    }

    /// Keeps the bytes of a page of a shared file at its first touch, for lines that are fetched for a store.
    pub fn first_touch(&mut self, line: u64, address: u64) {
        if self.known.is_none() {
            return;
        }
        if let Some(bytes) = guest::read::<{ PAGE_BYTES as usize }>(address) {
            let within = |at: u64| at < self.stored.end && self.stored.start < at + 64;
            let lost = (0..PAGE_LINES).filter(|number| within(address + number * 64));
            let lost = lost.fold(0, |lost, number| lost | 1 << number);
            let page = FirstBytes {
                bytes: Box::new(bytes),
                lost,
            };
            self.before.insert(line / PAGE_LINES, page);
        }
    }

    fn bytes_before(&self, line: u64) -> Option<[u8; 64]> {
        let page = self.before.get(&(line / PAGE_LINES))?;
        let number = line % PAGE_LINES;
        let bytes = page.bytes[number as usize * 64..][..64].try_into();
        (page.lost >> number & 1 == 0).then(|| bytes.expect("64 bytes"))
    }

    /// Whether the present access stores to the line.
    fn is_stored(&self, line: u64) -> bool {
        let place = || self.address(line).or_else(|| self.frames.shown_at(line));
        let within = |at: u64| at < self.stored.end && self.stored.start < at + 64;
        self.stored == EVERYWHERE || !self.stored.is_empty() && place().is_some_and(within)
    }

    /// Whether the line's contents are new to the trace, which has those of reads.
    fn now_known(&mut self, line: u64) -> bool {
        let sent = self.skip == 0 || counters::all() >= self.skip;
        let Some(known) = self.known.as_mut().filter(|_| sent) else {
            return false;
        };
        let lines = known.entry(line / PAGE_LINES).or_default();
        let bit = 1 << (line % PAGE_LINES);
        let new = *lines & bit == 0;
        *lines |= bit;
        new
    }

    pub fn forget(&mut self, line: u64, lines: u64) {
        let pages = line / PAGE_LINES..line.saturating_add(lines).div_ceil(PAGE_LINES);
        let few = |held: usize| pages.end - pages.start < held as u64;
        match &mut self.known {
            Some(known) if few(known.len()) => {
                for page in pages.clone() {
                    known.remove(&page);
                }
            }
            Some(known) => known.retain(|page, _| !pages.contains(page)),
            None => {}
        }
        if let Some(told) = &mut self.told {
            told.retain(|page| !pages.contains(page));
        }
    }

    fn address(&self, line: u64) -> Option<u64> {
        // At level `cpu` no page has a frame, and lines are addresses.
        let address = match line < FILES && self.level == Level::Memory {
            true => self.frames.address(line),
            false => self.maps.address(line),
        }?;
        let blind = !self.blind.is_empty() && self.blind.contains(&(address / PAGE_BYTES));
        (!blind).then_some(address)
    }

    /// The bytes of a line of memory, or those it had when its page went.
    pub fn bytes(&self, line: u64) -> Option<[u8; 64]> {
        match self.address(line) {
            Some(address) => self.bytes_at(address, line),
            None if self.zeros.contains(&line) => Some([0; 64]),
            None if line / PAGE_LINES == ZERO && self.level == Level::Memory => Some([0; 64]),
            None => self.captured.get(&line).copied(),
        }
    }

    /// The bytes of a line that lies at this address. A file may have been cut there meanwhile, by anybody, so the
    /// kernel is asked for its lines.
    fn bytes_at(&self, address: u64, line: u64) -> Option<[u8; 64]> {
        match line < FILES {
            true => Some(self.memory_at(address)),
            false => guest::read(address),
        }
    }

    /// The bytes at an address of memory that is no file's.
    pub fn memory_at(&self, address: u64) -> [u8; 64] {
        // SAFETY: the guest has touched the page, which is mapped at this address of ours, and we learn of unmapping
        // before it happens. Another thread may be writing there; then the line is dirty again and is sent again.
        unsafe { guest::host(address).cast::<[u8; 64]>().read_volatile() }
    }

    /// Sends the contents of all pages with lines in the trace, except for those that others may store to.
    pub fn tell_held(&mut self, is_others: impl Fn(u64) -> bool) {
        let pages = self.verified.take().filter(|_| !self.child);
        for first in pages.unwrap_or_default() {
            for line in first..first + PAGE_LINES {
                let place = self.address(line).filter(|address| !is_others(*address));
                if let Some(bytes) = place.and_then(guest::read::<64>) {
                    let hash = hash(&bytes);
                    self.tell(&RecorderEvent::Held { line, hash });
                }
            }
        }
    }

    pub fn is_gone(&self, line: u64) -> bool {
        match line < FILES {
            true => self.frames.address(line).is_none(),
            false => self.maps.address(line).is_none(),
        }
    }

    /// Keeps the bytes of dirty lines that soon cannot be read.
    pub fn capture(&mut self, lines: Vec<u64>) {
        for line in lines {
            match self.address(line) {
                Some(address) => {
                    (self.bytes_at(address, line)).map(|held| self.captured.insert(line, held))
                }
                None => continue, // kept already, or never readable
            };
        }
    }

    fn tell_frame(&mut self, line: u64) {
        let page = line / PAGE_LINES;
        let fresh = line < FILES && self.told.as_mut().is_some_and(|told| told.insert(page));
        if fresh && let Some(frame) = self.frame(page) {
            self.tell(&RecorderEvent::Frame { page, frame });
        }
    }

    /// The frame that the kernel gave a guest's page; 0 without the right to know.
    pub fn frame(&self, page: u64) -> Option<u64> {
        let mut entry = [0; 8];
        let map = File::open("/proc/self/pagemap").ok()?;
        let host = guest::host(page * PAGE_BYTES).addr() as u64;
        map.read_exact_at(&mut entry, host / PAGE_BYTES * 8).ok()?;
        // Documentation/admin-guide/mm/pagemap.rst: bits 0-54, if bit 63 says that the page is present.
        let entry = u64::from_le_bytes(entry);
        (entry >> 63 == 1).then_some(entry & ((1 << 55) - 1))
    }
}

impl MemoryTraffic for Out {
    fn read(&mut self, line: u64) {
        Out::read(self, op::READ, line);
    }

    fn evict(&mut self, line: u64) {
        if self.to_come.contains(&line) {
            self.owed.push(line);
        }
        if threaded() {
            // A store that found its line dirty in a cache comes before the tag went, and so before these bytes.
            std::sync::atomic::fence(Ordering::SeqCst);
        }
        self.write(op::EVICT, line);
    }
}
