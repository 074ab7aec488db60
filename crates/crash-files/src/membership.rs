//! Whether a folder that a real file system left after a cut is among those that the model says can be left, and how many
//! those are. `tools/oracle.py` asks it.
//!
//! Names and sizes are chosen in every way that the model allows. For each choice the sectors are independent: each has a
//! beginning of its writes, so that none has to be enumerated with the others.

use std::ffi::OsStr;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::content::FileContent;
use crate::file_system::FileSystem;
use crate::image_choice::Choice;
use crate::model::{Class, EffectKind, Model};
use crate::operations::{Inode, Operation};
use crate::tree::{FileNode, FileTree, ROOT};

/// More choices of names and sizes than this are not tried at one cut.
const MOST_CHOICES: usize = 1 << 18;

/// A recorded run, and what the model says of it on one file system.
pub struct Membership<'a> {
    start: &'a FileTree,
    operations: &'a [Operation],
    model: Model,
    platform: FileSystem,
}

/// Optional effects of a cut, split into names and sizes that are chosen and data that follow.
struct Cut<'a> {
    model: &'a Model,
    optional: Vec<u32>,
    floor: FileTree,
    /// Places among the optional effects: of names and sizes, and for all effects of which of those each needs.
    chosen: Vec<usize>,
    needs: Vec<Vec<usize>>,
}

/// A choice of names and sizes: for each optional effect whether it must be there, and whether it may.
struct Bounds {
    must: Vec<bool>,
    may: Vec<bool>,
}

impl<'a> Membership<'a> {
    pub fn new(
        start: &'a FileTree,
        operations: &'a [Operation],
        platform: FileSystem,
    ) -> Membership<'a> {
        Membership {
            start,
            operations,
            model: Model::new(start, operations, platform),
            platform,
        }
    }

    /// Whether a cut (after so many operations) can leave this folder; nothing if there are too many ways to choose.
    pub fn leaves(&self, cut: u32, left: &FileTree) -> Option<bool> {
        let cut = self.cut(cut);
        let mut found = false;
        let all = cut.choices(&mut |bounds| {
            found = self.matches(&cut, bounds, left);
            !found
        });
        (all || found).then_some(found)
    }

    /// The hashes of all folders that a cut can leave, up to `most` of them; nothing if there may be more.
    ///
    /// Blocks that may hold anything are counted with their data only.
    pub fn all(&self, cut: u32, most: usize) -> Option<FxHashSet<[u8; 32]>> {
        let cut = self.cut(cut);
        let mut found = FxHashSet::default();
        let mut tries = 0;
        let all = cut.choices(&mut |bounds| {
            let sectors: Vec<Vec<usize>> = self.sectors(&cut, bounds);
            let ways = sectors.iter().try_fold(1usize, |ways, sector| {
                ways.checked_mul(sector.len() + 1)
                    .filter(|&ways| ways <= most)
            });
            let Some(ways) = ways.filter(|ways| tries + ways <= most) else {
                return false;
            };
            tries += ways;
            for way in 0..ways {
                let mut present = bounds.must.clone();
                let mut rest = way;
                for sector in &sectors {
                    let count = rest % (sector.len() + 1);
                    rest /= sector.len() + 1;
                    sector[..count]
                        .iter()
                        .for_each(|&place| present[place] = true);
                }
                found.insert(self.tree(&cut, &present).hash().into());
            }
            true
        });
        all.then_some(found)
    }

    fn cut(&self, cut: u32) -> Cut<'_> {
        let model = &self.model;
        let optional = model.optional(cut);
        let mut floor = self.start.clone();
        for &number in model.made_sure[..cut as usize].iter().flatten() {
            model.effects[number as usize].apply(self.operations, &mut floor, false);
        }
        let is_data = |place: usize| model.effects[optional[place] as usize].class() == Class::Data;
        let chosen = (0..optional.len()).filter(|&place| !is_data(place));
        let chosen: Vec<usize> = chosen.collect();
        let needs = |place: usize| {
            let mut alone = Choice::new(model, &optional, false);
            alone.present[place] = true;
            alone.add_needed();
            (0..place).filter(|&other| alone.present[other]).collect()
        };
        let needs = (0..optional.len()).map(needs).collect();
        Cut {
            model,
            floor,
            chosen,
            needs,
            optional,
        }
    }

    /// The data effects that a choice leaves open, by sectors, each in its order.
    fn sectors(&self, cut: &Cut<'_>, bounds: &Bounds) -> Vec<Vec<usize>> {
        let mut found: Vec<Vec<usize>> = Vec::new();
        let mut known: FxHashMap<(Inode, u64), usize> = FxHashMap::default();
        for (place, &number) in cut.optional.iter().enumerate() {
            let EffectKind::Data { inode, offset, .. } = cut.model.effects[number as usize].what
            else {
                continue;
            };
            if bounds.may[place] && !bounds.must[place] {
                let key = (inode, offset / self.platform.unit());
                let at = *known.entry(key).or_insert(found.len());
                if at == found.len() {
                    found.push(Vec::new());
                }
                found[at].push(place);
            }
        }
        found
    }

    fn tree(&self, cut: &Cut<'_>, present: &[bool]) -> FileTree {
        let mut tree = cut.floor.clone();
        for (&number, _) in cut
            .optional
            .iter()
            .zip(present)
            .filter(|(_, there)| **there)
        {
            cut.model.effects[number as usize].apply(self.operations, &mut tree, false);
        }
        tree
    }

    fn matches(&self, cut: &Cut<'_>, bounds: &Bounds, left: &FileTree) -> bool {
        let least = self.tree(cut, &bounds.must);
        let mut same = SameNames::default();
        if !same.below(&least, ROOT, left, ROOT) {
            return false;
        }
        let sizes = same.files.iter().all(|&(own, other)| {
            least.content(own).map(FileContent::size) == left.content(other).map(FileContent::size)
        });
        if !sizes {
            return false;
        }
        let sectors = self.sectors(cut, bounds);
        let unit = self.platform.unit() as usize;
        let mut wrong: FxHashSet<(Inode, u64)> = FxHashSet::default();
        for &(own, other) in &same.files {
            let (bytes, others) = (bytes(&least, own), bytes(left, other));
            let parts = bytes.chunks(unit).zip(others.chunks(unit)).zip(0..);
            wrong.extend(parts.filter(|((a, b), _)| a != b).map(|(_, at)| (own, at)));
        }
        let missing = self.stale(cut, bounds);
        wrong.retain(|sector| !missing.contains(sector));
        let longest = sectors.iter().map(Vec::len).max().unwrap_or(0);
        for count in 1..=longest {
            if wrong.is_empty() {
                break;
            }
            let mut present = bounds.must.clone();
            let some = sectors.iter().flat_map(|sector| sector.iter().take(count));
            some.for_each(|&place| present[place] = true);
            let tree = self.tree(cut, &present);
            wrong.retain(|&(own, at)| {
                let other = same.files.iter().find(|pair| pair.0 == own);
                let other = other.map_or(ROOT, |pair| pair.1);
                let part = |tree, inode| {
                    let bytes = bytes(tree, inode);
                    bytes.chunks(unit).nth(at as usize).map(<[u8]>::to_vec)
                };
                part(&tree, own) != part(left, other)
            });
        }
        wrong.is_empty()
    }

    /// The sectors whose first data may be missing, where they may then hold anything.
    fn stale(&self, cut: &Cut<'_>, bounds: &Bounds) -> FxHashSet<(Inode, u64)> {
        let effects = cut.optional.iter().zip(&bounds.must);
        let missing = effects.filter(|(_, must)| self.platform.shows_stale && !**must);
        let sector = |(&number, _): (&u32, &bool)| match cut.model.effects[number as usize].what {
            EffectKind::Data {
                inode,
                offset,
                fresh: true,
                ..
            } => Some((inode, offset / self.platform.unit())),
            _ => None,
        };
        missing.filter_map(sector).collect()
    }
}

fn bytes(tree: &FileTree, inode: Inode) -> Vec<u8> {
    tree.content(inode)
        .map(FileContent::bytes)
        .unwrap_or_default()
}

impl Cut<'_> {
    /// Gives every allowed choice of names and sizes until it is told to stop. Returns whether all were given.
    fn choices(&self, give: &mut dyn FnMut(&Bounds) -> bool) -> bool {
        let mut left = MOST_CHOICES;
        let mut present = vec![false; self.optional.len()];
        self.choose(0, &mut present, &mut left, give)
    }

    fn choose(
        &self,
        next: usize,
        present: &mut Vec<bool>,
        left: &mut usize,
        give: &mut dyn FnMut(&Bounds) -> bool,
    ) -> bool {
        let Some(&place) = self.chosen.get(next) else {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            return give(&self.bounds(present));
        };
        let is_chosen = |other: &usize| self.chosen.binary_search(other).is_ok();
        let mut needed = self.needs[place].iter().filter(|other| is_chosen(other));
        if needed.all(|&other| present[other]) {
            present[place] = true;
            if !self.choose(next + 1, present, left, give) {
                return false;
            }
        }
        present[place] = false;
        self.choose(next + 1, present, left, give)
    }

    fn bounds(&self, present: &[bool]) -> Bounds {
        let mut must = present.to_vec();
        let given = |place: &usize| present[*place];
        for &place in self.chosen.iter().filter(|place| given(place)) {
            for &needed in &self.needs[place] {
                must[needed] = true;
            }
        }
        let is_chosen = |other: &usize| self.chosen.binary_search(other).is_ok();
        let may = |place: usize| {
            let mut needed = self.needs[place].iter().filter(|other| is_chosen(other));
            must[place] || !is_chosen(&place) && needed.all(|&other| present[other])
        };
        let may = (0..present.len()).map(may).collect();
        Bounds { must, may }
    }
}

/// The inodes of two trees that lie at the same paths.
#[derive(Default)]
struct SameNames {
    own: FxHashMap<Inode, Inode>,
    others: FxHashMap<Inode, Inode>,
    files: Vec<(Inode, Inode)>,
}

impl SameNames {
    /// Whether both have the same names, which lead to the same inodes, but for the contents of files.
    fn below(&mut self, tree: &FileTree, own: Inode, left: &FileTree, other: Inode) -> bool {
        let new = self.own.insert(own, other).is_none_or(|one| one == other)
            && self.others.insert(other, own).is_none_or(|one| one == own);
        if !new {
            return false;
        }
        match (&tree.nodes[own as usize], &left.nodes[other as usize]) {
            (FileNode::Link(one), FileNode::Link(two)) => one == two,
            (FileNode::File(_), FileNode::File(_)) => {
                self.files.push((own, other));
                true
            }
            (FileNode::Folder(names), FileNode::Folder(others)) => {
                names.len() == others.len()
                    && names.iter().all(|(name, &one)| {
                        let two = others.get::<OsStr>(name);
                        two.is_some_and(|&two| self.below(tree, one, left, two))
                    })
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::file_system;
    use crate::model::tests::operations;
    use crate::operations::{Act, Name, Sync};

    fn start() -> FileTree {
        let mut tree = FileTree::empty();
        tree.add(FileNode::empty_file(), 0o644);
        tree.add(FileNode::empty_file(), 0o644);
        tree.apply(&Act::Create {
            name: name("f"),
            inode: 1,
        });
        tree
    }

    fn name(text: &str) -> Name {
        Name {
            folder: ROOT,
            name: text.into(),
        }
    }

    fn write(inode: Inode, offset: u64, data: Vec<u8>) -> Act {
        Act::Write {
            inode,
            offset,
            data,
        }
    }

    /// A tree in which the acts were done one after the other.
    fn done(acts: &[Act]) -> FileTree {
        let mut tree = start();
        acts.iter().for_each(|act| tree.apply(act));
        tree
    }

    fn leaves(platform: &str, acts: &[Act], left: &FileTree) -> bool {
        let (start, operations) = (start(), operations(acts));
        let platform = FileSystem::named(platform).unwrap();
        let one = Membership::new(&start, &operations, platform);
        one.leaves(acts.len() as u32, left).unwrap()
    }

    /// Any of 64 sectors may be missing by itself, in a file whose size is there.
    #[test]
    fn sectors_of_a_write_are_independent() {
        let size = |tree: &mut FileTree| tree.content_mut(1).unwrap().resize(32768);
        let acts = [
            Act::Resize {
                inode: 1,
                size: 32768,
            },
            Act::Sync {
                inode: 1,
                how: Sync::All,
                range: None,
            },
            write(1, 0, vec![7; 32768]),
        ];
        let mut left = start();
        size(&mut left);
        for sector in [0, 5, 63] {
            left.apply(&write(1, sector * 512, vec![7; 512]));
        }
        assert!(leaves("ext4-ordered", &acts, &left));
        left.apply(&write(1, 1024, vec![7; 100]));
        assert!(!leaves("ext4-ordered", &acts, &left), "a torn sector");
    }

    #[test]
    fn what_a_sync_made_sure_is_there_and_one_file_has_two_names() {
        let link = Act::Link {
            name: name("g"),
            inode: 1,
        };
        let sync = Act::Sync {
            inode: 1,
            how: Sync::All,
            range: None,
        };
        let acts = [write(1, 0, b"text".to_vec()), sync, link.clone()];
        assert!(leaves("ext4-ordered", &acts, &done(&acts[..1])));
        assert!(leaves("ext4-ordered", &acts, &done(&acts)));
        assert!(!leaves("ext4-ordered", &acts, &start()));
        assert!(!leaves("ext4-ordered", &acts, &done(&[link])));
        let mut other = done(&acts[..1]);
        other.apply(&Act::Create {
            name: name("g"),
            inode: 2,
        });
        other.apply(&write(2, 0, b"text".to_vec()));
        assert!(!leaves("ext4-ordered", &acts, &other), "two files");
    }

    /// Blocks that never got their data hold anything where the file system shows stale ones, and zeros elsewhere.
    #[test]
    fn stale_blocks_hold_anything() {
        let acts = [write(1, 0, vec![7; 512])];
        let mut left = done(&acts);
        left.apply(&write(1, 0, vec![9; 512]));
        assert!(leaves("ext4-writeback", &acts, &left));
        assert!(!leaves("strict", &acts, &left));
    }

    /// Nothing, the name, zeros or the data: as many as a search would try.
    #[test]
    fn states_are_counted() {
        let acts = [
            Act::Create {
                name: name("g"),
                inode: 2,
            },
            write(2, 0, b"x".to_vec()),
        ];
        let (start, operations) = (start(), operations(&acts));
        let platform = FileSystem::named("ext4-ordered").unwrap();
        let one = Membership::new(&start, &operations, platform);
        let counts = [0, 1, 2].map(|cut| one.all(cut, 100).map(|all| all.len()));
        assert_eq!(counts, [Some(1), Some(2), Some(4)]);
        assert_eq!(one.all(2, 3), None);
    }

    /// What a drawn program has done so far: which names lead to which files.
    struct Drawn {
        random: ChaCha8Rng,
        names: BTreeMap<Name, Inode>,
        acts: Vec<Act>,
    }

    impl Drawn {
        fn below(&mut self, end: u64) -> u64 {
            self.random.random_range(0..end)
        }

        fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
            of[self.below(of.len() as u64) as usize].clone()
        }

        /// One more act on one of three files (1 to 3) with names in two folders (0 and 4), if what was drawn can be done.
        fn act(&mut self) {
            let names = [(ROOT, "f"), (ROOT, "g"), (4, "f"), (4, "g")];
            let names = names.map(|(folder, text)| Name {
                folder,
                name: text.into(),
            });
            let (from, to) = (self.one_of(&names), self.one_of(&names));
            let (held, inode) = (self.names.get(&from).copied(), self.one_of(&[1, 2, 3]));
            let is_free = !self.names.contains_key(&to);
            let is_new = self.names.values().all(|&known| known != inode) && inode != 1;
            let sizes = [0, 100, 700, 4096, 5000, 8192];
            let act = match self.below(12) {
                0 if is_new && is_free => {
                    self.names.insert(to.clone(), inode);
                    Act::Create { name: to, inode }
                }
                1 if held.is_some() && is_free => {
                    let inode = held.expect("it is there");
                    self.names.insert(to.clone(), inode);
                    Act::Link { name: to, inode }
                }
                2 if held.is_some() => {
                    self.names.remove(&from);
                    Act::Unlink { name: from }
                }
                3 | 4 if held.is_some() && self.names.get(&to) != held.as_ref() => {
                    let inode = self.names.remove(&from).expect("it is there");
                    let replaces = self.names.insert(to.clone(), inode).is_some();
                    Act::Rename {
                        from,
                        to,
                        inode,
                        replaces,
                    }
                }
                5..=7 => {
                    let (offset, length) = (self.one_of(&sizes), self.one_of(&[1, 100, 900]));
                    write(inode, offset, vec![b'a' + self.acts.len() as u8; length])
                }
                8 => Act::Resize {
                    inode,
                    size: self.one_of(&sizes),
                },
                9 | 10 => Act::Sync {
                    inode: self.one_of(&[ROOT, 1, 2, 3, 4]),
                    how: self.one_of(&[Sync::All, Sync::Data, Sync::Mapped]),
                    range: self.one_of(&[None, None, Some((0, 600)), Some((4096, 4500))]),
                },
                11 => Act::SyncAll,
                _ => return,
            };
            self.acts.push(act);
        }
    }

    /// Whoever passes under `strict` passes everywhere, but for blocks that are stale: of drawn programs each file system
    /// leaves no folder that it does not.
    #[test]
    fn strict_leaves_all_that_the_others_do() {
        let mut tree = FileTree::empty();
        for _ in 0..3 {
            tree.add(FileNode::empty_file(), 0o644);
        }
        tree.add(FileNode::empty_folder(), 0o755);
        for (text, inode) in [("f", 1), ("d", 4)] {
            tree.apply(&Act::Create {
                name: name(text),
                inode,
            });
        }
        tree.apply(&write(1, 0, vec![b'0'; 600]));
        let (mut compared, mut more) = (0, 0);
        for number in 0..sardonyx_property::count(400, 8000) {
            let seed = sardonyx_property::seed().unwrap_or(0) ^ number;
            let mut drawn = Drawn {
                random: ChaCha8Rng::seed_from_u64(seed),
                names: BTreeMap::from([(name("f"), 1)]),
                acts: Vec::new(),
            };
            while drawn.acts.len() < 5 {
                drawn.act();
            }
            let operations = operations(&drawn.acts);
            let all = |platform: FileSystem, most| {
                Membership::new(&tree, &operations, platform).all(5, most)
            };
            let Some(strict) = all(FileSystem::named("strict").expect("it is known"), 1 << 14)
            else {
                continue;
            };
            for platform in file_system::ALL {
                let Some(own) = all(platform, 1 << 12) else {
                    continue;
                };
                let beyond = own.difference(&strict).count();
                assert_eq!(
                    beyond, 0,
                    "{}, seed {seed}: {:?}",
                    platform.name, drawn.acts
                );
                (compared, more) = (compared + 1, more + usize::from(own.len() < strict.len()));
            }
        }
        assert!(compared > 1000 && more > 300, "{compared}, {more}");
    }
}
