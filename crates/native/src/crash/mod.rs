//! The crash explorer for Python: one design, one program, all its cuts. Answers in JSON.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, Stack};
use std::time::Duration;

use sardonyx::mechanisms;
use sardonyx::plan::script::Script;
use sardonyx_crash::{
    Attack, Attacks, Cuts, Exhaustive, HistoryError, OneAttack, OneRun, Options, Platform, Tear,
    Trial, When,
};
use sardonyx_workload::{self as workload, Contents, DurabilityKind, Mutant, ProgramSpec, Sharing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::layers::{settled, threads};
use crate::progress::Progress;
use crate::sources::{Source, durability, one, yes};
use crate::{bad, read};

mod runs;
pub use runs::crash_runs;

fn apart() -> String {
    "apart".to_owned()
}

fn adr() -> String {
    "adr".to_owned()
}

fn lines() -> String {
    "lines".to_owned()
}

fn sixty_four() -> u64 {
    64
}

fn full_one_in() -> u64 {
    Options::default().full_one_in
}

/// One run of a program on each core under a design, its power cut at every position, at `cuts` of them, or at the
/// one that is `cut`. `sharing` says who shares lines of counters. One recovery in `recovery_cuts` is cut as well;
/// one cut in `full_one_in` is looked at in full. `threads` of 0 is one a processor. With `attack` an attacker changes
/// the medium as well; if it is null, where the design has integrity. `one_attack` is that attack alone.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashQuestion {
    program: Source,
    design: String,
    machine: String,
    #[serde(default)]
    overrides: Vec<(String, String)>,
    #[serde(default = "one")]
    cores: u64,
    mutant: Option<String>,
    #[serde(default = "apart")]
    sharing: String,
    #[serde(default = "adr")]
    platform: String,
    #[serde(default = "lines")]
    tear: String,
    cuts: Option<u64>,
    cut: Option<u64>,
    #[serde(default = "sixty_four")]
    recovery_cuts: u64,
    #[serde(default = "full_one_in")]
    full_one_in: u64,
    #[serde(default)]
    threads: usize,
    attack: Option<bool>,
    one_attack: Option<AttackAsked>,
    script: Option<ScriptQuestion>,
}

/// One attack of those that a run is attacked with: at cut number `look` of `looks`, of the `each` of its `kind` there
/// that with this `number`; `when` is off, recovering or running.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttackAsked {
    looks: u64,
    each: u64,
    look: u64,
    when: String,
    kind: String,
    number: u64,
}

impl AttackAsked {
    fn attacks(&self) -> PyResult<Attacks> {
        let when = When::ALL.into_iter().find(|when| when.name() == self.when);
        let kind = Attack::ALL
            .into_iter()
            .find(|kind| kind.name() == self.kind);
        let (Some(when), Some(kind)) = (when, kind) else {
            return Err(bad(format!(
                "there is no attack {} {}; name a replay file that sardonyx crash has written",
                self.kind, self.when
            )));
        };
        if !(1..=self.looks.min(MOST_LOOKS)).contains(&self.look) || self.number >= self.each {
            return Err(bad(format!(
                "attack {} at look {}: there are {} at each of {} looks; name a replay file that sardonyx crash \
                 has written",
                self.number, self.look, self.each, self.looks
            )));
        }
        Ok(Attacks {
            looks: self.looks,
            each: self.each,
            one: Some(OneAttack {
                look: self.look,
                when,
                kind,
                number: self.number,
            }),
        })
    }
}

/// An attacker looks at most this often, because he keeps what the medium held at each look.
const MOST_LOOKS: u64 = 10_000;

/// The attacks on runs of `design`: if the user says nothing, those on its integrity, if it has one.
fn attacks(design: &str, wanted: Option<bool>) -> PyResult<Option<Attacks>> {
    Ok(match wanted {
        Some(true) => Some(Attacks::USUAL),
        Some(false) => None,
        None => Attacks::unless_said(&Stack::named(design).map_err(bad)?),
    })
}

/// What the machine does of its own accord in a run, in place of what the seed draws: three numbers each. Evictions: core,
/// number of its operation, line that goes after it. Delays: place, number of the write of it, nanoseconds for which it is
/// held back. Pauses: core, number of its operation, instructions before it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptQuestion {
    cached_lines: u64,
    evictions: Vec<(u64, u64, u64)>,
    delays: Vec<(u64, u64, u64)>,
    pauses: Vec<(u64, u64, u64)>,
}

impl ScriptQuestion {
    fn script(self) -> PyResult<Script> {
        if !(1..=1 << 20).contains(&self.cached_lines) {
            return Err(bad("cached_lines of a script: give 1 to 1048576"));
        }
        let of = |each: Vec<(u64, u64, u64)>| each.into_iter().map(|(a, b, c)| [a, b, c]).collect();
        Ok(Script {
            cached_lines: self.cached_lines,
            evictions: of(self.evictions),
            delays: of(self.delays),
            pauses: of(self.pauses),
        })
    }
}

impl CrashQuestion {
    fn question(self) -> PyResult<OneRun> {
        let Source::Program(program) = self.program else {
            return Err(bad("only a program's power can be cut"));
        };
        let own = program.software_log;
        let durability = planted(&self.design, self.mutant.as_deref(), own)?;
        let platform = platform_named(&self.platform)?;
        let sharing = Sharing::named(&self.sharing, self.cores as usize);
        let sharing = sharing.ok_or_else(|| bad("--sharing: give apart, packed or interleaved"))?;
        let seed = program.seed;
        let attacks = match &self.one_attack {
            Some(one) => Some(one.attacks()?),
            None if self.cut.is_some() => None,
            None => attacks(&self.design, self.attack)?,
        };
        let threads = threads(&self.design, self.threads);
        let spec = |core| ProgramSpec {
            seed: seed.wrapping_mul(1024).wrapping_add(core),
            sharing,
            contents: Contents::Drawn,
            ..program.spec(durability)
        };
        Ok(OneRun {
            machine: Machine::load(&self.machine, &self.overrides).map_err(bad)?,
            specs: (0..self.cores.max(1)).map(spec).collect(),
            design: self.design,
            seed,
            options: Options {
                platform,
                cuts: match (self.cut, self.cuts) {
                    (Some(position), _) => Cuts::One(position),
                    (None, Some(count)) => Cuts::Sample(count),
                    (None, None) => Cuts::All,
                },
                recovery_cuts: self.recovery_cuts,
                full_one_in: self.full_one_in,
                full_life_in: Options::default().full_life_in,
                tear: tear_named(&self.tear)?,
                attacks,
                threads,
            },
            script: self.script.map(ScriptQuestion::script).transpose()?,
        })
    }
}

/// All orders in which the writes of a run can be accepted, each cut at every position; after each cut all orders of
/// the life that follows, unless the run's `recovery_cuts` is 0. It gives up beyond `most_states` states. With
/// `order`, that order alone: which of the writes that can go goes first, choice by choice. A footprint of 0 is the
/// smallest that the program has.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExhaustiveQuestion {
    run: CrashQuestion,
    #[serde(default = "million")]
    most_states: u64,
    order: Option<Vec<u16>>,
}

fn million() -> u64 {
    1_000_000
}

/// A design under a program, tried by the explorer's plan of passes. Sizes that are null are each pass's own. Without
/// `software_log` the program keeps no undo log, even where the hardware keeps none. With `thorough_seconds` the plan
/// goes on with further seeds for so long, with `until_exercised` as its lacks ask for. With `attack` an attacker changes the medium as well; if it is null, where the
/// design has integrity.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialQuestion {
    program: String,
    design: String,
    machine: String,
    #[serde(default)]
    overrides: Vec<(String, String)>,
    #[serde(default = "one")]
    seed: u64,
    cores: Option<usize>,
    transactions: Option<u64>,
    item_bytes: Option<u64>,
    footprint: Option<u64>,
    mutant: Option<String>,
    #[serde(default = "adr")]
    platform: String,
    #[serde(default = "lines")]
    tear: String,
    cuts: Option<u64>,
    #[serde(default = "sixty_four")]
    recovery_cuts: u64,
    #[serde(default = "full_one_in")]
    full_one_in: u64,
    #[serde(default)]
    threads: usize,
    thorough_seconds: Option<f64>,
    #[serde(default)]
    until_exercised: bool,
    #[serde(default = "yes")]
    software_log: bool,
    attack: Option<bool>,
}

impl TrialQuestion {
    fn trial(self) -> PyResult<Trial> {
        let attacks = attacks(&self.design, self.attack)?;
        let threads = threads(&self.design, self.threads);
        Ok(Trial {
            durability: planted(&self.design, self.mutant.as_deref(), self.software_log)?,
            machine: self.machine,
            overrides: self.overrides,
            design: self.design,
            program: self.program,
            seed: self.seed,
            cores: self.cores,
            transactions: self.transactions,
            item_bytes: self.item_bytes,
            footprint: self.footprint,
            options: Options {
                platform: platform_named(&self.platform)?,
                cuts: self.cuts.map_or(Cuts::All, Cuts::Sample),
                recovery_cuts: self.recovery_cuts,
                full_one_in: self.full_one_in,
                full_life_in: Options::default().full_life_in,
                tear: tear_named(&self.tear)?,
                attacks,
                threads,
            },
            thorough: self.thorough_seconds.map(Duration::from_secs_f64),
            until_exercised: self.until_exercised,
            shorten: true,
            only_first: false,
        })
    }
}

fn platform_named(name: &str) -> PyResult<Platform> {
    let mut platforms = Platform::ALL.into_iter();
    let platform = platforms.find(|platform| platform.name() == name);
    platform.ok_or_else(|| {
        let known: Vec<&str> = Platform::ALL.iter().map(|known| known.name()).collect();
        bad(format!(
            "--platform {name}: give one of {}",
            known.join(", ")
        ))
    })
}

fn tear_named(name: &str) -> PyResult<Tear> {
    let tear = Tear::ALL.into_iter().find(|tear| tear.name() == name);
    tear.ok_or_else(|| bad("--tear: give lines or words"))
}

/// The durability of [`durability`], with `mutant` in the program's own log.
fn planted(design: &str, mutant: Option<&str>, software_log: bool) -> PyResult<DurabilityKind> {
    let mutant = mutant.map(mutant_named).transpose()?;
    match (durability(design, software_log)?, mutant) {
        (DurabilityKind::Hardware, Some(mutant)) => Err(bad(format!(
            "--mutant {}: is a mistake of a program's own log, and {design} keeps the log in hardware; \
             leave the mutant or the design out",
            mutant.name()
        ))),
        (DurabilityKind::Hardware, None) => Ok(DurabilityKind::Hardware),
        (DurabilityKind::SoftwareUndo { .. }, mutant) => {
            Ok(DurabilityKind::SoftwareUndo { mutant })
        }
    }
}

fn mutant_named(name: &str) -> PyResult<Mutant> {
    Mutant::named(name).ok_or_else(|| {
        let all = [
            Mutant::ALL,
            Mutant::LOCKING,
            Mutant::EQUIVALENT,
            Mutant::DRAINED,
        ];
        let all = all.into_iter().flatten();
        let names: Vec<&str> = all.map(|mutant| mutant.name()).collect();
        let names = names.join(", ");
        bad(format!("--mutant {name}: there is none; they are {names}"))
    })
}

/// Cuts the power of one run of a program on a design.
#[pyfunction]
pub fn crash(py: Python<'_>, question_json: &str, progress: Option<&Progress>) -> PyResult<String> {
    let question = read::<CrashQuestion>(question_json)?.question()?;
    told(py, &question.design, progress, |tell| question.answer(tell))
}

/// An answer in JSON, unless the user ends the run.
fn told<T: Serialize + Send>(
    py: Python<'_>,
    design: &str,
    progress: Option<&Progress>,
    answer: impl FnOnce(&(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Option<T>, HistoryError> + Send,
) -> PyResult<String> {
    let tell = Progress::listener(progress);
    let answer = settled(design, py.detach(|| answer(&tell)).map_err(bad))?;
    let answer = answer.ok_or_else(|| bad("cancelled"))?;
    serde_json::to_string(&answer).map_err(bad)
}

/// Bytes of memory that the largest run of a trial needs, about.
#[pyfunction]
pub fn crash_trial_memory(question_json: &str) -> PyResult<u64> {
    read::<TrialQuestion>(question_json)?
        .trial()?
        .memory()
        .map_err(bad)
}

/// The same of one run.
#[pyfunction]
pub fn crash_memory(question_json: &str) -> PyResult<u64> {
    read::<CrashQuestion>(question_json)?
        .question()?
        .memory()
        .map_err(bad)
}

/// Tries a design under a program by a plan of passes.
#[pyfunction]
pub fn crash_trial(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let trial = read::<TrialQuestion>(question_json)?.trial()?;
    told(py, &trial.design, progress, |tell| trial.answer(tell))
}

/// Plants faults into the design of a trial, and says which of them its plan finds.
#[pyfunction]
pub fn crash_self_test(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let trial = read::<TrialQuestion>(question_json)?.trial()?;
    told(py, &trial.design, progress, |tell| trial.self_test(tell))
}

/// Tries all orders in which the writes of a run can be accepted.
#[pyfunction]
pub fn crash_exhaustive(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question = read::<ExhaustiveQuestion>(question_json)?;
    let mut run = question.run.question()?;
    for spec in run.specs.iter_mut().filter(|spec| spec.footprint == 0) {
        spec.footprint = spec.least_bytes();
    }
    let asked = Exhaustive {
        run,
        most_states: question.most_states,
        order: question.order,
    };
    told(py, &asked.run.design, progress, |tell| asked.answer(tell))
}

/// The same run and cuts, by the stages of a transaction: what each has shown of the two copies of
/// the data (SCA, HPCA 2018, Table 1).
#[pyfunction]
pub fn crash_stages(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question = read::<CrashQuestion>(question_json)?.question()?;
    if question.specs[0].durability == DurabilityKind::Hardware {
        return Err(bad(format!(
            "crash stages: are those of a program's own log, and {} keeps the log in hardware; \
             leave the design out",
            question.design
        )));
    }
    told(py, &question.design, progress, |tell| question.stages(tell))
}

/// Every program: `name` and `line`; every mutant, be it a mistake or an equivalent one: `name` and `meaning`;
/// and the amounts of which a verdict says how much was `exercised` and how far runs have `reached`, by name.
#[pyfunction]
pub fn programs() -> String {
    let programs = workload::all();
    let programs = programs
        .iter()
        .map(|p| json!({"name": p.name, "line": p.line}));
    let each = |all: &[Mutant]| {
        let of = |m: &Mutant| json!({"name": m.name(), "meaning": m.meaning()});
        all.iter().map(of).collect::<Vec<Value>>()
    };
    json!({
        "programs": programs.collect::<Vec<Value>>(),
        "mutants": each(&[Mutant::ALL, Mutant::LOCKING].concat()),
        "equivalent_mutants": each(Mutant::EQUIVALENT),
        "drained_mutants": each(Mutant::DRAINED),
        "exercised": sardonyx_crash::mechanisms().into_iter().map(|one| one.name).collect::<Vec<_>>(),
        "reached": mechanisms::Value::ALL.map(mechanisms::Value::name),
    })
    .to_string()
}

/// What a design promises of a power cut; an error if there is none of that name.
#[pyfunction]
pub fn guarantee(design: &str) -> PyResult<&'static str> {
    Ok(designs::guarantee(design).map_err(bad)?.name())
}
