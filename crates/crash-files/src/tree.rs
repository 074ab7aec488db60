//! A folder with all in it, by inodes: as it was before the program ran, and as a cut may leave it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sardonyx_crash_test::interrupt::Interrupt;
use sardonyx_crash_test::{CrashTestError, Result};

use crate::content::{FileContent, check};
use crate::operations::{Act, Inode, Name};

pub const ROOT: Inode = 0;
/// A folder's files may have this many bytes in all: *assumed*, what a machine has for each of a few workers.
pub const MOST_BYTES: u64 = 1 << 30;

pub fn too_large(folder: &Path) -> CrashTestError {
    CrashTestError::new(format!(
        "--files {}: its files have more than {MOST_BYTES} bytes, and every image is a copy of them in memory; name a folder with \
         less, or have the program write less",
        folder.display()
    ))
}

#[derive(Clone, Debug)]
pub enum FileNode {
    File(Arc<FileContent>),
    Folder(Arc<BTreeMap<OsString, Inode>>),
    Link(Arc<OsStr>),
}

impl FileNode {
    pub fn empty_file() -> FileNode {
        FileNode::File(Arc::default())
    }

    pub fn empty_folder() -> FileNode {
        FileNode::Folder(Arc::default())
    }
}

/// All inodes that there ever are, whether a name leads to them or not.
#[derive(Clone, Debug)]
pub struct FileTree {
    pub nodes: Vec<FileNode>,
    modes: Arc<Vec<u32>>,
}

impl FileTree {
    #[cfg(test)]
    pub fn empty() -> FileTree {
        let mut tree = FileTree {
            nodes: Vec::new(),
            modes: Arc::default(),
        };
        tree.add(FileNode::empty_folder(), 0o755);
        tree
    }

    /// Reads a folder, and the identity of every inode on its file system. Sockets, pipes and devices are left out.
    ///
    /// # Errors
    /// Something cannot be read; it holds more than [`MOST_BYTES`]; the user wants an end.
    pub fn read(folder: &Path, interrupt: &Interrupt) -> Result<(FileTree, Vec<(u64, u64)>)> {
        let mut tree = FileTree {
            nodes: Vec::new(),
            modes: Arc::default(),
        };
        let mut identities = Vec::new();
        let mut read = 0;
        let done = tree.read_node(folder, &mut identities, &mut read, interrupt);
        interrupt.check()?;
        match done {
            Ok(_) => Ok((tree, identities)),
            Err(_) if read > MOST_BYTES => Err(too_large(folder)),
            Err(e) => Err(CrashTestError::io(folder.display())(e)),
        }
    }

    fn read_node(
        &mut self,
        path: &Path,
        identities: &mut Vec<(u64, u64)>,
        read: &mut u64,
        interrupt: &Interrupt,
    ) -> io::Result<Option<Inode>> {
        let metadata = match identities.is_empty() {
            true => fs::metadata(path)?,
            false => fs::symlink_metadata(path)?,
        };
        let identity = (metadata.dev(), metadata.ino());
        if metadata.nlink() > 1
            && !metadata.is_dir()
            && let Some(known) = identities.iter().position(|known| *known == identity)
        {
            return Ok(Some(known as Inode));
        }
        let kind = metadata.file_type();
        let node = if kind.is_dir() {
            FileNode::empty_folder()
        } else if kind.is_symlink() {
            FileNode::Link(fs::read_link(path)?.as_os_str().into())
        } else if kind.is_file() {
            *read = read.saturating_add(metadata.len());
            if *read > MOST_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let (file, length) = (File::open(path)?, metadata.len());
            FileNode::File(Arc::new(FileContent::read(&file, length, &|| {
                !interrupt.is_set()
            })?))
        } else {
            return Ok(None);
        };
        identities.push(identity);
        let inode = self.add(node, metadata.mode());
        if kind.is_dir() {
            let mut entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let target = self.read_node(&entry.path(), identities, read, interrupt)?;
                if target.is_some() {
                    self.enter(inode, &entry.file_name(), target);
                }
            }
        }
        Ok(Some(inode))
    }

    pub fn add(&mut self, node: FileNode, mode: u32) -> Inode {
        self.nodes.push(node);
        Arc::make_mut(&mut self.modes).push(mode & 0o777);
        (self.nodes.len() - 1) as Inode
    }

    pub fn content(&self, inode: Inode) -> Option<&FileContent> {
        match &self.nodes[inode as usize] {
            FileNode::File(content) => Some(content),
            _ => None,
        }
    }

    /// The bytes of all files, holes included, whether a name leads to them or not.
    pub fn bytes(&self) -> u64 {
        let sizes = self.nodes.iter().map(|node| match node {
            FileNode::File(content) => content.size(),
            FileNode::Folder(_) | FileNode::Link(_) => 0,
        });
        sizes.fold(0, u64::saturating_add)
    }

    pub fn content_mut(&mut self, inode: Inode) -> Option<&mut FileContent> {
        match &mut self.nodes[inode as usize] {
            FileNode::File(content) => Some(Arc::make_mut(content)),
            _ => None,
        }
    }

    /// Makes a name lead to an inode, or to nothing.
    pub fn enter(&mut self, folder: Inode, name: &OsStr, target: Option<Inode>) {
        if let FileNode::Folder(entries) = &mut self.nodes[folder as usize] {
            let entries = Arc::make_mut(entries);
            match target {
                Some(target) => entries.insert(name.to_owned(), target),
                None => entries.remove(name),
            };
        }
    }

    pub fn has(&self, name: &Name) -> bool {
        match &self.nodes[name.folder as usize] {
            FileNode::Folder(entries) => entries.contains_key(&name.name),
            _ => false,
        }
    }

    /// Does an operation, as if nothing were cut.
    pub fn apply(&mut self, act: &Act) {
        let mut enter = |name: &Name, target| self.enter(name.folder, &name.name, target);
        match act {
            Act::Create { name, inode } | Act::Link { name, inode } => enter(name, Some(*inode)),
            Act::Unlink { name } => enter(name, None),
            Act::Rename {
                from, to, inode, ..
            } => {
                enter(from, None);
                enter(to, Some(*inode));
            }
            Act::Exchange { names } => {
                for (name, target) in names {
                    enter(name, Some(*target));
                }
            }
            Act::Write {
                inode,
                offset,
                data,
            } => {
                if let Some(content) = self.content_mut(*inode) {
                    content.write(*offset, data);
                    content.resize(content.size().max(offset + data.len() as u64));
                }
            }
            Act::Resize { inode, size } => {
                if let Some(content) = self.content_mut(*inode) {
                    content.resize(*size);
                }
            }
            Act::Sync { .. }
            | Act::SyncAll
            | Act::Hint { .. }
            | Act::Fail { .. }
            | Act::Acknowledge { .. } => {}
        }
    }

    /// A damaged copy: for [form](damage) 0 an empty folder; for each other form one with the bytes of all files
    /// damaged, and for every second form with one file, another each time, empty.
    pub fn damaged(&self, form: u32) -> FileTree {
        let mut tree = self.clone();
        if form == 0 {
            tree.nodes[ROOT as usize] = FileNode::empty_folder();
            return tree;
        }
        let files: Vec<usize> = (0..tree.nodes.len())
            .filter(|&inode| matches!(tree.nodes[inode], FileNode::File(_)))
            .collect();
        for &inode in &files {
            if let Some(content) = tree.content_mut(inode as Inode) {
                content.damage(form, (inode as u64) << 40);
            }
        }
        if form.is_multiple_of(2) && !files.is_empty() {
            tree.nodes[files[form as usize / 2 % files.len()]] = FileNode::empty_file();
        }
        tree
    }

    /// All files that have a name, each with a path.
    pub fn files(&self) -> impl Iterator<Item = (Inode, String)> {
        let files =
            (0..self.nodes.len()).filter(|&one| matches!(self.nodes[one], FileNode::File(_)));
        files.filter_map(|inode| Some((inode as Inode, self.path(inode as Inode)?)))
    }

    /// A path that leads to an inode, if one does.
    pub fn path(&self, inode: Inode) -> Option<String> {
        self.path_below(ROOT, inode, Path::new(""))
    }

    fn path_below(&self, from: Inode, to: Inode, path: &Path) -> Option<String> {
        if from == to {
            return Some(path.display().to_string());
        }
        let FileNode::Folder(entries) = &self.nodes[from as usize] else {
            return None;
        };
        let mut below = entries.iter();
        below.find_map(|(name, target)| self.path_below(*target, to, &path.join(name)))
    }

    pub fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        self.hash_node(ROOT, &mut hasher, 0);
        hasher.finalize()
    }

    fn hash_node(&self, inode: Inode, hasher: &mut blake3::Hasher, depth: usize) {
        match &self.nodes[inode as usize] {
            FileNode::File(content) => {
                hasher.update(b"f");
                content.hash_into(hasher);
            }
            FileNode::Link(target) => {
                hasher.update(b"l").update(target.as_bytes()).update(b"\0");
            }
            FileNode::Folder(entries) => {
                hasher.update(b"d").update(&entries.len().to_le_bytes());
                for (name, target) in entries.iter().filter(|_| depth < DEEPEST) {
                    hasher.update(name.as_bytes()).update(b"\0");
                    self.hash_node(*target, hasher, depth + 1);
                }
            }
        }
    }

    /// Makes a folder that does not exist, with all of it; `go_on` is asked now and then.
    ///
    /// # Errors
    /// There is no room, or it is not to be made to its end.
    pub fn put(&self, folder: &Path, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.put_node(ROOT, folder, &mut BTreeMap::new(), 0, go_on)
    }

    /// Makes a folder that exists hold all of it, and nothing else.
    ///
    /// # Errors
    /// There is no room, or something may not be removed.
    pub fn restore(&self, folder: &Path, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        let mut made = BTreeMap::new();
        if let FileNode::Folder(entries) = &self.nodes[ROOT as usize] {
            for (name, target) in entries.iter() {
                self.put_node(*target, &folder.join(name), &mut made, 0, go_on)?;
            }
        }
        Ok(())
    }

    fn put_node(
        &self,
        inode: Inode,
        path: &Path,
        made: &mut BTreeMap<Inode, PathBuf>,
        depth: usize,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        check(go_on)?;
        let mode = self.modes[inode as usize];
        match &self.nodes[inode as usize] {
            FileNode::Link(target) => symlink(&**target, path)?,
            FileNode::File(_) if made.contains_key(&inode) => fs::hard_link(&made[&inode], path)?,
            FileNode::File(content) => {
                let file = File::create_new(path)?;
                content.put(&file, go_on)?;
                file.set_permissions(Permissions::from_mode(mode | 0o600))?;
                made.insert(inode, path.to_owned());
            }
            FileNode::Folder(entries) => {
                fs::create_dir(path)?;
                for (name, target) in entries.iter().filter(|_| depth < DEEPEST) {
                    self.put_node(*target, &path.join(name), made, depth + 1, go_on)?;
                }
            }
        }
        Ok(())
    }

    /// The path of the first difference between a folder and this one.
    ///
    /// # Errors
    /// Something cannot be read.
    pub fn difference(&self, folder: &Path, interrupt: &Interrupt) -> Result<Option<String>> {
        let (other, _) = FileTree::read(folder, interrupt)?;
        Ok(self.difference_below(ROOT, &other, ROOT, Path::new("")))
    }

    fn difference_below(
        &self,
        inode: Inode,
        other: &FileTree,
        of_other: Inode,
        path: &Path,
    ) -> Option<String> {
        let shown = || path.display().to_string();
        let (own, others) = (&self.nodes[inode as usize], &other.nodes[of_other as usize]);
        if let (FileNode::Folder(own), FileNode::Folder(others)) = (own, others) {
            for name in own.keys().chain(others.keys()) {
                let path = path.join(name);
                let found = match (own.get(name), others.get(name)) {
                    (Some(&one), Some(&two)) => self.difference_below(one, other, two, &path),
                    _ => Some(path.display().to_string()),
                };
                if found.is_some() {
                    return found;
                }
            }
            return None;
        }
        let hash = |tree: &FileTree, inode| {
            let mut hasher = blake3::Hasher::new();
            tree.hash_node(inode, &mut hasher, 0);
            hasher.finalize()
        };
        (hash(self, inode) != hash(other, of_other)).then(shown)
    }
}

/// Folders are shown to this depth, because a cut may leave a folder that is in itself.
const DEEPEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_back_with_links_of_both_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("from/sub")).unwrap();
        fs::write(at("from/sub/a"), "text").unwrap();
        fs::hard_link(at("from/sub/a"), at("from/b")).unwrap();
        symlink("sub/a", at("from/c")).unwrap();
        let (tree, identities) = FileTree::read(&at("from"), &Interrupt::default()).unwrap();
        assert_eq!(identities.len(), 4);
        tree.put(&at("to"), &|| true).unwrap();
        assert_eq!(fs::read_to_string(at("to/c")).unwrap(), "text");
        assert_eq!(fs::metadata(at("to/b")).unwrap().nlink(), 2);
        assert_eq!(
            tree.difference(&at("to"), &Interrupt::default()).unwrap(),
            None
        );
        fs::write(at("to/sub/a"), "Text").unwrap();
        assert_eq!(
            tree.difference(&at("to"), &Interrupt::default())
                .unwrap()
                .unwrap(),
            "b"
        );
    }

    /// A hole counts too, because a recovery may read it.
    #[test]
    fn a_folder_that_is_too_large_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("large")).unwrap();
        file.set_len(MOST_BYTES + 1).unwrap();
        let error = FileTree::read(folder.path(), &Interrupt::default()).unwrap_err();
        assert!(
            error.to_string().contains("more than 1073741824 bytes"),
            "{error}"
        );
        file.set_len(1).unwrap();
        let interrupt = Interrupt::default();
        interrupt.set();
        let error = FileTree::read(folder.path(), &interrupt).unwrap_err();
        assert!(matches!(error, CrashTestError::Cancelled), "{error}");
    }
}
