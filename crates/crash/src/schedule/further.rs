//! Rounds that follow a plan which lacks something: without the options that keep runs from it, with those that bring
//! runs to it, and under further programs.

use std::time::Instant;

use crate::history::Result;
use crate::options::Cuts;
use crate::schedule::found::PlanFound;
use crate::schedule::{MOST_ROUNDS, Trial};
use crate::verdict::coverage::{Lack, Need, USUAL_RECOVERY_CUTS};
use crate::verdict::passes::Further;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;

/// At most this many rounds follow.
const MOST_FURTHER: usize = 8;

fn note(further: &mut Further, trial: &Trial, lacks: &[Lack]) {
    further.rounds += 1;
    let mut add = |list: fn(&mut Further) -> &mut Vec<String>, one: &String| {
        if !list(further).contains(one) {
            list(further).push(one.clone());
        }
    };
    for lack in lacks {
        lack.kept_by
            .iter()
            .for_each(|it| add(|all| &mut all.without, it));
        lack.reached_by
            .iter()
            .for_each(|it| add(|all| &mut all.with, it));
    }
    add(|all| &mut all.programs, &trial.program);
}

impl Trial {
    /// Makes further rounds until nothing lacks, or there were enough of them; `None` if `progress` has ended it.
    pub(super) fn further(
        &self,
        (stack, machine): (&Stack, &Machine),
        needs: &[Need],
        mut found: PlanFound,
        (started, progress): (Instant, &(dyn Fn(u64, u64) -> bool + Sync)),
    ) -> Result<Option<(PlanFound, Further)>> {
        let bounds = self.bounds(stack, machine);
        let mut further = Further::default();
        let others = sardonyx_workload::all().iter().map(|program| program.name);
        let others = others.filter(|name| *name != self.program);
        let programs: Vec<&str> = std::iter::once(&*self.program).chain(others).collect();
        for (round, program) in (MOST_ROUNDS..)
            .zip(programs.iter().cycle())
            .take(MOST_FURTHER)
        {
            let all = found.all();
            let lacks = bounds.lacks(needs, &all.exercised, &found.reached(&all));
            if all.is_broken() || lacks.is_empty() {
                break;
            }
            let trial = Trial {
                program: (*program).to_owned(),
                ..self.towards(&lacks)
            };
            note(&mut further, &trial, &lacks);
            let machine = Machine::load(&trial.machine, &trial.overrides)?;
            let passes = trial.passes_over(stack, &machine);
            let first = round * passes.len();
            let numbers = first..first + passes.len();
            let made = trial.make(stack, &passes, numbers, found, (started, progress))?;
            let Some(made) = made else { return Ok(None) };
            found = made;
        }
        Ok(Some((found, further)))
    }

    /// The trial without what keeps it from `lacks`, and with what brings it there.
    fn towards(&self, lacks: &[Lack]) -> Trial {
        let mut trial = Trial {
            thorough: None,
            ..self.clone()
        };
        for (option, value) in lacks.iter().flat_map(|lack| pairs(&lack.kept_by)) {
            match option {
                "--set" => {
                    let is_other = |(key, set): &(String, String)| format!("{key}={set}") != value;
                    trial.overrides.retain(is_other);
                }
                "--transactions" => trial.transactions = None,
                "--cuts" => trial.options.cuts = Cuts::All,
                _ => trial.options.recovery_cuts = USUAL_RECOVERY_CUTS,
            }
        }
        for (_, pair) in lacks.iter().flat_map(|lack| pairs(&lack.reached_by)) {
            if let Some((key, value)) = pair.split_once('=') {
                trial.overrides.retain(|(other, _)| other != key);
                trial.overrides.push((key.to_owned(), value.to_owned()));
            }
        }
        trial
    }
}

fn pairs(options: &[String]) -> impl Iterator<Item = (&str, &str)> {
    options.iter().filter_map(|option| option.split_once(' '))
}
