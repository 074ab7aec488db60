//! Faults that are planted into a stack at the seams between its layers: `sca!NAME` is the design `sca` with one. Left
//! out: the faults themselves, which whoever tests a checker brings.

use std::sync::OnceLock;

use super::layers::PowerFail;
use super::{Encryption, Top};
use crate::medium::layout::Layout;
use crate::names::did_you_mean;
use crate::plan::guard::Guard;

/// A fault that is planted into a stack, to learn whether a checker finds it there. Each method takes what is right and
/// gives what is wrong; by default that is the same.
pub trait Plant: Sync {
    /// Its name: that of a design, `!` and this name are the name of the faulty design.
    fn name(&self) -> &'static str;

    /// The encryption with the fault.
    fn policy(&self, right: Encryption) -> Encryption {
        right
    }

    /// The mapping with the fault.
    fn mapping(&self, right: Top) -> Top {
        right
    }

    /// The logging with the fault.
    fn logging(&self, right: Top) -> Top {
        right
    }

    /// The guard with the fault, over a finished layout.
    fn guard(&self, right: Box<dyn Guard>, _layout: &Layout) -> Box<dyn Guard> {
        right
    }

    /// What works on reserve power, with the fault.
    fn power_fail(&self, right: Box<dyn PowerFail>, _layout: &Layout) -> Box<dyn PowerFail> {
        right
    }
}

static PLANTS: OnceLock<Vec<&'static dyn Plant>> = OnceLock::new();

/// Makes faults known by their names, the first time that it is called.
pub fn know_plants(all: impl Iterator<Item = &'static dyn Plant>) {
    PLANTS.get_or_init(|| all.collect());
}

/// What to name instead of `fault`; `None` if there is such a fault.
pub(super) fn unknown(fault: &str) -> Option<String> {
    let known = PLANTS.get().into_iter().flatten();
    let names: Vec<&str> = known.map(|plant| plant.name()).collect();
    let meant = did_you_mean(fault, &names);
    let names_all = names.join(", ");
    (!names.contains(&fault)).then(|| {
        format!("{meant}after the ! stands a fault that is planted; the faults are {names_all}")
    })
}

struct Sound;
impl Plant for Sound {
    fn name(&self) -> &'static str {
        ""
    }
}

/// The design and the fault that `name` names.
pub(super) fn split(name: &str) -> Option<(&str, &'static dyn Plant)> {
    let Some((design, fault)) = name.split_once('!') else {
        return Some((name, &Sound));
    };
    let mut known = PLANTS.get().into_iter().flatten();
    known
        .find(|plant| plant.name() == fault)
        .map(|plant| (design, *plant))
}
