//! The folder of a device: who may use it, and what it was made for.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sardonyx_store::Named;
use serde::{Deserialize, Serialize};

use crate::{DeviceError, Result};

/// The layout of the folder; another layout gets another number.
const FORMAT: u32 = 1;
const SHAPE: &str = "store.json";
const LOCK: &str = "lock";
/// The bytes of the blocks.
pub(crate) const BLOCKS: &str = "blocks";
/// The key-value engine's folder.
pub(crate) const TABLES: &str = "tables";
/// The files of a store that is executed, made anew with every start.
pub(crate) const EXECUTED: &str = "rival";

/// What a device was made for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    format: u32,
    /// What counts the cost.
    pub design: Named,
    /// Bytes of the device.
    pub size_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
}

/// What a user asks for; what is left out is as the folder has it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// By default the first of the designs.
    pub design: Option<Named>,
    /// Needed of a new device.
    pub size_bytes: Option<u64>,
    /// By default 4096.
    pub block_bytes: Option<u32>,
}

/// A folder that nobody else uses as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    pub path: PathBuf,
    pub shape: Shape,
    pub is_new: bool,
    _lock: File,
}

impl Folder {
    /// The folder, made if need be.
    pub fn open_or_make(path: &Path, wanted: Wanted) -> Result<Folder> {
        if path.join(SHAPE).exists() {
            let folder = Folder::open(path)?;
            folder.shape.agree(path, wanted)?;
            return Ok(folder);
        }
        let shape = Shape::new(wanted)?;
        fs::create_dir_all(path).map_err(|error| DeviceError::io(path, error))?;
        let ours = [LOCK, BLOCKS, TABLES, EXECUTED, "store.json.new"];
        for entry in fs::read_dir(path).map_err(|error| DeviceError::io(path, error))? {
            let entry = entry.map_err(|error| DeviceError::io(path, error))?;
            if !ours.iter().any(|name| entry.file_name() == *name) {
                return Err(DeviceError::Bad(format!(
                    "{}: holds {} and no store; name an empty or a new folder",
                    path.display(),
                    entry.file_name().display()
                )));
            }
        }
        let lock = locked(path)?;
        for name in [BLOCKS, TABLES] {
            remove(&path.join(name))?; // of a start that was broken off
        }
        Ok(Folder {
            path: path.to_owned(),
            shape,
            is_new: true,
            _lock: lock,
        })
    }

    /// The folder of a device that is there.
    pub fn open(path: &Path) -> Result<Folder> {
        let file = path.join(SHAPE);
        let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeviceError::Bad(format!(
                "{}: holds no store; name the --dir of `sardonyx store serve`",
                path.display()
            )),
            _ => DeviceError::io(&file, error),
        })?;
        let shape: Shape = serde_json::from_str(&text).map_err(|error| {
            DeviceError::Bad(format!("{}: {error}; it is no store's", file.display()))
        })?;
        if shape.format != FORMAT {
            return Err(DeviceError::Bad(format!(
                "{}: has layout {}, and this version knows {FORMAT}",
                file.display(),
                shape.format
            )));
        }
        shape.check()?;
        let lock = locked(path)?;
        Ok(Folder {
            path: path.to_owned(),
            shape,
            is_new: false,
            _lock: lock,
        })
    }

    /// The device's other files exist: from now on it is one.
    pub fn made(&mut self) -> Result<()> {
        let write = || -> io::Result<()> {
            let scratch = self.path.join("store.json.new");
            fs::write(&scratch, serde_json::to_string_pretty(&self.shape)? + "\n")?;
            File::open(&scratch)?.sync_all()?;
            fs::rename(&scratch, self.path.join(SHAPE))?;
            File::open(&self.path)?.sync_all()?;
            let parent = self.path.canonicalize()?;
            parent
                .parent()
                .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
        };
        self.is_new = false;
        write().map_err(|error| DeviceError::io(&self.path, error))
    }
}

/// Removes a file or a folder that may be there.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed
        .or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                Ok(())
            } else {
                Err(error)
            }
        })
        .map_err(|error| DeviceError::io(path, error))
}

fn locked(path: &Path) -> Result<File> {
    let name = path.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name);
    let file = file.map_err(|error| DeviceError::io(&name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(DeviceError::Bad(format!(
            "{}: another server or check uses it; end that first, or name another folder",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(DeviceError::io(&name, error)),
    }
}

impl Shape {
    fn new(wanted: Wanted) -> Result<Shape> {
        let Some(size_bytes) = wanted.size_bytes else {
            return Err(DeviceError::Bad(
                "--size: give one, as 1G; the store is new".into(),
            ));
        };
        let shape = Shape {
            format: FORMAT,
            design: wanted.design.unwrap_or_default(),
            size_bytes,
            block_bytes: wanted.block_bytes.unwrap_or(4096),
        };
        shape.check()?;
        Ok(shape)
    }

    fn check(&self) -> Result<()> {
        let (size, block) = (self.size_bytes, u64::from(self.block_bytes));
        if !(512..=65536).contains(&block) || !block.is_power_of_two() {
            return Err(DeviceError::Bad(format!(
                "--block {block}: give 512 to 64K, a power of two"
            )));
        }
        if size < block {
            return Err(DeviceError::Bad(format!(
                "--size {size}: is less than one block; give {block} bytes or more"
            )));
        }
        if !size.is_multiple_of(block) || size / block >= u64::from(u32::MAX) {
            return Err(DeviceError::Bad(format!(
                "--size {size}: give whole blocks of {block} bytes, fewer than 2^32 - 1 of them"
            )));
        }
        Ok(())
    }

    fn agree(&self, path: &Path, wanted: Wanted) -> Result<()> {
        let Shape {
            design,
            size_bytes,
            block_bytes,
            ..
        } = self;
        let same = wanted.design.is_none_or(|wanted| wanted == *design)
            && wanted.size_bytes.is_none_or(|wanted| wanted == *size_bytes)
            && wanted
                .block_bytes
                .is_none_or(|wanted| wanted == *block_bytes);
        if same {
            return Ok(());
        }
        Err(DeviceError::Bad(format!(
            "{}: holds a store made with --design {} --size {size_bytes} --block {block_bytes}; \
             ask for that, or name another folder",
            path.display(),
            design.name
        )))
    }

    /// Blocks of the device.
    pub fn blocks(&self) -> u32 {
        (self.size_bytes / u64::from(self.block_bytes)) as u32
    }
}
