//! The oracle of secrecy, which knows what no attacker needs to be told: a pad is what lies in the
//! medium, XOR the content that was asked for. Two contents under one pad give each other away, whoever
//! has both. Taken from the bytes: a design may say of its counters what it likes.
//! Watched apart from recoverability: a design that recovers may yet use a pad twice.
//!
//! A pad counts as used when its ciphertext reached the array; encryptions that were merged over in
//! a queue, wasted or dropped do not.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::history::History;
use super::violation::{Kind, Violation};
use crate::controller::logging::LOG_REGION;
use crate::ecc::{self, Matrix};
use crate::line::{Line, Place};
use crate::medium::layout::Layout;
use crate::plan::journal::{Domain, Event, Journal, MediumWrite};
use crate::plan::untimed::Untimed;

/// Encryptions from which on a pad's bit that has always been the same is no accident.
const ENOUGH: usize = 128;
/// MediumWrite requests that are encrypted again under another key, at other places and at one place: more
/// than a byte counts.
const AGAIN: usize = 300;

/// Where the medium holds lines under pads.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// So many lines of data from the first on, those of a log among them that lies there.
    pub lines: u64,
    /// The lines of a log that has a region of its own.
    pub log: Range<u64>,
}

impl Held {
    /// All of a layout in which a design has been built.
    pub fn of(layout: &Layout) -> Held {
        let mut regions = layout.regions().iter();
        let log = regions.find(|region| region.name == LOG_REGION);
        Held {
            lines: layout.data_lines(),
            log: log.map_or(0..0, |log| log.first.0..log.first.0 + log.lines),
        }
    }
}

/// What a write request, or a hardware log, put into the medium: its content under a pad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    /// The place in the medium where the encrypted line lies.
    pub place: Place,
    /// The counter that the design says it was encrypted under; `None` if it does not say.
    pub counter: Option<u64>,
    /// What the line holds, unencrypted.
    pub plain: Line,
    /// What covers it, in 8-byte words.
    pub pad: [u64; 8],
}

impl Encrypted {
    /// `write` of a place where lines are `held`; `None` for what neither a request of `journal` nor its
    /// log caused, or carries less than a line.
    fn of(write: &MediumWrite, journal: &Journal, held: &Held) -> Option<Encrypted> {
        let (place, logged) = (write.place.0, journal.logged_by(write.order));
        let is_line = place < held.lines || logged.is_some() && held.log.contains(&place);
        if !is_line || write.words != 0xff {
            return None;
        }
        let plain = match logged {
            Some(logged) => logged.data,
            None => journal.handled[journal.request_of(write.order)?].data,
        };
        let (plain_words, words) = (numbers(&plain), numbers(&write.line));
        Some(Encrypted {
            place: write.place,
            counter: journal.counter_of(write.order),
            plain,
            pad: std::array::from_fn(|word| plain_words[word] ^ words[word]),
        })
    }

    /// What `self`, written later, gives away beside `old`, if a word of the one's pad is the word of the
    /// other's at the same position.
    fn clash(&self, old: &Encrypted) -> Option<String> {
        let words = (0..8).filter(|word| self.pad[*word] == old.pad[*word]);
        words
            .into_iter()
            .find_map(|word| self.clash_of(word, old, word))
    }

    /// The same of word `word` here and `old_word` there, whose pads are equal. The same content at the
    /// same place under the same counter gives nothing away.
    fn clash_of(&self, word: usize, old: &Encrypted, old_word: usize) -> Option<String> {
        let bytes = |word: usize| format!("bytes {} to {}", word * 8, word * 8 + 7);
        let (place, old_place) = (self.place.0, old.place.0);
        if (self.place, word) != (old.place, old_word) {
            return Some(format!(
                "the pad of place {place}, {}, is that of place {old_place}, {}",
                bytes(word),
                bytes(old_word)
            ));
        }
        let under = match self.counter {
            Some(counter) => format!("counter {counter}"),
            None => "no counter that is known".to_owned(),
        };
        let (new, before) = (numbers(&self.plain)[word], numbers(&old.plain)[word]);
        if new != before {
            return Some(format!(
                "the pad of place {place}, {under}, covers two contents: {} are {:016x} and were {:016x}",
                bytes(word),
                new.swap_bytes(),
                before.swap_bytes()
            ));
        }
        let (Some(counter), Some(before)) = (self.counter, old.counter) else {
            return None;
        };
        (counter != before).then(|| {
            format!("the pad of place {place} is the same under counters {before} and {counter}")
        })
    }

    /// The first word that is not covered at all.
    pub fn bare(&self) -> Option<String> {
        let word = self.pad.iter().position(|pad| *pad == 0)?;
        let (from, to) = (word * 8, word * 8 + 7);
        Some(format!(
            "place {}, bytes {from} to {to}: the content as it is",
            self.place.0
        ))
    }

    fn violation(&self, kind: Kind, position: u64, what: String) -> Violation {
        Violation {
            place: Some(self.place),
            ..Violation::new(kind, position, what)
        }
    }
}

/// What requests have had written over an image, from the write numbered `from` on.
pub fn written(untimed: &Untimed, from: u64, held: &Held) -> Vec<Encrypted> {
    if untimed.asked().handled.is_empty() {
        return Vec::new();
    }
    let writes = untimed.writes(from);
    writes
        .filter_map(|write| Encrypted::of(&write, untimed.asked(), held))
        .collect()
}

/// One use of a pad.
struct Use {
    what: Encrypted,
    /// From this position of the journal on it reaches the array.
    from: u32,
    /// From this one on it does not any more: merged over in its queue.
    until: u32,
}

impl Use {
    fn has_reached(&self, position: u64) -> bool {
        u64::from(self.from) <= position && position < u64::from(self.until)
    }
}

/// The pads of what came before a run: those of the run whose power was cut, and where.
pub type Before = (Arc<Pads>, u64);

/// Every pad of a run.
#[derive(Default)]
pub struct Pads {
    uses: Vec<Use>,
    /// Uses by the first word of their pads.
    by_pad: FxHashMap<u64, SmallVec<[u32; 1]>>,
    /// The greatest counter that has reached the array, by position.
    greatest: Vec<(u32, u64)>,
    before: Option<Before>,
}

impl Pads {
    /// The pads of what was in the medium at first, and of a run; positions count the events that have
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
        // The newest write merged into each queued one, and which use each write is.
        let (mut newest, mut uses) = (FxHashMap::default(), FxHashMap::default());
        for (at, write) in journal.accepted() {
            if let Some(into) = write.merged_into {
                let over = newest.insert(into, write.order).unwrap_or(into);
                if let Some(index) = uses.get(&over) {
                    let over: &mut Use = &mut pads.uses[*index];
                    over.until = at as u32;
                }
            }
            if let Some(what) = Encrypted::of(write, journal, held) {
                uses.insert(write.order, pads.uses.len());
                pads.add(what, at as u32);
            }
        }
        pads
    }

    fn add(&mut self, what: Encrypted, from: u32) {
        let most = self.greatest.last().map_or(0, |(_, counter)| *counter);
        if let Some(counter) = what.counter.filter(|counter| *counter > most) {
            self.greatest.push((from, counter));
        }
        let index = self.uses.len() as u32;
        self.by_pad.entry(what.pad[0]).or_default().push(index);
        self.uses.push(Use {
            what,
            from,
            until: u32::MAX,
        });
    }

    /// The greatest counter that has reached the array at `position`.
    fn known(&self, position: u64) -> u64 {
        let from = |(from, _): &(u32, u64)| u64::from(*from) <= position;
        let known = self.greatest.partition_point(from);
        self.greatest[..known].last().map_or(0, |last| last.1)
    }

    /// What `new`, written after a cut at `position`, gives away beside what the array held by then.
    pub fn clash(&self, new: &Encrypted, position: u64) -> Option<String> {
        let same = self.by_pad.get(&new.pad[0]).into_iter().flatten();
        let same = same.map(|index| &self.uses[*index as usize]);
        let mut reached = same.filter(|old| old.has_reached(position));
        let own = reached.find_map(|old| new.clash(&old.what));
        own.or_else(|| {
            let (before, at) = self.before.as_ref()?;
            before.clash(new, *at)
        })
    }

    /// How many counters that have reached the array lie at or beyond `next`, the first that is
    /// drawn after a cut at `position`: a program that writes the same line in its turn uses the
    /// pad again.
    pub fn within_reach(&self, next: u64, position: u64) -> u64 {
        (self.known(position) + 1).saturating_sub(next)
    }

    /// What the run gives away by itself, and beside what came before it.
    fn within(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut first: FxHashMap<u64, (u32, u8)> = FxHashMap::default();
        let (mut ones, mut zeros) = ([u64::MAX; 8], [u64::MAX; 8]);
        for (index, new) in self.uses.iter().enumerate() {
            let what = &new.what;
            let position = u64::from(new.from);
            if let Some(bare) = what.bare() {
                found.push(what.violation(Kind::Plaintext, position, bare));
            }
            for word in 0..8 {
                ones[word] &= what.pad[word];
                zeros[word] &= !what.pad[word];
            }
            if index + 1 == ENOUGH.max(self.uses.len())
                && ones.iter().chain(&zeros).any(|b| *b != 0)
            {
                let same = format!("a bit of the pad is the same in {} lines", index + 1);
                found.push(what.violation(Kind::PadReused, position, same));
            }
            if new.until != u32::MAX {
                continue;
            }
            let mut clash = None;
            for (word, pad) in what.pad.iter().enumerate() {
                let this = (index as u32, word as u8);
                let (old, old_word) = *first.entry(*pad).or_insert(this);
                let old = &self.uses[old as usize].what;
                clash = clash.or_else(|| what.clash_of(word, old, usize::from(old_word)));
            }
            let before = self.before.as_ref();
            let clash = clash.or_else(|| before.and_then(|(pads, at)| pads.clash(what, *at)));
            found.extend(clash.map(|clash| what.violation(Kind::PadReused, position, clash)));
        }
        found
    }
}

/// What a run gives away without any cut.
pub fn within(history: &History) -> Vec<Violation> {
    if !history.is_encrypted() {
        return Vec::new();
    }
    let mut found = history.pads.within();
    found.extend(plaintext_in(history));
    if history.life == 1 {
        found.extend(with_less(history));
    }
    found
}

/// Writes of the medium that show a content, or the check bits of one, as they are; and registers that
/// reserve power would dump with a word of one.
fn plaintext_in(history: &History) -> Vec<Violation> {
    let (journal, held) = (&history.journal, history.held());
    // Lines with little in them look like tables that have just been made.
    let telling = |line: &&Line| line.iter().collect::<FxHashSet<_>>().len() >= 8;
    let plain = journal.handled.iter().map(|handled| &handled.data);
    let plain = plain.chain(journal.logged.iter().map(|logged| &logged.data));
    let plain: FxHashSet<Line> = plain.filter(telling).copied().collect();
    let telling = |word: &u64| word.to_le_bytes().iter().collect::<FxHashSet<_>>().len() >= 6;
    let check = |line: &Line| ecc::check_word(Matrix::TruncatedHamming, line);
    let contents = plain.iter().flat_map(numbers);
    let words = plain.iter().map(check).chain(contents);
    let words: FxHashSet<u64> = words.filter(telling).collect();
    let shows_word = |line: &Line| line.windows(8).any(|w| words.contains(&number(w)));
    let shows = |write: &MediumWrite| {
        // Ciphertext is noise, in which a check word may turn up by chance once in 2^58 places.
        let tables = write.place.0 >= held.lines && !held.log.contains(&write.place.0);
        plain.contains(&write.line) || tables && shows_word(&write.line)
    };
    let on_chip = (journal.events.iter().zip(1..)).filter_map(|((_, event), at)| match event {
        Event::OnChip(index) => Some((at, &journal.on_chip[*index as usize])),
        _ => None,
    });
    let dumped = on_chip.filter(|(_, change)| change.domain == Domain::Registers);
    let dumped = dumped.filter(|(_, change)| shows_word(&change.write.line));
    let shown = journal.accepted().filter(|(_, write)| shows(write));
    let shown = shown.chain(dumped.map(|(at, change)| (at, &change.write)));
    let violation = |(at, write): (u64, &MediumWrite)| Violation {
        place: Some(write.place),
        ..Violation::new(
            Kind::Plaintext,
            at,
            "a content, or its check bits, as they are".to_owned(),
        )
    };
    shown.map(violation).collect()
}

/// The run's first requests, handled again by a fresh controller: under another key; for other lines, so
/// that places are others and counters are not; and all for one line, so that only counters change.
fn with_less(history: &History) -> Vec<Violation> {
    let again = |other_key, moved: &dyn Fn(u64) -> u64| history.encrypted(other_key, moved, AGAIN);
    let these = again(false, &|line| line).unwrap_or_default();
    let alike = |kind, others: Vec<Encrypted>, what: &str| {
        these.iter().zip(&others).find_map(|(this, other)| {
            let here = kind == Kind::KeyIgnored || this.place != other.place;
            let same = here && (this.counter, this.plain) == (other.counter, other.plain);
            let word = (0..8).find(|word| same && this.pad[*word] == other.pad[*word])?;
            let bytes = format!("bytes {} to {}", word * 8, word * 8 + 7);
            let what = format!("place {}, {bytes}: the same pad {what}", this.place.0);
            Some(this.violation(kind, 0, what))
        })
    };
    let other_key = again(true, &|line| line);
    let key = other_key.and_then(|others| alike(Kind::KeyIgnored, others, "under another key"));
    let bits = (0..64).map(|bit| 1 << bit);
    let mut bits = bits.take_while(|bit| *bit < history.data_lines());
    let place = bits.find_map(|bit: u64| {
        let others = again(false, &|line| line ^ bit)?;
        alike(Kind::PadReused, others, "at another place")
    });
    let first = history.journal.handled.first();
    let all = first.and_then(|first| again(false, &|_| first.line.0));
    let mut one_line = Pads::default();
    for what in all.unwrap_or_default() {
        one_line.add(what, 0);
    }
    let counter = one_line.within().into_iter().next();
    [key, place, counter].into_iter().flatten().collect()
}

fn numbers(line: &Line) -> [u64; 8] {
    let (words, _) = line.as_chunks();
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::encryption::pad;
    use crate::line::{Class, Logical, Persist};
    use crate::plan::journal::{Handled, Sealed};
    use crate::settings::Settings;
    use crate::units::Time;

    /// A run that has each content encrypted by `pad` of place, counter and the word's number.
    fn run(writes: &[(u64, u64, Line)], pad: impl Fn(u64, u64, u64) -> u64) -> Pads {
        let mut journal = Journal::default();
        for (order, (place, counter, plain)) in (1..).zip(writes) {
            let mut line = *plain;
            for (number, word) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let pad = pad(*place, *counter, number as u64);
                *word = (u64::from_le_bytes(*word) ^ pad).to_le_bytes();
            }
            journal.handled.push(Handled {
                line: Logical(*place),
                data: *plain,
                class: Class::Data,
                persist: Persist::Relaxed,
                order,
            });
            journal.sealed.push(Sealed {
                order,
                place: Place(*place),
                counter: *counter,
                paired_with: None,
            });
            let from = journal.writes.len() as u32;
            journal
                .events
                .push((Time::ZERO, Event::Ready { from, count: 1 }));
            journal.writes.push(MediumWrite {
                order,
                place: Place(*place),
                line,
                words: 0xff,
                sideband: None,
                merged_into: None,
            });
        }
        Pads::new(Vec::new(), &journal, &held(), None)
    }

    fn held() -> Held {
        Held {
            lines: 1 << 20,
            log: 0..0,
        }
    }

    fn words(pads: &Pads) -> Vec<String> {
        let found = pads.within().into_iter();
        found
            .map(|v| format!("{}: {}", v.kind.name(), v.what))
            .collect()
    }

    fn mixed(place: u64, counter: u64, word: u64) -> u64 {
        sardonyx_splitmix::mix(place << 40 ^ counter << 8 ^ word)
    }

    fn writes() -> Vec<(u64, u64, Line)> {
        let line = |n: u64| std::array::from_fn(|byte| (n * 7 + byte as u64) as u8);
        (1..400).map(|n| (n % 50, n, line(n))).collect()
    }

    #[test]
    fn a_pad_of_place_counter_and_block_gives_nothing_away_and_any_less_does() {
        assert_eq!(words(&run(&writes(), mixed)), [""; 0]);
        for (pad, told) in [
            ((|_, _, _| 7) as fn(u64, u64, u64) -> u64, "pad-reused"),
            (
                |place, _, word| mixed(place, 0, word),
                "covers two contents",
            ),
            (
                |place, counter, _| mixed(place, counter, 0),
                "bytes 8 to 15, is that of",
            ),
            (
                |place, counter, word| mixed(place, counter / 100, word),
                "covers two contents",
            ),
            (
                |place, counter, word| mixed(place, counter, word) | 1 << 40,
                "a bit of the pad",
            ),
            (|_, _, _| 0, "plaintext"),
        ] {
            let told_of = words(&run(&writes(), pad));
            let is_there = told_of.iter().any(|what| what.contains(told));
            assert_eq!(is_there, !told.is_empty(), "{told}: {told_of:?}");
        }
        // Two lines that draw the same counter, each from its own.
        let own = [(1, 1, [1; 64]), (2, 1, [2; 64])];
        assert_eq!(words(&run(&own, mixed)), [""; 0]);
        let shared = words(&run(&own, |_, counter, word| mixed(0, counter, word)));
        assert!(shared[0].contains("the pad of place 2, bytes 0 to 7, is that of place 1"));
        // The same content at the same place: the same ciphertext is no news under the same counter.
        let same = [(1, 1, [1; 64]), (1, 1, [1; 64])];
        assert_eq!(words(&run(&same, mixed)), [""; 0]);
        let other = [(1, 1, [1; 64]), (1, 2, [1; 64])];
        let ignored = words(&run(&other, |place, _, word| mixed(place, 0, word)));
        assert!(ignored[0].contains("the same under counters 1 and 2"));
    }

    #[test]
    fn what_was_used_before_a_cut_counts_in_later_lives_and_what_was_not_yet_does_not() {
        let first = Arc::new(run(&[(1, 1, [1; 64]), (1, 2, [2; 64])], mixed));
        let again = |counter, plain| Encrypted {
            place: Place(1),
            counter: Some(counter),
            plain,
            pad: std::array::from_fn(|word| mixed(1, counter, word as u64)),
        };
        assert_eq!(first.clash(&again(2, [9; 64]), 1), None);
        assert!(first.clash(&again(2, [9; 64]), 2).is_some());
        assert_eq!(first.clash(&again(2, [2; 64]), 2), None);
        assert_eq!(first.clash(&again(3, [9; 64]), 2), None);
        assert_eq!((first.within_reach(2, 2), first.within_reach(3, 2)), (1, 0));
        let empty = Journal::default();
        for (at, clashes) in [(1, false), (2, true)] {
            let before = Some((first.clone(), at));
            let second = Pads::new(vec![again(2, [9; 64])], &empty, &held(), before);
            assert_eq!(!second.within().is_empty(), clashes);
            let third = Pads::new(Vec::new(), &empty, &held(), Some((Arc::new(second), 0)));
            assert!(third.clash(&again(2, [8; 64]), 0).is_some());
            assert_eq!(third.within_reach(2, 0), 1);
        }
    }

    #[test]
    fn the_other_key_makes_other_pads() {
        let mut settings = Settings::default();
        let this = pad::Pads::new(&settings).crypt(Place(3), 5, &[0; 64]);
        settings.set(&pad::OTHER_KEY, true);
        let other = pad::Pads::new(&settings).crypt(Place(3), 5, &[0; 64]);
        let (this, other) = (numbers(&this), numbers(&other));
        assert!((0..8).all(|word| this[word] != other[word]));
    }
}
