//! Reduces a violation to the fewest lines whose presence, and the fewest whose absence, make the recovery fail.
//!
//! Between an image that passes and one that fails, delta debugging finds the lines that decide. From an image that passes below, the fewest lines that make it fail are those that were *early*; from there
//! to an image that passes above, the fewest that make it pass again are those that were *late*.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::images::{Image, Kind, Over, WHOLE};
use crate::recording::persistence::{Course, PendingState, Visit, replay};
use crate::recovery::Reason;
use crate::search::fewest::fewest;
use crate::search::judge::Judge;
use crate::{CrashTestError, Result};

/// At most this many questions are asked to find the fewest lines.
const MOST: u32 = 60;
/// Other cuts are tried at most this far before and after a cut.
const AROUND: u32 = 400;
const CLOSE: u32 = 8;
const STORES: u32 = 8;

#[derive(Clone, Debug)]
pub struct Reduced {
    pub image: Image,
    /// Lines that had persisted too early, each with the version that is too early.
    pub early: Vec<Over>,
    /// Lines that had not persisted, each with the version that was missing.
    pub late: Vec<Over>,
    /// An image that passes: the failing one with the late lines, or without the early ones.
    pub passes: Option<Image>,
    pub unexplained: bool,
    pub finished: bool,
    /// Set if the violation passes without the early stores of a known cause.
    pub explained: bool,
}

impl Reduced {
    /// A violation that a known cause explains.
    pub(crate) fn explained(image: &Image) -> Reduced {
        Reduced {
            image: image.clone(),
            early: Vec::new(),
            late: Vec::new(),
            passes: None,
            unexplained: false,
            finished: true,
            explained: true,
        }
    }
}

/// The floors that differ between two cuts, as they are at the later one.
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

/// The lines of `base` and `more`; a line that both have is as in the later version.
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

struct Pending {
    cut: u32,
    at: u32,
    over: Vec<Over>,
}

impl Visit for Pending {
    fn cut(&mut self, _: u32, _: u32, state: &PendingState) -> ControlFlow<()> {
        if self.at < self.cut {
            self.at += 1;
            return ControlFlow::Continue(());
        }
        self.over = (state.pending.iter())
            .map(|&slot| Over {
                slot,
                version: state.current[slot as usize],
                words: WHOLE,
            })
            .collect();
        ControlFlow::Break(())
    }
}

/// The distances from a cut at which other cuts are tried: all near ones, and some far ones.
fn distances() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(1), |d| Some(d + 1 + d / CLOSE)).take_while(|&d| d <= AROUND)
}

fn given(cut: u32, over: &[Over]) -> Image {
    Image {
        cut,
        over: over.to_vec(),
        kind: Kind::Given,
    }
}

/// Reduces a violation as far as there is time. The result fails for the same reason.
pub fn reduce(
    judge: &mut Judge<'_>,
    image: &Image,
    reason: &Reason,
    start: u32,
) -> Result<Reduced> {
    let full = judge.shared.trial.recovery.time;
    // Most recoveries that have not ended by now never will, and each would cost the limit. The result is confirmed
    // with the full limit.
    let hasty = judge.shared.trial.haste();
    let (reduced, acked) = reduce_within(judge, image, reason, start, hasty)?;
    match judge.fails(&reduced.image, acked, full) {
        Ok(failed) if failed.as_ref() != Some(reason) => {
            Ok(reduce_within(judge, image, reason, start, full)?.0)
        }
        Ok(_) | Err(CrashTestError::Late) => Ok(reduced),
        Err(e) => Err(e),
    }
}

/// Reduces a violation whose recovery is also compared with what had been acknowledged.
fn reduce_within(
    judge: &mut Judge<'_>,
    image: &Image,
    reason: &Reason,
    start: u32,
    time: Duration,
) -> Result<(Reduced, usize)> {
    let mut reduction = Reduction {
        acked: judge.acked(image.cut),
        base: image.cut,
        early: image.over.clone(),
        late: Vec::new(),
        passes: None,
        judge,
        reason,
        time,
    };
    let finished = match reduction.reduce(start) {
        Ok(()) => true,
        Err(CrashTestError::Late) => false,
        Err(e) => return Err(e),
    };
    let reduced = Reduced {
        image: given(reduction.base, &reduction.early),
        unexplained: reduction.early.is_empty() && reduction.late.is_empty(),
        early: reduction.early,
        late: reduction.late,
        passes: reduction.passes,
        finished,
        explained: false,
    };
    Ok((reduced, reduction.acked))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ImageOutcome {
    Passes,
    Fails,
    FailsOtherwise,
}

struct Reduction<'a, 'b> {
    judge: &'a mut Judge<'b>,
    reason: &'a Reason,
    time: Duration,
    acked: usize,
    base: u32,
    early: Vec<Over>,
    late: Vec<Over>,
    passes: Option<Image>,
}

impl Reduction<'_, '_> {
    fn outcome(&mut self, image: &Image, acked: usize) -> Result<ImageOutcome> {
        Ok(match self.judge.fails(image, acked, self.time)? {
            None => ImageOutcome::Passes,
            Some(reason) if reason == *self.reason => ImageOutcome::Fails,
            Some(_) => ImageOutcome::FailsOtherwise,
        })
    }

    fn passes(&mut self, over: &[Over]) -> Result<bool> {
        let image = given(self.base, over);
        Ok(self.outcome(&image, self.acked)? == ImageOutcome::Passes)
    }

    fn fails(&mut self, over: &[Over]) -> Result<bool> {
        let image = given(self.base, over);
        Ok(self.outcome(&image, self.acked)? == ImageOutcome::Fails)
    }

    fn at(&mut self, cut: u32, acked: usize) -> Result<ImageOutcome> {
        self.outcome(&Image::fenced(cut), acked)
    }

    fn reduce(&mut self, start: u32) -> Result<()> {
        let below = match self.at(self.base, self.acked)? {
            ImageOutcome::Passes => true,
            ImageOutcome::Fails => {
                self.early.clear();
                self.step_back(start)?
            }
            // The violation needs the early lines, and what was fenced fails without them too.
            ImageOutcome::FailsOtherwise => self.step_back(start)?,
        };
        if below && !self.early.is_empty() {
            self.narrow_early()?;
        }
        match self.above()? {
            Some(more) => self.narrow_late(more)?,
            None if below => self.passes = Some(Image::fenced(self.base)),
            None => {}
        }
        Ok(())
    }

    /// Handles a violation of what was fenced: finds the first cut at which it fails, seen from the cut before. Returns
    /// false if that one fails as well once it is compared with what had been acknowledged by then: nothing came too
    /// early, and something is late.
    fn step_back(&mut self, start: u32) -> Result<bool> {
        let (mut failing, mut passing) = (self.base, None);
        let base = self.base;
        let early = std::mem::take(&mut self.early);
        for cut in distances().map_while(|d| base.checked_sub(d)) {
            if cut < start {
                break;
            }
            match self.at(cut, self.judge.acked(cut))? {
                ImageOutcome::Passes => {
                    passing = Some(cut);
                    break;
                }
                ImageOutcome::Fails if early.is_empty() => failing = cut,
                ImageOutcome::Fails | ImageOutcome::FailsOtherwise => {}
            }
        }
        while let Some(low) = passing
            && failing - low > 1
        {
            let middle = low + (failing - low) / 2;
            match self.at(middle, self.judge.acked(middle))? {
                ImageOutcome::Passes => passing = Some(middle),
                ImageOutcome::Fails if early.is_empty() => failing = middle,
                ImageOutcome::Fails | ImageOutcome::FailsOtherwise => break,
            }
        }
        self.base = failing;
        self.acked = self.judge.acked(failing);
        if let Some(low) = passing
            && self.at(low, self.acked)? == ImageOutcome::Passes
        {
            self.base = low;
            self.early = with(&between(&self.judge.shared.course, low, failing), &early);
            return Ok(true);
        }
        self.early = early;
        Ok(false)
    }

    fn narrow_early(&mut self) -> Result<()> {
        let mut early = std::mem::take(&mut self.early);
        let fewer = fewest(&mut early, MOST, |lines| self.fails(lines));
        self.early = early;
        fewer?;
        for i in 0..self.early.len() {
            let floor = floor_of(self.judge, self.base, self.early[i].slot);
            for version in (floor + 1..self.early[i].version).take(STORES as usize) {
                let mut tried = self.early.clone();
                tried[i].version = version;
                if self.fails(&tried)? {
                    self.early = tried;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lines that make it pass: all that is pending, or what is fenced later.
    fn above(&mut self) -> Result<Option<Vec<Over>>> {
        let shared = self.judge.shared;
        let mut pending = Pending {
            cut: self.base,
            at: 0,
            over: Vec::new(),
        };
        replay(&shared.recording, shared.recording.platform, &mut pending);
        if self.passes(&with(&self.early, &pending.over))? {
            return Ok(Some(pending.over));
        }
        let last = shared.course.cuts.len() as u32 - 1;
        let base = self.base;
        for cut in distances().map(|d| base + d) {
            if cut > last {
                break;
            }
            if self.at(cut, self.acked)? == ImageOutcome::Passes {
                let more = between(&shared.course, self.base, cut);
                return Ok(self.passes(&with(&self.early, &more))?.then_some(more));
            }
        }
        Ok(None)
    }

    fn narrow_late(&mut self, mut more: Vec<Over>) -> Result<()> {
        more.retain(|over| !self.early.contains(over));
        let fewer = fewest(&mut more, MOST, |lines| {
            self.passes(&with(&self.early, lines))
        });
        self.late = more;
        self.passes = Some(given(self.base, &with(&self.early, &self.late)));
        fewer?;
        for i in 0..self.late.len() {
            let slot = self.late[i].slot;
            let from = self.early.iter().find(|over| over.slot == slot);
            let floor = from.map_or_else(|| floor_of(self.judge, self.base, slot), |o| o.version);
            for version in (floor + 1..self.late[i].version).take(STORES as usize) {
                let mut tried = self.late.clone();
                tried[i].version = version;
                if self.passes(&with(&self.early, &tried))? {
                    self.late = tried;
                    break;
                }
            }
        }
        self.passes = Some(given(self.base, &with(&self.early, &self.late)));
        Ok(())
    }
}

fn floor_of(judge: &Judge<'_>, cut: u32, slot: u32) -> u32 {
    let course = &judge.shared.course;
    let before = &course.rises[..course.cuts[cut as usize].rises as usize];
    let last = before.iter().rev().find(|rise| rise.slot == slot);
    last.map_or(0, |rise| rise.to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::ending::Ended;
    use crate::testing::Do::{self, Clwb, Fence, Store};
    use crate::testing::{on_a_bench, shared};

    /// The first byte of line 0 must be set if that of line 1 is.
    const LINE_0_FIRST: &[&str] = &[
        "sh",
        "-c",
        "set -- $(od -An -tu1 -N1 {pool}) $(od -An -tu1 -j64 -N1 {pool}); test $2 = 0 -o $1 != 0",
    ];

    fn slots(shared: &crate::search::judge::SearchState, overs: &[Over]) -> Vec<u32> {
        let line = |over: &Over| shared.recording.lines[over.slot as usize].line;
        overs.iter().map(line).collect()
    }

    #[test]
    fn of_a_line_that_both_have_the_later_counts() {
        let over = |slot, version| Over {
            slot,
            version,
            words: WHOLE,
        };
        let both = with(&[over(4, 1), over(2, 1)], &[over(2, 3), over(1, 1)]);
        assert_eq!(both, [over(1, 1), over(2, 3), over(4, 1)]);
    }

    #[test]
    fn near_cuts_are_asked_one_by_one_and_far_ones_seldom() {
        let all: Vec<u32> = distances().collect();
        assert_eq!(all[..CLOSE as usize], (1..=CLOSE).collect::<Vec<_>>());
        assert!(
            all.windows(2)
                .all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 1 + pair[0] / CLOSE)
        );
        assert!(*all.last().unwrap() <= AROUND && all.len() < 60);
    }

    /// A flag and its data are in one fence, with a line that has nothing to do with them.
    const ONE_FENCE: &[(u16, Do)] = &[
        (0, Store(0, 1)),
        (0, Store(1, 1)),
        (0, Store(2, 9)),
        (0, Store(1, 2)),
        (0, Clwb(0)),
        (0, Clwb(1)),
        (0, Clwb(2)),
        (0, Fence),
    ];

    #[test]
    fn a_line_that_came_early_is_told_from_those_beside_it() {
        let shared = shared(ONE_FENCE, LINE_0_FIRST);
        let slot = |line| {
            let lines = &shared.recording.lines;
            lines.iter().position(|slot| slot.line == line).unwrap() as u32
        };
        let over = |line, version| Over {
            slot: slot(line),
            version,
            words: WHOLE,
        };
        let image = given(0, &with(&[over(1, 2), over(2, 1)], &[]));
        let reduced = on_a_bench(&shared, |judge| {
            reduce(judge, &image, &Reason::from_ending(Ended::Status(1), ""), 0)
        })
        .unwrap();
        assert_eq!(reduced.early, [over(1, 1)], "its first store is enough");
        assert_eq!(reduced.late, [over(0, 1)]);
        assert_eq!(reduced.image, given(0, &[over(1, 1)]));
        assert_eq!(
            reduced.passes,
            Some(given(0, &with(&[over(1, 1)], &[over(0, 1)])))
        );
        assert!(reduced.finished && !reduced.unexplained);
    }

    /// The flag is fenced before its data, so what is sure fails by itself.
    #[test]
    fn what_is_fenced_too_early_is_found_from_the_cut_before() {
        let mut program = vec![(0, Store(1, 1)), (0, Clwb(1)), (0, Fence)];
        for value in 1..9 {
            program.extend([(0, Store(3, value)), (0, Clwb(3)), (0, Fence)]);
        }
        program.extend([(0, Store(0, 1)), (0, Clwb(0)), (0, Fence), (0, Store(2, 1))]);
        let shared = shared(&program, LINE_0_FIRST);
        let reduced = on_a_bench(&shared, |judge| {
            reduce(
                judge,
                &Image::fenced(7),
                &Reason::from_ending(Ended::Status(1), ""),
                0,
            )
        })
        .unwrap();
        assert_eq!(slots(&shared, &reduced.early), [1]);
        assert_eq!(slots(&shared, &reduced.late), [0]);
        assert_eq!(reduced.image.cut, 0);
        assert!(!reduced.unexplained);
    }

    #[test]
    fn nothing_decides_where_nothing_passes() {
        let shared = shared(ONE_FENCE, &["false"]);
        let reduced = on_a_bench(&shared, |judge| {
            reduce(
                judge,
                &Image::fenced(1),
                &Reason::from_ending(Ended::Status(1), ""),
                0,
            )
        })
        .unwrap();
        assert!(reduced.unexplained && reduced.passes.is_none() && reduced.finished);
    }
}
