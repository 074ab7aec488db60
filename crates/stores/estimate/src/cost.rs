//! What the designs would take to store what was found: the cost of one distinct block, of one
//! duplicate and of one read, times their numbers.
//!
//! The array's costs are those of its model for contents that share no row, in an array as large as
//! the distinct contents need. The rival's are measured, in a short run on this machine.

use std::path::Path;

use sardonyx_store::{
    Conventional, Cost, Error, InMemory, Options, Parameters, ParametersError, Recam, Store,
};
use serde::Serialize;

use crate::{Cutting, EstimateError};

/// Data bits of a row (ReCAM, Sec. III-C).
const ROW_BITS: u32 = 256;
/// Blocks of each kind that the rival writes and reads to be measured.
const SAMPLE: u64 = 512;
/// The smallest array.
const LEAST: u64 = 1 << 20;

/// What a design would take in all.
#[derive(Debug, Serialize)]
pub struct DesignCost {
    /// `recam` or `conventional`.
    pub design: &'static str,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes that the store has room for.
    pub capacity_bytes: u64,
    /// By the array's clock, or measured.
    pub seconds: f64,
    /// By energies that are *assumed*, in the middle of their brackets.
    pub energy_nj: f64,
    /// Of the rival: from a run on this machine, another one each time.
    pub measured: bool,
}

/// One block each: new, known, read.
struct Each {
    distinct: Cost,
    duplicate: Cost,
    read: Cost,
}

/// Both designs for what one way of cutting found; none for chunks of different lengths. `scratch`
/// is a folder for the rival's files.
///
/// # Errors
/// If the rival's files cannot be written.
pub fn costs(
    cutting: &Cutting,
    reads: u64,
    scratch: &Path,
) -> Result<Vec<DesignCost>, EstimateError> {
    let Some(block_bytes) = cutting.block() else {
        return Ok(Vec::new());
    };
    let bytes = cutting.unique_chunks * u64::from(block_bytes);
    let capacity_bytes = bytes.next_power_of_two().max(LEAST);
    let design = |design, each: &Each, measured| {
        let times =
            |one: &Cost, times: u64| (one.time_ns * times as f64, one.energy_nj * times as f64);
        let duplicates = cutting.chunks.saturating_sub(cutting.unique_chunks);
        let parts = [
            times(&each.distinct, cutting.unique_chunks),
            times(&each.duplicate, duplicates),
            times(&each.read, reads),
        ];
        DesignCost {
            design,
            block_bytes,
            capacity_bytes,
            seconds: parts.iter().map(|part| part.0).sum::<f64>() / 1e9,
            energy_nj: parts.iter().map(|part| part.1).sum(),
            measured,
        }
    };
    let array = array(capacity_bytes, block_bytes);
    let array = array.map_err(|error| EstimateError::Bad(error.to_string()))?;
    let rival = rival(block_bytes, scratch);
    let rival = rival.map_err(|error| EstimateError::Bad(error.to_string()))?;
    Ok(vec![
        design("recam", &array, false),
        design("conventional", &rival, true),
    ])
}

impl Cutting {
    /// Bytes of a block, if all but a file's last ones have so many.
    fn block(&self) -> Option<u32> {
        if self.kind == "fixed" {
            return self.chunk_bytes;
        }
        let mean = (self.kind == "recorded").then(|| self.bytes.checked_div(self.chunks))??;
        let same = mean * self.chunks == self.bytes && mean.is_power_of_two();
        (same && (512..=1 << 20).contains(&mean)).then_some(mean as u32)
    }
}

fn array(capacity_bytes: u64, block_bytes: u32) -> Result<Each, ParametersError> {
    let parameters = Parameters::of(capacity_bytes, block_bytes, ROW_BITS);
    let mut array = Recam::new(parameters, InMemory::default())?;
    let mut put = |lba, byte| {
        let block = vec![byte; block_bytes as usize];
        array.put(lba, &block).expect("there is room for two").cost
    };
    put(0, 1);
    let (distinct, duplicate) = (put(1, 2), put(2, 1));
    let read = array.get(0, &mut vec![0; block_bytes as usize]).cost;
    Ok(Each {
        distinct,
        duplicate,
        read,
    })
}

fn rival(block_bytes: u32, scratch: &Path) -> Result<Each, Error> {
    let capacity_bytes = 4 * SAMPLE * u64::from(block_bytes);
    let options = Options {
        block_bytes,
        capacity_bytes,
        ..Options::default()
    };
    let mut rival = Conventional::open(scratch, options)?;
    let mut block = vec![0; block_bytes as usize];
    let mut before = Cost::default();
    let mut since = |rival: &Conventional| {
        let now = rival.totals().cost;
        let each = Cost {
            cycles: 0,
            time_ns: (now.time_ns - before.time_ns) / SAMPLE as f64,
            energy_nj: (now.energy_nj - before.energy_nj) / SAMPLE as f64,
        };
        before = now;
        each
    };
    let mut write = |rival: &mut Conventional, first: u64| -> Result<(), Error> {
        for number in 0..SAMPLE {
            block[..8].copy_from_slice(&number.to_le_bytes());
            rival.write(first + number, &block)?;
        }
        rival.flush()
    };
    write(&mut rival, 0)?;
    let distinct = since(&rival);
    write(&mut rival, SAMPLE)?;
    let duplicate = since(&rival);
    let mut into = vec![0; block_bytes as usize];
    for number in 0..SAMPLE {
        rival.read(number, &mut into)?;
    }
    Ok(Each {
        distinct,
        duplicate,
        read: since(&rival),
    })
}
