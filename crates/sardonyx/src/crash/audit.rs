//! What the journal shows without any recovery: never one half of a counter-atomic pair, never a
//! counter before the line that it is for; and that under `adr` an array write changes nothing that
//! a cut would leave.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::history::History;
use super::platform::Platform;
use super::violation::{Kind, Violation};
use crate::line::{Line, Place, ZERO_LINE};
use crate::plan::journal::{Event, Write};
use crate::plan::merged;

/// Halves of pairs, in the order of the journal; the first position at which each would show. Where
/// the processors' caches are drained a counter may precede its line: until that is accepted, the
/// line is drained and written again.
pub fn pairs(history: &History, platform: Platform) -> Vec<Violation> {
    let journal = &history.journal;
    let mut ready: FxHashMap<u64, u64> = FxHashMap::default();
    for (index, (_, event)) in journal.events.iter().enumerate() {
        if let Event::Ready { from, count } = event {
            for write in &journal.writes[*from as usize..(*from + *count) as usize] {
                ready.insert(write.order, index as u64 + 1);
            }
        }
    }
    let mut found = Vec::new();
    let mut tell = |position, place: Place, what| {
        found.push(Violation {
            kind: Kind::HalfAPair,
            position,
            recovery_cut: None,
            core: None,
            line: None,
            place: Some(place),
            what,
        });
    };
    let mut lines: FxHashMap<(u64, u64), u64> = FxHashMap::default();
    for sealed in &journal.sealed {
        lines.insert((sealed.place.0, sealed.counter), sealed.order);
        let Some(paired) = sealed.paired_with else {
            continue;
        };
        let (line, counter) = (ready.get(&sealed.order), ready.get(&paired));
        if line != counter {
            let at = *line.into_iter().chain(counter).min().expect("one of them");
            let what = format!("counter {} and its line are not one event", sealed.counter);
            tell(at, sealed.place, what);
        }
    }
    if platform != Platform::Eadr {
        for (at, place, counter) in early_counters(history, &lines, &ready) {
            tell(
                at,
                place,
                format!("counter {counter} persists before its line"),
            );
        }
    }
    found.sort_by_key(|violation| violation.position);
    found
}

/// Counters that are ready before their lines, of which `lines` has the writes by place and counter
/// and `ready` the positions: from which position on, of which place, which counter.
fn early_counters(
    history: &History,
    lines: &FxHashMap<(u64, u64), u64>,
    ready: &FxHashMap<u64, u64>,
) -> Vec<(u64, Place, u64)> {
    let journal = &history.journal;
    let mut early = Vec::new();
    for (index, (_, event)) in journal.events.iter().enumerate() {
        let Event::Ready { from, count } = event else {
            continue;
        };
        for write in &journal.writes[*from as usize..(*from + *count) as usize] {
            for (place, counter) in counters_in(history, write) {
                let line = lines.get(&(place.0, counter));
                let late = |line: &&u64| ready.get(line).is_none_or(|at| *at > index as u64 + 1);
                if line.filter(late).is_some() {
                    early.push((index as u64 + 1, place, counter));
                }
            }
        }
    }
    early
}

/// The counters that a write of a counter line carries, each with the place of its line.
fn counters_in(history: &History, write: &Write) -> Vec<(Place, u64)> {
    if history
        .counter_place(Place(0))
        .is_none_or(|first| write.place < first)
    {
        return Vec::new();
    }
    let about = history.covered(write.place, write.words);
    let number = |word: u64| {
        let from = word as usize * 8;
        u64::from_le_bytes(write.line[from..from + 8].try_into().expect("8 bytes"))
    };
    about
        .into_iter()
        .map(|place| (place, number(place.0 % 8)))
        .collect()
}

/// What a line would be after a cut, kept in two ways.
struct Twice {
    array: (Line, Option<[u8; 8]>),
    drained: (Line, Option<[u8; 8]>),
    queued: VecDeque<Write>,
}

fn apply(to: &mut (Line, Option<[u8; 8]>), write: &Write) {
    to.0 = merged(to.0, &write.line, write.words);
    to.1 = write.sideband.or(to.1);
}

/// Goes through the journal and asserts that draining the queues over the array always gives the
/// same bytes, whether an array write is done or not.
///
/// # Panics
/// If not: a bug in Sardonyx.
pub fn array_writes_change_nothing(history: &History) {
    let mut lines: FxHashMap<u64, Twice> = FxHashMap::default();
    let journal = &history.journal;
    let now = |place: Place| {
        let line = history.image.read(place).unwrap_or(ZERO_LINE);
        (line, history.image.sideband(place))
    };
    for (at, event) in &journal.events {
        match event {
            Event::Ready { from, count } => {
                for write in &journal.writes[*from as usize..(*from + *count) as usize] {
                    let line = lines.entry(write.place.0).or_insert_with(|| Twice {
                        array: now(write.place),
                        drained: now(write.place),
                        queued: VecDeque::new(),
                    });
                    apply(&mut line.drained, write);
                    line.queued.push_back(write.clone());
                }
            }
            Event::Done(index) => {
                let write = &journal.array[*index as usize];
                let line = lines.get_mut(&write.place.0).expect("it was accepted");
                apply(&mut line.array, write);
                while line.queued.front().is_some_and(|w| w.order <= write.order) {
                    line.queued.pop_front();
                }
                let mut drained = line.array;
                for write in &line.queued {
                    apply(&mut drained, write);
                }
                assert!(
                    drained == line.drained,
                    "an array write at {at:?} changed what a cut leaves at {:?}",
                    write.place
                );
            }
            _ => {}
        }
    }
}
