//! The cost of storing what was found by each design: the costs of one distinct block, one duplicate and one read,
//! times their numbers.
//!
//! The costs of a simulated store are its model's, for contents that share no row, in a store as large as the distinct
//! contents need. An executed store is measured in a short run on this machine.

use std::path::Path;

use sardonyx_store::{Cost, DESIGNS, Design, Error, Keys, Room, RunError, Store};
use serde::Serialize;

use crate::{Cutting, EstimateError};

/// The number of blocks of each kind that are written and read to measure a store.
const SAMPLE: u64 = 512;
const LEAST: u64 = 1 << 20;

#[derive(Debug, Serialize)]
pub struct DesignCost {
    pub design: &'static str,
    pub block_bytes: u32,
    pub capacity_bytes: u64,
    /// Seconds by the store's clock, or as measured.
    pub seconds: f64,
    /// Nanojoules, from the middle of *assumed* brackets.
    pub energy_nj: f64,
    pub measured: bool,
}

struct Each {
    distinct: Cost,
    duplicate: Cost,
    read: Cost,
}

/// The costs of every design for one way of cutting; none for chunks of different lengths. `scratch` is a folder for
/// the files of executed designs.
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
    let cost = |design, each: &Each, measured| {
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
    let each = DESIGNS.iter().enumerate().map(|(number, design)| {
        let folder = scratch.join(number.to_string());
        let each = if design.executed {
            measured(design, block_bytes, &folder)
        } else {
            modelled(design, capacity_bytes, block_bytes, &folder)
        };
        let each = each.map_err(|error| EstimateError::Bad(error.to_string()))?;
        Ok(cost(design.name, &each, design.executed))
    });
    each.collect()
}

impl Cutting {
    /// The bytes of a block, if all except the last ones of files have that many.
    fn block(&self) -> Option<u32> {
        if self.kind == "fixed" {
            return self.chunk_bytes;
        }
        let mean = (self.kind == "recorded").then(|| self.bytes.checked_div(self.chunks))??;
        let same = mean * self.chunks == self.bytes && mean.is_power_of_two();
        (same && (512..=1 << 20).contains(&mean)).then_some(mean as u32)
    }
}

fn modelled(
    design: &Design,
    capacity_bytes: u64,
    block_bytes: u32,
    folder: &Path,
) -> Result<Each, RunError> {
    let mut store = made(design, capacity_bytes, block_bytes, folder)?;
    let mut write = |lba, byte| -> Result<Cost, Error> {
        let block = vec![byte; block_bytes as usize];
        Ok(store.write(lba, &block)?.cost)
    };
    write(0, 1)?;
    let (distinct, duplicate) = (write(1, 2)?, write(2, 1)?);
    let read = store.read(0, &mut vec![0; block_bytes as usize])?.cost;
    Ok(Each {
        distinct,
        duplicate,
        read,
    })
}

fn measured(design: &Design, block_bytes: u32, folder: &Path) -> Result<Each, RunError> {
    let capacity_bytes = 4 * SAMPLE * u64::from(block_bytes);
    let mut store = made(design, capacity_bytes, block_bytes, folder)?;
    let mut block = vec![0; block_bytes as usize];
    let mut before = Cost::default();
    let mut since = |store: &dyn Store| {
        let now = store.totals().cost;
        let each = Cost {
            cycles: 0,
            time_ns: (now.time_ns - before.time_ns) / SAMPLE as f64,
            energy_nj: (now.energy_nj - before.energy_nj) / SAMPLE as f64,
        };
        before = now;
        each
    };
    let mut write = |store: &mut dyn Store, first: u64| -> Result<(), Error> {
        for number in 0..SAMPLE {
            block[..8].copy_from_slice(&number.to_le_bytes());
            store.write(first + number, &block)?;
        }
        store.flush()
    };
    write(&mut *store, 0)?;
    let distinct = since(&*store);
    write(&mut *store, SAMPLE)?;
    let duplicate = since(&*store);
    let mut into = vec![0; block_bytes as usize];
    for number in 0..SAMPLE {
        store.read(number, &mut into)?;
    }
    Ok(Each {
        distinct,
        duplicate,
        read: since(&*store),
    })
}

fn made(
    design: &Design,
    capacity_bytes: u64,
    block_bytes: u32,
    folder: &Path,
) -> Result<Box<dyn Store + Send>, RunError> {
    let room = Room {
        capacity_bytes,
        block_bytes,
        folder,
        contents: None,
    };
    (design.store)(&Keys::parse(design, &[])?, room)
}
