//! A program running functionally: each transaction changes its flat memory at once and leaves the
//! operations that a core will play, and on demand what it changed.

use rustc_hash::FxHashMap;

use super::structures::PROGRAMS;
use super::transaction::pieces;
use super::{Flat, Mark, Memory, Program, ProgramSpec};
use crate::cpu::{Batch, CpuError, OpKind, OpSource};
use crate::line::{LINE_BYTES, Line, Logical};

const LINE: u64 = LINE_BYTES as u64;

/// What one transaction changes, its log left out: enough to know the state before from the state
/// after and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// The transaction.
    pub transaction: u64,
    /// Lines in the order of their first change.
    pub lines: Vec<LineChange>,
}

/// One line of a [`Delta`]; a line that setup did not write begins as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// Its number in the region.
    pub line: u64,
    /// Its bytes before.
    pub before: Line,
    /// Its bytes after.
    pub after: Line,
}

/// A program, its flat memory and how far it is.
pub struct ProgramRun {
    spec: ProgramSpec,
    program: Box<dyn Program>,
    flat: Flat,
    base: u64,
    set_up: u64,
    done: u64,
}

impl ProgramRun {
    /// Sets up the program of `spec` in a region that begins at line `base` of the machine.
    ///
    /// # Errors
    /// What is wrong with `spec`, and the remedy.
    pub fn new(spec: &ProgramSpec, base: Logical) -> Result<ProgramRun, SpecError> {
        let mut program = spec.build()?;
        let mut flat = Flat::new(program.region_bytes());
        program.setup(&mut flat);
        // Setup fills from below, so that what it has not written is all at the end.
        let used = (0..flat.lines())
            .rev()
            .find(|line| *flat.line(*line) != [0; LINE_BYTES]);
        Ok(ProgramRun {
            spec: spec.clone(),
            program,
            set_up: used.map_or(0, |line| line + 1),
            flat,
            base: base.0,
            done: 0,
        })
    }

    /// The program, for recovery and checks.
    pub fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// Its specification.
    pub fn spec(&self) -> &ProgramSpec {
        &self.spec
    }

    /// The memory as it is after the last transaction.
    pub fn memory(&self) -> &Flat {
        &self.flat
    }

    /// Where the region begins.
    pub fn base(&self) -> Logical {
        Logical(self.base)
    }

    /// Lines of the region.
    pub fn lines(&self) -> u64 {
        self.flat.lines()
    }

    /// Lines, from the first, that setup has written or that lie between those.
    pub fn set_up_lines(&self) -> u64 {
        self.set_up
    }

    /// Transactions done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Runs the next transaction and appends its operations to `batch`.
    pub fn transaction(&mut self, batch: &mut Batch) {
        self.record(batch, None);
    }

    /// The same, and says what it changed.
    pub fn transaction_with_delta(&mut self, batch: &mut Batch) -> Delta {
        let mut before = Before::default();
        self.record(batch, Some(&mut before));
        let log = self.program.log_bytes();
        let data = before
            .order
            .into_iter()
            .filter(|line| !log.contains(&(line * LINE)));
        let lines = data.map(|line| LineChange {
            line,
            before: before.lines[&line],
            after: *self.flat.line(line),
        });
        Delta {
            transaction: self.done,
            lines: lines.collect(),
        }
    }

    fn record(&mut self, batch: &mut Batch, before: Option<&mut Before>) {
        self.done += 1;
        let mut recorder = Recorder {
            flat: &mut self.flat,
            base: self.base,
            batch,
            before,
        };
        self.program.transaction(self.done, &mut recorder);
    }
}

/// A program as a core's operations, one transaction at a time.
impl OpSource for ProgramRun {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn refill(&mut self, batch: &mut Batch) -> Result<bool, CpuError> {
        if self.done == self.spec.transactions {
            return Ok(false);
        }
        self.transaction(batch);
        Ok(true)
    }

    fn log_lines(&self) -> std::ops::Range<u64> {
        let log = self.program.log_bytes();
        self.base + log.start / LINE..self.base + log.end.div_ceil(LINE)
    }

    fn pages(&self) -> u64 {
        self.flat.lines().div_ceil(crate::cpu::PAGE_LINES)
    }
}

/// The old bytes of the lines that a transaction has changed.
#[derive(Default)]
struct Before {
    order: Vec<u64>,
    lines: FxHashMap<u64, Line>,
}

/// Executes on flat memory and writes down what a core has to do.
struct Recorder<'r> {
    flat: &'r mut Flat,
    base: u64,
    batch: &'r mut Batch,
    before: Option<&'r mut Before>,
}

impl Recorder<'_> {
    fn line(&self, at: u64) -> Logical {
        Logical(self.base + at / LINE)
    }

    fn write(&mut self, at: u64, bytes: &[u8], atomic: bool) {
        for (home, within, part) in pieces(at, bytes.len()) {
            if let Some(before) = &mut self.before {
                let line = home / LINE;
                before.lines.entry(line).or_insert_with(|| {
                    before.order.push(line);
                    *self.flat.line(line)
                });
            }
            let line = self.line(home);
            self.batch.store(line, within as u8, &bytes[part], atomic);
        }
        self.flat.store(at, bytes);
    }
}

impl Memory for Recorder<'_> {
    fn load(&mut self, at: u64, bytes: &mut [u8]) {
        self.flat.load(at, bytes);
        for (home, within, part) in pieces(at, bytes.len()) {
            let (from, len) = (within as u8, part.len() as u8);
            let line = self.line(home);
            self.batch.push(OpKind::Load { from, len }, line);
        }
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        self.write(at, bytes, false);
    }

    fn store_counter_atomic(&mut self, at: u64, bytes: &[u8]) {
        self.write(at, bytes, true);
    }

    fn flush(&mut self, at: u64) {
        let line = self.line(at);
        self.batch.push(OpKind::WriteBack, line);
    }

    fn fence(&mut self) {
        self.batch.push(OpKind::Fence, Logical(0));
    }

    fn counter_cache_writeback(&mut self, at: u64) {
        let line = self.line(at);
        self.batch.push(OpKind::CounterWriteBack, line);
    }

    fn mark(&mut self, mark: Mark) {
        self.batch
            .push(OpKind::Mark(mark.phase), Logical(mark.transaction));
    }

    fn compute(&mut self, instructions: u32) {
        self.batch.compute(instructions);
    }

    fn depend(&mut self) {
        self.batch.push(OpKind::Depend, Logical(0));
    }
}

/// What is wrong with a program's specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program}: {problem}; {remedy}")]
pub struct SpecError {
    /// The program.
    pub program: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// Largest footprint: more would fill the host's memory.
const MOST_BYTES: u64 = 1 << 36;
/// Smallest footprint: a page.
const LEAST_BYTES: u64 = 4096;
/// Most transactions of one run.
const MOST_TRANSACTIONS: u64 = 1 << 32;

impl ProgramSpec {
    /// The program, not set up.
    ///
    /// # Errors
    /// What is wrong, and the remedy.
    pub fn build(&self) -> Result<Box<dyn Program>, SpecError> {
        let fail = |problem: String, remedy: String| {
            Err(SpecError {
                program: self.name.clone(),
                problem,
                remedy,
            })
        };
        let Some(known) = PROGRAMS.iter().find(|known| known.name == self.name) else {
            let names = || PROGRAMS.iter().map(|known| known.name);
            let near = crate::names::nearest(&self.name, names());
            let meant = near
                .first()
                .map(|near| format!("did you mean \"{near}\"? "));
            let all = names().collect::<Vec<_>>().join(", ");
            let remedy = format!("{}the programs are {all}", meant.unwrap_or_default());
            return fail("there is no such program".into(), remedy);
        };
        if self.item_bytes == 0 || self.item_bytes > 4096 || !self.item_bytes.is_multiple_of(LINE) {
            let problem = format!("a transaction of {} bytes", self.item_bytes);
            return fail(problem, "give a multiple of 64 up to 4096".into());
        }
        if !(LEAST_BYTES.max(2 * self.item_bytes)..=MOST_BYTES).contains(&self.footprint) {
            let problem = format!("a footprint of {} bytes", self.footprint);
            return fail(
                problem,
                "give 8 KiB to 64 GiB, most machines have less".into(),
            );
        }
        if !(1..=MOST_TRANSACTIONS).contains(&self.transactions) {
            let problem = format!("{} transactions", self.transactions);
            return fail(problem, "give 1 to 2^32".into());
        }
        Ok((known.build)(self))
    }
}
