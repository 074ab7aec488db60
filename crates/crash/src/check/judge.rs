//! Decides what is wrong at a cut from what the last state has shown, and counts it.

use std::collections::BTreeSet;

use crate::check::Checker;
use crate::history::golden::Window;
use crate::pads::{self, Encrypted};
use crate::panics::caught;
use crate::violation::{Kind, Violation};
use sardonyx::line::Place;

impl Checker<'_> {
    /// Looks for pads that draining or recovery have used for another content, and for contents that they have left in
    /// clear.
    pub(crate) fn secrets(&mut self, full: bool) {
        self.secrets.clear();
        if !self.history.is_encrypted() {
            return;
        }
        let position = self.survivors.position();
        let untimed = &self.survivors.untimed;
        let written = pads::written(untimed, 0, self.history.held());
        let mut report = |kind, place, what| {
            self.secrets.push(Violation {
                place: Some(place),
                ..Violation::new(kind, position, what)
            });
        };
        let pads = &self.history.pads;
        let clash = |new: &Encrypted| Some((new.place, pads.clash(new, position)?));
        if let Some((place, what)) = written.iter().find_map(clash) {
            report(Kind::PadReused, place, format!("after the cut, {what}"));
        }
        if full && let Some((place, what)) = pads::pieces_after(pads, &written, position) {
            report(Kind::PadReused, place, format!("after the cut, {what}"));
        }
        let bare = |new: &Encrypted| Some((new.place, new.bare()?));
        if let Some((place, what)) = written.iter().find_map(bare) {
            report(Kind::Plaintext, place, format!("after the cut, {what}"));
        }
        let first = written
            .first()
            .and_then(|first| Some((first.place, first.counter?)));
        if let Some((place, next)) = first.filter(|_| self.history.has_global_counter()) {
            let within_reach = pads.within_reach(next, position);
            if within_reach > 0 {
                let what = format!(
                    "the counter goes on at {next}, {within_reach} below what the array shows"
                );
                report(Kind::PadWithinReach, place, what);
            }
        }
    }

    /// Counts what is wrong at this cut, and collects evidence for the first violation of each kind.
    pub(crate) fn judge(&mut self) {
        self.explored.covered.cuts += 1;
        for mut violation in self.wrong() {
            if !self.explored.tally.kinds.contains_key(&violation.kind) {
                let evidence = caught(|| self.evidence(&violation));
                self.settle();
                violation.evidence = evidence.unwrap_or_default();
            }
            self.explored.tally.add(violation);
        }
    }

    fn wrong(&self) -> Vec<Violation> {
        // A refused line ends the recovery, so there is nothing that programs would find without it.
        if let Some(place) = self.refused.first() {
            return vec![self.not_authentic(*place)];
        }
        let position = self.survivors.position();
        let secrets = self.secrets.iter().cloned();
        let secrets = secrets.map(|secret| Violation { position, ..secret });
        let mut found = Vec::new();
        if let Some(what) = &self.ended {
            let what = format!("a recovery ends early: {what}");
            found.push(Violation::new(Kind::RunEnded, position, what));
        }
        if let Some(line) = self.lost.first().copied() {
            found.push(Violation {
                core: self.history.core_of(line),
                line: Some(line),
                ..Violation::new(
                    Kind::LineLost,
                    position,
                    format!("line {line} reads as no accepted write of it"),
                )
            });
        }
        if !self.no_room {
            self.wrong_programs(&mut found);
        }
        found.extend(secrets);
        found
    }

    fn not_authentic(&self, place: Place) -> Violation {
        let (region, line) = self.history.layout().name_of(place);
        let places: BTreeSet<&Place> = self.refused.iter().collect();
        let what = format!(
            "recovery refuses line {line} of {region} as not authentic ({} places in all)",
            places.len()
        );
        Violation {
            place: Some(place),
            ..Violation::new(Kind::NotAuthentic, self.survivors.position(), what)
        }
    }

    fn wrong_programs(&self, found: &mut Vec<Violation>) {
        let position = self.survivors.position();
        let mut report = |kind, core, line, what| {
            found.push(Violation {
                core: Some(core),
                line,
                ..Violation::new(kind, position, what)
            });
        };
        let sound = self.cores.iter().all(|core| core.fault.is_none());
        if let Some((late, early, line)) = self.out_of_order().filter(|_| sound) {
            let what = format!(
                "transaction {} of core {} is there, and transaction {} of core {} is not, which changed line \
                 {line} before it",
                late.1, late.0, early.1, early.0
            );
            report(Kind::OutOfOrder, early.0, Some(line), what);
        }
        for (index, core) in self.cores.iter().enumerate() {
            let visible = core.visible;
            if let Some((kind, fault)) = &core.fault {
                let line = self.history.programs[index].region.at(fault.at / 64);
                report(*kind, index, Some(line), fault.what.clone());
                continue;
            }
            let Window { required, allowed } = core.window;
            if let Some(kind) = core.window.broken_by(visible) {
                let what = match kind {
                    Kind::Lost => format!(
                        "transaction {required} had committed, and {visible} is the last visible"
                    ),
                    _ => format!(
                        "transaction {visible} is visible, \
                         and {allowed} is the last that had begun to commit"
                    ),
                };
                report(kind, index, None, what);
            }
            if let Some(line) = core.wrong.first() {
                let wrong = core.wrong.len();
                let what = match self.history.joint {
                    None => {
                        format!("{wrong} of its lines differ from what transaction {visible} left")
                    }
                    Some(_) => {
                        let last = self.cores.iter().map(|core| core.visible.to_string());
                        format!(
                            "{wrong} of the lines that cores share differ from what the transactions up to {} of \
                             core 0, 1 .. left",
                            last.collect::<Vec<_>>().join(", ")
                        )
                    }
                };
                report(Kind::WrongLine, index, Some(*line), what);
            }
        }
    }
}
