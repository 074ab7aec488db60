//! One round of the search: the first cut, the images of all cuts in their order, the reductions, and when to stop.

pub mod bench;
pub mod clock;
pub mod explore;
pub mod known_causes;
pub mod reduce;
pub mod rounds;
pub mod start;
pub mod workers;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::{self, FIRST, Given, Kind, PASSES, Scope};
use crate::question::Question;
use crate::recovery::Reason;
use crate::recovery::ending::Ended;
use crate::report::findings::{Findings, Violation};
use crate::search::bench::{Refusal, SearchState};
use crate::search::start::named_start;
use crate::search::workers::{Crew, SearchJob, WorkerAnswer};
use crate::{CrashTestError, Result};

/// After this many violations a round has nothing more to teach before their causes are known.
const ENOUGH: usize = 60;
/// A round looks for this many violations of one kind of cut and image.
const SAME: u32 = 2;
/// At most this many violations are reduced, and reductions end earlier after a number of them that show nothing new.
const REDUCED: usize = 24;
const NOTHING_NEW: usize = 6;
/// The share of the remaining budget that a round spends on looking, if there is something to reduce.
const LOOKING: f64 = 0.35;
/// The share of a budget that recoveries without an end may take.
const WAITING: f64 = 0.25;
pub(crate) struct Search<'a> {
    pub(crate) question: &'a Question,
    pub(crate) shared: &'a SearchState,
    pub(crate) found: &'a mut Findings,
    kinds: FxHashMap<Kind, u64>,
    before: (usize, f64),
    /// The end and the output of a recovery that did not cope while the start was looked for.
    pub(crate) refused: Option<(Ended, String)>,
    waited: Duration,
    /// The number of images that were handed out but not tried any more.
    late: u32,
    workers: f64,
    problem: Option<CrashTestError>,
    tell: &'a (dyn Fn(u64, u64) -> bool + Sync),
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        question: &'a Question,
        shared: &'a SearchState,
        found: &'a mut Findings,
        workers: usize,
        tell: &'a (dyn Fn(u64, u64) -> bool + Sync),
    ) -> Search<'a> {
        Search {
            question,
            shared,
            before: (found.violations.len(), shared.clock.passed().as_secs_f64()),
            kinds: found.kinds.drain(..).collect(),
            found,
            refused: None,
            waited: Duration::ZERO,
            late: 0,
            workers: workers as f64,
            problem: None,
            tell,
        }
    }

    fn passed(&self) -> f64 {
        self.shared.clock.passed().as_secs_f64()
    }

    pub(crate) fn all(&mut self, crew: &mut Crew, start: &AtomicU64) -> Result<()> {
        let scope = self.shared.recording.scope;
        let first = match (self.found.start, scope, &self.question.start) {
            // A later round begins at the same moment.
            (Some(first), ..) => self.same_moment(first),
            (None, Some((from, _)), _) => self.cut_from(from),
            (None, None, Some(named)) => {
                named_start(&self.shared.recording, &self.shared.course, named)?
            }
            (None, None, None) => match self.first_success(crew)? {
                Some(first) => first,
                None => return Ok(()),
            },
        };
        if self.found.start.is_none() {
            self.found.start = Some(first);
            self.found.start_seconds = self.passed();
        }
        let made = self.shared.course.cuts[first as usize].event;
        self.shared.made.store(u64::from(made), Ordering::Relaxed);
        let whole = self.question.start.is_none() && scope.is_none();
        let creation = whole && self.shared.refusal != Refusal::Skip;
        start.store(
            if creation { 0 } else { u64::from(first) },
            Ordering::Relaxed,
        );
        self.look(crew, first, creation)?;
        self.found.looking = self.passed();
        let mut kinds: Vec<_> = self.kinds.drain().collect();
        kinds.sort_unstable();
        self.found.kinds = kinds;
        self.found.violations[self.before.0..]
            .sort_by_key(|violation| (violation.image.cut, violation.image.kind));
        self.reduce(crew)
    }

    /// The cut of this round that is no earlier than a cut of the first round.
    fn same_moment(&self, first: u32) -> u32 {
        self.cut_from(self.found.rounds[0].course.cuts[first as usize].event)
    }

    /// The first cut that is no earlier than an event, or the last.
    fn cut_from(&self, event: u32) -> u32 {
        let cuts = &self.shared.course.cuts;
        (cuts.partition_point(|cut| cut.event < event)).min(cuts.len() - 1) as u32
    }

    /// The cut of the first round at the same place as a cut of this one, if there is one.
    fn in_first(&self, cut: u32) -> Option<u32> {
        let event = self.shared.course.cuts[cut as usize].event;
        let cuts = &self.found.rounds[0].course.cuts;
        let at = cuts.binary_search_by_key(&event, |cut| cut.event);
        at.ok().map(|at| at as u32)
    }

    /// Tells how far the search is, and ends it if the listener wants so; its findings are kept.
    pub(crate) fn listen(&self) {
        if !(self.tell)(self.shared.recoveries.load(Ordering::Relaxed), 0) {
            self.shared.clock.end();
        }
    }

    fn take(&mut self, answer: WorkerAnswer) {
        let WorkerAnswer::Tried(image, result) = answer else {
            return;
        };
        match result {
            Ok((ended, said)) => {
                self.found.images += 1;
                *self.kinds.entry(image.kind).or_default() += 1;
                let fails = self.shared.fails(image.cut, ended);
                let event = self.shared.course.cuts[image.cut as usize].event;
                let at = self.found.by_event.entry(event).or_default();
                at.0 += 1;
                at.1 += u32::from(fails);
                self.found.creation += u64::from(self.shared.creates(image.cut));
                if let Some(cut) = self.in_first(image.cut) {
                    self.found.cuts.insert(cut);
                }
                if ended == Ended::TimedOut {
                    self.waited += self.shared.recovery.time;
                }
                if fails {
                    let cut = self.shared.course.cuts[image.cut as usize];
                    *self
                        .found
                        .failed
                        .entry((cut.signature, image.kind))
                        .or_default() += 1;
                    self.found.violations.push(Violation {
                        image,
                        ended,
                        said,
                        seconds: self.shared.clock.passed().as_secs_f64(),
                        round: self.found.rounds.len() - 1,
                    });
                }
            }
            Err(CrashTestError::Late) => self.late += 1,
            Err(e) => self.problem = Some(e),
        }
    }

    /// Makes the first passes over the cuts from `start` on, then those over the cuts before it, at which the pool is
    /// being made, and then all others.
    fn look(&mut self, crew: &mut Crew, start: u32, creation: bool) -> Result<()> {
        self.shared.looks.store(true, Ordering::Relaxed);
        let creation = creation && start > 0;
        let end = match self.shared.recording.scope {
            Some((_, end)) => self.cut_from(end) + 1,
            None => u32::MAX,
        };
        let made = (start, end);
        self.found.passes = 0;
        self.found.creation_passes = if creation { 0 } else { FIRST };
        for number in 0..FIRST {
            if !self.pass(crew, number, made)? {
                return Ok(());
            }
            self.found.passes = number + 1;
        }
        for number in 0..if creation { FIRST } else { 0 } {
            if !self.pass(crew, number, (0, start))? {
                return Ok(());
            }
            self.found.creation_passes = number + 1;
        }
        for number in FIRST..PASSES.len() {
            if !self.pass(crew, number, made)? {
                return Ok(());
            }
            self.found.passes = number + 1;
        }
        self.found.finished = true;
        Ok(())
    }

    /// Makes one pass over some cuts. Returns whether it came to its end.
    fn pass(&mut self, crew: &mut Crew, number: usize, (start, end): (u32, u32)) -> Result<bool> {
        let shared = self.shared;
        let scope = Scope {
            platform: shared.recording.platform,
            tear: self.question.tear,
            start,
            end,
            seed: self.question.seed,
            acks: shared.recovery.wants_acks(),
        };
        let mut seen = std::mem::take(&mut self.found.seen);
        let on = || !shared.clock.is_spent();
        // Cuts with an image that is left out, because enough of its kind have failed.
        let mut left_out = FxHashSet::default();
        let passed = images::each(
            &shared.recording,
            &shared.course,
            scope,
            PASSES[number],
            &mut seen,
            &on,
            |image| {
                while let Some(answer) = crew.ready() {
                    self.take(answer);
                }
                if self.is_enough() {
                    return Given::Enough;
                }
                let cut = shared.course.cuts[image.cut as usize];
                let known = self.found.failed.get(&(cut.signature, image.kind));
                if known.is_none_or(|&count| count < SAME) {
                    crew.give(SearchJob::Try(image, shared.recovery.time));
                    Given::Taken
                } else {
                    left_out.insert(image.cut);
                    Given::LeftOut
                }
            },
        );
        self.found.seen = seen;
        let ended = !passed.finished;
        shared.enough.store(ended, Ordering::Relaxed);
        while let Some(answer) = crew.next() {
            self.take(answer);
        }
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        self.listen();
        // The last images that were handed out may have come too late.
        if ended || self.late > 0 {
            return Ok(false);
        }
        let tried = passed.cuts.iter().filter(|cut| !left_out.contains(cut));
        let tried: Vec<u32> = tried.filter_map(|&cut| self.in_first(cut)).collect();
        self.found.cuts.extend(tried);
        Ok(true)
    }

    fn is_enough(&self) -> bool {
        self.listen();
        let budget = self.question.budget;
        let (known, begun) = self.before;
        let new = self.found.violations.len() - known;
        let share = match new {
            0 => 1.0,
            _ => LOOKING,
        };
        new >= ENOUGH
            || self.shared.clock.is_spent()
            || self.passed() > begun + (budget - begun) * share
            || self.waited.as_secs_f64() > budget * WAITING * self.workers
            || self.problem.is_some()
    }

    /// Reduces one violation of each kind, and as many kinds as there is time for.
    fn reduce(&mut self, crew: &mut Crew) -> Result<()> {
        let mut kinds = FxHashSet::default();
        let mut chosen: Vec<usize> = Vec::new();
        let new = self.found.violations.iter().enumerate().skip(self.before.0);
        for (number, violation) in new {
            let cut = self.shared.course.cuts[violation.image.cut as usize];
            if kinds.insert((cut.signature, violation.image.kind)) {
                chosen.push(number);
            }
        }
        // An image that differs least from what is sure says most, and one that does not end takes long.
        chosen.sort_by_key(|&number| {
            let violation = &self.found.violations[number];
            let image = &violation.image;
            (violation.ended == Ended::TimedOut, image.kind, image.cut)
        });
        let spread = (chosen.len() / REDUCED).max(1);
        let chosen: Vec<usize> = chosen.into_iter().step_by(spread).take(REDUCED).collect();
        let mut unreduced = chosen.len();
        let mut next = chosen.iter();
        let (mut known, mut stale) = (FxHashSet::default(), 0);
        loop {
            while crew.waiting < 4 && stale < NOTHING_NEW && !self.shared.clock.is_spent() {
                let Some(&number) = next.next() else { break };
                let violation = &self.found.violations[number];
                let reason = Reason::from_ending(violation.ended, &violation.said);
                crew.give(SearchJob::Reduce(number, violation.image.clone(), reason));
            }
            match crew.next() {
                None => break,
                Some(WorkerAnswer::Reduced(_, Ok(reduced))) if reduced.explained => {
                    self.found.explained += 1;
                    unreduced -= 1;
                }
                Some(WorkerAnswer::Reduced(number, Ok(reduced))) => {
                    let sites = |overs: &[images::Over]| -> Vec<u64> {
                        let recording = &self.shared.recording;
                        let site = |over: &images::Over| {
                            let slot = &recording.lines[over.slot as usize];
                            let event = slot.versions.event(over.version);
                            let site = recording.events.site(event as usize);
                            let pc = recording.sites.get(site as usize).map(|site| site.pc);
                            pc.unwrap_or(u64::from(slot.file) << 32 | u64::from(slot.line))
                        };
                        let mut all: Vec<u64> = overs.iter().map(site).collect();
                        all.sort_unstable();
                        all.dedup();
                        all
                    };
                    match known.insert((sites(&reduced.early), sites(&reduced.late))) {
                        true => stale = 0,
                        false => stale += 1,
                    }
                    unreduced -= usize::from(reduced.finished);
                    self.found.reduced.push((number, reduced));
                }
                Some(WorkerAnswer::Reduced(_, Err(e))) | Some(WorkerAnswer::Tried(_, Err(e))) => {
                    return Err(e);
                }
                Some(WorkerAnswer::Tried(..)) => {}
            }
            self.listen();
        }
        if stale < NOTHING_NEW {
            self.found.unreduced += unreduced;
        }
        self.found.reduced.sort_by_key(|(number, _)| *number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::Image;
    use crate::report::findings::Round;
    use crate::search::clock::Clock;
    use crate::search::reduce::Reduced;
    use crate::search::start::CLOSELY;
    use crate::search::workers::QUEUE;
    use crate::testing::Do::{self, Clwb, Fence, Store};
    use crate::testing::{question, shared};
    use std::sync::mpsc::{channel, sync_channel};

    fn fences(count: u32) -> Vec<(u16, Do)> {
        let one = |number: u32| [Store(number % 7, number as u8 | 1), Clwb(number % 7), Fence];
        (0..count).flat_map(one).map(|what| (0, what)).collect()
    }

    /// Runs a search with a worker whose recoveries end with the status that `status` gives for an image.
    fn searched<T>(
        shared: &SearchState,
        found: &mut Findings,
        status: impl Fn(&Image) -> i32 + Sync,
        test: impl FnOnce(&mut Search<'_>, &mut Crew) -> T,
    ) -> T {
        asking(&question(), shared, found, status, test)
    }

    fn asking<T>(
        question: &Question,
        shared: &SearchState,
        found: &mut Findings,
        status: impl Fn(&Image) -> i32 + Sync,
        test: impl FnOnce(&mut Search<'_>, &mut Crew) -> T,
    ) -> T {
        let (jobs, waiting) = sync_channel(QUEUE);
        let (answers, answered) = channel();
        std::thread::scope(|scope| {
            let status = &status;
            scope.spawn(move || {
                for job in waiting {
                    let answer = match job {
                        SearchJob::Try(image, _) => {
                            let ended = Ended::Status(status(&image));
                            WorkerAnswer::Tried(image, Ok((ended, "said".to_owned())))
                        }
                        SearchJob::Reduce(number, image, _) => {
                            let reduced = Reduced {
                                early: image.over.clone(),
                                image,
                                late: Vec::new(),
                                passes: None,
                                unexplained: false,
                                finished: true,
                                explained: false,
                            };
                            WorkerAnswer::Reduced(number, Ok(reduced))
                        }
                    };
                    if answers.send(answer).is_err() {
                        return;
                    }
                }
            });
            let mut crew = Crew {
                jobs,
                answers: answered,
                waiting: 0,
            };
            found.rounds.push(Round {
                course: shared.course.clone(),
                assumed: Vec::new(),
            });
            let mut search = Search::new(question, shared, found, 1, &|_, _| true);
            test(&mut search, &mut crew)
        })
    }

    #[test]
    fn the_start_is_the_first_cut_at_which_the_recovery_copes() {
        let shared = shared(&fences(700), &["true"]);
        let cuts = shared.course.cuts.len() as u32;
        assert!(cuts > CLOSELY * 2);
        for wanted in [0, 1, 7, CLOSELY - 1, CLOSELY + 1, 601, cuts - 1] {
            let mut found = Findings::default();
            let status = |image: &Image| i32::from(image.cut < wanted);
            let start = searched(&shared, &mut found, status, |search, crew| {
                search.first_success(crew)
            });
            assert_eq!(start.unwrap(), Some(wanted));
        }
    }

    #[test]
    fn a_plan_that_is_done_has_been_at_every_cut() {
        let shared = shared(&fences(40), &["true"]);
        let mut found = Findings::default();
        searched(
            &shared,
            &mut found,
            |_| 0,
            |search, crew| search.all(crew, &AtomicU64::new(0)),
        )
        .unwrap();
        assert!(found.finished && found.passes == PASSES.len());
        assert_eq!(found.cuts.len(), shared.course.cuts.len());
        assert!(found.has_looked() && found.violations.is_empty());
    }

    #[test]
    fn nothing_is_said_where_the_budget_ends_before_the_first_pass() {
        let mut shared = shared(&fences(40), &["true"]);
        shared.clock = Clock::new(Some(Duration::ZERO));
        for start in [None, Some("0".to_owned())] {
            let mut found = Findings::default();
            let asked = Question {
                start: start.clone(),
                ..question()
            };
            asking(
                &asked,
                &shared,
                &mut found,
                |_| 0,
                |search, crew| search.all(crew, &AtomicU64::new(0)),
            )
            .unwrap();
            assert!(!found.has_looked() && found.violations.is_empty());
            assert!(found.cuts.is_empty() && found.images == 0 && !found.finished);
            assert_eq!(found.start.is_some(), start.is_some());
            assert_eq!(found.no_start.is_some(), start.is_none());
        }
    }

    #[test]
    fn a_recovery_that_never_copes_is_an_error_that_says_what_it_said() {
        let shared = shared(&fences(20), &["true"]);
        let mut found = Findings::default();
        let start = searched(
            &shared,
            &mut found,
            |_| 3,
            |search, crew| search.first_success(crew),
        );
        let error = start.unwrap_err().to_string();
        assert!(
            error.contains("exit status 3: said") && error.contains("--start"),
            "{error}"
        );
    }

    #[test]
    fn the_start_may_be_named_by_a_mark_or_a_row() {
        let mut shared = shared(&fences(5), &["true"]);
        let cut =
            |shared: &SearchState, start| named_start(&shared.recording, &shared.course, start);
        let error = cut(&shared, "ready").unwrap_err().to_string();
        assert!(error.contains("no marks"), "{error}");
        shared.recording.marks = vec![(5, "ready".to_owned())];
        let row = |cut: u32| (shared.recording).row(shared.course.cuts[cut as usize].event);
        let named = cut(&shared, "ready").unwrap();
        assert!(row(named) >= 5 && row(named - 1) < 5);
        assert_eq!(cut(&shared, "5").unwrap(), named);
        assert_eq!(cut(&shared, "0").unwrap(), 0);
        let error = cut(&shared, "redy").unwrap_err().to_string();
        assert!(error.contains("there are ready"), "{error}");
        let error = cut(&shared, "1000").unwrap_err().to_string();
        assert!(error.contains("no cut comes after it"), "{error}");
    }

    /// All failures are counted by cut and kind of image; of one kind two are looked for, and one is reduced.
    #[test]
    fn violations_are_counted_and_one_of_a_kind_is_reduced() {
        let shared = shared(&fences(300), &["true"]);
        let mut found = Findings::default();
        let failing = |image: &Image| i32::from(image.over.is_empty() && image.cut >= 200);
        searched(&shared, &mut found, failing, |search, crew| {
            search.all(crew, &AtomicU64::new(0))
        })
        .unwrap();
        assert!(!found.violations.is_empty() && found.violations.len() <= ENOUGH + QUEUE + 1);
        let fail =
            |violation: &Violation| violation.image.over.is_empty() && violation.image.cut >= 200;
        assert!(found.violations.iter().all(fail));
        let failed: u32 = found.by_event.values().map(|(_, failed)| failed).sum();
        let tried: u32 = found.by_event.values().map(|(tried, _)| tried).sum();
        assert_eq!(
            (failed as usize, u64::from(tried)),
            (found.violations.len(), found.images)
        );
        let kind = |violation: &Violation| {
            let cut = shared.course.cuts[violation.image.cut as usize];
            (cut.signature, violation.image.kind)
        };
        let kinds: FxHashSet<_> = found.violations.iter().map(kind).collect();
        assert_eq!(
            found.reduced.len(),
            kinds.len().min(REDUCED).min(NOTHING_NEW + 1)
        );
        let mut reduced = FxHashSet::default();
        for (number, _) in &found.reduced {
            assert!(
                reduced.insert(kind(&found.violations[*number])),
                "one of a kind"
            );
        }
        let mut order = found.violations.iter().map(|violation| violation.image.cut);
        let mut before = 0;
        assert!(order.all(|cut| std::mem::replace(&mut before, cut) <= cut));
    }
}
