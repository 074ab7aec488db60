//! A private copy of the pools in memory: it becomes one image after another, and is restored after each recovery.
//!
//! From image to image only the lines that differ are written. Each file is a [`FileCopy`], in a folder that holds
//! nothing else.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::images::file_copy::{BLOCK, FileCopy, LARGE, fill};
use crate::images::{Floors, Image, WHOLE, bytes};
use crate::recording::persistence::Course;
use crate::recording::pools;
use crate::recording::{LINE, Recording};
use crate::recovery::bench::ImageCopy;
use crate::recovery::damage::damage;
use crate::recovery::touched::TouchedPages;
use crate::{CrashTestError, Result};

/// With pools of more data than this there is one copy at a time.
const MUCH: u64 = 256 << 20;

#[derive(Debug)]
pub struct Copy<'a> {
    recording: &'a Recording,
    folder: PathBuf,
    paths: Vec<PathBuf>,
    files: Vec<FileCopy>,
    floors: Floors<'a>,
}

impl<'a> Copy<'a> {
    /// Makes copies in a new folder in `folder`, under the pools' own names; `grounds` are the pools before the
    /// recording, of full size.
    pub fn new(
        recording: &'a Recording,
        course: &'a Course,
        grounds: &[File],
        folder: &Path,
    ) -> Result<Copy<'a>> {
        let folder = folder.join("pool");
        std::fs::create_dir(&folder).map_err(CrashTestError::io(folder.display()))?;
        let mut copy = Copy {
            recording,
            paths: paths(recording, &folder)?,
            folder,
            files: Vec::new(),
            floors: Floors::without_hashes(recording, course),
        };
        for (number, (path, ground)) in copy.paths.iter().zip(grounds).enumerate() {
            let length = recording.pools[number].bytes as usize;
            let own = (recording.lines.iter()).filter(|slot| usize::from(slot.file) == number);
            let lines = own.map(|slot| slot.line);
            copy.files
                .push(FileCopy::new(path.clone(), ground, length, lines)?);
        }
        Ok(copy)
    }

    fn put_version(&mut self, slot: u32, version: u32) {
        let slot = &self.recording.lines[slot as usize];
        let file = &mut self.files[usize::from(slot.file)];
        for (line, data) in slot.versions.lines(version) {
            file.put(line, &data);
        }
    }

    pub fn changed(&self) -> bool {
        self.files.iter().any(FileCopy::changed)
    }

    fn write(&self, path: &Path) -> Result<()> {
        if let [file] = &self.files[..] {
            return file.save(path);
        }
        std::fs::create_dir_all(path).map_err(CrashTestError::io(path.display()))?;
        for (file, path) in self.files.iter().zip(paths(self.recording, path)?) {
            file.save(&path)?;
        }
        Ok(())
    }
}

impl ImageCopy for Copy<'_> {
    type Image = Image;

    fn printed(&self, acked: usize) -> &[u8] {
        self.recording.printed(acked)
    }

    fn make(&mut self, image: &Image) -> Result<()> {
        let mut changed = Vec::new();
        self.floors.go(image.cut, |slot, _| changed.push(slot));
        // A line that rose more than once is put only once, at its last floor.
        changed.sort_unstable();
        changed.dedup();
        for slot in changed {
            self.put_version(slot, self.floors.floor[slot as usize]);
        }
        for &over in &image.over {
            if over.words == WHOLE {
                self.put_version(over.slot, over.version);
                continue;
            }
            let floor = self.floors.floor[over.slot as usize];
            let data = bytes(self.recording, floor, over);
            let slot = &self.recording.lines[over.slot as usize];
            self.files[usize::from(slot.file)].put(slot.line, &data);
        }
        Ok(())
    }

    /// Only pages that the recovery touched are compared, and then the image's lines are taken back to their floors.
    fn restore(&mut self, image: &Image, seen: &TouchedPages) -> Result<()> {
        clear(&self.folder, &self.paths).map_err(CrashTestError::io(self.folder.display()))?;
        for (number, file) in self.files.iter_mut().enumerate() {
            file.restore(seen, number)?;
        }
        for &over in &image.over {
            let floor = self.floors.floor[over.slot as usize];
            self.put_version(over.slot, floor);
        }
        Ok(())
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn pools(&self) -> &[PathBuf] {
        &self.paths
    }

    fn followed(&self) -> Vec<Option<Metadata>> {
        self.files.iter().map(FileCopy::followed).collect()
    }

    fn originals(&self) -> Vec<&Path> {
        let pools = self.recording.pools.iter();
        pools.map(|pool| pool.path.as_path()).collect()
    }

    fn files(&self, _: &Image) -> Vec<PathBuf> {
        self.paths.clone()
    }

    fn damage(&mut self, image: &Image, form: u32, folder: &Path) -> Result<Vec<PathBuf>> {
        std::fs::create_dir(folder).map_err(CrashTestError::io(folder.display()))?;
        let pools = paths(self.recording, folder)?;
        self.save(image, if pools.len() == 1 { &pools[0] } else { folder })?;
        damage_stored(self.recording, &pools, form)?;
        Ok(pools)
    }

    fn save(&mut self, image: &Image, place: &Path) -> Result<()> {
        self.make(image)?;
        self.write(place)?;
        self.restore(image, &TouchedPages::default())
    }
}

/// Damages what the program stored, in copies of its pools.
fn damage_stored(recording: &Recording, pools: &[PathBuf], form: u32) -> Result<()> {
    let open = |path: &PathBuf| {
        (OpenOptions::new().write(true).open(path)).map_err(CrashTestError::io(path.display()))
    };
    let files: Vec<File> = pools.iter().map(open).collect::<Result<_, _>>()?;
    for unit in &recording.lines {
        let file = usize::from(unit.file);
        for (line, mut data) in unit.versions.lines(unit.versions.last()) {
            let at = u64::from(line) * LINE as u64;
            damage(form, at, &mut data);
            let length = data
                .len()
                .min(recording.pools[file].bytes.saturating_sub(at) as usize);
            let written = files[file].write_all_at(&data[..length], at);
            written.map_err(CrashTestError::io(pools[file].display()))?;
        }
    }
    Ok(())
}

/// The path of each pool in a folder of copies; makes the folders between.
pub fn paths(recording: &Recording, folder: &Path) -> Result<Vec<PathBuf>> {
    let places = pools::places(&recording.pools);
    let paths: Vec<PathBuf> = places.iter().map(|place| folder.join(place)).collect();
    for path in &paths {
        let parent = path.parent().expect("it is in the folder");
        std::fs::create_dir_all(parent).map_err(CrashTestError::io(parent.display()))?;
    }
    Ok(paths)
}

/// Removes other files that a recovery left in the folder, and makes folders again that it removed.
fn clear(folder: &Path, paths: &[PathBuf]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_folder = entry.file_type()?.is_dir();
        let holds = |pool: &PathBuf| *pool != path && pool.starts_with(&path);
        match is_folder {
            true if paths.iter().any(holds) => clear(&path, paths)?,
            true => std::fs::remove_dir_all(&path)?,
            false if paths.contains(&path) => {}
            false => std::fs::remove_file(&path)?,
        }
    }
    for path in paths {
        let parent = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(parent)?;
    }
    Ok(())
}

/// Whether one copy fills so much memory that there is only one at a time.
pub fn fill_memory(grounds: &[File], recording: &Recording) -> bool {
    let blocks = |ground: &File| ground.metadata().map_or(0, |m| m.blocks() * 512);
    let data: u64 = grounds.iter().map(blocks).sum();
    let stored = (recording.lines.len() * LINE) as u64;
    data.max(stored) >= MUCH
}

/// A folder in memory that is removed when it is dropped.
pub fn scratch() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("sardonyx-crash-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&place)
        .map_err(CrashTestError::io(place.display()))
}

/// Opens the pools before the recording, of full size: the kept files themselves, or files of holes.
pub fn grounds(recording: &Recording, folder: &Path) -> Result<Vec<File>> {
    let mut grounds = Vec::new();
    for (number, pool) in recording.pools.iter().enumerate() {
        let kept = pool.ground_file()?;
        // A large file is not copied: its hash was checked a moment ago, and it lies with the recording.
        if let Some(file) = &kept {
            let length = file
                .metadata()
                .map_err(CrashTestError::io("the ground"))?
                .len();
            if length == pool.bytes && length as usize >= LARGE * BLOCK {
                grounds.extend(kept);
                continue;
            }
        }
        let path = folder.join(format!("ground-{number}"));
        let failed = || CrashTestError::io(path.display());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(failed())?;
        if let Some(kept) = kept {
            fill(&kept, &file).map_err(failed())?;
        }
        file.set_len(pool.bytes).map_err(failed())?;
        grounds.push(file);
    }
    Ok(grounds)
}
