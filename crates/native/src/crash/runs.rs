//! The runs that a command about cuts comes to: each program over each design.
use pyo3::prelude::*;
use sardonyx_question::{Bytes, Names, Pairs, Seconds};
use sardonyx_workload as workload;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    CrashQuestion, ExhaustiveQuestion, TrialQuestion, adr, full_one_in, lines, sixty_four,
};
use crate::plan::check_designs;
use crate::sources::{Program, Source};
use crate::{bad, read};

/// What the commands about cuts are asked, each some of it.
#[derive(Deserialize)]
struct Asked {
    programs: Vec<String>,
    designs: Names,
    machine: String,
    set: Pairs,
    seed: u64,
    cores: Option<u64>,
    transactions: Option<u64>,
    transaction_size: Option<Bytes>,
    footprint: Option<Bytes>,
    mutant: Option<String>,
    #[serde(default)]
    no_log: bool,
    #[serde(default = "adr")]
    platform: String,
    #[serde(default = "lines")]
    tear: String,
    attack: Option<bool>,
    #[serde(default = "sixty_four")]
    recovery_cuts: u64,
    #[serde(default = "full_one_in")]
    full: u64,
    #[serde(default)]
    jobs: usize,
    /// A number of positions, `at:` one, or all.
    cuts: Option<String>,
    sharing: Option<String>,
    thorough: Option<Seconds>,
    #[serde(default)]
    until_exercised: bool,
    #[serde(default)]
    one_life: bool,
    most_states: Option<u64>,
    order: Option<String>,
}

/// The sharings whose orders are tried unless the user names one. A line of counters that all lines share puts their
/// writes in order, so each sharing has mistakes that the other hides.
const BOTH_ENDS: [&str; 2] = ["apart", "interleaved"];
/// The most transactions of a core whose orders are all tried.
const BOUND: u64 = 2;

impl Asked {
    /// Every program over every design.
    fn pairs(&self) -> PyResult<Vec<(String, String)>> {
        let designs = check_designs(self.designs.0.clone())?;
        let all = workload::all().iter().map(|known| known.name.to_owned());
        let programs = match &self.programs[..] {
            [one] if one == "all" => all.collect(),
            named => named.to_vec(),
        };
        let each = |program: &String| {
            let over = designs
                .iter()
                .map(|design| (program.clone(), design.clone()));
            over.collect::<Vec<_>>()
        };
        Ok(programs.iter().flat_map(each).collect())
    }

    /// One run of the pair, with sizes that are these unless the user names others.
    fn run(
        &self,
        (program, design): (String, String),
        sharing: &str,
        footprint: u64,
        transactions: u64,
    ) -> CrashQuestion {
        let cuts = self.cuts.as_deref();
        CrashQuestion {
            program: Source::Program(Program {
                name: program,
                item_bytes: self.transaction_size.map_or(64, |size| size.0),
                footprint: self.footprint.map_or(footprint, |size| size.0),
                transactions: self.transactions.unwrap_or(transactions),
                seed: self.seed,
                software_log: !self.no_log,
            }),
            design,
            machine: self.machine.clone(),
            overrides: self.set.0.clone(),
            cores: self.cores.unwrap_or(1),
            mutant: self.mutant.clone(),
            sharing: sharing.to_owned(),
            platform: self.platform.clone(),
            tear: self.tear.clone(),
            cuts: cuts.and_then(|cuts| cuts.parse().ok()),
            cut: cuts.and_then(|cuts| cuts.strip_prefix("at:")?.parse().ok()),
            recovery_cuts: self.recovery_cuts,
            full_one_in: self.full,
            threads: self.jobs,
            attack: self.attack,
            one_attack: None,
            script: None,
        }
    }

    fn trial(&self, (program, design): (String, String)) -> TrialQuestion {
        TrialQuestion {
            program,
            design,
            machine: self.machine.clone(),
            overrides: self.set.0.clone(),
            seed: self.seed,
            cores: self.cores.map(|cores| cores as usize),
            transactions: self.transactions,
            item_bytes: self.transaction_size.map(|size| size.0),
            footprint: self.footprint.map(|size| size.0),
            mutant: self.mutant.clone(),
            platform: self.platform.clone(),
            tear: self.tear.clone(),
            cuts: self.cuts.as_ref().and_then(|cuts| cuts.parse().ok()),
            recovery_cuts: self.recovery_cuts,
            full_one_in: self.full,
            threads: self.jobs,
            thorough_seconds: self.thorough.map(|time| time.0),
            until_exercised: self.until_exercised,
            software_log: !self.no_log,
            attack: self.attack,
        }
    }

    /// The small run of which all orders are tried.
    fn exhaustive(&self, pair: (String, String), sharing: &str) -> ExhaustiveQuestion {
        let order = self.order.as_deref();
        let order = order.map(|order| order.split(',').filter_map(|number| number.parse().ok()));
        ExhaustiveQuestion {
            run: CrashQuestion {
                recovery_cuts: u64::from(!self.one_life),
                ..self.run(pair, sharing, 0, BOUND)
            },
            most_states: self.most_states.unwrap_or_else(super::million),
            order: order.map(Iterator::collect),
        }
    }

    /// What a run is called.
    fn label(&self, (program, design): &(String, String)) -> String {
        let mutant = self.mutant.as_ref();
        let mutant = mutant.map_or(String::new(), |mutant| format!(", {mutant}"));
        format!("{program} {design}{mutant}")
    }
}

/// The runs of a command: of each a `label`, its `question`, and the bytes of `memory` that it needs, about.
#[pyfunction]
pub fn crash_runs(command: &str, asked_json: &str) -> PyResult<String> {
    let asked: Asked = read(asked_json)?;
    let mut runs: Vec<Value> = Vec::new();
    let sharings = match (command, asked.sharing.as_deref()) {
        (_, Some(sharing)) => vec![sharing],
        ("crash exhaustive", None) => BOTH_ENDS.to_vec(),
        (_, None) => BOTH_ENDS[..1].to_vec(),
    };
    for sharing in sharings {
        for pair in asked.pairs()? {
            let label = asked.label(&pair);
            let (question, memory) = match command {
                "crash run" => {
                    let trial = asked.trial(pair);
                    let memory = trial.clone().trial()?.memory().map_err(bad)?;
                    (json!(trial), memory)
                }
                "crash exhaustive" => (json!(asked.exhaustive(pair, sharing)), 0),
                _ => {
                    let run = asked.run(pair, sharing, 16_384, 200);
                    let memory = run.clone().question()?.memory().map_err(bad)?;
                    (json!(run), memory)
                }
            };
            runs.push(json!({"label": label, "question": question, "memory": memory}));
        }
    }
    Ok(Value::from(runs).to_string())
}
