//! What a violation comes down to: the fewest lines whose presence, and the fewest whose absence, make the recovery fail.
//!
//! Between an image that passes and one that fails, delta debugging (Zeller and Hildebrandt, 2002) finds the lines that decide.
//! From what passes below, the fewest lines that make it fail are those that were *early*; from there to what passes above, the
//! fewest that make it pass again are those that were *late*.

use crate::PersistError;
use crate::explore::Bench;
use crate::images::{Image, Kind, Over, WHOLE};
use crate::state::{Course, State, Visit, replay};

/// Recoveries of one search.
const MOST: u32 = 60;
/// Cuts before and after that are asked whether they pass.
const AROUND: u32 = 40;
/// Of a line's stores, how many are tried.
const STORES: u32 = 8;

/// See the module.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The least image that fails.
    pub image: Image,
    /// Lines that had persisted too early, to the version that is too early.
    pub early: Vec<Over>,
    /// Lines that had not persisted yet, to the version that was missing.
    pub late: Vec<Over>,
    /// An image that passes, which is the failing one and the late lines, or without the early ones.
    pub passes: Option<Image>,
    /// Nothing around it passes.
    pub unexplained: bool,
}

/// The fewest of `items` for which `holds`, which it does for all of them; as far as so many questions find out.
fn fewest<T: Clone>(
    items: Vec<T>,
    mut holds: impl FnMut(&[T]) -> Result<bool, PersistError>,
) -> Result<Vec<T>, PersistError> {
    let (mut items, mut parts, mut asked) = (items, 2, 0);
    while items.len() > 1 && asked < MOST {
        let size = items.len().div_ceil(parts);
        let mut next = None;
        let halves = items.chunks(size).map(<[T]>::to_vec);
        let rests = (0..items.len().div_ceil(size)).map(|part| {
            let kept = items.iter().enumerate().filter(|(i, _)| i / size != part);
            kept.map(|(_, item)| item.clone()).collect::<Vec<T>>()
        });
        let tries = halves
            .map(|half| (half, 2))
            .chain(rests.map(|rest| (rest, parts.saturating_sub(1).max(2))));
        for (tried, then) in tries {
            if tried.is_empty() || tried.len() == items.len() || asked >= MOST {
                continue;
            }
            asked += 1;
            if holds(&tried)? {
                next = Some((tried, then));
                break;
            }
        }
        match next {
            Some((fewer, then)) => (items, parts) = (fewer, then),
            None if parts >= items.len() => break,
            None => parts = (parts * 2).min(items.len()),
        }
    }
    Ok(items)
}

/// Floors that differ between two cuts, as of the later.
fn between(course: &Course, from: u32, to: u32) -> Vec<Over> {
    let range = course.cuts[from as usize].rises as usize..course.cuts[to as usize].rises as usize;
    let mut last = std::collections::BTreeMap::new();
    for rise in &course.rises[range] {
        last.insert(rise.slot, rise.to);
    }
    last.into_iter()
        .map(|(slot, version)| Over {
            slot,
            version,
            words: WHOLE,
        })
        .collect()
}

/// `base` with more lines; of a line that both have, the later.
fn with(base: &[Over], more: &[Over]) -> Vec<Over> {
    let mut all = base.to_vec();
    for over in more {
        match all.iter_mut().find(|other| other.slot == over.slot) {
            Some(other) => *other = *over,
            None => all.push(*over),
        }
    }
    all.sort_unstable();
    all
}

/// What is pending at a cut, to the last store.
struct Pending {
    cut: u32,
    at: u32,
    over: Vec<Over>,
}

impl Visit for Pending {
    fn cut(&mut self, _: crate::state::Cut, state: &State) {
        if self.at == self.cut {
            self.over = (state.pending.iter())
                .map(|&slot| Over {
                    slot,
                    version: state.current[slot as usize],
                    words: WHOLE,
                })
                .collect();
        }
        self.at += 1;
    }
}

/// Reduces a violation.
///
/// # Errors
/// The recovery cannot be run.
pub fn reduce(bench: &mut Bench<'_>, image: &Image, start: u32) -> Result<Reduced, PersistError> {
    let shared = bench.shared;
    let course = &shared.course;
    let mut acked = bench.acked(image.cut);
    let given = |cut: u32, over: &[Over]| Image {
        cut,
        over: over.to_vec(),
        kind: Kind::Given,
    };
    let (mut base, mut over) = (image.cut, image.over.clone());
    let mut below = true;
    if !bench.copes(&Image::fenced(base), acked)? {
        // What was fenced fails already: the first cut at which it does, seen from the one before. If that one fails as well once
        // it is held to what had been acknowledged by then, nothing came too early: something is late.
        let mut failing = base;
        below = false;
        for cut in (start.max(base.saturating_sub(AROUND))..base).rev() {
            if bench.copes(&Image::fenced(cut), bench.acked(cut))? {
                acked = bench.acked(failing);
                below = bench.copes(&Image::fenced(cut), acked)?;
                break;
            }
            failing = cut;
        }
        acked = bench.acked(failing);
        base = if below { failing - 1 } else { failing };
        over = match below {
            true => between(course, base, failing),
            false => Vec::new(),
        };
    }
    let mut early = over;
    if below && !early.is_empty() {
        early = fewest(early, |lines| Ok(!bench.copes(&given(base, lines), acked)?))?;
        for i in 0..early.len() {
            let floor = floor_of(bench, base, early[i].slot);
            for version in (floor + 1..early[i].version).take(STORES as usize) {
                let mut tried = early.clone();
                tried[i].version = version;
                if !bench.copes(&given(base, &tried), acked)? {
                    early = tried;
                    break;
                }
            }
        }
    }
    // Upwards: all that is pending, or what is fenced later.
    let failing = given(base, &early);
    let mut pending = Pending {
        cut: base,
        at: 0,
        over: Vec::new(),
    };
    replay(&shared.recording, shared.platform, &mut pending);
    let mut above = None;
    if bench.copes(&given(base, &with(&early, &pending.over)), acked)? {
        above = Some(pending.over);
    } else {
        let last = course.cuts.len() as u32 - 1;
        for cut in base + 1..=last.min(base + AROUND) {
            if bench.copes(&Image::fenced(cut), acked)? {
                let more = between(course, base, cut);
                if bench.copes(&given(base, &with(&early, &more)), acked)? {
                    above = Some(more);
                }
                break;
            }
        }
    }
    let mut late = Vec::new();
    let mut passes = None;
    if let Some(more) = above {
        let more: Vec<Over> = more
            .into_iter()
            .filter(|over| !early.contains(over))
            .collect();
        late = fewest(more, |lines| {
            bench.copes(&given(base, &with(&early, lines)), acked)
        })?;
        for i in 0..late.len() {
            let from = early.iter().find(|over| over.slot == late[i].slot);
            let floor =
                from.map_or_else(|| floor_of(bench, base, late[i].slot), |over| over.version);
            for version in (floor + 1..late[i].version).take(STORES as usize) {
                let mut tried = late.clone();
                tried[i].version = version;
                if bench.copes(&given(base, &with(&early, &tried)), acked)? {
                    late = tried;
                    break;
                }
            }
        }
        passes = Some(given(base, &with(&early, &late)));
    } else if below {
        passes = Some(Image::fenced(base));
    }
    let unexplained = early.is_empty() && late.is_empty();
    Ok(Reduced {
        image: failing,
        early,
        late,
        passes,
        unexplained,
    })
}

fn floor_of(bench: &Bench<'_>, cut: u32, slot: u32) -> u32 {
    let course = &bench.shared.course;
    let before = &course.rises[..course.cuts[cut as usize].rises as usize];
    let last = before.iter().rev().find(|rise| rise.slot == slot);
    last.map_or(0, |rise| rise.to)
}
