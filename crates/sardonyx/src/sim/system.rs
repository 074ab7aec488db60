//! A run from the cores down: players with caches over a controller and the engine. Operations happen
//! in order of (time, core); a core runs ahead of the others only up to the next thing that anybody
//! else, or memory, does.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::outcome::{self, Finished};
use super::port::{Port, Told, Watch};
use super::{Outcome, SimError};
use crate::config::Machine;
use crate::controller::{Class, Controller, Write, designs};
use crate::cpu::{Caches, Counts, MAX_CORES, OpSource, Player};
use crate::engine::Engine;
use crate::line::{Line, Logical};
use crate::medium::layout::Layout;
use crate::plan::{At, Plan, Step};
use crate::units::Time;

/// Looks at the cores between two looks at the progress.
const PROGRESS_EVERY: u64 = 1 << 12;

/// How much of a run counts nowhere: state changes, figures do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmup {
    /// Requests to the controller.
    pub requests: u64,
    /// Transactions of each core.
    pub transactions: u64,
}

/// A run under way.
pub struct System<'w> {
    machine: Machine,
    design: String,
    port: Port<'w>,
    players: Vec<Player>,
    told: Vec<Told>,
    warmup: Warmup,
    warm: bool,
    counted_from: (Time, u64),
    committed_before: u64,
    before: Vec<Counts>,
}

/// The medium and the controller before a run, for what lies in memory already.
pub struct Ground {
    engine: Engine,
    controller: Controller,
    design: String,
}

impl Ground {
    /// An empty medium under a fresh controller.
    ///
    /// # Errors
    /// There is no such design.
    pub fn new(machine: &Machine, design: &str) -> Result<Ground, SimError> {
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        Ok(Ground {
            engine: Engine::new(&machine.engine),
            controller: designs::build(design, &machine.settings, &mut layout)?,
            design: design.to_owned(),
        })
    }

    /// Has the controller write `data` to `line`, at no time and no cost.
    pub fn write(&mut self, line: Logical, data: &Line) {
        let controller = &mut self.controller;
        self.engine
            .at_once(|plan| controller.write(Write::new(line, At::past(data)), plan));
    }

    /// What the controller reads at `line`, at no time and no cost; `None` if it was never written.
    pub fn read(&mut self, line: Logical) -> Option<Line> {
        let controller = &mut self.controller;
        let read = |plan: &mut Plan| controller.read(line, Class::Data, Step::PAST, plan).value;
        self.engine.at_once(read)
    }

    /// Everything is in the medium, and nothing has been counted.
    pub fn settle(&mut self) {
        let controller = &mut self.controller;
        self.engine.at_once(|plan| controller.flush(plan));
        self.engine.forget_figures();
        self.controller.forget_figures();
    }

    /// The engine, to keep a log or a journal of what follows.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

impl<'w> System<'w> {
    /// Each of `sources` on a core of its own, over `ground`, which was made with `machine`.
    ///
    /// # Errors
    /// A source is broken, or there are none or too many.
    pub fn new(
        machine: &Machine,
        ground: Ground,
        sources: Vec<Box<dyn OpSource>>,
        warmup: Warmup,
        watch: &'w mut dyn Watch,
    ) -> Result<System<'w>, SimError> {
        let cores = sources.len();
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(SimError::Cores { cores });
        }
        let logs = sources.iter().map(|source| source.log_lines()).collect();
        let caches = Caches::new(&machine.caches, cores);
        let mut port = Port::new(ground.engine, ground.controller, caches, logs, watch);
        let warm = warmup == Warmup::default();
        port.counted = warm;
        let player = |(core, source)| Player::new(core, &machine.core, &machine.caches, source);
        let players = sources.into_iter().enumerate().map(player);
        Ok(System {
            players: players.collect::<Result<_, _>>()?,
            machine: machine.clone(),
            design: ground.design,
            port,
            told: Vec::new(),
            warmup,
            warm,
            counted_from: (Time::ZERO, 0),
            committed_before: 0,
            before: vec![Counts::default(); cores],
        })
    }

    /// The engine, for its log and its figures.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.port.engine
    }

    /// The caches, for what they hold at the end.
    pub fn caches(&self) -> &Caches {
        &self.port.caches
    }

    /// The medium and the controller after a run, with all that the caches still held written back.
    pub fn into_ground(self) -> Ground {
        let mut ground = Ground {
            engine: self.port.engine,
            controller: self.port.controller,
            design: self.design,
        };
        for dirty in self.port.caches.dirty_lines() {
            ground.write(dirty.line, &dirty.data);
        }
        ground
    }

    /// Plays everything; `progress` is told how many transactions are done, or how many operations
    /// if there are no transactions, and may end the run by answering false.
    ///
    /// # Errors
    /// A source is broken further on, or nothing was left to count.
    pub fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Outcome, SimError> {
        let started = Instant::now();
        let mut over = false;
        let mut turns = 0u64;
        loop {
            if let Some(why) = self.port.engine.failure() {
                let trace = self.players[0].source().name();
                return Err(SimError::exhausted(trace, &self.design, why));
            }
            let event = self.port.engine.next_event();
            if self.port.holds_victims() && self.port.engine.admits() {
                if event <= self.port.engine.now() {
                    self.advance_until(event);
                } else {
                    self.port.send_victims();
                    self.take_answers();
                }
                continue;
            }
            match self.next_core() {
                Some((time, core, limit)) if event > time => {
                    self.players[core].run(&mut self.port, limit)?;
                    self.take_answers();
                    self.count_if_warm();
                    turns += 1;
                    if turns.is_multiple_of(PROGRESS_EVERY) && !progress(self.done()) {
                        return Err(SimError::Cancelled);
                    }
                }
                core if event != Time::NEVER => {
                    self.advance_until(core.map_or(Time::NEVER, |(time, ..)| time));
                }
                _ if !over && self.players.iter().all(Player::finished) => {
                    over = true;
                    self.port.engine.end_of_input();
                }
                _ if self.port.engine.kick() => {}
                _ => break,
            }
        }
        self.port.engine.assert_at_rest();
        assert!(
            self.players.iter().all(Player::finished),
            "a core waits for nothing"
        );
        let trace = || self.players[0].source().name().to_owned();
        if self.operations() == 0 {
            return Err(SimError::Empty { trace: trace() });
        }
        if !self.warm {
            return Err(SimError::OnlyWarmup {
                trace: trace(),
                warmup: self.warmup.requests,
                unit: "requests",
                all: self.port.admitted,
            });
        }
        progress(self.done());
        Ok(outcome::of(&self.finished(), started.elapsed()))
    }

    /// The earliest operation that can go on, its core, and when somebody else's comes.
    fn next_core(&self) -> Option<(Time, usize, Time)> {
        let takes = crate::cpu::Below::takes(&self.port);
        let now = self.port.engine.now();
        let (mut best, mut limit) = (None, Time::NEVER);
        for (core, player) in self.players.iter().enumerate() {
            let time = match player.next_time() {
                Some((time, false)) => time,
                Some((time, true)) if takes => time.max(now),
                _ => continue,
            };
            match best {
                // At the same time the lower number goes first.
                Some((least, _)) if time >= least => {
                    limit = limit.min(time + Time::from_ps(1));
                }
                Some((least, _)) => {
                    limit = limit.min(least);
                    best = Some((time, core));
                }
                None => best = Some((time, core)),
            }
        }
        best.map(|(time, core)| (time, core, limit))
    }

    fn advance_until(&mut self, limit: Time) {
        if let Some(timer) = self.port.engine.advance_until(limit) {
            let (controller, now) = (&mut self.port.controller, self.port.engine.now());
            self.port
                .engine
                .background(|plan| controller.wake(timer, now, plan));
        }
        self.take_answers();
    }

    fn take_answers(&mut self) {
        self.port.answers(&mut self.told);
        for told in self.told.drain(..) {
            match told {
                Told::Line(waiter, at) => self.players[waiter.core].line_came(waiter, at),
                Told::Accepted(core, at) => self.players[core].accepted(at),
            }
        }
    }

    fn count_if_warm(&mut self) {
        if self.warm || self.port.admitted < self.warmup.requests {
            return;
        }
        let committed = self.port.committed.iter();
        if committed
            .min()
            .is_some_and(|least| *least < self.warmup.transactions)
        {
            return;
        }
        self.warm = true;
        self.port.counted = true;
        self.counted_from = (self.port.engine.now(), self.instructions());
        self.committed_before = self.port.committed.iter().sum();
        self.before = self.players.iter().map(Player::counts).collect();
        self.port.fences = 0;
        self.port.engine.forget_figures();
        self.port.controller.forget_figures();
    }

    fn instructions(&self) -> u64 {
        self.players.iter().map(Player::instructions).sum()
    }

    fn operations(&self) -> u64 {
        self.players
            .iter()
            .map(|player| player.counts().operations)
            .sum()
    }

    fn done(&self) -> u64 {
        match self.port.committed.iter().sum() {
            0 => self.operations(),
            committed => committed,
        }
    }

    fn finished(&self) -> Finished<'_> {
        let retired = self.players.iter().map(Player::retire_time).max();
        let retired = retired.unwrap_or(Time::ZERO);
        Finished {
            machine: &self.machine,
            engine: &self.port.engine,
            controller: &self.port.controller,
            cores: self.players.len(),
            reads: &self.port.reads,
            writes: &self.port.writes,
            admitted: self.port.admitted,
            counted_from: self.counted_from,
            last_answer: self.port.last_answer,
            retired,
            instructions: Some(self.instructions()),
            pages: self
                .players
                .iter()
                .map(|player| player.source().pages())
                .sum(),
            from_the_core: true,
            own: self.own_figures(retired),
        }
    }

    /// What is known of a run from the cores down only.
    fn own_figures(&self, retired: Time) -> Map<String, Value> {
        let took = retired.since(self.counted_from.0);
        let committed = self.port.committed.iter().sum::<u64>() - self.committed_before;
        let sum = |of: fn(&Counts) -> u64| {
            let pairs = self.players.iter().zip(&self.before);
            pairs
                .map(|(player, before)| of(&player.counts()) - of(before))
                .sum::<u64>()
        };
        let misses = sum(|counts| counts.misses) as f64;
        let accesses = sum(|counts| counts.accesses) as f64;
        let mean_ns = |ps: u64| json!(Time::from_ps(ps / self.players.len() as u64).ns());
        let share = |part: f64, whole: f64| match whole > 0.0 {
            true => json!(part / whole),
            false => Value::Null,
        };
        let per_second = match committed {
            0 => Value::Null,
            _ => share(committed as f64, took.ns() * 1e-9),
        };
        let figures = [
            ("runtime_ns", json!(took.ns())),
            ("transactions", json!(committed)),
            ("transactions_per_second", per_second),
            ("memory_operations", json!(sum(|counts| counts.operations))),
            ("cpu_cache_miss_rate", share(misses, accesses)),
            ("fences", json!(self.port.fences)),
            ("core_fence_wait_ns", mean_ns(sum(|c| c.fence_wait.ps()))),
            ("core_load_wait_ns", mean_ns(sum(|c| c.load_wait.ps()))),
            ("core_memory_wait_ns", mean_ns(sum(|c| c.memory_wait.ps()))),
        ];
        figures
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }
}
