//! Blocks on disk, equal ones once.
//!
//! Contents are in slots of one file. A slot that the last commit knows is never written over: a new
//! content goes to a free slot, and what the change frees is free for use after the next commit. So
//! a block has its old or its new content after a crash, and never half of one.
//!
//! The tables are in memory while the volume is open; a commit hands what has changed to the
//! key-value engine, after the contents are on the disk. Memory grows with distinct contents.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::folder::{BLOCKS, Folder, Shape, TABLES, Wanted};
use crate::tables::{Digest, Kept, Tables};
use crate::{DeviceError, Result};

/// Changes after which a commit is due that nobody asked for, so that they do not fill the memory.
const CHANGES: usize = 1 << 17;
/// A block without content: it reads as zeros.
const NOTHING: u32 = 0;

#[derive(Clone, Copy, Debug)]
struct Slot {
    kept: Kept,
    /// The last commit may know it: its bytes must stay.
    committed: bool,
}

/// A run of blocks that all have contents, or none of which has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first block.
    pub first: u32,
    /// So many.
    pub blocks: u32,
    /// Whether they have contents.
    pub has_content: bool,
}

/// An open volume.
pub struct Volume {
    folder: Folder,
    path: PathBuf,
    bytes: Arc<File>,
    tables: Tables,
    /// By block: [`NOTHING`], or the slot's number and one.
    blocks: Vec<u32>,
    slots: Vec<Slot>,
    by_digest: FxHashMap<Digest, u32>,
    free: Vec<u32>,
    /// Free after the next commit.
    freed: Vec<u32>,
    changed_blocks: FxHashSet<u32>,
    changed_slots: FxHashSet<u32>,
    /// Contents since the last commit are not on the disk, and never will be.
    contents_lost: bool,
}

impl Volume {
    /// The volume in this folder, made if there is none.
    ///
    /// # Errors
    /// If it is in use, is not what is wanted, or a file refuses.
    pub fn open(path: &Path, wanted: Wanted) -> Result<Volume> {
        let folder = Folder::open_or_make(path, wanted)?;
        let mut volume = Volume::of(folder)?;
        let shape = volume.folder.shape.clone();
        let mut strange = None;
        let Volume {
            tables,
            blocks,
            slots,
            ..
        } = &mut volume;
        tables.load(
            &mut |block, slot| match blocks.get_mut(block as usize) {
                Some(at) => *at = slot.wrapping_add(1),
                None => strange = Some(format!("block {block} is not of this device")),
            },
            &mut |slot, kept| {
                let empty = Slot {
                    kept: Kept {
                        references: 0,
                        digest: [0; 32],
                    },
                    committed: false,
                };
                // As many slots as there are blocks, and those that a commit was due to free.
                if slot as usize >= shape.blocks() as usize + 2 * CHANGES {
                    return;
                }
                if slots.len() <= slot as usize {
                    slots.resize(slot as usize + 1, empty);
                }
                slots[slot as usize] = Slot {
                    kept,
                    committed: true,
                };
            },
        )?;
        if let Some(&slot) = blocks.iter().find(|&&at| {
            at != NOTHING
                && slots
                    .get(at as usize - 1)
                    .is_none_or(|slot| slot.kept.references == 0)
        }) {
            strange = Some(format!(
                "slot {} is referred to and empty",
                slot.wrapping_sub(1)
            ));
        }
        if let Some(strange) = strange {
            return Err(DeviceError::Damaged(format!(
                "{}: {strange}",
                path.display()
            )));
        }
        for (number, slot) in volume.slots.iter().enumerate() {
            match slot.kept.references {
                0 => volume.free.push(number as u32),
                _ => _ = volume.by_digest.insert(slot.kept.digest, number as u32),
            }
        }
        volume.free.reverse(); // the first one is used first
        if volume.folder.is_new {
            volume
                .tables
                .commit(std::iter::empty(), std::iter::empty())?;
            volume.folder.made()?;
        }
        Ok(volume)
    }

    fn of(folder: Folder) -> Result<Volume> {
        let path = folder.path.join(BLOCKS);
        let mut options = File::options();
        options.read(true).write(true).create(folder.is_new);
        let bytes = options
            .open(&path)
            .map_err(|error| DeviceError::io(&path, error))?;
        Ok(Volume {
            tables: Tables::open(&folder.path.join(TABLES))?,
            bytes: Arc::new(bytes),
            path,
            blocks: vec![NOTHING; folder.shape.blocks() as usize],
            slots: Vec::new(),
            by_digest: FxHashMap::default(),
            free: Vec::new(),
            freed: Vec::new(),
            changed_blocks: FxHashSet::default(),
            changed_slots: FxHashSet::default(),
            contents_lost: false,
            folder,
        })
    }

    /// What it was made for.
    pub fn shape(&self) -> &Shape {
        &self.folder.shape
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// The file of the slots, one after the other.
    pub fn bytes(&self) -> Arc<File> {
        self.bytes.clone()
    }

    /// Where a block's content is; `None` of one that has none.
    pub fn slot(&self, block: u32) -> Option<u32> {
        self.blocks[block as usize].checked_sub(1)
    }

    /// Distinct contents.
    pub fn stored_blocks(&self) -> u64 {
        self.by_digest.len() as u64
    }

    /// Reads a block; whether it has a content. Zeros if not.
    ///
    /// # Errors
    /// If the disk refuses or its bytes are not those of the checksum.
    pub fn read(&self, block: u32, into: &mut [u8]) -> Result<bool> {
        let Some(slot) = self.slot(block) else {
            into.fill(0);
            return Ok(false);
        };
        let at = u64::from(slot) * into.len() as u64;
        self.bytes
            .read_exact_at(into, at)
            .map_err(|error| DeviceError::io(&self.path, error))?;
        if *blake3::hash(into).as_bytes() != self.slots[slot as usize].kept.digest {
            return Err(DeviceError::Damaged(format!(
                "{}: block {block} in slot {slot} is not what was written",
                self.path.display()
            )));
        }
        Ok(true)
    }

    /// Writes a block.
    ///
    /// # Errors
    /// If the disk refuses, as one that is full; the block is as it was.
    pub fn write(&mut self, block: u32, bytes: &[u8]) -> Result<()> {
        self.commit_if_due()?;
        let digest = *blake3::hash(bytes).as_bytes();
        let old = self.slot(block);
        let slot = match self.by_digest.get(&digest) {
            Some(&slot) if old == Some(slot) => return self.heal(slot, bytes),
            Some(&slot) => {
                self.heal(slot, bytes)?;
                slot
            }
            None => self.store(digest, bytes)?,
        };
        self.slots[slot as usize].kept.references += 1;
        self.changed_slots.insert(slot);
        self.release(old);
        self.blocks[block as usize] = slot + 1;
        self.changed_blocks.insert(block);
        Ok(())
    }

    /// The block has no content from now on.
    ///
    /// # Errors
    /// If a commit was due and failed.
    pub fn delete(&mut self, block: u32) -> Result<()> {
        self.commit_if_due()?;
        let old = self.slot(block);
        if old.is_some() {
            self.release(old);
            self.blocks[block as usize] = NOTHING;
            self.changed_blocks.insert(block);
        }
        Ok(())
    }

    /// Puts a new content into a free slot, without a reference yet.
    fn store(&mut self, digest: Digest, bytes: &[u8]) -> Result<u32> {
        let slot = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        let at = u64::from(slot) * bytes.len() as u64;
        self.bytes
            .write_all_at(bytes, at)
            .map_err(|error| DeviceError::io(&self.path, error))?;
        let new = Slot {
            kept: Kept {
                references: 0,
                digest,
            },
            committed: false,
        };
        match self.free.pop() {
            Some(slot) => self.slots[slot as usize] = new,
            None => self.slots.push(new),
        }
        self.by_digest.insert(digest, slot);
        Ok(slot)
    }

    /// Compares a content that is known with what the disk has of it, and puts it there if that has
    /// been damaged, so that no block comes to share a content that is lost.
    fn heal(&self, slot: u32, bytes: &[u8]) -> Result<()> {
        let at = u64::from(slot) * bytes.len() as u64;
        let mut there = vec![0; bytes.len()];
        if self.bytes.read_exact_at(&mut there, at).is_ok() && there == bytes {
            return Ok(());
        }
        self.bytes
            .write_all_at(bytes, at)
            .map_err(|error| DeviceError::io(&self.path, error))
    }

    fn release(&mut self, slot: Option<u32>) {
        let Some(number) = slot else { return };
        let slot = &mut self.slots[number as usize];
        slot.kept.references -= 1;
        self.changed_slots.insert(number);
        if slot.kept.references == 0 {
            self.by_digest.remove(&slot.kept.digest);
            if slot.committed {
                &mut self.freed
            } else {
                &mut self.free
            }
            .push(number);
        }
    }

    fn commit_if_due(&mut self) -> Result<()> {
        if self.changed_blocks.len().max(self.changed_slots.len()) < CHANGES {
            return Ok(());
        }
        self.commit()
    }

    /// Everything so far survives.
    ///
    /// # Errors
    /// If the disk refuses. Nothing that was committed before is lost, and a later commit makes up
    /// for this one.
    pub fn commit(&mut self) -> Result<()> {
        if self.changed_blocks.is_empty() {
            return Ok(());
        }
        if self.contents_lost {
            return Err(DeviceError::Bad(format!(
                "{}: the disk has refused contents; what was flushed before is safe: start anew",
                self.path.display()
            )));
        }
        if let Err(error) = self.bytes.sync_data() {
            self.contents_lost = true; // the kernel drops what it could not write
            return Err(DeviceError::io(&self.path, error));
        }
        for &slot in &self.changed_slots {
            let slot = &mut self.slots[slot as usize];
            slot.committed |= slot.kept.references > 0; // even if an error is what comes back
        }
        let Volume {
            tables,
            blocks,
            slots,
            changed_blocks,
            changed_slots,
            ..
        } = self;
        tables.commit(
            changed_blocks
                .iter()
                .map(|&block| (block, blocks[block as usize].checked_sub(1))),
            changed_slots.iter().map(|&number| {
                let kept = slots[number as usize].kept;
                (number, (kept.references > 0).then_some(kept))
            }),
        )?;
        self.changed_blocks.clear();
        self.changed_slots.clear();
        for slot in self.freed.drain(..) {
            self.slots[slot as usize].committed = false;
            self.free.push(slot);
        }
        Ok(())
    }

    /// The run of blocks that begins here, up to `end`.
    pub fn extent(&self, first: u32, end: u32) -> Extent {
        let run = &self.blocks[first as usize..end as usize];
        let has_content = run[0] != NOTHING;
        let same = run
            .iter()
            .take_while(|&&slot| (slot != NOTHING) == has_content);
        Extent {
            first,
            blocks: same.count() as u32,
            has_content,
        }
    }
}
