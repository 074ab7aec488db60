//! The history of a violation in words, from the journal alone: the requests for the line, what became of them in the
//! queues and in the array, and the counters of the line.

use rustc_hash::FxHashSet;

use crate::history::History;
use crate::violation::{Kind, Violation};
use sardonyx::controller::layers::BESIDE;
use sardonyx::line::Place;
use sardonyx::plan::journal::{Event, Mark, MediumWrite, Sealed};

/// At most this many events of a line are shown, and as many marks if the violation is about no line: the last before
/// the cut.
const EVENTS: usize = 12;
const MARKS: usize = 8;
const EVENTS_BEFORE: usize = 4;
const LEVELS: usize = 32;

/// The events that led to `violation`, a line of text each.
pub fn explain(history: &History, violation: &Violation) -> Vec<String> {
    let mut story = vec![headline(history, violation)];
    story.extend(violation.evidence.iter().map(|line| format!("  {line}")));
    if !violation.story.is_empty() {
        let life = history.life + 1;
        story.push(format!("  in life {life} of the programs:"));
        story.extend(violation.story.iter().map(|line| format!("  {line}")));
        story.push("  before:".to_owned());
    }
    story.extend(vouching(history, violation));
    let line = violation.line.or(violation.place.map(|place| place.0));
    story.extend(line.and_then(|line| counters(history, violation.position, line)));
    story.extend(events(history, violation, line));
    story
}

/// Tells which lines vouch for the refused one, and when each part of them was accepted last.
fn vouching(history: &History, violation: &Violation) -> Vec<String> {
    let (Some(place), Some(kept)) = (violation.place, history.power_fail()) else {
        return Vec::new();
    };
    if violation.kind != Kind::NotAuthentic || !violation.later_cuts.is_empty() {
        return Vec::new();
    }
    let accepted = || {
        let all = history.journal.accepted();
        all.take_while(|(at, _)| *at <= violation.position)
    };
    let name = |place| {
        let (region, line) = history.layout().name_of(place);
        format!("line {line} of {region}")
    };
    let when = |place| match accepted().filter(|(_, write)| write.place == place).last() {
        Some((at, _)) => format!("accepted last at {at}"),
        None => "not written since setup".to_owned(),
    };
    let mut told = vec![format!("  {}: {}", name(place), when(place))];
    if let Some((at, number)) = kept.kept_of(place) {
        let word = match number {
            BESIDE => "beside".to_owned(),
            number => format!("word {number} of"),
        };
        told.push(format!("  its MAC, {word} {}: {}", name(at), when(at)));
    }
    let levels = (0..LEVELS).filter_map(|level| Some((level, kept.over(place, level)?)));
    for (level, node) in levels {
        if node != place {
            told.push(format!("  above it, {}: {}", name(node), when(node)));
            continue;
        }
        let below = |at| kept.kept_of(at).is_some() && kept.over(at, level) == Some(place);
        let newest = accepted().filter(|(_, write)| below(write.place)).last();
        told.extend(newest.map(|(at, write)| {
            let line = name(write.place);
            format!("  below it the newest is {line}, accepted at {at}: the register knows it")
        }));
    }
    told
}

fn headline(history: &History, violation: &Violation) -> String {
    let at = match violation.position {
        0 => "before the first event".to_owned(),
        position => {
            let (time, _) = history.journal.events[position as usize - 1];
            format!("{:.1} ns", time.ns())
        }
    };
    let (kind, cut) = (violation.kind.name(), violation.position);
    let mut text = match history.life {
        1 => {
            let (design, seed) = (&history.design, history.seed);
            format!("{kind} on {design}, seed {seed}, cut {cut} ({at})")
        }
        life => format!("{kind} in life {life}, cut {cut} ({at})"),
    };
    for cut in &violation.later_cuts {
        text += &format!(", then cut {cut} of the life after that");
    }
    if let Some(core) = violation.core {
        text += &format!(", core {core}");
    }
    if let Some(line) = violation.line {
        text += &format!(", line {line}");
    }
    text + ": " + &violation.what
}

/// Places to which the contents of `line` went, newest last: each write with its number, place and counter.
fn sealed_of(history: &History, line: u64) -> Vec<&Sealed> {
    let journal = &history.journal;
    let requests = history.requests.get(&line).into_iter().flatten();
    let sealed = requests.filter_map(|index| {
        let request = &journal.handled[*index as usize];
        let from = journal.sealed.partition_point(|s| s.order < request.order);
        let own = journal.sealed.get(from)?;
        (journal.request_of(own.order) == Some(*index as usize)).then_some(own)
    });
    sealed.collect()
}

/// Tells the counter of the ciphertext that a cut leaves, and the counter that it leaves for it.
fn counters(history: &History, position: u64, line: u64) -> Option<String> {
    let journal = &history.journal;
    let until = |(at, _): &(u64, &MediumWrite)| *at <= position;
    let accepted = || journal.accepted().take_while(until).map(|(_, write)| write);
    let orders: FxHashSet<u64> = accepted().map(|write| write.order).collect();
    let sealed = sealed_of(history, line);
    let newest = sealed.iter().rfind(|s| orders.contains(&s.order));
    let place = newest.map_or(Place(line), |s| s.place);
    if let Some(region) = history
        .layout()
        .regions()
        .iter()
        .find(|r| r.contains(place))
    {
        let number = place.0 - region.first.0;
        let (at, name) = (place.0, region.name);
        return Some(format!(
            "  place {at}: line {number} of {name}, which has no counter"
        ));
    }
    let counters = history.counter_place(place);
    let counters = counters.and_then(|at| history.image.read(at));
    let mut beside = counters.map(|counters| history.counter_in(&counters, place));
    let mut data = None;
    for write in accepted() {
        if write.place == place {
            let sealed = journal.sealed.iter().find(|s| s.order == write.order);
            data = sealed.map(|s| s.counter).or(data);
            beside = write.sideband.map(u64::from_le_bytes).or(beside);
        } else if let Some(counter) = carried(history, write, place) {
            beside = Some(counter);
        }
    }
    let shown = |counter: Option<u64>| counter.map_or("none".to_owned(), |c| c.to_string());
    history.is_encrypted().then(|| {
        format!(
            "  place {}: encrypted last under counter {} (setup's if none); the counter kept is {}",
            place.0,
            shown(data),
            shown(beside)
        )
    })
}

fn carried(history: &History, write: &MediumWrite, place: Place) -> Option<u64> {
    let covered = history.covered(write.place, write.words);
    covered
        .contains(&place)
        .then(|| history.counter_in(&write.line, place))
}

fn events(history: &History, violation: &Violation, line: Option<u64>) -> Vec<String> {
    let journal = &history.journal;
    let mut places: Vec<Place> = line.into_iter().map(Place).collect();
    let sealed = line.map_or(Vec::new(), |line| sealed_of(history, line));
    places.extend(sealed.iter().map(|s| s.place));
    places.sort_unstable();
    places.dedup();
    let mut shown = Vec::new();
    let until = violation.position as usize;
    for (index, (time, event)) in journal.events[..until].iter().enumerate() {
        let mut show = |what: String| {
            shown.push(format!("  {:>8} {:>12.1} ns  {what}", index + 1, time.ns()));
        };
        match event {
            Event::Ready { count, .. } => {
                for write in journal.accepted_by(*event) {
                    if places.contains(&write.place) {
                        let sealed = journal.sealed.iter().find(|s| s.order == write.order);
                        let sealed = sealed.map(|s| format!(" under counter {}", s.counter));
                        let sealed = sealed.unwrap_or_default();
                        let group = if *count > 1 { ", in a group" } else { "" };
                        let merged = write.merged_into.map_or("", |_| ", merged");
                        let place = write.place.0;
                        show(format!("place {place} accepted{sealed}{group}{merged}"));
                    }
                    for place in &places {
                        if let Some(counter) = carried(history, write, *place) {
                            show(format!("counter {counter} of place {} accepted", place.0));
                        }
                    }
                }
            }
            Event::Done(write) => {
                let write = &journal.array[*write as usize];
                if places.contains(&write.place) {
                    show(format!("place {} done in the array", write.place.0));
                }
            }
            Event::Accepted(request) => {
                let request = &journal.handled[*request as usize];
                let (at, persist) = (request.line.0, request.persist);
                if line == Some(at) {
                    show(format!("write of line {at} complete ({persist:?})"));
                }
            }
            Event::Mark { core, mark } if Some(*core as usize) == violation.core => {
                show(mark_text(*core, *mark));
            }
            _ => {}
        }
    }
    let most = match line {
        _ if !violation.story.is_empty() => EVENTS_BEFORE,
        Some(_) => EVENTS,
        None => MARKS,
    };
    shown.split_off(shown.len().saturating_sub(most))
}

fn mark_text(core: u32, mark: Mark) -> String {
    match mark {
        Mark::Fence => format!("core {core}: a fence retires"),
        Mark::Begin(number) => format!("core {core}: transaction {number} begins"),
        Mark::Committing(number) => format!("core {core}: transaction {number} begins to commit"),
        Mark::Committed(number) => format!("core {core}: transaction {number} has committed"),
    }
}
