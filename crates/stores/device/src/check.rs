//! Reads everything that a folder holds and compares it with its checksums and counts. Nothing is
//! written: a folder that cannot be written, or a copy, is looked at as it is.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::files::{Bytes, Disk, How, StoreFiles};
use crate::folder::{BLOCKS, Folder};
use crate::shape::Shape;
use crate::tables::{Digest, NOTHING, ReadTables, SlotEntry, log_name, read, table_name};
use crate::{DeviceError, Result};

#[derive(Debug, Serialize)]
pub struct Checked {
    #[serde(flatten)]
    pub shape: Shape,
    /// The number of the last commit; `None` if the tables cannot be read.
    pub commit: Option<u64>,
    pub live_blocks: u64,
    /// Distinct contents, each of which was read and compared with its checksum.
    pub stored_blocks: u64,
    /// Bytes of the tables that were read and agree with their checksums.
    pub table_bytes: u64,
    pub block_bytes_read: u64,
    pub faults: Vec<String>,
    /// Notes that are no faults, such as what a power cut has left.
    pub notes: Vec<String>,
}

/// Checks a device that is not being served, and changes nothing. `tell` is told the slots done and in all; if it
/// answers false this returns `None`.
///
/// # Errors
/// If the folder is in use or holds no device, or a file cannot be opened.
pub fn check(path: &Path, tell: &dyn Fn(u64, u64) -> bool) -> Result<Option<Checked>> {
    check_on(Arc::new(Disk::new(path)), tell)
}

/// Checks any files; see [`check`].
pub fn check_on(
    files: Arc<dyn StoreFiles>,
    tell: &dyn Fn(u64, u64) -> bool,
) -> Result<Option<Checked>> {
    let folder = Folder::open(files.clone(), false)?;
    let mut checked = Checked {
        shape: folder.shape.clone(),
        commit: None,
        live_blocks: 0,
        stored_blocks: 0,
        table_bytes: 0,
        block_bytes_read: 0,
        faults: Vec::new(),
        notes: Vec::new(),
    };
    if folder.lock.is_none() {
        let note = "there is no lock file, so a server of this folder could not be noticed";
        checked.notes.push(note.to_owned());
    }
    if folder.shape_is_lost {
        let note = "store.json is damaged or missing; a table has the same figures, and the next start writes it anew";
        checked.notes.push(note.to_owned());
    }
    match read(&*files, &folder.shape) {
        Ok(found) => {
            checked.commit = Some(found.mark.commit);
            checked.table_bytes = found.bytes_read;
            checked.tell_of(&found);
            for name in [
                table_name(found.mark.generation),
                log_name(found.mark.generation),
            ] {
                forget(&*files, &name);
            }
            if !contents(&*files, &found, &mut checked, tell)? {
                return Ok(None);
            }
        }
        Err(DeviceError::Tables(what)) => {
            checked
                .faults
                .push(format!("{what}; no block was looked at"));
        }
        Err(error) => return Err(error),
    }
    Ok(Some(checked))
}

/// Has a file read from the disk, as far as the system allows.
fn forget(files: &dyn StoreFiles, name: &str) {
    if let Ok(file) = files.open(name, How::Read) {
        let _ = file.forget_cached();
    }
}

impl Checked {
    fn tell_of(&mut self, found: &ReadTables) {
        if !found.mark.is_clean {
            let note = "the last server did not end as it should, or there was none after the store was made";
            self.notes.push(note.to_owned());
        }
        if found.copy_is_lost {
            let note = "one of the two copies of the mark is lost; the other one serves";
            self.notes.push(note.to_owned());
        }
        if found.lost_pages > 0 {
            let note = format!(
                "{} pages of the tables have lost one of their two copies; the next start writes them anew",
                found.lost_pages
            );
            self.notes.push(note);
        }
        if found.beyond > 0 {
            let note = format!("{} commits that nobody was told of are whole", found.beyond);
            self.notes.push(note);
        }
        if found.torn_bytes > 0 {
            let bytes = found.torn_bytes;
            let note =
                format!("{bytes} bytes after the last commit are of one that was broken off");
            self.notes.push(note);
        }
    }
}

/// Reads a slot into `block`, and compares it with its checksum and its references with the blocks `of` it.
fn check_slot(
    bytes: &dyn Bytes,
    slot: u32,
    kept: &SlotEntry,
    of: &[u32],
    block: &mut [u8],
    faults: &mut Vec<String>,
) {
    let lost = || match of {
        [] => "no block has it".to_owned(),
        [one] => format!("block {one} is lost"),
        [first, rest @ ..] => format!("block {first} and {} more are lost", rest.len()),
    };
    let at = u64::from(slot) * block.len() as u64;
    match bytes.read_at(block, at) {
        Err(error) => faults.push(format!("slot {slot}: cannot be read: {error}; {}", lost())),
        Ok(()) if *blake3::hash(block).as_bytes() != kept.digest => {
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
}

fn contents(
    files: &dyn StoreFiles,
    found: &ReadTables,
    checked: &mut Checked,
    tell: &dyn Fn(u64, u64) -> bool,
) -> Result<bool> {
    let map = &found.map;
    let mut users: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (block, &slot) in map.blocks.iter().enumerate() {
        if slot != NOTHING {
            checked.live_blocks += 1;
            users.entry(slot - 1).or_default().push(block as u32);
        }
    }
    let stored = map.slots.iter().filter(|kept| kept.references > 0).count() as u64;
    checked.stored_blocks = stored;
    let bytes = match files.open(BLOCKS, How::Read) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let live = checked.live_blocks;
            let what = format!("{BLOCKS}: is missing; {live} blocks are lost");
            checked.faults.push(what);
            return Ok(true);
        }
        Err(error) => return Err(DeviceError::io(&files.folder().join(BLOCKS), error)),
    };
    let _ = bytes.forget_cached();
    let mut block = vec![0; checked.shape.block_bytes as usize];
    let mut seen: FxHashMap<Digest, u32> = FxHashMap::default();
    let slots = map.slots.iter().enumerate();
    for (done, (slot, kept)) in slots.filter(|(_, kept)| kept.references > 0).enumerate() {
        let slot = slot as u32;
        let of = users.remove(&slot).unwrap_or_default();
        let faults = &mut checked.faults;
        check_slot(bytes.as_ref(), slot, kept, &of, &mut block, faults);
        checked.block_bytes_read += block.len() as u64;
        if let Some(other) = seen.insert(kept.digest, slot) {
            faults.push(format!("slot {slot}: has the content of slot {other}"));
        }
        if done.is_multiple_of(256) && !tell(done as u64, stored) {
            return Ok(false);
        }
    }
    let mut nowhere: Vec<(u32, Vec<u32>)> = users.into_iter().collect();
    nowhere.sort_unstable();
    for (slot, of) in nowhere {
        checked.faults.push(format!(
            "block {}: is in slot {slot}, which is empty",
            of[0]
        ));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Map, Tables};
    use crate::{Volume, Wanted};

    #[test]
    fn counts_of_references_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = Wanted {
            size_bytes: Some(24 * 512),
            block_bytes: Some(512),
            ..Wanted::default()
        };
        let mut volume = Volume::open(folder.path(), wanted).unwrap();
        for block in 0..2 {
            volume.write(block, &[1; 512]).unwrap();
        }
        volume.commit().unwrap();
        drop(volume);
        let files: Arc<dyn StoreFiles> = Arc::new(Disk::new(folder.path()));
        let shape = Folder::open(files.clone(), false).unwrap().shape;
        let found = read(&*files, &shape).unwrap();
        let mut tables = Tables::go_on(files, &shape, &found).unwrap();
        let Map {
            mut blocks,
            mut slots,
        } = found.map;
        (blocks[1], blocks[2], blocks[3], blocks[4]) = (NOTHING, 6, 1, 1);
        slots.push(SlotEntry {
            references: 1,
            ..slots[0]
        });
        assert!(tables.next_generation(&Map { blocks, slots }).is_ok());
        let faults = check(folder.path(), &|_, _| true).unwrap().unwrap().faults;
        let wanted = [
            "slot 0: has 2 references, but 3 blocks have it",
            "slot 1: cannot be read: failed to fill whole buffer; no block has it",
            "slot 1: has 1 references, but 0 blocks have it",
            "slot 1: has the content of slot 0",
            "block 2: is in slot 5, which is empty",
        ];
        assert_eq!(faults, wanted);
        let error = Volume::open(folder.path(), Wanted::default())
            .err()
            .unwrap();
        assert!(matches!(error, DeviceError::Damaged(_)), "{error}");
    }
}
