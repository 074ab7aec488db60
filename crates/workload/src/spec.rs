//! What is to be run, and what that makes: a program together with its durability.

use std::ops::Range;

use super::contents::{FRO_BYTES, to_and_fro};
use super::durability::{Durability, DurabilityKind, LoggedItems, Recovered};
use super::programs::{PROGRAMS, Program, ProgramFile, SHARED};
use super::{Bytes, Contents, PersistentMemory, Sharing};
use sardonyx::line::LINE_BYTES;

const LINE: u64 = LINE_BYTES as u64;

/// Instructions of one transaction that touch no memory: choosing, calling, returning (assumed).
const OPERATION: u32 = 100;

/// A program to run on one core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSpec {
    /// Its name, one of those in [`super::all`].
    pub name: String,
    /// Bytes of an item, the payload of one transaction; a multiple of 64 up to 4096.
    pub item_bytes: u64,
    /// Bytes of the structure after setup.
    pub footprint: u64,
    /// Transactions that will be run; room for what they insert is set aside.
    pub transactions: u64,
    /// The seed of keys, contents and choices.
    pub seed: u64,
    /// What makes its transactions durable.
    pub durability: DurabilityKind,
    /// How the program shares lines of counters.
    pub sharing: Sharing,
    /// The contents of its items.
    pub contents: Contents,
}

/// A program and what makes its transactions durable.
pub struct Workload {
    program: Box<dyn Program>,
    durability: Box<dyn Durability>,
    region_bytes: u64,
    fro: Option<u64>,
    logs: Range<u64>,
}

impl Workload {
    /// The size in bytes of the region that both use.
    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// The range of bytes in the region that holds the log.
    pub fn log_bytes(&self) -> Range<u64> {
        self.durability.log_bytes()
    }

    /// The range of bytes in the region that holds the logs of all cores that use it.
    pub fn all_logs(&self) -> Range<u64> {
        self.logs.clone()
    }

    /// The locks that transaction `number` takes, in this order; none if nobody else uses the region.
    pub fn locks(&self, number: u64) -> Vec<u64> {
        self.program.locks(number)
    }

    /// Makes the structure, filled to the footprint, in a region of zeros.
    pub fn setup(&self, memory: &mut dyn Bytes) {
        self.program.setup(memory);
    }

    /// Runs transaction `number`, the first being 1.
    pub fn transaction(&self, number: u64, memory: &mut dyn PersistentMemory) {
        if self.program.is_store(number) {
            return self.durability.store(number, memory);
        }
        let mut transaction = self.durability.begin(number, memory);
        transaction.compute(OPERATION);
        self.program.apply(number, &mut *transaction);
        if let Some(at) = self.fro {
            to_and_fro(number, at, &mut *transaction);
        }
        transaction.commit();
    }

    /// The first step after a power cut: rolls back what was under way, knowing nothing but the bytes.
    ///
    /// # Errors
    /// What the bytes of the log say makes no sense.
    pub fn recover(&self, memory: &mut dyn PersistentMemory) -> Result<Recovered, Fault> {
        self.durability.recover(memory, 0..self.region_bytes())
    }

    /// What the undo log holds.
    pub fn log(&self, memory: &mut dyn PersistentMemory) -> LoggedItems {
        self.durability.log(memory)
    }

    /// Checks the structure's invariants from the bytes alone; reads all of it.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        self.program.check(memory)
    }
}

/// A violation of an invariant: the problem and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at:#x} (line {}): {what}", .at / 64)]
pub struct Fault {
    /// The byte address in the region.
    pub at: u64,
    /// The problem at that address.
    pub what: String,
}

/// An error in a program's specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program}: {problem}; {remedy}")]
pub struct SpecError {
    /// The program.
    pub program: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// The largest footprint. More would fill the host's memory.
const MOST_BYTES: u64 = 1 << 36;
const MOST_TRANSACTIONS: u64 = 1 << 32;

impl ProgramSpec {
    /// The smallest footprint that the program has with such items; 0 if there is no such program.
    pub fn least_bytes(&self) -> u64 {
        self.file()
            .map_or(0, |file| file.least_bytes.max(2 * self.item_bytes))
    }

    fn file(&self) -> Option<&'static ProgramFile> {
        let mut all = PROGRAMS.iter().chain(SHARED);
        all.find(|file| file.name == self.name)
    }

    /// Whether all cores share one structure.
    pub fn is_shared(&self) -> bool {
        SHARED.iter().any(|file| file.name == self.name)
    }

    /// Builds the program and its durability without setting them up.
    ///
    /// # Errors
    /// What is wrong, and the remedy.
    pub fn build(&self) -> Result<Workload, SpecError> {
        self.build_for(0, 1)
    }

    /// Builds the program and its durability for core `core` of the `cores` that share it.
    ///
    /// # Errors
    /// What is wrong, and the remedy.
    pub fn build_for(&self, core: u64, cores: u64) -> Result<Workload, SpecError> {
        let fail = |problem: String, remedy: String| {
            Err(SpecError {
                program: self.name.clone(),
                problem,
                remedy,
            })
        };
        let Some(file) = self.file() else {
            let names = || PROGRAMS.iter().map(|file| file.name);
            let near = sardonyx::names::nearest(&self.name, names());
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
        if !(self.least_bytes()..=MOST_BYTES).contains(&self.footprint) {
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
        let build = |core| {
            let (lines, of) = (self.most_lines(), (core, cores));
            self.durability.build(self.sharing, lines, of)
        };
        let logs = build(0).log_bytes().start..build(cores - 1).log_bytes().end;
        let (heap, program) = (file.build)(self.clone(), logs.end);
        // Nobody locks that line.
        let fro = (self.contents == Contents::Drawn && cores == 1).then_some(heap.end);
        Ok(Workload {
            program,
            durability: build(core),
            region_bytes: heap.end + if fro.is_some() { FRO_BYTES } else { 0 },
            fro,
            logs,
        })
    }
}
