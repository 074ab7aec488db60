//! The images that are tried, pass after pass: each is a cut, with some of the effects that are not sure then.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;
use sardonyx_crash_test::images::Given;

use crate::image_order::ImageOrder;
use crate::model::{Class, Model};

#[derive(Clone, Debug)]
pub struct FolderImage {
    /// The number of operations before the cut.
    pub cut: u32,
    /// The effects that it has beyond those that are sure, in their order.
    pub present: Vec<u32>,
    /// Set if blocks without their data hold deleted data instead of zeros.
    pub stale: bool,
}

/// Cuts are tried in this many rounds, each over cuts this far apart, so that cuts left out at the end lie everywhere.
const STRIDE: u32 = 16;
/// At one cut this many parts of operations are left out or alone at most: the last ones, and as many drawn ones.
const PARTS: usize = 32;
/// The images of one cut have at most about this many effects in all; with more effects, fewer parts are tried.
const EFFECTS: usize = 1 << 26;
/// At most this many images are made of one part.
const OF_PART: usize = 6;
/// A round draws this many images of one cut.
const DRAWN: usize = 4;

/// A part of an operation: its effects of one class.
pub type OperationPart = (u32, Class);

/// Such a part, and its effects.
pub type Part = (OperationPart, Vec<u32>);

pub fn parts(model: &Model, effects: &[u32]) -> Vec<Part> {
    let mut found: Vec<Part> = Vec::new();
    let mut places: FxHashMap<OperationPart, usize> = FxHashMap::default();
    for &number in effects {
        let effect = &model.effects[number as usize];
        let part = (effect.operation, effect.class());
        let place = *places.entry(part).or_insert(found.len());
        if place == found.len() {
            found.push((part, Vec::new()));
        }
        found[place].1.push(number);
    }
    found
}

/// A choice among the effects that a cut may leave, as flags of its optional effects.
pub struct Choice<'a> {
    model: &'a Model,
    pub optional: &'a [u32],
    pub present: Vec<bool>,
    first: u32,
    /// For each effect from the first optional one on, its place among them plus 1; 0 if it is sure.
    places: Vec<u32>,
}

impl<'a> Choice<'a> {
    /// Chooses all or none of some effects that are in their order.
    pub fn new(model: &'a Model, optional: &'a [u32], all: bool) -> Choice<'a> {
        let first = optional.first().copied().unwrap_or_default();
        let length = optional.last().map_or(0, |last| last - first + 1);
        let mut places = vec![0; length as usize];
        for (place, number) in (1..).zip(optional) {
            places[(number - first) as usize] = place;
        }
        Choice {
            model,
            optional,
            present: vec![all; optional.len()],
            first,
            places,
        }
    }

    fn place(&self, number: u32) -> Option<usize> {
        let place = *self.places.get(number.checked_sub(self.first)? as usize)?;
        (place as usize).checked_sub(1)
    }

    pub fn set(&mut self, effects: &[u32], present: bool) {
        for &number in effects {
            if let Some(place) = self.place(number) {
                self.present[place] = present;
            }
        }
    }

    /// What an effect needs: of a journal, the nearest before it that a sync has not taken out of its order.
    fn needs(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let effects = &self.model.effects;
        let effect = &effects[number as usize];
        let mut before = effect.after;
        while let Some(sure) = before.filter(|before| self.place(*before).is_none()) {
            before = effects[sure as usize].after;
        }
        effect.needs.iter().copied().chain(before)
    }

    pub fn drop_needy(&mut self) {
        for place in 0..self.optional.len() {
            if self.present[place] {
                let number = self.optional[place];
                let there = |need: u32| self.place(need).is_none_or(|place| self.present[place]);
                let all = self.needs(number).all(there);
                self.present[place] = all;
            }
        }
    }

    pub fn add_needed(&mut self) {
        for place in (0..self.optional.len()).rev() {
            if self.present[place] {
                let needed = self.needs(self.optional[place]);
                let needed: Vec<usize> = needed.filter_map(|need| self.place(need)).collect();
                needed
                    .into_iter()
                    .for_each(|need| self.present[need] = true);
            }
        }
    }

    pub fn list(&self) -> Vec<u32> {
        let both = self.optional.iter().zip(&self.present);
        both.filter(|(_, present)| **present)
            .map(|(&number, _)| number)
            .collect()
    }
}

/// All images, in the order in which they are tried.
pub struct ImagePlan<'a> {
    model: &'a Model,
    order: ImageOrder,
    stale: bool,
    random: ChaCha8Rng,
}

/// The names of the passes; the last is repeated.
pub const PASSES: [&str; 5] = [
    "all and nothing",
    "one left out, one alone",
    "beginnings and torn writes",
    "what the recovery does not read",
    "drawn",
];
/// The passes before this one try what the recovery reads; this one has all that they leave out.
const UNREAD: usize = 3;

impl<'a> ImagePlan<'a> {
    pub fn new(model: &'a Model, order: ImageOrder, stale: bool, seed: u64) -> ImagePlan<'a> {
        ImagePlan {
            model,
            order,
            stale,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// The cut at a position of a pass: cuts that are far apart come first.
    fn cut(&self, at: u32) -> u32 {
        let mut left = at;
        for round in 0..STRIDE {
            let offset = round.reverse_bits() >> (32 - STRIDE.ilog2());
            let count = self.order.cuts().saturating_sub(offset).div_ceil(STRIDE);
            if left < count {
                return offset + left * STRIDE;
            }
            left -= count;
        }
        unreachable!("the position is one of as many as there are cuts")
    }

    /// Offers the images of a pass until there are enough. Returns whether it came to its end.
    pub fn pass(&mut self, pass: usize, give: &mut dyn FnMut(FolderImage) -> Given) -> bool {
        for at in 0..self.order.cuts() {
            for image in self.in_order(pass, self.cut(at)) {
                if give(image) == Given::Enough {
                    return false;
                }
            }
        }
        true
    }

    /// The images of a cut in a pass, those of [`PASSES`].
    fn in_order(&mut self, pass: usize, cut: u32) -> Vec<FolderImage> {
        let fresh = self.order.is_fresh(cut);
        match pass {
            ..UNREAD if fresh => self.at_cut(pass, cut, Some(true)),
            ..UNREAD => Vec::new(),
            UNREAD if fresh => {
                let rest = 1..UNREAD;
                rest.flat_map(|pass| self.at_cut(pass, cut, Some(false)))
                    .collect()
            }
            UNREAD => (0..UNREAD)
                .flat_map(|pass| self.at_cut(pass, cut, None))
                .collect(),
            _ => self.at_cut(pass, cut, None),
        }
    }

    /// The images of a cut by one of the ways, with parts that the recovery reads or not, or any.
    ///
    /// A part is left out of all with what needs it, or put alone with what it needs, so that a journal's rules hold. Stale
    /// blocks can only show where data is missing; a write, or the sizes that it makes, is torn in the middle, and loses its
    /// end, its beginning, or one part between.
    fn at_cut(&mut self, pass: usize, cut: u32, read: Option<bool>) -> Vec<FolderImage> {
        let optional = self.model.optional(cut);
        let mut found = Vec::new();
        let mut add = |choice: &Choice<'_>, stale| {
            found.push(FolderImage {
                cut,
                present: choice.list(),
                stale,
            });
        };
        let choose = |all| Choice::new(self.model, &optional, all);
        let wanted = || {
            let mut parts = parts(self.model, &optional);
            parts.retain(|part| read.is_none_or(|read| self.order.sees_any(&part.1) == read));
            parts
        };
        match pass {
            0 => {
                add(&choose(true), false);
                add(&choose(false), false);
            }
            1 => {
                for (_, effects) in some_parts(wanted(), optional.len(), &mut self.random) {
                    let mut missing = choose(true);
                    missing.set(&effects, false);
                    missing.drop_needy();
                    add(&missing, false);
                    if self.stale {
                        add(&missing, true);
                    }
                    let mut alone = choose(false);
                    alone.set(&effects, true);
                    alone.add_needed();
                    add(&alone, self.stale);
                }
            }
            2 => {
                let some = some_parts(wanted(), optional.len(), &mut self.random);
                for (number, (part, effects)) in some.into_iter().enumerate() {
                    let mut prefix = choose(false);
                    let end = self.model.of_operation[part.0 as usize].end;
                    let until = optional.partition_point(|&number| number < end);
                    prefix.present[..until].fill(true);
                    add(&prefix, false);
                    if part.1 == Class::Names || effects.len() < 2 {
                        continue;
                    }
                    let middle = 1 + self.random.random_range(0..effects.len() - 1);
                    for (torn, stale) in [
                        (&effects[middle..], false),
                        (&effects[..middle], self.stale && number % 2 == 0),
                        (&effects[middle - 1..middle], self.stale && number % 2 == 1),
                    ] {
                        let mut choice = choose(true);
                        choice.set(torn, false);
                        choice.drop_needy();
                        add(&choice, stale);
                    }
                }
            }
            _ => {
                for _ in 0..if optional.is_empty() { 0 } else { DRAWN } {
                    let stale = self.stale && self.random.random_bool(0.5);
                    let choice = drawn(choose(false), &mut self.random);
                    add(&choice, stale);
                }
            }
        }
        found
    }
}

/// The last of the wanted parts, and some of those before.
fn some_parts(mut parts: Vec<Part>, optional: usize, random: &mut impl Rng) -> Vec<Part> {
    let most = PARTS.min(EFFECTS / (2 * OF_PART * optional.max(1))).max(1);
    while parts.len() > most * 2 {
        let early = parts.len() - most;
        parts.swap_remove(random.random_range(0..early));
    }
    parts
}

/// Chooses each operation's part, or each of its sectors, with a probability that is drawn too.
fn drawn<'a>(mut choice: Choice<'a>, random: &mut impl Rng) -> Choice<'a> {
    let share = [0.1, 0.5, 0.9][random.random_range(0..3)];
    let whole = random.random_bool(0.5);
    for (_, effects) in parts(choice.model, choice.optional) {
        let all = random.random_bool(share);
        for &number in &effects {
            let present = if whole {
                all
            } else {
                random.random_bool(share)
            };
            choice.set(&[number], present);
        }
    }
    match random.random_bool(0.5) {
        true => choice.add_needed(),
        false => choice.drop_needy(),
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::file_system::FileSystem;
    use crate::operations::{Act, Operation};
    use crate::reads::RecoveryReads;
    use crate::tree::{FileNode, FileTree};

    /// Two files, of which the recovery reads the first, each written, and then the first again.
    fn recorded() -> (Model, Vec<Operation>) {
        let mut tree = FileTree::empty();
        let operation = |inode, offset| Operation {
            act: Act::Write {
                inode,
                offset,
                data: vec![1; 8],
            },
            shown: String::new(),
            path: String::new(),
            command: 0,
            thread: 0,
            site: 0,
        };
        for _ in 0..2 {
            tree.add(FileNode::empty_file(), 0o644);
        }
        let operations: Vec<Operation> = [(1, 0), (2, 0), (2, 8), (1, 512)]
            .map(|(inode, offset)| operation(inode, offset))
            .into();
        let platform = FileSystem::named("strict").unwrap();
        (Model::new(&tree, &operations, platform), operations)
    }

    /// The images of some passes, each once.
    fn images(model: &Model, order: ImageOrder, passes: &[usize]) -> BTreeSet<(u32, Vec<u32>)> {
        let mut plan = ImagePlan::new(model, order, false, 1);
        let mut found = BTreeSet::new();
        for &pass in passes {
            plan.pass(pass, &mut |image| {
                found.insert((image.cut, image.present));
                Given::Taken
            });
        }
        found
    }

    #[test]
    fn what_the_recovery_reads_comes_first_and_nothing_is_left_out() {
        let (model, operations) = recorded();
        let reads = RecoveryReads::new([(1, std::iter::once(0..4096).collect()), (2, Vec::new())]);
        let order = || ImageOrder::new(&model, &operations, (&reads, false));
        let all = images(&model, ImageOrder::of_all(&model), &[0, 1, 2, UNREAD]);
        let first = images(&model, order(), &[0, 1, 2]);
        assert!(first.len() < all.len(), "{first:?}");
        assert!(first.iter().all(|(cut, _)| [0, 1, 4].contains(cut)));
        assert_eq!(images(&model, order(), &[0, 1, 2, UNREAD]), all);
    }
}
