//! A private copy of the pool in memory: made into one image after another, and put right after each recovery.
//!
//! Beside the file there is a mirror of what it should hold, a private map of the ground of which only changed pages cost memory. From
//! image to image only the lines that differ are written; afterwards what differs from the mirror is what the recovery wrote.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use memmap2::{MmapMut, MmapOptions};
use rustc_hash::FxHashSet;
use sardonyx::line::Line;
use tempfile::TempDir;

use crate::PersistError;
use crate::images::{Floors, Image, bytes};
use crate::recording::{LINE, Recording};
use crate::state::Course;

/// Bytes of the pool that are compared at a time.
const BLOCK: usize = 64 << 10;
const PAGE: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct Copy<'a> {
    recording: &'a Recording,
    path: PathBuf,
    length: usize,
    file: File,
    map: MmapMut,
    mirror: MmapMut,
    floors: Floors<'a>,
    /// Blocks that may hold anything but zeros.
    live: FxHashSet<usize>,
    /// The last recovery left the file otherwise than it was.
    changed: bool,
}

fn map(file: &File, length: usize) -> std::io::Result<MmapMut> {
    // SAFETY: the file is our own, in a folder of our own; a recovery that shortens it makes `Copy::restore` map it again before it is
    // looked at.
    unsafe { MmapOptions::new().len(length).map_mut(file) }
}

impl<'a> Copy<'a> {
    /// A copy in `folder`, under the pool's own name; `ground` is the pool before the recording, of full size.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        recording: &'a Recording,
        course: &'a Course,
        ground: &File,
        folder: &Path,
    ) -> Result<Copy<'a>, PersistError> {
        let folder = folder.join("pool");
        std::fs::create_dir(&folder).map_err(PersistError::io(folder.display()))?;
        let path = folder.join(recording.pool.file_name().unwrap_or("pool".as_ref()));
        let failed = || PersistError::io(path.display());
        let length = recording.bytes as usize;
        // SAFETY: the ground is a file of ours that nobody shortens.
        let mirror = unsafe { MmapOptions::new().len(length).map_copy(ground) };
        let mirror = mirror.map_err(failed())?;
        let file = Copy::create(&path, length).map_err(failed())?;
        let mut copy = Copy {
            recording,
            map: map(&file, length).map_err(failed())?,
            length,
            file,
            mirror,
            floors: Floors::new(recording, course),
            live: FxHashSet::default(),
            changed: false,
            path: path.clone(),
        };
        let extents = extents(ground, length);
        copy.live.extend(extents.into_iter().flatten());
        copy.rewrite().map_err(failed())?;
        Ok(copy)
    }

    fn create(path: &Path, length: usize) -> std::io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.set_len(length as u64)?;
        Ok(file)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all that is not zeros.
    fn rewrite(&mut self) -> std::io::Result<()> {
        for &block in &self.live {
            let at = block * BLOCK;
            let end = (at + BLOCK).min(self.length);
            self.map[at..end].copy_from_slice(&self.mirror[at..end]);
        }
        Ok(())
    }

    fn put(&mut self, slot: u32, data: &Line) {
        let at = self.recording.lines[slot as usize].line as usize * LINE;
        let end = (at + LINE).min(self.length);
        self.mirror[at..end].copy_from_slice(&data[..end - at]);
        self.map[at..end].copy_from_slice(&data[..end - at]);
        self.live.insert(at / BLOCK);
    }

    /// Makes the file hold the image.
    pub fn make(&mut self, image: &Image) {
        let mut changed = Vec::new();
        self.floors
            .go(image.cut, |slot, version| changed.push((slot, version)));
        for (slot, version) in changed {
            let data = self.recording.lines[slot as usize].versions[version as usize].data;
            self.put(slot, &data);
        }
        for &over in &image.over {
            let floor = self.floors.floor[over.slot as usize];
            let data = bytes(self.recording, floor, over);
            self.put(over.slot, &data);
        }
    }

    /// Undoes what a recovery wrote, and then the image's own lines beyond the floors.
    ///
    /// # Errors
    /// No room.
    pub fn restore(&mut self, image: &Image) -> Result<(), PersistError> {
        self.restore_file()
            .map_err(PersistError::io(self.path.display()))?;
        for &over in &image.over {
            let floor = self.floors.floor[over.slot as usize];
            let data = self.recording.lines[over.slot as usize].versions[floor as usize].data;
            self.put(over.slot, &data);
        }
        Ok(())
    }

    /// Whether the last recovery left the file otherwise than it was.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Removes what the recovery left beside the pool.
    fn clear(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(self.path.parent().expect("it is in a folder"))? {
            let entry = entry?;
            if entry.path() != self.path {
                match entry.file_type()?.is_dir() {
                    true => std::fs::remove_dir_all(entry.path())?,
                    false => std::fs::remove_file(entry.path())?,
                }
            }
        }
        Ok(())
    }

    fn restore_file(&mut self) -> std::io::Result<()> {
        self.clear()?;
        self.changed = false;
        let ours = self.file.metadata()?;
        let there = std::fs::symlink_metadata(&self.path);
        let replaced =
            !there.is_ok_and(|there| there.ino() == ours.ino() && there.dev() == ours.dev());
        if replaced || ours.len() != self.length as u64 {
            // Renamed, removed, shortened or longer: made anew.
            if replaced {
                let _ = std::fs::remove_file(&self.path);
            }
            let file = Copy::create(&self.path, self.length)?;
            self.map = map(&file, self.length)?;
            self.file = file;
            return self.rewrite();
        }
        for range in extents(&self.file, self.length) {
            let mut block = range.start;
            while block < range.end {
                let dead = (block..range.end)
                    .take_while(|block| !self.live.contains(block))
                    .count();
                if dead > 0 {
                    // The recovery has read here, or written: holes again, and zeros.
                    if self.punch(block, dead).is_err() {
                        self.live.extend(block..block + dead); // this file system has no holes
                    }
                }
                block += dead.max(1);
            }
        }
        for &block in &self.live {
            let at = block * BLOCK;
            let end = (at + BLOCK).min(self.length);
            if self.map[at..end] == self.mirror[at..end] {
                continue;
            }
            for page in (at..end).step_by(PAGE) {
                let end = (page + PAGE).min(end);
                if self.map[page..end] != self.mirror[page..end] {
                    self.map[page..end].copy_from_slice(&self.mirror[page..end]);
                    self.changed = true;
                }
            }
        }
        Ok(())
    }

    /// Makes a hole of some blocks.
    fn punch(&self, block: usize, count: usize) -> std::io::Result<()> {
        let (from, end) = (block * BLOCK, ((block + count) * BLOCK).min(self.length));
        // SAFETY: a call without memory, on our own file.
        let done = unsafe {
            libc::fallocate(
                self.file.as_raw_fd(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                from as libc::off_t,
                (end - from) as libc::off_t,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// Writes what the file holds now to another.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), PersistError> {
        let write = || -> std::io::Result<()> {
            let mut file = File::create(path)?;
            file.set_len(self.length as u64)?;
            for &block in &self.live {
                let at = block * BLOCK;
                let end = (at + BLOCK).min(self.length);
                file.write_all_at(&self.map[at..end], at as u64)?;
            }
            file.flush()
        };
        write().map_err(PersistError::io(path.display()))
    }
}

/// Blocks of a file that are not holes.
fn extents(file: &File, length: usize) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < length {
        // SAFETY: a call without memory.
        let data = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, libc::SEEK_DATA) };
        if data < 0 {
            break;
        }
        // SAFETY: as above.
        let hole = unsafe { libc::lseek(file.as_raw_fd(), data, libc::SEEK_HOLE) };
        let end = if hole < 0 {
            length
        } else {
            (hole as usize).min(length)
        };
        ranges.push(data as usize / BLOCK..end.div_ceil(BLOCK));
        at = end.max(at + 1);
    }
    ranges
}

/// A folder in memory that goes when it is dropped.
///
/// # Errors
/// No room.
pub fn scratch() -> Result<TempDir, PersistError> {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("sardonyx-crash-")
        .tempdir_in(&place)
        .map_err(PersistError::io(place.display()))
}

/// The ground of full size: the file itself, or one of holes.
///
/// # Errors
/// No room.
pub fn ground(recording: &Recording, folder: &Path) -> Result<File, PersistError> {
    let path = folder.join("ground");
    let failed = || PersistError::io(path.display());
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .map_err(failed())?;
    if let Some(mut from) = recording.ground_file()? {
        let length = from.metadata().map_err(failed())?.len() as usize;
        for range in extents(&from, length) {
            let at = (range.start * BLOCK) as u64;
            from.seek(SeekFrom::Start(at)).map_err(failed())?;
            file.seek(SeekFrom::Start(at)).map_err(failed())?;
            let bytes = ((range.end - range.start) * BLOCK) as u64;
            std::io::copy(&mut std::io::Read::take(&mut from, bytes), &mut file)
                .map_err(failed())?;
        }
    }
    file.set_len(recording.bytes).map_err(failed())?;
    Ok(file)
}
