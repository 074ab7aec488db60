//! A program running functionally: each transaction changes its flat memory at once and leaves the
//! operations that a core will play, and on demand what it changed.

use rustc_hash::FxHashMap;

use super::{Flat, Mark, Memory, ProgramSpec, SpecError, Workload};
use crate::line::{LINE_BYTES, Line, Logical, Virtual};
use crate::machine::{Batch, OpKind, OpSource, PAGE_LINES, RunError, pieces};
use crate::units::Time;

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
    workload: Workload,
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
        let workload = spec.build()?;
        let mut flat = Flat::new(workload.region_bytes());
        workload.setup(&mut flat);
        // Setup fills from below, so that what it has not written is all at the end.
        let used = (0..flat.lines())
            .rev()
            .find(|line| *flat.line(*line) != [0; LINE_BYTES]);
        Ok(ProgramRun {
            spec: spec.clone(),
            workload,
            set_up: used.map_or(0, |line| line + 1),
            flat,
            base: base.0,
            done: 0,
        })
    }

    /// The program with its durability, for recovery and checks.
    pub fn workload(&self) -> &Workload {
        &self.workload
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
        let log = self.workload.log_bytes();
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
        self.workload.transaction(self.done, &mut recorder);
    }
}

/// A program as a core's operations, one transaction at a time.
impl OpSource for ProgramRun {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn refill(&mut self, _now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        if self.done == self.spec.transactions {
            return Ok(false);
        }
        self.transaction(batch);
        Ok(true)
    }

    fn log_lines(&self) -> std::ops::Range<u64> {
        let log = self.workload.log_bytes();
        self.base + log.start / LINE..self.base + log.end.div_ceil(LINE)
    }

    fn pages(&self) -> u64 {
        self.flat.lines().div_ceil(PAGE_LINES)
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
    fn line(&self, at: u64) -> Virtual {
        Virtual(self.base + at / LINE)
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
        self.batch.push(OpKind::Fence, Virtual(0));
    }

    fn counter_cache_writeback(&mut self, at: u64) {
        let line = self.line(at);
        self.batch.push(OpKind::CounterWriteBack, line);
    }

    fn mark(&mut self, mark: Mark) {
        self.batch
            .push(OpKind::Mark(mark.phase), Virtual(mark.transaction));
    }

    fn compute(&mut self, instructions: u32) {
        self.batch.compute(instructions);
    }

    fn depend(&mut self) {
        self.batch.push(OpKind::Depend, Virtual(0));
    }
}
