//! Blocks on disk, with equal ones stored once.
//!
//! Contents are in slots of one file. A slot that the last commit knows is never overwritten: a new content goes to a
//! free slot, and a slot that the change frees can be used after the next commit. So after a crash a block has its old
//! or its new content, and never half of one.
//!
//! The tables are in memory while the volume is open; a commit first brings the contents to the disk and then what has
//! changed of the tables ([`Tables`]). Once the disk has refused to sync anything, nothing is written any more, because
//! the system's page cache and the disk may disagree.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxHashSet;

use crate::files::{Bytes, Disk, How, StoreFiles};
use crate::folder::{BLOCKS, Folder};
use crate::shape::{Shape, Wanted};
use crate::tables::{
    Digest, MARK, Map, NOTHING, Refused, SET_ASIDE, SlotEntry, Tables, disbelieve, log_name, open,
    read, read_mark, table_name,
};
use crate::{DeviceError, Result};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this many changes it commits, so that they do not fill the memory.
    pub changes: usize,
    /// After this many bytes of log it writes the tables whole, if the log is longer than they are.
    pub log_bytes: u64,
    /// Above this number of free slots, if an eighth of all are free, their room goes back to the disk.
    pub free_slots: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            changes: 1 << 17,
            log_bytes: 16 << 20,
            free_slots: 1 << 13,
        }
    }
}

/// The number of runs of free slots whose room is given back when a volume ends; the rest stays until the next end.
const RUNS_AT_END: usize = 1 << 10;
/// At most this many free slots are looked at for one piece.
const PIECE_SLOTS: usize = 1 << 12;

/// A run of blocks that all have contents, or all have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    pub first: u32,
    pub blocks: u32,
    pub has_content: bool,
}

pub struct Volume {
    folder: Folder,
    limits: Limits,
    bytes: Arc<dyn Bytes>,
    tables: Tables,
    map: Map,
    /// Whether the last commit may know the slot, so that its bytes must stay.
    committed: Vec<bool>,
    by_digest: HashTable<u32>,
    live_blocks: u64,
    /// Free slots that have room on the disk; the last is used first.
    free: VecDeque<u32>,
    without_room: Vec<u32>,
    keeps_room: bool,
    freed: Vec<u32>,
    /// The number of slots that the disk has refused; the file may have as many more slots.
    set_aside: usize,
    changed_blocks: FxHashSet<u32>,
    changed_slots: FxHashSet<u32>,
    is_dirty: bool,
    /// The disk's refusal to sync; nothing was written since.
    in_doubt: Option<String>,
}

fn hash(digest: &Digest) -> u64 {
    u64::from_le_bytes(digest[..8].try_into().expect("8 bytes"))
}

impl Volume {
    /// Opens the volume in this folder, or makes one.
    ///
    /// # Errors
    /// If it is in use, is not what is wanted, is damaged, or a file refuses.
    pub fn open(path: &Path, wanted: Wanted) -> Result<Volume> {
        let disk = Disk::new(path);
        if !path.exists() {
            Shape::new(wanted)?; // before anything is made
        }
        disk.make().map_err(|error| DeviceError::io(path, error))?;
        Volume::open_on(Arc::new(disk), wanted, Limits::default())
    }

    /// Opens any files; see [`Volume::open`].
    pub fn open_on(files: Arc<dyn StoreFiles>, wanted: Wanted, limits: Limits) -> Result<Volume> {
        let (folder, is_new) = Folder::open_or_make(files.clone(), wanted)?;
        let path = files.folder().join(BLOCKS);
        let failed = |error| DeviceError::io(&path, error);
        if is_new {
            let bytes = files.open(BLOCKS, How::New).map_err(failed)?;
            bytes.sync().map_err(failed)?;
            let tables = Tables::make(files, &folder.shape)?;
            folder.made()?;
            let map = Map::empty(&folder.shape);
            return Volume::new(folder, limits, bytes, tables, map);
        }
        disbelieve(&*files, &[MARK])?;
        let (mark, _) = read_mark(&*files)?;
        if !mark.is_clean {
            let (table, log) = (table_name(mark.generation), log_name(mark.generation));
            disbelieve(&*files, &[&table, &log, BLOCKS])?;
        }
        let found = read(&*files, &folder.shape)?;
        let bytes = open(&*files, BLOCKS, How::Write)?;
        let tables = Tables::go_on(files, &folder.shape, &found)?;
        Volume::new(folder, limits, bytes, tables, found.map)
    }

    fn new(
        folder: Folder,
        limits: Limits,
        bytes: Arc<dyn Bytes>,
        tables: Tables,
        map: Map,
    ) -> Result<Volume> {
        let mut by_digest = HashTable::new();
        let mut free = VecDeque::new();
        for (number, kept) in map.slots.iter().enumerate().rev() {
            match kept.references {
                0 => free.push_back(number as u32), // the first one is used first
                _ => {
                    let digest = |&slot: &u32| hash(&map.slots[slot as usize].digest);
                    by_digest.insert_unique(hash(&kept.digest), number as u32, digest);
                }
            }
        }
        let mut live_blocks = 0;
        for &at in map.blocks.iter().filter(|&&at| at != NOTHING) {
            live_blocks += 1;
            let kept = map.slots.get(at as usize - 1);
            if kept.is_none_or(|kept| kept.references == 0) {
                let path = folder.files.folder().display();
                return Err(DeviceError::Damaged(format!(
                    "{path}: slot {} is referred to and empty",
                    at - 1
                )));
            }
        }
        Ok(Volume {
            committed: map.slots.iter().map(|kept| kept.references > 0).collect(),
            folder,
            limits,
            bytes,
            tables,
            map,
            by_digest,
            live_blocks,
            free,
            without_room: Vec::new(),
            keeps_room: false,
            freed: Vec::new(),
            set_aside: 0,
            changed_blocks: FxHashSet::default(),
            changed_slots: FxHashSet::default(),
            is_dirty: false,
            in_doubt: None,
        })
    }

    pub fn shape(&self) -> &Shape {
        &self.folder.shape
    }

    pub fn folder(&self) -> &Path {
        self.folder.files.folder()
    }

    pub fn bytes(&self) -> Arc<dyn Bytes> {
        self.bytes.clone()
    }

    pub fn slot(&self, block: u32) -> Option<u32> {
        self.map.blocks[block as usize].checked_sub(1)
    }

    /// The BLAKE3 of a block's content as it was written; `None` if it has none.
    pub fn digest(&self, block: u32) -> Option<[u8; 32]> {
        let slot = self.slot(block)?;
        Some(self.map.slots[slot as usize].digest)
    }

    pub fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    fn failed(&self, error: std::io::Error) -> DeviceError {
        DeviceError::io(&self.folder().join(BLOCKS), error)
    }

    /// Reads a block, and returns whether it has a content; zeros if not.
    ///
    /// # Errors
    /// If the disk refuses or the bytes do not match the checksum; other blocks are as they were.
    pub fn read(&self, block: u32, into: &mut [u8]) -> Result<bool> {
        let Some(slot) = self.slot(block) else {
            into.fill(0);
            return Ok(false);
        };
        let lost = |what: &str| {
            let path = self.folder().join(BLOCKS);
            DeviceError::Damaged(format!(
                "{}: block {block} in slot {slot} {what}",
                path.display()
            ))
        };
        let at = u64::from(slot) * into.len() as u64;
        if let Err(error) = self.bytes.read_at(into, at) {
            return Err(lost(&format!("cannot be read: {error}")));
        }
        if *blake3::hash(into).as_bytes() != self.map.slots[slot as usize].digest {
            return Err(lost("is not what was written"));
        }
        Ok(true)
    }

    /// Writes a block.
    ///
    /// # Errors
    /// If the disk refuses, for example because it is full; the block is as it was.
    pub fn write(&mut self, block: u32, bytes: &[u8]) -> Result<()> {
        self.believed()?;
        self.commit_if_due()?;
        let digest = *blake3::hash(bytes).as_bytes();
        let old = self.slot(block);
        let slots = &self.map.slots;
        let same = |&slot: &u32| slots[slot as usize].digest == digest;
        let slot = match self.by_digest.find(hash(&digest), same) {
            Some(&slot) => {
                self.heal(slot, bytes)?;
                if old == Some(slot) {
                    return Ok(());
                }
                slot
            }
            None => self.store(digest, bytes)?,
        };
        self.map.slots[slot as usize].references += 1;
        self.changed_slots.insert(slot);
        self.release(old);
        self.live_blocks += u64::from(old.is_none());
        self.map.blocks[block as usize] = slot + 1;
        self.changed_blocks.insert(block);
        Ok(())
    }

    pub fn delete(&mut self, block: u32) -> Result<()> {
        self.believed()?;
        self.commit_if_due()?;
        let old = self.slot(block);
        if old.is_some() {
            self.release(old);
            self.live_blocks -= 1;
            self.map.blocks[block as usize] = NOTHING;
            self.changed_blocks.insert(block);
        }
        Ok(())
    }

    /// Puts a new content into a free slot, without a reference yet. A slot that the disk refuses is set aside, and
    /// another one taken.
    fn store(&mut self, digest: Digest, bytes: &[u8]) -> Result<u32> {
        let slot = loop {
            let slot = self.free.pop_back().or_else(|| self.without_room.pop());
            let slot = slot.unwrap_or_else(|| {
                self.map.slots.push(SlotEntry::default());
                self.committed.push(false);
                self.map.slots.len() as u32 - 1
            });
            let at = u64::from(slot) * bytes.len() as u64;
            let Err(error) = self.bytes.write_at(bytes, at) else {
                break slot;
            };
            let error = self.failed(error);
            if error.is_full() || self.set_aside == SET_ASIDE {
                self.free.push_back(slot);
                return Err(error);
            }
            self.set_aside += 1;
        };
        self.map.slots[slot as usize] = SlotEntry {
            references: 0,
            digest,
        };
        let slots = &self.map.slots;
        let of = |&slot: &u32| hash(&slots[slot as usize].digest);
        self.by_digest.insert_unique(hash(&digest), slot, of);
        self.is_dirty = true;
        Ok(slot)
    }

    /// Compares a known content with its bytes on the disk, and writes them again if they are damaged, so that no block
    /// comes to share a lost content.
    fn heal(&mut self, slot: u32, bytes: &[u8]) -> Result<()> {
        let at = u64::from(slot) * bytes.len() as u64;
        let mut there = vec![0; bytes.len()];
        if self.bytes.read_at(&mut there, at).is_ok() && there == bytes {
            return Ok(());
        }
        self.is_dirty = true;
        let written = self.bytes.write_at(bytes, at);
        written.map_err(|error| self.failed(error))
    }

    fn release(&mut self, slot: Option<u32>) {
        let Some(number) = slot else { return };
        let kept = &mut self.map.slots[number as usize];
        kept.references -= 1;
        self.changed_slots.insert(number);
        if kept.references == 0 {
            let found = self
                .by_digest
                .find_entry(hash(&kept.digest), |&slot| slot == number);
            found.expect("a content that is stored").remove();
            if self.committed[number as usize] {
                self.freed.push(number);
            } else {
                self.free.push_back(number);
            }
        }
    }

    fn commit_if_due(&mut self) -> Result<()> {
        if self.changed_blocks.len().max(self.changed_slots.len()) < self.limits.changes {
            return Ok(());
        }
        self.commit()
    }

    /// An error if the disk has refused to sync something since the start.
    fn believed(&self) -> Result<()> {
        match &self.in_doubt {
            None => Ok(()),
            Some(why) => Err(DeviceError::Stopped(format!(
                "{}: the disk has refused to sync ({why}), so nothing is written any more; what was flushed \
                 before is safe: look at the disk, then start the server again",
                self.folder().display()
            ))),
        }
    }

    fn doubt(&mut self, error: DeviceError) -> DeviceError {
        self.in_doubt = Some(error.to_string());
        error
    }

    /// Makes everything so far survive a crash.
    ///
    /// # Errors
    /// If the disk refuses. Nothing that was committed before is lost. If there was no room, a later commit
    /// makes up for this one; if the disk did not sync, every later one is an error.
    pub fn commit(&mut self) -> Result<()> {
        self.believed()?;
        // Contents are synced before the tables, because a commit must not name a slot whose bytes are not on the disk.
        if self.is_dirty {
            if let Err(error) = self.bytes.sync() {
                let error = self.failed(error);
                return Err(self.doubt(error));
            }
            self.is_dirty = false;
        }
        if self.changed_blocks.is_empty() && self.changed_slots.is_empty() {
            return Ok(());
        }
        for &slot in &self.changed_slots {
            // The disk may have the commit even if the answer is an error, so these slots' bytes must stay from now on.
            self.committed[slot as usize] |= self.map.slots[slot as usize].references > 0;
        }
        let Map { blocks, slots } = &self.map;
        let done = self.tables.commit(
            (self.changed_blocks.iter()).map(|&block| (block, blocks[block as usize])),
            (self.changed_slots.iter()).map(|&slot| (slot, slots[slot as usize])),
        );
        match done {
            Ok(()) => {}
            Err(Refused::Full(error)) => return Err(error),
            Err(Refused::InDoubt(error)) => return Err(self.doubt(error)),
        }
        self.changed_blocks.clear();
        self.changed_slots.clear();
        for slot in self.freed.drain(..) {
            self.committed[slot as usize] = false;
            self.free.push_back(slot);
        }
        if self.tables.is_log_long(self.limits.log_bytes) {
            match self.tables.next_generation(&self.map) {
                Ok(()) | Err(Refused::Full(_)) => {} // the log serves on
                Err(Refused::InDoubt(error)) => return Err(self.doubt(error)),
            }
        }
        Ok(())
    }

    /// Takes at most so many runs of free slots, for their room to be given back; `None` while few are free. They are
    /// not written to until [`Volume::given_back`].
    pub fn spare_room(&mut self, runs: usize) -> Option<SpareRoom> {
        let few = self.limits.free_slots.max(self.map.slots.len() / 8);
        (self.free.len() >= few).then(|| self.piece(runs))?
    }

    fn piece(&mut self, runs: usize) -> Option<SpareRoom> {
        if self.keeps_room || self.free.is_empty() || self.in_doubt.is_some() {
            return None;
        }
        // The slots at the front would be used last.
        let mut slots: Vec<u32> = (self.free.drain(..PIECE_SLOTS.min(self.free.len()))).collect();
        slots.sort_unstable();
        let mut ends = (1..slots.len()).filter(|&at| slots[at - 1] + 1 < slots[at]);
        if let Some(end) = ends.nth(runs.max(1) - 1) {
            slots
                .drain(end..)
                .for_each(|slot| self.free.push_front(slot));
        }
        Some(SpareRoom {
            bytes: self.bytes.clone(),
            block_bytes: u64::from(self.folder.shape.block_bytes),
            slots,
        })
    }

    /// Takes slots back; `done` says that their room was given back, which a file system may refuse without harm.
    pub fn given_back(&mut self, room: SpareRoom, done: bool) {
        if done {
            self.without_room.extend(room.slots);
        } else {
            self.keeps_room = true;
            self.free.extend(room.slots);
        }
    }

    /// Commits, gives room back and notes that the volume was closed cleanly.
    pub fn end(&mut self) -> Result<()> {
        self.commit()?;
        let mut runs = RUNS_AT_END;
        while runs > 0
            && let Some(room) = self.piece(runs)
        {
            runs -= room.runs().count();
            let done = room.give_back();
            self.given_back(room, done);
        }
        self.tables.end().map_err(|error| self.doubt(error))
    }

    pub fn extent(&self, first: u32, end: u32) -> BlockRun {
        let run = &self.map.blocks[first as usize..end as usize];
        let has_content = run[0] != NOTHING;
        let same = run
            .iter()
            .take_while(|&&slot| (slot != NOTHING) == has_content);
        BlockRun {
            first,
            blocks: same.count() as u32,
            has_content,
        }
    }
}

/// Free slots whose room is about to leave the file of blocks.
#[derive(Debug)]
pub struct SpareRoom {
    bytes: Arc<dyn Bytes>,
    block_bytes: u64,
    slots: Vec<u32>,
}

impl SpareRoom {
    fn runs(&self) -> impl Iterator<Item = &[u32]> {
        self.slots.chunk_by(|a, b| a + 1 == *b)
    }

    /// Gives the room back to the disk. It needs no volume, so others may read and write it meanwhile. False if the
    /// disk refuses.
    pub fn give_back(&self) -> bool {
        self.runs().all(|run| {
            let at = u64::from(run[0]) * self.block_bytes;
            let length = run.len() as u64 * self.block_bytes;
            self.bytes.punch(at, length).unwrap_or(false)
        })
    }
}
