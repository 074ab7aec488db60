//! One run: cores play their traces against a controller, the engine times what it does.
//!
//! Requests are handled on admission, in (time, core) order, from a bounded ingress; a full queue
//! stalls the core and so delays what it does next. [`outcome`] turns the state into figures.

pub mod outcome;
mod port;
pub mod programs;
mod system;
pub mod traces;

use std::time::Instant;

use serde_json::json;

use crate::config::Machine;
use crate::controller::designs::{self, UnknownDesign};
use crate::controller::{Class, Controller, Write};
use crate::cpu::{Access, Copies, Core, CpuError, Kind as AccessKind, ReadId, Stream};
use crate::engine::{Engine, Request};
use crate::exhausted::Exhausted;
use crate::latency::Latencies;
use crate::medium::layout::Layout;
use crate::plan::{At, Step, Stored, Timer};
use crate::stats::Kind;
use crate::trace::Source;
use crate::units::Time;
use outcome::Finished;
pub use outcome::Outcome;
pub use port::{Event, Watch};
pub use system::{Ground, System, Warmup};

/// Accesses that are announced to the controller before they come, for the host's caches' sake.
const HINT_AHEAD: usize = 12;
/// Requests between two looks at the progress.
const PROGRESS_EVERY: u64 = 1 << 14;

/// Why a run cannot be made or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// No such design.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// The trace is broken, or asks for more than the machine has.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// Nothing to simulate.
    #[error("{trace}: no reads and no writes in it; give a longer --limit or another trace")]
    Empty {
        /// The trace's name.
        trace: String,
    },
    /// Everything went to the warm-up.
    #[error("{trace}: the warm-up of {warmup} {unit} leaves none of its {all}; lower --warmup")]
    OnlyWarmup {
        /// The trace's name.
        trace: String,
        /// How much was to be warm-up.
        warmup: u64,
        /// Of what.
        unit: &'static str,
        /// How much there is.
        all: u64,
    },
    /// The program's specification is wrong.
    #[error(transparent)]
    Program(#[from] crate::workload::SpecError),
    /// More cores than the caches can tell apart, or none.
    #[error(
        "{cores} cores; give 1 to {} for what is simulated from the core down",
        crate::cpu::MAX_CORES
    )]
    Cores {
        /// How many were asked for.
        cores: usize,
    },
    /// The programs' regions do not fit.
    #[error(
        "{program}: {cores} regions of {} MiB do not fit in the machine's {} MiB; \
         give a smaller footprint, fewer transactions or cores, or a larger machine",
        .region >> 14, .machine >> 14
    )]
    Region {
        /// The program.
        program: String,
        /// Regions wanted.
        cores: usize,
        /// Lines of one.
        region: u64,
        /// Lines that there are.
        machine: u64,
    },
    /// The run needs more than there is: a place for a line, time that the clock can tell.
    #[error("{trace} on {design}: {problem}; {remedy}")]
    Exhausted {
        /// The trace or program.
        trace: String,
        /// The design.
        design: String,
        /// What is the matter.
        problem: &'static str,
        /// What helps.
        remedy: &'static str,
    },
    /// Somebody asked for the run to end.
    #[error("cancelled")]
    Cancelled,
}

impl SimError {
    fn exhausted(trace: &str, design: &str, why: Exhausted) -> SimError {
        SimError::Exhausted {
            trace: trace.to_owned(),
            design: design.to_owned(),
            problem: why.problem,
            remedy: why.remedy,
        }
    }
}

/// What to run besides the machine and the design.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Requests that change state and count nowhere.
    pub warmup: u64,
    /// Copies of the trace have contents of their own.
    pub distinct: bool,
}

/// A run under way.
pub struct Simulation<'m> {
    machine: &'m Machine,
    design: String,
    engine: Engine,
    controller: Controller,
    cores: Vec<Core>,
    options: Options,
    admitted: u64,
    reads: Latencies,
    writes: Latencies,
    /// When and after how many instructions counting began.
    counted_from: (Time, u64),
    last_answer: Time,
}

impl<'m> Simulation<'m> {
    /// A run of `design` on `machine`, each core playing one of `sources`.
    ///
    /// # Errors
    /// The design is unknown, a trace is broken or does not fit.
    pub fn new(
        machine: &'m Machine,
        design: &str,
        sources: Vec<Source>,
        options: Options,
    ) -> Result<Simulation<'m>, SimError> {
        let lines = machine.engine.medium.geometry.lines();
        let mut layout = Layout::new(lines);
        let controller = designs::build(design, &machine.settings, &mut layout)?;
        let of = sources.len() as u32;
        let mut cores = Vec::new();
        for (copy, source) in sources.into_iter().enumerate() {
            let copies = Copies {
                copy: copy as u32,
                of,
                distinct: options.distinct,
            };
            let stream = Stream::new(source, copies, lines)?;
            cores.push(Core::new(&machine.core, stream.gap_unit(), stream));
        }
        Ok(Simulation {
            machine,
            design: design.to_owned(),
            engine: Engine::new(&machine.engine),
            controller,
            cores,
            options,
            admitted: 0,
            reads: Latencies::new(),
            writes: Latencies::new(),
            counted_from: (Time::ZERO, 0),
            last_answer: Time::ZERO,
        })
    }

    /// Keeps the command log, for the auditor.
    pub fn keep_log(&mut self) {
        self.engine.keep_log();
    }

    /// The engine, for its log and its figures.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Plays everything; `progress` is told the requests done and may end the run by answering
    /// false.
    ///
    /// # Errors
    /// A trace is broken further on, or nothing was left to count.
    pub fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Outcome, SimError> {
        let started = Instant::now();
        let mut over = false;
        loop {
            if let Some(why) = self.engine.failure() {
                let trace = self.cores[0].stream().name();
                return Err(SimError::exhausted(trace, &self.design, why));
            }
            let arrival = self.next_arrival();
            let event = self.engine.next_event();
            match arrival {
                Some((time, core)) if self.engine.admits() => {
                    let now = time.max(self.engine.now());
                    if event <= now {
                        self.advance_until(now);
                        continue;
                    }
                    self.admit(core, now)?;
                    if self.admitted.is_multiple_of(PROGRESS_EVERY) && !progress(self.admitted) {
                        return Err(SimError::Cancelled);
                    }
                }
                _ if event != Time::NEVER => self.advance_until(Time::NEVER),
                None if !over && self.cores.iter().all(Core::finished) => {
                    over = true;
                    self.engine.end_of_input();
                }
                _ if self.engine.kick() => {}
                _ => break,
            }
        }
        self.engine.assert_at_rest();
        let trace = self.cores[0].stream().name().to_owned();
        if self.admitted == 0 {
            return Err(SimError::Empty { trace });
        }
        if self.options.warmup >= self.admitted {
            return Err(SimError::OnlyWarmup {
                trace,
                warmup: self.options.warmup,
                unit: "requests",
                all: self.admitted,
            });
        }
        progress(self.admitted);
        Ok(outcome::of(&self.finished(), started.elapsed()))
    }

    fn finished(&self) -> Finished<'_> {
        let streams = || self.cores.iter().map(Core::stream);
        let retired = self.cores.iter().map(Core::retire_time).max();
        let skipped: u64 = streams().map(Stream::skipped).sum();
        let known = self.cores.iter().all(|core| core.instructions().is_some());
        Finished {
            machine: self.machine,
            engine: &self.engine,
            controller: &self.controller,
            cores: self.cores.len(),
            reads: &self.reads,
            writes: &self.writes,
            admitted: self.admitted,
            counted_from: self.counted_from,
            last_answer: self.last_answer,
            retired: retired.unwrap_or(Time::ZERO),
            instructions: known.then(|| self.instructions()),
            pages: streams().map(Stream::pages).sum(),
            from_the_core: false,
            own: [("skipped_fences_and_flushes".to_owned(), json!(skipped))]
                .into_iter()
                .collect(),
        }
    }

    fn next_arrival(&self) -> Option<(Time, usize)> {
        let heads = self.cores.iter().enumerate();
        let arrivals = heads.filter_map(|(index, core)| Some((core.next_arrival()?, index)));
        arrivals.min()
    }

    fn admit(&mut self, core: usize, now: Time) -> Result<(), SimError> {
        if self.admitted == self.options.warmup && self.admitted > 0 {
            self.begin_counting(now);
        }
        let arrival = self.cores[core].next_arrival().expect("a head access");
        let taken = self.cores[core].take(now)?;
        let Access {
            kind, line, data, ..
        } = taken.access;
        if let Some(ahead) = self.cores[core].peek(HINT_AHEAD) {
            let (controller, line) = (&self.controller, ahead.line);
            self.engine.look(|plan| controller.hint(line, plan));
        }
        let request = Request {
            arrival,
            core: core as u32,
            tag: taken.read.map_or(0, |id| id.0),
            kind: match kind {
                AccessKind::Read => Kind::Read,
                AccessKind::Write => Kind::Write,
            },
            counted: self.admitted >= self.options.warmup,
        };
        let controller = &mut self.controller;
        self.engine.admit(request, now, |plan| match kind {
            AccessKind::Read => Stored::at(controller.read(line, Class::Data, Step::PAST, plan).at),
            AccessKind::Write => {
                let write = Write {
                    core: core as u32,
                    ..Write::new(line, At::past(&data))
                };
                controller.write(write, plan)
            }
        });
        self.admitted += 1;
        self.take_answers();
        Ok(())
    }

    fn advance_until(&mut self, limit: Time) {
        if let Some(timer) = self.engine.advance_until(limit) {
            self.wake(timer);
        }
        self.take_answers();
    }

    fn wake(&mut self, timer: Timer) {
        let (controller, now) = (&mut self.controller, self.engine.now());
        self.engine
            .background(|plan| controller.wake(timer, now, plan));
    }

    fn take_answers(&mut self) {
        if !self.engine.has_answers() {
            return;
        }
        for answer in self.engine.answers() {
            let request = answer.request;
            let latency = answer.at - request.arrival;
            self.last_answer = answer.at;
            let latencies = match request.kind {
                Kind::Read => {
                    self.cores[request.core as usize].read_done(ReadId(request.tag), answer.at);
                    &mut self.reads
                }
                Kind::Write => &mut self.writes,
            };
            if request.counted {
                latencies.record(latency);
            }
        }
    }

    fn begin_counting(&mut self, now: Time) {
        self.counted_from = (now, self.instructions());
        self.engine.forget_figures();
        self.controller.forget_figures();
    }

    fn instructions(&self) -> u64 {
        self.cores.iter().filter_map(Core::instructions).sum()
    }
}
