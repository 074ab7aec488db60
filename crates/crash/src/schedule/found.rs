//! The findings of a plan so far, by pass and by kind of violation.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::attacker::outcome::Attacked;
use crate::findings::{Covered, ExploredCuts};
use crate::history::run::Run;
use crate::history::{History, HistoryError};
use crate::one_run::OneRun;
use crate::secrecy::widths::Widths;
use crate::verdict::coverage::{Bounds, CacheSizes, Need, exercised, reached};
use crate::verdict::shrink::{Shrunk, reduce};
use crate::verdict::told::Told;
use crate::violation::Kind;
use rustc_hash::FxHasher;
use sardonyx::controller::layers::Refuses;
use sardonyx::machine::RunError;
use sardonyx::mechanisms::{Exercised, Reached, Value};

/// After this many rounds an amount that is still 0 is not waited for: further rounds are longer, but the passes are
/// the same.
const ROUNDS_FOR_NOTHING: usize = 2;

#[derive(Clone, Default)]
pub struct PassShown {
    pub runs: u64,
    pub positions: u64,
    pub covered: Covered,
    pub exercised: Exercised,
    pub reached: Reached,
    pub sizes: CacheSizes,
    pub widths: Widths,
    pub lost_cuts: u64,
    pub secret_cuts: u64,
    /// A hash of what the pass's runs wrote, where it is compared.
    pub bytes: u64,
    /// Settings that had to press less than planned.
    pub eased: BTreeMap<&'static str, u64>,
}

/// The findings of the plan so far: by pass, and the first violation of each kind with their number.
#[derive(Default)]
pub struct PlanFound {
    pub passes: Vec<PassShown>,
    pub kinds: BTreeMap<Kind, (u64, usize, Told)>,
    pub error: Option<(usize, HistoryError)>,
    pub attacked: BTreeMap<usize, Attacked>,
    pub runs: BTreeMap<Kind, OneRun>,
}

/// A hash of what a run wrote, when, and where to.
pub fn digest(history: &History) -> u64 {
    let mut hasher = FxHasher::default();
    for (time, _) in &history.journal.events {
        hasher.write_u64(time.ps());
    }
    for write in &history.journal.writes {
        hasher.write_u64(write.at.0);
        hasher.write(&write.line);
        hasher.write_u8(write.words);
        hasher.write(&write.sideband.unwrap_or_default());
    }
    hasher.finish()
}

impl PassShown {
    pub fn append(&mut self, other: &PassShown) {
        self.runs += other.runs;
        self.positions += other.positions;
        self.covered.add(other.covered);
        self.exercised.append(&other.exercised);
        self.reached.append(&other.reached);
        self.sizes.append(&other.sizes);
        self.widths.append(&other.widths);
        self.lost_cuts += other.lost_cuts;
        self.secret_cuts += other.secret_cuts;
    }

    /// Notes the settings of a run that had to press less; of several runs the one that pressed least.
    pub fn ease(&mut self, settings: &[(&'static str, u64)]) {
        for (key, value) in settings {
            let eased = self.eased.entry(key).or_default();
            *eased = (*eased).max(*value);
        }
    }

    pub fn is_broken(&self) -> bool {
        self.lost_cuts + self.secret_cuts > 0
    }

    pub fn reached(&self) -> Reached {
        let mut reached = self.reached;
        reached.reach(Value::CacheSizes, self.sizes.count());
        reached
    }
}

impl PlanFound {
    /// Handles the error that run `number` has ended with: it is a finding, or the trial's own.
    pub fn failed(&mut self, number: usize, index: usize, run: Run, error: HistoryError) {
        match error {
            HistoryError::Broken(what) => self.ended(number, index, run, &what),
            // Nobody has changed the medium, and programs know what they have written.
            HistoryError::Run(error @ (RunError::NotAuthentic { .. } | RunError::Wrong { .. })) => {
                self.ended(number, index, run, &error.to_string())
            }
            // A design that has room in the first pass needs no more in the others.
            HistoryError::Run(error @ RunError::Exhausted { why, .. })
                if index > 0 && why.key.is_none() =>
            {
                self.ended(number, index, run, &error.to_string());
            }
            // Setup before the run needs no more room than in the first pass either.
            HistoryError::Exhausted(why) if index > 0 && why.key.is_none() => {
                self.ended(number, index, run, &why.to_string());
            }
            error => {
                let first = self.error.as_ref().map(|(first, _)| *first);
                if first.is_none_or(|first| first > number) {
                    self.error = Some((number, error));
                }
            }
        }
    }

    pub fn all(&self) -> PassShown {
        let mut all = PassShown::default();
        for shown in &self.passes {
            all.append(shown);
        }
        all
    }

    /// What the earliest run shows that a stack which `promises` this must not, and the number of that run.
    pub fn first(&self, promises: Refuses) -> Option<(String, Option<usize>)> {
        let kinds = self.kinds.iter();
        let cut = kinds.map(|(kind, (_, number, _))| (*number, *kind));
        let attacked = self.attacked.iter().filter_map(|(number, came)| {
            let is_unkept = came.unkept(promises) > 0;
            let kind = is_unkept.then_some(Kind::Undetected);
            let refused = (came.honest_refused > 0).then_some(Kind::NotAuthentic);
            Some((*number, kind.or(refused)?))
        });
        let (number, kind) = cut.chain(attacked).min()?;
        Some((kind.name().to_owned(), Some(number)))
    }

    /// Sums up the outcome of all attacks, those of the earliest runs first.
    pub fn all_attacked(&self) -> Attacked {
        let mut all = Attacked::default();
        self.attacked.values().for_each(|came| all.append(came));
        all
    }

    pub fn reached(&self, all: &PassShown) -> Reached {
        let mut reached = all.reached();
        reached.reach(Value::Attacks, self.all_attacked().fewest());
        reached
    }

    /// Whether a further round may bring something that lacks: nothing is broken, no option keeps the runs from it, and
    /// it has come before.
    pub fn goes_on(&self, bounds: &Bounds, needs: &[Need], rounds: usize) -> bool {
        let all = self.all();
        let lacks = bounds.lacks(needs, &all.exercised, &self.reached(&all));
        let comes = |had: u64| had > 0 || rounds < ROUNDS_FOR_NOTHING;
        let mut lacks = lacks.iter();
        !all.is_broken() && lacks.any(|lack| lack.kept_by.is_empty() && comes(lack.had))
    }

    pub fn ended(&mut self, number: usize, index: usize, run: Run, what: &str) {
        self.passes[index].lost_cuts += 1;
        let told = Told {
            pass: Some(index),
            ..Told::ended(run, what)
        };
        self.count(Kind::RunEnded, 1, number, || told);
    }

    /// Counts `count` violations of `kind` in run `number`; the violation of the earliest run is kept.
    pub fn count(&mut self, kind: Kind, count: u64, number: usize, told: impl FnOnce() -> Told) {
        match self.kinds.get_mut(&kind) {
            None => {
                self.kinds.insert(kind, (count, number, told()));
            }
            Some((all, earliest, story)) => {
                *all += count;
                if number < *earliest {
                    (*earliest, *story) = (number, told());
                }
            }
        }
    }

    pub fn add(
        &mut self,
        index: usize,
        history: &History,
        explored: &ExploredCuts,
        sizes: CacheSizes,
    ) {
        let shown = PassShown {
            runs: 1,
            positions: history.positions(),
            covered: explored.covered,
            exercised: exercised(history, explored),
            reached: reached(history, explored),
            sizes,
            widths: explored.widths.clone(),
            lost_cuts: explored.tally.lost.count,
            secret_cuts: explored.tally.secret.count,
            bytes: 0,
            eased: BTreeMap::new(),
        };
        self.passes[index].append(&shown);
    }

    pub fn tell(
        &mut self,
        (number, index): (usize, usize),
        history: &History,
        explored: &ExploredCuts,
        question: &OneRun,
    ) {
        for (kind, (count, first)) in &explored.tally.kinds {
            let told = || Told {
                run: Some(Run::recorded(history)),
                pass: Some(index),
                script: question.script.clone(),
                ..Told::from_violation(history, *count, first)
            };
            if self.kinds.get(kind).is_none_or(|known| number < known.1) {
                self.runs.insert(*kind, question.clone());
            }
            self.count(*kind, *count, number, told);
        }
    }

    pub fn shorten(&mut self, threads: usize) {
        let found: Vec<(Kind, &OneRun)> =
            self.runs.iter().map(|(kind, run)| (*kind, run)).collect();
        let next = AtomicUsize::new(0);
        let shorter: Mutex<Vec<(Kind, Shrunk)>> = Mutex::default();
        let work = || {
            while let Some((kind, run)) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Some(reduced) = reduce(run, *kind) {
                    shorter
                        .lock()
                        .expect("no thread panics")
                        .push((*kind, reduced));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        for (kind, reduced) in shorter.into_inner().expect("no thread panics") {
            if let Some((_, _, told)) = self.kinds.get_mut(&kind) {
                *told = told.clone().shortened(&reduced);
            }
        }
    }
}
