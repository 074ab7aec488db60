//! What a run shows as a whole, without any cut: the order of array writes, pairs, and secrets.

use std::cell::Cell;

use crate::check::journal;
use crate::options::{Cuts, Options};

use crate::history::History;
use crate::panics::caught;
use crate::secrecy;
use crate::verdict::findings::Explored;
use crate::verdict::violation::{Kind, Violation};

/// What the run shows as a whole; if one cut is asked for, only what is first seen there.
pub fn whole_run(history: &History, options: &Options, explored: &mut Explored) {
    let masked = Cell::new(0);
    let audits: [&dyn Fn() -> Vec<Violation>; 3] = [
        &|| journal::array_writes(history),
        &|| journal::pairs(history, options.platform),
        &|| secrecy::within(history, &masked),
    ];
    for audit in audits {
        let found = caught(audit).unwrap_or_else(|what| {
            let at = history.positions() - 1;
            vec![Violation::new(Kind::RunEnded, at, what)]
        });
        for violation in found {
            match options.cuts {
                Cuts::One(position) if position != violation.position => {}
                _ => explored.tally.add(violation),
            }
        }
    }
    explored.covered.masked += masked.get();
}
