//! What a verdict of `holds` is worth on one stack: faults are planted into it, and the first round of the same plan
//! says which of them it finds.

use std::time::Instant;

use serde::Serialize;

use crate::attacker::enumerated::enumerate;
use crate::history::{HistoryError, Result};
use crate::planted::{self, Fault};
use crate::schedule::Trial;
use crate::schedule::found::{PassShown, PlanFound};
use crate::violation::Kind;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;

/// A fault, and what the plan said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlantedFault {
    /// Its name: the design, `!` and this are a design with it.
    pub fault: &'static str,
    pub meaning: &'static str,
    /// The kind of violation that it shows first, or why no run could be made; `None` if it was missed.
    pub shown: Option<String>,
    /// The pass that showed it; `None` where no run is needed.
    pub pass: Option<usize>,
}

/// What came of all faults that fit a stack. The names of the fields are those of `sardonyx crash run --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SelfTest {
    /// What the design shows without a fault; then none is tried, since it would say nothing.
    pub itself: Option<String>,
    /// How many were caught, and how many could have been: those and the missed ones.
    pub found: u64,
    pub planted: u64,
    pub caught: Vec<PlantedFault>,
    /// Faults that changed what runs did, in no way that the plan objects to.
    pub missed: Vec<PlantedFault>,
    /// Faults after which all runs, cuts and recoveries came out as they do without: the stack needs nothing there.
    pub equivalent: Vec<PlantedFault>,
    /// Faults that never had an occasion to show.
    pub no_occasion: Vec<PlantedFault>,
}

/// What a round of a plan has covered, to tell whether a fault has changed anything.
fn covered(found: &PlanFound) -> String {
    let each = found.passes.iter().map(|pass: &PassShown| {
        let PassShown {
            positions,
            covered,
            exercised,
            reached,
            bytes,
            ..
        } = pass;
        format!("{positions} {covered:?} {exercised:?} {reached:?} {bytes}\n")
    });
    each.collect()
}

impl Trial {
    /// Plants each fault that fits into the design, and makes the first round of its plan until something shows.
    /// `progress` is told the faults tried and in all; if it answers false this returns `None`.
    ///
    /// # Errors
    /// As [`Trial::answer`], for the design without a fault.
    pub fn self_test(
        &self,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<SelfTest>> {
        planted::know();
        let stack = Stack::named(&self.design)?;
        let machine = Machine::load(&self.machine, &self.overrides)?;
        let faults = planted::fitting(&stack, &machine.settings);
        let sound = self.round(&self.design, &machine, &|_, _| {
            progress(0, faults.len() as u64)
        })?;
        let Some(sound) = sound else {
            return Ok(None);
        };
        if let Some((kind, _)) = self.shown(&sound, &stack, &machine) {
            let itself = Some(kind);
            return Ok(Some(SelfTest {
                itself,
                ..SelfTest::default()
            }));
        }
        let sound = covered(&sound);
        let mut tested = SelfTest::default();
        for (number, fault) in (0..).zip(&faults) {
            let goes_on = |_, _| progress(number, faults.len() as u64);
            let Some((planted, occasions, shown)) = self.planted(fault, &machine, &goes_on)? else {
                return Ok(None);
            };
            let list = match (&planted.shown, occasions) {
                (Some(_), _) => &mut tested.caught,
                (None, 0) => &mut tested.no_occasion,
                (None, _) if shown == sound => &mut tested.equivalent,
                (None, _) => &mut tested.missed,
            };
            list.push(planted);
        }
        tested.found = tested.caught.len() as u64;
        tested.planted = tested.found + tested.missed.len() as u64;
        Ok(Some(tested))
    }

    /// What the plan says of the design with `fault`, how often that had an occasion, and what the runs have covered.
    fn planted(
        &self,
        fault: &Fault,
        machine: &Machine,
        goes_on: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<(PlantedFault, u64, String)>> {
        let design = format!("{}!{}", self.design, fault.name);
        let stack = Stack::named(&design)?;
        planted::occasions();
        let (shown, covers) = match self.round(&design, machine, goes_on) {
            Ok(None) => return Ok(None),
            Ok(Some(found)) => (self.shown(&found, &stack, machine), covered(&found)),
            // The design without the fault has made these runs.
            Err(error @ (HistoryError::Run(_) | HistoryError::Exhausted(_))) => {
                (Some((error.to_string(), None)), String::new())
            }
            Err(error) => return Err(error), // such as too little memory, which says nothing of the fault
        };
        let (shown, pass) = shown.map_or((None, None), |(kind, pass)| (Some(kind), pass));
        let planted = PlantedFault {
            fault: fault.name,
            meaning: fault.meaning,
            shown,
            pass,
        };
        Ok(Some((planted, planted::occasions(), covers)))
    }

    /// What a round over `stack` shows that it must not, and in which run; else what the attacks show of which none is
    /// drawn.
    fn shown(
        &self,
        found: &PlanFound,
        stack: &Stack,
        machine: &Machine,
    ) -> Option<(String, Option<usize>)> {
        let drawn = found.first(stack.integrity.promises);
        drawn.or_else(|| {
            self.options.attacks?;
            let rows = enumerate(stack, &machine.settings);
            let unkept = rows.iter().any(|row| row.is_unkept());
            unkept.then(|| (Kind::Undetected.name().to_owned(), None))
        })
    }

    /// The first round of the plan over `design`, up to the first run that shows something.
    fn round(
        &self,
        design: &str,
        machine: &Machine,
        goes_on: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<PlanFound>> {
        let trial = Trial {
            design: design.to_owned(),
            thorough: None,
            only_first: true,
            ..self.clone()
        };
        let stack = Stack::named(design)?;
        let passes = trial.passes_over(&stack, machine);
        let found = PlanFound {
            passes: vec![PassShown::default(); passes.len()],
            ..PlanFound::default()
        };
        let numbers = 0..passes.len();
        trial.make(&stack, &passes, numbers, found, (Instant::now(), goes_on))
    }
}
