//! The history that led to a violation, for people: what was asked for of the line, what became of
//! it in the queues and in the array, and which counters there are. From the journal alone.

use rustc_hash::FxHashSet;

use super::history::History;
use super::violation::Violation;
use crate::line::Place;
use crate::plan::journal::{Event, Mark, Sealed, Write};

/// Events that are told at most, the last before the cut.
const TOLD: usize = 24;

/// What led to `violation`, a line of text each.
pub fn explain(history: &History, violation: &Violation) -> Vec<String> {
    let mut story = vec![headline(history, violation)];
    let line = violation.line.or(violation.place.map(|place| place.0));
    if let Some(line) = line {
        story.extend(counters(history, violation.position, line));
        story.extend(events(history, violation, line));
    } else if let Some(core) = violation.core {
        story.extend(marks(history, violation.position, core));
    }
    story
}

fn headline(history: &History, violation: &Violation) -> String {
    let at = match violation.position {
        0 => "before the first event".to_owned(),
        position => {
            let (time, _) = history.journal.events[position as usize - 1];
            format!("{:.1} ns", time.ns())
        }
    };
    let mut text = format!(
        "{} on {}, seed {}, cut {} ({at})",
        violation.kind.name(),
        history.design,
        history.seed,
        violation.position
    );
    if let Some(cut) = violation.recovery_cut {
        text += &format!(", and recovery cut at its {cut}");
    }
    if let Some(core) = violation.core {
        text += &format!(", core {core}");
    }
    if let Some(line) = violation.line {
        text += &format!(", line {line}");
    }
    text + ": " + &violation.what
}

/// Where the contents of `line` went, newest last: each write's own number, place and counter.
fn sealed_of(history: &History, line: u64) -> Vec<&Sealed> {
    let journal = &history.journal;
    let requests = history.requests.get(&line).into_iter().flatten();
    let sealed = requests.filter_map(|index| {
        let request = &journal.handled[*index as usize];
        let from = journal.sealed.partition_point(|s| s.order < request.order);
        let until = journal
            .handled
            .get(*index as usize + 1)
            .map_or(u64::MAX, |next| next.order);
        let own = journal.sealed[from..]
            .iter()
            .take_while(|s| s.order < until);
        own.clone().find(|sealed| sealed.plain == request.data)
    });
    sealed.collect()
}

/// The counter of the ciphertext that a cut leaves, and the one that it leaves beside it.
fn counters(history: &History, position: u64, line: u64) -> Option<String> {
    let journal = &history.journal;
    let mut accepted = FxHashSet::default();
    for (_, event) in &journal.events[..position as usize] {
        if let Event::Ready { from, count } = event {
            let writes = &journal.writes[*from as usize..(*from + *count) as usize];
            accepted.extend(writes.iter().map(|write| write.order));
        }
    }
    let sealed = sealed_of(history, line);
    let newest = sealed.iter().rfind(|s| accepted.contains(&s.order));
    let place = newest.map_or(Place(line), |s| s.place);
    let mut beside = history.counter_place(place).and_then(|at| {
        let from = (place.0 % 8) as usize * 8;
        let stored = history.image.read(at)?;
        Some(number(&stored[from..from + 8]))
    });
    let mut data = None;
    for (_, event) in &journal.events[..position as usize] {
        let Event::Ready { from, count } = event else {
            continue;
        };
        for write in &journal.writes[*from as usize..(*from + *count) as usize] {
            if write.place == place {
                let sealed = journal.sealed.iter().find(|s| s.order == write.order);
                data = sealed.map(|s| s.counter).or(data);
                beside = write.sideband.map(u64::from_le_bytes).or(beside);
            } else if let Some(counter) = carried(history, write, place) {
                beside = Some(counter);
            }
        }
    }
    let told = |counter: Option<u64>| counter.map_or("none".to_owned(), |c| c.to_string());
    history.is_encrypted().then(|| {
        format!(
            "  place {}: encrypted last under counter {} (setup's if none); the counter kept is {}",
            place.0,
            told(data),
            told(beside)
        )
    })
}

/// The counter of `place` in a write of its line of counters.
fn carried(history: &History, write: &Write, place: Place) -> Option<u64> {
    let word = place.0 % 8;
    let here = history.counter_place(place) == Some(write.place);
    (here && write.words >> word & 1 == 1).then(|| {
        let from = word as usize * 8;
        number(&write.line[from..from + 8])
    })
}

fn events(history: &History, violation: &Violation, line: u64) -> Vec<String> {
    let journal = &history.journal;
    let sealed = sealed_of(history, line);
    let mut places: Vec<Place> = sealed.iter().map(|s| s.place).collect();
    places.push(Place(line));
    places.sort_unstable();
    places.dedup();
    let mut told = Vec::new();
    for (index, (time, event)) in journal.events[..violation.position as usize]
        .iter()
        .enumerate()
    {
        let mut tell = |what: String| {
            told.push(format!("  {:>8} {:>12.1} ns  {what}", index + 1, time.ns()));
        };
        match event {
            Event::Ready { from, count } => {
                for write in &journal.writes[*from as usize..(*from + *count) as usize] {
                    let of = journal.sealed.iter().find(|s| s.order == write.order);
                    if places.contains(&write.place) {
                        let of =
                            of.map_or(String::new(), |s| format!(" under counter {}", s.counter));
                        let group = if *count > 1 { ", in a group" } else { "" };
                        let merged = if write.merged_into.is_some() {
                            ", merged"
                        } else {
                            ""
                        };
                        tell(format!(
                            "place {} accepted{of}{group}{merged}",
                            write.place.0
                        ));
                    }
                    for place in &places {
                        if let Some(counter) = carried(history, write, *place) {
                            tell(format!("counter {counter} of place {} accepted", place.0));
                        }
                    }
                }
            }
            Event::Done(write) => {
                let write = &journal.array[*write as usize];
                if places.contains(&write.place) {
                    tell(format!("place {} done in the array", write.place.0));
                }
            }
            Event::Accepted(request) => {
                let request = &journal.handled[*request as usize];
                if request.line.0 == line {
                    tell(format!(
                        "write of line {line} complete ({:?})",
                        request.persist
                    ));
                }
            }
            Event::Mark { core, mark } if Some(*core as usize) == violation.core => {
                tell(mark_text(*core, *mark));
            }
            _ => {}
        }
    }
    told.split_off(told.len().saturating_sub(TOLD))
}

fn marks(history: &History, position: u64, core: usize) -> Vec<String> {
    let events = history.journal.events[..position as usize]
        .iter()
        .enumerate();
    let told: Vec<String> = events
        .filter_map(|(index, (time, event))| match event {
            Event::Mark { core: of, mark } if *of as usize == core => {
                let text = mark_text(*of, *mark);
                Some(format!("  {:>8} {:>12.1} ns  {text}", index + 1, time.ns()))
            }
            _ => None,
        })
        .collect();
    told[told.len().saturating_sub(8)..].to_vec()
}

fn mark_text(core: u32, mark: Mark) -> String {
    match mark {
        Mark::Fence => format!("core {core}: a fence retires"),
        Mark::Begin(number) => format!("core {core}: transaction {number} begins"),
        Mark::Committing(number) => format!("core {core}: transaction {number} begins to commit"),
        Mark::Committed(number) => format!("core {core}: transaction {number} has committed"),
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}
