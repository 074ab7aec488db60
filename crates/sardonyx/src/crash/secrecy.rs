//! The oracle of secrecy, which knows what no attacker needs to be told: two contents under one pad
//! give each other away, whoever has both. Watched apart from recoverability: a design that
//! recovers may yet use a pad twice.
//!
//! A pad counts as used when its ciphertext reached the array; encryptions that were merged over in
//! a queue, wasted or dropped do not.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ecc::{self, Matrix};
use crate::line::{Line, Place};
use crate::plan::journal::{Journal, Sealed};

/// One use of a pad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The content that it covers.
    pub plain: Line,
    /// From this position of the journal on it reaches the array.
    pub from: u32,
    /// From this one on it does not any more: merged over in its queue.
    pub until: u32,
}

/// Two contents under one pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Where.
    pub place: Place,
    /// The counter.
    pub counter: u64,
}

/// Every pad of a run.
pub struct Pads {
    uses: FxHashMap<(u64, u64), Vec<Use>>,
    /// The greatest counter that has reached the array, by position.
    greatest: Vec<(u32, u64)>,
    /// Whether all lines draw from one counter.
    global: bool,
    /// Pads used twice within the run.
    pub reused: Vec<Reuse>,
}

impl Pads {
    /// The pads of what setup wrote and of a run; positions count the events that have happened.
    pub fn new(setup: &[Sealed], journal: &Journal, global: bool) -> Pads {
        // From where on a write is in the array, and from where on it is merged over there.
        let (mut from, mut until) = (FxHashMap::default(), FxHashMap::default());
        // The newest write merged into each.
        let mut newest: FxHashMap<u64, u64> = FxHashMap::default();
        for (at, write) in journal.accepted() {
            from.insert(write.order, at as u32);
            if let Some(into) = write.merged_into {
                let over = newest.insert(into, write.order).unwrap_or(into);
                until.insert(over, at as u32);
            }
        }
        let mut pads = Pads {
            uses: FxHashMap::default(),
            greatest: Vec::new(),
            global,
            reused: Vec::new(),
        };
        for sealed in setup {
            pads.add(sealed, 0, u32::MAX);
        }
        for sealed in &journal.sealed {
            if let Some(from) = from.get(&sealed.order) {
                let until = until.get(&sealed.order).copied().unwrap_or(u32::MAX);
                pads.add(sealed, *from, until);
            }
        }
        pads.greatest.sort_unstable();
        let mut most = 0;
        for (_, counter) in &mut pads.greatest {
            most = most.max(*counter);
            *counter = most;
        }
        pads
    }

    fn add(&mut self, sealed: &Sealed, from: u32, until: u32) {
        self.greatest.push((from, sealed.counter));
        let (place, counter) = (sealed.place, sealed.counter);
        let uses = self.uses.entry((place.0, counter)).or_default();
        let other = |old: &Use| {
            let together = old.until == u32::MAX && until == u32::MAX;
            together && old.plain != sealed.plain
        };
        if uses.iter().any(other) {
            self.reused.push(Reuse { place, counter });
        }
        uses.push(Use {
            plain: sealed.plain,
            from,
            until,
        });
    }

    /// Whether `sealed`, written after a cut at `position`, covers another content than the pad
    /// covered before.
    pub fn is_reused(&self, sealed: &Sealed, position: u64) -> bool {
        let uses = self.uses.get(&(sealed.place.0, sealed.counter));
        let mut uses = uses.into_iter().flatten();
        let reached = |u: &Use| u64::from(u.from) <= position && position < u64::from(u.until);
        uses.any(|old| reached(old) && old.plain != sealed.plain)
    }

    /// How many counters that have reached the array lie at or beyond `next`, the first that is
    /// drawn after a cut at `position`: a program that writes the same line in its turn uses the
    /// pad again.
    pub fn within_reach(&self, next: u64, position: u64) -> u64 {
        if !self.global {
            return 0;
        }
        let known = self
            .greatest
            .partition_point(|(from, _)| u64::from(*from) <= position);
        let greatest = self.greatest[..known]
            .last()
            .map_or(0, |(_, counter)| *counter);
        (greatest + 1).saturating_sub(next)
    }
}

/// Writes of the medium that show a content, or the check bits of one, as they are.
pub fn plaintext_in(journal: &Journal) -> Vec<Place> {
    // Lines with little in them look like tables that have just been made.
    let telling = |line: &&Line| line.iter().collect::<FxHashSet<_>>().len() >= 8;
    let plain: FxHashSet<Line> = journal
        .sealed
        .iter()
        .map(|sealed| &sealed.plain)
        .filter(telling)
        .copied()
        .collect();
    let telling = |word: &u64| word.to_le_bytes().iter().collect::<FxHashSet<_>>().len() >= 6;
    let check = |line: &Line| ecc::check_word(Matrix::TruncatedHamming, line);
    let words: FxHashSet<u64> = plain.iter().map(check).filter(telling).collect();
    let encrypted: FxHashSet<u64> = journal.sealed.iter().map(|sealed| sealed.order).collect();
    let shows = |line: &Line, order: u64| {
        // Ciphertext is noise, in which a check word may turn up by chance once in 2^58 places.
        let tables = !encrypted.contains(&order);
        plain.contains(line) || tables && line.windows(8).any(|w| words.contains(&number(w)))
    };
    let writes = journal.writes.iter().filter(|w| shows(&w.line, w.order));
    writes.map(|write| write.place).collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}
