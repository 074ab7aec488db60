//! Reads everything that a folder holds and compares it with its checksums and counts.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::folder::{BLOCKS, Folder, Shape, TABLES};
use crate::tables::{Digest, Kept, Tables};
use crate::{DeviceError, Result};

/// What was found.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// What the device was made for.
    #[serde(flatten)]
    pub shape: Shape,
    /// Blocks that have a content.
    pub live_blocks: u64,
    /// Distinct contents.
    pub stored_blocks: u64,
    /// What is wrong, one line each, in the order of the slots.
    pub faults: Vec<String>,
}

/// Checks a device that nobody serves. An unclean end is repaired first, as with any opening.
/// `tell` hears of slots done and in all, and says whether to go on; `None` if not.
///
/// # Errors
/// If the folder is in use or holds no device, or a file cannot be opened.
pub fn check(path: &Path, tell: &dyn Fn(u64, u64) -> bool) -> Result<Option<Checked>> {
    let folder = Folder::open(path)?;
    let mut faults = Vec::new();
    let mut slots: Vec<(u32, Kept)> = Vec::new();
    let mut users: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut live_blocks = 0;
    let loaded = Tables::open(&folder.path.join(TABLES)).and_then(|mut tables| {
        tables.load(
            &mut |block, slot| {
                live_blocks += 1;
                if block >= folder.shape.blocks() {
                    faults.push(format!("block {block}: the device has no such block"));
                }
                users.entry(slot).or_default().push(block);
            },
            &mut |slot, kept| slots.push((slot, kept)),
        )
    });
    match loaded {
        Ok(()) => {}
        Err(error @ DeviceError::Io(..)) => return Err(error),
        Err(error) => faults.push(error.to_string()),
    }
    let bytes_path = folder.path.join(BLOCKS);
    let bytes = File::open(&bytes_path).map_err(|error| DeviceError::io(&bytes_path, error))?;
    let mut block = vec![0; folder.shape.block_bytes as usize];
    let mut seen: FxHashMap<Digest, u32> = FxHashMap::default();
    for (done, &(slot, kept)) in slots.iter().enumerate() {
        let of = users.remove(&slot).unwrap_or_default();
        let lost = || match of.as_slice() {
            [] => "no block has it".to_owned(),
            [one] => format!("block {one} is lost"),
            [first, rest @ ..] => format!("block {first} and {} more are lost", rest.len()),
        };
        let at = u64::from(slot) * u64::from(folder.shape.block_bytes);
        match bytes.read_exact_at(&mut block, at) {
            Err(error) => faults.push(format!("slot {slot}: cannot be read: {error}; {}", lost())),
            Ok(()) if *blake3::hash(&block).as_bytes() != kept.digest => {
                faults.push(format!(
                    "slot {slot}: is not what its checksum says; {}",
                    lost()
                ));
            }
            Ok(()) => {}
        }
        if kept.references as usize != of.len() {
            let (said, found) = (kept.references, of.len());
            faults.push(format!(
                "slot {slot}: has {said} references, but {found} blocks have it"
            ));
        }
        if let Some(other) = seen.insert(kept.digest, slot) {
            faults.push(format!("slot {slot}: has the content of slot {other}"));
        }
        if done.is_multiple_of(256) && !tell(done as u64, slots.len() as u64) {
            return Ok(None);
        }
    }
    let mut nowhere: Vec<(u32, Vec<u32>)> = users.into_iter().collect();
    nowhere.sort_unstable();
    for (slot, of) in nowhere {
        faults.push(format!(
            "block {}: is in slot {slot}, which is empty",
            of[0]
        ));
    }
    Ok(Some(Checked {
        live_blocks,
        stored_blocks: slots.len() as u64,
        shape: folder.shape.clone(),
        faults,
    }))
}
