//! The design that counts what every operation would take.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sardonyx_store::{Contents, Conventional, Options, Parameters, Recam, Store};
use serde::{Deserialize, Serialize};

use crate::folder::{RIVAL, remove};
use crate::{DeviceError, Result, Volume};

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// A resistive CAM of the device's size, by the fast model.
    Recam,
    /// Hash index, Bloom filter and key-value engine.
    Conventional,
}

impl Design {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Design::Recam => "recam",
            Design::Conventional => "conventional",
        }
    }

    /// The design's store, empty, for this volume.
    pub(crate) fn store(self, volume: &Volume, writing: Writing) -> Result<Box<dyn Store + Send>> {
        let shape = volume.shape();
        match self {
            Design::Recam => {
                let parameters = Parameters::of(shape.size_bytes, shape.block_bytes, 256);
                let contents = OnDisk {
                    bytes: volume.bytes(),
                    block_bytes: u64::from(shape.block_bytes),
                    places: Vec::new(),
                    writing,
                };
                let recam = Recam::new(parameters, contents);
                Ok(Box::new(
                    recam.map_err(|error| DeviceError::Bad(error.to_string()))?,
                ))
            }
            Design::Conventional => {
                // It executes on files of its own, which the volume's contents fill at every start.
                let path = volume.folder().join(RIVAL);
                remove(&path)?;
                let options = Options::default();
                let changes = options.commit_every as u64 * u64::from(shape.block_bytes);
                let options = Options {
                    block_bytes: shape.block_bytes,
                    capacity_bytes: shape.size_bytes + changes,
                    ..options
                };
                Ok(Box::new(Conventional::open(&path, options)?))
            }
        }
    }
}

/// The volume's slot of the block that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writing(Arc<AtomicU32>);

impl Writing {
    pub fn is_in(&self, slot: u32) {
        self.0.store(slot, Ordering::Relaxed);
    }
}

/// The array's blocks are those of the volume, so that they are not in memory a second time.
#[derive(Debug)]
struct OnDisk {
    bytes: Arc<File>,
    block_bytes: u64,
    /// The volume's slot by the array's.
    places: Vec<u32>,
    writing: Writing,
}

impl Contents for OnDisk {
    type Block = [u8];

    fn new_bytes(&self, block: &[u8], at: usize, into: &mut [u8]) {
        into.copy_from_slice(&block[at..at + into.len()]);
    }

    fn kept_bytes(&self, slot: u32, at: usize, into: &mut [u8]) {
        let place = u64::from(self.places[slot as usize]) * self.block_bytes + at as u64;
        // The model cannot say that a disk has failed; the server ends, and nothing flushed is lost.
        self.bytes
            .read_exact_at(into, place)
            .expect("the disk gives back what it has taken");
    }

    fn keep(&mut self, slot: u32, _: &[u8]) {
        let slot = slot as usize;
        if self.places.len() <= slot {
            self.places.resize(slot + 1, 0);
        }
        self.places[slot] = self.writing.0.load(Ordering::Relaxed);
    }

    fn forget(&mut self, _: u32) {}
}
