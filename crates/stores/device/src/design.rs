//! The store that counts the cost of every operation: any design's, on the blocks of the volume.

use std::fs;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sardonyx_store::{BlockContents, Keys, Named, Room, RunError, Store};

use crate::files::Bytes;
use crate::folder::EXECUTED;
use crate::{DeviceError, Result, Volume};

pub(crate) fn store(
    design: Named,
    volume: &Volume,
    writing: Writing,
) -> Result<Box<dyn Store + Send>> {
    let shape = volume.shape();
    // An executed store has files of its own, which are filled from the volume at every start.
    let folder = volume.folder().join(EXECUTED);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(DeviceError::io(&folder, error));
        }
        _ => {}
    }
    let room = Room {
        capacity_bytes: shape.size_bytes,
        block_bytes: shape.block_bytes,
        folder: &folder,
        contents: Some(Box::new(OnDisk {
            bytes: volume.bytes(),
            block_bytes: u64::from(shape.block_bytes),
            places: Vec::new(),
            writing,
        })),
    };
    let keys = Keys::parse(&design, &[]);
    let made = keys.and_then(|keys| (design.store)(&keys, room));
    made.map_err(|error| match error {
        RunError::Store(error) => DeviceError::Design(error),
        other => DeviceError::Bad(other.to_string()),
    })
}

/// The volume's slot of the block that is being written, and its bytes, so that they are not read from the disk again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writing(Arc<Mutex<WrittenBlock>>);

#[derive(Debug, Default)]
struct WrittenBlock {
    slot: u32,
    bytes: Vec<u8>,
}

impl Writing {
    fn now(&self) -> MutexGuard<'_, WrittenBlock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_in(&self, slot: u32, bytes: &[u8]) {
        let mut now = self.now();
        now.slot = slot;
        now.bytes.clear();
        now.bytes.extend_from_slice(bytes);
    }
}

/// The blocks of a store are those of the volume, so that they are not in memory a second time.
#[derive(Debug)]
struct OnDisk {
    bytes: Arc<dyn Bytes>,
    block_bytes: u64,
    places: Vec<u32>,
    writing: Writing,
}

impl BlockContents for OnDisk {
    type Block = [u8];

    fn new_bytes(&self, block: &[u8], at: usize, into: &mut [u8]) {
        into.copy_from_slice(&block[at..at + into.len()]);
    }

    fn kept_bytes(&self, slot: u32, at: usize, into: &mut [u8]) {
        let place = self.places[slot as usize];
        let now = self.writing.now();
        if place == now.slot && !now.bytes.is_empty() {
            into.copy_from_slice(&now.bytes[at..at + into.len()]);
            return;
        }
        drop(now);
        let place = u64::from(place) * self.block_bytes + at as u64;
        // A block that cannot be read is an error to its reader. The model takes it for zeros, so its counts of rows in
        // common may be wrong from then on.
        if self.bytes.read_at(into, place).is_err() {
            into.fill(0);
        }
    }

    fn keep(&mut self, slot: u32, _: &[u8]) {
        let slot = slot as usize;
        if self.places.len() <= slot {
            self.places.resize(slot + 1, 0);
        }
        self.places[slot] = self.writing.now().slot;
    }

    fn forget(&mut self, _: u32) {}
}
