//! Checks of a run as a whole, without any cut: the order of array writes, pairs, and secrets.

use std::cell::RefCell;

use crate::check::journal;
use crate::findings::ExploredCuts;
use crate::history::History;
use crate::options::{Cuts, Options};
use crate::panics::caught;
use crate::platform::Platform;
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
    let looked = Looked {
        drains_caches: options.platform.drains_caches(),
        ..Looked::default()
    };
    let widths = RefCell::default();
    let mut all = Vec::new();
    let audits: [&dyn Fn() -> Vec<Violation>; 6] = [
        &|| journal::array_writes(history),
        &|| journal::pairs(history, options.platform),
        &|| journal::acknowledged(history, options.platform),
        &|| journal::marks(history),
        &|| secrecy::within(history, &looked, &widths),
        &|| live_controller(history, options.platform),
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

/// Compares what a cut is said to leave with the live controller.
fn live_controller(history: &History, platform: Platform) -> Vec<Violation> {
    if history.life > 1 {
        return Vec::new();
    }
    let undrained = platform
        .drains_caches()
        .then(|| history.undrained())
        .flatten();
    let undrained = undrained.map(|(line, count)| {
        let what = format!(
            "line {} reads wrongly when reserve power has drained all that the design says it drains, after {count} requests",
            line.0
        );
        Violation {
            line: Some(line.0),
            ..Violation::new(Kind::WrongLine, 0, what)
        }
    });
    let differs = history.register_differs().map(|(place, count)| {
        let what = format!(
            "the design's own register is not what follows from memory after {count} requests and an orderly shutdown"
        );
        Violation {
            place: Some(place),
            ..Violation::new(Kind::NotAuthentic, 0, what)
        }
    });
    undrained.into_iter().chain(differs).collect()
}

impl WholeRun {
    pub fn add_to(self, explored: &mut ExploredCuts) {
        let looked = self.looked;
        for violation in self.found {
            explored.tally.add(violation);
        }
        explored.covered.masked += looked.masked.get();
        explored.covered.near_zero += looked.near_zero.get();
        explored.covered.endured += looked.endured.get();
        explored.covered.unwritten += looked.unwritten.get();
        explored.widths.append(&self.widths.into_inner());
    }
}
