//! The timed run: cores that execute programs' operations in order, as disobliging as the
//! instructions allow. Any dirty line may be evicted at any time, loads fetch, and between fences
//! requests are accepted in whatever order the controller, the queues and [`Jitter`] make of them.
//!
//! Caches have no geometry: which line goes when is drawn from the seed. Left out: the out-of-order
//! core and caches of `cpu`, which say how fast a program is; here only what may happen matters.

mod cache;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use super::jitter::Jitter;
use crate::config::Machine;
use crate::controller::{Controller, Persist};
use crate::cpu::{Batch, Op, OpKind, OpSource, Phase};
use crate::engine::journal::{Journal, Mark};
use crate::engine::{Engine, Request};
use crate::line::{Line, Logical};
use crate::medium::image::Image;
use crate::plan::Stored;
use crate::stats::Kind;
use crate::units::Time;

/// Operations between two evictions, in the mean.
const EVICT_ONE_IN: u32 = 48;
/// Lines a core's cache holds.
const LINES: usize = 256;

#[derive(Clone, Copy)]
struct Cached {
    line: Line,
    dirty: bool,
    /// The counter-atomic mark, which travels with the line to whatever writes it back.
    persist: Persist,
}

/// One core.
struct Core<'s> {
    source: &'s mut dyn OpSource,
    batch: Batch,
    next: usize,
    finished: bool,
    time: u64,
    cache: FxHashMap<u64, Cached>,
    /// Cached lines, for the seed to choose from.
    order: Vec<u64>,
    /// Requests that the next fence waits for.
    outstanding: u32,
    /// At a fence, until they are accepted.
    blocked: bool,
}

/// A write request that is not accepted yet.
struct Flight {
    core: usize,
    /// Its line, unless it writes counters back.
    line: Option<Logical>,
    /// Whether a fence waits for it; an eviction is nobody's business until its line is flushed.
    waited: bool,
}

/// Cores, controller and engine of one run.
pub struct Cores<'s> {
    engine: Engine,
    controller: Controller,
    cores: Vec<Core<'s>>,
    random: ChaCha8Rng,
    now: u64,
    flights: FxHashMap<u64, Flight>,
    tag: u64,
}

impl<'s> Cores<'s> {
    /// Cores that play `sources` on `controller`, freshly recovered over `image`.
    pub fn new(
        machine: &Machine,
        controller: Controller,
        image: Image,
        sources: Vec<&'s mut dyn OpSource>,
        seed: u64,
    ) -> Cores<'s> {
        let mut engine = Engine::with_image(&machine.engine, image);
        engine.keep_journal();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut controller: Controller = Box::new(Jitter::new(controller, random.next_u64()));
        engine.background(|plan| controller.recover(plan));
        let core = |source| Core {
            source,
            batch: Batch::default(),
            next: 0,
            finished: false,
            time: 0,
            cache: FxHashMap::default(),
            order: Vec::new(),
            outstanding: 0,
            blocked: false,
        };
        Cores {
            engine,
            controller,
            cores: sources.into_iter().map(core).collect(),
            random,
            now: 0,
            flights: FxHashMap::default(),
            tag: 0,
        }
    }

    /// Plays everything and gives the journal.
    pub fn run(mut self) -> Box<Journal> {
        while self.cores.iter().any(|core| !core.finished) {
            let Some(core) = self.next_core() else {
                self.wait();
                continue;
            };
            self.now = self.now.max(self.cores[core].time);
            self.advance_to(self.now);
            self.step(core);
        }
        self.engine.end_of_input();
        loop {
            while self.engine.next_event() != Time::NEVER {
                self.advance();
            }
            if !self.engine.force_drain() {
                break;
            }
        }
        self.engine.assert_at_rest();
        self.engine.take_journal().expect("one was kept")
    }

    /// The core that goes next: the earliest that is neither at its end nor at a fence.
    fn next_core(&self) -> Option<usize> {
        let goes = |(_, core): &(usize, &Core)| !core.finished && !core.blocked;
        let ready = self.cores.iter().enumerate().filter(goes);
        ready.min_by_key(|(index, c)| (c.time, *index)).map(|c| c.0)
    }

    /// One operation of `core`.
    fn step(&mut self, core: usize) {
        let Some(op) = self.take(core) else {
            self.cores[core].finished = true;
            return;
        };
        let gap = 250 * (1 + u64::from(op.gap)) + u64::from(self.random.next_u32() % 2000);
        self.cores[core].time = self.now + gap;
        match op.kind {
            OpKind::Load { .. } => {
                self.fetch(core, op.line);
            }
            OpKind::Store {
                from,
                len,
                atomic,
                bytes,
            } => {
                let bytes = self.cores[core].batch.bytes(bytes, len).to_vec();
                let mut cached = self.fetch(core, op.line);
                let from = usize::from(from);
                cached.line[from..from + bytes.len()].copy_from_slice(&bytes);
                self.store(core, op.line, cached.line, atomic);
            }
            OpKind::StoreLine { bytes } => {
                let line = *self.cores[core].batch.line(bytes);
                self.store(core, op.line, line, false);
            }
            OpKind::NonTemporal { bytes } => {
                let line = *self.cores[core].batch.line(bytes);
                self.store(core, op.line, line, false);
                self.flush(core, op.line);
            }
            OpKind::WriteBack => self.flush(core, op.line),
            OpKind::Flush => {
                self.flush(core, op.line);
                self.drop_line(core, op.line);
            }
            OpKind::CounterWriteBack => self.counter_write_back(core, op.line),
            OpKind::Fence => {
                let waiting = &mut self.cores[core];
                if waiting.outstanding > 0 {
                    waiting.blocked = true;
                    waiting.next -= 1; // the fence again, when they are accepted
                } else {
                    self.mark(core, Mark::Fence);
                }
            }
            OpKind::Depend => {}
            OpKind::Mark(phase) => {
                let number = op.line.0;
                let mark = match phase {
                    Phase::Begin => Mark::Begin(number),
                    Phase::Committing => Mark::Committing(number),
                    Phase::Committed => Mark::Committed(number),
                };
                self.mark(core, mark);
            }
        }
        if self.random.next_u32().is_multiple_of(EVICT_ONE_IN)
            || self.cores[core].order.len() > LINES
        {
            self.evict(core);
        }
    }

    fn take(&mut self, core: usize) -> Option<Op> {
        let core = &mut self.cores[core];
        while core.next == core.batch.ops().len() {
            core.batch.clear();
            core.next = 0;
            let more = core.source.refill(&mut core.batch);
            if !more.expect("a program's operations fit the machine") {
                return None;
            }
        }
        core.next += 1;
        Some(core.batch.ops()[core.next - 1])
    }

    fn mark(&mut self, core: usize, mark: Mark) {
        let now = Time::from_ps(self.now);
        let journal = self.engine.journal().expect("one is kept");
        journal.mark(now, core as u32, mark);
    }

    /// Lets something happen while all cores stand at fences.
    fn wait(&mut self) {
        if self.engine.next_event() == Time::NEVER {
            assert!(self.engine.force_drain(), "a fence waits for ever");
        } else {
            self.advance();
        }
    }

    fn admit(
        &mut self,
        core: usize,
        kind: Kind,
        handle: impl FnOnce(&mut Controller, &mut crate::plan::Plan) -> Stored,
    ) {
        while !self.engine.admits() {
            if self.engine.next_event() == Time::NEVER {
                assert!(self.engine.force_drain(), "the ingress is stuck");
            } else {
                self.advance();
            }
        }
        self.now = self.now.max(self.engine.now().ps());
        let arrival = Time::from_ps(self.now);
        let request = Request {
            arrival,
            core: core as u32,
            tag: self.tag,
            kind,
            counted: true,
        };
        let controller = &mut self.controller;
        match kind {
            Kind::Read => self
                .engine
                .admit(request, arrival, |plan| handle(controller, plan)),
            Kind::Write => self
                .engine
                .admit_announced(request, arrival, |plan| handle(controller, plan)),
        }
        self.take_acceptances();
    }

    fn advance_to(&mut self, time: u64) {
        while self.engine.next_event().ps() <= time {
            self.advance();
        }
    }

    fn advance(&mut self) {
        if let Some(token) = self.engine.advance() {
            let (controller, now) = (&mut self.controller, self.engine.now());
            self.engine
                .background(|plan| controller.wake(token, now, plan));
        }
        self.take_acceptances();
    }

    fn take_acceptances(&mut self) {
        for told in self.engine.acceptances() {
            let flight = self.flights.remove(&told.tag).expect("it was on its way");
            let core = &mut self.cores[flight.core];
            core.outstanding -= u32::from(flight.waited);
            if core.blocked && core.outstanding == 0 {
                core.blocked = false;
                core.time = core.time.max(told.at.ps());
            }
        }
        self.engine.answers().for_each(drop);
    }
}
