//! System calls as operations on the files below the folder. The objects of a call are looked up when it begins, and
//! its effect when it has ended.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::content::FileContent;
use crate::operations::{Act, Name, Sync};
use crate::recording::process::{self, identity};
use crate::recording::{Mapping, OtherAcks, Recorder};
use crate::tree::{FileNode, Inode, MOST_BYTES};

pub(super) const STOPPING: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_ioctl,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_msync,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_io_submit,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
];

/// Calls that the recorded program finds missing, as on an older kernel, because they cannot be followed.
pub(super) const MISSING: &[i64] = &[libc::SYS_io_uring_setup];

/// Requests of ioctl that share another file's blocks (`FICLONE`, `FICLONERANGE`).
const CLONING: [u64; 2] = [0x4004_9409, 0x4020_940d];
const DATA_SYNC: i32 = libc::O_DSYNC;
const SYNC: i32 = libc::O_SYNC & !libc::O_DSYNC;

/// The place at which a write begins.
#[derive(Debug)]
pub(super) enum At {
    /// It ends at the descriptor's position.
    Position,
    Offset(u64),
    /// It ends at the position in a word of the caller's.
    Word(u64),
}

/// The operation to record when a call has succeeded.
#[derive(Debug)]
pub(super) enum PendingAct {
    Done(Vec<Act>),
    Create {
        name: Name,
        path: PathBuf,
    },
    Anonymous,
    Write {
        fd: i32,
        inode: Inode,
        at: At,
        flags: u64,
    },
    /// Any byte of the file may differ from before.
    Whole {
        fd: i32,
        inode: Inode,
    },
    Map(Mapping),
    Acknowledge {
        operation: usize,
    },
}

/// A call that has begun: its name, its objects, and the operation to record.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) shown: String,
    pub(super) path: String,
    pub(super) pending: PendingAct,
    pub(super) site: u32,
}

/// A name below the folder, with its folder and its path.
struct ResolvedName {
    name: Name,
    full: PathBuf,
    path: String,
}

impl Recorder {
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
    fn given(&self, thread: i32, folder: u64, path: u64, follow: bool) -> Option<ResolvedName> {
        let path = process::path(thread, path)?;
        self.place(thread, folder as i32, &path, follow)
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

    /// The operation that a call is about to do, if it has to be recorded.
    pub(super) fn begin(&mut self, thread: i32, call: i64, a: [u64; 6]) -> Option<Begun> {
        let here = libc::AT_FDCWD as u64;
        let (call, a) = general(call, a);
        match call {
            libc::SYS_openat => self.open(thread, a[0], a[1], a[2] as i32),
            libc::SYS_openat2 => {
                let flags = process::word(thread, a[2])?;
                self.open(thread, a[0], a[1], flags as i32)
            }
            libc::SYS_renameat => self.rename(thread, [a[0], a[1], a[2], a[3]], 0),
            libc::SYS_renameat2 => self.rename(thread, [a[0], a[1], a[2], a[3]], a[4] as u32),
            libc::SYS_linkat => self.link(thread, [a[0], a[1], a[2], a[3]], a[4] as i32),
            libc::SYS_unlinkat => {
                let place = self.given(thread, a[0], a[1], false)?;
                let call = match a[2] as i32 & libc::AT_REMOVEDIR {
                    0 => "unlink",
                    _ => "rmdir",
                };
                let act = Act::Unlink { name: place.name };
                Some(self.done(call, place.path, vec![act]))
            }
            libc::SYS_mkdirat => self.create("mkdir", self.given(thread, a[0], a[1], false)?),
            libc::SYS_mknodat if matches!(a[2] as u32 & libc::S_IFMT, 0 | libc::S_IFREG) => {
                self.create("mknod", self.given(thread, a[0], a[1], false)?)
            }
            libc::SYS_symlinkat => self.create("symlink", self.given(thread, a[1], a[2], false)?),
            libc::SYS_truncate => {
                let place = self.given(thread, here, a[0], true)?;
                let inode = self.inode_of(&place.full)?;
                let act = Act::Resize { inode, size: a[1] };
                Some(self.done("truncate", format!("{}, {}", place.path, a[1]), vec![act]))
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                let (inode, path) = self.held(thread, a[0])?;
                let (how, call) = match call {
                    libc::SYS_fsync => (Sync::All, "fsync"),
                    _ => (Sync::Data, "fdatasync"),
                };
                let range = None;
                Some(self.done(call, path, vec![Act::Sync { inode, how, range }]))
            }
            libc::SYS_sync => Some(self.done("sync", String::new(), vec![Act::SyncAll])),
            libc::SYS_syncfs => {
                let same = process::file_metadata(thread, a[0] as i32)?.dev() == self.device;
                same.then(|| self.done("syncfs", String::new(), vec![Act::SyncAll]))
            }
            libc::SYS_msync | libc::SYS_mmap | libc::SYS_mprotect | libc::SYS_mremap => {
                self.memory(thread, call, a)
            }
            _ => self.write(thread, call, a),
        }
    }

    fn done(&self, call: &str, path: String, acts: Vec<Act>) -> Begun {
        let bare = path.split(", ").next().unwrap_or_default().to_owned();
        Begun {
            shown: format!("{call}({path})"),
            path: bare,
            pending: PendingAct::Done(acts),
            site: 0,
        }
    }

    fn create(&self, call: &str, place: ResolvedName) -> Option<Begun> {
        Some(Begun {
            shown: format!("{call}({})", place.path),
            path: place.path,
            pending: PendingAct::Create {
                name: place.name,
                path: place.full,
            },
            site: 0,
        })
    }

    fn open(&self, thread: i32, folder: u64, path: u64, flags: i32) -> Option<Begun> {
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            let path = process::meant(thread, folder as i32, &process::path(thread, path)?)?;
            self.inode(&fs::metadata(path).ok()?)?;
            let mut begun = self.done("open", "O_TMPFILE".to_owned(), Vec::new());
            begun.pending = PendingAct::Anonymous;
            return Some(begun);
        }
        if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
            return None;
        }
        let follow = flags & (libc::O_NOFOLLOW | libc::O_EXCL) == 0;
        let place = self.given(thread, folder, path, follow)?;
        // A pipe, a socket or a device is not followed, and opening it may wait for another process.
        let special = |m: fs::Metadata| !(m.is_file() || m.is_dir() || m.is_symlink());
        if fs::symlink_metadata(&place.full).is_ok_and(special) {
            return None;
        }
        match self.inode_of(&place.full) {
            None if flags & libc::O_CREAT != 0 => self.create("open", place),
            Some(inode) if flags & libc::O_TRUNC != 0 => {
                let acts = vec![Act::Resize { inode, size: 0 }];
                let mut begun = self.done("open", place.path, acts);
                begun.shown = format!("open({}, O_TRUNC)", begun.path);
                Some(begun)
            }
            _ => None,
        }
    }

    fn rename(&mut self, thread: i32, a: [u64; 4], flags: u32) -> Option<Begun> {
        let from = self.given(thread, a[0], a[1], false);
        let to = self.given(thread, a[2], a[3], false);
        let full = |place: &ResolvedName| self.inode_of(&place.full);
        let shown = |place: &Option<ResolvedName>| match place {
            Some(place) => place.path.clone(),
            None => "(elsewhere)".to_owned(),
        };
        let shown = format!("rename({}, {})", shown(&from), shown(&to));
        let (acts, path) = match (from, to) {
            (None, None) => return None,
            (Some(from), None) => (vec![Act::Unlink { name: from.name }], from.path),
            (None, Some(to)) => return self.create("rename", to),
            (Some(from), Some(to)) => {
                let (inode, target) = (full(&from)?, full(&to));
                if target == Some(inode) {
                    return None;
                }
                let act = match (flags & libc::RENAME_EXCHANGE, target) {
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
        let mut begun = self.done("rename", path, acts);
        begun.shown = shown;
        Some(begun)
    }

    fn link(&self, thread: i32, a: [u64; 4], flags: i32) -> Option<Begun> {
        let path = process::path(thread, a[1])?;
        let inode = if path.as_os_str().is_empty() {
            self.inode(&process::file_metadata(thread, a[0] as i32)?)
        } else {
            let source = process::meant(thread, a[0] as i32, &path)?;
            match flags & libc::AT_SYMLINK_FOLLOW {
                0 => self.inode_of(&source),
                _ => self.inode(&fs::metadata(source).ok()?),
            }
        };
        let to = self.given(thread, a[2], a[3], false)?;
        let Some(inode) = inode else {
            return self.create("link", to);
        };
        let name = to.name;
        Some(self.done("link", to.path, vec![Act::Link { name, inode }]))
    }

    fn memory(&mut self, thread: i32, call: i64, a: [u64; 6]) -> Option<Begun> {
        let mapping = |at: u64, length: u64| {
            let process = self.threads.get(&thread)?.process;
            let mappings = &self.processes.get(&process)?.mappings;
            let meets = |m: &&Mapping| at < m.start + m.length && at + length > m.start;
            mappings.iter().rev().find(meets).cloned()
        };
        let writes = a[2] as i32 & libc::PROT_WRITE != 0;
        match call {
            libc::SYS_msync if a[2] as i32 & libc::MS_SYNC != 0 => {
                let mapping = mapping(a[0], a[1])?;
                let from = a[0].saturating_sub(mapping.start) + mapping.offset;
                let end = a[0] + a[1].next_multiple_of(4096);
                let end = end.min(mapping.start + mapping.length) - mapping.start + mapping.offset;
                let act = Act::Sync {
                    inode: mapping.inode,
                    how: Sync::Mapped,
                    range: Some((from, end)),
                };
                let path = format!("{}, [{from}, {end})", mapping.path);
                Some(self.done("msync", path, vec![act]))
            }
            libc::SYS_mprotect if writes => {
                let mapping = mapping(a[0], a[1])?;
                self.mapped.entry(mapping.inode).or_insert(mapping);
                None
            }
            libc::SYS_mremap => {
                let mut mapping = mapping(a[0], a[1])?;
                mapping.offset += a[0].saturating_sub(mapping.start);
                mapping.length = a[2];
                Some(self.map(mapping))
            }
            libc::SYS_mmap if a[3] as i32 & 0xf != libc::MAP_PRIVATE && a[4] as i32 >= 0 => {
                let (inode, path) = self.held(thread, a[4])?;
                let mapping = Mapping {
                    start: 0,
                    length: a[1],
                    offset: a[5],
                    inode,
                    path,
                    file: process::reopen(thread, a[4] as i32)?.into(),
                    site: self.site(thread),
                };
                if writes {
                    self.mapped.entry(inode).or_insert(mapping.clone());
                }
                Some(self.map(mapping))
            }
            _ => None,
        }
    }

    fn map(&self, mapping: Mapping) -> Begun {
        let mut begun = self.done("mmap", mapping.path.clone(), Vec::new());
        begun.pending = PendingAct::Map(mapping);
        begun
    }

    fn write(&mut self, thread: i32, call: i64, a: [u64; 6]) -> Option<Begun> {
        let (name, fd, at, flags) = match call {
            libc::SYS_write => ("write", a[0], At::Position, 0),
            libc::SYS_writev => ("writev", a[0], At::Position, 0),
            libc::SYS_sendfile => ("sendfile", a[0], At::Position, 0),
            libc::SYS_pwrite64 => ("pwrite", a[0], At::Offset(a[3]), 0),
            libc::SYS_pwritev => ("pwritev", a[0], At::Offset(a[3]), 0),
            libc::SYS_pwritev2 if a[3] == u64::MAX => ("pwritev2", a[0], At::Position, a[5]),
            libc::SYS_pwritev2 => ("pwritev2", a[0], At::Offset(a[3]), a[5]),
            libc::SYS_splice | libc::SYS_copy_file_range => {
                let at = match a[3] {
                    0 => At::Position,
                    word => At::Word(word),
                };
                let splice = call == libc::SYS_splice;
                (
                    if splice { "splice" } else { "copy_file_range" },
                    a[2],
                    at,
                    0,
                )
            }
            libc::SYS_ioctl if CLONING.contains(&a[1]) => {
                let (inode, path) = self.held(thread, a[0])?;
                let mut begun = self.done("ioctl", format!("{path}, FICLONE"), Vec::new());
                let fd = a[0] as i32;
                begun.pending = PendingAct::Whole { fd, inode };
                return Some(begun);
            }
            libc::SYS_ftruncate => {
                let (inode, path) = self.held(thread, a[0])?;
                let act = Act::Resize { inode, size: a[1] };
                return Some(self.done("ftruncate", format!("{path}, {}", a[1]), vec![act]));
            }
            libc::SYS_fallocate => {
                return self.allocate(thread, a[0], a[1] as i32, (a[2], a[3]));
            }
            libc::SYS_sendto => ("send", a[0], At::Position, 0),
            libc::SYS_sendmsg => ("sendmsg", a[0], At::Position, 0),
            libc::SYS_sendmmsg => ("sendmmsg", a[0], At::Position, 0),
            libc::SYS_io_submit => {
                self.note("io_submit (Linux AIO) is not recorded; what it wrote is missing");
                return None;
            }
            _ => return None,
        };
        let metadata = process::file_metadata(thread, fd as i32)?;
        let Some((inode, path)) = self.held(thread, fd) else {
            return self.acknowledge(thread, (name, call), (fd, &metadata), a);
        };
        let mut begun = self.done(name, path, Vec::new());
        let fd = fd as i32;
        begun.pending = PendingAct::Write {
            fd,
            inode,
            at,
            flags,
        };
        Some(begun)
    }

    fn allocate(
        &mut self,
        thread: i32,
        fd: u64,
        mode: i32,
        (from, length): (u64, u64),
    ) -> Option<Begun> {
        let (inode, path) = self.held(thread, fd)?;
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
        Some(self.done(
            "fallocate",
            format!("{path}, [{from}, {})", from + length),
            acts,
        ))
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
        thread: i32,
        (name, call): (&str, i64),
        (fd, metadata): (u64, &fs::Metadata),
        a: [u64; 6],
    ) -> Option<Begun> {
        let (output, socket) = (
            self.outputs
                .iter()
                .position(|known| *known == identity(metadata)),
            metadata.file_type().is_socket(),
        );
        let kept = self.is_kept(thread, fd as i32, identity(metadata), socket);
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
        let text = match call {
            _ if !kept => Vec::new(),
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => {
                process::text(thread, a[1], a[2])
            }
            libc::SYS_sendmsg => process::message(thread, a[1]),
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                process::gathered(thread, a[1], a[2])
            }
            _ => {
                self.note(
                    "the program acknowledged by sendmmsg, splice or sendfile; {acks} lacks it",
                );
                Vec::new()
            }
        };
        let to = ["standard output", "standard error"];
        let to = match output {
            Some(number) => to[number].to_owned(),
            None if socket => "a socket".to_owned(),
            None => format!("descriptor {fd}"),
        };
        let mut begun = self.done(name, to, Vec::new());
        begun.path = String::new();
        begun.site = self.site(thread);
        self.compare_mapped(thread, begun.site);
        let operation = self.push(thread, &begun, Act::Acknowledge { text });
        begun.pending = PendingAct::Acknowledge { operation };
        Some(begun)
    }

    pub(super) fn end(&mut self, thread: i32, begun: Begun, answer: i64) {
        if let PendingAct::Acknowledge { operation } = begun.pending {
            if let Act::Acknowledge { text } = &mut self.operations[operation].act {
                text.truncate(answer.max(0) as usize);
            }
            return;
        }
        if answer < 0 {
            return;
        }
        match begun.pending {
            PendingAct::Done(ref acts) => {
                for act in acts.clone() {
                    self.push(thread, &begun, act);
                }
            }
            PendingAct::Create { ref name, ref path } => self.created(thread, &begun, name, path),
            PendingAct::Anonymous => {
                if let Some(metadata) = process::file_metadata(thread, answer as i32) {
                    let inode = self.tree.add(FileNode::empty_file(), metadata.mode());
                    self.start.add(FileNode::empty_file(), metadata.mode());
                    self.inodes.insert(identity(&metadata), inode);
                }
            }
            PendingAct::Write {
                fd,
                inode,
                ref at,
                flags,
            } => {
                let length = answer as u64;
                if let Some((offset, sync)) = written(thread, fd, at, flags, length) {
                    self.wrote(thread, &begun, (fd, inode), (offset, length), sync);
                }
            }
            PendingAct::Whole { fd, inode } => {
                let length = process::file_metadata(thread, fd).map_or(0, |m| m.len());
                self.grown |= length > MOST_BYTES;
                if self.grown {
                    return;
                }
                self.wrote(thread, &begun, (fd, inode), (0, length), None);
            }
            PendingAct::Map(mut mapping) => {
                mapping.start = answer as u64;
                let process = self.threads.get(&thread).map_or(thread, |t| t.process);
                self.processes
                    .entry(process)
                    .or_default()
                    .mappings
                    .push(mapping);
            }
            PendingAct::Acknowledge { .. } => {}
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
        self.push(thread, begun, Act::Create { name, inode });
        // A file that is moved in from elsewhere brings its contents.
        self.grown |= kind.is_file() && metadata.len() > MOST_BYTES;
        if kind.is_file()
            && !self.grown
            && metadata.len() > 0
            && let Ok(content) =
                File::open(path).and_then(|f| FileContent::read(&f, metadata.len(), &|| true))
        {
            let data = content.bytes();
            let offset = 0;
            self.push(
                thread,
                begun,
                Act::Write {
                    inode,
                    offset,
                    data,
                },
            );
        }
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

/// Turns a call that only x86-64 has into the general one, which takes a folder.
#[cfg(target_arch = "x86_64")]
fn general(call: i64, a: [u64; 6]) -> (i64, [u64; 6]) {
    let here = libc::AT_FDCWD as u64;
    match call {
        libc::SYS_open => (libc::SYS_openat, [here, a[0], a[1], a[2], 0, 0]),
        libc::SYS_creat => {
            let flags = (libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY) as u64;
            (libc::SYS_openat, [here, a[0], flags, a[1], 0, 0])
        }
        libc::SYS_rename => (libc::SYS_renameat2, [here, a[0], here, a[1], 0, 0]),
        libc::SYS_link => (libc::SYS_linkat, [here, a[0], here, a[1], 0, 0]),
        libc::SYS_unlink => (libc::SYS_unlinkat, [here, a[0], 0, 0, 0, 0]),
        libc::SYS_rmdir => {
            let flags = libc::AT_REMOVEDIR as u64;
            (libc::SYS_unlinkat, [here, a[0], flags, 0, 0, 0])
        }
        libc::SYS_mkdir => (libc::SYS_mkdirat, [here, a[0], a[1], 0, 0, 0]),
        libc::SYS_mknod => (libc::SYS_mknodat, [here, a[0], a[1], a[2], 0, 0]),
        libc::SYS_symlink => (libc::SYS_symlinkat, [a[0], here, a[1], 0, 0, 0]),
        _ => (call, a),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn general(call: i64, a: [u64; 6]) -> (i64, [u64; 6]) {
    (call, a)
}

/// Finds where a write of this many bytes began, and whether it was synced.
fn written(thread: i32, fd: i32, at: &At, flags: u64, length: u64) -> Option<(u64, Option<Sync>)> {
    let (position, of_file) = process::position(thread, fd)?;
    let size = || process::file_metadata(thread, fd).map(|m| m.len());
    let appends = of_file & libc::O_APPEND != 0 || flags & libc::RWF_APPEND as u64 != 0;
    let end = match at {
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
