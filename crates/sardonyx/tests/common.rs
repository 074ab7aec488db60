//! What most tests of the simulator begin with, a machine, and what many end with, a figure.

use sardonyx::config::Machine;
use sardonyx::machine::Outcome;

/// A preset, or a file, with these keys.
pub fn machine(name: &str, sets: &[(&str, &str)]) -> Machine {
    Machine::load(name, sets).unwrap_or_else(|error| panic!("{error}"))
}

pub fn figure(outcome: &Outcome, name: &str) -> f64 {
    let value = outcome.figures.named(name).number();
    value.unwrap_or_else(|| panic!("there is no {name}"))
}
