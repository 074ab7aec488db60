//! What is wrong at a cut, from what the last state has shown, and how it is counted.

use super::Checker;
use crate::crash::violation::{Kind, Violation};

impl Checker<'_> {
    /// What recovery has written must not be covered by a pad that covers something else.
    pub(super) fn secrets(&mut self, from: usize) {
        self.secrets.clear();
        let position = self.survivors.position();
        let sealed = &self.survivors.untimed.sealed();
        let Some(sealed) = sealed.get(from..).filter(|sealed| !sealed.is_empty()) else {
            return;
        };
        let violation = |kind, place, what| Violation {
            kind,
            position,
            recovery_cut: None,
            core: None,
            line: None,
            place: Some(place),
            what,
        };
        let pads = &self.history.pads;
        if let Some(reused) = sealed.iter().find(|s| pads.is_reused(s, position)) {
            let what = format!(
                "recovery encrypts place {} under counter {}, whose pad covers another content",
                reused.place.0, reused.counter
            );
            self.secrets
                .push(violation(Kind::PadReused, reused.place, what));
        }
        let first = &sealed[0];
        let within_reach = pads.within_reach(first.counter, position);
        if within_reach > 0 {
            let what = format!(
                "the counter goes on at {}, {within_reach} below what the array shows",
                first.counter
            );
            self.secrets
                .push(violation(Kind::PadWithinReach, first.place, what));
        }
    }

    /// Counts what is wrong at this cut.
    pub(super) fn judge(&mut self) {
        self.covered.cuts += 1;
        let position = self.survivors.position();
        let violation = |kind, core, line, what| Violation {
            kind,
            position,
            recovery_cut: None,
            core,
            line,
            place: None,
            what,
        };
        if let Some(line) = self.lost.first().copied() {
            let what = format!("line {line} reads as no accepted write of it");
            let core = self.history.core_of(line);
            self.tally
                .add(&violation(Kind::LineLost, core, Some(line), what));
        }
        for (core, known) in self.known.iter().enumerate() {
            let (visible, mut tell) = (known.visible, |kind, line, what| {
                self.tally.add(&violation(kind, Some(core), line, what));
            });
            if let Some((kind, fault)) = &known.fault {
                let line = self.history.programs[core].region().start + fault.at / 64;
                tell(*kind, Some(line), fault.what.clone());
                continue;
            }
            if visible < known.required {
                let what = format!(
                    "transaction {} had committed, and {visible} is the last visible",
                    known.required
                );
                tell(Kind::Lost, None, what);
            } else if visible > known.allowed {
                let what = format!(
                    "transaction {visible} is visible, and {} is the last that had begun to commit",
                    known.allowed
                );
                tell(Kind::Early, None, what);
            }
            if let Some(line) = known.wrong.first() {
                let what = format!(
                    "{} of its lines differ from what transaction {visible} left",
                    known.wrong.len()
                );
                tell(Kind::WrongLine, Some(*line), what);
            }
        }
        for secret in &self.secrets {
            let mut secret = secret.clone();
            secret.position = position;
            self.tally.add(&secret);
        }
    }
}
