//! A program that all cores have together: each transaction runs functionally as a whole, on memory that is
//! all cores', once its core has all locks that it needs, and leaves the operations that the core will play.
//! So the order in which transactions have taken a lock is the order in which they have changed what it is for.
//!
//! A core takes all locks before a transaction, in an order that all keep to, and gives them up when that is
//! durable (strict two-phase locking): `docs/crash/explorer.md` says why. Left out: anything but the crash explorer.

use std::sync::{Arc, Mutex, MutexGuard};

use super::run::Recorder;
use super::{Bytes, Flat, Mutant, ProgramSpec, SpecError, Workload};
use sardonyx::line::{LINE_BYTES, Line, Lines, Logical, Virtual};
use sardonyx::machine::{Batch, OpKind};

const LINE: u64 = LINE_BYTES as u64;

/// The lock that the recovering core holds until it is done.
pub const RECOVERING: u64 = u64::MAX;

/// One core's part of the program, and the memory that it shares with the others.
pub struct SharedRun {
    spec: ProgramSpec,
    workload: Workload,
    memory: Arc<Mutex<Flat>>,
    region: Lines,
    done: u64,
    has_locks: bool,
}

impl SharedRun {
    /// Sets up the program of `specs`, one for each core, in a region whose first line is `base`.
    ///
    /// # Errors
    /// What is wrong with `specs`, and the remedy.
    pub fn all(specs: &[ProgramSpec], base: Logical) -> Result<Vec<SharedRun>, SpecError> {
        let first = specs[0].build_for(0, specs.len() as u64)?;
        let mut flat = Flat::new(first.region_bytes());
        first.setup(&mut flat);
        let region = Lines {
            first: base.0,
            stride: 1,
            count: flat.lines(),
        };
        SharedRun::over(specs, &region, flat, &vec![0; specs.len()])
    }

    /// Continues the same programs after a recovery, in a `region` with those lines. Each core continues after its last
    /// transaction of `done`. The logs' content does not matter.
    ///
    /// # Errors
    /// What is wrong with `specs`, and the remedy.
    pub fn again(
        specs: &[ProgramSpec],
        region: &Lines,
        lines: &[Line],
        done: &[u64],
    ) -> Result<Vec<SharedRun>, SpecError> {
        let mut flat = Flat::new(region.count * LINE);
        for (index, line) in (0..).zip(lines) {
            *flat.line_mut(index) = *line;
        }
        SharedRun::over(specs, region, flat, done)
    }

    fn over(
        specs: &[ProgramSpec],
        region: &Lines,
        flat: Flat,
        done: &[u64],
    ) -> Result<Vec<SharedRun>, SpecError> {
        let (memory, cores) = (Arc::new(Mutex::new(flat)), specs.len() as u64);
        let core = |(core, spec): (usize, &ProgramSpec)| {
            Ok(SharedRun {
                workload: spec.build_for(core as u64, cores)?,
                spec: spec.clone(),
                memory: memory.clone(),
                region: region.clone(),
                done: done[core],
                has_locks: false,
            })
        };
        specs.iter().enumerate().map(core).collect()
    }

    /// The program with this core's durability.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Its specification.
    pub fn spec(&self) -> &ProgramSpec {
        &self.spec
    }

    /// The lines that all cores have together.
    pub fn region(&self) -> Lines {
        self.region.clone()
    }

    /// The number of transactions done by this core.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// The memory as the last transaction of any core has left it.
    ///
    /// # Panics
    /// If another thread has panicked with it.
    pub fn memory(&self) -> MutexGuard<'_, Flat> {
        self.memory.lock().expect("no thread panics")
    }

    /// Appends the taking of the next transaction's locks, and then the transaction. Returns the lines that it has
    /// changed, without its log, in the order of their first store; `None` if it only takes locks.
    pub fn next(&mut self, batch: &mut Batch) -> Option<Vec<u64>> {
        let mut locks = self.workload.locks(self.done + 1);
        if self.spec.durability.mutant() == Some(Mutant::LastLockNotTaken) {
            locks.pop();
        }
        self.has_locks = !self.has_locks;
        if self.has_locks {
            for lock in &locks {
                batch.push(OpKind::Lock, Virtual(*lock));
            }
            if !locks.is_empty() {
                return None;
            }
            self.has_locks = false;
        }
        self.done += 1;
        let mut changed = Vec::new();
        let mut flat = self.memory.lock().expect("no thread panics");
        let mut recorder = Recorder {
            flat: &mut flat,
            region: &self.region,
            batch,
            changed: Some(&mut changed),
            locks,
        };
        self.workload.transaction(self.done, &mut recorder);
        let logs = self.workload.all_logs();
        changed.retain(|line| !logs.contains(&(line * LINE)));
        Some(changed)
    }

    /// The lines that hold the logs of all cores.
    pub fn logs(&self) -> Lines {
        let logs = self.workload.all_logs();
        self.region.part(logs.start / LINE, logs.end.div_ceil(LINE))
    }

    /// Checks the structure's invariants in memory as it is.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), super::Fault> {
        self.workload.check(&mut *self.memory() as &mut dyn Bytes)
    }
}
