//! File systems as values: which effects a cut may leave without which others. `docs/crash/file-systems.md` has each rule
//! with its source.

/// How names and set sizes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Each by itself, in any order.
    None,
    /// In their order; a sync writes all of the journal until then (jbd2; XFS's log).
    Whole,
    /// In their order, except those that a sync writes to a log of their own (btrfs's log trees).
    Apart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    pub name: &'static str,
    pub journal: Journal,
    /// Whether a size that a write made comes after its data (XFS: `xfs_setfilesize`, at the end of the write; btrfs:
    /// `btrfs_finish_one_ordered`). Ext4 sets it with blocks that read as zeros (`mpage_map_and_submit_extent`).
    pub size_after_data: bool,
    /// Whether a rename over a file comes after the size of the new one (ext4: `auto_da_alloc`).
    pub rename_after_sizes: bool,
    /// Whether a truncation's size comes after the zeros in its last block (ext4 with `data=ordered`; not XFS, where what was
    /// cut off may be there again once the file grows).
    pub zeros_first: bool,
    /// Whether sync and syncfs flush the disk for data that were overwritten in place (XFS: `xfs_fs_sync_fs` writes its log,
    /// if there is something to write).
    pub sync_flushes: bool,
    /// Whether blocks without their data may hold what others had deleted.
    pub shows_stale: bool,
    /// A disk writes this many bytes, aligned, whole or not at all.
    pub sector: u64,
    /// The same of a page, if file system and disk promise it; 0 if they do not.
    pub atomic_page: u64,
}

/// *Assumed*: the smallest sector that disks have.
const SECTOR: u64 = 512;

const ORDERED: FileSystem = FileSystem {
    name: "ext4-ordered",
    journal: Journal::Whole,
    size_after_data: false,
    rename_after_sizes: true,
    zeros_first: true,
    sync_flushes: true,
    shows_stale: false,
    sector: SECTOR,
    atomic_page: 0,
};

/// All that are known; the first is the default.
pub const ALL: [FileSystem; 5] = [
    ORDERED,
    FileSystem {
        name: "ext4-writeback",
        zeros_first: false,
        rename_after_sizes: false,
        shows_stale: true,
        ..ORDERED
    },
    FileSystem {
        name: "xfs",
        zeros_first: false,
        sync_flushes: false,
        size_after_data: true,
        rename_after_sizes: false,
        ..ORDERED
    },
    // Blocks are never written in place, so that none is torn (*assumed* for nodatacow, which does).
    FileSystem {
        name: "btrfs",
        journal: Journal::Apart,
        size_after_data: true,
        rename_after_sizes: false,
        atomic_page: 4096,
        ..ORDERED
    },
    FileSystem {
        name: "strict",
        zeros_first: false,
        sync_flushes: false,
        journal: Journal::None,
        rename_after_sizes: false,
        ..ORDERED
    },
];

/// The largest sector and the largest atomic page: *assumed*, those of today's disks (NVMe's `AWUPF`).
const LARGEST: [u64; 2] = [4096, 65536];

impl FileSystem {
    pub fn named(name: &str) -> Option<FileSystem> {
        ALL.into_iter().find(|known| known.name == name)
    }

    /// The bytes that are never torn.
    pub fn unit(&self) -> u64 {
        self.sector.max(self.atomic_page)
    }

    /// The same with other keys; 0 leaves one as it is.
    ///
    /// # Errors
    /// A number is no power of two of which disks have sectors or pages: one line with the option.
    pub fn with(self, sector: u64, atomic_page: u64) -> Result<FileSystem, String> {
        let given = [("--sector", sector), ("--atomic-page", atomic_page)];
        for ((option, bytes), most) in given.into_iter().zip(LARGEST) {
            let fits = bytes.is_power_of_two() && (SECTOR..=most).contains(&bytes);
            if bytes != 0 && !fits {
                return Err(format!(
                    "{option} {bytes}: give a power of two from {SECTOR} to {most}"
                ));
            }
        }
        let or = |given: u64, own| if given == 0 { own } else { given };
        Ok(FileSystem {
            sector: or(sector, self.sector),
            atomic_page: or(atomic_page, self.atomic_page),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_what_is_torn() {
        let unit = |name, sector, page| {
            let known = FileSystem::named(name).unwrap();
            known.with(sector, page).map(|one| one.unit())
        };
        assert_eq!(unit("xfs", 0, 0), Ok(512));
        assert_eq!(unit("xfs", 4096, 0), Ok(4096));
        assert_eq!(unit("btrfs", 0, 0), Ok(4096));
        assert_eq!(unit("btrfs", 512, 16384), Ok(16384));
        for (sector, page) in [(513, 0), (8192, 0), (256, 0), (0, 100), (0, 1 << 20)] {
            assert!(
                unit("strict", sector, page)
                    .unwrap_err()
                    .contains("power of two")
            );
        }
        assert!(FileSystem::named("zfs").is_none());
    }
}
