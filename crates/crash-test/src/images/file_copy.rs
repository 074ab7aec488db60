//! A private copy of one file in memory: lines are written to it, and after each recovery it is restored.
//!
//! The file has a mirror of what it should hold: a private map of the file before the recording, of which only changed
//! pages cost memory. A difference from the mirror after a recovery is what the recovery wrote.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memmap2::{MmapMut, MmapOptions};
use rustc_hash::FxHashSet;
use sardonyx_trace::line::Line;

use crate::recording::LINE;
use crate::recovery::touched::{self, PAGE, TouchedPages};
use crate::{CrashTestError, Result};

/// This many bytes of the pool are compared at a time.
pub(crate) const BLOCK: usize = 64 << 10;
/// A pool with this many blocks of data is large: only what a recovery touched is compared.
pub(crate) const LARGE: usize = 512;
/// Comparisons of whole files may take one part in this many of a search's time.
const CHECKED: u32 = 20;

#[derive(Debug)]
pub struct FileCopy {
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
    pub fn new(
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
    pub fn followed(&self) -> Option<Metadata> {
        self.ground.as_ref().and_then(|_| self.file.metadata().ok())
    }

    pub fn put(&mut self, line: u32, data: &Line) {
        let at = line as usize * LINE;
        let end = (at + LINE).min(self.length);
        self.mirror[at..end].copy_from_slice(&data[..end - at]);
        self.map[at..end].copy_from_slice(&data[..end - at]);
        self.live.insert(at / BLOCK);
        if self.ground.is_some() {
            self.put.insert(at / BLOCK);
        }
    }

    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Undoes what a recovery wrote to the pages that it touched.
    ///
    /// # Errors
    /// There is no room, or the recovery wrote to pages that it was not seen to touch.
    pub fn restore(&mut self, seen: &TouchedPages, number: usize) -> Result<()> {
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
        self.restore_file(&TouchedPages::whole(), 0)?;
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

    pub fn save(&self, path: &Path) -> Result<()> {
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
