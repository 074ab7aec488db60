//! A module that compares pages, as an agent beside the cores: it requests some pairs of lines, at the on-chip network
//! first, compares them when all have come, and continues. The results are known already; here they take time.

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
    /// The line to request next, of those that are asked for at once: of each pair the candidate's first.
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

    fn step(&mut self) {
        let mut work = self.work.take().expect("at work");
        let (at_once, each) = work.at_once(self.costs.ahead);
        let one = match each {
            1 => self.costs.key_line,
            _ => self.costs.compare,
        };
        self.ready = work.here + one * u64::from(at_once);
        (work.next, work.here) = (0, self.ready);
        match work.job.pairs.get(work.at) {
            Some((_, lines)) if work.line + at_once < *lines => work.line += at_once,
            Some(_) => (work.at, work.line) = (work.at + 1, 0),
            None => work.at += usize::from(at_once),
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

impl TableWork {
    /// The pairs that are asked for at once, or the lines for a key; and the lines of one of them.
    fn at_once(&self, ahead: u8) -> (u8, u8) {
        match self.job.pairs.get(self.at) {
            Some((_, lines)) => (ahead.min(lines - self.line), 2),
            None => {
                let left = self.job.pairs.len() + self.job.keys.len() - self.at;
                (left.min(usize::from(ahead)) as u8, 1)
            }
        }
    }

    /// The lines that are asked for at once.
    fn requests(&self, ahead: u8) -> u8 {
        let (count, each) = self.at_once(ahead);
        count * each
    }

    /// The line to request next, and its number among the candidate's if it is one of these.
    fn next_line(&self) -> (u64, Option<u8>) {
        match self.job.pairs.get(self.at) {
            Some(((a, b), _)) => {
                let line = self.line + self.next / 2;
                let (frame, own) = match self.next % 2 {
                    0 => (a, Some(line)),
                    _ => (b, None),
                };
                (frame * PAGE_LINES + u64::from(line), own)
            }
            None => {
                let first = self.at - self.job.pairs.len();
                (self.job.keys[first + usize::from(self.next)], None)
            }
        }
    }
}

impl Agent for Module<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_turn(&self) -> Option<Turn> {
        let work = self.work.as_ref()?;
        (work.next < work.requests(self.costs.ahead)).then_some(Turn {
            time: self.ready + self.costs.network,
            needs_memory: true,
            precedence: Time::ZERO,
        })
    }

    fn run(&mut self, port: &mut Port, _limit: Time) -> Result<(), RunError> {
        let now = (self.ready + self.costs.network).max(port.now());
        let work = self.work.as_mut().expect("at work");
        let (line, own) = work.next_line();
        work.next += 1;
        if own.is_none_or(|own| work.kept >> own & 1 == 0) {
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
            if let Some(own) = own.filter(|_| self.costs.keeps) {
                work.kept |= 1 << own;
            }
        }
        if work.next == work.requests(self.costs.ahead) && work.out == 0 {
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
                self.ready = at + self.costs.start;
                self.go_on(TableWork {
                    job,
                    began: at,
                    at: 0,
                    line: 0,
                    next: 0,
                    out: 0,
                    here: self.ready,
                    kept: 0,
                });
            }
            AgentAnswer::Line(waiter, at) => {
                let way = self.way(waiter.load.expect("a line"));
                let work = self.work.as_mut().expect("at work");
                work.out -= 1;
                work.here = work.here.max(at + way);
                if work.next == work.requests(self.costs.ahead) && work.out == 0 {
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
