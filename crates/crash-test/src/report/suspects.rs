//! The causes of violations, and the lines of code that are suspected, the most suspected first.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::{Over, WHOLE};
use crate::recording::lint;
use crate::recording::source::{Frame, Sources};
use crate::recording::{Act, Recording};
use crate::report::store::{Store, store};
use crate::search::explore::Explored;
use crate::search::findings::Violation;
use crate::search::reduce::Reduced;

pub(crate) struct Suspect<'a> {
    pub(crate) frame: Option<Frame>,
    pub(crate) through: &'a Option<String>,
    pub(crate) late: bool,
}

/// The weight of a line whose call made a store, relative to the store's own.
const CALLER: f64 = 0.4;

/// The weight of a cause of a later round, relative to the round before, because part of it may be another side of a
/// known fault.
const LATER: f64 = 0.6;
/// The factor for a store that was late and never flushed, or never fenced.
const NEVER: f64 = 1.5;
/// The weights of stores that nobody ever flushes or fences and no cause names: if there are causes, and if there are
/// none.
const UNNAMED: [f64; 2] = [0.05, 0.5];

pub(crate) fn weight(of: &Store, among: usize, late: bool) -> f64 {
    let own = match (&of.frame, &of.through) {
        (Some(_), None) => 1.0,
        (Some(_), Some(_)) => 0.45,
        (None, _) => 0.2,
    };
    let never = of.fate.as_ref().is_some_and(|fate| fate.contains("never"));
    own * if late { 1.05 } else { 1.0 } * if never { NEVER } else { 1.0 } / among as f64
}

pub(crate) struct Cause {
    pub(crate) early: Vec<Store>,
    pub(crate) late: Vec<Store>,
    pub(crate) number: usize,
    pub(crate) reduced: Reduced,
    pub(crate) kept: usize,
    pub(crate) round: usize,
    pub(crate) count: usize,
    pub(crate) first: f64,
}

impl Cause {
    /// Whether the cause counts as a fault however few images have shown it: it has one line, whose store is never
    /// flushed or never fenced.
    fn is_told(&self) -> bool {
        let never = |of: &Store| of.fate.as_ref().is_some_and(|fate| fate.contains("never"));
        let place = self.late.first().map(|of| &of.place);
        self.early.is_empty()
            && !self.late.is_empty()
            && self
                .late
                .iter()
                .all(|of| never(of) && Some(&of.place) == place)
    }
}

/// Groups violations of one kind of moment and image with the one of them that was reduced. Explained causes come
/// first, those of few stores before others, then the most frequent.
///
/// Reduced violations with the same early and late places are one cause, whatever else their stores differ in.
pub(crate) fn causes(explored: &Explored, sources: &mut Option<Sources<'_>>) -> Vec<Cause> {
    let recording = &explored.shared.recording;
    let found = &explored.found;
    let kind = |violation: &Violation| {
        let course = &found.rounds[violation.round].course;
        let cut = course.cuts[violation.image.cut as usize];
        (cut.signature, violation.image.kind)
    };
    let mut alike: FxHashMap<_, usize> = FxHashMap::default();
    for violation in &found.violations {
        *alike.entry(kind(violation)).or_default() += 1;
    }
    let mut causes: BTreeMap<_, Cause> = BTreeMap::new();
    for (kept, (number, reduced)) in found.reduced.iter().enumerate() {
        let violation = &found.violations[*number];
        let course = &found.rounds[violation.round].course;
        let cut = course.cuts[reduced.image.cut as usize].event;
        let mut stores = |overs: &[Over], late: Option<u32>| -> Vec<Store> {
            overs
                .iter()
                .map(|&over| store(recording, sources, over, late))
                .collect()
        };
        let (early, late) = (
            stores(&reduced.early, None),
            stores(&reduced.late, Some(cut)),
        );
        let places = |stores: &[Store]| {
            let place = |store: &Store| (store.place.clone(), store.pool.clone());
            let mut places: Vec<_> = stores.iter().map(place).collect();
            places.sort_unstable();
            places.dedup();
            places
        };
        let count = alike[&kind(violation)];
        let cause = causes
            .entry((places(&early), places(&late)))
            .or_insert_with(|| Cause {
                early,
                late,
                number: *number,
                kept: kept + 1,
                round: violation.round,
                reduced: reduced.clone(),
                count: 0,
                first: violation.seconds,
            });
        cause.count += count;
        cause.first = cause.first.min(violation.seconds);
    }
    let mut causes: Vec<Cause> = causes.into_values().collect();
    causes.sort_by_key(|cause| {
        let size = cause.early.len() + cause.late.len();
        (
            cause.reduced.unexplained,
            size.max(2),
            std::cmp::Reverse(cause.count),
        )
    });
    causes
}

/// Lines of code that may be the fault, by place, each with its weight; the most suspected first.
pub(crate) fn suspects<'a>(
    causes: &'a [Cause],
    unflushed: &'a [Store],
) -> Vec<(String, (f64, Suspect<'a>))> {
    let mut suspects: BTreeMap<String, (f64, Suspect<'_>)> = BTreeMap::new();
    let most = causes.iter().map(|cause| cause.count).max().unwrap_or(0);
    for cause in causes {
        let count = if cause.is_told() { most } else { cause.count };
        let sides = [(&cause.early, false), (&cause.late, true)];
        for (stores, late) in sides {
            let mut places = FxHashSet::default();
            let distinct: Vec<&Store> = (stores.iter())
                .filter(|one| places.insert(&one.place))
                .collect();
            for &one in &distinct {
                let more = weight(one, distinct.len(), late)
                    * (1.0 + (count as f64).ln())
                    * LATER.powi(cause.round as i32);
                let mut blame = |place: String, frame: Option<&Frame>, more: f64| {
                    let suspect = Suspect {
                        frame: frame.cloned(),
                        through: &one.through,
                        late,
                    };
                    suspects.entry(place).or_insert((0.0, suspect)).0 += more;
                };
                blame(one.place.clone(), one.frame.as_ref(), more);
                // A store in a small function, inlined or not, is often the caller's affair.
                let mut own = one.stack.iter().filter(|frame| frame.own());
                if let Some(caller) = own.find(|frame| frame.place() != one.place) {
                    blame(caller.place(), Some(caller), more * CALLER);
                }
            }
        }
    }
    let unexplained = causes.iter().any(|cause| cause.reduced.unexplained);
    for one in unflushed {
        let suspect = Suspect {
            frame: one.frame.clone(),
            through: &one.through,
            late: true,
        };
        let more = UNNAMED[usize::from(unexplained)];
        suspects
            .entry(one.place.clone())
            .or_insert((0.0, suspect))
            .0 += more;
    }
    let mut suspects: Vec<_> = suspects.into_iter().collect();
    suspects.sort_by(|(a, (x, _)), (b, (y, _))| y.total_cmp(x).then_with(|| a.cmp(b)));
    suspects
}

/// Stores that nobody ever flushes, or whose flush nobody fences: one for each place.
pub(crate) fn unflushed(recording: &Recording, sources: &mut Option<Sources<'_>>) -> Vec<Store> {
    let mut stores: BTreeMap<String, Store> = BTreeMap::new();
    for (fault, number) in lint::faults(recording, &mut (0, 0, 0)) {
        let event = recording.event(number as u32);
        if let (lint::LintFault::NeverFlushed, Act::Store { slot, version, .. }) =
            (fault, event.act)
        {
            let over = Over {
                slot,
                version,
                words: WHOLE,
            };
            let one = store(recording, sources, over, None);
            if one.frame.is_some() {
                stores.entry(one.place.clone()).or_insert(one);
            }
        }
    }
    stores.into_values().collect()
}
