//! A module that compares pages, as an agent beside the cores: it requests two lines at a time, at the on-chip network
//! first, compares them when both have come, and continues. The results are known already; here they take time.

use std::sync::{Arc, Mutex};

use super::host::Host;
use super::jobs::{ModuleCosts, ModuleJob};
use sardonyx::config::Machine;
use sardonyx::line::Logical;
use sardonyx::machine::{
    Agent, AgentAnswer, CoreFigures, Counts, PAGE_LINES, Port, RunError, Turn, Waiter,
};
use sardonyx::units::Time;

struct TableWork {
    job: ModuleJob,
    began: Time,
    /// The number of the comparison; after all of them, that of the line for the key.
    at: usize,
    line: u8,
    /// The line of the pair to request next: 0 or 1; 2 after both.
    next: u8,
    out: usize,
    here: Time,
    /// A bit for each line of the candidate that is kept.
    kept: u64,
}

pub struct Module<'i> {
    agent: usize,
    number: usize,
    name: String,
    host: Arc<Mutex<Host<'i>>>,
    costs: ModuleCosts,
    columns: u64,
    channels: u64,
    work: Option<TableWork>,
    ready: Time,
}

impl<'i> Module<'i> {
    pub fn new(
        agent: usize,
        number: usize,
        machine: &Machine,
        costs: &ModuleCosts,
        host: Arc<Mutex<Host<'i>>>,
    ) -> Module<'i> {
        let geometry = &machine.engine.medium.geometry;
        Module {
            agent,
            number,
            name: format!("{} {number}", costs.name),
            host,
            costs: costs.clone(),
            columns: geometry.columns,
            channels: geometry.channels,
            work: None,
            ready: Time::ZERO,
        }
    }

    /// The time that an answer of memory travels; zero from the module's own controller.
    fn way(&self, line: u64) -> Time {
        let channel = line / self.columns % self.channels;
        match self.costs.outside || channel != self.number as u64 % self.channels {
            true => self.costs.network,
            false => Time::ZERO,
        }
    }

    fn lines(&self) -> [Option<u64>; 2] {
        let work = self.work.as_ref().expect("at work");
        match work.job.pairs.get(work.at) {
            Some(((a, b), _)) => {
                [a, b].map(|frame| Some(frame * PAGE_LINES + u64::from(work.line)))
            }
            None => [
                work.job.keys.get(work.at - work.job.pairs.len()).copied(),
                None,
            ],
        }
    }

    fn step(&mut self) {
        let mut work = self.work.take().expect("at work");
        self.ready = work.here + self.costs.compare;
        (work.next, work.here) = (0, self.ready);
        match work.job.pairs.get(work.at) {
            Some((_, lines)) if work.line + 1 < *lines => work.line += 1,
            _ => (work.at, work.line) = (work.at + 1, 0),
        }
        self.go_on(work);
    }

    fn go_on(&mut self, work: TableWork) {
        if work.at < work.job.pairs.len() + work.job.keys.len() {
            self.work = Some(work);
            return;
        }
        let mut host = self.host.lock().expect("no panic");
        let jobs = host.jobs.as_mut().expect("it is a module");
        jobs.finish(self.number, self.ready);
        host.figures.tables.push(self.ready.since(work.began));
    }
}

impl Agent for Module<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_turn(&self) -> Option<Turn> {
        let work = self.work.as_ref()?;
        (work.next < 2).then_some(Turn {
            time: self.ready + self.costs.network,
            needs_memory: true,
            precedence: Time::ZERO,
        })
    }

    fn run(&mut self, port: &mut Port, _limit: Time) -> Result<(), RunError> {
        let now = (self.ready + self.costs.network).max(port.now());
        let lines = self.lines();
        let work = self.work.as_mut().expect("at work");
        let (line, next) = (lines[usize::from(work.next)], work.next);
        work.next += 1;
        let kept = next == 0 && work.kept >> work.line & 1 == 1;
        if let Some(line) = line
            && !kept
        {
            let waiter = Waiter {
                core: self.agent,
                load: Some(line),
                first: true,
                since: 0,
            };
            let mut host = self.host.lock().expect("no panic");
            host.figures.merging_lines += 1;
            drop(host);
            if port.probe(waiter, Logical(line), now) {
                work.here = work.here.max(now);
            } else {
                work.out += 1;
            }
            if next == 0 && self.costs.keeps {
                work.kept |= 1 << work.line;
            }
        }
        if work.next == 2 && work.out == 0 {
            self.step();
        }
        Ok(())
    }

    fn answered(&mut self, answer: AgentAnswer) {
        match answer {
            AgentAnswer::Rung(at) => {
                let mut host = self.host.lock().expect("no panic");
                let jobs = host.jobs.as_mut().expect("it is a module");
                let job = jobs.take(self.number);
                drop(host);
                self.ready = at;
                self.go_on(TableWork {
                    job,
                    began: at,
                    at: 0,
                    line: 0,
                    next: 0,
                    out: 0,
                    here: at,
                    kept: 0,
                });
            }
            AgentAnswer::Line(waiter, at) => {
                let way = self.way(waiter.load.expect("a line"));
                let work = self.work.as_mut().expect("at work");
                work.out -= 1;
                work.here = work.here.max(at + way);
                if work.next == 2 && work.out == 0 {
                    self.step();
                }
            }
            AgentAnswer::Accepted(_) => unreachable!("it writes nothing"),
        }
    }

    fn finished(&self) -> bool {
        self.work.is_none()
    }

    fn figures(&self) -> CoreFigures {
        CoreFigures {
            instructions: Some(0),
            executed: Some(Counts::default()),
            ..CoreFigures::default()
        }
    }
}

/// The traffic through the last-level cache and to memory until some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub at: Time,
    /// Lines read and written in memory until then.
    pub traffic: [u64; 2],
    /// Accesses that the last-level cache has answered until then, and that it has not.
    pub llc: [u64; 2],
    /// Lines of pages that the kernel's thread and modules have asked for until then.
    pub merging: u64,
}

pub struct Sampler<'i> {
    every: Time,
    next: Time,
    host: Arc<Mutex<Host<'i>>>,
    samples: Arc<Mutex<Vec<Sample>>>,
    over: bool,
}

impl<'i> Sampler<'i> {
    pub fn new(
        every: Time,
        host: Arc<Mutex<Host<'i>>>,
        samples: Arc<Mutex<Vec<Sample>>>,
    ) -> Sampler<'i> {
        Sampler {
            every,
            next: Time::ZERO,
            host,
            samples,
            over: false,
        }
    }
}

impl Agent for Sampler<'_> {
    fn name(&self) -> &str {
        "sampler"
    }

    fn next_turn(&self) -> Option<Turn> {
        (!self.over).then_some(Turn {
            time: self.next,
            needs_memory: false,
            precedence: Time::ZERO,
        })
    }

    fn run(&mut self, port: &mut Port, _limit: Time) -> Result<(), RunError> {
        let host = self.host.lock().expect("no panic");
        self.samples.lock().expect("no panic").push(Sample {
            at: self.next,
            merging: host.figures.merging_lines,
            traffic: port.traffic(),
            llc: port.caches().llc_accesses(),
        });
        self.next += self.every;
        self.over = host.is_over();
        Ok(())
    }

    fn answered(&mut self, _: AgentAnswer) {}

    fn finished(&self) -> bool {
        self.over
    }

    fn figures(&self) -> CoreFigures {
        CoreFigures {
            instructions: Some(0),
            executed: Some(Counts::default()),
            ..CoreFigures::default()
        }
    }
}
