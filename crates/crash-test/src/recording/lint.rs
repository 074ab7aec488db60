//! Faults that a recording shows without running anything: stores that were never flushed, flushes that were never
//! fenced, stores that another thread used before they were persistent, and flushes and fences that did nothing.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_trace::{TraceReader, TraceWriter};
use serde::Serialize;

use crate::Result;
use crate::recording::races::{Effect, RacePair, races};
use crate::recording::source::{Frame, Sources, caller};
use crate::recording::{Act, LINE, NOWHERE, Recording};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintFault {
    NeverFlushed,
    NeverFenced,
    /// A store that another thread loaded, and made something persistent or printed something, before it was
    /// persistent.
    UsedTooEarly,
    FlushedTwice,
    FlushedClean,
    /// A fence of a thread that had flushed nothing since its last.
    FenceForNothing,
}

impl LintFault {
    pub fn meaning(self) -> &'static str {
        match self {
            LintFault::NeverFlushed => "stored and never flushed",
            LintFault::NeverFenced => "flushed and never fenced",
            LintFault::UsedTooEarly => "used by another thread before it was persistent",
            LintFault::FlushedTwice => "flushed again without a store between",
            LintFault::FlushedClean => "flushed though never stored to",
            LintFault::FenceForNothing => "a fence with no flush before it",
        }
    }

    /// Whether the program would only be slower with this instruction.
    fn idle(self) -> bool {
        matches!(
            self,
            LintFault::FlushedTwice | LintFault::FlushedClean | LintFault::FenceForNothing
        )
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub fault: LintFault,
    pub meaning: &'static str,
    /// `file.c:12`, or another description if the line is not known.
    pub place: String,
    pub frame: Option<Frame>,
    /// The library's function that did it, if the user's line did not do it itself.
    pub through: Option<String>,
    pub count: u64,
    pub row: u64,
    /// The offset of the first in the pool; `None` for a fence.
    pub offset: Option<u64>,
    pub pool: Option<String>,
    /// The place where another thread loaded the store too early, and what it did then.
    pub used: Option<String>,
    /// Set if a library did it while it set the pool up, before the program's own first store.
    pub setup: bool,
}

/// The findings, and the rows of the recording that did nothing.
#[derive(Debug, Default)]
pub struct Linted {
    pub findings: Vec<Finding>,
    /// The rows of idle flushes, and of idle fences.
    pub idle: [FxHashSet<u64>; 2],
    pub of: (u64, u64, u64),
}

/// Stores to a line since its last flush: the last store of each place in the program, at most one for each byte.
#[derive(Clone, Debug, Default)]
struct Unflushed {
    stores: Vec<usize>,
    stored: bool,
}

impl Unflushed {
    fn store(&mut self, recording: &Recording, number: usize, past: bool) {
        if past {
            self.stored = !self.stores.is_empty();
            return;
        }
        self.stored = true;
        let site = recording.events.site(number);
        self.stores
            .retain(|&earlier| recording.events.site(earlier) != site);
        if self.stores.len() == LINE {
            self.stores.remove(0);
        }
        self.stores.push(number);
    }
}

/// Returns faults with the numbers of their events, and counts stores, flushes and fences.
pub(crate) fn faults(recording: &Recording, of: &mut (u64, u64, u64)) -> Vec<(LintFault, usize)> {
    // Stores by line; flushes of each thread since its last fence.
    let mut lines: Vec<Unflushed> = vec![Unflushed::default(); recording.lines.len()];
    let mut flushed: FxHashMap<u16, Vec<usize>> = FxHashMap::default();
    let mut found: Vec<(LintFault, usize)> = Vec::new();
    for (number, event) in recording.walk().enumerate() {
        match event.act {
            Act::Store { slot, past, .. } => {
                of.0 += 1;
                if past {
                    flushed.entry(event.thread).or_default().push(number);
                }
                lines[slot as usize].store(recording, number, past);
            }
            Act::Flush { slot, ordered } => {
                of.1 += 1;
                match std::mem::take(&mut lines[slot as usize]) {
                    Unflushed { stored: false, .. } => {
                        found.push((LintFault::FlushedTwice, number));
                    }
                    _ if !ordered => flushed.entry(event.thread).or_default().push(number),
                    _ => {}
                }
            }
            Act::FlushClean => {
                of.1 += 1;
                found.push((LintFault::FlushedClean, number));
            }
            Act::Foreign => flushed.entry(event.thread).or_default().push(usize::MAX),
            Act::Fence => {
                of.2 += 1;
                let waiting = flushed.remove(&event.thread).unwrap_or_default();
                let site = recording.sites.get(event.site as usize);
                if waiting.is_empty() && !site.is_some_and(|site| site.locked || site.pc == 0) {
                    found.push((LintFault::FenceForNothing, number));
                }
            }
        }
    }
    let stores = lines.iter().flat_map(|line| &line.stores);
    found.extend(stores.map(|number| (LintFault::NeverFlushed, *number)));
    let waiting = flushed
        .values()
        .flatten()
        .filter(|&&number| number != usize::MAX);
    found.extend(waiting.map(|&number| (LintFault::NeverFenced, number)));
    found
}

/// The event of the first store that is in a line of the user's own, and not in a library that it called.
fn own_first(recording: &Recording, sources: &mut Sources<'_>) -> Option<usize> {
    let mut known: FxHashMap<u32, bool> = FxHashMap::default();
    (0..recording.events.len()).find(|&number| {
        let site = recording.events.site(number);
        recording.events.is_store(number)
            && site != NOWHERE
            && *known
                .entry(site)
                .or_insert_with(|| sources.stack(site).first().is_some_and(Frame::own))
    })
}

/// Functions that only flush and fence for others: they store nothing to the files themselves and are called from
/// several lines. A flush for nothing in such a function is its caller's affair.
#[derive(Debug, Default)]
struct Servants(FxHashSet<String>);

impl Servants {
    fn from_recording(recording: &Recording, sources: &mut Sources<'_>) -> Servants {
        let (mut known, mut storing) = (FxHashSet::default(), FxHashSet::default());
        let mut callers: FxHashMap<String, FxHashSet<String>> = FxHashMap::default();
        for number in 0..recording.events.len() {
            let (site, stores) = (
                recording.events.site(number),
                recording.events.is_store(number),
            );
            if site == NOWHERE || !known.insert((site, stores)) {
                continue;
            }
            let stack = sources.stack(site);
            let own: Vec<&Frame> = stack.iter().filter(|frame| frame.own()).collect();
            if stores {
                storing.extend(own.first().and_then(|frame| function(frame)));
            }
            for pair in own.windows(2).filter(|_| !stores) {
                let called = function(pair[0]);
                callers
                    .entry(called.unwrap_or_default())
                    .or_default()
                    .insert(pair[1].place());
            }
        }
        let several = callers.into_iter().filter(|(_, from)| from.len() > 1);
        let names = several.map(|(name, _)| name);
        Servants(names.filter(|name| !storing.contains(name)).collect())
    }

    /// The frame to which a flush or a fence is attributed.
    fn master<'a>(&self, stack: &'a [Frame]) -> Option<&'a Frame> {
        let serves = |frame: &&Frame| function(frame).is_some_and(|name| self.0.contains(&name));
        let from = caller(stack)?;
        let at = stack.iter().position(|frame| frame == from)?;
        let mut own = stack[at..].iter().filter(|frame| frame.own());
        own.find(|frame| !serves(frame)).or(Some(from))
    }
}

/// A function's name without type arguments.
fn function(frame: &Frame) -> Option<String> {
    let name = frame.function.as_ref()?;
    let bare = name.split(['<', '(']).next().unwrap_or(name);
    Some(bare.rsplit(' ').next().unwrap_or(bare).to_owned())
}

/// Names of functions that take or free a lock, whose words are persistent only by chance.
const LOCKS: [&str; 5] = ["lock", "mutex", "sem_", "pthread_", "cnd_"];

/// Whether an instruction belongs to a library's lock function.
fn is_lock(stack: &[Frame]) -> bool {
    let mut library = stack.iter().take_while(|frame| !frame.own());
    let of_lock = |name: &String| LOCKS.iter().any(|word| name.contains(word));
    library.any(|frame| frame.function.as_ref().is_some_and(of_lock))
}

/// The store of each pair of threads, and the way in which it was used too early.
fn used(
    recording: &Recording,
    sources: &mut Option<Sources<'_>>,
    pairs: &[RacePair],
) -> Vec<(usize, u64, String)> {
    let mut stack = |site: u32| match sources {
        Some(sources) if site != NOWHERE => sources.stack(site),
        _ => Vec::new(),
    };
    let place = |stack: &[Frame]| {
        let frame = stack.iter().find(|frame| frame.own()).or(stack.first());
        frame.map_or_else(|| "no place known".to_owned(), Frame::place)
    };
    let told = pairs.iter().filter_map(|pair| {
        let load = stack(pair.load_site);
        if is_lock(&load) || is_lock(&stack(recording.events.site(pair.store as usize))) {
            return None;
        }
        let first = match pair.effect {
            Effect::Persisted(event) => {
                let fence = stack(recording.events.site(event as usize));
                let fence = caller(&fence).map_or_else(|| place(&fence), Frame::place);
                format!("{fence} made its own persistent first")
            }
            Effect::Printed => "printed first".to_owned(),
        };
        let used = format!("loaded at {}, row {}, {first}", place(&load), pair.load_row);
        Some((pair.store as usize, pair.count, used))
    });
    told.collect()
}

pub fn lint(recording: &Recording, source: bool) -> Result<Linted> {
    findings(recording, source, &races(recording)?)
}

/// In turn: faults of flushes and fences and values that were used too early are found; each is counted for the line of
/// the user's own that a store has, or for the line that a flush or fence serves; and equal ones are one finding.
fn findings(recording: &Recording, source: bool, pairs: &[RacePair]) -> Result<Linted> {
    if source {
        Sources::new(recording).check()?;
    }
    let mut sources = (source && !recording.sites.is_empty()).then(|| Sources::new(recording));
    let mut linted = Linted::default();
    let found = faults(recording, &mut linted.of);
    let first = sources.as_mut();
    let first = first.and_then(|sources| own_first(recording, sources));
    let servants = match &mut sources {
        Some(sources) => Servants::from_recording(recording, sources),
        None => Servants::default(),
    };
    let mut places: BTreeMap<(LintFault, String, bool, Option<String>), Finding> = BTreeMap::new();
    let found = found
        .into_iter()
        .map(|(fault, number)| (fault, number, 1, None));
    let used = used(recording, &mut sources, pairs).into_iter();
    let used = used.map(|(number, count, how)| (LintFault::UsedTooEarly, number, count, Some(how)));
    for (fault, number, count, used) in found.chain(used) {
        let event = recording.event(number as u32);
        if fault.idle() {
            linted.idle[usize::from(fault == LintFault::FenceForNothing)].insert(event.row);
        }
        let stack = match &mut sources {
            Some(sources) if event.site != NOWHERE => sources.stack(event.site),
            _ => Vec::new(),
        };
        let chosen = match event.act {
            Act::Store { .. } => stack.iter().find(|frame| frame.own()),
            _ => servants.master(&stack),
        };
        let own = chosen.and_then(|chosen| stack.iter().position(|frame| frame == chosen));
        let frame = own.map(|at| stack[at].clone());
        let place = match (&frame, stack.first()) {
            (Some(frame), _) | (None, Some(frame)) => frame.place(),
            (None, None) => "no place known".to_owned(),
        };
        let slot = match event.act {
            Act::Store { slot, .. } | Act::Flush { slot, .. } => Some(slot),
            _ => None,
        };
        let offset = slot.map(|slot| u64::from(recording.lines[slot as usize].line) * 64);
        // Before the user's own first store a library makes the pool, and nobody could have used it.
        let setup =
            first.is_some_and(|first| number < first) && !stack.first().is_some_and(Frame::own);
        let finding = places.entry((fault, place.clone(), setup, used.clone()));
        finding
            .or_insert_with(|| Finding {
                fault,
                meaning: fault.meaning(),
                place,
                through: (own.unwrap_or(0) > 0)
                    .then(|| {
                        stack[..own.unwrap_or(0)]
                            .iter()
                            .rev()
                            .find_map(|f| f.function.clone())
                    })
                    .flatten(),
                frame,
                count: 0,
                row: event.row,
                offset,
                pool: slot.and_then(|slot| recording.pool_of(slot)),
                used,
                setup,
            })
            .count += count;
    }
    linted.findings = places.into_values().collect();
    linted
        .findings
        .sort_by_key(|finding| (finding.fault, std::cmp::Reverse(finding.count)));
    Ok(linted)
}

/// Writes the recording's accesses to the pool, and its fences, without the given rows. All other records become
/// instructions.
pub fn without(recording: &Recording, rows: &FxHashSet<u64>, to: &Path) -> Result<()> {
    let mut reader = TraceReader::open(&recording.path)?;
    let mut writer = TraceWriter::with_level(to, reader.provenance().clone(), 1)?;
    let kept: FxHashSet<u64> = (recording.walk())
        .filter(|event| event.act != Act::Foreign && !rows.contains(&event.row))
        .map(|event| event.row)
        .collect();
    let (mut batch, mut row, mut owed) = (Vec::new(), 0u64, 0u64);
    while reader.next_batch(&mut batch)? {
        recording.interrupt.check()?;
        for record in &mut batch {
            owed += u64::from(record.gap);
            if kept.contains(&row) {
                record.gap = owed.min(u64::from(u32::MAX)) as u32;
                owed -= u64::from(record.gap);
                writer.push(record)?;
            }
            row += 1;
        }
    }
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Do::{self, Clflush, Clwb, Elsewhere, Fence, Past, Store};
    use crate::testing::recording;

    fn faults(program: &[(u16, Do)]) -> Vec<(LintFault, u64)> {
        let linted = findings(&recording(program), false, &[]).unwrap();
        let findings = linted.findings.iter();
        findings
            .map(|finding| (finding.fault, finding.count))
            .collect()
    }

    #[test]
    fn what_is_flushed_and_fenced_is_no_fault() {
        assert_eq!(faults(&[(0, Store(0, 1)), (0, Clwb(0)), (0, Fence)]), []);
        assert_eq!(faults(&[(0, Past(0, 1)), (0, Fence)]), []);
        assert_eq!(faults(&[(0, Store(0, 1)), (0, Clflush(0))]), []);
        let twice = [Store(0, 1), Clwb(0), Store(0, 2), Clwb(0), Fence].map(|what| (0, what));
        assert_eq!(faults(&twice), []);
    }

    #[test]
    fn each_fault_is_found_where_it_is() {
        let never_flushed = [(0, Store(0, 1)), (0, Clwb(0)), (0, Fence), (0, Store(0, 2))];
        assert_eq!(faults(&never_flushed), [(LintFault::NeverFlushed, 1)]);
        let never_fenced = [
            (0, Store(0, 1)),
            (0, Clwb(0)),
            (1, Store(1, 1)),
            (1, Clwb(1)),
            (1, Fence),
        ];
        assert_eq!(faults(&never_fenced), [(LintFault::NeverFenced, 1)]);
        assert_eq!(faults(&[(0, Past(0, 1))]), [(LintFault::NeverFenced, 1)]);
        let again = [
            (0, Store(0, 1)),
            (0, Clwb(0)),
            (0, Clwb(0)),
            (0, Clflush(0)),
            (0, Fence),
        ];
        assert_eq!(faults(&again), [(LintFault::FlushedTwice, 2)]);
        assert_eq!(faults(&[(0, Clwb(4))]), [(LintFault::FlushedClean, 1)]);
        let other_thread = [(0, Store(0, 1)), (0, Clwb(0)), (1, Fence), (0, Fence)];
        assert_eq!(faults(&other_thread), [(LintFault::FenceForNothing, 1)]);
    }

    #[test]
    fn rows_that_could_be_left_out_are_told_apart() {
        let program = [
            (0, Store(0, 1)), // row 0
            (0, Clwb(0)),
            (0, Clwb(0)), // idle
            (0, Clwb(9)), // idle
            (0, Fence),
            (0, Fence),       // idle
            (0, Store(2, 1)), // never flushed, which is not idle
        ];
        let linted = findings(&recording(&program), false, &[]).unwrap();
        assert_eq!(linted.idle[0], FxHashSet::from_iter([2, 3]));
        assert_eq!(linted.idle[1], FxHashSet::from_iter([5]));
        assert_eq!(linted.of, (2, 3, 2));
        let never = linted
            .findings
            .iter()
            .find(|finding| finding.fault == LintFault::NeverFlushed);
        assert_eq!(
            never.map(|finding| (finding.row, finding.offset)),
            Some((6, Some(2 * 64)))
        );
    }

    /// A thread that flushes lines of another file has something to wait for.
    #[test]
    fn a_fence_for_another_file_is_not_for_nothing() {
        let made = recording(&[
            (0, Store(0, 1)),
            (0, Clwb(0)),
            (0, Fence),
            (0, Elsewhere),
            (0, Fence),
        ]);
        assert_eq!(findings(&made, false, &[]).unwrap().findings.len(), 0);
    }
}
