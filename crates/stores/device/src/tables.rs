//! The tables as the key-value engine keeps them: which slot has a block's content, and what is in
//! each slot. A commit changes both together or not at all, and is on the disk when it returns.
//!
//! The engine is fjall, as the rival's; docs/store.md says why.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::{DeviceError, Result};

/// A content's checksum and name: BLAKE3.
pub(crate) type Digest = [u8; 32];

/// By block of the device: its slot.
const BLOCKS: &str = "blocks";
/// By slot: references, checksum.
const SLOTS: &str = "slots";
/// Memory for the engine's pages; the tables are read once.
const CACHE: u64 = 8 << 20;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub references: u32,
    pub digest: Digest,
}

struct Engine {
    database: Database,
    blocks: Keyspace,
    slots: Keyspace,
}

pub(crate) struct Tables {
    path: PathBuf,
    /// `None` after a failure: the engine wants to be opened anew.
    engine: Option<Engine>,
}

impl Tables {
    pub fn open(path: &Path) -> Result<Tables> {
        let mut tables = Tables {
            path: path.to_owned(),
            engine: None,
        };
        tables.engine()?;
        Ok(tables)
    }

    fn engine(&mut self) -> Result<&Engine> {
        if self.engine.is_none() {
            let open = || -> fjall::Result<Engine> {
                let database = Database::builder(&self.path).cache_size(CACHE).open()?;
                Ok(Engine {
                    blocks: database.keyspace(BLOCKS, KeyspaceCreateOptions::default)?,
                    slots: database.keyspace(SLOTS, KeyspaceCreateOptions::default)?,
                    database,
                })
            };
            self.engine = Some(open().map_err(|error| self.failed(error))?);
        }
        Ok(self.engine.as_ref().expect("opened above"))
    }

    fn failed(&self, error: fjall::Error) -> DeviceError {
        let path = self.path.display().to_string();
        match error {
            fjall::Error::Io(error) => DeviceError::Io(path, error),
            error => DeviceError::Tables(path, error.to_string()),
        }
    }

    /// Every block that has a slot, and every slot that holds something.
    pub fn load(
        &mut self,
        block: &mut dyn FnMut(u32, u32),
        slot: &mut dyn FnMut(u32, Kept),
    ) -> Result<()> {
        let path = self.path.display().to_string();
        let strange = || DeviceError::Tables(path.clone(), "is no table of a store's".into());
        let engine = self.engine()?;
        let (blocks, slots) = (engine.blocks.clone(), engine.slots.clone());
        for entry in blocks.iter() {
            let (key, value) = entry.into_inner().map_err(|error| self.failed(error))?;
            block(
                number(&key).ok_or_else(strange)?,
                number(&value).ok_or_else(strange)?,
            );
        }
        for entry in slots.iter() {
            let (key, value) = entry.into_inner().map_err(|error| self.failed(error))?;
            let (references, digest) = value.split_at_checked(4).ok_or_else(strange)?;
            let kept = Kept {
                references: number(references).ok_or_else(strange)?,
                digest: digest.try_into().map_err(|_| strange())?,
            };
            slot(number(&key).ok_or_else(strange)?, kept);
        }
        Ok(())
    }

    /// Each of these blocks has this slot or none from now on, and each of these slots holds this or
    /// nothing. After an error it may have been done or not; doing it again is no harm.
    pub fn commit(
        &mut self,
        blocks: impl Iterator<Item = (u32, Option<u32>)>,
        slots: impl Iterator<Item = (u32, Option<Kept>)>,
    ) -> Result<()> {
        let engine = self.engine()?;
        let mut batch = engine
            .database
            .batch()
            .durability(Some(PersistMode::SyncAll));
        for (block, slot) in blocks {
            match slot {
                Some(slot) => batch.insert(&engine.blocks, key(block), key(slot)),
                None => batch.remove(&engine.blocks, key(block)),
            }
        }
        for (slot, kept) in slots {
            match kept {
                Some(kept) => {
                    let value = [&key(kept.references)[..], &kept.digest].concat();
                    batch.insert(&engine.slots, key(slot), value);
                }
                None => batch.remove(&engine.slots, key(slot)),
            }
        }
        batch.commit().map_err(|error| {
            self.engine = None;
            self.failed(error)
        })
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}
