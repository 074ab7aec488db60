//! The tables as the key-value engine keeps them: which slot has a block's content, and what is in
//! each slot. A commit changes both together or not at all, and is on the disk when it returns.

use std::path::{Path, PathBuf};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use crate::{DeviceError, Result};

/// A content's checksum and name: BLAKE3.
pub(crate) type Digest = [u8; 32];

/// By block of the device.
const BLOCKS: TableDefinition<u32, u32> = TableDefinition::new("slot of block");
/// By slot: references, checksum.
const SLOTS: TableDefinition<u32, (u32, Digest)> = TableDefinition::new("slots");
/// Memory for the engine's pages.
const CACHE: usize = 64 << 20;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub references: u32,
    pub digest: Digest,
}

#[derive(Debug)]
pub(crate) struct Tables {
    path: PathBuf,
    /// `None` after a failure: the engine wants to be opened anew.
    database: Option<Database>,
}

impl Tables {
    pub fn open(path: &Path) -> Result<Tables> {
        let mut tables = Tables {
            path: path.to_owned(),
            database: None,
        };
        tables.database()?;
        Ok(tables)
    }

    fn database(&mut self) -> Result<&mut Database> {
        if self.database.is_none() {
            let opened = Database::builder().set_cache_size(CACHE).create(&self.path);
            self.database = Some(opened.map_err(|error| self.failed(error.into()))?);
        }
        Ok(self.database.as_mut().expect("opened above"))
    }

    fn failed(&self, error: redb::Error) -> DeviceError {
        let path = self.path.display().to_string();
        match error {
            redb::Error::Io(error) => DeviceError::Io(path, error),
            error => DeviceError::Tables(path, error.to_string()),
        }
    }

    /// Every block that has a slot, and every slot that holds something.
    pub fn load(
        &mut self,
        block: &mut dyn FnMut(u32, u32),
        slot: &mut dyn FnMut(u32, Kept),
    ) -> Result<()> {
        let mut load = |database: &mut Database| -> std::result::Result<(), redb::Error> {
            let read = database.begin_read()?;
            match read.open_table(BLOCKS) {
                Ok(table) => {
                    for entry in table.iter()? {
                        let (number, slot) = entry?;
                        block(number.value(), slot.value());
                    }
                }
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()), // nothing committed
                Err(error) => return Err(error.into()),
            }
            for entry in read.open_table(SLOTS)?.iter()? {
                let (number, kept) = entry?;
                let (references, digest) = kept.value();
                slot(number.value(), Kept { references, digest });
            }
            Ok(())
        };
        load(self.database()?).map_err(|error| self.failed(error))
    }

    /// Each of these blocks has this slot or none from now on, and each of these slots holds this or
    /// nothing. After an error it may have been done or not; doing it again is no harm.
    pub fn commit(
        &mut self,
        blocks: impl Iterator<Item = (u32, Option<u32>)>,
        slots: impl Iterator<Item = (u32, Option<Kept>)>,
    ) -> Result<()> {
        let commit = |database: &mut Database| -> std::result::Result<(), redb::Error> {
            let mut write = database.begin_write()?;
            write.set_durability(Durability::Immediate)?;
            {
                let mut table = write.open_table(BLOCKS)?;
                for (number, slot) in blocks {
                    match slot {
                        Some(slot) => table.insert(number, slot)?,
                        None => table.remove(number)?,
                    };
                }
                let mut table = write.open_table(SLOTS)?;
                for (number, kept) in slots {
                    match kept {
                        Some(kept) => table.insert(number, (kept.references, kept.digest))?,
                        None => table.remove(number)?,
                    };
                }
            }
            write.commit()?;
            Ok(())
        };
        let done = commit(self.database()?);
        done.map_err(|error| {
            self.database = None;
            self.failed(error)
        })
    }

    /// Whether the engine finds its own file sound.
    pub fn is_sound(&mut self) -> Result<bool> {
        let checked = self.database()?.check_integrity();
        checked.map_err(|error| self.failed(error.into()))
    }
}
