//! System calls as operations on the files below the folder: what each is about to do, looked up when it begins.
//! [`ends`](super::ends) records what it has done.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::operations::{Act, Inode, Name};
use crate::recording::process::{self, identity};
use crate::recording::{At, Begun, Mapping, OtherAcks, PendingAct, Recorder};

/// A call that a thread is about to make.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) thread: i32,
    pub(super) name: &'static str,
    pub(super) a: [u64; 6],
}

/// A call at which threads stop, with its name in reports.
struct FileCall {
    number: i64,
    name: &'static str,
    does: Does,
}

/// What a call is about to do.
enum Does {
    /// The operation that this finds, if it has to be recorded.
    Begin(fn(&mut Recorder, Call) -> Option<Begun>),
    /// It writes to the descriptor in this argument.
    Write(usize, Place, Text),
}

/// How the place is given at which a call writes.
#[derive(Clone, Copy)]
enum Place {
    Position,
    /// In the fourth argument, where -1 stands for the position (pwritev2(2)).
    Offset,
    /// In a word of the caller's, to which the fourth argument points, or else at the position.
    Word,
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

const fn call(
    number: i64,
    name: &'static str,
    begin: fn(&mut Recorder, Call) -> Option<Begun>,
) -> FileCall {
    let does = Does::Begin(begin);
    FileCall { number, name, does }
}

const fn write(
    number: i64,
    name: &'static str,
    fd: usize,
    (place, text): (Place, Text),
) -> FileCall {
    let does = Does::Write(fd, place, text);
    FileCall { number, name, does }
}

/// Every call that may change a file, or promise something.
#[rustfmt::skip]
const CALLS: &[FileCall] = &[
    call(libc::SYS_openat, "open", Recorder::open),
    call(libc::SYS_openat2, "open", Recorder::open_how),
    call(libc::SYS_mkdirat, "mkdir", Recorder::make),
    call(libc::SYS_mknodat, "mknod", Recorder::make_node),
    call(libc::SYS_symlinkat, "symlink", Recorder::make_link),
    call(libc::SYS_linkat, "link", Recorder::link),
    call(libc::SYS_renameat, "rename", Recorder::rename),
    call(libc::SYS_renameat2, "rename", Recorder::rename_how),
    call(libc::SYS_unlinkat, "unlink", Recorder::unlink),
    call(libc::SYS_truncate, "truncate", Recorder::truncate),
    call(libc::SYS_ftruncate, "ftruncate", Recorder::truncate_open),
    call(libc::SYS_fallocate, "fallocate", Recorder::allocate),
    call(libc::SYS_ioctl, "ioctl", Recorder::clone_blocks),
    call(libc::SYS_fsync, "fsync", Recorder::sync),
    call(libc::SYS_fdatasync, "fdatasync", Recorder::sync),
    call(libc::SYS_sync, "sync", Recorder::sync_all),
    call(libc::SYS_syncfs, "syncfs", Recorder::sync_system),
    call(libc::SYS_sync_file_range, "sync_file_range", Recorder::hint),
    call(libc::SYS_msync, "msync", Recorder::sync_mapping),
    call(libc::SYS_mmap, "mmap", Recorder::map),
    call(libc::SYS_mprotect, "mprotect", Recorder::protect),
    call(libc::SYS_mremap, "mmap", Recorder::move_mapping),
    call(libc::SYS_io_submit, "io_submit", Recorder::leave_out),
    write(libc::SYS_write, "write", 0, (Place::Position, Text::Bytes)),
    write(libc::SYS_writev, "writev", 0, (Place::Position, Text::Vector)),
    write(libc::SYS_pwrite64, "pwrite", 0, (Place::Offset, Text::Bytes)),
    write(libc::SYS_pwritev, "pwritev", 0, (Place::Offset, Text::Vector)),
    write(libc::SYS_pwritev2, WITH_FLAGS, 0, (Place::Offset, Text::Vector)),
    write(libc::SYS_sendfile, "sendfile", 0, (Place::Position, Text::Unread)),
    write(libc::SYS_splice, "splice", 2, (Place::Word, Text::Unread)),
    write(libc::SYS_copy_file_range, "copy_file_range", 2, (Place::Word, Text::Unread)),
    write(libc::SYS_sendto, "send", 0, (Place::Position, Text::Bytes)),
    write(libc::SYS_sendmsg, "sendmsg", 0, (Place::Position, Text::Message)),
    write(libc::SYS_sendmmsg, "sendmmsg", 0, (Place::Position, Text::Unread)),
];
/// The only write whose last argument has flags (`RWF_*`).
const WITH_FLAGS: &str = "pwritev2";

const HERE: u64 = libc::AT_FDCWD as u64;
const CREATED: u64 = (libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY) as u64;
const REMOVED_FOLDER: u64 = libc::AT_REMOVEDIR as u64;

/// An older call, the one that has taken its place, and the arguments of that.
type OldCall = (i64, i64, fn([u64; 6]) -> [u64; 6]);

/// Only x86-64 has them. They take no folder: a path is from the process's own.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[OldCall] = &[
    (libc::SYS_open, libc::SYS_openat, |a| [HERE, a[0], a[1], a[2], 0, 0]),
    (libc::SYS_creat, libc::SYS_openat, |a| [HERE, a[0], CREATED, a[1], 0, 0]),
    (libc::SYS_mkdir, libc::SYS_mkdirat, |a| [HERE, a[0], a[1], 0, 0, 0]),
    (libc::SYS_mknod, libc::SYS_mknodat, |a| [HERE, a[0], a[1], a[2], 0, 0]),
    (libc::SYS_symlink, libc::SYS_symlinkat, |a| [a[0], HERE, a[1], 0, 0, 0]),
    (libc::SYS_link, libc::SYS_linkat, |a| [HERE, a[0], HERE, a[1], 0, 0]),
    (libc::SYS_rename, libc::SYS_renameat, |a| [HERE, a[0], HERE, a[1], 0, 0]),
    (libc::SYS_unlink, libc::SYS_unlinkat, |a| [HERE, a[0], 0, 0, 0, 0]),
    (libc::SYS_rmdir, libc::SYS_unlinkat, |a| [HERE, a[0], REMOVED_FOLDER, 0, 0, 0]),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[OldCall] = &[];

/// The numbers of the calls at which threads stop.
pub(super) fn stopping() -> Vec<i64> {
    let old = OLD.iter().map(|(number, ..)| *number);
    CALLS.iter().map(|call| call.number).chain(old).collect()
}

/// Calls that the recorded program finds missing, as on an older kernel, because they cannot be followed.
pub(super) const MISSING: &[i64] = &[libc::SYS_io_uring_setup];

/// Requests of ioctl that share another file's blocks (`FICLONE`, `FICLONERANGE`).
const CLONING: [u64; 2] = [0x4004_9409, 0x4020_940d];

/// A name below the folder, with its folder and its path.
struct ResolvedName {
    name: Name,
    full: PathBuf,
    path: String,
}

/// A call that does these acts if it succeeds; `path` has what is shown of it in brackets, the file first.
pub(super) fn done(c: Call, path: String, acts: Vec<Act>) -> Begun {
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
        let (call, a) = match OLD.iter().find(|(old, ..)| *old == call) {
            Some((_, new, arguments)) => (*new, arguments(a)),
            None => (call, a),
        };
        let FileCall { name, does, .. } = CALLS.iter().find(|known| known.number == call)?;
        let c = Call { thread, name, a };
        match *does {
            Does::Begin(begin) => begin(self, c),
            Does::Write(fd, place, text) => self.write(c, a[fd], place, text),
        }
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

    /// Resolves a name that a call gives by a folder's descriptor, in this argument, and a path in memory, in the next.
    fn given(&self, c: Call, folder: usize, follow: bool) -> Option<ResolvedName> {
        let path = process::path(c.thread, c.a[folder + 1])?;
        self.place(c.thread, c.a[folder] as i32, &path, follow)
    }

    fn inode(&self, metadata: &fs::Metadata) -> Option<Inode> {
        self.inodes.get(&identity(metadata)).copied()
    }

    fn inode_of(&self, path: &Path) -> Option<Inode> {
        self.inode(&fs::symlink_metadata(path).ok()?)
    }

    pub(super) fn held(&self, thread: i32, fd: u64) -> Option<(Inode, String)> {
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
    fn open(&mut self, c: Call) -> Option<Begun> {
        let flags = c.a[2] as i32;
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            let path = process::path(c.thread, c.a[1])?;
            let path = process::meant(c.thread, c.a[0] as i32, &path)?;
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
        let place = self.given(c, 0, follow)?;
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

    /// Its flags are the first word of a structure (openat2(2)).
    fn open_how(&mut self, mut c: Call) -> Option<Begun> {
        c.a[2] = process::word(c.thread, c.a[2])?;
        self.open(c)
    }

    fn make(&mut self, c: Call) -> Option<Begun> {
        Some(create(c, self.given(c, 0, false)?))
    }

    fn make_link(&mut self, c: Call) -> Option<Begun> {
        Some(create(c, self.given(c, 1, false)?))
    }

    /// Of nodes only files are followed; a type of 0 is a file too (mknod(2)).
    fn make_node(&mut self, c: Call) -> Option<Begun> {
        match c.a[2] as u32 & libc::S_IFMT {
            0 | libc::S_IFREG => self.make(c),
            _ => None,
        }
    }

    fn unlink(&mut self, mut c: Call) -> Option<Begun> {
        let place = self.given(c, 0, false)?;
        if c.a[2] & REMOVED_FOLDER != 0 {
            c.name = "rmdir";
        }
        let act = Act::Unlink { name: place.name };
        Some(done(c, place.path, vec![act]))
    }

    fn rename(&mut self, mut c: Call) -> Option<Begun> {
        c.a[4] = 0;
        self.rename_how(c)
    }

    /// A file that leaves the folder is gone, and one that comes in is new; between two names of one file a rename does
    /// nothing (rename(2)).
    fn rename_how(&mut self, c: Call) -> Option<Begun> {
        let from = self.given(c, 0, false);
        let to = self.given(c, 2, false);
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
                let act = match (c.a[4] as u32 & libc::RENAME_EXCHANGE, target) {
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
    fn link(&mut self, c: Call) -> Option<Begun> {
        let path = process::path(c.thread, c.a[1])?;
        let inode = if path.as_os_str().is_empty() {
            self.inode(&process::file_metadata(c.thread, c.a[0] as i32)?)
        } else {
            let source = process::meant(c.thread, c.a[0] as i32, &path)?;
            match c.a[4] as i32 & libc::AT_SYMLINK_FOLLOW {
                0 => self.inode_of(&source),
                _ => self.inode(&fs::metadata(source).ok()?),
            }
        };
        let to = self.given(c, 2, false)?;
        let Some(inode) = inode else {
            return Some(create(c, to));
        };
        let name = to.name;
        Some(done(c, to.path, vec![Act::Link { name, inode }]))
    }

    fn truncate(&mut self, c: Call) -> Option<Begun> {
        let path = process::path(c.thread, c.a[0])?;
        let place = self.place(c.thread, libc::AT_FDCWD, &path, true)?;
        self.resize(c, (self.inode_of(&place.full)?, place.path))
    }

    fn truncate_open(&mut self, c: Call) -> Option<Begun> {
        self.resize(c, self.held(c.thread, c.a[0])?)
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
        let end = from + length;
        if !keeps && end > size {
            acts.push(Act::Resize { inode, size: end });
        } else if !keeps {
            // The file on the disk may be shorter, and is not then (ext4: `ext4_do_fallocate`).
            acts.push(Act::Write {
                inode,
                offset: end,
                data: Vec::new(),
            });
        }
        Some(done(
            c,
            format!("{path}, [{from}, {})", from + length),
            acts,
        ))
    }

    /// An ioctl may share another file's blocks, so that any byte may differ afterwards.
    fn clone_blocks(&mut self, c: Call) -> Option<Begun> {
        if !CLONING.contains(&c.a[1]) {
            return None;
        }
        let (inode, path) = self.held(c.thread, c.a[0])?;
        let mut begun = done(c, format!("{path}, FICLONE"), Vec::new());
        let fd = c.a[0] as i32;
        begun.pending = PendingAct::Whole { fd, inode };
        Some(begun)
    }

    /// The latest mapping of a process that has some of these bytes.
    pub(super) fn mapping(&self, c: Call) -> Option<Mapping> {
        let (at, length) = (c.a[0], c.a[1]);
        let process = self.threads.get(&c.thread)?.process;
        let mappings = &self.processes.get(&process)?.mappings;
        let meets = |m: &&Mapping| at < m.start + m.length && at + length > m.start;
        mappings.iter().rev().find(meets).cloned()
    }

    /// A mapping that becomes writable is compared from now on.
    fn protect(&mut self, c: Call) -> Option<Begun> {
        if c.a[2] as i32 & libc::PROT_WRITE != 0 {
            let mapping = self.mapping(c)?;
            self.mapped.entry(mapping.inode).or_insert(mapping);
        }
        None
    }

    fn move_mapping(&mut self, c: Call) -> Option<Begun> {
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

    /// What is written to a file below the folder is an operation; what is written elsewhere may be a promise.
    fn write(&mut self, c: Call, fd: u64, place: Place, text: Text) -> Option<Begun> {
        let metadata = process::file_metadata(c.thread, fd as i32)?;
        let Some((inode, path)) = self.held(c.thread, fd) else {
            return self.acknowledge(c, (fd, &metadata), text);
        };
        let mut begun = done(c, path, Vec::new());
        begun.pending = PendingAct::Write {
            fd: fd as i32,
            inode,
            at: match (place, c.a[3]) {
                (Place::Offset, offset) if offset != u64::MAX => At::Offset(offset),
                (Place::Word, word) if word != 0 => At::Word(word),
                _ => At::Position,
            },
            flags: if c.name == WITH_FLAGS { c.a[5] } else { 0 },
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
    fn each_call_is_in_the_tables_once_and_an_old_one_leads_to_a_newer() {
        let mut numbers = stopping();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), CALLS.len() + OLD.len());
        let known = |number: i64| CALLS.iter().any(|call| call.number == number);
        assert!(OLD.iter().all(|&(old, new, _)| known(new) && !known(old)));
    }
}
