//! The free stretches of the file of chunks.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    pub at: u64,
    pub bytes: u32,
}

/// The free stretches by their beginnings, with neighbours joined.
#[derive(Debug)]
pub struct Extents {
    free: BTreeMap<u64, u64>,
    /// A free stretch that is long enough is looked for from here on, around the file.
    from: u64,
    /// Freed since the last commit; a table on the drive may still name them.
    freed: Vec<FileExtent>,
}

impl Extents {
    pub fn new(bytes: u64) -> Extents {
        Extents {
            free: BTreeMap::from([(0, bytes)]),
            from: 0,
            freed: Vec::new(),
        }
    }

    pub fn take(&mut self, mut used: Vec<FileExtent>) {
        let end = self.free.pop_first().map_or(0, |(at, bytes)| at + bytes);
        used.sort_by_key(|extent| extent.at);
        let mut at = 0;
        for extent in used {
            if extent.at > at {
                self.free.insert(at, extent.at - at);
            }
            at = at.max(extent.at + u64::from(extent.bytes));
        }
        if end > at {
            self.free.insert(at, end - at);
        }
    }

    pub fn allocate(&mut self, bytes: u32) -> Option<FileExtent> {
        let wanted = u64::from(bytes);
        let fits = |&(_, &length): &(&u64, &u64)| length >= wanted;
        let ahead = self.free.range(self.from..).find(fits);
        let found = ahead.or_else(|| self.free.range(..self.from).find(fits));
        let (&at, &length) = found?;
        self.free.remove(&at);
        if length > wanted {
            self.free.insert(at + wanted, length - wanted);
        }
        self.from = at + wanted;
        Some(FileExtent { at, bytes })
    }

    pub fn free(&mut self, extent: FileExtent) {
        self.freed.push(extent);
    }

    /// Makes room that was freed before the commit usable.
    pub fn committed(&mut self) {
        for extent in std::mem::take(&mut self.freed) {
            self.give_back(extent);
        }
    }

    /// Frees at once a stretch that no table has named.
    pub fn give_back(&mut self, extent: FileExtent) {
        let (mut at, mut end) = (extent.at, extent.at + u64::from(extent.bytes));
        if let Some((&before, &length)) = self.free.range(..at).next_back()
            && before + length == at
        {
            self.free.remove(&before);
            at = before;
        }
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        self.free.insert(at, end - at);
    }
}
