//! System calls as operations on the files below the folder: what each is about to do, looked up when it begins.
//! [`ends`](super::ends) records what it has done.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::operations::{Act, Inode, Name, Sync};
use crate::recording::process::{self, identity};
use crate::recording::recorder::{At, Begun, Mapping, OtherAcks, PendingAct, Recorder};

/// A call that a thread is about to make.
#[derive(Clone, Copy)]
struct Call {
    thread: i32,
    name: &'static str,
    a: [u64; 6],
}

/// The operation that a call is about to do, if it has to be recorded.
type Begin = fn(&mut Recorder, Call) -> Option<Begun>;

/// A call at which threads stop, with its name in reports.
struct FileCall {
    number: i64,
    name: &'static str,
    begin: Begin,
}

const fn on(number: i64, name: &'static str, begin: Begin) -> FileCall {
    FileCall {
        number,
        name,
        begin,
    }
}

/// How the text is given that a call writes.
#[derive(Clone, Copy)]
enum Text {
    Bytes,
    Vector,
    Message,
    /// By a call that is not followed to its bytes.
    Unread,
}

const HERE: u64 = libc::AT_FDCWD as u64;
const CREATED: u64 = (libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY) as u64;
const REMOVED_FOLDER: u64 = libc::AT_REMOVEDIR as u64;

/// Every call that may change a file, or promise something. Those without a folder's descriptor exist only on x86-64.
#[rustfmt::skip]
const CALLS: &[FileCall] = &[
    on(libc::SYS_openat, "open", |r, c| r.open(c, (c.a[0], c.a[1]), c.a[2])),
    on(libc::SYS_openat2, "open", |r, c| r.open(c, (c.a[0], c.a[1]), process::word(c.thread, c.a[2])?)),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_open, "open", |r, c| r.open(c, (HERE, c.a[0]), c.a[1])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_creat, "open", |r, c| r.open(c, (HERE, c.a[0]), CREATED)),
    on(libc::SYS_mkdirat, "mkdir", |r, c| r.make(c, c.a[0], c.a[1])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_mkdir, "mkdir", |r, c| r.make(c, HERE, c.a[0])),
    on(libc::SYS_mknodat, "mknod", |r, c| r.make_node(c, (c.a[0], c.a[1]), c.a[2])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_mknod, "mknod", |r, c| r.make_node(c, (HERE, c.a[0]), c.a[1])),
    on(libc::SYS_symlinkat, "symlink", |r, c| r.make(c, c.a[1], c.a[2])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_symlink, "symlink", |r, c| r.make(c, HERE, c.a[1])),
    on(libc::SYS_linkat, "link", |r, c| r.link(c, [c.a[0], c.a[1], c.a[2], c.a[3]], c.a[4])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_link, "link", |r, c| r.link(c, [HERE, c.a[0], HERE, c.a[1]], 0)),
    on(libc::SYS_renameat, "rename", |r, c| r.rename(c, [c.a[0], c.a[1], c.a[2], c.a[3]], 0)),
    on(libc::SYS_renameat2, "rename", |r, c| r.rename(c, [c.a[0], c.a[1], c.a[2], c.a[3]], c.a[4])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_rename, "rename", |r, c| r.rename(c, [HERE, c.a[0], HERE, c.a[1]], 0)),
    on(libc::SYS_unlinkat, "unlink", |r, c| r.unlink(c, (c.a[0], c.a[1]), c.a[2])),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_unlink, "unlink", |r, c| r.unlink(c, (HERE, c.a[0]), 0)),
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_rmdir, "rmdir", |r, c| r.unlink(c, (HERE, c.a[0]), REMOVED_FOLDER)),
    on(libc::SYS_truncate, "truncate", Recorder::truncate),
    on(libc::SYS_ftruncate, "ftruncate", |r, c| r.resize(c, r.held(c.thread, c.a[0])?)),
    on(libc::SYS_fallocate, "fallocate", Recorder::allocate),
    on(libc::SYS_ioctl, "ioctl", |r, c| r.clone_blocks(c)),
    on(libc::SYS_fsync, "fsync", |r, c| r.sync(c, Sync::All)),
    on(libc::SYS_fdatasync, "fdatasync", |r, c| r.sync(c, Sync::Data)),
    on(libc::SYS_sync, "sync", |_, c| Some(done(c, String::new(), vec![Act::SyncAll]))),
    on(libc::SYS_syncfs, "syncfs", |r, c| r.sync_all(c)),
    on(libc::SYS_msync, "msync", |r, c| r.sync_mapping(c)),
    on(libc::SYS_mmap, "mmap", Recorder::map),
    on(libc::SYS_mprotect, "mprotect", Recorder::protect),
    on(libc::SYS_mremap, "mmap", |r, c| r.move_mapping(c)),
    on(libc::SYS_write, "write", |r, c| r.write(c, (c.a[0], At::Position), Text::Bytes)),
    on(libc::SYS_writev, "writev", |r, c| r.write(c, (c.a[0], At::Position), Text::Vector)),
    on(libc::SYS_pwrite64, "pwrite", |r, c| r.write(c, (c.a[0], At::Offset(c.a[3])), Text::Bytes)),
    on(libc::SYS_pwritev, "pwritev", |r, c| r.write(c, (c.a[0], At::Offset(c.a[3])), Text::Vector)),
    on(libc::SYS_pwritev2, "pwritev2", Recorder::write_with_flags),
    on(libc::SYS_sendfile, "sendfile", |r, c| r.write(c, (c.a[0], At::Position), Text::Unread)),
    on(libc::SYS_splice, "splice", |r, c| r.write(c, (c.a[2], at_word(c.a[3])), Text::Unread)),
    on(libc::SYS_copy_file_range, "copy_file_range", |r, c| r.write(c, (c.a[2], at_word(c.a[3])), Text::Unread)),
    on(libc::SYS_sendto, "send", |r, c| r.write(c, (c.a[0], At::Position), Text::Bytes)),
    on(libc::SYS_sendmsg, "sendmsg", |r, c| r.write(c, (c.a[0], At::Position), Text::Message)),
    on(libc::SYS_sendmmsg, "sendmmsg", |r, c| r.write(c, (c.a[0], At::Position), Text::Unread)),
    on(libc::SYS_io_submit, "io_submit", Recorder::leave_out),
];

/// The numbers of the calls at which threads stop.
pub(super) fn stopping() -> Vec<i64> {
    CALLS.iter().map(|call| call.number).collect()
}

/// Calls that the recorded program finds missing, as on an older kernel, because they cannot be followed.
pub(super) const MISSING: &[i64] = &[libc::SYS_io_uring_setup];

/// Requests of ioctl that share another file's blocks (`FICLONE`, `FICLONERANGE`).
const CLONING: [u64; 2] = [0x4004_9409, 0x4020_940d];

/// The place of a write that counts it up in a word of the caller's, or at the position if there is no word.
fn at_word(word: u64) -> At {
    match word {
        0 => At::Position,
        word => At::Word(word),
    }
}

/// A name below the folder, with its folder and its path.
struct ResolvedName {
    name: Name,
    full: PathBuf,
    path: String,
}

/// A call that does these acts if it succeeds; `path` has what is shown of it in brackets, the file first.
fn done(c: Call, path: String, acts: Vec<Act>) -> Begun {
    let bare = path.split(", ").next().unwrap_or_default().to_owned();
    Begun {
        shown: format!("{}({path})", c.name),
        path: bare,
        pending: PendingAct::Done(acts),
        site: 0,
    }
}

fn create(c: Call, place: ResolvedName) -> Begun {
    Begun {
        shown: format!("{}({})", c.name, place.path),
        path: place.path,
        pending: PendingAct::Create {
            name: place.name,
            path: place.full,
        },
        site: 0,
    }
}

impl Recorder {
    /// The operation that a call is about to do, if it has to be recorded.
    pub(super) fn begin(&mut self, thread: i32, call: i64, a: [u64; 6]) -> Option<Begun> {
        let known = CALLS.iter().find(|known| known.number == call)?;
        let name = known.name;
        (known.begin)(self, Call { thread, name, a })
    }

    fn place(&self, thread: i32, folder: i32, path: &Path, follow: bool) -> Option<ResolvedName> {
        let mut full = process::meant(thread, folder, path)?;
        for _ in 0..40 {
            let name = full.file_name()?.to_owned();
            let parent = fs::canonicalize(full.parent()?).ok()?;
            full = parent.join(&name);
            let is_link = fs::symlink_metadata(&full).is_ok_and(|m| m.is_symlink());
            if follow && is_link {
                full = parent.join(fs::read_link(&full).ok()?);
                continue;
            }
            let folder = self.inode(&fs::metadata(&parent).ok()?)?;
            let path = full.strip_prefix(&self.root).unwrap_or(&full);
            let path = path.display().to_string();
            let name = Name { folder, name };
            return Some(ResolvedName { name, full, path });
        }
        None
    }

    /// Resolves a name that a call gives by a folder's descriptor and a path in memory.
    fn given(&self, c: Call, folder: u64, path: u64, follow: bool) -> Option<ResolvedName> {
        let path = process::path(c.thread, path)?;
        self.place(c.thread, folder as i32, &path, follow)
    }

    fn inode(&self, metadata: &fs::Metadata) -> Option<Inode> {
        self.inodes.get(&identity(metadata)).copied()
    }

    fn inode_of(&self, path: &Path) -> Option<Inode> {
        self.inode(&fs::symlink_metadata(path).ok()?)
    }

    fn held(&self, thread: i32, fd: u64) -> Option<(Inode, String)> {
        let inode = self.inode(&process::file_metadata(thread, fd as i32)?)?;
        let link = process::link(thread, fd as i32)?;
        let path = link.strip_prefix(&self.root).unwrap_or(&link);
        let path = path.display().to_string();
        Some((
            inode,
            if path.is_empty() {
                ".".to_owned()
            } else {
                path
            },
        ))
    }

    /// A call that opens a file changes something only if it creates the file or cuts it off.
    fn open(&self, c: Call, (folder, path): (u64, u64), flags: u64) -> Option<Begun> {
        let flags = flags as i32;
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            let path = process::path(c.thread, path)?;
            let path = process::meant(c.thread, folder as i32, &path)?;
            self.inode(&fs::metadata(path).ok()?)?;
            let mut begun = done(c, "O_TMPFILE".to_owned(), Vec::new());
            begun.pending = PendingAct::Anonymous;
            return Some(begun);
        }
        if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
            return None;
        }
        // With O_EXCL a link at the end of the path is not followed either (open(2)).
        let follow = flags & (libc::O_NOFOLLOW | libc::O_EXCL) == 0;
        let place = self.given(c, folder, path, follow)?;
        // A pipe, a socket or a device is not followed, and opening it may wait for another process.
        let special = |m: fs::Metadata| !(m.is_file() || m.is_dir() || m.is_symlink());
        if fs::symlink_metadata(&place.full).is_ok_and(special) {
            return None;
        }
        match self.inode_of(&place.full) {
            None if flags & libc::O_CREAT != 0 => Some(create(c, place)),
            Some(inode) if flags & libc::O_TRUNC != 0 => {
                let acts = vec![Act::Resize { inode, size: 0 }];
                let mut begun = done(c, place.path, acts);
                begun.shown = format!("open({}, O_TRUNC)", begun.path);
                Some(begun)
            }
            _ => None,
        }
    }

    fn make(&self, c: Call, folder: u64, path: u64) -> Option<Begun> {
        Some(create(c, self.given(c, folder, path, false)?))
    }

    /// Of nodes only files are followed; a type of 0 is a file too (mknod(2)).
    fn make_node(&self, c: Call, (folder, path): (u64, u64), mode: u64) -> Option<Begun> {
        match mode as u32 & libc::S_IFMT {
            0 | libc::S_IFREG => self.make(c, folder, path),
            _ => None,
        }
    }

    fn unlink(&self, c: Call, (folder, path): (u64, u64), flags: u64) -> Option<Begun> {
        let place = self.given(c, folder, path, false)?;
        let name = match flags & REMOVED_FOLDER {
            0 => "unlink",
            _ => "rmdir",
        };
        let act = Act::Unlink { name: place.name };
        Some(done(Call { name, ..c }, place.path, vec![act]))
    }

    /// A file that leaves the folder is gone, and one that comes in is new; between two names of one file a rename does
    /// nothing (rename(2)).
    fn rename(&self, c: Call, a: [u64; 4], flags: u64) -> Option<Begun> {
        let from = self.given(c, a[0], a[1], false);
        let to = self.given(c, a[2], a[3], false);
        let full = |place: &ResolvedName| self.inode_of(&place.full);
        let shown = |place: &Option<ResolvedName>| match place {
            Some(place) => place.path.clone(),
            None => "(elsewhere)".to_owned(),
        };
        let shown = format!("rename({}, {})", shown(&from), shown(&to));
        let (acts, path) = match (from, to) {
            (None, None) => return None,
            (Some(from), None) => (vec![Act::Unlink { name: from.name }], from.path),
            (None, Some(to)) => return Some(create(c, to)),
            (Some(from), Some(to)) => {
                let (inode, target) = (full(&from)?, full(&to));
                if target == Some(inode) {
                    return None;
                }
                let act = match (flags as u32 & libc::RENAME_EXCHANGE, target) {
                    (0, target) => Act::Rename {
                        from: from.name,
                        to: to.name,
                        inode,
                        replaces: target.is_some(),
                    },
                    (_, target) => Act::Exchange {
                        names: [(from.name, target?), (to.name, inode)],
                    },
                };
                (vec![act], to.path)
            }
        };
        let mut begun = done(c, path, acts);
        begun.shown = shown;
        Some(begun)
    }

    /// With an empty path the descriptor itself is linked (AT_EMPTY_PATH): so a file without a name gets one.
    fn link(&self, c: Call, a: [u64; 4], flags: u64) -> Option<Begun> {
        let path = process::path(c.thread, a[1])?;
        let inode = if path.as_os_str().is_empty() {
            self.inode(&process::file_metadata(c.thread, a[0] as i32)?)
        } else {
            let source = process::meant(c.thread, a[0] as i32, &path)?;
            match flags as i32 & libc::AT_SYMLINK_FOLLOW {
                0 => self.inode_of(&source),
                _ => self.inode(&fs::metadata(source).ok()?),
            }
        };
        let to = self.given(c, a[2], a[3], false)?;
        let Some(inode) = inode else {
            return Some(create(c, to));
        };
        let name = to.name;
        Some(done(c, to.path, vec![Act::Link { name, inode }]))
    }

    fn truncate(&mut self, c: Call) -> Option<Begun> {
        let place = self.given(c, HERE, c.a[0], true)?;
        let inode = self.inode_of(&place.full)?;
        self.resize(c, (inode, place.path))
    }

    fn resize(&self, c: Call, (inode, path): (Inode, String)) -> Option<Begun> {
        let size = c.a[1];
        let act = Act::Resize { inode, size };
        Some(done(c, format!("{path}, {size}"), vec![act]))
    }

    /// Holes and ranges of zeros are writes of zeros; a size that grows is set.
    fn allocate(&mut self, c: Call) -> Option<Begun> {
        let (mode, from, length) = (c.a[1] as i32, c.a[2], c.a[3]);
        let (inode, path) = self.held(c.thread, c.a[0])?;
        let size = self.tree.content(inode)?.size();
        let mut acts = Vec::new();
        let keeps = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let zeros = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        if mode & (libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE) != 0 {
            self.note("fallocate that moves data within a file is not recorded");
        }
        if zeros && from < size {
            acts.push(Act::Write {
                inode,
                offset: from,
                data: vec![0; length.min(size - from) as usize],
            });
        }
        if !keeps && from + length > size {
            acts.push(Act::Resize {
                inode,
                size: from + length,
            });
        }
        Some(done(
            c,
            format!("{path}, [{from}, {})", from + length),
            acts,
        ))
    }

    /// An ioctl may share another file's blocks, so that any byte may differ afterwards.
    fn clone_blocks(&self, c: Call) -> Option<Begun> {
        if !CLONING.contains(&c.a[1]) {
            return None;
        }
        let (inode, path) = self.held(c.thread, c.a[0])?;
        let mut begun = done(c, format!("{path}, FICLONE"), Vec::new());
        let fd = c.a[0] as i32;
        begun.pending = PendingAct::Whole { fd, inode };
        Some(begun)
    }

    fn sync(&self, c: Call, how: Sync) -> Option<Begun> {
        let (inode, path) = self.held(c.thread, c.a[0])?;
        let range = None;
        Some(done(c, path, vec![Act::Sync { inode, how, range }]))
    }

    fn sync_all(&self, c: Call) -> Option<Begun> {
        let same = process::file_metadata(c.thread, c.a[0] as i32)?.dev() == self.device;
        same.then(|| done(c, String::new(), vec![Act::SyncAll]))
    }

    /// The latest mapping of a process that has some of these bytes.
    fn mapping(&self, c: Call) -> Option<Mapping> {
        let (at, length) = (c.a[0], c.a[1]);
        let process = self.threads.get(&c.thread)?.process;
        let mappings = &self.processes.get(&process)?.mappings;
        let meets = |m: &&Mapping| at < m.start + m.length && at + length > m.start;
        mappings.iter().rev().find(meets).cloned()
    }

    /// Without MS_SYNC an msync does nothing since Linux 2.6.19 (msync(2)).
    fn sync_mapping(&self, c: Call) -> Option<Begun> {
        if c.a[2] as i32 & libc::MS_SYNC == 0 {
            return None;
        }
        let mapping = self.mapping(c)?;
        let from = c.a[0].saturating_sub(mapping.start) + mapping.offset;
        let end = c.a[0] + c.a[1].next_multiple_of(4096);
        let end = end.min(mapping.start + mapping.length) - mapping.start + mapping.offset;
        let act = Act::Sync {
            inode: mapping.inode,
            how: Sync::Mapped,
            range: Some((from, end)),
        };
        let path = format!("{}, [{from}, {end})", mapping.path);
        Some(done(c, path, vec![act]))
    }

    /// A mapping that becomes writable is compared from now on.
    fn protect(&mut self, c: Call) -> Option<Begun> {
        if c.a[2] as i32 & libc::PROT_WRITE != 0 {
            let mapping = self.mapping(c)?;
            self.mapped.entry(mapping.inode).or_insert(mapping);
        }
        None
    }

    fn move_mapping(&self, c: Call) -> Option<Begun> {
        let mut mapping = self.mapping(c)?;
        mapping.offset += c.a[0].saturating_sub(mapping.start);
        mapping.length = c.a[2];
        Some(mapped(c, mapping))
    }

    /// A private mapping never reaches its file, and one without a descriptor has none.
    fn map(&mut self, c: Call) -> Option<Begun> {
        // MAP_SHARED_VALIDATE is 3: the kinds of mappings are a number and no bits.
        if c.a[3] as i32 & 0xf == libc::MAP_PRIVATE || (c.a[4] as i32) < 0 {
            return None;
        }
        let (inode, path) = self.held(c.thread, c.a[4])?;
        let mapping = Mapping {
            start: 0,
            length: c.a[1],
            offset: c.a[5],
            inode,
            path,
            file: process::reopen(c.thread, c.a[4] as i32)?.into(),
            site: self.site(c.thread),
        };
        if c.a[2] as i32 & libc::PROT_WRITE != 0 {
            self.mapped.entry(inode).or_insert(mapping.clone());
        }
        Some(mapped(c, mapping))
    }

    fn write(&mut self, c: Call, (fd, at): (u64, At), text: Text) -> Option<Begun> {
        self.write_to(c, (fd, at, 0), text)
    }

    /// An offset of -1 stands for the position (pwritev2(2)).
    fn write_with_flags(&mut self, c: Call) -> Option<Begun> {
        let at = match c.a[3] {
            u64::MAX => At::Position,
            offset => At::Offset(offset),
        };
        self.write_to(c, (c.a[0], at, c.a[5]), Text::Vector)
    }

    /// What is written to a file below the folder is an operation; what is written elsewhere may be a promise.
    fn write_to(&mut self, c: Call, (fd, at, flags): (u64, At, u64), text: Text) -> Option<Begun> {
        let metadata = process::file_metadata(c.thread, fd as i32)?;
        let Some((inode, path)) = self.held(c.thread, fd) else {
            return self.acknowledge(c, (fd, &metadata), text);
        };
        let mut begun = done(c, path, Vec::new());
        let fd = fd as i32;
        begun.pending = PendingAct::Write {
            fd,
            inode,
            at,
            flags,
        };
        Some(begun)
    }

    fn leave_out(&mut self, _: Call) -> Option<Begun> {
        self.note("io_submit (Linux AIO) is not recorded; what it wrote is missing");
        None
    }

    /// Whether the text for a descriptor is kept: of any socket, or of the first process's descriptor by its number, and
    /// of others' by the file behind it.
    fn is_kept(&mut self, thread: i32, fd: i32, leads: (u64, u64), socket: bool) -> bool {
        if self.acks_socket {
            return socket;
        }
        let (kept, known) = self.acks;
        let process = self.threads.get(&thread).map(|thread| thread.process);
        if known.is_none() && fd == kept && process == Some(self.first) {
            self.acks.1 = Some(leads);
        }
        self.acks.1 == Some(leads)
    }

    /// Records text that leaves the program: for its standard output or standard error, for the descriptor that is
    /// asked for, or for a socket.
    fn acknowledge(
        &mut self,
        c: Call,
        (fd, metadata): (u64, &fs::Metadata),
        text: Text,
    ) -> Option<Begun> {
        let (output, socket) = (
            self.outputs
                .iter()
                .position(|known| *known == identity(metadata)),
            metadata.file_type().is_socket(),
        );
        let kept = self.is_kept(c.thread, fd as i32, identity(metadata), socket);
        let other = match output {
            Some(0) => OtherAcks::Output,
            Some(_) => OtherAcks::Error,
            None if socket => OtherAcks::Socket,
            None if kept => OtherAcks::Output,
            None => return None,
        };
        if !kept {
            self.other_acks.insert(other);
        }
        let text = if kept { self.text(c, text) } else { Vec::new() };
        let to = ["standard output", "standard error"];
        let to = match output {
            Some(number) => to[number].to_owned(),
            None if socket => "a socket".to_owned(),
            None => format!("descriptor {fd}"),
        };
        let mut begun = done(c, to, Vec::new());
        begun.path = String::new();
        begun.site = self.site(c.thread);
        self.compare_mapped(c.thread, begun.site);
        let operation = self.push(c.thread, &begun, Act::Acknowledge { text });
        begun.pending = PendingAct::Acknowledge { operation };
        Some(begun)
    }

    /// Reads the text that a call is about to write.
    fn text(&mut self, c: Call, text: Text) -> Vec<u8> {
        match text {
            Text::Bytes => process::text(c.thread, c.a[1], c.a[2]),
            Text::Vector => process::gathered(c.thread, c.a[1], c.a[2]),
            Text::Message => process::message(c.thread, c.a[1]),
            Text::Unread => {
                self.note(
                    "the program acknowledged by sendmmsg, splice or sendfile; {acks} lacks it",
                );
                Vec::new()
            }
        }
    }
}

fn mapped(c: Call, mapping: Mapping) -> Begun {
    let mut begun = done(c, mapping.path.clone(), Vec::new());
    begun.pending = PendingAct::Map(mapping);
    begun
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_the_table_once() {
        let mut numbers = stopping();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), CALLS.len());
    }
}
