//! One round of the search: the first cut, the images of all cuts in their order, the reductions, and when to stop.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::{self, FIRST, Image, Kind, Over, PASSES, Scope};
use crate::question::Question;
use crate::recovery::Reason;
use crate::recovery::bench::Tell;
use crate::recovery::ending::Ended;
use crate::search::crew::Lead;
use crate::search::findings::{Findings, Violation};
use crate::search::jobs::{PoolCrew, SearchJob, WorkerAnswer};
use crate::search::judge::{Judge, Outcome, Refusal, SearchState};
use crate::search::known_causes;
use crate::search::reduce::{self, Reduced};
use crate::search::start::{first_success, named_start};
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
    waited: Duration,
    workers: f64,
    wants_acks: bool,
    /// Cuts of the present pass with an image that is left out, because enough of its kind have failed.
    left_out: FxHashSet<u32>,
    tell: Tell<'a>,
}

impl Lead for Search<'_> {
    type Image = Image;
    type Job = SearchJob;
    type Answer = WorkerAnswer;

    /// A round ends for reductions once there is something to reduce: after many violations, or a part of the time. A
    /// recovery that hangs costs the whole limit, so hanging ends it too.
    fn is_enough(&mut self, passed: f64) -> bool {
        let budget = self.question.options.budget;
        let (known, begun) = self.before;
        let new = self.found.violations.len() - known;
        let share = match new {
            0 => 1.0,
            _ => LOOKING,
        };
        new >= ENOUGH
            || passed > begun + (budget - begun) * share
            || self.waited.as_secs_f64() > budget * WAITING * self.workers
    }

    /// Two violations of one kind of moment and image teach no more than the first.
    fn job(&mut self, image: Image) -> Option<SearchJob> {
        let cut = self.shared.course.cuts[image.cut as usize];
        let known = self.found.failed.get(&(cut.signature, image.kind));
        if known.is_some_and(|&count| count >= SAME) {
            self.left_out.insert(image.cut);
            return None;
        }
        let time = self.shared.trial.recovery.time;
        Some(SearchJob::Try(image, time))
    }

    /// Counts an image that was tried, and keeps it if it is a violation.
    fn take(&mut self, answer: WorkerAnswer) {
        let WorkerAnswer::Tried(image, outcome) = answer else {
            return;
        };
        let Outcome { ended, fails, .. } = outcome;
        let shared = self.shared;
        let cut = shared.course.cuts[image.cut as usize];
        self.found.images += 1;
        *self.kinds.entry(image.kind).or_default() += 1;
        let at = self.found.by_event.entry(cut.event).or_default();
        at.0 += 1;
        at.1 += u32::from(fails);
        self.found.creation += u64::from(outcome.creates);
        let first = self.in_first(image.cut);
        self.found.cuts.extend(first);
        if matches!(ended, Ended::TimedOut) {
            self.waited += shared.trial.recovery.time;
        }
        if outcome.repaired && !outcome.creates {
            self.keep_repaired(cut.signature, &image);
        }
        if fails {
            let kind = (cut.signature, image.kind);
            *self.found.failed.entry(kind).or_default() += 1;
            self.found.violations.push(Violation {
                image,
                ended,
                said: outcome.said,
                seconds: self.passed(),
                round: self.found.rounds.len() - 1,
            });
        }
    }
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        question: &'a Question,
        shared: &'a SearchState,
        found: &'a mut Findings,
        workers: usize,
        tell: Tell<'a>,
    ) -> Search<'a> {
        Search {
            question,
            shared,
            before: (
                found.violations.len(),
                shared.trial.clock.passed().as_secs_f64(),
            ),
            kinds: found.kinds.drain(..).collect(),
            found,
            waited: Duration::ZERO,
            workers: workers as f64,
            wants_acks: shared.trial.recovery.wants_acks(),
            left_out: FxHashSet::default(),
            tell,
        }
    }

    fn passed(&self) -> f64 {
        self.shared.trial.clock.passed().as_secs_f64()
    }

    /// Makes a round: finds the cut from which on images are tried, looks for violations, and reduces them.
    ///
    /// The first cut is that of the round before, else that of the other order of threads, else the user's, else the
    /// first with which the recovery copes; if the budget ends before one is found, nothing is tried.
    pub(crate) fn all(&mut self, crew: &mut PoolCrew) -> Result<()> {
        let shared = self.shared;
        let scope = shared.recording.scope;
        let first = match (self.found.start, scope, &self.question.start) {
            (Some(first), ..) => self.same_moment(first),
            (None, Some((from, _)), _) => self.cut_from(from),
            (None, None, Some(named)) => named_start(&shared.recording, &shared.course, named)?,
            (None, None, None) => {
                let begun = first_success(self.question, shared, crew, self.tell)?;
                self.found.never_sure = begun.never_sure;
                match begun.first {
                    Ok(first) => first,
                    Err(none) => {
                        self.found.no_start = Some(none);
                        return Ok(());
                    }
                }
            }
        };
        if self.found.start.is_none() {
            self.found.start = Some(first);
            self.found.start_seconds = self.passed();
        }
        let made = shared.course.cuts[first as usize].event;
        shared.made.store(u64::from(made), Ordering::Relaxed);
        let whole = self.question.start.is_none() && scope.is_none();
        let creation = whole && shared.refusal != Refusal::Skip;
        self.look(crew, first, creation)?;
        self.found.looking = self.passed();
        let mut kinds: Vec<_> = self.kinds.drain().collect();
        kinds.sort_unstable();
        self.found.kinds = kinds;
        self.found.violations[self.before.0..]
            .sort_by_key(|violation| (violation.image.cut, violation.image.kind));
        self.reduce(crew, if creation { 0 } else { first })
    }

    /// Keeps one image of each kind of moment that the recovery coped with and wrote to.
    fn keep_repaired(&mut self, moment: u32, image: &Image) {
        let kept = &mut self.found.repaired;
        let first = kept.entry(moment).or_insert_with(|| image.clone());
        // The choice does not depend on the workers' turns. Of the images with the most lines it is the last: by then the
        // program has promised most, which a recovery that is cut can lose.
        if (image.over.len(), image.cut, &image.over) > (first.over.len(), first.cut, &first.over) {
            *first = image.clone();
        }
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

    /// Makes the first passes over the cuts from `start` on, then those over the cuts before it, at which the pool is
    /// being made, and then all others.
    fn look(&mut self, crew: &mut PoolCrew, start: u32, creation: bool) -> Result<()> {
        self.shared.looks.store(true, Ordering::Relaxed);
        let creation = creation && start > 0;
        let end = match self.shared.recording.scope {
            Some((_, end)) => self.cut_from(end) + 1,
            None => u32::MAX,
        };
        // Faults of use are worth more than another image of the same cut, so every cut has its first images before any
        // has more.
        let made = (start, end);
        self.found.passes = 0;
        self.found.creation_passes = if creation { 0 } else { FIRST };
        for number in 0..FIRST {
            if !self.pass(crew, number, made)? {
                return Ok(());
            }
            self.found.passes = number + 1;
        }
        // Pools are made once and used for long, so cuts of their making come second.
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
    fn pass(
        &mut self,
        crew: &mut PoolCrew,
        number: usize,
        (start, end): (u32, u32),
    ) -> Result<bool> {
        let shared = self.shared;
        let scope = Scope {
            platform: shared.recording.platform,
            tear: self.question.tear,
            start,
            end,
            seed: self.question.options.seed,
            acks: self.wants_acks,
        };
        let mut seen = std::mem::take(&mut self.found.seen);
        self.left_out.clear();
        let on = || !shared.trial.clock.is_spent();
        let mut cuts = Vec::new();
        let finished = crew.pass((&shared.trial, self.tell), self, |give| {
            let (recording, course) = (&shared.recording, &shared.course);
            let pass = PASSES[number];
            let passed = images::each(recording, course, scope, pass, &mut seen, &on, give);
            cuts = passed.cuts;
            passed.finished
        });
        self.found.seen = seen;
        if !finished? {
            return Ok(false);
        }
        // A cut with an image that was left out has not been tried to its end.
        let tried = cuts.iter().filter(|cut| !self.left_out.contains(cut));
        let tried: Vec<u32> = tried.filter_map(|&cut| self.in_first(cut)).collect();
        self.found.cuts.extend(tried);
        Ok(true)
    }

    /// Reduces one violation of each kind, and as many kinds as there is time for.
    fn reduce(&mut self, crew: &mut PoolCrew, start: u32) -> Result<()> {
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
            while crew.waiting < 4 && stale < NOTHING_NEW && !self.shared.trial.clock.is_spent() {
                let Some(&number) = next.next() else { break };
                let violation = &self.found.violations[number];
                let reason = Reason::from_ending(violation.ended, &violation.said);
                let image = violation.image.clone();
                crew.give(SearchJob::Reduce(number, image, reason, start));
            }
            let Some(answer) = crew.next() else { break };
            match answer? {
                WorkerAnswer::Tried(..) => {}
                WorkerAnswer::Reduced(_, reduced) if reduced.explained => {
                    self.found.explained += 1;
                    unreduced -= 1;
                }
                WorkerAnswer::Reduced(number, reduced) => {
                    let decide = [&reduced.early, &reduced.late].map(|overs| self.places(overs));
                    stale = if known.insert(decide) { 0 } else { stale + 1 };
                    unreduced -= usize::from(reduced.finished);
                    self.found.reduced.push((number, reduced));
                }
            }
            self.shared.trial.listen(self.tell);
        }
        if stale < NOTHING_NEW {
            self.found.unreduced += unreduced;
        }
        self.found.reduced.sort_by_key(|(number, _)| *number);
        Ok(())
    }

    /// The places of the program that made some lines, or else the lines.
    fn places(&self, overs: &[Over]) -> Vec<u64> {
        let recording = &self.shared.recording;
        let place = |over: &Over| {
            let slot = &recording.lines[over.slot as usize];
            let event = slot.versions.event(over.version);
            let site = recording.events.site(event as usize);
            let pc = recording.sites.get(site as usize).map(|site| site.pc);
            pc.unwrap_or(u64::from(slot.file) << 32 | u64::from(slot.line))
        };
        let mut all: Vec<u64> = overs.iter().map(place).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Does a job of a round.
pub(crate) fn work(judge: &mut Judge<'_>, job: SearchJob) -> Result<WorkerAnswer> {
    Ok(match job {
        SearchJob::Try(image, time) => {
            let outcome = attempt(judge, &image, time)?;
            WorkerAnswer::Tried(image, outcome)
        }
        SearchJob::Reduce(number, image, reason, start) => {
            WorkerAnswer::Reduced(number, reduced(judge, &image, &reason, start)?)
        }
    })
}

/// Tries an image of the search within some time.
///
/// In turn: an image whose turn came too late is not tried; while the start is looked for one run is enough; one that
/// hangs has failed; and any other that fails is tried again.
///
/// # Errors
/// As of [`Bench::run`].
fn attempt(judge: &mut Judge<'_>, image: &Image, time: Duration) -> Result<Outcome> {
    let shared = judge.shared;
    let acked = shared.course.cuts[image.cut as usize].acked as usize;
    shared.trial.check_in_time()?;
    let looks = shared.looks.load(Ordering::Relaxed);
    let mut ended = match looks {
        false => judge.bench.run(image, acked, time)?,
        true => judge.bench.run_in_time(image, acked, time)?,
    };
    let fails = |ended| shared.fails(image.cut, ended);
    if looks && !matches!(ended, Ended::TimedOut) && fails(ended) {
        ended = (judge.bench).confirm(image, (acked, time), ended, fails)?;
    }
    let failed = shared.trial.recovery.fails(ended);
    Ok(Outcome {
        ended,
        fails: fails(ended),
        creates: shared.creates(image.cut),
        said: match failed {
            true => judge.bench.said(),
            false => String::new(),
        },
        repaired: !failed && judge.bench.wrote,
    })
}

/// Reduces a violation, unless a known cause explains it.
fn reduced(judge: &mut Judge<'_>, image: &Image, reason: &Reason, start: u32) -> Result<Reduced> {
    for sites in &judge.shared.known() {
        match known_causes::explains(judge, sites, image) {
            Ok(true) => return Ok(Reduced::explained(image)),
            Ok(false) | Err(CrashTestError::Late) => {}
            Err(e) => return Err(e),
        }
    }
    reduce::reduce(judge, image, reason, start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::recovery::bench::Clock;
    use crate::search::crew::{QUEUE, with_workers};
    use crate::search::findings::Round;
    use crate::search::start::CLOSELY;
    use crate::testing::Do::{self, Clwb, Fence, Store};
    use crate::testing::{question, shared};

    fn fences(count: u32) -> Vec<(u16, Do)> {
        let one = |number: u32| [Store(number % 7, number as u8 | 1), Clwb(number % 7), Fence];
        (0..count).flat_map(one).map(|what| (0, what)).collect()
    }

    /// Runs a search with a worker whose recoveries end with the status that `status` gives for an image.
    fn searched<T>(
        question: &Question,
        shared: &SearchState,
        found: &mut Findings,
        status: impl Fn(&Image) -> i32 + Sync,
        test: impl FnOnce(&mut Search<'_>, &mut PoolCrew) -> Result<T>,
    ) -> Result<T> {
        let work = |(): &mut (), job| {
            Ok(match job {
                SearchJob::Try(image, _) => {
                    let ended = Ended::Status(status(&image));
                    let outcome = Outcome {
                        ended,
                        fails: shared.fails(image.cut, ended),
                        creates: shared.creates(image.cut),
                        said: "said".to_owned(),
                        repaired: false,
                    };
                    WorkerAnswer::Tried(image, outcome)
                }
                SearchJob::Reduce(number, image, ..) => {
                    let reduced = Reduced {
                        early: image.over.clone(),
                        explained: false,
                        ..Reduced::explained(&image)
                    };
                    WorkerAnswer::Reduced(number, reduced)
                }
            })
        };
        found.rounds.push(Round {
            course: shared.course.clone(),
            assumed: Vec::new(),
        });
        with_workers(
            &shared.trial,
            1,
            |_| Ok(()),
            work,
            |crew| {
                test(
                    &mut Search::new(question, shared, found, 1, &|_, _| true),
                    crew,
                )
            },
        )
    }

    #[test]
    fn the_start_is_the_first_cut_at_which_the_recovery_copes() {
        let shared = shared(&fences(700), &["true"]);
        let cuts = shared.course.cuts.len() as u32;
        assert!(cuts > CLOSELY * 2);
        for wanted in [0, 1, 7, CLOSELY - 1, CLOSELY + 1, 601, cuts - 1] {
            let mut found = Findings::default();
            let status = |image: &Image| i32::from(image.cut < wanted);
            let start = searched(&question(), &shared, &mut found, status, |search, crew| {
                first_success(search.question, search.shared, crew, search.tell)
            });
            assert_eq!(start.unwrap().first.ok(), Some(wanted));
        }
    }

    #[test]
    fn a_plan_that_is_done_has_been_at_every_cut() {
        let shared = shared(&fences(40), &["true"]);
        let mut found = Findings::default();
        let all = |search: &mut Search<'_>, crew: &mut PoolCrew| search.all(crew);
        searched(&question(), &shared, &mut found, |_| 0, all).unwrap();
        assert!(found.finished && found.passes == PASSES.len());
        assert_eq!(found.cuts.len(), shared.course.cuts.len());
        assert!(found.has_looked() && found.violations.is_empty());
    }

    #[test]
    fn nothing_is_said_where_the_budget_ends_before_the_first_pass() {
        let mut shared = shared(&fences(40), &["true"]);
        shared.trial.clock = Clock::new(Some(Duration::ZERO), Interrupt::default());
        for start in [None, Some("0".to_owned())] {
            let mut found = Findings::default();
            let asked = Question {
                start: start.clone(),
                ..question()
            };
            let all = |search: &mut Search<'_>, crew: &mut PoolCrew| search.all(crew);
            searched(&asked, &shared, &mut found, |_| 0, all).unwrap();
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
        let all = |search: &mut Search<'_>, crew: &mut PoolCrew| search.all(crew);
        let searched = searched(&question(), &shared, &mut found, |_| 3, all);
        let error = searched.unwrap_err().to_string();
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
        let all = |search: &mut Search<'_>, crew: &mut PoolCrew| search.all(crew);
        searched(&question(), &shared, &mut found, failing, all).unwrap();
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
