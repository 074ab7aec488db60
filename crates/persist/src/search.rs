//! Where to look, in which order, and when to stop: the start, the images of all cuts, reductions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::PersistError;
use crate::bench::Shared;
use crate::crew::{Answer, Crew, Job, QUEUE};
use crate::images::{self, FIRST, Image, Kind, PASSES, Scope};
use crate::question::Question;
use crate::recording::Recording;
use crate::recovery::Ended;
use crate::reduce::Reduced;
use crate::state::Course;

/// Violations after which there is nothing more to learn.
const ENOUGH: usize = 60;
/// Violations of one kind of cut and image that are looked for.
const SAME: u32 = 2;
/// Violations that are reduced, at most; and after how many that show nothing new there is an end.
const REDUCED: usize = 24;
const NOTHING_NEW: usize = 6;
/// Of a budget, what is spent on looking if there is something to reduce.
const LOOKING: f64 = 0.7;
/// Of a budget, what is spent on waiting for recoveries that do not end.
const WAITING: f64 = 0.25;
/// The search for the start tries so many cuts one by one, then one in so many that came before.
const CLOSELY: u32 = 256;
const SPARSE: u32 = 32;

/// A failed recovery.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The image that the recovery was run on.
    pub image: Image,
    /// How the recovery ended.
    pub ended: Ended,
    /// The beginning of what the recovery printed.
    pub said: String,
    /// Seconds from the first recovery until it was found.
    pub seconds: f64,
}

/// What an exploration found.
#[derive(Debug, Default)]
pub struct Found {
    /// Every recovery that failed, in the order of cuts.
    pub violations: Vec<Violation>,
    /// Causes of some of them: the violation's index, and what it comes down to.
    pub reduced: Vec<(usize, Reduced)>,
    /// Kinds of violations that there was no time to reduce, or not to the end.
    pub unreduced: usize,
    /// The first cut to be tried; `None` if the budget ended before it was known.
    pub start: Option<u32>,
    /// Why it is not known.
    pub no_start: Option<NoStart>,
    /// Seconds from the first recovery until the first cut to be tried was known.
    pub start_seconds: f64,
    /// Images tried.
    pub images: u64,
    /// Recoveries run, those of reductions included.
    pub recoveries: u64,
    /// Images tried and failed, by cut.
    pub by_cut: FxHashMap<u32, (u32, u32)>,
    /// Cuts at which an image was tried, or all of whose images had been tried at others.
    pub cuts: FxHashSet<u32>,
    /// Images by how they were come by.
    pub kinds: Vec<(Kind, u64)>,
    /// Seconds before the first recovery, for the recording and the pool.
    pub loading: f64,
    /// Seconds from the first recovery until all images had been tried, before any was reduced.
    pub looking: f64,
    /// Seconds from the first recovery to the end, reductions included.
    pub seconds: f64,
    /// All passes were made.
    pub finished: bool,
    /// How many of [`images::PASSES`] were made to their end.
    pub passes: usize,
    /// Seconds that the recovery takes on the pool as the program left it, if the budget was long enough to see it.
    pub undisturbed: Option<f64>,
    /// Seconds after which a recovery counts as one that does not end.
    pub time_limit: f64,
}

/// Why the first cut to be tried is not known: the budget ended.
#[derive(Clone, Debug)]
pub enum NoStart {
    /// During the first recovery, of the pool as the program left it.
    Undisturbed,
    /// While the first cut at which the recovery copes was looked for.
    Search {
        /// Cuts that were tried.
        tried: u32,
        /// How the recovery ended there, and what it said.
        refused: Option<(Ended, String)>,
    },
}

/// What an exploration comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A recovery failed.
    Violation,
    /// None failed, and the first pass over the cuts was completed.
    NoViolation,
    /// None failed, and the budget ended before the first pass over the cuts did.
    Unsaid,
}

impl Verdict {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Violation => "violation",
            Verdict::NoViolation => "no violation",
            Verdict::Unsaid => "nothing can be said",
        }
    }
}

impl Found {
    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        match (self.violations.is_empty(), self.passes >= FIRST) {
            (false, _) => Verdict::Violation,
            (true, true) => Verdict::NoViolation,
            (true, false) => Verdict::Unsaid,
        }
    }
}

/// The cut at which `start` says that the pool is made.
fn named_start(recording: &Recording, course: &Course, start: &str) -> Result<u32, PersistError> {
    let row = match start.parse::<u64>() {
        Ok(row) => row,
        Err(_) => {
            let known: Vec<&str> = recording
                .marks
                .iter()
                .map(|(_, text)| text.as_str())
                .collect();
            let found = recording.marks.iter().find(|(_, text)| text == start);
            found.map(|(row, _)| *row).ok_or_else(|| {
                PersistError::new(match known.is_empty() {
                    true => format!(
                        "--start {start}: the recording has no marks (SARDONYX_MARK of sardonyx.h makes them); give a row"
                    ),
                    false => format!("--start {start}: is no mark; there are {}", known.join(", ")),
                })
            })?
        }
    };
    let cut = course.cuts.partition_point(|cut| cut.row < row);
    match cut < course.cuts.len() {
        true => Ok(cut as u32),
        false => Err(PersistError::new(format!(
            "--start {start}: no cut comes after it; the recording has {} rows",
            recording.rows
        ))),
    }
}

/// How a recovery ended, and what it said, in brackets.
pub(crate) fn of_refusal((ended, said): &(Ended, String)) -> String {
    let colon = if said.is_empty() { "" } else { ": " };
    format!(" ({ended}{colon}{said})")
}

/// The search at all cuts.
pub(crate) struct Search<'a> {
    question: &'a Question,
    shared: &'a Shared,
    found: &'a mut Found,
    kinds: FxHashMap<Kind, u64>,
    /// Violations by kind of cut and of image.
    failed: FxHashMap<(u64, Kind), u32>,
    /// How a recovery ended that did not cope while the start was looked for, and what it said.
    refused: Option<(Ended, String)>,
    /// For recoveries that did not end.
    waited: Duration,
    /// Images that were given out and not tried any more.
    late: u32,
    workers: f64,
    problem: Option<PersistError>,
    tell: &'a (dyn Fn(u64, u64) -> bool + Sync),
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        question: &'a Question,
        shared: &'a Shared,
        found: &'a mut Found,
        workers: usize,
        tell: &'a (dyn Fn(u64, u64) -> bool + Sync),
    ) -> Search<'a> {
        Search {
            question,
            shared,
            found,
            kinds: FxHashMap::default(),
            failed: FxHashMap::default(),
            refused: None,
            waited: Duration::ZERO,
            late: 0,
            workers: workers as f64,
            problem: None,
            tell,
        }
    }

    /// Seconds from the first recovery on.
    fn passed(&self) -> f64 {
        self.shared.clock.passed().as_secs_f64()
    }

    pub(crate) fn all(&mut self, crew: &mut Crew, start: &AtomicU64) -> Result<(), PersistError> {
        let first = match &self.question.start {
            Some(named) => named_start(&self.shared.recording, &self.shared.course, named)?,
            None => match self.first_success(crew)? {
                Some(first) => first,
                None => return Ok(()),
            },
        };
        start.store(u64::from(first), Ordering::Relaxed);
        self.found.start = Some(first);
        self.found.start_seconds = self.passed();
        self.look(crew, first)?;
        self.found.looking = self.passed();
        let mut kinds: Vec<_> = self.kinds.drain().collect();
        kinds.sort_unstable();
        self.found.kinds = kinds;
        self.found
            .violations
            .sort_by_key(|violation| (violation.image.cut, violation.image.kind));
        self.reduce(crew)
    }

    /// The first cut at which the recovery copes with what was fenced: of the early ones each is tried, of later ones some until one
    /// is found, and then those before it. `None` if the budget ended first.
    fn first_success(&mut self, crew: &mut Crew) -> Result<Option<u32>, PersistError> {
        let cuts = self.shared.course.cuts.len() as u32;
        let mut sparse: Vec<u32> = vec![0];
        while let Some(&last) = sparse.last()
            && last + 1 < cuts
        {
            let step = 1 + last.saturating_sub(CLOSELY) / SPARSE;
            sparse.push((last + step).min(cuts - 1));
        }
        let mut tried = 0;
        let mut found = self.first_of(crew, &sparse, &mut tried)?;
        let before = match found {
            Some(cut) => sparse[sparse.partition_point(|&s| s < cut).saturating_sub(1)]..cut,
            None => 0..cuts,
        };
        let between: Vec<u32> = before
            .filter(|cut| sparse.binary_search(cut).is_err())
            .collect();
        if let Some(earlier) = self.first_of(crew, &between, &mut tried)? {
            found = Some(earlier);
        }
        if found.is_none() && tried < cuts {
            let refused = self.refused.take();
            self.found.no_start = Some(NoStart::Search { tried, refused });
            return Ok(None);
        }
        if found.is_none() {
            let refused = self.refused.as_ref().map(of_refusal).unwrap_or_default();
            return Err(PersistError::new(format!(
                "--recover: it copes at none of the {cuts} cuts with what was fenced there{refused}: nothing that the program \
                 makes sure of is a pool that it accepts; say with --start from where on it should be one"
            )));
        }
        Ok(found)
    }

    /// The first of some cuts at which the recovery copes with what was fenced, as far as there is time; `tried` counts.
    fn first_of(
        &mut self,
        crew: &mut Crew,
        cuts: &[u32],
        tried: &mut u32,
    ) -> Result<Option<u32>, PersistError> {
        let mut least: Option<u32> = None;
        let mut next = cuts.iter();
        loop {
            while least.is_none()
                && crew.waiting < QUEUE
                && !self.shared.clock.is_spent()
                && let Some(&cut) = next.next()
            {
                crew.give(Job::Try(Image::fenced(cut), self.shared.haste()));
            }
            match crew.next() {
                None => return Ok(least),
                Some(Answer::Tried(_, Err(PersistError::Late))) => {}
                Some(Answer::Tried(image, result)) => {
                    let (ended, said) = result?;
                    *tried += 1;
                    if self.shared.recovery.fails(ended) {
                        self.refused = Some((ended, said));
                    } else {
                        least = Some(least.map_or(image.cut, |l| l.min(image.cut)));
                    }
                }
                Some(Answer::Reduced(..)) => {}
            }
            self.listen()?;
        }
    }

    fn listen(&self) -> Result<(), PersistError> {
        let done = self.shared.recoveries.load(Ordering::Relaxed);
        match (self.tell)(done, 0) {
            true => Ok(()),
            false => Err(PersistError::Cancelled),
        }
    }

    fn take(&mut self, answer: Answer) {
        let Answer::Tried(image, result) = answer else {
            return;
        };
        match result {
            Ok((ended, said)) => {
                self.found.images += 1;
                *self.kinds.entry(image.kind).or_default() += 1;
                let at = self.found.by_cut.entry(image.cut).or_default();
                at.0 += 1;
                at.1 += u32::from(self.shared.recovery.fails(ended));
                if ended == Ended::TimedOut {
                    self.waited += self.shared.recovery.time;
                }
                if self.shared.recovery.fails(ended) {
                    let cut = self.shared.course.cuts[image.cut as usize];
                    *self.failed.entry((cut.signature, image.kind)).or_default() += 1;
                    self.found.violations.push(Violation {
                        image,
                        ended,
                        said,
                        seconds: self.shared.clock.passed().as_secs_f64(),
                    });
                }
            }
            Err(PersistError::Late) => self.late += 1,
            Err(e) => self.problem = Some(e),
        }
    }

    fn look(&mut self, crew: &mut Crew, start: u32) -> Result<(), PersistError> {
        let shared = self.shared;
        let scope = Scope {
            platform: shared.platform,
            tear: self.question.tear,
            start,
            seed: self.question.seed,
            acks: shared.recovery.wants_acks(),
        };
        let mut seen = FxHashSet::default();
        let on = || !shared.clock.is_spent();
        for (number, pass) in PASSES.iter().enumerate() {
            // Cuts with an image that is left out, since enough of its kind have failed.
            let mut left_out = FxHashSet::default();
            let passed = images::each(
                &shared.recording,
                &shared.course,
                scope,
                *pass,
                &mut seen,
                &on,
                |image| {
                    while let Some(answer) = crew.ready() {
                        self.take(answer);
                    }
                    if self.is_enough() {
                        return false;
                    }
                    let cut = shared.course.cuts[image.cut as usize];
                    let known = self.failed.get(&(cut.signature, image.kind));
                    if known.is_none_or(|&count| count < SAME) {
                        crew.give(Job::Try(image, shared.recovery.time));
                    } else {
                        left_out.insert(image.cut);
                    }
                    true
                },
            );
            let ended = !passed.finished;
            shared.enough.store(ended, Ordering::Relaxed);
            while let Some(answer) = crew.next() {
                self.take(answer);
            }
            if let Some(problem) = self.problem.take() {
                return Err(problem);
            }
            self.listen()?;
            // What was given out last may have come too late.
            if ended || self.late > 0 {
                break;
            }
            let tried = passed.cuts.iter().filter(|cut| !left_out.contains(cut));
            self.found.cuts.extend(tried);
            self.found.passes = number + 1;
        }
        self.found.cuts.extend(self.found.by_cut.keys());
        self.found.finished = self.found.passes == PASSES.len();
        Ok(())
    }

    /// Whether looking ends here.
    fn is_enough(&self) -> bool {
        let budget = self.question.budget;
        let share = match self.found.violations.is_empty() {
            true => 1.0,
            false => LOOKING,
        };
        self.found.violations.len() >= ENOUGH
            || self.shared.clock.is_spent()
            || self.passed() > budget * share
            || self.waited.as_secs_f64() > budget * WAITING * self.workers
            || self.problem.is_some()
            || self.listen().is_err()
    }

    /// One violation of each kind, and as many kinds as there is time for.
    fn reduce(&mut self, crew: &mut Crew) -> Result<(), PersistError> {
        let mut kinds = FxHashSet::default();
        let mut chosen: Vec<usize> = Vec::new();
        for (number, violation) in self.found.violations.iter().enumerate() {
            let cut = self.shared.course.cuts[violation.image.cut as usize];
            if kinds.insert((cut.signature, violation.image.kind)) {
                chosen.push(number);
            }
        }
        // What differs least from what is sure says most; what does not end takes long.
        chosen.sort_by_key(|&number| {
            let violation = &self.found.violations[number];
            let image = &violation.image;
            (violation.ended == Ended::TimedOut, image.kind, image.cut)
        });
        let spread = (chosen.len() / REDUCED).max(1);
        let chosen: Vec<usize> = chosen.into_iter().step_by(spread).take(REDUCED).collect();
        self.found.unreduced = chosen.len();
        let mut next = chosen.iter();
        let (mut known, mut stale) = (FxHashSet::default(), 0);
        loop {
            while crew.waiting < 4 && stale < NOTHING_NEW && !self.shared.clock.is_spent() {
                let Some(&number) = next.next() else { break };
                let image = self.found.violations[number].image.clone();
                crew.give(Job::Reduce(number, image));
            }
            match crew.next() {
                None => break,
                Some(Answer::Reduced(number, Ok(reduced))) => {
                    let sites = |overs: &[images::Over]| -> Vec<u64> {
                        let recording = &self.shared.recording;
                        let site = |over: &images::Over| {
                            let slot = &recording.lines[over.slot as usize];
                            let event = slot.versions[over.version as usize].event;
                            let site = recording.events[event as usize].site;
                            let pc = recording.sites.get(site as usize).map(|site| site.pc);
                            pc.unwrap_or(u64::from(slot.line))
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
                    self.found.unreduced -= usize::from(reduced.finished);
                    self.found.reduced.push((number, reduced));
                }
                Some(Answer::Reduced(_, Err(e))) | Some(Answer::Tried(_, Err(e))) => return Err(e),
                Some(Answer::Tried(..)) => {}
            }
            self.listen()?;
        }
        if stale >= NOTHING_NEW {
            self.found.unreduced = 0;
        }
        self.found.reduced.sort_by_key(|(number, _)| *number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::made::Do::{self, Clwb, Fence, Store};
    use crate::made::{question, shared};
    use std::sync::mpsc::{channel, sync_channel};

    /// So many fences, a line stored to before each.
    fn fences(count: u32) -> Vec<(u16, Do)> {
        let one = |number: u32| [Store(number % 7, number as u8 | 1), Clwb(number % 7), Fence];
        (0..count).flat_map(one).map(|what| (0, what)).collect()
    }

    /// Has a search do something with a worker whose recoveries end with the status that `status` says of an image.
    fn searched<T>(
        shared: &Shared,
        found: &mut Found,
        status: impl Fn(&Image) -> i32 + Sync,
        test: impl FnOnce(&mut Search<'_>, &mut Crew) -> T,
    ) -> T {
        asking(&question(), shared, found, status, test)
    }

    /// The same, with a question.
    fn asking<T>(
        question: &Question,
        shared: &Shared,
        found: &mut Found,
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
                        Job::Try(image, _) => {
                            let ended = Ended::Status(status(&image));
                            Answer::Tried(image, Ok((ended, "said".to_owned())))
                        }
                        Job::Reduce(number, image) => {
                            let reduced = Reduced {
                                early: image.over.clone(),
                                image,
                                late: Vec::new(),
                                passes: None,
                                unexplained: false,
                                finished: true,
                            };
                            Answer::Reduced(number, Ok(reduced))
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
            let mut found = Found::default();
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
        let mut found = Found::default();
        searched(
            &shared,
            &mut found,
            |_| 0,
            |search, crew| search.all(crew, &AtomicU64::new(0)),
        )
        .unwrap();
        assert!(found.finished && found.passes == PASSES.len());
        assert_eq!(found.cuts.len(), shared.course.cuts.len());
        assert_eq!(found.verdict(), Verdict::NoViolation);
    }

    #[test]
    fn nothing_is_said_where_the_budget_ends_before_the_first_pass() {
        let mut shared = shared(&fences(40), &["true"]);
        shared.clock = Clock::new(Some(Duration::ZERO));
        for start in [None, Some("0".to_owned())] {
            let mut found = Found::default();
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
            assert_eq!(found.verdict(), Verdict::Unsaid);
            assert!(found.cuts.is_empty() && found.images == 0 && !found.finished);
            assert_eq!(found.start.is_some(), start.is_some());
            assert_eq!(found.no_start.is_some(), start.is_none());
        }
    }

    /// The first pass over the kinds of moments is what decides, and not that there was some image.
    #[test]
    fn a_violation_counts_before_the_first_pass_is_done() {
        let mut found = Found::default();
        assert_eq!(found.verdict(), Verdict::Unsaid);
        found.passes = FIRST - 1;
        assert_eq!(found.verdict(), Verdict::Unsaid);
        found.passes = FIRST;
        assert_eq!(found.verdict(), Verdict::NoViolation);
        found.passes = 0;
        found.violations.push(Violation {
            image: Image::fenced(0),
            ended: Ended::Status(1),
            said: String::new(),
            seconds: 0.0,
        });
        assert_eq!(found.verdict(), Verdict::Violation);
    }

    #[test]
    fn a_recovery_that_never_copes_is_an_error_that_says_what_it_said() {
        let shared = shared(&fences(20), &["true"]);
        let mut found = Found::default();
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
        let cut = |shared: &Shared, start| named_start(&shared.recording, &shared.course, start);
        let error = cut(&shared, "ready").unwrap_err().to_string();
        assert!(error.contains("no marks"), "{error}");
        shared.recording.marks = vec![(5, "ready".to_owned())];
        let row = |number: u32| shared.course.cuts[number as usize].row;
        let named = cut(&shared, "ready").unwrap();
        assert!(row(named) >= 5 && row(named - 1) < 5);
        assert_eq!(cut(&shared, "5").unwrap(), named);
        assert_eq!(cut(&shared, "0").unwrap(), 0);
        let error = cut(&shared, "redy").unwrap_err().to_string();
        assert!(error.contains("there are ready"), "{error}");
        let error = cut(&shared, "1000").unwrap_err().to_string();
        assert!(error.contains("no cut comes after it"), "{error}");
    }

    /// All that fails is counted by cut and kind of image; what is alike is looked for twice and reduced once.
    #[test]
    fn violations_are_counted_and_one_of_a_kind_is_reduced() {
        let shared = shared(&fences(300), &["true"]);
        let mut found = Found::default();
        let failing = |image: &Image| i32::from(image.over.is_empty() && image.cut >= 200);
        searched(&shared, &mut found, failing, |search, crew| {
            search.all(crew, &AtomicU64::new(0))
        })
        .unwrap();
        assert!(!found.violations.is_empty() && found.violations.len() <= ENOUGH + QUEUE + 1);
        let fail =
            |violation: &Violation| violation.image.over.is_empty() && violation.image.cut >= 200;
        assert!(found.violations.iter().all(fail));
        let failed: u32 = found.by_cut.values().map(|(_, failed)| failed).sum();
        let tried: u32 = found.by_cut.values().map(|(tried, _)| tried).sum();
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
