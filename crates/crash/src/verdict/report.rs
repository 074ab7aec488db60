//! The results of exploring, in the same form for programs and for people. The names of the fields are those of
//! `sardonyx crash run --json`.

use serde::Serialize;

use crate::attacker::attack;
use crate::attacker::outcome::Attacked;
use crate::history::run::Run;
use crate::history::{History, HistoryError, Result};
use crate::one_run::OneRun;
use crate::options::Attacks;
use crate::stages::{Shown, Stage, stages};
use crate::verdict::attacks::AttackReport;
use crate::verdict::coverage::{Bounds, CacheSizes, Lack, Need, by_name, exercised, reached};
use crate::verdict::told::Told;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::layers::{Guarantee, Refuses};
use sardonyx::mechanisms::{Exercised, Reached, Value};

impl OneRun {
    /// Runs the programs, cuts the power, and returns what `sardonyx crash once --json` has of it.
    ///
    /// # Errors
    /// As [`OneRun::look`].
    pub fn answer(&self, progress: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Option<Once>> {
        let started = std::time::Instant::now();
        let Some((history, explored)) = self.look(progress)? else {
            return Ok(None);
        };
        let (covered, tally) = (explored.covered, &explored.tally);
        let stack = Stack::named(&self.design)?;
        let bounds = self.bounds(&stack);
        let needs = bounds.needs();
        let exercised = exercised(&history, &explored);
        let mut reached = reached(&history, &explored);
        let sizes = CacheSizes::from_stack(&stack, &self.machine);
        reached.reach(Value::CacheSizes, sizes.count());
        let attacks = self.options.attacks;
        let attacked = attacks.map(|attacks| attack(&history, &self.options, attacks));
        if let Some(attacked) = &attacked {
            reached.reach(Value::Attacks, attacked.fewest());
        }
        let lacks = bounds.lacks(&needs, &exercised, &reached);
        let broken = !tally.kinds.is_empty();
        let verdict = Verdict::judge(broken, history.guarantee, lacks.is_empty());
        let promises = stack.integrity.promises;
        let verdict = match &attacked {
            Some(attacked) => verdict.under_attack(attacked, promises, attacks),
            None => verdict,
        };
        let violations = tally.kinds.values();
        let violations =
            violations.map(|(count, first)| Told::from_violation(&history, *count, first));
        let undetected = attacked.iter().flat_map(|found| found.violations(promises));
        let violations = violations.chain(undetected);
        Ok(Some(Once {
            run: Run::recorded(&history),
            platform: self.options.platform.name(),
            tear: self.options.tear.name(),
            guarantee: history.guarantee.name(),
            positions: history.positions(),
            cuts: covered.cuts,
            distinct_states: covered.states,
            checked_in_full: covered.full,
            recovery_cuts: covered.recovery_cuts,
            later_lives: covered.lived,
            later_lives_in_full: covered.lived_full,
            lost_cuts: tally.lost.count,
            secret_cuts: tally.secret.count,
            exercised,
            reached,
            required: needs.into_iter().map(Need::name).collect(),
            not_exercised: lacks.iter().map(|lack| lack.what).collect(),
            lacks,
            verdict,
            fails: verdict.fails(),
            widths_not_judged: explored.widths.not_judged(),
            violations: violations.collect(),
            attacks: attacked.as_ref().map(|found| found.report(promises)),
            seconds: started.elapsed().as_secs_f64(),
        }))
    }

    fn bounds<'a>(&'a self, stack: &'a Stack) -> Bounds<'a> {
        Bounds {
            stack,
            machine: &self.machine,
            durability: self.specs[0].durability,
            options: self.options,
            cores: Some(self.specs.len()),
            transactions: Some(self.specs[0].transactions),
            overrides: &[],
            once: true,
        }
    }

    /// Runs the programs, cuts the power everywhere, and counts what each stage of a transaction has shown; `None` if
    /// `progress` has ended it. Which cuts and later lives [`Options`] ask for does not matter.
    ///
    /// # Errors
    /// The design or a program does not exist.
    pub fn stages(&self, progress: &dyn Fn(u64, u64) -> bool) -> Result<Option<Stages>> {
        let program = &self.specs[0];
        if program.is_shared() {
            return Err(HistoryError::Cuts(format!(
                "crash stages: counts those of cores with a program each, and all cores have {} together; name \
                 another program",
                program.name
            )));
        }
        let history = History::record(&self.machine, &self.design, &self.specs, self.seed)?;
        let cuts = history.positions();
        let platform = self.options.platform;
        let Some(shown) = stages(&history, platform, &|done| progress(done, cuts)) else {
            return Ok(None);
        };
        let each = Stage::ALL.into_iter().zip(shown);
        let each = each.map(|(stage, shown)| OfStage {
            stage: stage.name(),
            shown,
        });
        Ok(Some(Stages {
            run: Run::recorded(&history),
            platform: platform.name(),
            cuts,
            stages: each.collect(),
        }))
    }
}

/// The verdict of power cuts on a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No violation in what was tried.
    Holds,
    /// Violations of a design that promises nothing.
    Caught,
    /// Violations of what the design promises.
    Broken,
    /// No violation, but too little of a mechanism of the design, or of what was run and cut.
    #[serde(rename = "not exercised")]
    NotExercised,
}

impl Verdict {
    /// The verdict on a design that promises `guarantee`; `exercised` says that everything was exercised that a verdict
    /// rests on.
    pub fn judge(broken: bool, guarantee: Guarantee, exercised: bool) -> Verdict {
        match (broken, guarantee) {
            (true, Guarantee::Nothing) => Verdict::Caught,
            (true, _) => Verdict::Broken,
            (false, _) if exercised => Verdict::Holds,
            (false, _) => Verdict::NotExercised,
        }
    }

    /// The verdict over an integrity that promises `promises`, after attacks: an unnoticed attack that it promises to
    /// notice makes it broken. If one attack was made again the verdict says only whether it was noticed.
    #[must_use]
    pub fn under_attack(
        self,
        attacked: &Attacked,
        promises: Refuses,
        asked: Option<Attacks>,
    ) -> Verdict {
        match self {
            _ if attacked.unkept(promises) > 0 => Verdict::Broken,
            Verdict::NotExercised
                if asked.is_some_and(|asked| asked.one.is_some()) && attacked.undetected() > 0 =>
            {
                Verdict::Caught
            }
            verdict => verdict,
        }
    }

    pub fn fails(self) -> bool {
        matches!(self, Verdict::Broken | Verdict::NotExercised)
    }
}

/// One run and its cuts: what `sardonyx crash once --json` has.
#[derive(Clone, Debug, Serialize)]
pub struct Once {
    #[serde(flatten)]
    pub run: Run,
    pub platform: &'static str,
    pub tear: &'static str,
    pub guarantee: &'static str,
    /// Positions at which the power can be cut.
    pub positions: u64,
    pub cuts: u64,
    pub distinct_states: u64,
    pub checked_in_full: u64,
    pub recovery_cuts: u64,
    /// Lives that followed a cut, and those at whose end everything was checked; of the others, what they changed.
    pub later_lives: u64,
    pub later_lives_in_full: u64,
    pub lost_cuts: u64,
    pub secret_cuts: u64,
    #[serde(serialize_with = "by_name")]
    pub exercised: Exercised,
    pub reached: Reached,
    /// Mechanisms and values that the verdict has to rest on.
    pub required: Vec<&'static str>,
    /// The mechanisms and values of `required` of which there was too little.
    pub not_exercised: Vec<&'static str>,
    /// The amounts behind `not_exercised`: how much there was, and how much is needed.
    pub lacks: Vec<Lack>,
    pub verdict: Verdict,
    pub fails: bool,
    /// Regions that an integrity writes and whose words have changed too rarely to judge how wide they are.
    pub widths_not_judged: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attacks: Option<AttackReport>,
    pub violations: Vec<Told>,
    pub seconds: f64,
}

/// The cuts of one run by the stages of a transaction.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    #[serde(flatten)]
    pub run: Run,
    pub platform: &'static str,
    pub cuts: u64,
    pub stages: Vec<OfStage>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OfStage {
    pub stage: &'static str,
    #[serde(flatten)]
    pub shown: Shown,
}
