//! A file with two copies of every page, each with a sum of its own, so that a bad sector or a flipped bit costs
//! nothing: the other copy serves.
//!
//! A page is 4,096 bytes: the kept bytes, the page's number, and BLAKE3 over both. 256 pages are followed by their
//! copies, a mebibyte away, and so on. Pages are written as a whole and never again, except after an attempt that
//! failed. Left out: what the pages hold (`tables.rs`).

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::files::Bytes;

const PAGE: usize = 4096;
const SUM: usize = 32;
pub(crate) const KEPT: usize = PAGE - SUM - 8;
const APART: u64 = 256;

#[derive(Debug)]
pub(crate) struct Twice {
    file: Arc<dyn Bytes>,
    lost: AtomicU64,
}

pub(crate) fn whole_pages(bytes: u64) -> u64 {
    bytes.div_ceil(KEPT as u64) * KEPT as u64
}

fn places(page: u64) -> [u64; 2] {
    let first = page / APART * 2 * APART + page % APART;
    [first, first + APART].map(|place| place * PAGE as u64)
}

impl Twice {
    pub fn new(file: Arc<dyn Bytes>) -> Twice {
        Twice {
            file,
            lost: AtomicU64::new(0),
        }
    }

    /// The number of pages of which one copy was read and found lost, while the other serves.
    pub fn lost_copies(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The number of kept bytes for which the file is long enough.
    pub fn length(&self) -> io::Result<u64> {
        let pages = self.file.length()? / PAGE as u64;
        let (before, rest) = (pages / (2 * APART) * APART, pages % (2 * APART));
        let rest = if rest > APART { rest - APART } else { rest };
        Ok((before + rest) * KEPT as u64)
    }

    /// Cuts the file after this many kept bytes, which are whole pages.
    pub fn cut(&self, bytes: u64) -> io::Result<()> {
        let pages = bytes / KEPT as u64;
        let rest = match pages % APART {
            0 => 0,
            rest => APART + rest,
        };
        let length = (pages / APART * 2 * APART + rest) * PAGE as u64;
        self.file.set_length(length)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// The contents of a page; `None` if no copy is whole. Both copies are read.
    ///
    /// # Errors
    /// No copy is whole, and one cannot be read.
    pub fn page(&self, page: u64) -> io::Result<Option<[u8; KEPT]>> {
        let (mut found, mut lost, mut failed) = (None, 0, None);
        for place in places(page) {
            match self.copy(page, place) {
                Ok(Some(kept)) => found = found.or(Some(kept)),
                Ok(None) => lost += 1,
                Err(error) => (lost, failed) = (lost + 1, Some(error)),
            }
        }
        match (found, failed) {
            (Some(kept), _) => {
                self.lost.fetch_add(lost, Ordering::Relaxed);
                Ok(Some(kept))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    fn copy(&self, page: u64, place: u64) -> io::Result<Option<[u8; KEPT]>> {
        let mut bytes = [0; PAGE];
        match self.file.read_at(&mut bytes, place) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let (summed, sum) = bytes.split_at(PAGE - SUM);
        let (kept, number) = summed.split_at(KEPT);
        let whole = number == page.to_le_bytes() && blake3::hash(summed).as_bytes() == sum;
        Ok(whole.then(|| kept.try_into().expect("a page's bytes")))
    }

    /// Reads this many bytes from the beginning of a page; `None` if one of the pages has no whole copy.
    pub fn read(&self, first: u64, bytes: usize) -> io::Result<Option<Vec<u8>>> {
        let mut read = Vec::new();
        for page in first.. {
            if read.len() >= bytes {
                break;
            }
            let Some(kept) = self.page(page)? else {
                return Ok(None);
            };
            read.extend(kept);
        }
        read.truncate(bytes);
        Ok(Some(read))
    }

    /// Writes bytes from the beginning of a page; the rest of the last page is zeros.
    pub fn write(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        let mut page = first;
        let mut rest = bytes;
        while !rest.is_empty() {
            let pages = APART - page % APART;
            let (now, later) = rest.split_at(rest.len().min(pages as usize * KEPT));
            let mut run = Vec::with_capacity(now.len().div_ceil(KEPT) * PAGE);
            for (number, kept) in (page..).zip(now.chunks(KEPT)) {
                let from = run.len();
                run.extend(kept);
                run.resize(from + KEPT, 0);
                run.extend(number.to_le_bytes());
                let sum = blake3::hash(&run[from..]);
                run.extend(sum.as_bytes());
            }
            for place in places(page) {
                self.file.write_at(&run, place)?;
            }
            page += pages;
            rest = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Disk, How, StoreFiles};

    #[test]
    fn one_copy_of_each_page_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let file = Disk::new(folder.path()).open("x", How::New).unwrap();
        let twice = Twice::new(file.clone());
        let bytes: Vec<u8> = (0..600 * KEPT - 5).map(|at| (at / 7) as u8).collect();
        twice.write(0, &bytes[..300 * KEPT]).unwrap();
        twice.write(300, &bytes[300 * KEPT..]).unwrap();
        assert_eq!(twice.length().unwrap(), 600 * KEPT as u64);
        assert_eq!(file.length().unwrap(), (2 * 512 + 256 + 88) * PAGE as u64);
        for page in [0, 255, 256, 511, 599] {
            for place in places(page) {
                let mut whole = [0; 512];
                file.read_at(&mut whole, place + 1024).unwrap();
                file.write_at(&[0xFF; 512], place + 1024).unwrap();
                let twice = Twice::new(file.clone());
                assert_eq!(twice.read(0, bytes.len()).unwrap().unwrap(), bytes);
                assert_eq!(twice.lost_copies(), 1);
                file.write_at(&whole, place + 1024).unwrap();
            }
            for place in places(page) {
                file.write_at(&[1], place).unwrap();
            }
            assert!(twice.page(page).unwrap().is_none());
            assert!(twice.read(page, 10).unwrap().is_none());
            let from = page as usize * KEPT;
            let kept = &bytes[from..bytes.len().min(from + KEPT)];
            twice.write(page, kept).unwrap();
        }
        for pages in [600_u64, 512, 511, 300, 256, 255, 1, 0] {
            twice.cut(pages * KEPT as u64).unwrap();
            assert_eq!(twice.length().unwrap(), pages * KEPT as u64);
            let kept = bytes.len().min(pages as usize * KEPT);
            assert_eq!(twice.read(0, kept).unwrap().unwrap(), bytes[..kept]);
        }
    }
}
