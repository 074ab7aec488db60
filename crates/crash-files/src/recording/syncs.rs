//! Calls that make data durable, and calls that only look so.

use std::os::unix::fs::MetadataExt;

use crate::operations::{Act, Sync};
use crate::recording::calls::{Call, done};
use crate::recording::{Begun, Recorder, process};

impl Recorder {
    pub(super) fn sync(&mut self, c: Call) -> Option<Begun> {
        let (inode, path) = self.held(c.thread, c.a[0])?;
        let how = match c.name {
            "fsync" => Sync::All,
            _ => Sync::Data,
        };
        let range = None;
        Some(done(c, path, vec![Act::Sync { inode, how, range }]))
    }

    pub(super) fn sync_all(&mut self, c: Call) -> Option<Begun> {
        Some(done(c, String::new(), vec![Act::SyncAll]))
    }

    pub(super) fn sync_system(&mut self, c: Call) -> Option<Begun> {
        let same = process::file_metadata(c.thread, c.a[0] as i32)?.dev() == self.device;
        if same { self.sync_all(c) } else { None }
    }

    /// Without MS_SYNC an msync does nothing since Linux 2.6.19 (msync(2)).
    pub(super) fn sync_mapping(&mut self, mut c: Call) -> Option<Begun> {
        let mapping = self.mapping(c)?;
        let from = c.a[0].saturating_sub(mapping.start) + mapping.offset;
        let end = c.a[0] + c.a[1].next_multiple_of(4096);
        let end = end.min(mapping.start + mapping.length) - mapping.start + mapping.offset;
        let inode = mapping.inode;
        let path = format!("{}, [{from}, {end})", mapping.path);
        if c.a[2] as i32 & libc::MS_SYNC == 0 {
            c.name = "msync without MS_SYNC";
            return Some(done(c, path, vec![Act::Hint { inode }]));
        }
        let act = Act::Sync {
            inode,
            how: Sync::Mapped,
            range: Some((from, end)),
        };
        Some(done(c, path, vec![act]))
    }

    /// It may begin to write data, and waits for neither the file's metadata nor the disk's cache (sync_file_range(2),
    /// Warning).
    pub(super) fn hint(&mut self, c: Call) -> Option<Begun> {
        let (inode, path) = self.held(c.thread, c.a[0])?;
        Some(done(c, path, vec![Act::Hint { inode }]))
    }
}
