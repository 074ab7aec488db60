//! Checks of the journal that need no recovery: no half of a counter-atomic pair persists without the other, and no
//! counter before its line; no request is accepted before the write of its own line; and under `adr` an array write
//! changes nothing that a cut would leave.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::history::History;
use crate::platform::Platform;
use crate::violation::{Kind, Violation};
use crate::words::numbers;
use sardonyx::controller::encryption::global_counter::{MARK, SURVIVAL, Survival};
use sardonyx::controller::layers::{Guarantee, Placement};
use sardonyx::line::{Line, Persist, Place, ZERO_LINE};
use sardonyx::plan::journal::{Domain, Event, MediumWrite};
use sardonyx::plan::merged;

/// Returns the positions at which half of a pair, or a counter without its line, would be left: the first position of
/// each, in the order of the journal. Where reserve power drains the processor's caches a counter may precede its line:
/// until the line is accepted it is drained and written again.
pub fn pairs(history: &History, platform: Platform) -> Vec<Violation> {
    let journal = &history.journal;
    let ready = journal.accepted().map(|(at, write)| (write.order, at));
    let ready: FxHashMap<u64, u64> = ready.collect();
    let mut found = Vec::new();
    let mut report = |at, place, what| {
        found.push(Violation {
            place: Some(place),
            ..Violation::new(Kind::HalfAPair, at, what)
        });
    };
    let mut lines: FxHashMap<(Place, u64), u64> = FxHashMap::default();
    for sealed in &journal.sealed {
        lines.insert((sealed.place, sealed.counter), sealed.order);
        let Some(paired) = sealed.paired_with else {
            continue;
        };
        let (line, counter) = (ready.get(&sealed.order), ready.get(&paired));
        if line != counter {
            let at = *line.into_iter().chain(counter).min().expect("one of them");
            let what = format!("counter {} and its line are not one event", sealed.counter);
            report(at, sealed.place, what);
        }
    }
    if !platform.keeps_stores() {
        for (at, write) in journal.accepted() {
            for place in history.covered(write.place, write.words) {
                let counter = history.counter_in(&write.line, place);
                let line = lines.get(&(place, counter));
                if line.is_some_and(|line| ready.get(line).is_none_or(|line| *line > at)) {
                    let what = format!("counter {counter} persists before its line");
                    report(at, place, what);
                }
            }
        }
    }
    found.sort_by_key(|violation| violation.position);
    found
}

/// Returns the positions at which requests are accepted whose lines, encrypted for them at home, are not accepted yet,
/// and for which nothing is kept in registers either. A log may put back what such a line was, so that few cuts show it.
/// Where programs keep a log of their own a write may wait on chip until they ask for its metadata, unless it is
/// counter-atomic or the design promises every line.
pub fn acknowledged(history: &History, platform: Platform) -> Vec<Violation> {
    if platform.keeps_stores() || !matches!(history.placement, Placement::Home) {
        return Vec::new();
    }
    let journal = &history.journal;
    let all = history.keeps_log() || history.guarantee == Guarantee::EveryLine;
    let ready: FxHashMap<u64, u64> = (journal.accepted())
        .map(|(at, write)| (write.order, at))
        .collect();
    let mut late = FxHashMap::default();
    for sealed in &journal.sealed {
        let Some(request) = journal.request_of(sealed.order) else {
            continue;
        };
        let handled = &journal.handled[request];
        let counts = all || handled.persist == Persist::CounterAtomic;
        if counts && handled.line.0 == sealed.place.0 {
            late.insert(request as u32, ready.get(&sealed.order).copied());
        }
    }
    let mut kept = FxHashSet::default();
    let events = journal.events.iter().zip(1..);
    let accepted = events.filter_map(|((_, event), at)| match *event {
        Event::OnChip(change) => {
            let change = &journal.on_chip[change as usize];
            let request = journal.request_of(change.write.order);
            kept.extend(request.filter(|_| change.domain == Domain::Registers));
            None
        }
        Event::Accepted(request) => (!kept.contains(&(request as usize))).then_some((request, at)),
        _ => None,
    });
    let early = accepted.filter(|(request, at)| {
        let ready = late.get(request);
        ready.is_some_and(|ready| ready.is_none_or(|ready| ready > *at))
    });
    let found = early.map(|(request, at)| {
        let line = journal.handled[request as usize].line.0;
        Violation {
            line: Some(line),
            ..Violation::new(
                Kind::LineLost,
                at,
                format!("a write of line {line} is accepted, and its bytes are not"),
            )
        }
    });
    found.collect()
}

/// Returns the positions at which a counter would be left that the mark of the next one is below: a recovery draws it
/// again, whatever its first write is.
pub fn marks(history: &History) -> Vec<Violation> {
    let settings = &history.machine.settings;
    let region = history.layout().region(MARK);
    let Some(place) = region.map(|region| region.line(0)) else {
        return Vec::new();
    };
    if settings.get(&SURVIVAL) != Survival::HighWater {
        return Vec::new();
    }
    let journal = &history.journal;
    let sealed = journal.sealed.iter().map(|sealed| (sealed.order, sealed));
    let sealed: FxHashMap<u64, _> = sealed.collect();
    let mut mark = history
        .image
        .read(place)
        .map_or(0, |line| numbers(&line)[0]);
    let mut found = Vec::new();
    for ((_, event), at) in journal.events.iter().zip(1..) {
        let writes = || journal.accepted_by(*event).iter();
        for write in writes().filter(|write| write.place == place && write.words & 1 == 1) {
            mark = numbers(&write.line)[0];
        }
        // A near medium has a mark of its own.
        let far = writes().filter(|write| !write.place.is_near());
        for sealed in far.filter_map(|write| sealed.get(&write.order)) {
            if sealed.counter > mark {
                let what = format!(
                    "counter {} persists, and the mark is {mark}",
                    sealed.counter
                );
                found.push(Violation {
                    place: Some(sealed.place),
                    ..Violation::new(Kind::PadWithinReach, at, what)
                });
            }
        }
    }
    found
}

/// A line, and the eight bytes beside it.
type SideBytes = (Line, Option<[u8; 8]>);

/// Two accounts of what a cut leaves of a line: the array with the queued writes over it, and the sum of all accepted
/// writes.
struct Twice {
    array: SideBytes,
    drained: SideBytes,
    queued: VecDeque<MediumWrite>,
}

fn apply(to: &mut SideBytes, write: &MediumWrite) {
    to.0 = merged(to.0, &write.line, write.words);
    // A line that has moved brings what lay beside it, be it nothing.
    let kept = to.1.filter(|_| !write.moved.whole);
    to.1 = write.sideband.or(kept);
}

/// Returns the array writes after which a cut would leave other bytes than before, and those of lines that were never
/// accepted.
pub fn array_writes(history: &History) -> Vec<Violation> {
    let mut lines: FxHashMap<u64, Twice> = FxHashMap::default();
    let journal = &history.journal;
    let mut found = Vec::new();
    for ((_, event), at) in journal.events.iter().zip(1..) {
        for write in journal.accepted_by(*event) {
            let line = lines.entry(write.at.0).or_insert_with(|| {
                let now = history.image.read(write.at).unwrap_or(ZERO_LINE);
                let now = (now, history.image.sideband(write.at));
                Twice {
                    array: now,
                    drained: now,
                    queued: VecDeque::new(),
                }
            });
            apply(&mut line.drained, write);
            line.queued.push_back(write.clone());
        }
        let Event::Done(index) = event else { continue };
        let write = &journal.array[*index as usize];
        let mut report = |what: &str| {
            let place = Some(write.place);
            let what = format!("the array write of place {} {what}", write.place.0);
            found.push(Violation {
                place,
                ..Violation::new(Kind::ArrayWrite, at, what)
            });
        };
        let Some(line) = lines.get_mut(&write.at.0) else {
            report("is of a write that was never accepted");
            continue;
        };
        apply(&mut line.array, write);
        // The array write carries out all writes of the line that were queued up to it, merged ones among them.
        while line.queued.front().is_some_and(|w| w.order <= write.order) {
            line.queued.pop_front();
        }
        let mut drained = line.array;
        for write in &line.queued {
            apply(&mut drained, write);
        }
        if drained != line.drained {
            report("changes what a cut leaves");
            line.drained = drained;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the medium has it, so that a merged move of a line that nothing lies beside is no change by itself.
    #[test]
    fn a_line_that_has_moved_leaves_nothing_of_what_lay_beside_another() {
        let other = Some([7; 8]);
        for (whole, beside) in [(true, None), (false, other)] {
            let mut write = MediumWrite {
                order: 1,
                place: Place(63),
                at: Place(1),
                moved: Default::default(),
                line: [1; 64],
                words: 0xff,
                sideband: None,
                merged_into: None,
            };
            write.moved.whole = whole;
            let mut left = (ZERO_LINE, other);
            apply(&mut left, &write);
            assert_eq!(left, ([1; 64], beside));
        }
    }
}
