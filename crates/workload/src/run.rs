//! A program running functionally: each transaction changes its flat memory at once and leaves the operations that a
//! core will play, and if asked what it changed.

use super::random::Random;
use super::{Bytes, Flat, Mark, PersistentMemory, ProgramSpec, SpecError, Workload};
use sardonyx::line::{LINE_BYTES, Line, Lines, Logical, Virtual};
use sardonyx::machine::{Batch, OpKind, OpSource, PAGE_LINES, RunError, pieces};
use sardonyx::medium::params::Think;
use sardonyx::units::Time;

const LINE: u64 = LINE_BYTES as u64;

/// A program, its flat memory and its last transaction.
pub struct ProgramRun {
    spec: ProgramSpec,
    workload: Workload,
    flat: Flat,
    region: Lines,
    set_up: u64,
    done: u64,
    think: Think,
}

impl ProgramRun {
    /// Sets up the program of `spec` in a region whose first line is `base` of the machine.
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
            region: Lines {
                first: base.0,
                stride: spec.sharing.stride(),
                count: flat.lines(),
            },
            flat,
            done: 0,
            think: Think::default(),
        })
    }

    /// Makes the core think between its transactions.
    #[must_use]
    pub fn thinking(self, think: Think) -> ProgramRun {
        ProgramRun { think, ..self }
    }

    /// Continues the program of `spec` in a `region` with those lines after a recovery. `done` is its last transaction.
    /// The log's content does not matter.
    ///
    /// # Errors
    /// What is wrong with `spec`, and the remedy.
    pub fn again(
        spec: &ProgramSpec,
        region: &Lines,
        lines: &[Line],
        done: u64,
    ) -> Result<ProgramRun, SpecError> {
        let workload = spec.build()?;
        let mut flat = Flat::new(workload.region_bytes());
        for (index, line) in (0..).zip(lines) {
            *flat.line_mut(index) = *line;
        }
        Ok(ProgramRun {
            spec: spec.clone(),
            workload,
            set_up: lines.len() as u64,
            region: region.clone(),
            flat,
            done,
            think: Think::default(),
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

    /// The region's lines in the machine.
    pub fn region(&self) -> Lines {
        self.region.clone()
    }

    /// Lines from the first one on that setup has written, or that lie between written ones.
    pub fn set_up_lines(&self) -> u64 {
        self.set_up
    }

    /// Lines behind the region that only this core reads, between its transactions.
    pub fn private(&self) -> Lines {
        Lines {
            first: self.region.end(),
            stride: self.region.stride,
            count: self.think.lines,
        }
    }

    /// The number of transactions done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Runs the next transaction and appends its operations to `batch`.
    pub fn transaction(&mut self, batch: &mut Batch) {
        self.record(batch, None);
    }

    /// Runs the next transaction as [`ProgramRun::transaction`] does. Returns the lines of the region that it has
    /// stored to, without its log, in the order of their first store.
    pub fn transaction_with_changes(&mut self, batch: &mut Batch) -> Vec<u64> {
        let mut changed = Vec::new();
        self.record(batch, Some(&mut changed));
        let log = self.workload.log_bytes();
        changed.retain(|line| !log.contains(&(line * LINE)));
        changed
    }

    fn think(&self, batch: &mut Batch) {
        let Think {
            instructions,
            loads,
            lines,
        } = self.think;
        let (between, private) = (instructions / (loads + 1), self.private());
        let mut random = Random::new(!self.spec.seed, self.done);
        for _ in 0..loads {
            batch.compute(between);
            let line = Virtual(private.at(random.below(lines)));
            batch.push(OpKind::Load { from: 0, len: 8 }, line);
            batch.push(OpKind::Depend, Virtual(0));
        }
        batch.compute(instructions - between * loads);
    }

    fn record(&mut self, batch: &mut Batch, changed: Option<&mut Vec<u64>>) {
        self.done += 1;
        let mut recorder = Recorder {
            flat: &mut self.flat,
            region: &self.region,
            batch,
            changed,
            locks: Vec::new(),
        };
        self.workload.transaction(self.done, &mut recorder);
    }
}

impl OpSource for ProgramRun {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn refill(&mut self, _now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        if self.done == self.spec.transactions {
            return Ok(false);
        }
        self.transaction(batch);
        self.think(batch);
        Ok(true)
    }

    fn log_lines(&self) -> Lines {
        let log = self.workload.log_bytes();
        self.region.part(log.start / LINE, log.end.div_ceil(LINE))
    }

    fn pages(&self) -> u64 {
        (self.flat.lines() + self.think.lines).div_ceil(PAGE_LINES)
    }
}

pub(super) struct Recorder<'r> {
    pub flat: &'r mut Flat,
    pub region: &'r Lines,
    pub batch: &'r mut Batch,
    pub changed: Option<&'r mut Vec<u64>>,
    pub locks: Vec<u64>,
}

impl Recorder<'_> {
    fn line(&self, at: u64) -> Virtual {
        Virtual(self.region.at(at / LINE))
    }

    fn write(&mut self, at: u64, bytes: &[u8], atomic: bool) {
        for (home, within, part) in pieces(at, bytes.len()) {
            if let Some(changed) = &mut self.changed
                && !changed.contains(&(home / LINE))
            {
                changed.push(home / LINE);
            }
            let line = self.line(home);
            self.batch.store(line, within as u8, &bytes[part], atomic);
        }
        self.flat.store(at, bytes);
    }
}

impl Bytes for Recorder<'_> {
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

    fn compute(&mut self, instructions: u32) {
        self.batch.compute(instructions);
    }

    fn depend(&mut self) {
        self.batch.push(OpKind::Depend, Virtual(0));
    }
}

impl PersistentMemory for Recorder<'_> {
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

    fn tx_begin(&mut self, number: u64) {
        self.batch.push(OpKind::TxBegin, Virtual(number));
    }

    fn tx_end(&mut self) {
        self.batch.push(OpKind::TxEnd, Virtual(0));
    }

    fn unlock(&mut self) {
        for lock in self.locks.drain(..) {
            self.batch.push(OpKind::Unlock, Virtual(lock));
        }
    }

    fn mark(&mut self, mark: Mark) {
        self.batch
            .push(OpKind::Mark(mark.phase), Virtual(mark.transaction));
    }
}
