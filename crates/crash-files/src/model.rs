//! The effects that a power cut may leave: every operation as effects, which need each other and become sure by syncs,
//! as a platform has it.
//!
//! A cut leaves every effect that is sure by then, and any others that have begun, as long as each has what it needs.
//! `docs/crash/files.md` has the platforms and their sources.

use std::ffi::OsString;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::content::PAGE;
use crate::file_system::{FileSystem, Journal};
use crate::operations::{Act, Inode, Name, Operation, Sync};
use crate::tree::{FileNode, FileTree};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Data,
    Size,
    Names,
}

#[derive(Clone, Debug)]
pub enum EffectKind {
    /// Part of a sector, from some byte of its operation's data on; `fresh` if it lay beyond the file's end.
    Data {
        inode: Inode,
        offset: u64,
        from: usize,
        length: usize,
        fresh: bool,
    },
    /// `grows` is set if an earlier size that comes later leaves it as it is, `written` if a write made it.
    Size {
        inode: Inode,
        size: u64,
        grows: bool,
        written: bool,
    },
    Names(Vec<(Name, Option<Inode>)>),
}

#[derive(Clone, Debug)]
pub struct Effect {
    pub operation: u32,
    pub what: EffectKind,
    /// Effects without which a cut cannot leave it; all of them come earlier.
    pub needs: Vec<u32>,
    /// The one before it in a journal from which a sync takes some apart: it is needed too, unless it was taken.
    pub after: Option<u32>,
    /// The operation that makes it sure, if one does.
    pub sure: Option<u32>,
}

impl Effect {
    pub fn class(&self) -> Class {
        match self.what {
            EffectKind::Data { .. } => Class::Data,
            EffectKind::Size { .. } => Class::Size,
            EffectKind::Names(_) => Class::Names,
        }
    }

    /// Does the effect to a tree, with `stale` bytes instead of its data if that is set.
    pub fn apply(&self, operations: &[Operation], tree: &mut FileTree, stale: bool) {
        match &self.what {
            EffectKind::Data {
                inode,
                offset,
                from,
                length,
                ..
            } => {
                let Some(content) = tree.content_mut(*inode) else {
                    return;
                };
                match &operations[self.operation as usize].act {
                    _ if stale => content.write(*offset, &vec![STALE; *length]),
                    Act::Write { data, .. } => content.write(*offset, &data[*from..from + length]),
                    _ => content.write(*offset, &vec![0; *length]),
                }
            }
            EffectKind::Size {
                inode, size, grows, ..
            } => {
                if let Some(content) = tree.content_mut(*inode) {
                    match *grows {
                        true => content.resize(content.size().max(*size)),
                        false => content.cut(*size),
                    }
                }
            }
            EffectKind::Names(names) => {
                for (name, target) in names {
                    tree.enter(name.folder, &name.name, *target);
                }
            }
        }
    }
}

/// The bytes of blocks that were another file's: *assumed*, any byte that is unlikely to pass for data.
const STALE: u8 = 0xa5;

#[derive(Debug, Default)]
pub struct Model {
    pub effects: Vec<Effect>,
    pub of_operation: Vec<Range<u32>>,
    pub made_sure: Vec<Vec<u32>>,
}

impl Model {
    pub fn new(start: &FileTree, operations: &[Operation], platform: FileSystem) -> Model {
        let mut builder = Builder::new(start, platform);
        for (number, operation) in operations.iter().enumerate() {
            let from = builder.model.effects.len() as u32;
            builder.number = number as u32;
            builder.model.made_sure.push(Vec::new());
            builder.add(&operation.act);
            builder.model.made_sure[number].sort_unstable();
            let end = builder.model.effects.len() as u32;
            builder.model.of_operation.push(from..end);
        }
        builder.model
    }

    /// The effects that have begun before a cut (after so many operations) and are not sure then.
    pub fn optional(&self, cut: u32) -> Vec<u32> {
        let end = match cut {
            0 => 0,
            cut => self.of_operation[cut as usize - 1].end,
        };
        let open = |number: &u32| {
            let sure = self.effects[*number as usize].sure;
            sure.is_none_or(|operation| operation >= cut)
        };
        (0..end).filter(open).collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct File {
    size: u64,
    /// The last size that data set, and the last that cut something off, with its offset.
    grown: Option<u32>,
    shrunk: Option<(u32, u64)>,
}

/// What of an inode is changed: anything, its size by a write, or what an fdatasync of any of its bytes needs.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Touch {
    Any,
    Grown,
    Set,
}

/// The positions of the journal when an inode was last touched so, or more.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    any: Option<u32>,
    grown: Option<u32>,
    set: Option<u32>,
}

struct Builder {
    model: Model,
    platform: FileSystem,
    number: u32,
    files: FxHashMap<Inode, File>,
    sectors: FxHashMap<(Inode, u64), u32>,
    names: FxHashMap<Name, u32>,
    journal: Option<u32>,
    /// The effects that made names lead to an inode, or removed them; and to which inode each name leads.
    leads: FxHashMap<Inode, Vec<u32>>,
    targets: FxHashMap<Name, Inode>,
    /// Effects that are not sure: data and sizes by file, names by folder.
    open: FxHashMap<Inode, Vec<u32>>,
    touched: FxHashMap<Inode, Touched>,
    /// Sizes that ext4 sets only if the block has no place yet.
    unmapped: FxHashSet<u32>,
    /// Data and sizes that a failed sync did not write, and that no later sync tries again.
    lost: FxHashSet<u32>,
}

impl Builder {
    fn new(start: &FileTree, platform: FileSystem) -> Builder {
        let sizes = start.nodes.iter().enumerate().map(|(inode, _)| {
            let size = start.content(inode as Inode).map_or(0, |c| c.size());
            let file = File {
                size,
                ..File::default()
            };
            (inode as Inode, file)
        });
        let targets = start.nodes.iter().zip(0..).flat_map(|(node, folder)| {
            let entries = match node {
                FileNode::Folder(entries) => Some(entries.iter()),
                FileNode::File(_) | FileNode::Link(_) => None,
            };
            let named = move |(name, inode): (&OsString, &Inode)| {
                let name = name.clone();
                (Name { folder, name }, *inode)
            };
            entries.into_iter().flatten().map(named)
        });
        Builder {
            files: sizes.collect(),
            targets: targets.collect(),
            model: Model::default(),
            platform,
            number: 0,
            sectors: FxHashMap::default(),
            names: FxHashMap::default(),
            journal: None,
            leads: FxHashMap::default(),
            open: FxHashMap::default(),
            touched: FxHashMap::default(),
            unmapped: FxHashSet::default(),
            lost: FxHashSet::default(),
        }
    }

    fn effect(&mut self, what: EffectKind, needs: Vec<u32>) -> u32 {
        let number = self.model.effects.len() as u32;
        let inodes: Vec<Inode> = match &what {
            EffectKind::Data { inode, .. } | EffectKind::Size { inode, .. } => vec![*inode],
            EffectKind::Names(names) => names.iter().map(|(name, _)| name.folder).collect(),
        };
        for inode in inodes {
            let open = self.open.entry(inode).or_default();
            if open.last() != Some(&number) {
                open.push(number);
            }
        }
        self.model.effects.push(Effect {
            operation: self.number,
            what,
            needs,
            after: None,
            sure: None,
        });
        number
    }

    fn add(&mut self, act: &Act) {
        match act {
            Act::Create { name, inode } | Act::Link { name, inode } => {
                self.name(vec![(name.clone(), Some(*inode))], Vec::new());
                // An fdatasync does not need a new link (ext4: `ext4_do_update_inode`).
                let created = matches!(act, Act::Create { .. });
                self.touch(*inode, if created { Touch::Set } else { Touch::Any });
            }
            Act::Unlink { name } => self.name(vec![(name.clone(), None)], Vec::new()),
            Act::Rename {
                from,
                to,
                inode,
                replaces,
            } => self.rename(from, to, *inode, *replaces),
            Act::Exchange { names } => {
                let names = names
                    .iter()
                    .map(|(name, target)| (name.clone(), Some(*target)));
                self.name(names.collect(), Vec::new());
            }
            Act::Write {
                inode,
                offset,
                data,
            } => self.write(*inode, *offset, data.len()),
            Act::Resize { inode, size } => self.resize(*inode, *size),
            Act::Sync { inode, how, range } => self.sync(*inode, *how, *range),
            Act::SyncAll => {
                for number in 0..self.model.effects.len() as u32 {
                    let effect = &self.model.effects[number as usize].what;
                    let in_place = matches!(effect, EffectKind::Data { fresh: false, .. });
                    let flushed = self.platform.sync_flushes || !in_place;
                    if flushed && !self.lost.contains(&number) {
                        self.make_sure(number);
                    }
                }
            }
            Act::Fail { inode } => {
                let effects = &self.model.effects;
                let named = |number: &u32| effects[*number as usize].class() == Class::Names;
                let open = self.open.remove(inode).unwrap_or_default();
                let (names, lost) = open.into_iter().partition(named);
                self.open.insert(*inode, names);
                self.lost.extend::<Vec<u32>>(lost);
            }
            Act::Acknowledge { .. } | Act::Hint { .. } => {}
        }
    }

    fn touch(&mut self, inode: Inode, how: Touch) {
        let touched = self.touched.entry(inode).or_default();
        touched.any = self.journal;
        if how >= Touch::Grown {
            touched.grown = self.journal;
        }
        if how == Touch::Set {
            touched.set = self.journal;
        }
    }

    /// Adds an effect that makes names lead elsewhere, at once.
    fn name(&mut self, names: Vec<(Name, Option<Inode>)>, mut needs: Vec<u32>) {
        let earlier = names.iter().filter_map(|(name, _)| self.names.get(name));
        needs.extend(earlier);
        let number = self.journalled(EffectKind::Names(names.clone()), needs);
        for (name, _) in names {
            let folder = name.folder;
            self.names.insert(name, number);
            self.touch(folder, Touch::Set);
        }
    }

    fn rename(&mut self, from: &Name, to: &Name, inode: Inode, replaces: bool) {
        let (gone, new) = ((from.clone(), None), (to.clone(), Some(inode)));
        // A sync of a folder on btrfs takes what another folder lost or got out of its order.
        let apart = self.platform.journal == Journal::Apart && from.folder != to.folder;
        if !self.has_journal() || apart {
            // The old name goes only after the new one exists, so the file is never lost.
            self.name(vec![new], Vec::new());
            let needs = vec![self.names[to]];
            self.name(vec![gone], needs);
        } else {
            // It starts the write of new blocks, with their sizes, and nothing waits for its end (`ext4_alloc_da_blocks`).
            let effects = &self.model.effects;
            let sized = |number: &&u32| effects[**number as usize].class() == Class::Size;
            let open = self.open.get(&inode).into_iter().flatten();
            let open = open.filter(|_| replaces && self.platform.rename_after_sizes);
            let sizes = open.filter(sized).copied().collect();
            self.name(vec![gone, new], sizes);
        }
        self.touch(inode, Touch::Any);
    }

    fn write(&mut self, inode: Inode, offset: u64, length: usize) {
        let mut file = self.files.get(&inode).copied().unwrap_or_default();
        let (size, end) = (file.size, offset + length as u64);
        if length == 0 && self.is_short_of(inode, end) {
            let needs = file.shrunk.map(|(number, _)| number).into_iter().collect();
            let what = EffectKind::Size {
                inode,
                size: end,
                grows: true,
                written: true,
            };
            self.after_journal(what, needs);
        }
        let unit = self.platform.unit();
        let mut at = offset;
        let mut page_data = Vec::new();
        while at < end {
            let next = ((at / unit + 1) * unit).min(end);
            let number = self.sector(inode, &file, (offset, at, next));
            page_data.push(number);
            if next == end || next.is_multiple_of(PAGE as u64) {
                let data = std::mem::take(&mut page_data);
                let reached = match next > size {
                    true => next,
                    false => next.next_multiple_of(PAGE as u64).min(size),
                };
                if next > size || self.is_short_of(inode, reached) {
                    // A later part may be written first, and its size with it.
                    let mut needs = match self.platform.size_after_data {
                        true => data,
                        false => file.grown.filter(|_| next > size).into_iter().collect(),
                    };
                    needs.extend(file.shrunk.map(|(number, _)| number));
                    let what = EffectKind::Size {
                        inode,
                        size: reached,
                        grows: true,
                        written: true,
                    };
                    let number = self.after_journal(what, needs);
                    if next <= size && !self.platform.size_after_data {
                        self.unmapped.insert(number);
                    }
                    file.grown = file.grown.filter(|_| next <= size).or(Some(number));
                }
            }
            at = next;
        }
        file.size = size.max(end);
        self.files.insert(inode, file);
        let how = if end > size { Touch::Grown } else { Touch::Any };
        self.touch(inode, how);
    }

    /// Whether a file may be shorter on the disk than this, because a size beyond it is open, and none is just this.
    fn is_short_of(&self, inode: Inode, reached: u64) -> bool {
        let open = self.open.get(&inode).into_iter().flatten();
        let sizes: Vec<u64> = open
            .filter_map(|&number| match self.model.effects[number as usize].what {
                EffectKind::Size {
                    size,
                    written: true,
                    ..
                } => Some(size),
                _ => None,
            })
            .collect();
        sizes.iter().any(|&size| size > reached) && !sizes.contains(&reached)
    }

    /// Part of a sector, from `at` to `next`, of a write that begins at an offset.
    fn sector(&mut self, inode: Inode, file: &File, (offset, at, next): (u64, u64, u64)) -> u32 {
        let key = (inode, at / self.platform.unit());
        let mut needs: Vec<u32> = self.sectors.get(&key).copied().into_iter().collect();
        // In the block in which a truncation ended, data may be there before the size.
        if let Some((number, size)) = file.shrunk
            && next > size.next_multiple_of(PAGE as u64)
        {
            needs.push(number);
        }
        let what = EffectKind::Data {
            inode,
            offset: at,
            from: (at - offset) as usize,
            length: (next - at) as usize,
            fresh: at >= file.size,
        };
        // Where blocks are never written in place, data become part of the file in the same order.
        let number = match self.platform.journal {
            Journal::Apart => self.after_journal(what, needs),
            _ => self.effect(what, needs),
        };
        self.sectors.insert(key, number);
        number
    }

    fn resize(&mut self, inode: Inode, size: u64) {
        let mut file = self.files.get(&inode).copied().unwrap_or_default();
        if size == file.size {
            return;
        }
        let mut needs: Vec<u32> = file.shrunk.map(|(number, _)| number).into_iter().collect();
        if size < file.size {
            // The rest of its last block becomes zeros, as data do (ext4: `ext4_block_truncate_page`).
            let zeros = self.model.effects.len() as u32;
            let end = file.size.min(size.next_multiple_of(PAGE as u64));
            let unit = self.platform.unit();
            let mut at = size;
            while at < end {
                let next = ((at / unit + 1) * unit).min(end);
                self.sector(inode, &file, (size, at, next));
                at = next;
            }
            // Data that it cuts off do not matter any more, and may not come back after it.
            let effects = &self.model.effects;
            let beyond = |number: &&u32| match &effects[**number as usize].what {
                EffectKind::Data { offset, length, .. } => offset + *length as u64 > size,
                EffectKind::Size { .. } => true,
                EffectKind::Names(_) => false,
            };
            let open = self.open.get(&inode);
            let open = open.into_iter().flatten().filter(beyond);
            needs.extend(open.filter(|number| self.platform.zeros_first || **number < zeros));
        }
        let grows = size > file.size;
        let what = EffectKind::Size {
            inode,
            size,
            grows,
            written: false,
        };
        let number = self.journalled(what, needs);
        if size < file.size {
            file.shrunk = Some((number, size));
        }
        file.size = size;
        self.files.insert(inode, file);
        self.touch(inode, Touch::Set);
    }

    fn sync(&mut self, inode: Inode, how: Sync, range: Option<(u64, u64)>) {
        let open = self.open.remove(&inode).unwrap_or_default();
        let mut grown = range.is_none();
        for &number in &open {
            let effect = &self.model.effects[number as usize].what;
            let within = match effect {
                EffectKind::Data { offset, length, .. } => {
                    range.is_none_or(|(from, end)| *offset < end && offset + *length as u64 > from)
                }
                // A size that does not end in the range's blocks is that of data which are not synced.
                EffectKind::Size { written, size, .. } => {
                    let page = PAGE as u64;
                    let met = |(from, end): (u64, u64)| {
                        let within =
                            *size > from / page * page && *size <= end.next_multiple_of(page);
                        within && !self.unmapped.contains(&number)
                    };
                    (how != Sync::Mapped || self.has_journal())
                        && (!written || range.is_none_or(met))
                }
                EffectKind::Names(_) => true,
            };
            if within {
                grown |= matches!(effect, EffectKind::Size { .. });
                self.make_sure(number);
            } else if self.platform.journal == Journal::Apart {
                // Btrfs may log the whole file (`btrfs_sync_file`, a full sync).
                self.model.effects[number as usize].after = None;
            }
        }
        let still = |number: &u32| self.model.effects[*number as usize].sure.is_none();
        let open = open.into_iter().filter(still).collect();
        self.open.insert(inode, open);
        let touched = self.touched.get(&inode).copied().unwrap_or_default();
        let until = match how {
            Sync::All => touched.any,
            Sync::Data | Sync::Mapped if grown => touched.grown,
            Sync::Data | Sync::Mapped => touched.set,
        };
        match (self.platform.journal, until) {
            (Journal::Whole, Some(until)) => self.make_sure(until),
            (Journal::Apart, _) => self.log_names(inode),
            _ => {}
        }
    }

    /// Makes the names that lead to an inode sure, and the folders that they lie in.
    fn log_names(&mut self, inode: Inode) {
        let mut left = vec![inode];
        let mut known = FxHashSet::default();
        while let Some(inode) = left.pop().filter(|inode| known.insert(*inode)) {
            for number in self.leads.get(&inode).cloned().unwrap_or_default() {
                self.make_sure(number);
                if let EffectKind::Names(names) = &self.model.effects[number as usize].what {
                    left.extend(names.iter().map(|(name, _)| name.folder));
                }
            }
        }
    }

    fn has_journal(&self) -> bool {
        self.platform.journal != Journal::None
    }

    /// Adds an effect to the journal, if there is one.
    fn journalled(&mut self, what: EffectKind, needs: Vec<u32>) -> u32 {
        if let EffectKind::Names(names) = &what {
            let number = self.model.effects.len() as u32;
            for (name, inode) in names {
                let before = match inode {
                    Some(inode) => self.targets.insert(name.clone(), *inode),
                    None => self.targets.remove(name),
                };
                // Btrfs logs that a file has lost a name too; a file that another one replaced is left out.
                if let Some(inode) = inode.or(before) {
                    self.leads.entry(inode).or_default().push(number);
                }
            }
        }
        let number = self.after_journal(what, needs);
        self.journal = Some(number);
        number
    }

    /// Adds an effect that a cut leaves only with all that is in the journal by now.
    fn after_journal(&mut self, what: EffectKind, mut needs: Vec<u32>) -> u32 {
        let before = self.journal;
        if self.platform.journal == Journal::Whole {
            needs.extend(before);
        }
        let number = self.effect(what, needs);
        if self.platform.journal == Journal::Apart {
            self.model.effects[number as usize].after = before;
        }
        number
    }

    fn make_sure(&mut self, number: u32) {
        let mut left = vec![number];
        while let Some(number) = left.pop() {
            let effect = &mut self.model.effects[number as usize];
            if effect.sure.is_none() {
                effect.sure = Some(self.number);
                // A later size does not bring lost data back, but later data of the sector do.
                let brings = effect.class() == Class::Data;
                let needs = effect.needs.iter().copied();
                left.extend(needs.filter(|need| brings || !self.lost.contains(need)));
                self.model.made_sure[self.number as usize].push(number);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::image_choice::Choice;
    use crate::tree::ROOT;
    use std::collections::BTreeSet;

    fn name(text: &str) -> Name {
        Name {
            folder: ROOT,
            name: text.into(),
        }
    }

    fn write(inode: Inode, offset: u64, text: &str) -> Act {
        Act::Write {
            inode,
            offset,
            data: text.into(),
        }
    }

    fn fsync(inode: Inode) -> Act {
        Act::Sync {
            inode,
            how: Sync::All,
            range: None,
        }
    }

    fn create(text: &str, inode: Inode) -> Act {
        Act::Create {
            name: name(text),
            inode,
        }
    }

    /// A folder (0) with a file `f` (1) that holds "old", two files without names (2, 3) and such a folder (4).
    fn start() -> FileTree {
        let mut tree = FileTree::empty();
        for _ in 0..3 {
            tree.add(FileNode::empty_file(), 0o644);
        }
        tree.add(FileNode::empty_folder(), 0o755);
        tree.apply(&create("f", 1));
        tree.apply(&write(1, 0, "old"));
        tree
    }

    pub fn operations(acts: &[Act]) -> Vec<Operation> {
        let operation = |act: &Act| Operation {
            act: act.clone(),
            shown: String::new(),
            path: String::new(),
            command: 0,
            thread: 0,
            site: 0,
        };
        acts.iter().map(operation).collect()
    }

    /// All contents of `f`, `g` and `t` after a cut at the end, with a dash for a missing file.
    fn left(platform: &str, acts: &[Act]) -> BTreeSet<String> {
        let operations = operations(acts);
        let model = Model::new(&start(), &operations, FileSystem::named(platform).unwrap());
        let optional = model.optional(acts.len() as u32);
        assert!(optional.len() < 16, "all subsets are tried");
        let mut found = BTreeSet::new();
        for subset in 0..1u32 << optional.len() {
            let mut choice = Choice::new(&model, &optional, false);
            for (place, present) in choice.present.iter_mut().enumerate() {
                *present = subset >> place & 1 == 1;
            }
            choice.drop_needy();
            let there = choice.list();
            let mut tree = start();
            for number in 0..model.effects.len() as u32 {
                if !optional.contains(&number) || there.contains(&number) {
                    model.effects[number as usize].apply(&operations, &mut tree, false);
                }
            }
            found.insert(text(&tree));
        }
        found
    }

    fn text(tree: &FileTree) -> String {
        let FileNode::Folder(entries) = &tree.nodes[ROOT as usize] else {
            unreachable!("the root is a folder");
        };
        let held = |name: &&str| {
            let inode = entries.get(std::ffi::OsStr::new(name))?;
            let bytes = tree.content(*inode)?.bytes();
            Some(String::from_utf8_lossy(&bytes).replace('\0', "0"))
        };
        let names = ["f", "g", "t"];
        let all = names.iter().map(|name| held(name).unwrap_or("-".into()));
        all.collect::<Vec<_>>().join(" ")
    }

    fn set(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    fn replaced(synced: bool) -> Vec<Act> {
        let mut acts = vec![create("t", 2), write(2, 0, "new")];
        acts.extend(synced.then(|| fsync(2)));
        acts.push(Act::Rename {
            from: name("t"),
            to: name("f"),
            inode: 2,
            replaces: true,
        });
        acts
    }

    #[test]
    fn a_rename_over_a_file_leaves_no_empty_one_on_ext4_and_may_leave_zeros() {
        let unsynced = |platform| left(platform, &replaced(false));
        let whole = set(&[
            "old - -",
            "old - ",
            "old - 000",
            "old - new",
            "000 - -",
            "new - -",
        ]);
        assert_eq!(unsynced("ext4-ordered"), whole);
        let writeback = set(&[
            "old - -",
            "old - ",
            "old - 000",
            "old - new",
            " - -",
            "000 - -",
            "new - -",
        ]);
        assert_eq!(unsynced("ext4-writeback"), writeback);
        let synced = left("ext4-ordered", &replaced(true));
        assert_eq!(synced, set(&["old - new", "new - -"]));
        let strict = left("strict", &replaced(true));
        assert_eq!(
            strict,
            set(&["old - -", "old - new", "new - -", "new - new"])
        );
    }

    #[test]
    fn a_sync_of_a_file_makes_its_name_sure_where_there_is_a_journal() {
        let acts = [create("g", 2), write(2, 0, "g"), fsync(2)];
        assert_eq!(left("ext4-ordered", &acts), set(&["old g -"]));
        assert_eq!(left("strict", &acts), set(&["old - -", "old g -"]));
        let folder = [&acts[..], &[fsync(ROOT)]].concat();
        assert_eq!(left("strict", &folder), set(&["old g -"]));
    }

    #[test]
    fn a_sync_reaches_what_was_done_before_the_file_was_changed_last_and_not_after() {
        let acts = [write(1, 0, "new"), create("g", 2), fsync(1)];
        assert_eq!(left("ext4-ordered", &acts), set(&["new - -", "new  -"]));
        let acts = [create("g", 2), write(1, 0, "new"), fsync(1)];
        assert_eq!(left("ext4-ordered", &acts), set(&["new  -"]));
    }

    /// An fdatasync does not wait for a link (ext4), nor does a sync of a range for what lies beyond its last block.
    #[test]
    fn a_data_sync_leaves_out_links_and_sizes_beyond_its_range() {
        let link = Act::Link {
            name: name("g"),
            inode: 1,
        };
        let sync = |range| Act::Sync {
            inode: 1,
            how: Sync::Data,
            range,
        };
        let acts = [link.clone(), sync(None)];
        assert_eq!(left("ext4-ordered", &acts), set(&["old - -", "old old -"]));
        let acts = [
            create("g", 2),
            write(1, 4096, "x"),
            write(1, 0, "n"),
            sync(Some((0, 1))),
        ];
        let found = left("ext4-ordered", &acts);
        assert!(found.contains("nld - -"), "size and name are missing");
        assert!(
            !found.iter().any(|one| one.starts_with('o')),
            "the data are there"
        );
    }

    /// The size on the disk ends with the blocks that were written, though the file has grown beyond them.
    #[test]
    fn a_block_below_the_end_may_be_the_last_on_the_disk() {
        let acts = [write(1, 8192, "x"), write(1, 4096, "y")];
        let one = format!("old{}y{} - -", "0".repeat(4093), "0".repeat(4095));
        assert!(left("xfs", &acts).contains(&one));
        assert!(left("ext4-ordered", &acts).contains(&one));
        assert!(
            !left("xfs", &acts[..1])
                .iter()
                .any(|text| text.len() == one.len())
        );
    }

    #[test]
    fn a_sync_of_a_later_block_leaves_out_an_earlier_one() {
        let sync = Act::Sync {
            inode: 2,
            how: Sync::All,
            range: Some((4096, 4097)),
        };
        let acts = [
            create("g", 2),
            write(2, 0, &"x".repeat(4096)),
            write(2, 4096, "y"),
            sync,
        ];
        let hole = format!("old {}y -", "0".repeat(4096));
        assert!(left("xfs", &acts).contains(&hole));
    }

    /// XFS's `sync` writes what is overwritten in place and does not flush the disk if the log has nothing to write.
    #[test]
    fn a_sync_of_all_leaves_out_what_xfs_overwrites() {
        let acts = [write(1, 0, "new"), create("g", 2), Act::SyncAll];
        assert_eq!(left("xfs", &acts), set(&["new  -", "old  -"]));
        assert_eq!(left("ext4-ordered", &acts), set(&["new  -"]));
    }

    /// A rename between folders: a sync of the new one on btrfs leaves the old name until the journal is written.
    #[test]
    fn btrfs_may_leave_a_renamed_file_in_both_folders() {
        let below = Name {
            folder: 4,
            name: "h".into(),
        };
        let rename = Act::Rename {
            from: name("f"),
            to: below,
            inode: 1,
            replaces: false,
        };
        let acts = [rename, fsync(4)];
        assert_eq!(left("btrfs", &acts), set(&["old - -", "- - -"]));
        assert_eq!(left("xfs", &acts), set(&["- - -"]));
    }

    /// Btrfs logs with a file that it has lost its name, and not what was done to others before.
    #[test]
    fn btrfs_syncs_a_file_without_a_name() {
        let gone = Act::Unlink { name: name("f") };
        let acts = [create("g", 2), gone, write(1, 0, "new"), fsync(1)];
        assert_eq!(left("btrfs", &acts), set(&["- - -", "-  -"]));
    }

    /// The zeros of a truncation may be there before its size, and a later block before an earlier one.
    #[test]
    fn a_truncation_writes_zeros_first_and_blocks_come_in_any_order() {
        let cut = Act::Resize { inode: 1, size: 1 };
        let states = set(&["old - -", "o00 - -", "o - -"]);
        assert_eq!(left("xfs", std::slice::from_ref(&cut)), states);
        let acts = [cut, Act::Resize { inode: 1, size: 3 }];
        let back = |platform| left(platform, &acts[..]).iter().any(|one| one == "old - -");
        assert!(back("xfs") && back("ext4-ordered"), "nothing is durable");
        let sync = Act::Sync {
            inode: 1,
            how: Sync::Data,
            range: Some((4096, 4097)),
        };
        let acts = [&acts[..], &[sync]].concat();
        assert!(
            left("xfs", &acts).contains("old - -"),
            "it was cut off, and is there again"
        );
        assert_eq!(left("ext4-ordered", &acts), set(&["o00 - -"]));
        let acts = [write(1, 3, "er"), write(1, 4096, "x")];
        let sizes: BTreeSet<usize> = left("xfs", &acts).iter().map(|one| one.len() - 4).collect();
        assert_eq!(sizes, BTreeSet::from([3, 5, 4097]));
        let beyond = format!("old{}x - -", "0".repeat(4093));
        assert!(
            left("xfs", &acts).contains(&beyond),
            "the first block's data are missing"
        );
    }

    #[test]
    fn what_a_truncation_cuts_off_does_not_come_back() {
        let empty = Act::Resize { inode: 1, size: 0 };
        let acts = [write(1, 3, "er"), empty.clone(), write(1, 0, "x")];
        let found = left("strict", &acts);
        let all = [
            " - -",
            "0 - -",
            "x - -",
            "old - -",
            "old00 - -",
            "older - -",
        ];
        assert_eq!(found, set(&all));
    }

    #[test]
    fn an_msync_reaches_its_range() {
        let sync = |from, end| Act::Sync {
            inode: 1,
            how: Sync::Mapped,
            range: Some((from, end)),
        };
        let acts = [write(1, 0, "n"), sync(4096, 8192)];
        assert_eq!(left("ext4-ordered", &acts).len(), 2);
        let acts = [write(1, 0, "n"), sync(0, 4096)];
        assert_eq!(left("strict", &acts), set(&["nld - -"]));
    }

    /// XFS keeps names in order as ext4 does, and writes no data before a rename over a file.
    #[test]
    fn xfs_may_leave_an_empty_file_after_a_rename_and_no_size_before_its_data() {
        let all = set(&["old - -", "old - ", "old - new", " - -", "new - -"]);
        assert_eq!(left("xfs", &replaced(false)), all);
        let grown = [write(1, 3, "er")];
        assert_eq!(left("xfs", &grown), set(&["old - -", "older - -"]));
        let ext4 = left("ext4-ordered", &grown);
        assert_eq!(ext4, set(&["old - -", "old00 - -", "older - -"]));
    }

    /// On btrfs a sync of a file takes its own names out of their order, and nothing else.
    #[test]
    fn btrfs_syncs_a_file_with_its_names_and_not_what_was_done_before() {
        let acts = [create("t", 3), create("g", 2), write(2, 0, "g"), fsync(2)];
        assert_eq!(left("btrfs", &acts), set(&["old g -", "old g "]));
        assert_eq!(left("ext4-ordered", &acts), set(&["old g "]));
        let mut later = acts.to_vec();
        later.push(Act::Rename {
            from: name("g"),
            to: name("f"),
            inode: 2,
            replaces: true,
        });
        let found = left("btrfs", &later);
        assert_eq!(found, set(&["old g -", "old g ", "g - "]));
    }

    /// A write within an atomic page is whole or not there.
    #[test]
    fn an_atomic_page_is_not_torn() {
        let long = "x".repeat(1024);
        let states = |sector, page| {
            let platform = FileSystem::named("xfs")
                .unwrap()
                .with(sector, page)
                .unwrap();
            let acts = [write(1, 0, &long)];
            let operation = |act: &Act| Operation {
                act: act.clone(),
                shown: String::new(),
                path: String::new(),
                command: 0,
                thread: 0,
                site: 0,
            };
            let operations: Vec<Operation> = acts.iter().map(operation).collect();
            let model = Model::new(&start(), &operations, platform);
            let data = |effect: &&Effect| effect.class() == Class::Data;
            model.effects.iter().filter(data).count()
        };
        assert_eq!([states(0, 0), states(4096, 0), states(0, 4096)], [2, 1, 1]);
    }
}
