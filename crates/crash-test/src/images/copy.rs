//! A private copy of the pools in memory: it becomes one image after another, and is restored after each recovery.
//!
//! From image to image only the lines that differ are written. The files lie in a folder that holds nothing else.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memmap2::{MmapMut, MmapOptions};
use rustc_hash::FxHashSet;
use sardonyx_trace::line::Line;

use crate::images::{Floors, Image, WHOLE, bytes};
use crate::recording::persistence::Course;
use crate::recording::pools;
use crate::recording::{LINE, Recording};
use crate::recovery::RecoveryFiles;
use crate::recovery::bench::ImageCopy;
use crate::recovery::damage::damage;
use crate::recovery::touched::{self, PAGE, TouchedPages};
use crate::{CrashTestError, Result};

/// This many bytes of the pool are compared at a time.
pub(crate) const BLOCK: usize = 64 << 10;
/// A pool with this many blocks of data is large: only what a recovery touched is compared.
pub(crate) const LARGE: usize = 512;
/// Comparisons of whole files may take one part in this many of a search's time.
const CHECKED: u32 = 20;

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
    fn restore(&mut self, image: &Image, seen: &TouchedPages) -> Result<bool> {
        clear(&self.folder, &self.paths).map_err(CrashTestError::io(self.folder.display()))?;
        for (number, file) in self.files.iter_mut().enumerate() {
            file.restore(seen, number)?;
        }
        for &over in &image.over {
            let floor = self.floors.floor[over.slot as usize];
            self.put_version(over.slot, floor);
        }
        Ok(self.files.iter().any(|file| file.changed))
    }

    fn given<'g>(&'g self, acks: &'g Path) -> RecoveryFiles<'g> {
        RecoveryFiles {
            pools: &self.paths,
            folder: &self.folder,
            acks,
        }
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
        self.restore(image, &TouchedPages::default())?;
        Ok(())
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

/// A copy of one pool.
///
/// The file has a mirror of what it should hold: a private map of the file before the recording, of which only changed
/// pages cost memory. A difference from the mirror after a recovery is what the recovery wrote.
#[derive(Debug)]
struct FileCopy {
    path: PathBuf,
    length: usize,
    file: File,
    map: MmapMut,
    mirror: MmapMut,
    /// Blocks that may hold anything but zeros.
    live: FxHashSet<usize>,
    changed: bool,
    /// The ground of a large pool. Blocks without lines that were put are as they are there.
    ground: Option<File>,
    put: FxHashSet<usize>,
    /// The beginning of the search, and the time that comparisons of everything have taken since.
    checked: (Instant, Duration),
}

impl Drop for FileCopy {
    fn drop(&mut self) {
        // The memory of a large copy is freed now, and does not wait for the end of the search.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn map(file: &File, length: usize) -> std::io::Result<MmapMut> {
    // SAFETY: the file is our own, in a folder of our own; if a recovery shortens it, `FileCopy::restore` maps it again
    // before anybody reads it.
    unsafe { MmapOptions::new().len(length).map_mut(file) }
}

impl FileCopy {
    /// Makes a copy at `path`. `ground` is the file before the recording, of full size; the lines `stored` will be
    /// written.
    fn new(
        path: PathBuf,
        ground: &File,
        length: usize,
        stored: impl Iterator<Item = u32>,
    ) -> Result<FileCopy> {
        let failed = || CrashTestError::io(path.display());
        // SAFETY: the ground is a file of ours that nobody shortens.
        let mirror = unsafe { MmapOptions::new().len(length).map_copy(ground) };
        let mirror = mirror.map_err(failed())?;
        let file = FileCopy::create(&path, length).map_err(failed())?;
        let mut copy = FileCopy {
            map: map(&file, length).map_err(failed())?,
            length,
            file,
            mirror,
            live: FxHashSet::default(),
            changed: false,
            ground: None,
            put: FxHashSet::default(),
            checked: (Instant::now(), Duration::ZERO),
            path: path.clone(),
        };
        let extents = extents(ground, length);
        copy.live.extend(extents.into_iter().flatten());
        let stored = stored.map(|line| line as usize * LINE / BLOCK);
        let data: FxHashSet<usize> = stored.chain(copy.live.iter().copied()).collect();
        if data.len() >= LARGE && touched::can_follow(&copy.file) {
            copy.ground = Some(ground.try_clone().map_err(failed())?);
        }
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

    fn rewrite(&mut self) -> std::io::Result<()> {
        let mut bytes = vec![0; if self.ground.is_some() { BLOCK } else { 0 }];
        for &block in &self.live {
            let at = block * BLOCK;
            let end = (at + BLOCK).min(self.length);
            match &self.ground {
                // The ground is read without its map, so that its pages do not count as our memory too.
                Some(ground) if !self.put.contains(&block) => {
                    ground.read_exact_at(&mut bytes[..end - at], at as u64)?;
                    self.file.write_all_at(&bytes[..end - at], at as u64)?;
                }
                _ => self.map[at..end].copy_from_slice(&self.mirror[at..end]),
            }
        }
        Ok(())
    }

    /// The file's metadata, if the pages that a recovery touches are to be followed.
    fn followed(&self) -> Option<Metadata> {
        self.ground.as_ref().and_then(|_| self.file.metadata().ok())
    }

    fn put(&mut self, line: u32, data: &Line) {
        let at = line as usize * LINE;
        let end = (at + LINE).min(self.length);
        self.mirror[at..end].copy_from_slice(&data[..end - at]);
        self.map[at..end].copy_from_slice(&data[..end - at]);
        self.live.insert(at / BLOCK);
        if self.ground.is_some() {
            self.put.insert(at / BLOCK);
        }
    }

    /// Undoes what a recovery wrote to the pages that it touched.
    ///
    /// # Errors
    /// There is no room, or the recovery wrote to pages that it was not seen to touch.
    fn restore(&mut self, seen: &TouchedPages, number: usize) -> Result<()> {
        self.restore_file(seen, number)
            .map_err(CrashTestError::io(self.path.display()))
    }

    /// In turn: a file that the recovery replaced or gave another length is made again; of a large one only the touched
    /// pages are compared; of any other, what was zeros becomes a hole again, and each block that holds data is compared
    /// with what it should be.
    fn restore_file(&mut self, seen: &TouchedPages, number: usize) -> std::io::Result<()> {
        self.changed = false;
        let ours = self.file.metadata()?;
        let there = std::fs::symlink_metadata(&self.path);
        let replaced =
            !there.is_ok_and(|there| there.ino() == ours.ino() && there.dev() == ours.dev());
        if replaced || ours.len() != self.length as u64 {
            // The recovery has renamed, removed, shortened or lengthened the file, so it is made again.
            if replaced {
                let _ = std::fs::remove_file(&self.path);
            }
            let file = FileCopy::create(&self.path, self.length)?;
            self.map = map(&file, self.length)?;
            self.file = file;
            self.changed = true;
            return self.rewrite();
        }
        // Pages are followed only for a large file.
        if !seen.whole && self.ground.is_some() {
            let pages = seen.pages.iter().filter(|(file, _)| *file == number);
            self.restore_pages(pages.map(|(_, page)| *page))?;
            return self.check();
        }
        for range in extents(&self.file, self.length) {
            let mut block = range.start;
            while block < range.end {
                let dead = (block..range.end)
                    .take_while(|block| !self.live.contains(block))
                    .count();
                if dead > 0 {
                    // The recovery has read or written zeros here; a hole gives their memory back.
                    if self.punch(block, dead).is_err() {
                        self.live.extend(block..block + dead); // this file system has no holes
                    }
                }
                block += dead.max(1);
            }
        }
        let mut bytes = vec![0; if self.ground.is_some() { 2 * BLOCK } else { 0 }];
        for &block in &self.live {
            let at = block * BLOCK;
            let end = (at + BLOCK).min(self.length);
            if let Some(ground) = &self.ground
                && !self.put.contains(&block)
            {
                let (there, should) = bytes.split_at_mut(BLOCK);
                self.file.read_exact_at(&mut there[..end - at], at as u64)?;
                ground.read_exact_at(&mut should[..end - at], at as u64)?;
                if there[..end - at] != should[..end - at] {
                    self.file.write_all_at(&should[..end - at], at as u64)?;
                    self.changed = true;
                }
                continue;
            }
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

    fn restore_pages(&mut self, pages: impl Iterator<Item = usize>) -> std::io::Result<()> {
        let mut dead = usize::MAX;
        for page in pages {
            let (at, block) = (page * PAGE, page * PAGE / BLOCK);
            let end = (at + PAGE).min(self.length);
            if at >= self.length || block == dead {
                continue;
            }
            if !self.live.contains(&block) {
                dead = block;
                if self.punch(block, 1).is_err() {
                    self.live.insert(block);
                }
            } else if self.map[at..end] != self.mirror[at..end] {
                self.map[at..end].copy_from_slice(&self.mirror[at..end]);
                self.changed = true;
            }
        }
        Ok(())
    }

    /// Compares the whole file now and then, as far as that takes little of the time: nothing may differ any more.
    fn check(&mut self) -> std::io::Result<()> {
        let (since, spent) = self.checked;
        if since.elapsed() < spent * CHECKED {
            return Ok(());
        }
        let (begun, changed) = (Instant::now(), self.changed);
        self.restore_file(&TouchedPages::WHOLE, 0)?;
        // A difference found here is an error below, and not a change that the recovery was seen to make.
        let strayed = std::mem::replace(&mut self.changed, changed);
        self.checked.1 += begun.elapsed();
        match strayed {
            false => Ok(()),
            true => Err(std::io::Error::other(
                "the recovery wrote to pages that it was not seen to touch, so that images tried since may have held more than they should: \
                 have it end all that it starts",
            )),
        }
    }

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

    fn save(&self, path: &Path) -> Result<()> {
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
        write().map_err(CrashTestError::io(path.display()))
    }
}

/// The ranges of blocks of a file that are not holes.
fn extents(file: &File, length: usize) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < length {
        // SAFETY: a call without memory.
        let data = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, libc::SEEK_DATA) };
        if data < 0 {
            break;
        }
        // SAFETY: a call without memory.
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

/// Writes what a file holds to another, except for its holes.
pub fn fill(from: &File, to: &File) -> std::io::Result<()> {
    let length = from.metadata()?.len() as usize;
    for range in extents(from, length) {
        let mut block = [0; BLOCK];
        for at in range {
            let end = ((at + 1) * BLOCK).min(length);
            let bytes = &mut block[..end - at * BLOCK];
            from.read_exact_at(bytes, (at * BLOCK) as u64)?;
            to.write_all_at(bytes, (at * BLOCK) as u64)?;
        }
    }
    Ok(())
}
