//! The folder of a device: its lock, and the size, block size and design that it was made with.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use serde::Deserialize;

use crate::files::{How, StoreFiles};
use crate::shape::{FORMAT, Shape, Wanted};
use crate::tables::{is_ours, read_mark, read_shape};
use crate::{DeviceError, Result};

const SHAPE: &str = "store.json";
/// The name of the shape's file until all other files exist.
const SHAPE_NEW: &str = "store.json.new";
const LOCK: &str = "lock";
pub(crate) const BLOCKS: &str = "blocks";
/// The engine's folder of layout 1.
const OLD_TABLES: &str = "tables";
/// The files of a store that is executed, made anew with every start.
pub(crate) const EXECUTED: &str = "rival";

/// A folder that no other process uses as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    pub files: Arc<dyn StoreFiles>,
    pub shape: Shape,
    /// Set if the file of the shape is damaged or missing; a table has the shape as well.
    pub shape_is_lost: bool,
    /// `None` if the folder is a copy without a file to lock, where nothing is written.
    pub lock: Option<Box<dyn Debug + Send + Sync>>,
}

impl Folder {
    /// Opens the folder of a store, or makes one. Returns also whether it is new, so that its files must be made.
    pub fn open_or_make(files: Arc<dyn StoreFiles>, wanted: Wanted) -> Result<(Folder, bool)> {
        let path = files.folder().to_owned();
        let names = names(&*files)?;
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if has(SHAPE) || (!has(SHAPE_NEW) && read_shape(&*files).is_some()) {
            let folder = Folder::open(files, true)?;
            folder.shape.agree(&path, wanted)?;
            if folder.shape_is_lost {
                (folder.write_shape().and_then(|()| folder.name_shape()))
                    .map_err(|error| DeviceError::io(&path.join(SHAPE), error))?;
            }
            return Ok((folder, false));
        }
        let ours = |name: &&String| {
            [LOCK, BLOCKS, EXECUTED, SHAPE_NEW, OLD_TABLES].contains(&name.as_str())
                || is_ours(name)
        };
        if let Some(strange) = names.iter().find(|name| !ours(name)) {
            return Err(DeviceError::Bad(format!(
                "{}: holds {strange} and no store; name an empty or a new folder",
                path.display()
            )));
        }
        if !has(SHAPE_NEW) && names.iter().any(|name| name != LOCK) {
            return Err(nameless(&*files));
        }
        if has(SHAPE_NEW) && has_commits(&*files)? {
            // The store was complete, and the disk has lost the last step, the rename.
            let renamed = files
                .rename(SHAPE_NEW, SHAPE)
                .and_then(|()| files.sync_names());
            renamed.map_err(|error| DeviceError::io(&path.join(SHAPE), error))?;
            return Folder::open_or_make(files, wanted);
        }
        let shape = Shape::new(wanted)?;
        let lock = Some(locked(&*files, true)?);
        let folder = Folder {
            files,
            shape,
            shape_is_lost: false,
            lock,
        };
        let files = &folder.files;
        let write = || -> io::Result<()> {
            // A start that was broken off before the store was complete has left these files.
            let is_kept = |name: &str| [LOCK, EXECUTED, SHAPE_NEW].contains(&name);
            for name in names.iter().filter(|name| !is_kept(name)) {
                files.remove(name)?;
            }
            files.sync_names()?; // before that which says that they may be taken away
            if has(SHAPE_NEW) {
                files.remove(SHAPE_NEW)?;
            }
            folder.write_shape()
        };
        write().map_err(|error| DeviceError::io(&path.join(SHAPE_NEW), error))?;
        Ok((folder, true))
    }

    /// Opens the folder of an existing store, for writing or only for reading.
    pub fn open(files: Arc<dyn StoreFiles>, write: bool) -> Result<Folder> {
        let written = written_shape(&*files);
        let (shape, shape_is_lost) = match (read_shape(&*files), written) {
            (Some(shape), written) => {
                let is_lost = written.ok().as_ref() != Some(&shape);
                (shape, is_lost)
            }
            (None, written) => (written?, false),
        };
        let lock = match locked(&*files, write) {
            Err(DeviceError::Io(_, error)) if !write && error.kind() == io::ErrorKind::NotFound => {
                None
            }
            lock => Some(lock?),
        };
        Ok(Folder {
            files,
            shape,
            shape_is_lost,
            lock,
        })
    }

    fn write_shape(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.shape).expect("numbers and a name") + "\n";
        let file = self.files.open(SHAPE_NEW, How::New)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync()?;
        self.files.sync_names()
    }

    fn name_shape(&self) -> io::Result<()> {
        self.files.rename(SHAPE_NEW, SHAPE)?;
        self.files.sync_names()
    }

    /// Notes that the store's other files are on the disk: from now on it is a store.
    pub fn made(&self) -> Result<()> {
        let files = &self.files;
        let renamed = files.sync_names().and_then(|()| self.name_shape());
        renamed.map_err(|error| DeviceError::io(files.folder(), error))
    }
}

fn written_shape(files: &dyn StoreFiles) -> Result<Shape> {
    let file = files.folder().join(SHAPE);
    let bytes = read_all(files, SHAPE).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => DeviceError::Bad(format!(
            "{}: holds no store; name the --dir of `sardonyx store serve`",
            files.folder().display()
        )),
        _ => DeviceError::io(&file, error),
    })?;
    #[derive(Deserialize)]
    struct Layout {
        format: u32,
    }
    let strange = |error: serde_json::Error| {
        DeviceError::Bad(format!(
            "{}: {error}; it is not a store's, or damaged: put it back from a copy",
            file.display()
        ))
    };
    let Layout { format } = serde_json::from_slice(&bytes).map_err(strange)?;
    if format != FORMAT {
        return Err(DeviceError::Bad(format!(
            "{}: has layout {format}, and this version knows {FORMAT}; serve it with the version that \
             has made it, and copy it to a new folder of this one, as with nbdcopy",
            file.display()
        )));
    }
    let shape: Shape = serde_json::from_slice(&bytes).map_err(strange)?;
    shape.check()?;
    Ok(shape)
}

fn nameless(files: &dyn StoreFiles) -> DeviceError {
    DeviceError::Bad(format!(
        "{}: holds files of a store and no {SHAPE}, and no table that could say what it is; put the folder back \
         from a copy, or name another one",
        files.folder().display()
    ))
}

/// Whether something was flushed to a folder that was never completed.
fn has_commits(files: &dyn StoreFiles) -> Result<bool> {
    match read_mark(files) {
        Ok((mark, _)) => Ok(mark.commit > 0),
        Err(_) => match files
            .open(BLOCKS, How::Read)
            .and_then(|blocks| blocks.length())
        {
            Ok(1..) => Err(nameless(files)),
            _ => Ok(false),
        },
    }
}

fn names(files: &dyn StoreFiles) -> Result<Vec<String>> {
    let names = files.names();
    names.map_err(|error| DeviceError::io(files.folder(), error))
}

fn read_all(files: &dyn StoreFiles, name: &str) -> io::Result<Vec<u8>> {
    let file = files.open(name, How::Read)?;
    let mut bytes = vec![0; file.length()?.min(1 << 16) as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn locked(files: &dyn StoreFiles, make: bool) -> Result<Box<dyn Debug + Send + Sync>> {
    let lock = files.lock(LOCK, make);
    let lock = lock.map_err(|error| DeviceError::io(&files.folder().join(LOCK), error))?;
    lock.ok_or_else(|| {
        DeviceError::Bad(format!(
            "{}: another server or check uses it; end that first, or name another folder",
            files.folder().display()
        ))
    })
}
