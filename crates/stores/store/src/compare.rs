//! One design on one workload: what `sardonyx store compare` and the reproduction run.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::conventional::{Conventional, Options};
use crate::ledger::Purpose;
use crate::made::Made;
use crate::parameters::{Bracket, Compare, Energies, First, Parameters, ParametersError};
use crate::recam::{Contents, InMemory, Recam, Regenerated};
use crate::store::{Error, Store};
use crate::workload::{Content, Operation, Workload, WorkloadError};

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The store.
    pub design: Design,
    /// What is written to it.
    pub workload: Workload,
    /// Bytes of a block.
    pub block_bytes: u32,
}

/// A store, as it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum Design {
    /// The resistive CAM, simulated.
    Recam(Array),
    /// The conventional store, executed.
    Conventional {
        /// An empty folder for its files.
        folder: PathBuf,
        /// False stores every block anew.
        deduplicate: bool,
        /// Compares bytes before it believes a fingerprint.
        verify: bool,
        /// Cuts files into chunks by content, of so many bytes on average as a block.
        by_content: bool,
    },
}

/// The resistive CAM as it is asked for; see [`Parameters`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// Bytes of data that the array holds.
    pub capacity_bytes: u64,
    /// Data bits of a row.
    pub row_bits: u32,
    /// Modules in parallel.
    pub modules: u32,
    /// Continuous or single compare.
    pub compare: Compare,
    /// The rows that a search's first compare activates.
    pub first: First,
    /// Whether a write compares for an empty row first.
    pub free_row_compare: bool,
    /// Cycles for each of LBA and PA; by the width of a row if left out.
    pub address_cycles: Option<u32>,
    /// Bits of a fingerprint's row, 0 for none.
    pub fingerprint_bits: u32,
    /// Energies; what is left out is bracketed.
    pub energies: Energies,
}

/// Why a run cannot be had, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The array cannot be.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// The workload cannot be had.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The store gave up.
    #[error(transparent)]
    Store(#[from] Error),
    /// A combination that is not there.
    #[error("{0}")]
    Bad(String),
    /// Somebody has cancelled it.
    #[error("cancelled")]
    Cancelled,
}

/// Hears operations done and in all (0 if nobody knows); false ends the run.
pub type Tell<'a> = &'a dyn Fn(u64, u64) -> bool;

/// Operations between two reports of progress.
const TELL_EVERY: u64 = 4096;

impl Question {
    /// Says what cannot be had, before anything is written.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn check(&self) -> Result<(), RunError> {
        if self.block_bytes == 0
            || self.block_bytes > 1 << 20
            || !self.block_bytes.is_multiple_of(8)
        {
            return Err(RunError::Bad(format!(
                "block_bytes = {}: give a multiple of 8 up to 1M, as 1K, 2K, 4K or 8K",
                self.block_bytes
            )));
        }
        self.workload.check(self.block_bytes)?;
        match &self.design {
            Design::Recam(array) => Ok(self.parameters(array)?.check()?),
            Design::Conventional { by_content, .. } => {
                if *by_content && !self.workload.has_bytes() {
                    return Err(RunError::Bad(
                        "chunks by content need files to cut: give a directory tree".to_owned(),
                    ));
                }
                if *by_content && self.block_bytes < 256 {
                    return Err(RunError::Bad(format!(
                        "block_bytes = {}: chunks by content have 256 bytes or more on average",
                        self.block_bytes
                    )));
                }
                Ok(())
            }
        }
    }

    /// Runs it: `design` and `metrics`.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn answer(&self, tell: Tell<'_>) -> Result<Value, RunError> {
        self.check()?;
        match &self.design {
            Design::Recam(array) if self.workload.has_bytes() => {
                let store = Recam::new(self.parameters(array)?, InMemory::default())?;
                self.recam(store, tell, |store, lba, content| match content {
                    Content::Bytes(bytes) => store.put(lba, bytes),
                    Content::Made(_) => unreachable!("a tree has bytes"),
                })
            }
            Design::Recam(array) => {
                let store = Recam::new(self.parameters(array)?, Regenerated::default())?;
                self.recam(store, tell, |store, lba, content| match content {
                    Content::Made(made) => store.put(lba, &made),
                    Content::Bytes(_) => unreachable!("only a tree has bytes"),
                })
            }
            Design::Conventional {
                folder,
                deduplicate,
                verify,
                by_content,
            } => {
                let options = Options {
                    block_bytes: self.block_bytes,
                    capacity_bytes: self.room()?,
                    deduplicate: *deduplicate,
                    verify: *verify,
                    sync_commits: false, // as IOzone, which asks for one flush at the end
                    ..Options::default()
                };
                let store = Conventional::open(folder, options)?;
                self.conventional(store, *by_content, tell)
            }
        }
    }

    /// Bytes that the workload writes at most, and a block.
    fn room(&self) -> Result<u64, RunError> {
        let bytes = self.workload.bytes_at_most(self.block_bytes)?;
        Ok(bytes + u64::from(self.block_bytes))
    }

    /// The array, with a translation table for what the workload writes.
    fn parameters(&self, array: &Array) -> Result<Parameters, RunError> {
        let usual = Parameters::of(
            array.capacity_bytes,
            self.block_bytes,
            array.row_bits.max(1),
        );
        let written = self.room()? / u64::from(self.block_bytes);
        Ok(Parameters {
            modules: array.modules,
            logical_blocks: usual.logical_blocks.max(written),
            compare: array.compare,
            first: array.first,
            free_row_compare: array.free_row_compare,
            address_cycles: array.address_cycles.unwrap_or(usual.address_cycles),
            fingerprint_bits: array.fingerprint_bits,
            energies: array.energies,
            ..usual
        })
    }

    fn recam<C: Contents>(
        &self,
        mut store: Recam<C>,
        tell: Tell<'_>,
        put: impl Fn(&mut Recam<C>, u64, Content<'_>) -> Result<crate::Outcome, Error>,
    ) -> Result<Value, RunError> {
        let mut into = vec![0; self.block_bytes as usize];
        self.operations(tell, &mut |operation| {
            match operation {
                Operation::Write(lba, content) => {
                    put(&mut store, lba, content)?;
                }
                Operation::Read(lba) => {
                    store.get(lba, &mut into);
                }
            }
            Ok(())
        })?;
        Ok(json!({"design": "recam", "metrics": self.recam_metrics(&store)}))
    }

    fn recam_metrics<C: Contents>(&self, store: &Recam<C>) -> Map<String, Value> {
        let (totals, ledger) = (store.totals(), store.ledger());
        let p = store.parameters();
        let work = ledger.total();
        let seconds = store.elapsed_cycles() as f64 / p.clock_ghz / 1e9;
        let energy = |place| work.energy_fj(&p.energies, place) / 1e6;
        let wear: (u64, u64, u32) = store.wear().fold((0, 0, 0), |(slots, sum, most), wear| {
            (slots + 1, sum + u64::from(wear), most.max(wear))
        });
        let mut metrics = object(json!({
            "writes": totals.writes,
            "duplicate_writes": totals.duplicate_writes,
            "reads": totals.reads,
            "stored_blocks": totals.stored_blocks,
            "bytes": totals.writes * u64::from(p.block_bytes),
            "cycles": totals.cost.cycles,
            "elapsed_seconds": seconds,
            "writes_per_second": rate(totals.writes, seconds),
            "operations_per_second": rate(totals.writes + totals.reads, seconds),
            "energy_nj": energy(Bracket::middle),
            "energy_nj_low": energy(|b| b.low),
            "energy_nj_high": energy(|b| b.high),
            "active_rows": work.active_rows as f64,
            "search_active_rows": ledger.of(Purpose::Search).active_rows as f64,
            "compared_bits": work.compared_bits as f64,
            "written_bits": work.written_bits as f64,
            "rows": p.rows(),
            "rows_of_a_block": p.block_rows(),
            "slots_used": wear.0,
            "mean_writes_of_a_row": rate(wear.1, wear.0 as f64),
            "most_writes_of_a_row": wear.2,
        }));
        for (purpose, name) in Purpose::ALL {
            let work = ledger.of(purpose);
            let energy = work.energy_fj(&p.energies, Bracket::middle) / 1e6;
            metrics.insert(format!("{name}_energy_nj"), json!(energy));
            metrics.insert(format!("{name}_cycles"), json!(work.cycles));
        }
        metrics
    }

    fn conventional(
        &self,
        mut store: Conventional,
        by_content: bool,
        tell: Tell<'_>,
    ) -> Result<Value, RunError> {
        let mut made = vec![0; self.block_bytes as usize];
        let mut bytes = 0;
        let (began, before) = (Instant::now(), scheduled());
        let mut each = |operation: Operation<'_>| {
            match operation {
                Operation::Write(lba, content) => {
                    let block = match content {
                        Content::Bytes(bytes) => bytes,
                        Content::Made(of) => made_of(of, &mut made),
                    };
                    bytes += block.len() as u64;
                    store.put(lba, block)?;
                }
                Operation::Read(lba) => {
                    store.get(lba)?;
                }
            }
            Ok(())
        };
        if by_content {
            let mut told = Told::new(tell, 0);
            self.workload
                .run_chunks(self.block_bytes, &mut |operation| {
                    told.one_more()?;
                    each(operation)
                })?;
        } else {
            self.operations(tell, &mut each)?;
        }
        store.flush()?;
        let (totals, done) = (store.totals(), *store.activity());
        let wall = began.elapsed().as_secs_f64();
        let now = scheduled();
        // The thread's time is for all that it did but wait for the drive; most of it were operations.
        let share = (done.seconds - done.sync_seconds) / (wall - done.sync_seconds);
        let alone = (now.running - before.running) * share.clamp(0.0, 1.0);
        let in_line = ((now.in_line - before.in_line) / wall).clamp(0.0, 1.0);
        let mut metrics = object(json!({
            "writes": totals.writes,
            "duplicate_writes": totals.duplicate_writes,
            "reads": totals.reads,
            "stored_blocks": totals.stored_blocks,
            "bytes": bytes,
            "cycles": null,
            "elapsed_seconds": done.seconds,
            "hash_seconds": done.hash_seconds,
            "sync_seconds": done.sync_seconds,
            "share_of_time_in_line": in_line,
            "writes_per_second_alone": rate(totals.writes, alone),
            "writes_per_second": rate(totals.writes, done.seconds),
            "operations_per_second": rate(totals.writes + totals.reads, done.seconds),
            "energy_nj": sum(&store, Bracket::middle),
            "energy_nj_low": sum(&store, |b| b.low),
            "energy_nj_high": sum(&store, |b| b.high),
            "drive_bytes_written": done.bytes_written,
            "drive_bytes_read": done.bytes_read,
            "bloom_answers": done.bloom_answers,
            "cache_answers": done.cache_answers,
            "engine_lookups": done.engine_lookups,
            "collisions": done.collisions,
        }));
        for (name, energy) in totals.energy_by {
            metrics.insert(format!("{name}_energy_nj"), json!(energy));
        }
        Ok(json!({"design": "conventional", "metrics": metrics}))
    }

    fn operations(
        &self,
        tell: Tell<'_>,
        each: &mut dyn FnMut(Operation<'_>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let mut told = Told::new(tell, self.workload.operations(self.block_bytes));
        self.workload.run(self.block_bytes, &mut |operation| {
            told.one_more()?;
            each(operation)
        })
    }
}

/// Counts operations and tells of them now and then.
struct Told<'a> {
    tell: Tell<'a>,
    done: u64,
    total: u64,
}

impl<'a> Told<'a> {
    fn new(tell: Tell<'a>, total: u64) -> Told<'a> {
        Told {
            tell,
            done: 0,
            total,
        }
    }

    fn one_more(&mut self) -> Result<(), RunError> {
        self.done += 1;
        if self.done.is_multiple_of(TELL_EVERY) && !(self.tell)(self.done, self.total) {
            return Err(RunError::Cancelled);
        }
        Ok(())
    }
}

/// Seconds of this thread.
struct Scheduled {
    /// On a processor.
    running: f64,
    /// In line for one that others had.
    in_line: f64,
}

/// Seconds so far; 0 where the kernel does not say.
fn scheduled() -> Scheduled {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut seconds = text
        .split_whitespace()
        .map(|n| n.parse::<f64>().unwrap_or(0.0) / 1e9);
    Scheduled {
        running: seconds.next().unwrap_or(0.0),
        in_line: seconds.next().unwrap_or(0.0),
    }
}

fn made_of(made: Made, into: &mut [u8]) -> &[u8] {
    made.bytes(0, into);
    into
}

fn sum(store: &Conventional, place: fn(Bracket) -> f64) -> f64 {
    store
        .energy_by(place)
        .iter()
        .map(|(_, energy)| energy)
        .sum()
}

fn rate(count: u64, over: f64) -> f64 {
    if over > 0.0 { count as f64 / over } else { 0.0 }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("written as an object"),
    }
}
