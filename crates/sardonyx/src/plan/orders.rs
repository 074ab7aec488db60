//! Holds every write until it is chosen to go: so runs can be made of all orders of acceptance that a design allows,
//! one order each.
//!
//! A choice is made whenever nothing else can happen. A write can be chosen if it waits for nothing but the choice; a
//! group goes as one.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use sardonyx_base::random::mix;

use super::journal::{Event, Journal, Mark, MediumWrite};
use super::steps::Steps;
use super::{Group, Promise, Step};
use crate::line::{Line, Place};

/// A point of a run at which one of several writes goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of events in the journal before it.
    pub position: u64,
    /// The number of writes that could go.
    pub options: u16,
    /// A key for what follows, which is the same after two points with equal keys: what a cut would leave, the requests
    /// to the controller in their order, the held writes, and the positions of the programs.
    pub key: u64,
}

struct HeldWrite {
    promise: Promise,
    accept: Step,
    after: [Step; 3],
    key: u64,
}

#[derive(Default)]
pub(crate) struct Orders {
    chosen: Vec<u16>,
    made: Vec<Choice>,
    held: Vec<HeldWrite>,
    seen: Seen,
}

impl Orders {
    pub fn new(chosen: Vec<u16>) -> Orders {
        Orders {
            chosen,
            ..Orders::default()
        }
    }

    pub fn hold(
        &mut self,
        promise: Promise,
        accept: Step,
        after: [Step; 3],
        (place, line, words): (Place, &Line, u8),
    ) {
        self.held.push(HeldWrite {
            promise,
            accept,
            after,
            key: key_of(&(place.0, line, words)),
        });
    }

    /// The writes that go next, all at once; empty if none can. `journal` is the run's so far.
    pub fn choose(&mut self, steps: &Steps, groups: &[Group], journal: &Journal) -> Vec<Promise> {
        let may_go = |held: &HeldWrite| held.after.iter().all(|step| steps.is_finished(*step));
        let group = |held: &HeldWrite| steps.get(held.accept).group as usize;
        let mut units: Vec<Vec<usize>> = Vec::new();
        for (index, held) in self.held.iter().enumerate() {
            match group(held) {
                0 if may_go(held) => units.push(vec![index]),
                0 => {}
                group => {
                    let members = &groups[group - 1];
                    let all = self.held.iter().enumerate();
                    let of_it = all.filter(|(_, other)| members.contains(&other.accept));
                    let of_it: Vec<usize> = of_it.map(|(index, _)| index).collect();
                    // Hardware takes a group at one instant, so it is one option, once all of it is there.
                    let whole = of_it.len() == members.len();
                    let first = of_it.first() == Some(&index);
                    if first && whole && of_it.iter().all(|index| may_go(&self.held[*index])) {
                        units.push(of_it);
                    }
                }
            }
        }
        let Some(first) = units.first() else {
            return Vec::new();
        };
        let made = self.made.len();
        let chosen = self
            .chosen
            .get(made)
            .map_or(first, |choice| &units[usize::from(*choice)]);
        self.seen.follow(journal);
        self.made.push(Choice {
            position: journal.events.len() as u64,
            options: units.len() as u16,
            key: self.key(),
        });
        // From the last on, so that the numbers of the others stay.
        let mut going = Vec::with_capacity(chosen.len());
        for index in chosen.iter().rev() {
            going.push(self.held.remove(*index).promise);
        }
        going.reverse();
        going
    }

    pub fn into_made(self) -> Vec<Choice> {
        self.made
    }

    fn key(&self) -> u64 {
        let held = self.held.iter();
        let held = held.fold(0u64, |all, held| all.wrapping_add(mix(held.key)));
        key_of(&(held, self.seen.key()))
    }
}

/// A digest of everything that has happened so far, equal if that is equal.
#[derive(Default)]
struct Seen {
    events: usize,
    handled: usize,
    requests: u64,
    /// The newest writes of each word in the persistence domain, and of each sideband.
    words: FxHashMap<(u64, u8), u64>,
    /// The newest state of each line on chip that reserve power may drain.
    on_chip: FxHashMap<u64, (u64, u64)>,
    marks: FxHashMap<u32, u64>,
    sum: u64,
}

impl Seen {
    fn follow(&mut self, journal: &Journal) {
        for handled in &journal.handled[self.handled..] {
            self.requests = key_of(&(self.requests, handled.line.0, &handled.data));
        }
        self.handled = journal.handled.len();
        // Times do not count, nor what the array does: a cut after the same acceptances leaves the same.
        for (_, event) in &journal.events[self.events..] {
            match event {
                Event::Ready { .. } => {
                    for write in journal.accepted_by(*event) {
                        self.write(write);
                    }
                }
                Event::OnChip(index) => {
                    let write = &journal.on_chip[*index as usize].write;
                    let new = (write.order, key_of(&(1u8, write.place.0, &write.line)));
                    let old = self.on_chip.entry(write.place.0).or_default();
                    // Changes on chip happen when what they describe is accepted, which is in no order of handling.
                    if new.0 >= old.0 {
                        self.sum = self.sum.wrapping_sub(old.1).wrapping_add(new.1);
                        *old = new;
                    }
                }
                Event::Mark { core, mark } => {
                    let (kind, number) = match mark {
                        Mark::Fence => continue,
                        Mark::Begin(number) => (0u8, *number),
                        Mark::Committing(number) => (1, *number),
                        Mark::Committed(number) => (2, *number),
                    };
                    let new = key_of(&(2u8, core, kind, number));
                    let old = self.marks.insert(*core, new).unwrap_or_default();
                    self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
                }
                Event::Begun(_)
                | Event::Done(_)
                | Event::Accepted(_)
                | Event::Locked(_)
                | Event::Store(_) => {}
            }
        }
        self.events = journal.events.len();
    }

    fn write(&mut self, write: &MediumWrite) {
        let words = (0..8).filter(|word| write.words >> word & 1 == 1);
        let words = words.map(|word| {
            let at = usize::from(word) * 8;
            (word, &write.line[at..at + 8])
        });
        let beside = write.sideband.as_ref().map(|beside| (8, &beside[..]));
        for (word, bytes) in words.chain(beside) {
            let new = key_of(&(0u8, write.at.0, word, bytes));
            let old = self.words.insert((write.at.0, word), new);
            self.sum = self
                .sum
                .wrapping_sub(old.unwrap_or_default())
                .wrapping_add(new);
        }
    }

    fn key(&self) -> u64 {
        key_of(&(self.requests, self.sum))
    }
}

fn key_of(what: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    mix(hasher.finish())
}
