//! The contents of files, by pages that files share until one is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock, OnceLock};

use sardonyx_crash_test::recovery::damage::damage;

pub const PAGE: usize = 4096;
/// Disks promise to write this many bytes whole or not at all.
pub const SECTOR: u64 = 512;

#[derive(Debug)]
struct Page {
    bytes: [u8; PAGE],
    hash: OnceLock<blake3::Hash>,
}

static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Page::new([0; PAGE]));

impl Page {
    fn new(bytes: [u8; PAGE]) -> Arc<Page> {
        Arc::new(Page {
            bytes,
            hash: OnceLock::new(),
        })
    }

    fn hash(&self) -> blake3::Hash {
        *self.hash.get_or_init(|| blake3::hash(&self.bytes))
    }
}

/// A file's bytes and its size. Pages beyond the size are kept: what was written there shows once the size has grown.
#[derive(Clone, Debug, Default)]
pub struct FileContent {
    pages: Vec<Arc<Page>>,
    size: u64,
}

impl FileContent {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The first `size` bytes of a file; `go_on` is asked now and then.
    ///
    /// # Errors
    /// It cannot be read, or is not to be read to its end.
    pub fn read(file: &File, size: u64, go_on: &dyn Fn() -> bool) -> io::Result<FileContent> {
        let mut content = FileContent::default();
        let mut bytes = vec![0; 1 << 20];
        let mut at = 0;
        while at < size {
            check(go_on)?;
            let wanted = (size - at).min(bytes.len() as u64) as usize;
            let got = file.read_at(&mut bytes[..wanted], at)?;
            if got == 0 {
                break;
            }
            content.write(at, &bytes[..got]);
            at += got as u64;
        }
        content.size = size;
        Ok(content)
    }

    /// Writes bytes, and leaves the size as it is.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset as usize + done;
            let (page, within) = (at / PAGE, at % PAGE);
            let length = (PAGE - within).min(bytes.len() - done);
            if self.pages.len() <= page {
                self.pages.resize_with(page + 1, || ZEROS.clone());
            }
            let old = &self.pages[page].bytes;
            let part = &bytes[done..done + length];
            if old[within..within + length] != *part {
                let mut new = *old;
                new[within..within + length].copy_from_slice(part);
                self.pages[page] = Page::new(new);
            }
            done += length;
        }
    }

    /// Sets a smaller size, and keeps what its last page had: it is there again once the file grows.
    pub fn cut(&mut self, size: u64) {
        self.pages.truncate((size as usize).div_ceil(PAGE));
        self.size = size;
    }

    /// Sets the size; bytes that a smaller size cuts off are zeros from then on.
    pub fn resize(&mut self, size: u64) {
        if size < self.size {
            self.cut(size);
            let (page, within) = (size as usize / PAGE, size as usize % PAGE);
            if let Some(last) = self.pages.get(page) {
                let mut bytes = last.bytes;
                bytes[within..].fill(0);
                self.pages[page] = Page::new(bytes);
            }
        }
        self.size = size;
    }

    /// The pages below the size, each cut off there.
    fn parts(&self) -> impl Iterator<Item = (u64, &Arc<Page>, usize)> {
        let size = self.size as usize;
        self.pages
            .iter()
            .enumerate()
            .map_while(move |(number, page)| {
                let at = number * PAGE;
                (at < size).then(|| (at as u64, page, (size - at).min(PAGE)))
            })
    }

    /// Hashes the content. Pages of zeros count as those that were never written.
    pub fn hash_into(&self, hasher: &mut blake3::Hasher) {
        hasher.update(&self.size.to_le_bytes());
        for (at, page, length) in self.parts() {
            let bytes = &page.bytes[..length];
            let empty = match length {
                PAGE => page.hash() == ZEROS.hash(),
                _ => bytes.iter().all(|&byte| byte == 0),
            };
            if empty {
                continue;
            }
            hasher.update(&at.to_le_bytes());
            match length {
                PAGE => hasher.update(page.hash().as_bytes()),
                _ => hasher.update(bytes),
            };
        }
    }

    /// Writes it into an empty file; pages of zeros stay holes. `go_on` is asked now and then.
    ///
    /// # Errors
    /// No room, or it is not to be written to its end.
    pub fn put(&self, file: &File, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        file.set_len(self.size)?;
        for (at, page, length) in self.parts() {
            if at.is_multiple_of(1 << 20) {
                check(go_on)?;
            }
            if !Arc::ptr_eq(page, &ZEROS) {
                file.write_all_at(&page.bytes[..length], at)?;
            }
        }
        Ok(())
    }

    /// Damages all bytes below the size, page by page; `place` tells the file from others.
    pub fn damage(&mut self, form: u32, place: u64) {
        let size = self.size as usize;
        self.pages
            .resize_with(size.div_ceil(PAGE), || ZEROS.clone());
        for (number, page) in self.pages.iter_mut().enumerate() {
            let mut bytes = page.bytes;
            let at = number * PAGE;
            let length = (size - at).min(PAGE);
            damage(form, place + at as u64, &mut bytes[..length]);
            *page = Page::new(bytes);
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size as usize];
        for (at, page, length) in self.parts() {
            bytes[at as usize..][..length].copy_from_slice(&page.bytes[..length]);
        }
        bytes
    }

    /// The sectors in which a file differs now, as (offset, bytes) of neighbours together.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn differences(&self, file: &File) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let size = file.metadata()?.len().min(self.size);
        let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut bytes = [0; PAGE];
        for at in (0..size).step_by(PAGE) {
            let length = (size - at).min(PAGE as u64) as usize;
            file.read_exact_at(&mut bytes[..length], at)?;
            let page = self.pages.get(at as usize / PAGE).unwrap_or(&ZEROS);
            if page.bytes[..length] == bytes[..length] {
                continue;
            }
            let sectors = bytes[..length].chunks(SECTOR as usize);
            for (number, (new, old)) in sectors.zip(page.bytes.chunks(SECTOR as usize)).enumerate()
            {
                if *new == old[..new.len()] {
                    continue;
                }
                let at = at + number as u64 * SECTOR;
                match found.last_mut() {
                    Some((from, run)) if *from + run.len() as u64 == at => {
                        run.extend_from_slice(new);
                    }
                    _ => found.push((at, new.to_vec())),
                }
            }
        }
        Ok(found)
    }
}

/// An error if what takes long is not to go on.
pub fn check(go_on: &dyn Fn() -> bool) -> io::Result<()> {
    match go_on() {
        true => Ok(()),
        // `Interrupted` would have the standard library try again.
        false => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &FileContent) -> Vec<u8> {
        let file = tempfile::tempfile().unwrap();
        content.put(&file, &|| true).unwrap();
        let mut bytes = vec![0; content.size() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_was_cut_off_is_zeros_when_the_file_grows_again() {
        let mut content = FileContent::default();
        content.write(0, b"abcdef");
        assert_eq!(text(&content), b"", "its size has not grown yet");
        content.resize(6);
        content.resize(2);
        content.resize(5);
        assert_eq!(text(&content), b"ab\0\0\0");
    }

    /// Page by page it is the same damage as all at once.
    #[test]
    fn damage_is_that_of_the_whole_file() {
        let bytes: Vec<u8> = (0..9001).map(|at| at as u8).collect();
        for form in [0, 1, 2, 3] {
            let mut content = FileContent::default();
            content.write(0, &bytes);
            content.resize(9001);
            content.damage(form, 7 << 40);
            let mut whole = bytes.clone();
            damage(form, 7 << 40, &mut whole);
            assert!(text(&content) == whole, "{form}");
        }
    }

    #[test]
    fn a_file_that_is_not_to_be_read_to_its_end_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 << 20).unwrap();
        let asked = std::cell::Cell::new(0);
        let twice = || asked.replace(asked.get() + 1) < 2;
        assert!(FileContent::read(&file, 3 << 20, &twice).is_err());
        assert_eq!(asked.get(), 3);
        let content = FileContent::read(&file, 3 << 20, &|| true).unwrap();
        assert!(content.put(&file, &|| false).is_err());
    }

    #[test]
    fn differences_are_whole_sectors() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(9000).unwrap();
        let content = FileContent::read(&file, 9000, &|| true).unwrap();
        assert!(content.differences(&file).unwrap().is_empty());
        file.write_all_at(b"x", 600).unwrap();
        file.write_all_at(b"y", 1024).unwrap();
        file.write_all_at(b"z", 8999).unwrap();
        let found = content.differences(&file).unwrap();
        let places: Vec<_> = found.iter().map(|(at, run)| (*at, run.len())).collect();
        assert_eq!(places, [(512, 1024), (8704, 296)]);
    }

    #[test]
    fn equal_contents_have_equal_hashes_however_they_were_written() {
        let hash = |content: &FileContent| {
            let mut hasher = blake3::Hasher::new();
            content.hash_into(&mut hasher);
            hasher.finalize()
        };
        let (mut one, mut other) = (FileContent::default(), FileContent::default());
        one.write(5000, b"b");
        one.write(0, b"a");
        one.resize(6000);
        other.resize(6000);
        other.write(0, b"a");
        assert_ne!(hash(&one), hash(&other));
        other.write(5000, b"b");
        other.write(6500, b"beyond");
        let (mut hole, mut zeros) = (FileContent::default(), FileContent::default());
        hole.resize(8192);
        zeros.resize(8192);
        zeros.write(0, &[0; 8192]);
        assert_eq!(hash(&hole), hash(&zeros));
        assert_eq!(hash(&one), hash(&other));
    }
}
