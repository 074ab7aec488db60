//! Checks of a run as a whole, without any cut: the order of array writes, pairs, and secrets.

use std::cell::RefCell;

use crate::check::journal;
use crate::findings::ExploredCuts;
use crate::history::History;
use crate::options::{Cuts, Options};
use crate::panics::caught;
use crate::secrecy::{self, Looked, Widths};
use crate::violation::{Kind, Violation};

/// The findings on a run that need no cut.
pub struct WholeRun {
    found: Vec<Violation>,
    looked: Looked,
    widths: RefCell<Widths>,
}

/// Checks the run as a whole. If one cut is asked for, only what first shows at its position counts.
pub fn whole_run(history: &History, options: &Options) -> WholeRun {
    let (looked, widths) = (Looked::default(), RefCell::default());
    let mut all = Vec::new();
    let audits: [&dyn Fn() -> Vec<Violation>; 3] = [
        &|| journal::array_writes(history),
        &|| journal::pairs(history, options.platform),
        &|| secrecy::within(history, &looked, &widths),
    ];
    for audit in audits {
        let found = caught(audit).unwrap_or_else(|what| {
            let at = history.positions() - 1;
            vec![Violation::new(Kind::RunEnded, at, what)]
        });
        all.extend(found.into_iter().filter(|violation| match options.cuts {
            Cuts::One(position) => position == violation.position,
            _ => true,
        }));
    }
    WholeRun {
        found: all,
        looked,
        widths,
    }
}

impl WholeRun {
    pub fn add_to(self, explored: &mut ExploredCuts) {
        let looked = self.looked;
        for violation in self.found {
            explored.tally.add(violation);
        }
        explored.covered.masked += looked.masked.get();
        explored.covered.near_zero += looked.near_zero.get();
        explored.covered.unwritten += looked.unwritten.get();
        explored.widths.append(&self.widths.into_inner());
    }
}
