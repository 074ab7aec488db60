//! One run: agents over caches, a controller and the engine, on one clock. What they do happens in the order
//! of time; an agent runs ahead of the others only up to the next thing that anybody else, or memory, does.

use std::time::{Duration, Instant};

use super::epochs::Epochs;
use super::outcome::{self, Finished};
use super::port::Port;
use super::{
    AddressSpace, Adversity, Agent, AgentAnswer, Caches, CoreFigures, MAX_CORES, OpSource, Outcome,
    PageTable, Player, RunError, Turn,
};
use crate::config::Machine;
use crate::medium::params::CachesParams;
use crate::memory::Memory;
use crate::plan::journal::Journal;
use crate::plan::orders::Choice;
use crate::units::Time;

const PROGRESS_EVERY: u64 = 1 << 12;

/// The part of a run that is warm-up: state changes, figures do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// Requests to the controller.
    Requests(u64),
    /// Transactions of each core.
    Transactions(u64),
}

/// A run under way.
pub struct System<'s> {
    pub(super) machine: Machine,
    pub(super) port: Port,
    pub(super) agents: Vec<Box<dyn Agent + 's>>,
    pub(super) turns: Vec<Option<Turn>>,
    answers: Vec<(usize, AgentAnswer)>,
    pub(super) warmup: Warmup,
    pub(super) before: Option<Before>,
    /// The requests at which counting and playing end, if that is before the sources' end.
    pub(super) until: Option<Until>,
    pub(super) counted: Option<Outcome>,
}

#[derive(Clone, Copy)]
pub(super) struct Until {
    /// Counting ends here.
    pub counted: u64,
    /// Agents ask for nothing more from here on.
    pub played: u64,
}

pub(super) struct Before {
    pub time: Time,
    pub committed: u64,
    pub figures: Vec<CoreFigures>,
}

impl<'s> System<'s> {
    /// Runs `agents`, each with its address space, over `memory`, which was made with `machine`.
    ///
    /// # Errors
    /// There are none, or more than the caches can tell apart.
    pub fn new(
        machine: &Machine,
        memory: Memory,
        agents: Vec<Box<dyn Agent + 's>>,
        spaces: Vec<AddressSpace>,
        warmup: Warmup,
    ) -> Result<System<'s>, RunError> {
        let cores = agents.len();
        let cached = agents
            .iter()
            .any(|agent| agent.figures().executed.is_some());
        if cores == 0 || cached && cores > MAX_CORES {
            return Err(RunError::Cores { cores });
        }
        let caches = match cached {
            true => Caches::new(&machine.caches, cores),
            false => Caches::new(&CachesParams::default(), 1),
        };
        let port = Port::new(memory, caches, PageTable::new(spaces), cores);
        let mut system = System {
            machine: machine.clone(),
            port,
            turns: agents.iter().map(|agent| agent.next_turn()).collect(),
            agents,
            answers: Vec::new(),
            warmup,
            before: None,
            until: None,
            counted: None,
        };
        if let Warmup::Requests(0) | Warmup::Transactions(0) = warmup {
            system.port.counted = true;
            system.before = Some(Before {
                time: Time::ZERO,
                committed: 0,
                figures: vec![CoreFigures::default(); cores],
            });
        }
        Ok(system)
    }

    /// Plays each of `sources` on a core of its own, whose lines lie at their own numbers.
    ///
    /// # Errors
    /// As [`System::new`]; or a source is broken.
    pub fn of_programs(
        machine: &Machine,
        memory: Memory,
        sources: Vec<Box<dyn OpSource + 's>>,
        warmup: Warmup,
    ) -> Result<System<'s>, RunError> {
        let pages = sources.iter().map(|source| source.pages());
        let spaces = pages
            .map(|pages| AddressSpace::Identity { pages })
            .collect();
        let logs = sources.iter().map(|source| source.log_lines()).collect();
        let held: Vec<Vec<u64>> = sources.iter().map(|source| source.holds()).collect();
        let player = |(core, source)| {
            let player = Player::new(core, machine, source)?;
            Ok(Box::new(player) as Box<dyn Agent + 's>)
        };
        let players = sources.into_iter().enumerate().map(player);
        let agents = players.collect::<Result<_, RunError>>()?;
        let mut system = System::new(machine, memory, agents, spaces, warmup)?;
        system.port.logs = logs;
        for (core, locks) in held.into_iter().enumerate() {
            for lock in locks {
                assert!(system.port.lock(core, lock), "one core has a lock");
            }
        }
        Ok(system)
    }

    /// Makes the machine as adversarial as its instructions allow.
    #[must_use]
    pub fn under(mut self, adversity: Adversity) -> System<'s> {
        self.port.adversity = Some(adversity);
        self
    }

    /// Does not compare reads with earlier writes.
    #[must_use]
    pub fn unverified(mut self) -> System<'s> {
        self.port.memory.check(None);
        self
    }

    /// Begins with a memory that holds something already.
    #[must_use]
    pub fn over(mut self, backing: Box<dyn super::Backing>) -> System<'s> {
        self.port.backing = Some(backing);
        self
    }

    /// The memory, for listeners.
    pub fn memory(&mut self) -> &mut Memory {
        &mut self.port.memory
    }

    /// The caches, with what they hold at the end.
    pub fn caches(&self) -> &Caches {
        &self.port.caches
    }

    /// The memory after a run, with all that the caches still held written back.
    pub fn into_memory(self) -> Memory {
        let dirty = self.port.caches.dirty_lines();
        let mut memory = self.port.memory;
        for dirty in dirty {
            memory.write_at_once(dirty.line, &dirty.data);
        }
        memory
    }

    /// Plays everything and returns the figures. `progress` hears how many transactions are done, or operations if
    /// there are no transactions, or requests if nothing executes operations, and may end the run by answering false.
    ///
    /// # Errors
    /// A source is broken further on, or nothing was left to count.
    pub fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Outcome, RunError> {
        let started = Instant::now();
        self.port.epochs = Some(Box::new(Epochs::new(Time::ZERO)));
        self.play(progress)?;
        let (trace, done) = (|| self.agents[0].name().to_owned(), self.done());
        if done == 0 {
            return Err(RunError::Empty { trace: trace() });
        }
        let Some(before) = &self.before else {
            let (warmup, unit, all) = match self.warmup {
                Warmup::Requests(requests) => (requests, "requests", self.port.admitted),
                Warmup::Transactions(number) => (number, "transactions", done),
            };
            return Err(RunError::OnlyWarmup {
                trace: trace(),
                warmup,
                unit,
                all,
            });
        };
        progress(done);
        let mut outcome = self.outcome(before, started.elapsed());
        self.drain(&mut outcome)?;
        Ok(outcome)
    }

    fn outcome(&self, before: &Before, took: Duration) -> Outcome {
        let finished = Finished {
            machine: &self.machine,
            port: &self.port,
            figures: self.agents.iter().map(|agent| agent.figures()).collect(),
            before,
        };
        outcome::conclude(&finished, took)
    }

    /// Plays as [`System::record`] does, but where something that a layer hands out is used up the run ends, and the
    /// journal notes it.
    ///
    /// # Errors
    /// A source is broken further on.
    ///
    /// # Panics
    /// If no journal listens.
    pub fn record_until_full(mut self) -> Result<(Box<Journal>, Vec<Choice>), RunError> {
        let ended = match self.play(&mut |_| true) {
            Err(RunError::Exhausted { why, .. }) => Some(why),
            other => other.map(|()| None)?,
        };
        let choices = self.port.memory.take_choices();
        let journal: Box<Journal> = self.port.memory.take().expect("one listens");
        let journal = match ended {
            Some(why) => journal.ended_by(why),
            None => journal,
        };
        Ok((journal, choices))
    }

    /// Plays everything and returns the journal, and the choices that were made where writes go as chosen.
    ///
    /// # Errors
    /// A source is broken further on.
    ///
    /// # Panics
    /// If no journal listens.
    pub fn record(mut self) -> Result<(Box<Journal>, Vec<Choice>), RunError> {
        self.play(&mut |_| true)?;
        let choices = self.port.memory.take_choices();
        Ok((self.port.memory.take().expect("one listens"), choices))
    }

    pub(super) fn play(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), RunError> {
        let mut turns = 0u64;
        loop {
            self.goes_on()?;
            let event = self.port.memory.next_event();
            if self.port.holds_victims() && self.port.memory.accepts() {
                if event <= self.port.memory.now() {
                    self.advance_until(event);
                } else {
                    self.port.send_victims();
                    self.take_answers();
                }
                continue;
            }
            let over = self.is_over();
            let next = if over { None } else { self.next_agent() };
            match next {
                Some(next) if event > next.time => {
                    self.count_after_requests(next.time);
                    self.agents[next.agent].run(&mut self.port, next.limit)?;
                    self.verified(next.agent)?;
                    self.turns[next.agent] = self.agents[next.agent].next_turn();
                    self.take_answers();
                    self.count_after_transactions();
                    turns += 1;
                    if turns.is_multiple_of(PROGRESS_EVERY) && !progress(self.done()) {
                        return Err(RunError::Cancelled);
                    }
                }
                next if event != Time::NEVER => {
                    self.advance_until(next.map_or(Time::NEVER, |next| next.time));
                }
                _ if self.port.memory.empty_queues(over || self.finished()) => {}
                _ => break,
            }
        }
        self.port.memory.assert_at_rest();
        assert!(
            self.is_over() || self.finished(),
            "an agent waits for nothing"
        );
        Ok(())
    }

    /// Whether memory can go on.
    ///
    /// # Errors
    /// It has no room, or has refused a line.
    pub(super) fn goes_on(&self) -> Result<(), RunError> {
        if let Some(why) = self.port.memory.failure() {
            let trace = self.agents[0].name().to_owned();
            let design = self.port.memory.design().to_owned();
            return Err(RunError::Exhausted { trace, design, why });
        }
        if let Some((region, line)) = self.port.memory.refused() {
            return Err(RunError::NotAuthentic {
                trace: self.agents[0].name().to_owned(),
                design: self.port.memory.design().to_owned(),
                region: region.to_owned(),
                line,
            });
        }
        Ok(())
    }

    pub(super) fn verified(&self, agent: usize) -> Result<(), RunError> {
        let Some(wrong) = self.port.memory.wrong() else {
            return Ok(());
        };
        let agent = &self.agents[agent];
        let (at, line) = agent.last();
        Err(RunError::Wrong {
            trace: agent.name().to_owned(),
            design: self.port.memory.design().to_owned(),
            at,
            line: line.map_or(wrong.line.0, |line| line.0),
            why: Box::new(*wrong),
        })
    }

    fn finished(&self) -> bool {
        self.agents.iter().all(|agent| agent.finished())
    }

    fn is_over(&self) -> bool {
        self.until
            .is_some_and(|until| self.port.admitted >= until.played)
    }

    fn next_agent(&self) -> Option<Next> {
        let takes = self.port.takes();
        let now = self.port.memory.now();
        let mut first: Option<(Next, Time)> = None;
        let mut limit = Time::NEVER;
        for (agent, turn) in self.turns.iter().enumerate() {
            let Some(turn) = turn else { continue };
            let time = match turn.needs_memory {
                false => turn.time,
                true if takes => turn.time.max(now),
                true => continue,
            };
            match &mut first {
                // At the same time those behind it go after it.
                Some((next, precedence)) if (time, turn.precedence) >= (next.time, *precedence) => {
                    limit = limit.min(time + Time::from_ps(1));
                }
                other => {
                    if let Some((next, _)) = other {
                        limit = limit.min(next.time.max(time + Time::from_ps(1)));
                    }
                    *other = Some((Next { agent, time, limit }, turn.precedence));
                }
            }
        }
        first.map(|(next, _)| Next { limit, ..next })
    }

    fn advance_until(&mut self, limit: Time) {
        self.port.memory.advance_until(limit);
        self.take_answers();
    }

    fn take_answers(&mut self) {
        self.port.answers(&mut self.answers);
        for (core, answer) in self.answers.drain(..) {
            self.agents[core].answered(answer);
            self.turns[core] = self.agents[core].next_turn();
        }
    }

    fn count_after_requests(&mut self, now: Time) {
        if let Warmup::Requests(requests) = self.warmup
            && self.before.is_none()
            && self.port.admitted >= requests
        {
            self.begin_counting(now);
        }
        if let (Some(until), Some(before)) = (self.until, &self.before)
            && self.counted.is_none()
            && self.port.admitted >= until.counted
        {
            self.counted = Some(self.outcome(before, Duration::ZERO));
            self.port.counted = false;
        }
    }

    fn count_after_transactions(&mut self) {
        if let Warmup::Transactions(number) = self.warmup
            && self.before.is_none()
            && self
                .port
                .committed
                .iter()
                .all(|committed| *committed >= number)
        {
            self.begin_counting(self.port.memory.now());
        }
    }

    fn begin_counting(&mut self, now: Time) {
        self.before = Some(Before {
            time: now,
            committed: self.port.committed.iter().sum(),
            figures: self.agents.iter().map(|agent| agent.figures()).collect(),
        });
        self.port.counted = true;
        self.port.fences = 0;
        if let Some(epochs) = &mut self.port.epochs {
            **epochs = Epochs::new(now);
        }
        self.port.memory.forget_figures();
    }

    fn done(&self) -> u64 {
        let committed: u64 = self.port.committed.iter().sum();
        let figures = self.agents.iter().map(|agent| agent.figures());
        let operations: Option<u64> = figures.map(|f| Some(f.executed?.operations)).sum();
        match operations {
            _ if committed > 0 => committed,
            Some(operations) => operations,
            None => self.port.admitted,
        }
    }
}

/// The agent whose turn is next, the time of that turn, and the time of the following agent's.
struct Next {
    agent: usize,
    time: Time,
    limit: Time,
}
