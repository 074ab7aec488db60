//! Pairs of a run: an event, and a write that is in flight when it happens. An event is described by its sort, by what
//! it is about (whose line, in which region, marked or not) and by the phase of the transaction. In flight are writes
//! that were handled before and are not accepted, and writes that are accepted and not in the array. A write is
//! described in the same way, and by whether it is of the same line, of another line in the same line of counters, or
//! of any other.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::history::History;
use sardonyx::line::Place;
use sardonyx::plan::journal::{Event, Mark, MediumWrite};

/// Of what waits, so many of the oldest are looked at.
const MOST_WAITING: usize = 24;

/// What a write is: its region, its class, whether it is marked, whole, beside its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sort {
    region: &'static str,
    is_log: bool,
    is_marked: bool,
    is_whole: bool,
    is_logged: bool,
}

/// A write that is in flight.
#[derive(Clone, Copy)]
struct Flying {
    place: Place,
    counters: Option<Place>,
    core: Option<usize>,
    sort: u64,
}

/// What comes first in a pair.
#[derive(Hash)]
enum Happens {
    Accepted {
        sort: u64,
        group: bool,
        merged: bool,
    },
    Begun(u64),
    Done(u64),
    OnChip(&'static str),
    Complete(u64),
    Locked,
    Store(bool),
    Mark(u8),
}

/// How what is in flight stands to what happens.
#[derive(Hash)]
enum Relation {
    Same,
    SameCounters,
    SameCore,
    Other,
}

fn number_of(what: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The pairs of `history`, each with the first position at which it is.
pub(super) fn pairs(history: &History) -> FxHashMap<u64, u64> {
    let journal = &history.journal;
    let flying = |write: &MediumWrite| {
        let request = journal.request_of(write.order);
        let request = request.map(|index| &journal.handled[index]);
        let sort = Sort {
            region: history.layout().name_of(write.place).0,
            is_log: request.is_some_and(|r| r.class == sardonyx::line::Class::Log),
            is_marked: request.is_some_and(|r| r.persist == sardonyx::line::Persist::CounterAtomic),
            is_whole: write.words == 0xff,
            is_logged: journal.logged_by(write.order).is_some(),
        };
        Flying {
            place: write.place,
            counters: history.counter_place(write.place),
            core: request.and_then(|r| history.core_of(r.line.0)),
            sort: number_of(&sort),
        }
    };
    let mut by_order: Vec<(u64, Flying)> = journal
        .writes
        .iter()
        .map(|write| (write.order, flying(write)))
        .collect();
    by_order.sort_unstable_by_key(|(order, _)| *order);
    let mut next = 0;
    let mut waiting: BTreeMap<u64, Flying> = BTreeMap::new();
    let mut queued: VecDeque<(u64, Flying)> = VecDeque::new();
    let mut phases = vec![0u8; history.programs.len()];
    let mut found = FxHashMap::default();
    let mut accepted: FxHashSet<u64> = FxHashSet::default();
    for (index, (_, event)) in journal.events.iter().enumerate() {
        let position = index as u64 + 1;
        let mut see = |happens: &Happens,
                       about: Option<&Flying>,
                       core: Option<usize>,
                       of: Option<(u8, &Flying)>| {
            let phase = core.or(about.and_then(|about| about.core));
            let phase = phase.map_or(9, |core| phases[core]);
            let other = of.map(|(state, other)| {
                let relation = match about {
                    Some(about) if about.place == other.place => Relation::Same,
                    Some(about) if about.counters.is_some() && about.counters == other.counters => {
                        Relation::SameCounters
                    }
                    _ if core.or(about.and_then(|about| about.core)) == other.core => {
                        Relation::SameCore
                    }
                    _ => Relation::Other,
                };
                (state, relation, other.sort)
            });
            let pair = number_of(&(happens, phase, other));
            found.entry(pair).or_insert(position);
        };
        let mut all = |happens: Happens,
                       about: Option<&Flying>,
                       core: Option<usize>,
                       waiting: &BTreeMap<u64, Flying>,
                       queued: &VecDeque<(u64, Flying)>| {
            see(&happens, about, core, None);
            for other in waiting.values().take(MOST_WAITING) {
                see(&happens, about, core, Some((0, other)));
            }
            for (_, other) in queued.iter().take(MOST_WAITING) {
                see(&happens, about, core, Some((1, other)));
            }
        };
        match event {
            Event::Ready { count, .. } => {
                let own = journal.accepted_by(*event);
                let newest = own.iter().map(|write| write.order).max().unwrap_or(0);
                while next < by_order.len() && by_order[next].0 <= newest {
                    let (order, flying) = by_order[next];
                    if !accepted.contains(&order) {
                        waiting.insert(order, flying);
                    }
                    next += 1;
                }
                for write in own {
                    waiting.remove(&write.order);
                    accepted.insert(write.order);
                }
                for write in own {
                    let about = flying(write);
                    let happens = Happens::Accepted {
                        sort: about.sort,
                        group: *count > 1,
                        merged: write.merged_into.is_some(),
                    };
                    all(happens, Some(&about), None, &waiting, &queued);
                    if write.merged_into.is_none() {
                        queued.push_back((write.order, about));
                    }
                }
            }
            Event::Begun(write) | Event::Done(write) => {
                let write = &journal.array[*write as usize];
                let about = flying(write);
                let happens = match event {
                    Event::Begun(_) => Happens::Begun(about.sort),
                    _ => Happens::Done(about.sort),
                };
                if matches!(event, Event::Done(_)) {
                    let at = queued
                        .iter()
                        .position(|(_, other)| other.place == about.place);
                    at.map(|at| queued.remove(at));
                }
                all(happens, Some(&about), None, &waiting, &queued);
            }
            Event::OnChip(number) => {
                let about = flying(&journal.on_chip[*number as usize].write);
                let region = history.layout().name_of(about.place).0;
                all(
                    Happens::OnChip(region),
                    Some(&about),
                    None,
                    &waiting,
                    &queued,
                );
            }
            Event::Accepted(request) => {
                let request = &journal.handled[*request as usize];
                let sort = (
                    request.class == sardonyx::line::Class::Log,
                    request.persist == sardonyx::line::Persist::CounterAtomic,
                );
                let core = history.core_of(request.line.0);
                all(
                    Happens::Complete(number_of(&sort)),
                    None,
                    core,
                    &waiting,
                    &queued,
                );
            }
            Event::Locked(line) => {
                let core = history.core_of(line.0);
                all(Happens::Locked, None, core, &waiting, &queued);
            }
            Event::Store(store) => {
                let store = &journal.stores[*store as usize];
                let marked = store.persist == sardonyx::line::Persist::CounterAtomic;
                let core = history.core_of(store.line.0);
                all(Happens::Store(marked), None, core, &waiting, &queued);
            }
            Event::Mark { core, mark } => {
                let phase = match mark {
                    Mark::Begin(_) => 1,
                    Mark::Committing(_) => 2,
                    Mark::Committed(_) => 0,
                    Mark::Fence => phases[*core as usize],
                };
                let number = match mark {
                    Mark::Fence => 3,
                    _ => phase,
                };
                all(
                    Happens::Mark(number),
                    None,
                    Some(*core as usize),
                    &waiting,
                    &queued,
                );
                phases[*core as usize] = phase;
            }
        }
    }
    found
}
