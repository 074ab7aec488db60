//! What the agents of a [`super::System`] stand on: page tables, caches, the controller, the engine.
//! Requests are handled when their operation executes, in the order of operations; what memory does not take
//! at once waits in one line, and until that is empty no operation that needs memory goes on.

use std::collections::VecDeque;

use super::epochs::{EpochCounts, Epochs};
use super::locks::Locks;
use super::untimed::noise;
use super::{
    Adversity, AgentAnswer, Caches, Hit, Mark, OutOfMemory, PageTable, Phase, Waiter, WriteBack,
};
use crate::controller::{self, Class, Persist};
use crate::engine::Request;
use crate::latency::Latencies;
use crate::line::{Line, Lines, Logical, Virtual, ZERO_LINE};
use crate::mechanisms::{
    CAPACITY_EVICTION, DIRTY_EVICTION, MARKED_CAPACITY_EVICTION, MARKED_EVICTION, Mechanism,
};
use crate::medium::params::JOINED_EVICTION;
use crate::memory::Memory;
use crate::plan::{At, Fetched, journal};
use crate::stats::Direction;
use crate::units::Time;

/// The tags of reads that go past the caches consist of this bit and the reader's own name for the read.
const PAST_CACHES: u64 = 1 << 62;
/// The tags of writes have this bit, those of reads have not.
const WRITE: u64 = 1 << 63;

#[derive(Default)]
struct Read {
    line: Logical,
    waiters: Vec<Waiter>,
}

/// A write that is not accepted yet: its line, if it writes one, and everybody who waits.
#[derive(Clone, Copy)]
struct WaitingWrite {
    line: Option<Logical>,
    cores: u64,
}

/// A victim of the caches that memory has not taken yet.
struct Victim {
    core: usize,
    waiting: u64,
    written: WriteBack,
    arrival: Time,
}

/// The content of memory before anybody writes it.
pub trait Backing: Send {
    /// The bytes of a line.
    fn line(&self, line: Logical) -> Line;
}

struct Probed {
    line: Logical,
    name: u32,
    got: Fetched,
}

/// The agents' access to memory.
pub struct Port {
    pub(super) memory: Memory,
    pub(super) caches: Caches,
    pub(super) pages: PageTable,
    pub(super) adversity: Option<Adversity>,
    /// Whether the last operation has left a counter-atomic variable in a dirty line.
    marked_store: bool,
    /// Reads, indexed by name less one, and names that are free.
    reading: Vec<Read>,
    free_reads: Vec<u32>,
    writing: Vec<WaitingWrite>,
    free_writes: Vec<u64>,
    victims: VecDeque<Victim>,
    probed: Vec<Probed>,
    pub(super) backing: Option<Box<dyn Backing>>,
    rung: Vec<(usize, Time)>,
    pub(super) locks: Locks,
    pub(super) logs: Vec<Lines>,
    pub(super) counted: bool,
    pub(super) admitted: u64,
    pub(super) reads: Latencies,
    pub(super) writes: Latencies,
    pub(super) epochs: Option<Box<Epochs>>,
    pub(super) last_answer: Time,
    pub(super) fences: u64,
    pub(super) committed: Vec<u64>,
    transactions: Vec<u64>,
    logging: u64,
}

impl Port {
    /// Whether memory takes a request now.
    pub fn takes(&self) -> bool {
        self.victims.is_empty() && self.memory.accepts()
    }

    /// The present time. It is never after the operation that asks, unless that has waited for memory.
    pub fn now(&self) -> Time {
        self.memory.now()
    }

    /// The time of memory's next event.
    pub fn next_event(&self) -> Time {
        self.memory.next_event()
    }

    /// The caches of all cores.
    #[inline]
    pub fn caches(&mut self) -> &mut Caches {
        &mut self.caches
    }

    /// Translates `line` of agent `core`.
    ///
    /// # Errors
    /// Its page is new, and there is no frame for it.
    #[inline]
    pub fn translate(&mut self, core: usize, line: Virtual) -> Result<Logical, OutOfMemory> {
        self.pages.translate(core, line)
    }

    /// Reads a line without looking for it in the caches; agent `core` will be told under the name `id`.
    pub fn read_past_caches(&mut self, core: usize, id: u64, line: Logical, arrival: Time) {
        let class = self.class(line);
        let (request, now) = self.request(core, PAST_CACHES | id, Direction::Read, arrival);
        self.memory.read(request, now, line, class);
    }

    /// Learns what `line` held before the run, if that is `known` and the run has not written it.
    #[inline]
    pub fn preload(&mut self, line: Logical, known: Option<&Line>) {
        if let Some(data) = known {
            self.memory.preload(line, data);
        }
    }

    /// Writes a line without looking for it in the caches. Nobody will be told.
    pub fn write_past_caches(&mut self, core: usize, line: Logical, data: &Line, arrival: Time) {
        self.probed.retain(|probed| probed.line != line); // it would bring old bytes
        let class = self.class(line);
        let (request, now) = self.request(core, WRITE, Direction::Write, arrival);
        let write = controller::Write {
            class,
            core: core as u32,
            ..controller::Write::new(line, At::past(data))
        };
        self.memory.write(request, now, write);
    }

    /// Reads a line past the caches at no time and no cost. Only state changes, and nobody is told.
    pub fn pass_read(&mut self, line: Logical) {
        let class = self.class(line);
        self.memory.pass_read(line, class);
    }

    /// Writes a line past the caches at no time and no cost.
    pub fn pass_write(&mut self, line: Logical, data: &Line) {
        self.memory.write_at_once(line, data);
    }

    /// Whether a store of agent `core` to `line` is a fault.
    #[inline]
    pub fn is_protected(&self, core: usize, line: Virtual) -> bool {
        self.pages.is_protected(core, line)
    }

    /// Tells agent `agent` that a core has rung its doorbell.
    pub fn ring(&mut self, agent: usize, at: Time) {
        self.rung.push((agent, at));
    }

    /// Whether a read has not returned the last write to its line, which ends the run.
    #[inline]
    pub fn is_wrong(&self) -> bool {
        self.memory.wrong().is_some()
    }

    /// Takes the lock for `core` if it is free, and returns whether it was. If it was not, a doorbell tells the core
    /// when it has the lock.
    pub fn lock(&mut self, core: usize, lock: u64) -> bool {
        self.locks.take(core, lock)
    }

    /// Releases the lock of `core`, to the core that has waited longest.
    pub fn unlock(&mut self, core: usize, lock: u64, at: Time) {
        if let Some(next) = self.locks.give_up(core, lock) {
            self.ring(next, at);
        }
    }

    /// Whether somebody has rung and has not been heard yet.
    #[inline]
    pub fn rings(&self) -> bool {
        !self.rung.is_empty()
    }

    /// Whether there are answers that nobody has heard: what waits on chip is read at once.
    #[inline]
    pub fn is_answered(&self) -> bool {
        self.memory.has_answers()
    }

    /// The lines that memory has read and written so far.
    pub fn traffic(&self) -> [u64; 2] {
        let total = self.memory.ledger().grand_total();
        [total.medium_reads, total.medium_writes]
    }

    /// Asks for a line that no cache is to take. Returns true if a cache holds it and so answers. Otherwise memory
    /// answers `waiter`; a line on its way already is not read again.
    pub fn probe(&mut self, waiter: Waiter, line: Logical, arrival: Time) -> bool {
        if let Some(hit) = self.caches.probe(line) {
            if hit.filling != 0 {
                self.join(waiter, hit);
            }
            return hit.filling == 0;
        }
        if let Some(probed) = self.probed.iter().find(|probed| probed.line == line) {
            self.reading[probed.name as usize - 1].waiters.push(waiter);
            return false;
        }
        let (name, got) = self.read_for(waiter, line, arrival);
        self.probed.push(Probed { line, name, got });
        false
    }

    /// Whether a [`Port::probe`] of `line` would ask memory.
    pub fn would_ask(&self, line: Logical) -> bool {
        self.caches.probe(line).is_none() && self.probed.iter().all(|probed| probed.line != line)
    }

    /// Has memory read a line for `waiter`. Returns the read's name, and the line.
    fn read_for(&mut self, waiter: Waiter, line: Logical, arrival: Time) -> (u32, Fetched) {
        let name = self.free_reads.pop().unwrap_or_else(|| {
            self.reading.push(Read::default());
            self.reading.len() as u32
        });
        let read = &mut self.reading[name as usize - 1];
        read.line = line;
        read.waiters.push(waiter);
        let class = self.class(line);
        let (request, now) = self.request(waiter.core, u64::from(name), Direction::Read, arrival);
        (name, self.memory.read(request, now, line, class))
    }

    /// Reads a line that missed into the caches; `waiter` will be told.
    pub fn fetch(&mut self, waiter: Waiter, line: Logical, arrival: Time) -> Hit {
        let coalesced = self.probed.iter().position(|probed| probed.line == line);
        let (name, got) = match coalesced {
            Some(at) => {
                let Probed { name, got, .. } = self.probed.swap_remove(at);
                self.reading[name as usize - 1].waiters.push(waiter);
                (name, got)
            }
            None => self.read_for(waiter, line, arrival),
        };
        // The content of a line never written is unknown: zeros stand in, or what the cells happen to hold.
        let data = got
            .value
            .unwrap_or_else(|| match (&self.backing, &self.adversity) {
                (Some(backing), _) => backing.line(line),
                (None, None) => ZERO_LINE,
                (None, Some(_)) => noise(line.0),
            });
        let (hit, victim) = self.caches.fill(waiter.core, line, &data, got.at, name);
        if let Some(written) = victim {
            self.exercise(&CAPACITY_EVICTION);
            if written.atomic {
                self.exercise(&MARKED_CAPACITY_EVICTION);
            }
            self.evict(waiter.core, written, arrival);
        }
        hit
    }

    /// Tells `waiter` when the read that brings `hit` is answered.
    pub fn join(&mut self, waiter: Waiter, hit: Hit) {
        self.reading[hit.filling as usize - 1].waiters.push(waiter);
    }

    /// Writes a line, and tells `core` when it is accepted.
    pub fn write(&mut self, core: usize, written: &WriteBack, arrival: Time) {
        self.admit_write(core, 1 << core, written, arrival);
    }

    /// Lets `core` hear of the acceptance of `line`'s pending writes, and returns their number.
    pub fn join_writes(&mut self, core: usize, line: Logical) -> usize {
        let writing = self.writing.iter_mut();
        let writing = writing.filter(|write| write.line == Some(line));
        let victims = self.victims.iter_mut();
        let victims = victims.filter(|victim| victim.written.line == line);
        let mut joined = 0;
        for cores in writing
            .map(|write| &mut write.cores)
            .chain(victims.map(|victim| &mut victim.waiting))
        {
            joined += usize::from(*cores & 1 << core == 0);
            *cores |= 1 << core;
        }
        if joined > 0 {
            self.exercise(&JOINED_EVICTION);
        }
        joined
    }

    /// Writes the counters of `line` back, and tells `core` when they are accepted.
    pub fn write_counters(&mut self, core: usize, line: Logical, arrival: Time) {
        let index = self.new_write(WaitingWrite {
            line: None,
            cores: 1 << core,
        });
        let (mut request, now) = self.request(core, WRITE | index, Direction::Write, arrival);
        request.counted = false; // no line of the program's
        self.memory.persist_metadata(request, now, line);
    }

    /// Whether a line that no cache of the processor has may be newer before the persistent medium than in it.
    #[inline]
    pub fn flushes_below(&self) -> bool {
        self.memory.flushes_below()
    }

    /// Flushes a line that no cache of the processor has, and tells `core` when it outlives a power cut.
    pub fn flush_below(&mut self, core: usize, line: Logical, arrival: Time) {
        let index = self.new_write(WaitingWrite {
            line: None,
            cores: 1 << core,
        });
        let (mut request, now) = self.request(core, WRITE | index, Direction::Write, arrival);
        request.counted = false; // its write was a request itself
        self.memory.flush_line(request, now, line);
    }

    /// Begins transaction `number` of `core` in the hardware.
    pub fn tx_begin(&mut self, core: usize, number: u64, arrival: Time) {
        self.logging |= 1 << core;
        self.caches.clear_logged(core);
        self.memory.begin(core as u32, number, arrival);
    }

    /// Ends the transaction of `core`, and tells `core` when that is accepted.
    pub fn tx_end(&mut self, core: usize, arrival: Time) {
        self.logging &= !(1 << core);
        self.caches.clear_logged(core);
        let index = self.new_write(WaitingWrite {
            line: None,
            cores: 1 << core,
        });
        let (mut request, now) = self.request(core, WRITE | index, Direction::Write, arrival);
        request.counted = false; // no line of the program's
        self.memory.commit(request, now);
    }

    /// Whether the old content of `line`, which `core` has just found and will store into, has to be logged first: the
    /// log trigger.
    #[inline]
    pub fn must_log(&self, core: usize, line: Logical) -> bool {
        self.logging >> core & 1 == 1 && !self.caches.is_logged(core, line)
    }

    /// Logs the content of `line`, found as `hit`. On a hit L1 hands it over, on a miss the controller has just read
    /// it.
    pub fn log_old(&mut self, core: usize, line: Logical, hit: Hit, arrival: Time) {
        self.caches.set_logged(core, line);
        let old = At::new(self.caches.line(hit), self.caches.ready(hit));
        self.memory.log_old(core as u32, line, old, arrival);
    }

    /// Notes that `core` has stored into the line of `hit`.
    #[inline]
    pub fn stored(&mut self, line: Logical, hit: Hit, at: Time) {
        if let Some(observers) = self.memory.observers() {
            self.marked_store = self.caches.is_atomic(hit);
            let persist = match self.marked_store {
                true => Persist::CounterAtomic,
                false => Persist::Relaxed,
            };
            let stored = journal::CacheStore {
                line,
                data: *self.caches.line(hit),
                persist,
            };
            observers.tell(|one| one.stored(at, &stored));
        }
    }

    /// Notes that a fence of `core` has passed: all that the core had flushed is in the persistence domain.
    pub fn fenced(&mut self, core: usize, at: Time) {
        self.fences += 1;
        if let Some(observers) = self.memory.observers() {
            observers.tell(|one| one.marked(at, core as u32, journal::Mark::Fence));
        }
    }

    /// Notes that a transaction of `core` is at `mark`.
    pub fn mark(&mut self, core: usize, mark: Mark, at: Time) {
        let number = mark.transaction;
        self.transactions[core] = number;
        if mark.phase == Phase::Committed {
            self.committed[core] = number;
        }
        if let Some(observers) = self.memory.observers() {
            let mark = match mark.phase {
                Phase::Begin => journal::Mark::Begin(number),
                Phase::Committing => journal::Mark::Committing(number),
                Phase::Committed => journal::Mark::Committed(number),
            };
            observers.tell(|one| one.marked(at, core as u32, mark));
        }
    }

    /// Notes that `core` has done an operation, so that an adversarial machine may evict a line. Returns whether memory
    /// was asked to write one.
    #[inline]
    pub fn operation_done(&mut self, core: usize, at: Time) -> bool {
        let Some(adversity) = &mut self.adversity else {
            return false;
        };
        let marked = std::mem::take(&mut self.marked_store);
        let gone = match adversity.scripted(core) {
            Some(line) => line.map(|line| (line, self.caches.evict(line))),
            None if adversity.evicts(marked) => self.caches.evict_drawn(|end| adversity.below(end)),
            None => None,
        };
        let Some((line, written)) = gone else {
            return false;
        };
        adversity.evicted(core, line);
        if let Some(written) = &written {
            self.evict(core, *written, at);
        }
        written.is_some()
    }

    /// Prefetches what this computer needs to look `line` up in the caches, for an operation some way off. No effect on
    /// results.
    pub fn touch_cache_ahead(&mut self, core: usize, line: Virtual) {
        if let Some(line) = self.pages.peek(core, line) {
            self.caches.touch_ahead(line);
        }
    }

    /// Prefetches what this computer needs if `line` has to come from memory, for a closer operation.
    pub fn touch_miss_ahead(&mut self, core: usize, line: Virtual) {
        if let Some(line) = self.pages.peek(core, line)
            && !self.caches.touch_hit_ahead(line)
        {
            self.memory.hint(line);
        }
    }

    /// Prefetches what this computer needs for a line that will be read or written past the caches.
    pub fn touch_memory_ahead(&mut self, core: usize, line: Virtual) {
        if let Some(line) = self.pages.peek(core, line) {
            self.memory.hint(line);
        }
    }
}

impl Port {
    pub(super) fn new(memory: Memory, caches: Caches, pages: PageTable, cores: usize) -> Port {
        Port {
            memory,
            caches,
            pages,
            adversity: None,
            marked_store: false,
            reading: Vec::new(),
            free_reads: Vec::new(),
            writing: Vec::new(),
            free_writes: Vec::new(),
            victims: VecDeque::new(),
            probed: Vec::new(),
            backing: None,
            rung: Vec::new(),
            locks: Locks::default(),
            committed: vec![0; cores],
            transactions: vec![0; cores],
            logging: 0,
            logs: Vec::new(),
            counted: false,
            admitted: 0,
            reads: Latencies::new(),
            writes: Latencies::new(),
            epochs: None,
            last_answer: Time::ZERO,
            fences: 0,
        }
    }

    /// Takes answers and acceptances from the engine, in the order in which agents hear of them.
    pub(super) fn answers(&mut self, told: &mut Vec<(usize, AgentAnswer)>) {
        let rung = self.rung.drain(..);
        told.extend(rung.map(|(agent, at)| (agent, AgentAnswer::Rung(at))));
        if self.memory.has_acceptances() {
            let writing = &mut self.writing;
            for acceptance in self.memory.acceptances() {
                let index = acceptance.tag & !WRITE;
                let mut cores = std::mem::take(&mut writing[index as usize].cores);
                writing[index as usize].line = None;
                self.free_writes.push(index);
                while cores != 0 {
                    let core = cores.trailing_zeros() as usize;
                    cores &= cores - 1;
                    told.push((core, AgentAnswer::Accepted(acceptance.at)));
                }
            }
        }
        if !self.memory.has_answers() {
            return;
        }
        for answer in self.memory.answers() {
            let request = answer.request;
            self.last_answer = answer.at;
            let latencies = match request.kind {
                Direction::Read => &mut self.reads,
                Direction::Write => &mut self.writes,
            };
            if request.counted {
                let latency = answer.at - request.arrival;
                latencies.record(latency);
                if let Some(epochs) = &mut self.epochs {
                    epochs.record(request.kind, answer.at, latency);
                }
            }
            if request.tag & PAST_CACHES != 0 {
                let waiter = Waiter {
                    core: request.core as usize,
                    load: Some(request.tag & !PAST_CACHES),
                    first: true,
                    since: 0,
                };
                told.push((waiter.core, AgentAnswer::Line(waiter, answer.at)));
            } else if request.tag & WRITE == 0 {
                let read = &mut self.reading[request.tag as usize - 1];
                self.caches.filled(read.line, request.tag as u32);
                self.probed
                    .retain(|probed| u64::from(probed.name) != request.tag);
                for waiter in read.waiters.drain(..) {
                    told.push((waiter.core, AgentAnswer::Line(waiter, answer.at)));
                }
                self.free_reads.push(request.tag as u32);
            }
        }
        if let Some(epochs) = &mut self.epochs
            && self.counted
            && epochs.is_due(self.last_answer)
        {
            epochs.count(self.last_answer, EpochCounts::from_memory(&self.memory));
        }
    }

    pub(super) fn send_victims(&mut self) {
        while !self.victims.is_empty() && self.memory.accepts() {
            let Victim {
                core,
                waiting,
                written,
                arrival,
            } = self.victims.pop_front().expect("there is one");
            self.admit_write(core, waiting, &written, arrival);
        }
    }

    pub(super) fn holds_victims(&self) -> bool {
        !self.victims.is_empty()
    }

    /// Sends a dirty line that had to leave the caches to memory, as soon as memory takes it.
    fn evict(&mut self, core: usize, written: WriteBack, arrival: Time) {
        self.exercise(&DIRTY_EVICTION);
        if written.atomic {
            self.exercise(&MARKED_EVICTION);
        }
        self.victims.push_back(Victim {
            core,
            waiting: 0,
            written,
            arrival,
        });
        self.send_victims();
    }

    fn exercise(&mut self, mechanism: &'static Mechanism) {
        if let Some(observers) = self.memory.observers() {
            observers.tell(|one| one.used(mechanism));
        }
    }

    fn class(&self, line: Logical) -> Class {
        match self.logs.iter().any(|log| log.contains(line.0)) {
            true => Class::Log,
            false => Class::Data,
        }
    }

    fn request(
        &mut self,
        core: usize,
        tag: u64,
        kind: Direction,
        arrival: Time,
    ) -> (Request, Time) {
        self.admitted += 1;
        let request = Request {
            arrival,
            core: core as u32,
            tag,
            kind,
            counted: self.counted,
        };
        (request, arrival.max(self.memory.now()))
    }

    fn new_write(&mut self, write: WaitingWrite) -> u64 {
        match self.free_writes.pop() {
            Some(index) => {
                self.writing[index as usize] = write;
                index
            }
            None => {
                self.writing.push(write);
                self.writing.len() as u64 - 1
            }
        }
    }

    fn admit_write(&mut self, core: usize, cores: u64, written: &WriteBack, arrival: Time) {
        let line = written.line;
        self.probed.retain(|probed| probed.line != line); // it would bring old bytes
        let class = self.class(line);
        let index = self.new_write(WaitingWrite {
            line: Some(line),
            cores,
        });
        let (request, now) = self.request(core, WRITE | index, Direction::Write, arrival);
        let order = match written.atomic {
            true => Persist::CounterAtomic,
            false => Persist::Relaxed,
        };
        let write = controller::Write {
            class,
            order,
            core: core as u32,
            transaction: self.transactions[core],
            flushed: cores != 0,
            ..controller::Write::new(line, At::new(&written.data, written.at))
        };
        self.memory.write_announced(request, now, write);
    }
}
