//! A history: one timed run of programs on a design, with the medium as setup left it, the journal of the run, and what
//! every line should hold.

pub(crate) mod capacity;
pub(crate) mod classes;
mod error;
pub(crate) mod golden;
pub(crate) mod machine;
pub(crate) mod run;
pub(crate) mod shared;

use std::sync::Arc;

use crate::history::capacity::narrow;
pub use error::{HistoryError, Result};

use crate::history::golden::{Expected, Golden};
use crate::history::machine::{adverse, fresh, may_fill, obliging, set_up, shrink};
use crate::history::shared::Joint;
use crate::pads::{Before, Encrypted, Held, Pads};
use crate::panics::caught;
use rustc_hash::FxHashMap;

use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::integrity::{MAC_PLACE, MINOR_BITS, MacPlace};
use sardonyx::controller::layers::{Counters, Guarantee, Placement, PowerFail};
use sardonyx::controller::mapping::places::least_lines;
use sardonyx::controller::{Class, Controller};
use sardonyx::line::{Line, Persist, Place};
use sardonyx::machine::{OpSource, RunError};
use sardonyx::mechanisms::{
    BESIDE, Exercised, HANDED_LINE, MIXED_COUNTER_LINE, SHARED_COUNTER_LINE,
};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::{CounterLines, Layout};
use sardonyx::medium::params::MERGE;
use sardonyx::medium::params::drain::DRAINS;
use sardonyx::medium::params::{CRASH_FIRST, CRASH_SPARE};
use sardonyx::plan::Holding;
use sardonyx::plan::journal::{Event, Journal, Mark};
use sardonyx::plan::orders::Choice;
use sardonyx::plan::script::Scripting;
use sardonyx::plan::start_gap::StartGap;
use sardonyx::plan::untimed::Untimed;
use sardonyx::settings::Settings;
use sardonyx_workload::{ProgramSpec, SpecError, Workload};

const PAGE_LINES: u64 = 64;

/// One timed run of programs on a design, and what a power cut could leave of it.
pub struct History {
    pub design: String,
    pub guarantee: Guarantee,
    /// The machine, its medium reduced to what the programs need.
    pub machine: Arc<Machine>,
    /// The number of the programs' life: 1, and one more after each cut.
    pub life: u32,
    pub seed: u64,
    /// The medium as setup, or the cut before, left it.
    pub image: Image,
    /// Every write, acceptance, change on chip and mark of the run, in order.
    pub journal: Box<Journal>,
    pub programs: Vec<Expected>,
    /// The expected lines of a program that all cores share; `None` if there is none.
    pub joint: Option<Joint>,
    pub pads: Arc<Pads>,
    /// The write requests of each line, in the order of handling.
    pub requests: FxHashMap<u64, Vec<u32>>,
    /// The way to tell from the medium's bytes where the programs' lines lie.
    pub placement: Placement,
    /// The lines of each core as they read at first, if that is not what setup wrote.
    found: Vec<Vec<Line>>,
    pub stack: Stack,
    /// The machine's settings, with small caches on chip.
    pub small: Arc<Settings>,
    counters: Option<CounterLines>,
    layout: Arc<Layout>,
    held: Held,
}

pub struct Life {
    pub image: Image,
    /// The lines that were encrypted before this life began, as last encrypted.
    pub encrypted: Vec<Encrypted>,
    /// The lines of each core as they read at its beginning, if the checks need them.
    pub found: Vec<Vec<Line>>,
    pub programs: Vec<Golden>,
    pub seed: u64,
    pub before: Option<Before>,
    /// The source of evictions, delays and pauses if it is not the seed, and whether they are recorded.
    pub scripting: Scripting,
}

impl Life {
    fn first(image: Image, encrypted: Vec<Encrypted>, programs: Vec<Golden>, seed: u64) -> Life {
        Life {
            image,
            encrypted,
            found: Vec::new(),
            programs,
            seed,
            before: None,
            scripting: Scripting::default(),
        }
    }
}

pub struct SetUp {
    /// A history of no events, from which lives are made.
    nothing: History,
    image: Image,
    encrypted: Vec<Encrypted>,
    programs: Vec<Golden>,
    first: u64,
}

impl SetUp {
    /// Sets up `specs`, one for each core, on `design`.
    ///
    /// # Errors
    /// The design or a program does not exist.
    pub fn new(machine: &Machine, design: &str, specs: &[ProgramSpec], seed: u64) -> Result<SetUp> {
        let stack = Stack::under(design, &machine.settings)?;
        let settings = &machine.settings;
        if (DRAINS.met)(settings) {
            return Err(HistoryError::Drains);
        }
        let overflows = stack.uses(MINOR_BITS.name()) && settings.get(&MINOR_BITS) != 0;
        if overflows && settings.get(&MAC_PLACE) == MacPlace::Beside && stack.uses(MAC_PLACE.name())
        {
            return Err(HistoryError::OverflowBeside {
                design: design.to_owned(),
            });
        }
        let first = machine.settings.get(&CRASH_FIRST) * PAGE_LINES;
        let (programs, end) = Golden::all(specs, first)?;
        let mut machine = machine.with_cores(specs.len());
        let spare = (end - first) * machine.settings.get(&CRASH_SPARE) / 100;
        if first > 0 {
            machine.engine.medium.geometry.rows = u64::MAX;
        }
        // Places that hold contents of others' lines are none of the programs'.
        let lines = least_lines(end + spare, &machine.settings);
        shrink(&mut machine, lines, u64::from(spare > 0));
        let there = machine.engine.medium.geometry.lines();
        if there < end {
            return Err(HistoryError::Room { end, there });
        }
        if may_fill(&machine.settings) {
            narrow(&mut machine, design, (specs, first), seed)?;
        }
        let (image, encrypted) = set_up(&machine, &stack, &programs)?;
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        stack.build(&machine.settings, &mut layout);
        let placement = (stack.mapping.placement)(&machine.settings, &layout);
        let nothing = History {
            design: design.to_owned(),
            guarantee: stack.guarantee(),
            life: 0,
            seed,
            image: Image::new(),
            journal: Box::default(),
            programs: Vec::new(),
            joint: None,
            pads: Arc::default(),
            requests: FxHashMap::default(),
            placement,
            found: Vec::new(),
            stack,
            small: Arc::new(fresh(&machine.settings)),
            counters: layout.counters().cloned(),
            held: Held::from_stack(&layout, &stack, &machine.settings),
            layout: Arc::new(layout),
            machine: Arc::new(machine),
        };
        Ok(SetUp {
            nothing,
            image,
            encrypted,
            programs,
            first,
        })
    }

    pub fn guarantee(&self) -> Guarantee {
        self.nothing.guarantee
    }

    /// Runs the programs on a machine without adversity, but with the writes that `held` names held back. Returns the
    /// run and the choices made.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn run(&self, held: Holding) -> Result<(History, Vec<Choice>)> {
        let specs = self.programs.iter().map(|p| p.expected.spec.clone());
        let specs: Vec<ProgramSpec> = specs.collect();
        let (programs, _) = Golden::all(&specs, self.first)?;
        let (image, encrypted) = (self.image.copy(), self.encrypted.clone());
        let life = Life::first(image, encrypted, programs, self.nothing.seed);
        let controller = self.nothing.first_controller();
        let life = caught(|| self.nothing.live(life, controller, Some(held)));
        Ok(life.map_err(HistoryError::Broken)??)
    }
}

impl History {
    /// Runs `specs`, one for each core, on `design`.
    ///
    /// # Errors
    /// The design or a program does not exist.
    pub fn record(
        machine: &Machine,
        design: &str,
        specs: &[ProgramSpec],
        seed: u64,
    ) -> Result<History> {
        History::scripted(machine, design, specs, seed, Scripting::default())
    }

    /// Runs `specs` as [`History::record`] does, with the evictions, delays and pauses of `scripting`.
    ///
    /// # Errors
    /// As [`History::record`].
    pub fn scripted(
        machine: &Machine,
        design: &str,
        specs: &[ProgramSpec],
        seed: u64,
        scripting: Scripting,
    ) -> Result<History> {
        let SetUp {
            nothing,
            image,
            encrypted,
            programs,
            ..
        } = SetUp::new(machine, design, specs, seed)?;
        let life = Life {
            scripting,
            ..Life::first(image, encrypted, programs, seed)
        };
        let life = caught(|| nothing.live(life, nothing.first_controller(), None));
        Ok(life.map_err(HistoryError::Broken)??.0)
    }

    /// The life after a cut of this one, with small caches on chip.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn next_life(&self, life: Life) -> Result<History, RunError> {
        Ok(self.live(life, self.controller(), None)?.0)
    }

    /// The life after a cut of this one, on a machine without adversity, with writes accepted in the order `chosen`.
    /// Returns it and the choices made.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn next_life_chosen(
        &self,
        life: Life,
        chosen: Vec<u16>,
    ) -> Result<(History, Vec<Choice>), RunError> {
        self.live(life, self.controller(), Some(Holding::Chosen(chosen)))
    }

    fn first_controller(&self) -> Controller {
        let mut layout = Layout::new(self.data_lines());
        self.stack.build(&self.machine.settings, &mut layout)
    }

    fn live(
        &self,
        mut life: Life,
        controller: Controller,
        held: Option<Holding>,
    ) -> Result<(History, Vec<Choice>), RunError> {
        let sources = life.programs.iter_mut();
        let sources = sources.map(|program| Box::new(program) as Box<dyn OpSource>);
        let (copy, sources) = (life.image.copy(), sources.collect());
        let named = (&*self.design, controller, Layout::clone(&self.layout));
        let (journal, choices) = match held {
            None => {
                let drawn = (life.seed, &life.scripting);
                adverse(&self.machine, named, copy, sources, drawn)?
            }
            Some(held) => obliging(&self.machine, named, copy, sources, held)?,
        };
        let mut requests: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (index, handled) in journal.handled.iter().enumerate() {
            requests
                .entry(handled.line.0)
                .or_default()
                .push(index as u32);
        }
        let pads = match self.is_encrypted() {
            true => Pads::new(life.encrypted, &journal, &self.held, life.before),
            false => Pads::default(),
        };
        let joint = life.programs[0].joint();
        let programs = life.programs.into_iter().map(|p| p.expected).collect();
        let joint = joint.map(|joint| {
            let joint = Arc::into_inner(joint).expect("the programs are over");
            joint.into_inner().expect("no thread panics")
        });
        let lived = History {
            design: self.design.clone(),
            guarantee: self.guarantee,
            machine: self.machine.clone(),
            life: self.life + 1,
            seed: life.seed,
            image: life.image,
            journal,
            programs,
            joint,
            pads: Arc::new(pads),
            requests,
            placement: self.placement.clone(),
            found: life.found,
            stack: self.stack,
            small: self.small.clone(),
            counters: self.counters.clone(),
            layout: self.layout.clone(),
            held: self.held.clone(),
        };
        Ok((lived, choices))
    }

    /// The number of positions at which the power can be cut: before the first event, and after each.
    pub fn positions(&self) -> u64 {
        self.journal.events.len() as u64 + 1
    }

    /// The content of the line at first; `None` if it is in no program's region.
    pub fn initial(&self, line: u64) -> Option<&Line> {
        let core = self.core_of(line)?;
        let program = &self.programs[core];
        let lines = self.found.get(core).unwrap_or(&program.initial);
        lines.get(program.region.index_of(line)? as usize)
    }

    /// A controller that knows nothing yet, with small caches: one is built for every cut, and the size of its caches
    /// does not change what is read.
    pub fn controller(&self) -> Controller {
        let mut layout = Layout::new(self.data_lines());
        self.stack.build(&self.small, &mut layout)
    }

    /// Returns a fresh controller that has recovered over what `untimed` holds and knows nothing else. Unfinished
    /// transactions are not put back yet ([`Controller::undo`]).
    pub fn recover(&self, untimed: &mut Untimed) -> Controller {
        let mut controller = self.controller();
        untimed.plan(|plan| controller.recover(plan));
        controller
    }

    /// The lines whose content can depend on the words `words` of the line at `place`; `None` if any line's can.
    pub fn lines_of(&self, place: Place, words: u8) -> Option<Vec<u64>> {
        if !matches!(self.placement, Placement::Home) {
            return None;
        }
        if place.0 < self.data_lines() {
            return Some(vec![place.0]);
        }
        let covered = self.covered(place, words);
        Some(covered.into_iter().map(|place| place.0).collect())
    }

    /// The places whose counters lie in the words `words` of the line at `place`; none if that is not a line of
    /// counters.
    pub fn covered(&self, place: Place, words: u8) -> Vec<Place> {
        let counters = self.counters.as_ref();
        counters.map_or(Vec::new(), |counters| counters.covered(place, words))
    }

    /// The counter of the line at `place`, read from `line`, which is its line of counters; `None` if it has none.
    pub fn counter_in(&self, line: &Line, place: Place) -> u64 {
        let counters = self.counters.as_ref();
        counters.map_or(0, |counters| counters.counter_in(line, place))
    }

    /// The behaviour of the integrity's registers and reserve power; `None` without integrity.
    pub fn power_fail(&self) -> Option<Box<dyn PowerFail>> {
        self.stack.power_fail(&self.machine.settings, &self.layout)
    }

    /// Wear levelling in a medium in which no line has moved; `None` without wear levelling.
    pub fn levelling(&self) -> Option<StartGap> {
        self.controller().levelling().cloned()
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The place of the counter of the line at `place`, if it has a line of its own. Lines of a hardware log's own
    /// chains, and all regions besides the data, have none.
    pub fn counter_place(&self, place: Place) -> Option<Place> {
        let is_data = place.0 < self.layout.data_lines();
        self.counters.as_ref().filter(|_| is_data)?.line_of(place)
    }

    /// Counts the uses of each mechanism in the run, without mechanisms that come after a cut.
    pub fn exercised(&self) -> Exercised {
        let journal = &self.journal;
        let mut exercised = journal.exercised.clone();
        let merged = journal.writes.iter().filter(|w| w.merged_into.is_some());
        exercised.add(&MERGE, merged.count() as u64);
        if let Some(joint) = &self.joint {
            exercised.add(&HANDED_LINE, joint.handed_over());
        }
        exercised.add(&BESIDE, self.beside());
        classes::count(&journal.handled, &mut exercised);
        let Some(counters) = &self.counters else {
            return exercised;
        };
        // Maps each line of counters to its last write: whether it was marked, and its core.
        let mut users: FxHashMap<Option<Place>, (bool, Option<usize>)> = FxHashMap::default();
        for sealed in &journal.sealed {
            let next = journal.handled.partition_point(|h| h.order <= sealed.order);
            let Some(request) = next.checked_sub(1).map(|index| &journal.handled[index]) else {
                continue;
            };
            let marked = request.persist == Persist::CounterAtomic;
            let core = self.core_of(request.line.0);
            let (before, last) = users
                .insert(counters.line_of(sealed.place), (marked, core))
                .unwrap_or((marked, core));
            exercised.add(&MIXED_COUNTER_LINE, u64::from(before != marked));
            exercised.add(&SHARED_COUNTER_LINE, u64::from(last != core));
        }
        exercised
    }

    /// The most transactions that one core has committed.
    pub fn longest_run(&self) -> u64 {
        self.committed().into_iter().max().unwrap_or(0)
    }

    pub fn committed(&self) -> Vec<u64> {
        let mut committed = vec![0; self.programs.len()];
        for (_, event) in &self.journal.events {
            if let Event::Mark { core, mark } = event {
                committed[*core as usize] += u64::from(matches!(mark, Mark::Committed(_)));
            }
        }
        committed
    }

    /// Counts transactions that a core has begun while another was in one, on lines that cores share.
    fn beside(&self) -> u64 {
        let (mut under_way, mut beside) = (0u64, 0);
        for (_, event) in self.journal.events.iter().filter(|_| self.joint.is_some()) {
            let Event::Mark { core, mark } = event else {
                continue;
            };
            match mark {
                Mark::Begin(_) => {
                    beside += u64::from(under_way & !(1 << core) != 0);
                    under_way |= 1 << core;
                }
                Mark::Committed(_) => under_way &= !(1 << core),
                Mark::Committing(_) | Mark::Fence => {}
            }
        }
        beside
    }

    /// The content that `line` should have if `visible` has each core's last visible transaction; `None` if it is not a
    /// program's line.
    pub fn content(&self, line: u64, visible: &[u64]) -> Option<&Line> {
        let core = self.core_of(line)?;
        Some(match &self.joint {
            Some(joint) => joint.content(line, visible),
            None => self.programs[core].content(line, visible[core]),
        })
    }

    /// The transaction that has left `line` as `content`, in words; `None` if none has, or if it is not a program's line.
    pub fn left_by(&self, line: u64, content: &Line) -> Option<String> {
        let setup = || "what setup left".to_owned();
        match &self.joint {
            Some(joint) => Some(match joint.left_by(line, content)? {
                Some((core, number)) => format!("what transaction {number} of core {core} left"),
                None => setup(),
            }),
            None => Some(
                match self.programs[self.core_of(line)?].left_by(line, content)? {
                    0 => setup(),
                    number => format!("what transaction {number} left"),
                },
            ),
        }
    }

    /// The program of `core` with its durability.
    ///
    /// # Errors
    /// None if it has been run.
    pub fn workload(&self, core: usize) -> Result<Workload, SpecError> {
        let spec = &self.programs[core].spec;
        match self.joint {
            Some(_) => spec.build_for(core as u64, self.programs.len() as u64),
            None => spec.build(),
        }
    }

    pub fn is_encrypted(&self) -> bool {
        self.stack.encrypts(&self.machine.settings)
    }

    pub fn has_global_counter(&self) -> bool {
        self.stack.policy.counters == Counters::Global
    }

    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The number of lines of the data region, which begins the medium.
    pub fn data_lines(&self) -> u64 {
        self.machine.engine.medium.geometry.lines()
    }

    /// Whether a run or a recovery may end because the medium or a log is full.
    pub fn may_fill(&self) -> bool {
        may_fill(&self.machine.settings)
    }

    pub fn class_of(&self, line: u64) -> Class {
        let core = self.core_of(line);
        core.map_or(Class::Data, |core| self.programs[core].class_of(line))
    }

    pub fn core_of(&self, line: u64) -> Option<usize> {
        self.programs.iter().position(|p| p.region.contains(line))
    }
}
