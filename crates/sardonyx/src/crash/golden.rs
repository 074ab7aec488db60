//! What a program's lines hold after each of its transactions: the answer that a recovery is held
//! against. It comes from running the program on plain memory, once.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::line::{Line, Logical};
use crate::machine::{Batch, OpSource, RunError};
use crate::units::Time;
use crate::workload::{ProgramRun, ProgramSpec, SpecError};

/// One core's program for the timed run, which writes down what its lines hold.
pub struct Golden {
    run: ProgramRun,
    expected: Expected,
}

/// A program's lines by transaction.
#[derive(Clone, Debug)]
pub struct Expected {
    spec: ProgramSpec,
    region: Range<u64>,
    log: Range<u64>,
    /// The region as setup leaves it.
    initial: Vec<Line>,
    /// Of each line that changed: after which transaction it holds what, oldest first.
    versions: FxHashMap<u64, Vec<(u64, Line)>>,
    /// The lines that each transaction changes, the first being 1.
    deltas: Vec<Vec<u64>>,
}

impl Golden {
    /// The program of `spec`, set up in a region that begins at line `base`.
    ///
    /// # Errors
    /// What is wrong with `spec`, and the remedy.
    pub fn new(spec: &ProgramSpec, base: Logical) -> Result<Golden, SpecError> {
        let run = ProgramRun::new(spec, base)?;
        let memory = run.memory();
        let expected = Expected {
            spec: spec.clone(),
            region: base.0..base.0 + run.lines(),
            log: run.log_lines(),
            initial: (0..memory.lines()).map(|line| *memory.line(line)).collect(),
            versions: FxHashMap::default(),
            deltas: Vec::new(),
        };
        Ok(Golden { run, expected })
    }

    /// What has been written down.
    pub fn expected(&self) -> &Expected {
        &self.expected
    }
}

impl Expected {
    /// The program's specification.
    pub fn spec(&self) -> &ProgramSpec {
        &self.spec
    }

    /// The region's lines in the machine.
    pub fn region(&self) -> Range<u64> {
        self.region.clone()
    }

    /// Those that hold the undo log.
    pub fn log(&self) -> Range<u64> {
        self.log.clone()
    }

    /// What setup wrote.
    pub fn initial(&self) -> &[Line] {
        &self.initial
    }

    /// What `line` holds when `visible` is the last transaction.
    pub fn content(&self, line: u64, visible: u64) -> &Line {
        let newest = self.versions.get(&line).and_then(|versions| {
            let older = versions.partition_point(|(number, _)| *number <= visible);
            versions[..older].last()
        });
        match newest {
            Some((_, line)) => line,
            None => &self.initial[(line - self.region.start) as usize],
        }
    }

    /// The transaction after which `line` first holds `content`, 0 for setup.
    pub fn dated(&self, line: u64, content: &Line) -> Option<u64> {
        let versions = self.versions.get(&line).into_iter().flatten();
        let known = versions.filter(|(_, l)| l == content).map(|(n, _)| *n);
        let initial = &self.initial[(line - self.region.start) as usize];
        (initial == content)
            .then_some(0)
            .into_iter()
            .chain(known)
            .min()
    }

    /// Lines whose content differs between two transactions.
    pub fn between(&self, a: u64, b: u64) -> impl Iterator<Item = u64> + '_ {
        let (from, to) = (a.min(b) as usize, a.max(b) as usize);
        let to = to.min(self.deltas.len());
        self.deltas[from.min(to)..to].iter().flatten().copied()
    }

    /// Transactions that it has run.
    pub fn transactions(&self) -> u64 {
        self.deltas.len() as u64
    }
}

impl OpSource for Golden {
    fn name(&self) -> &str {
        self.run.name()
    }

    fn refill(&mut self, _now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        if self.run.done() == self.run.spec().transactions {
            return Ok(false);
        }
        let (delta, base) = (self.run.transaction_with_delta(batch), self.run.base().0);
        let lines = delta.lines.iter().map(|change| base + change.line);
        let expected = &mut self.expected;
        expected.deltas.push(lines.clone().collect());
        for (line, change) in lines.zip(&delta.lines) {
            let version = (delta.transaction, change.after);
            expected.versions.entry(line).or_default().push(version);
        }
        Ok(true)
    }

    fn log_lines(&self) -> Range<u64> {
        self.run.log_lines()
    }

    fn pages(&self) -> u64 {
        self.run.pages()
    }
}
