//! The operations of a program on the files below a folder, in one order.

use std::ffi::OsString;

/// A file, a folder or a symbolic link, by its number in the tree; links of one file share it.
pub type Inode = u32;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub folder: Inode,
    pub name: OsString,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// A new inode under a name: a file, a folder or a symbolic link.
    Create {
        name: Name,
        inode: Inode,
    },
    Link {
        name: Name,
        inode: Inode,
    },
    Unlink {
        name: Name,
    },
    Rename {
        from: Name,
        to: Name,
        inode: Inode,
        replaces: bool,
    },
    Exchange {
        names: [(Name, Inode); 2],
    },
    Write {
        inode: Inode,
        offset: u64,
        data: Vec<u8>,
    },
    /// The size is set without data: ftruncate, `O_TRUNC`, fallocate.
    Resize {
        inode: Inode,
        size: u64,
    },
    Sync {
        inode: Inode,
        how: Sync,
        range: Option<(u64, u64)>,
    },
    SyncAll,
    /// A call that looks like a sync, and promises nothing.
    Hint {
        inode: Inode,
    },
    /// A sync that ended with an error: the kernel counts its data as written, and no disk has them.
    Fail {
        inode: Inode,
    },
    /// Text for the descriptor that is asked for is in `text`; text for other outputs is not kept.
    Acknowledge {
        text: Vec<u8>,
    },
}

impl Act {
    /// The file or folder that it is done to, if it has one of its own.
    pub fn inode(&self) -> Option<Inode> {
        match self {
            Act::Create { inode, .. }
            | Act::Link { inode, .. }
            | Act::Rename { inode, .. }
            | Act::Write { inode, .. }
            | Act::Resize { inode, .. }
            | Act::Sync { inode, .. }
            | Act::Hint { inode }
            | Act::Fail { inode } => Some(*inode),
            Act::Unlink { .. } | Act::Exchange { .. } | Act::SyncAll | Act::Acknowledge { .. } => {
                None
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// fsync, `O_SYNC`
    All,
    /// fdatasync, `O_DSYNC`
    Data,
    /// msync
    Mapped,
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub act: Act,
    /// The system call and its objects, for people: `rename("a.tmp", "a")`.
    pub shown: String,
    pub path: String,
    /// The index of its command among [`RecordedRun::commands`].
    pub command: u32,
    pub thread: i32,
    /// An index of the places in the recording, or `sardonyx_crash_test::recording::NOWHERE`.
    pub site: u32,
}

impl Operation {
    pub fn acknowledges(&self) -> bool {
        matches!(self.act, Act::Acknowledge { .. })
    }

    /// Whether it changes nothing by itself.
    pub fn is_quiet(&self) -> bool {
        self.syncs() || self.acknowledges() || matches!(self.act, Act::Hint { .. })
    }

    pub fn syncs(&self) -> bool {
        matches!(self.act, Act::Sync { .. } | Act::SyncAll)
    }
}
