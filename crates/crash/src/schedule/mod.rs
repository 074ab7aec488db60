//! The plan of `sardonyx crash run`: passes over one design and one program. A pass is a run of its own and all its
//! cuts. The passes differ in what makes a power cut dangerous: seeds, sizes of caches and queues, distances between
//! counter marks, and which cores share lines of counters. A verdict says which mechanisms of the design the plan has
//! used; it holds for no others.

pub(crate) mod found;
mod further;
pub(crate) mod pass;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::attacker::attack;
use crate::attacker::enumerated::enumerate;
use crate::attacker::outcome::Attacked;
use crate::findings::ExploredCuts;
use crate::history::run::Run;
use crate::history::{History, HistoryError, Result};
use crate::one_run::OneRun;
use crate::options::Options;
use crate::panics::caught;
use crate::schedule::found::{PassShown, PlanFound, digest};
use crate::schedule::pass::{
    LONG_ITEM, MEETING, Mapping, Pass, SWAPS, limits_of, most_limits, passes, unflushed,
};
use crate::verdict::coverage::{Bounds, CacheSizes, Lack, Need};
use crate::verdict::passes::{Row, Tried};
use crate::verdict::report::Verdict;
use crate::verdict::told::Told;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::layers::{Guarantee, Limit, Placement};
use sardonyx::controller::mapping::DUPLICATE;
use sardonyx::machine::RunError;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::CRASH_SHORT;
use sardonyx::settings::{Settings, Value};
use sardonyx_workload::{DurabilityKind, Mutant, ProgramSpec, Sharing};

/// A plan has at most this many rounds of passes, and ends as soon as a verdict lacks nothing.
const MOST_ROUNDS: usize = 4;
const ENUMERATED: &str = "attacks of which none is drawn";
/// A design and a program, to be tried by a plan of passes.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    pub machine: String,
    /// Keys and values that override the machine's and those of a pass.
    pub overrides: Vec<(String, String)>,
    pub design: String,
    pub program: String,
    pub durability: DurabilityKind,
    pub seed: u64,
    /// The number of cores of the passes with several cores, 2 by default; with 1 there are no such passes.
    pub cores: Option<usize>,
    pub transactions: Option<u64>,
    pub item_bytes: Option<u64>,
    pub footprint: Option<u64>,
    pub options: Options,
    /// The time for which the trial continues with further seeds after the plan.
    pub thorough: Option<Duration>,
    /// Whether further rounds follow a plan that lacks something.
    pub until_exercised: bool,
    /// Whether the first history of each kind of violation is shortened.
    pub shorten: bool,
    /// Whether it ends with the first run that shows a violation.
    pub only_first: bool,
}

/// A run of a pass, what it had to press less, and what came of it.
struct Looked {
    question: Option<OneRun>,
    eased: Vec<(&'static str, u64)>,
    answer: Result<Option<(History, ExploredCuts)>>,
}

impl Trial {
    fn passes(&self, mapping: Mapping, limits: usize) -> Vec<Pass> {
        let logged = self.durability == DurabilityKind::Hardware;
        let mut passes = passes(&self.program, logged, self.cores, mapping, limits);
        let by_program = self.durability == DurabilityKind::default();
        if by_program && self.options.platform.keeps_stores() {
            passes.extend(unflushed(&self.program));
        }
        passes
    }

    pub(crate) fn passes_over(&self, stack: &Stack, machine: &Machine) -> Vec<Pass> {
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        stack.build(&machine.settings, &mut layout);
        let placement = (stack.mapping.placement)(&machine.settings, &layout);
        let gives_places = matches!(placement, Placement::Table(_));
        let mapping = Mapping {
            finds_duplicates: gives_places || stack.tries().any(|m| *m == DUPLICATE),
            gives_places,
        };
        self.passes(mapping, most_limits(stack, &machine.settings))
    }

    fn item_bytes(&self, pass: &Pass) -> u64 {
        self.item_bytes.unwrap_or(match self.durability {
            // A swap changes two items, so half the bytes give a transaction as many lines as another program's.
            DurabilityKind::Hardware if pass.item_bytes == LONG_ITEM && pass.program == SWAPS => {
                LONG_ITEM / 2
            }
            DurabilityKind::Hardware if pass.item_bytes == LONG_ITEM => LONG_ITEM,
            DurabilityKind::Hardware => 2 * pass.item_bytes, // more lines than a record has room for
            DurabilityKind::SoftwareUndo { .. } => pass.item_bytes,
        })
    }

    fn footprint(&self, pass: &Pass) -> u64 {
        match pass.meeting {
            true => MEETING * self.item_bytes(pass),
            false => self.footprint.unwrap_or(pass.footprint),
        }
    }

    /// The run of `pass` in the plan's round number `round`, whose number is `index`, pressed less by what `eased` sets.
    fn question(
        &self,
        pass: &Pass,
        index: usize,
        round: u64,
        eased: &[(&'static str, u64)],
    ) -> Result<OneRun> {
        let seed = (self.seed.wrapping_add(round)) * 100 + index as u64;
        let several = match (round, self.cores) {
            (_, Some(cores)) => cores,
            (0, None) => pass.cores,
            (_, None) => [2, 4, 3][(round % 3) as usize],
        };
        let cores = if pass.several_cores { several } else { 1 };
        let longer = if round == 0 { 1 } else { 1 + round % 4 };
        let spec = |core: usize| ProgramSpec {
            name: pass.program.clone(),
            item_bytes: self.item_bytes(pass),
            footprint: self.footprint(pass),
            transactions: self.transactions.unwrap_or(pass.transactions * longer),
            seed: seed.wrapping_mul(1024).wrapping_add(core as u64),
            durability: match pass.unflushed {
                true => DurabilityKind::SoftwareUndo {
                    mutant: Some(Mutant::NothingFlushed),
                },
                false => self.durability,
            },
            sharing: match (pass.packed, cores) {
                (false, _) => Sharing::Apart,
                (true, 1) => Sharing::Packed,
                (true, _) => Sharing::Interleaved {
                    cores: cores.next_power_of_two() as u64,
                },
            },
            contents: sardonyx_workload::Contents::Drawn,
        };
        let machine = Machine::load(&self.machine, &self.overrides)?;
        let mut planned = pass.settings(&Stack::named(&self.design)?, &machine.settings);
        planned.extend(
            eased
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.to_string())),
        );
        Ok(OneRun {
            machine: Machine::load_planned(&self.machine, &planned, &self.overrides)?,
            design: self.design.clone(),
            specs: (0..cores).map(spec).collect(),
            seed,
            options: Options {
                threads: 1,
                ..self.options
            },
            script: None,
        })
    }

    /// Estimates the bytes of host memory of the largest run from above.
    ///
    /// # Errors
    /// It does not fit; and as [`Trial::answer`].
    pub fn memory(&self) -> Result<u64> {
        let machine = Machine::load(&self.machine, &self.overrides)?;
        let limits = most_limits(&Stack::named(&self.design)?, &machine.settings);
        let all = Mapping {
            finds_duplicates: true,
            gives_places: true,
        };
        let passes = self.passes(all, limits).into_iter().enumerate();
        let each = passes.map(|(index, pass)| self.question(&pass, index, 0, &[])?.memory());
        let most = each.collect::<Result<Vec<u64>>>()?;
        Ok(most.into_iter().max().unwrap_or(0))
    }

    /// Makes the runs of the plan, cuts the power in them, and returns what was found. `progress` is told the passes
    /// done and in all, or for a thorough trial the seconds; if it answers false this returns `None`.
    ///
    /// # Errors
    /// The design, the program or a setting does not exist; the first pass that says so.
    pub fn answer(&self, progress: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Option<Tried>> {
        let stack = Stack::named(&self.design)?;
        let machine = Machine::load(&self.machine, &self.overrides)?;
        let passes = self.passes_over(&stack, &machine);
        let started = Instant::now();
        let bounds = self.bounds(&stack, &machine);
        let needs = bounds.needs();
        let mut found = PlanFound {
            passes: vec![PassShown::default(); passes.len()],
            ..PlanFound::default()
        };
        let mut rounds = 0;
        // A round is finished before anybody checks what lacks, so the result is the same for any number of threads.
        while rounds == 0 || rounds < MOST_ROUNDS && found.goes_on(&bounds, &needs, rounds) {
            let first = rounds * passes.len();
            let numbers = match self.thorough {
                Some(_) => first..usize::MAX,
                None => first..first + passes.len(),
            };
            found = match self.make(&stack, &passes, numbers, found, (started, progress))? {
                Some(found) => found,
                None => return Ok(None),
            };
            rounds = match self.thorough {
                Some(_) => MOST_ROUNDS,
                None => rounds + 1,
            };
        }
        let mut further = None;
        if self.until_exercised {
            let over = (&stack, &machine);
            let made = self.further(over, &needs, found, (started, progress))?;
            let Some((made, how)) = made else {
                return Ok(None);
            };
            (found, further) = (made, Some(how));
        }
        if self.shorten && found.all().is_broken() && stack.guarantee() != Guarantee::Nothing {
            found.shorten(self.threads());
        }
        let mut tried = self.describe((&stack, &machine), &passes, &found, started);
        let all = found.all();
        let mut lacks = bounds.lacks(&needs, &all.exercised, &found.reached(&all));
        let attacks = self.options.attacks;
        let enumerated = attacks.map_or(Vec::new(), |_| enumerate(&stack, &machine.settings));
        lacks.extend(enumerated.iter().find(|row| row.tried == 0).map(|_| Lack {
            what: ENUMERATED,
            had: 0,
            least: 1,
            kept_by: Vec::new(),
            reached_by: Vec::new(),
        }));
        tried.verdict = Verdict::judge(all.is_broken(), stack.guarantee(), lacks.is_empty());
        if let Some(attacks) = attacks {
            let (mut attacked, promises) = (found.all_attacked(), stack.integrity.promises);
            attacked.enumerated = enumerated;
            let verdict = tried.verdict;
            tried.verdict = verdict.under_attack(&attacked, promises, Some(attacks));
            tried.violations.extend(attacked.violations(promises));
            tried.attacks = Some(attacked.report(promises));
        }
        tried.fails = tried.verdict.fails();
        tried.further = further;
        tried.narrowed = bounds.narrowed();
        tried.required = needs.into_iter().map(Need::name).collect();
        tried.not_exercised = lacks.iter().map(|lack| lack.what).collect();
        tried.lacks = lacks;
        Ok(Some(tried))
    }

    /// Makes the runs with these `numbers`, all of them or until the time is over, and adds their findings; `None` if
    /// the user has ended it.
    pub(crate) fn make(
        &self,
        stack: &Stack,
        passes: &[Pass],
        numbers: Range<usize>,
        found: PlanFound,
        (started, progress): (Instant, &(dyn Fn(u64, u64) -> bool + Sync)),
    ) -> Result<Option<PlanFound>> {
        let (next, done) = (
            AtomicUsize::new(numbers.start),
            AtomicUsize::new(numbers.start),
        );
        let cancelled = AtomicBool::new(false);
        let found = Mutex::new(found);
        let told = || match self.thorough {
            Some(time) => progress(
                started.elapsed().as_secs().min(time.as_secs()),
                time.as_secs(),
            ),
            None => progress(done.load(Ordering::Relaxed) as u64, numbers.end as u64),
        };
        let is_enough = || {
            let promises = stack.integrity.promises;
            self.only_first && {
                let found = found.lock().expect("no thread panics");
                found.error.is_some() || found.first(promises).is_some()
            }
        };
        let over = |number: usize| match self.thorough {
            Some(time) => started.elapsed() >= time && number >= passes.len(),
            None => number >= numbers.end || is_enough(),
        };
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if cancelled.load(Ordering::Relaxed) || over(number) {
                    return;
                }
                if !self.make_one((stack, passes), number, &found, &|_, _| told()) {
                    cancelled.store(true, Ordering::Relaxed);
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let threads = self.threads();
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        let found = found.into_inner().expect("no thread panics");
        if let Some((_, error)) = found.error {
            return Err(error);
        }
        if cancelled.into_inner() {
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// Makes run `number` of the plan, cuts and attacks it, and adds what came of it to `found`. Returns false if
    /// `progress` has ended it.
    fn make_one(
        &self,
        (stack, passes): (&Stack, &[Pass]),
        number: usize,
        found: &Mutex<PlanFound>,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> bool {
        let (round, index) = (number / passes.len(), number % passes.len());
        let Looked {
            question,
            eased,
            answer,
        } = self.looked_at(&passes[index], index, round as u64, progress);
        let run = question.as_ref().map(OneRun::run).unwrap_or_default();
        let sizes = question.as_ref();
        let sizes = sizes.map(|question| CacheSizes::from_stack(stack, &question.machine));
        let sizes = sizes.unwrap_or_default();
        let attacked = self.attacked(answer.as_ref(), index);
        let mut found = found.lock().expect("no thread panics");
        match answer {
            Ok(Some((history, explored))) => {
                let asked = question.expect("it was asked");
                found.add(index, &history, &explored, sizes);
                found.passes[index].ease(&eased);
                if self.only_first {
                    found.passes[index].bytes = digest(&history);
                }
                found.tell((number, index), &history, &explored, &asked);
                found.attacked.extend(attacked.map(|came| (number, came)));
            }
            Ok(None) => return false,
            Err(error) => found.failed(number, index, run, error),
        }
        true
    }

    /// Makes the run of `pass` and cuts it. Where the pass presses harder than the programs allow, the run is made again
    /// with less pressure: a transaction may take more of the log than there is, or nothing may be there to be short of.
    fn looked_at(
        &self,
        pass: &Pass,
        index: usize,
        round: u64,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Looked {
        let mut eased = Vec::new();
        loop {
            let question = match self.question(pass, index, round, &eased) {
                Ok(question) => question,
                Err(error) => {
                    return Looked {
                        question: None,
                        eased,
                        answer: Err(error),
                    };
                }
            };
            let looked = caught(|| question.look(progress)).map_err(HistoryError::Broken);
            let answer = looked.and_then(|answer| answer);
            let short = answer.as_ref().err();
            match short.and_then(|why| self.eased(&question, why)) {
                Some(setting) => eased.push(setting),
                None => {
                    return Looked {
                        question: Some(question),
                        eased,
                        answer,
                    };
                }
            }
        }
    }

    /// The setting that presses less than `question` does, where `why` says that it presses too hard: as much as the run
    /// has, or twice as much of what is too little. `None` if it is not the plan that presses.
    fn eased(&self, question: &OneRun, why: &HistoryError) -> Option<(&'static str, u64)> {
        let is_mine = |key: &str| self.overrides.iter().all(|(other, _)| other != key);
        let key = match why {
            HistoryError::Short { most, .. } => {
                let key = CRASH_SHORT.name();
                return is_mine(key).then_some((key, *most));
            }
            HistoryError::Run(RunError::Exhausted { why, .. }) => why.key?,
            _ => return None,
        };
        let machine = Machine::load(&self.machine, &self.overrides).ok()?;
        let value = |settings: &Settings| match settings.find(key) {
            Some(Value::Int(value)) => Some(value),
            _ => None,
        };
        let (there, most) = (
            value(&question.machine.settings)?,
            value(&machine.settings)?,
        );
        (there < most).then(|| (key, most.min(2 * there)))
    }

    /// Returns the outcome of attacks on a run of pass `index`, if it is attacked and has been run.
    fn attacked(
        &self,
        answer: Result<&Option<(History, ExploredCuts)>, &HistoryError>,
        index: usize,
    ) -> Option<Attacked> {
        let (history, _) = answer.ok()?.as_ref()?;
        let mut attacked = attack(history, &self.options, self.options.attacks?);
        attacked.was_in(&Run::recorded(history), index);
        Some(attacked)
    }

    fn threads(&self) -> usize {
        match self.options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }

    fn bounds<'a>(&'a self, stack: &'a Stack, machine: &'a Machine) -> Bounds<'a> {
        Bounds {
            stack,
            machine,
            durability: self.durability,
            options: self.options,
            cores: self.cores,
            transactions: self.transactions,
            overrides: &self.overrides,
            once: false,
        }
    }

    fn describe(
        &self,
        (stack, machine): (&Stack, &Machine),
        passes: &[Pass],
        found: &PlanFound,
        started: Instant,
    ) -> Tried {
        let all = found.all();
        let rows = passes.iter().zip(&found.passes).enumerate();
        let rows =
            rows.map(|(index, (pass, shown))| self.row((stack, machine), index, pass, shown));
        let kinds = found.kinds.values();
        let violations = kinds.map(|(count, _, first)| Told {
            count: *count,
            ..first.clone()
        });
        Tried {
            design: self.design.clone(),
            program: self.program.clone(),
            mutant: self.durability.mutant().map(|mutant| mutant.name()),
            seed: self.seed,
            platform: self.options.platform.name(),
            tear: self.options.tear.name(),
            guarantee: stack.guarantee().name(),
            runs: all.runs,
            positions: all.positions,
            cuts: all.covered.cuts,
            distinct_states: all.covered.states,
            checked_in_full: all.covered.full,
            recovery_cuts: all.covered.recovery_cuts,
            later_lives: all.covered.lived,
            later_lives_in_full: all.covered.lived_full,
            lost_cuts: all.lost_cuts,
            secret_cuts: all.secret_cuts,
            exercised: all.exercised.clone(),
            reached: found.reached(&all),
            required: Vec::new(),
            not_exercised: Vec::new(),
            lacks: Vec::new(),
            verdict: Verdict::NotExercised,
            narrowed: Vec::new(),
            fails: true,
            not_reached: limits_of(stack, &machine.settings)
                .filter_map(Limit::never)
                .collect(),
            widths_not_judged: all.widths.not_judged(),
            shows: stack.mapping.shows,
            further: None,
            attacks: None,
            violations: violations.collect(),
            passes: rows.collect(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    fn row(
        &self,
        (stack, machine): (&Stack, &Machine),
        index: usize,
        pass: &Pass,
        shown: &PassShown,
    ) -> Row {
        let several = pass.several_cores && self.cores != Some(1);
        let eased = shown
            .eased
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.to_string()));
        let settings = pass
            .settings(stack, &machine.settings)
            .into_iter()
            .chain(eased);
        let settings: BTreeMap<_, _> = settings.collect();
        let mut settings: Vec<_> = settings.into_iter().collect();
        if let Ok(machine) = Machine::load_planned(&self.machine, &settings, &self.overrides) {
            settings.retain(|(key, _)| machine.acts(key));
        }
        Row {
            program: pass.program.clone(),
            cores: match pass.several_cores {
                true => self.cores.unwrap_or(pass.cores),
                false => 1,
            },
            sharing: match (pass.packed, several) {
                (false, _) => "apart",
                (true, false) => "packed",
                (true, true) => "interleaved",
            },
            transaction_bytes: self.item_bytes(pass),
            footprint_bytes: self.footprint(pass),
            transactions: self.transactions.unwrap_or(pass.transactions),
            settings,
            seed: self.seed * 100 + index as u64,
            runs: shown.runs,
            positions: shown.positions,
            cuts: shown.covered.cuts,
            distinct_states: shown.covered.states,
            recovery_cuts: shown.covered.recovery_cuts,
            lost_cuts: shown.lost_cuts,
            secret_cuts: shown.secret_cuts,
            exercised: shown.exercised.clone(),
            reached: shown.reached(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sardonyx::controller::mapping::FULL_MEDIUM;

    #[test]
    fn what_never_came_is_not_waited_for_longer_than_a_second_round() {
        let trial = Trial {
            machine: "sca".into(),
            design: "esd-sound".into(),
            program: "queue".into(),
            seed: 1,
            ..Trial::default()
        };
        let stack = Stack::named("esd-sound").expect("a design");
        let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
        let bounds = trial.bounds(&stack, &machine);
        let needs = [Need::Used(&FULL_MEDIUM)];
        let goes_on = |times, rounds| {
            let mut found = PlanFound {
                passes: vec![PassShown::default()],
                ..PlanFound::default()
            };
            found.passes[0].exercised.add(&FULL_MEDIUM, times);
            found.goes_on(&bounds, &needs, rounds)
        };
        let least = FULL_MEDIUM.least;
        assert!(goes_on(0, 1) && !goes_on(0, 2));
        assert!(goes_on(1, 2) && goes_on(least - 1, 3));
        assert!(!goes_on(least, 1));
    }

    #[test]
    fn a_pass_presses_less_where_it_presses_harder_than_its_programs_allow() {
        let trial = |overrides: &[(&str, &str)]| Trial {
            machine: "sca".into(),
            overrides: overrides
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
            design: "hw-log/zero-lines+sca".into(),
            program: "array-swap".into(),
            durability: DurabilityKind::Hardware,
            item_bytes: Some(4096),
            transactions: Some(2),
            footprint: Some(16_384),
            seed: 1,
            ..Trial::default()
        };
        let short = Pass::for_program(SWAPS).short_of(40);
        let looked = |trial: &Trial, pass| {
            let looked = trial.looked_at(pass, 1, 0, &|_, _| true);
            (
                looked.eased,
                looked.answer.map(drop).map_err(|why| why.to_string()),
            )
        };
        // Buckets of one record: 7 lines each, of 128.
        let (eased, answer) = looked(&trial(&[]), &short);
        let keys: Vec<&str> = eased.iter().map(|(key, _)| *key).collect();
        assert!(keys.contains(&"pages.crash_short"), "{eased:?}");
        assert!(answer.is_ok(), "{answer:?}");
        let (_, answer) = looked(&trial(&[("pages.crash_short", "4000")]), &short);
        assert!(
            answer.is_err_and(|why| why.contains("give")),
            "the user's own"
        );
        let mut tight = Pass::for_program(SWAPS);
        tight.pressure.long_transactions = false;
        let (eased, answer) = looked(&trial(&[]), &tight);
        assert!(
            answer.is_ok() && eased.iter().any(|(key, _)| *key == "log.records"),
            "{eased:?}"
        );
        let (eased, answer) = looked(&trial(&[("log.records", "1")]), &tight);
        assert!(eased.is_empty(), "{eased:?}");
        assert!(
            answer.is_err_and(|why| why.contains("log.records higher")),
            "the user's own"
        );
    }
}
