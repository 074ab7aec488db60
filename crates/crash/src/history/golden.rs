//! The expected contents of a program's lines after each of its transactions. They come from running the program once
//! on plain memory.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::history::shared::Joint;
use crate::violation::Kind;
use sardonyx::line::{Class, Line, Lines, Logical, Virtual, ZERO_LINE};
use sardonyx::machine::{Batch, OpKind, OpSource, PAGE_LINES, RunError};
use sardonyx::plan::journal::Mark;
use sardonyx::units::Time;
use sardonyx_workload::{ProgramRun, ProgramSpec, RECOVERING, SharedRun, Sharing, SpecError};

/// Regions that are not interleaved begin on different pages, and so on different lines of counters.
const APART: u64 = PAGE_LINES;

/// One core's program for the timed run; it records what its lines hold.
pub struct Golden {
    run: Running,
    /// The operations of the recovery, which come before anything else.
    recovery: Option<Batch>,
    last: u64,
    pub expected: Expected,
}

/// A program of one core, or a core's part of a program that all cores share.
enum Running {
    Own(ProgramRun),
    /// The part of the core with that number, and the recorded contents of all.
    Shared(usize, SharedRun, Arc<Mutex<Joint>>),
}

/// The transactions of a core that may be the last visible one after a cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub required: u64,
    pub allowed: u64,
}

impl Window {
    pub fn follow(&mut self, mark: Mark) {
        match mark {
            Mark::Committing(number) => self.allowed = number,
            Mark::Committed(number) => self.required = number,
            Mark::Fence | Mark::Begin(_) => {}
        }
    }

    /// The kind of violation if transaction `visible` is the last visible one; `None` if it may be.
    pub fn broken_by(self, visible: u64) -> Option<Kind> {
        if visible < self.required {
            Some(Kind::Lost)
        } else if visible > self.allowed {
            Some(Kind::Early)
        } else {
            None
        }
    }
}

#[derive(Clone, Debug)]
pub struct Expected {
    pub spec: ProgramSpec,
    pub region: Lines,
    pub log: Lines,
    /// The offset in the region, in bytes, of the log's header.
    pub header: u64,
    /// The last visible transaction at the beginning.
    pub first: u64,
    /// The region's lines after that transaction, or after setup.
    pub initial: Vec<Line>,
    /// Maps each line that changed to its contents, oldest first, each with the transaction that left it.
    versions: FxHashMap<u64, Vec<(u64, Line)>>,
    /// The lines that each transaction after `first` changes.
    pub changes: Vec<Vec<u64>>,
}

impl Golden {
    /// The program of `spec`, set up in a region whose first line is `base`.
    ///
    /// # Errors
    /// What is wrong with `spec`, and the remedy.
    pub fn new(spec: &ProgramSpec, base: Logical) -> Result<Golden, SpecError> {
        let run = ProgramRun::new(spec, base)?;
        let (memory, workload) = (run.memory(), run.workload());
        let expected = Expected {
            spec: spec.clone(),
            region: run.region(),
            header: workload.log_bytes().start,
            log: run.log_lines(),
            first: 0,
            initial: (0..memory.lines()).map(|line| *memory.line(line)).collect(),
            versions: FxHashMap::default(),
            changes: Vec::new(),
        };
        Ok(Golden {
            run: Running::Own(run),
            recovery: None,
            last: spec.transactions,
            expected,
        })
    }

    /// The programs of `specs`, one for each core and set up, from line `first` on; and the line after them.
    ///
    /// # Errors
    /// What is wrong with them, and the remedy.
    pub fn all(specs: &[ProgramSpec], first: u64) -> Result<(Vec<Golden>, u64), SpecError> {
        if specs[0].is_shared() {
            let runs = SharedRun::all(specs, Logical(first))?;
            let memory = runs[0].memory();
            let initial = (0..memory.lines()).map(|line| *memory.line(line));
            let initial = initial.collect();
            drop(memory);
            let programs = Golden::together(runs, vec![0; specs.len()], initial);
            let end = programs[0].expected.region.end().next_multiple_of(APART);
            return Ok((programs, end));
        }
        let mut end = first;
        let mut programs = Vec::new();
        for (core, spec) in specs.iter().enumerate() {
            let base = match spec.sharing {
                Sharing::Interleaved { .. } => first + core as u64,
                Sharing::Apart | Sharing::Packed => end,
            };
            let golden = Golden::new(spec, Logical(base))?;
            end = end.max(golden.expected.region.end().next_multiple_of(APART));
            programs.push(golden);
        }
        Ok((programs, end))
    }

    /// The parts of a program that all cores share, whose lines hold `initial` after the transactions of `first`.
    fn together(runs: Vec<SharedRun>, first: Vec<u64>, initial: Vec<Line>) -> Vec<Golden> {
        let (region, logs) = (runs[0].region(), runs[0].logs());
        let joint = Joint::new(region, logs, first.clone(), initial);
        let joint = Arc::new(Mutex::new(joint));
        let golden = |(core, run): (usize, SharedRun)| {
            let of = joint.lock().expect("no thread panics");
            let expected = Expected {
                spec: run.spec().clone(),
                region: run.region(),
                header: run.workload().log_bytes().start,
                log: run.logs(),
                first: first[core],
                initial: of.initial.clone(),
                versions: FxHashMap::default(),
                changes: Vec::new(),
            };
            Golden {
                last: run.spec().transactions,
                run: Running::Shared(core, run, joint.clone()),
                recovery: None,
                expected,
            }
        };
        runs.into_iter().enumerate().map(golden).collect()
    }

    /// The cores' parts of a shared program after a power cut. The first core has made `recovery` while the others
    /// waited; `visible` are the last visible transactions of the cores, and each core makes up to `transactions` more.
    /// `None` if that many could never be visible.
    pub fn together_again(
        before: &[Expected],
        joint: &Joint,
        visible: &[u64],
        recovery: Batch,
        transactions: &[u64],
        seed: u64,
    ) -> Option<Vec<Golden>> {
        let specs = before.iter().map(|program| ProgramSpec {
            seed,
            ..program.spec.clone()
        });
        let specs: Vec<ProgramSpec> = specs.collect();
        let now = |line| match joint.logs.contains(line) {
            true => ZERO_LINE,
            false => *joint.content(line, visible),
        };
        let initial: Vec<Line> = joint.region.iter().map(now).collect();
        let runs = SharedRun::again(&specs, &joint.region, &initial, visible).ok()?;
        let mut programs = Golden::together(runs, visible.to_vec(), initial);
        let mut recovery = Some(recovery);
        for (core, program) in programs.iter_mut().enumerate() {
            let last = visible[core].checked_add(transactions[core])?;
            program.last = program.last.min(last).max(visible[core]);
            let mut batch = recovery.take().unwrap_or_else(|| {
                let mut waits = Batch::default();
                waits.push(OpKind::Lock, Virtual(RECOVERING));
                waits
            });
            batch.push(OpKind::Unlock, Virtual(RECOVERING));
            program.recovery = Some(batch);
        }
        Some(programs)
    }

    /// The recorded contents of a program that all cores share; `None` if there is none.
    pub fn joint(&self) -> Option<Arc<Mutex<Joint>>> {
        match &self.run {
            Running::Own(_) => None,
            Running::Shared(_, _, joint) => Some(joint.clone()),
        }
    }

    /// The program of `before` after a power cut: `recovery` has left `visible` as the last visible transaction, and up
    /// to `transactions` more follow, with keys and choices of another seed. `None` if that many could never be
    /// visible.
    pub fn again(
        before: &Expected,
        visible: u64,
        recovery: Batch,
        transactions: u64,
        seed: u64,
    ) -> Option<Golden> {
        let spec = ProgramSpec {
            seed,
            ..before.spec.clone()
        };
        let last = spec.transactions.min(visible.checked_add(transactions)?);
        let mut initial = before.initial.clone();
        for line in before.versions.keys() {
            initial[before.index_of(*line)] = *before.content(*line, visible);
        }
        for index in before
            .log
            .iter()
            .filter_map(|line| before.region.index_of(line))
        {
            initial[index as usize] = ZERO_LINE;
        }
        let run = ProgramRun::again(&spec, &before.region, &initial, visible).ok()?;
        let expected = Expected {
            spec,
            region: before.region.clone(),
            header: before.header,
            log: before.log.clone(),
            first: visible,
            initial,
            versions: FxHashMap::default(),
            changes: Vec::new(),
        };
        Some(Golden {
            run: Running::Own(run),
            recovery: Some(recovery),
            last: last.max(visible),
            expected,
        })
    }
}

impl Expected {
    pub fn content(&self, line: u64, visible: u64) -> &Line {
        let newest = self.versions.get(&line).and_then(|versions| {
            let older = versions.partition_point(|(number, _)| *number <= visible);
            versions[..older].last()
        });
        match newest {
            Some((_, line)) => line,
            None => &self.initial[self.index_of(line)],
        }
    }

    fn index_of(&self, line: u64) -> usize {
        self.region.index_of(line).expect("a line of it") as usize
    }

    /// The last transaction that has left `line` as `content`; 0 stands for setup, or for what came before.
    pub fn left_by(&self, line: u64, content: &Line) -> Option<u64> {
        let versions = self.versions.get(&line).into_iter().flatten();
        let left = versions.rev().find(|(_, line)| line == content);
        let initial = || {
            let initial = &self.initial[self.region.index_of(line)? as usize];
            (initial == content).then_some(self.first)
        };
        left.map(|(number, _)| *number).or_else(initial)
    }

    pub fn class_of(&self, line: u64) -> Class {
        match self.log.contains(line) {
            true => Class::Log,
            false => Class::Data,
        }
    }

    pub fn between(&self, a: u64, b: u64) -> impl Iterator<Item = u64> + '_ {
        let index = |number: u64| number.saturating_sub(self.first) as usize;
        let (from, to) = (index(a.min(b)), index(a.max(b)));
        let to = to.min(self.changes.len());
        self.changes[from.min(to)..to].iter().flatten().copied()
    }
}

impl OpSource for Golden {
    fn name(&self) -> &str {
        &self.expected.spec.name
    }

    fn refill(&mut self, _now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        if let Some(recovery) = self.recovery.take() {
            *batch = recovery;
            return Ok(true);
        }
        let expected = &mut self.expected;
        let run = match &mut self.run {
            Running::Own(run) => run,
            Running::Shared(core, run, joint) => {
                if run.done() == self.last {
                    return Ok(false);
                }
                if let Some(changed) = run.next(batch) {
                    let memory = run.memory();
                    let lines = changed.into_iter();
                    let lines = lines.map(|at| (expected.region.at(at), *memory.line(at)));
                    let mut joint = joint.lock().expect("no thread panics");
                    joint.next(*core, lines);
                }
                return Ok(true);
            }
        };
        if run.done() == self.last {
            return Ok(false);
        }
        let changed = run.transaction_with_changes(batch);
        let number = run.done();
        let mut lines = Vec::new();
        for index in changed {
            let line = expected.region.at(index);
            let versions = expected.versions.entry(line).or_default();
            versions.push((number, *run.memory().line(index)));
            lines.push(line);
        }
        expected.changes.push(lines);
        Ok(true)
    }

    fn log_lines(&self) -> Lines {
        self.expected.log.clone()
    }

    fn pages(&self) -> u64 {
        self.expected.region.count.div_ceil(PAGE_LINES)
    }

    fn holds(&self) -> Vec<u64> {
        match (&self.run, &self.recovery) {
            (Running::Shared(0, ..), Some(_)) => vec![RECOVERING],
            _ => Vec::new(),
        }
    }
}
