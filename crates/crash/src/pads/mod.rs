//! All pads of a run, by each of their words: which of them recur in the run, in later lives and after a cut. Left out:
//! what is written outside encrypted lines, and what would be written under another key.

pub(crate) mod chance;
pub(crate) mod encrypted;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use encrypted::{Encrypted, Held, written};

use rustc_hash::FxHashMap;

use crate::pads::chance::{Chance, PIECE_BYTES};
use crate::violation::{Kind, Violation};
use crate::words::WORDS;
use sardonyx::line::{LINE_BYTES, Place};
use sardonyx::plan::journal::Journal;

/// After this many encryptions a bit of a pad that has always been the same is no accident.
const ENOUGH: usize = 128;
/// Pieces of a pad are compared with those of this many older uses of its place.
const OLDER: usize = 256;
const OLDER_PARTS: usize = 32;
const NONE: u32 = u32::MAX;

struct Use {
    what: Encrypted,
    /// The use reaches the array from this position of the journal on.
    from: u32,
    /// At this position a later write is merged over it in its queue, so it no longer reaches the array.
    until: u32,
    /// The index of the use of the same place before it.
    older: u32,
}

impl Use {
    fn has_reached(&self, position: u64) -> bool {
        u64::from(self.from) <= position && position < u64::from(self.until)
    }
}

/// The bits of pads that have always been 1, and those that have always been 0.
struct Bits {
    ones: [u64; WORDS],
    zeros: [u64; WORDS],
    /// The number of writes of each byte, without those at which it kept its ciphertext.
    counts: [usize; LINE_BYTES],
}

impl Default for Bits {
    fn default() -> Bits {
        Bits {
            ones: [u64::MAX; WORDS],
            zeros: [u64::MAX; WORDS],
            counts: [0; LINE_BYTES],
        }
    }
}

impl Bits {
    /// Adds a use, of which the bytes `kept` do not count.
    fn take(&mut self, what: &Encrypted, kept: u64) {
        for word in (0..WORDS).filter(|word| what.carries(*word)) {
            let kept = (kept >> (word * 8)) as u8;
            let mask = match kept {
                0 => 0,
                _ => u64::from_le_bytes(std::array::from_fn(|byte| 0xff * (kept >> byte & 1))),
            };
            self.ones[word] &= what.pad[word] | mask;
            self.zeros[word] &= !what.pad[word] | mask;
            for (byte, count) in self.counts[word * 8..][..8].iter_mut().enumerate() {
                *count += usize::from(kept >> byte & 1 == 0);
            }
        }
    }

    /// Whether a bit has been the same so often that it is no accident.
    fn is_any_the_same(&self) -> bool {
        (0..LINE_BYTES)
            .filter(|byte| self.counts[*byte] >= ENOUGH)
            .any(|byte| {
                let same = self.ones[byte / 8] | self.zeros[byte / 8];
                same >> (byte % 8 * 8) & 0xff != 0
            })
    }
}

/// The pads of one place so far, for telling that none shares a piece with another. All pads are different by rights, so
/// comparing them has to be fast for places that are written ten thousand times.
#[derive(Default)]
struct OfPlace {
    pieces: Vec<[u32; 2 * WORDS]>,
    /// Set if a use did not carry all words.
    is_part: bool,
}

impl OfPlace {
    /// Adds a use. Returns the number of its pieces that were compared with those of the last uses before it if they all
    /// differ; `None` if some are alike, or if some uses carry parts of the line.
    fn add(&mut self, what: &Encrypted) -> Option<u64> {
        let new: [u32; 2 * WORDS] =
            std::array::from_fn(|number| (what.pad[number / 2] >> (number % 2 * 32)) as u32);
        self.is_part |= what.words != 0xff;
        let olds = &self.pieces[self.pieces.len().saturating_sub(OLDER)..];
        let alike = |old: &[u32; 2 * WORDS]| {
            let both = new.iter().zip(old);
            both.fold(false, |any, (new, old)| any | (new == old))
        };
        let differ = !self.is_part && !olds.iter().any(alike);
        let compared = (olds.len() * new.len()) as u64;
        self.pieces.push(new);
        differ.then_some(compared)
    }
}

/// The pads of the run before, and the position at which its power was cut.
pub type Before = (Arc<Pads>, u64);

#[derive(Default)]
pub struct Pads {
    uses: Vec<Use>,
    /// Maps a word of a pad to its newest occurrence: the use's number times the words of a line, plus the word's
    /// number.
    by_word: FxHashMap<u64, u32>,
    /// The occurrence before each one of the same value.
    older_word: Vec<u32>,
    by_place: FxHashMap<u64, u32>,
    /// The greatest counter that has reached the array, by position.
    greatest: Vec<(u32, u64)>,
    before: Option<Before>,
}

impl Pads {
    /// The pads of the lines that were in the medium at first, and of a run; positions count the events that have
    /// happened.
    pub fn new(
        first: Vec<Encrypted>,
        journal: &Journal,
        held: &Held,
        before: Option<Before>,
    ) -> Pads {
        let mut pads = Pads {
            greatest: vec![(0, before.as_ref().map_or(0, |(pads, at)| pads.known(*at)))],
            before,
            ..Pads::default()
        };
        for what in first {
            pads.add(what, 0);
        }
        // Maps each queued write to the newest write merged into it, and each write to its use.
        let (mut newest, mut uses) = (FxHashMap::default(), FxHashMap::default());
        for (at, write) in journal.accepted() {
            if let Some(into) = write.merged_into {
                let over = newest.insert(into, write.order).unwrap_or(into);
                if let Some(index) = uses.get(&over) {
                    let over: &mut Use = &mut pads.uses[*index];
                    // Words that the newer write does not carry reach the array all the same.
                    if over.what.words & !write.words == 0 {
                        over.until = at as u32;
                    }
                }
            }
            if let Some(what) = Encrypted::from_write(write, journal, held) {
                uses.insert(write.order, pads.uses.len());
                pads.add(what, at as u32);
            }
        }
        // A line on chip is dumped where the next one of its register has not come yet.
        let mut waiting = FxHashMap::default();
        for (at, change) in journal.changed_on_chip() {
            if let Some(what) = Encrypted::from_register(change, journal, held) {
                if let Some(before) = waiting.insert(what.place, pads.uses.len()) {
                    pads.uses[before].until = at as u32;
                }
                pads.add(what, at as u32);
            }
        }
        pads
    }

    /// Makes pads of uses in no order of time, all of which have reached the array.
    pub(crate) fn from_uses(uses: Vec<Encrypted>) -> Pads {
        let mut pads = Pads::default();
        for what in uses {
            pads.add(what, 0);
        }
        pads
    }

    #[cfg(test)]
    pub(crate) fn uses_mut(&mut self) -> impl Iterator<Item = &mut Encrypted> {
        self.uses.iter_mut().map(|each| &mut each.what)
    }

    fn add(&mut self, what: Encrypted, from: u32) {
        let most = self.greatest.last().map_or(0, |(_, counter)| *counter);
        if let Some(counter) = what.counter.filter(|counter| *counter > most) {
            self.greatest.push((from, counter));
        }
        let index = self.uses.len() as u32;
        for word in 0..WORDS {
            let this = index * WORDS as u32 + word as u32;
            let older = match what.carries(word) {
                true => self.by_word.insert(what.pad[word], this),
                false => None,
            };
            self.older_word.push(older.unwrap_or(NONE));
        }
        let older = self.by_place.insert(what.place.0, index).unwrap_or(NONE);
        self.uses.push(Use {
            what,
            from,
            until: u32::MAX,
            older,
        });
    }

    fn known(&self, position: u64) -> u64 {
        let from = |(from, _): &(u32, u64)| u64::from(*from) <= position;
        let known = self.greatest.partition_point(from);
        self.greatest[..known].last().map_or(0, |last| last.1)
    }

    /// Occurrences of `pad` as a word of a pad, newest first: the use, and the number of its word.
    fn with_word(&self, pad: u64) -> impl Iterator<Item = (&Use, usize)> {
        let newest = self.by_word.get(&pad).copied();
        let older = |word: &u32| Some(self.older_word[*word as usize]).filter(|o| *o != NONE);
        let words = std::iter::successors(newest, older);
        words.map(|word| (&self.uses[word as usize / WORDS], word as usize % WORDS))
    }

    /// The use numbered `newest`, and those of its place before it.
    fn older_of(&self, newest: u32) -> impl Iterator<Item = &Use> {
        let some = |index: u32| Some(index).filter(|index| *index != NONE);
        let older = move |index: &u32| some(self.uses[*index as usize].older);
        let uses = std::iter::successors(some(newest), older);
        uses.map(|index| &self.uses[index as usize])
    }

    /// Whether `value` is a word of any pad of the run, also of one that a merge keeps from the array. A line that waited
    /// on chip may leave as it is, with words that are its pad's where it has zeros.
    pub fn has_word(&self, value: u64) -> bool {
        self.with_word(value).any(|(old, _)| !old.what.on_chip)
    }

    /// Tells what `new`, written after a cut at `position`, gives away together with what the array held by then.
    pub fn clash(&self, new: &Encrypted, position: u64) -> Option<String> {
        let mut words = (0..WORDS).filter(|word| new.carries(*word));
        let own = words.find_map(|word| {
            let same = self.with_word(new.pad[word]);
            let mut reached = same.filter(|(old, _)| old.has_reached(position));
            reached.find_map(|(old, at)| new.clash_of(word, &old.what, at))
        });
        own.or_else(|| {
            let (before, at) = self.before.as_ref()?;
            before.clash(new, *at)
        })
    }

    /// Adds the pieces that `new`, written after a cut at `position` as number `index`, shares with what its place held
    /// by then to `pieces`.
    pub(crate) fn pieces(
        &self,
        (index, new): (usize, &Encrypted),
        position: u64,
        pieces: &mut Chance,
    ) {
        let newest = self.by_place.get(&new.place.0).copied().unwrap_or(NONE);
        let reached = self
            .older_of(newest)
            .filter(|old| old.has_reached(position));
        if new.keeps.is_some() {
            return; // so few writes come after a cut that parts prove nothing; words are compared
        }
        for old in reached.take(OLDER) {
            new.pieces_of(&old.what, index, pieces);
        }
        if let Some((before, at)) = &self.before {
            before.pieces((index, new), *at, pieces);
        }
    }

    /// The number of counters in the array that are `next` or greater, where `next` is the first counter that is drawn
    /// after a cut at `position`: a program that writes the same line at the right moment uses the pad again.
    pub fn within_reach(&self, next: u64, position: u64) -> u64 {
        (self.known(position) + 1).saturating_sub(next)
    }

    /// Finds what the run gives away by itself, and together with what came before it.
    pub(crate) fn within(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut bits = Bits::default();
        let (mut clear, mut alike) = (Chance::of_pieces(), Chance::of_pieces());
        let mut returned = Chance::of_pieces();
        let mut places: FxHashMap<Place, OfPlace> = FxHashMap::default();
        let part = self.uses.iter().find_map(|each| each.what.keeps);
        let part_bytes = part.map_or(PIECE_BYTES, |part| part.min(PIECE_BYTES));
        let mut parts = Chance::with_probability(0.5f64.powi(8 * part_bytes as i32));
        for (index, new) in self.uses.iter().enumerate() {
            let what = &new.what;
            let position = u64::from(new.from);
            if let Some(bare) = what.bare() {
                found.push(what.violation(Kind::Plaintext, position, bare));
            }
            let differ = (part.is_none()).then(|| places.entry(what.place).or_default().add(what));
            let older = self.older_of(new.older).next();
            let kept = older.map_or(0, |old| what.kept(&old.what));
            bits.take(what, kept);
            if index + 1 == self.uses.len() && bits.is_any_the_same() {
                let same = format!("a bit of the pad is the same in {} lines", index + 1);
                found.push(what.violation(Kind::PadReused, position, same));
            }
            what.pieces_by_themselves((index, kept), &mut clear, &mut alike);
            if what.on_chip {
                let clash = self.dumped_clash(new);
                found.extend(clash.map(|clash| what.violation(Kind::PadReused, position, clash)));
                continue;
            }
            // An observer of the array never sees a use that is merged over.
            if new.until != u32::MAX {
                continue;
            }
            let reached = self.older_of(new.older);
            if let Some(differ) = differ {
                match differ {
                    Some(compared) => returned.tried(compared),
                    None => reached
                        .take(OLDER)
                        .for_each(|old| what.pieces_of(&old.what, index, &mut returned)),
                }
            } else {
                let reached = reached.filter(|old| old.until == u32::MAX);
                let olds: Vec<_> = reached.take(OLDER_PARTS).map(|old| &old.what).collect();
                what.parts_of(&olds, index, &mut parts);
            }
            let own = self.own_clash(index, what);
            let before = self.before.as_ref();
            let clash = own.or_else(|| before.and_then(|(pads, at)| pads.clash(what, *at)));
            found.extend(clash.map(|clash| what.violation(Kind::PadReused, position, clash)));
        }
        for (pieces, kind) in [
            (clear, Kind::Plaintext),
            (alike, Kind::PadReused),
            (returned, Kind::PadReused),
            (parts, Kind::PadReused),
        ] {
            found.extend(pieces.told().map(|(index, told)| {
                let first = &self.uses[index];
                first.what.violation(kind, u64::from(first.from), told)
            }));
        }
        found
    }

    /// What a line on chip that a power cut shows gives away, together with what the array holds by then and with what
    /// came before the run.
    fn dumped_clash(&self, new: &Use) -> Option<String> {
        let what = &new.what;
        let mut words = (0..WORDS).filter(|word| what.carries(*word));
        let own = words.find_map(|word| {
            let mut same = self.with_word(what.pad[word]);
            same.find_map(|(old, at)| {
                let is_seen = !old.what.on_chip && old.until == u32::MAX && old.from < new.until;
                is_seen
                    .then(|| what.clash_of(word, &old.what, at))
                    .flatten()
            })
        });
        own.or_else(|| {
            let (before, at) = self.before.as_ref()?;
            before.clash(what, *at)
        })
    }

    /// The first word of the run whose pad an older use of the run has used, as far as the array shows both.
    fn own_clash(&self, index: usize, what: &Encrypted) -> Option<String> {
        let mut words = (0..WORDS).filter(|word| what.carries(*word));
        words.find_map(|word| {
            let this = (index * WORDS + word) as u32;
            let mut at = self.older_word[this as usize];
            while at != NONE {
                let old = &self.uses[at as usize / WORDS];
                if old.until == u32::MAX
                    && !old.what.on_chip
                    && let Some(clash) = what.clash_of(word, &old.what, at as usize % WORDS)
                {
                    return Some(clash);
                }
                at = self.older_word[at as usize];
            }
            None
        })
    }
}

/// Tells what writes after a cut at `position` give away by pieces, all taken together.
pub fn pieces_after(pads: &Pads, written: &[Encrypted], position: u64) -> Option<(Place, String)> {
    let mut pieces = Chance::of_pieces();
    for new in written.iter().enumerate() {
        pads.pieces(new, position, &mut pieces);
    }
    let (index, told) = pieces.told()?;
    Some((written[index].place, told))
}
