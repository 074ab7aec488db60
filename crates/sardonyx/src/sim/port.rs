//! What the cores of a [`super::System`] stand on: their caches, the controller, the engine. Requests
//! are handled when their operation is, in the order of operations; what memory does not take at once
//! waits in one line, and until that is empty no operation that needs memory goes on.

use std::collections::VecDeque;
use std::ops::Range;

use crate::controller::{self, Class, Controller, Persist};
use crate::cpu::{Below, Caches, Hit, Mark, Waiter, WriteBack};
use crate::engine::{Engine, Request};
use crate::latency::Latencies;
use crate::line::{Logical, ZERO_LINE};
use crate::plan::{At, Step, Stored};
use crate::stats::Kind;
use crate::units::Time;

/// Something that a core did, for whoever watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A transaction is at this mark.
    Mark(Mark),
    /// A fence has passed: all that the core had flushed is in the persistence domain.
    Fenced,
}

/// Told of what cores do, in the order of time, with the engine as it is then.
pub trait Watch {
    /// Core `core` has done `event` at `at`.
    fn saw(&mut self, core: usize, event: Event, at: Time, engine: &mut Engine);
}

/// Nobody watches.
impl Watch for () {
    fn saw(&mut self, _: usize, _: Event, _: Time, _: &mut Engine) {}
}

/// The tags of writes have this bit, the others are reads.
const WRITE: u64 = 1 << 63;

/// A read under way: its line and who waits for it.
#[derive(Default)]
struct Read {
    line: Logical,
    waiters: Vec<Waiter>,
}

/// A write that is not accepted yet: its line, if it is a line's, and who waits.
#[derive(Clone, Copy)]
struct Write {
    line: Option<Logical>,
    cores: u64,
}

/// A victim of the caches that memory has not taken yet.
struct Victim {
    core: usize,
    /// Cores that wait for its acceptance.
    waiting: u64,
    written: WriteBack,
    arrival: Time,
}

/// An answer for a core.
pub(super) enum Told {
    Line(Waiter, Time),
    Accepted(usize, Time),
}

pub(super) struct Port<'w> {
    pub engine: Engine,
    pub controller: Controller,
    pub caches: Caches,
    pub watch: &'w mut dyn Watch,
    /// Reads by name less one, and names that are free.
    reading: Vec<Read>,
    free_reads: Vec<u32>,
    writing: Vec<Write>,
    free_writes: Vec<u64>,
    victims: VecDeque<Victim>,
    logs: Vec<Range<u64>>,
    pub counted: bool,
    pub admitted: u64,
    pub reads: Latencies,
    pub writes: Latencies,
    pub last_answer: Time,
    pub fences: u64,
    pub committed: Vec<u64>,
}

impl<'w> Port<'w> {
    pub fn new(
        engine: Engine,
        controller: Controller,
        caches: Caches,
        logs: Vec<Range<u64>>,
        watch: &'w mut dyn Watch,
    ) -> Port<'w> {
        Port {
            engine,
            controller,
            caches,
            watch,
            reading: Vec::new(),
            free_reads: Vec::new(),
            writing: Vec::new(),
            free_writes: Vec::new(),
            victims: VecDeque::new(),
            committed: vec![0; logs.len()],
            logs,
            counted: true,
            admitted: 0,
            reads: Latencies::new(),
            writes: Latencies::new(),
            last_answer: Time::ZERO,
            fences: 0,
        }
    }

    /// Takes answers and acceptances from the engine, in the order in which cores are to be told.
    pub fn answers(&mut self, told: &mut Vec<Told>) {
        if self.engine.has_acceptances() {
            let writing = &mut self.writing;
            for acceptance in self.engine.acceptances() {
                let index = acceptance.tag & !WRITE;
                let mut cores = std::mem::take(&mut writing[index as usize].cores);
                writing[index as usize].line = None;
                self.free_writes.push(index);
                while cores != 0 {
                    let core = cores.trailing_zeros() as usize;
                    cores &= cores - 1;
                    told.push(Told::Accepted(core, acceptance.at));
                }
            }
        }
        if !self.engine.has_answers() {
            return;
        }
        for answer in self.engine.answers() {
            let request = answer.request;
            self.last_answer = answer.at;
            let latencies = match request.kind {
                Kind::Read => &mut self.reads,
                Kind::Write => &mut self.writes,
            };
            if request.counted {
                latencies.record(answer.at - request.arrival);
            }
            if request.tag & WRITE == 0 {
                let read = &mut self.reading[request.tag as usize - 1];
                self.caches.filled(read.line, request.tag as u32);
                for waiter in read.waiters.drain(..) {
                    told.push(Told::Line(waiter, answer.at));
                }
                self.free_reads.push(request.tag as u32);
            }
        }
    }

    /// Hands victims over as far as memory takes them.
    pub fn send_victims(&mut self) {
        while !self.victims.is_empty() && self.engine.admits() {
            let Victim {
                core,
                waiting,
                written,
                arrival,
            } = self.victims.pop_front().expect("there is one");
            self.admit_write(core, waiting, &written, arrival);
        }
    }

    /// Whether victims wait.
    pub fn holds_victims(&self) -> bool {
        !self.victims.is_empty()
    }

    fn class(&self, line: Logical) -> Class {
        match self.logs.iter().any(|log| log.contains(&line.0)) {
            true => Class::Log,
            false => Class::Data,
        }
    }

    fn request(&mut self, core: usize, tag: u64, kind: Kind, arrival: Time) -> (Request, Time) {
        self.admitted += 1;
        let request = Request {
            arrival,
            core: core as u32,
            tag,
            kind,
            counted: self.counted,
        };
        (request, arrival.max(self.engine.now()))
    }

    fn new_write(&mut self, write: Write) -> u64 {
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
        let class = self.class(line);
        let index = self.new_write(Write {
            line: Some(line),
            cores,
        });
        let (request, now) = self.request(core, WRITE | index, Kind::Write, arrival);
        let order = match written.atomic {
            true => Persist::CounterAtomic,
            false => Persist::Relaxed,
        };
        let controller = &mut self.controller;
        self.engine.admit_announced(request, now, |plan| {
            let write = controller::Write {
                class,
                order,
                core: core as u32,
                ..controller::Write::new(line, At::new(&written.data, written.at))
            };
            controller.write(write, plan)
        });
    }
}

impl Below for Port<'_> {
    #[inline]
    fn caches(&mut self) -> &mut Caches {
        &mut self.caches
    }

    fn takes(&self) -> bool {
        self.victims.is_empty() && self.engine.admits()
    }

    fn now(&self) -> Time {
        self.engine.now()
    }

    fn fetch(&mut self, waiter: Waiter, line: Logical, arrival: Time) -> Hit {
        let name = self.free_reads.pop().unwrap_or_else(|| {
            self.reading.push(Read::default());
            self.reading.len() as u32
        });
        let read = &mut self.reading[name as usize - 1];
        read.line = line;
        read.waiters.push(waiter);
        let class = self.class(line);
        let (request, now) = self.request(waiter.core, u64::from(name), Kind::Read, arrival);
        let controller = &mut self.controller;
        let mut got = At::past(None);
        self.engine.admit(request, now, |plan| {
            got = controller.read(line, class, Step::PAST, plan);
            Stored::at(got.at)
        });
        // The content of a line never written is unknown: zeros stand in.
        let data = got.value.unwrap_or(ZERO_LINE);
        let (hit, victim) = self.caches.fill(waiter.core, line, &data, got.at, name);
        if let Some(written) = victim {
            self.victims.push_back(Victim {
                core: waiter.core,
                waiting: 0,
                written,
                arrival,
            });
            self.send_victims();
        }
        hit
    }

    fn join(&mut self, waiter: Waiter, hit: Hit) {
        self.reading[hit.filling as usize - 1].waiters.push(waiter);
    }

    fn write(&mut self, core: usize, written: &WriteBack, arrival: Time) {
        self.admit_write(core, 1 << core, written, arrival);
    }

    fn join_writes(&mut self, core: usize, line: Logical) -> usize {
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
        joined
    }

    fn next_event(&self) -> Time {
        self.engine.next_event()
    }

    fn touch_ahead(&self, line: Logical) {
        self.caches.touch_ahead(line);
    }

    fn touch_miss_ahead(&mut self, line: Logical) {
        if !self.caches.touch_hit_ahead(line) {
            let controller = &self.controller;
            self.engine.look(|plan| controller.hint(line, plan));
        }
    }

    fn write_counters(&mut self, core: usize, line: Logical, arrival: Time) {
        let index = self.new_write(Write {
            line: None,
            cores: 1 << core,
        });
        let (mut request, now) = self.request(core, WRITE | index, Kind::Write, arrival);
        request.counted = false; // no line of the program's
        let controller = &mut self.controller;
        self.engine.admit_announced(request, now, |plan| {
            controller.persist_metadata(line, Step::PAST, plan)
        });
    }

    fn fenced(&mut self, core: usize, at: Time) {
        self.fences += 1;
        self.watch.saw(core, Event::Fenced, at, &mut self.engine);
    }

    fn mark(&mut self, core: usize, mark: Mark, at: Time) {
        if mark.phase == crate::cpu::Phase::Committed {
            self.committed[core] = mark.transaction;
        }
        let event = Event::Mark(mark);
        self.watch.saw(core, event, at, &mut self.engine);
    }
}
