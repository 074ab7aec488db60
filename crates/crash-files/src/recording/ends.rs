//! What a call has done, at its end: its operation is recorded, with the bytes that it wrote.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::content::FileContent;
use crate::operations::{Act, Inode, Name, Sync};
use crate::recording::process::{self, identity};
use crate::recording::{At, Begun, Mapping, PendingAct, Recorder};
use crate::tree::{FileNode, MOST_BYTES};

const DATA_SYNC: i32 = libc::O_DSYNC;
const SYNC: i32 = libc::O_SYNC & !libc::O_DSYNC;

impl Recorder {
    /// Records what a call has done, if it succeeded.
    ///
    /// A promise was recorded when its call began, because whoever reads it may act before the call ends; here it is cut to
    /// what was written, which is nothing if the call failed.
    pub(super) fn end(&mut self, thread: i32, begun: Begun, answer: i64) {
        match &begun.pending {
            PendingAct::Acknowledge { operation } => {
                if let Act::Acknowledge { text } = &mut self.operations[*operation].act {
                    text.truncate(answer.max(0) as usize);
                }
            }
            _ if answer < 0 => {}
            PendingAct::Done(acts) => {
                for act in acts {
                    self.push(thread, &begun, act.clone());
                }
            }
            PendingAct::Create { name, path } => self.created(thread, &begun, name, path),
            PendingAct::Anonymous => self.nameless(thread, answer as i32),
            PendingAct::Write {
                fd,
                inode,
                at,
                flags,
            } => {
                let length = answer as u64;
                if let Some((offset, sync)) = written(thread, *fd, at, *flags, length) {
                    self.wrote(thread, &begun, (*fd, *inode), (offset, length), sync);
                }
            }
            PendingAct::Whole { fd, inode } => {
                let length = process::file_metadata(thread, *fd).map_or(0, |m| m.len());
                self.grown |= length > MOST_BYTES;
                if !self.grown {
                    self.wrote(thread, &begun, (*fd, *inode), (0, length), None);
                }
            }
            PendingAct::Map(mapping) => {
                let mapping = Mapping {
                    start: answer as u64,
                    ..mapping.clone()
                };
                let process = self.threads.get(&thread).map_or(thread, |t| t.process);
                let process = self.processes.entry(process).or_default();
                process.mappings.push(mapping);
            }
        }
    }

    /// Adds a file without a name, which a link may give it later.
    fn nameless(&mut self, thread: i32, fd: i32) {
        if let Some(metadata) = process::file_metadata(thread, fd) {
            let inode = self.tree.add(FileNode::empty_file(), metadata.mode());
            self.start.add(FileNode::empty_file(), metadata.mode());
            self.inodes.insert(identity(&metadata), inode);
        }
    }

    fn created(&mut self, thread: i32, begun: &Begun, name: &Name, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return;
        };
        let kind = metadata.file_type();
        let node = if kind.is_dir() {
            FileNode::empty_folder()
        } else if kind.is_symlink() {
            FileNode::Link(fs::read_link(path).unwrap_or_default().as_os_str().into())
        } else if kind.is_file() {
            FileNode::empty_file()
        } else {
            return;
        };
        if kind.is_dir() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            self.note("a folder that was moved in from elsewhere is not recorded");
        }
        let inode = self.tree.add(node.clone(), metadata.mode());
        self.start.add(node, metadata.mode());
        self.inodes.insert(identity(&metadata), inode);
        let name = name.clone();
        let length = metadata.len();
        self.grown |= kind.is_file() && length > MOST_BYTES;
        if !kind.is_file() || self.grown || length == 0 {
            self.push(thread, begun, Act::Create { name, inode });
            return;
        }
        // A file that comes in from elsewhere has its contents before its name.
        self.note("a file came in from elsewhere; that it was synced there is not recorded");
        let content = File::open(path).and_then(|f| FileContent::read(&f, length, &|| true));
        let (data, offset) = (content.unwrap_or_default().bytes(), 0);
        let write = Act::Write {
            inode,
            offset,
            data,
        };
        self.push(thread, begun, write);
        let elsewhere = Name {
            folder: name.folder,
            name: "(elsewhere)".into(),
        };
        let replaces = self.tree.has(&name);
        let act = match begun.shown.starts_with("rename") {
            true => Act::Rename {
                from: elsewhere,
                to: name,
                inode,
                replaces,
            },
            false => Act::Create { name, inode },
        };
        self.push(thread, begun, act);
    }

    fn wrote(
        &mut self,
        thread: i32,
        begun: &Begun,
        (fd, inode): (i32, Inode),
        (offset, length): (u64, u64),
        sync: Option<Sync>,
    ) {
        let Some(data) = process::held(thread, fd, offset, length as usize) else {
            self.note(
                "a file that was written could not be read back; what was written is missing",
            );
            return;
        };
        let end = offset + length;
        let mut begun = Begun {
            shown: begun.shown.replace(')', &format!(", [{offset}, {end}))")),
            path: begun.path.clone(),
            pending: PendingAct::Anonymous,
            site: begun.site,
        };
        self.push(
            thread,
            &begun,
            Act::Write {
                inode,
                offset,
                data,
            },
        );
        if let Some(how) = sync {
            let range = Some((offset, end));
            begun.shown = format!("O_SYNC of {}", begun.shown);
            self.push(thread, &begun, Act::Sync { inode, how, range });
        }
    }
}

/// Finds where a write of this many bytes began, and whether it was synced.
fn written(thread: i32, fd: i32, at: &At, flags: u64, length: u64) -> Option<(u64, Option<Sync>)> {
    let (position, of_file) = process::position(thread, fd)?;
    let size = || process::file_metadata(thread, fd).map(|m| m.len());
    let appends = of_file & libc::O_APPEND != 0 || flags & libc::RWF_APPEND as u64 != 0;
    let end = match at {
        // With O_APPEND Linux appends whatever the offset (pwrite(2), BUGS).
        At::Offset(_) if appends => size()?,
        At::Offset(offset) => offset + length,
        At::Position => position,
        At::Word(word) => process::word(thread, *word)?,
    };
    let sync = if of_file & SYNC != 0 || flags & libc::RWF_SYNC as u64 != 0 {
        Some(Sync::All)
    } else if of_file & DATA_SYNC != 0 || flags & libc::RWF_DSYNC as u64 != 0 {
        Some(Sync::Data)
    } else {
        None
    };
    (length > 0).then_some((end.checked_sub(length)?, sync))
}
