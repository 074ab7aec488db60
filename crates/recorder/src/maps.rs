//! Shared mappings of files. Their lines are named by file and offset, since a program may map a file twice
//! (libpmemobj writes a pool's header through a second mapping) and since the file outlives the addresses.

/// Lines of files begin here, above every address of a user program; a trace's lines end at 2^58.
pub const FILES: u64 = 1 << 57;
/// The logarithm of the number of lines set apart for one file (16 TiB).
const FILE_LINES_LOG2: u32 = 38;
pub const FILE_LINES: u64 = 1 << FILE_LINES_LOG2;
/// The number of files for which there is room between [`FILES`] and 2^58, except for the last.
const MOST_FILES: usize = (1 << (57 - FILE_LINES_LOG2)) - 1;
/// A line that stands for the system. With several threads and sites, a system call loads it at its beginning and at
/// its return, which shows the order of the threads' calls.
pub const SYSTEM: u64 = 2 * FILES - 1;

/// The name of the copy of a file that is made before the file is mapped for writing, by its device and inode.
pub fn ground_name((device, inode): (u64, u64)) -> String {
    format!("{device:x}-{inode:x}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMapping {
    start: u64,
    end: u64,
    line: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// The mappings in order of address, without overlaps.
    mappings: Vec<FileMapping>,
    /// The device and inode of each file, in the order of their first mapping.
    files: Vec<(u64, u64)>,
}

impl Maps {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// The first line of a file, and whether the file is new; `None` if there are too many files.
    pub fn file(&mut self, device: u64, inode: u64) -> Option<(u64, bool)> {
        let known = self.files.iter().position(|&f| f == (device, inode));
        let number = known.unwrap_or(self.files.len());
        if number == MOST_FILES {
            return None;
        }
        if known.is_none() {
            self.files.push((device, inode));
        }
        Some((
            FILES + ((number as u64) << FILE_LINES_LOG2),
            known.is_none(),
        ))
    }

    /// The first line of a file that is, or was, mapped.
    pub fn known(&self, device: u64, inode: u64) -> Option<u64> {
        let number = self.files.iter().position(|&f| f == (device, inode))?;
        Some(FILES + ((number as u64) << FILE_LINES_LOG2))
    }

    /// Files in the order of their first mapping, for a process whose mappings are gone and whose files are known.
    pub fn files(&self) -> &[(u64, u64)] {
        &self.files
    }

    pub fn from_files(files: Vec<(u64, u64)>) -> Maps {
        Maps {
            files,
            ..Maps::default()
        }
    }

    /// Maps `length` bytes at `start` to the lines from `line` on. Earlier mappings there must have been removed.
    pub fn add(&mut self, start: u64, length: u64, line: u64) {
        let at = self.mappings.partition_point(|m| m.start < start);
        let end = start.saturating_add(length);
        self.mappings.insert(at, FileMapping { start, end, line });
    }

    /// Removes `start..end`, splitting mappings that reach out of it. Returns the removed parts as address, length and
    /// line.
    pub fn remove(&mut self, start: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let (mut kept, mut removed) = (Vec::with_capacity(self.mappings.len()), Vec::new());
        for mapping in &self.mappings {
            let (from, to) = (mapping.start.max(start), mapping.end.min(end));
            if from >= to {
                kept.push(*mapping);
                continue;
            }
            let line_at = |address: u64| mapping.line + (address - mapping.start) / 64;
            removed.push((from, to - from, line_at(from)));
            if mapping.start < from {
                kept.push(FileMapping {
                    end: from,
                    ..*mapping
                });
            }
            if to < mapping.end {
                kept.push(FileMapping {
                    start: to,
                    end: mapping.end,
                    line: line_at(to),
                });
            }
        }
        self.mappings = kept;
        removed
    }

    /// The line of the byte at `address`: a file's, or the address's own.
    #[inline]
    pub fn line(&self, address: u64) -> u64 {
        let at = self.mappings.partition_point(|m| m.end <= address);
        match self.mappings.get(at) {
            Some(m) if m.start <= address => m.line + (address - m.start) / 64,
            _ => address / 64,
        }
    }

    /// An address at which the line's bytes can be read now, if there is one.
    pub fn address(&self, line: u64) -> Option<u64> {
        if line < FILES {
            return Some(line * 64);
        }
        self.mappings.iter().find_map(|m| {
            let bytes = line.checked_sub(m.line)?.checked_mul(64)?;
            (bytes < m.end - m.start).then(|| m.start + bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_a_file_are_the_same_lines() {
        let mut maps = Maps::default();
        let (pool, new) = maps.file(1, 7).unwrap();
        assert!(new);
        maps.add(0x10000, 0x2000, pool);
        maps.add(0x40000, 0x1000, pool + 64);
        assert_eq!(maps.file(1, 7), Some((pool, false)));
        assert_eq!(maps.line(0x11040), maps.line(0x40040));
        assert_ne!(maps.file(1, 8).unwrap().0, pool);
        assert_eq!(maps.line(0x20000), 0x20000 / 64);
        assert_eq!(maps.line(0x12000), 0x12000 / 64);
    }

    #[test]
    fn a_hole_splits_a_mapping() {
        let mut maps = Maps::default();
        let (file, _) = maps.file(1, 7).unwrap();
        maps.add(0x10000, 0x5000, file);
        let removed = maps.remove(0x11000, 0x13000);
        assert_eq!(removed, [(0x11000, 0x2000, file + 64)]);
        assert_eq!(maps.line(0x10fc0), file + 63);
        assert_eq!(maps.line(0x11000), 0x11000 / 64);
        assert_eq!(maps.line(0x13000), file + 3 * 64);
        assert_eq!(maps.address(file + 3 * 64), Some(0x13000));
        assert_eq!(maps.address(file + 64), None);
        assert_eq!(maps.address(12), Some(768));
        assert_eq!(maps.remove(0, u64::MAX).len(), 2);
        assert!(maps.is_empty());
    }
}
