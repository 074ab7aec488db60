//! What a plan tells its observers: which mechanisms are used, what is logged, sealed and held on chip.

use std::ops::Range;

use super::journal::{Domain, Handled, Logged, MediumWrite, OnChip, Sealed};
use super::overlay::Moved;
use super::steps::Action;
use super::{Plan, Step, Stored};
use crate::line::{Class, LINE_BYTES, Line, Logical, Persist, Place};
use crate::mechanisms::{Mechanism, Value};

impl Plan {
    /// Whether an observer has to know of single writes.
    pub fn is_observed(&self) -> bool {
        self.observers.closely()
    }

    /// Tells observers that `mechanism` has been used once more.
    pub fn exercise(&mut self, mechanism: &'static Mechanism) {
        self.observers.tell(|one| one.used(mechanism));
    }

    /// Tells observers that `value` has been `amount`.
    pub fn reach(&mut self, value: Value, amount: u64) {
        self.observers.tell(|one| one.reached(value, amount));
    }

    /// Tells observers that the controller is asked to write `data` to `line`.
    pub fn handled(&mut self, line: Logical, data: &Line, class: Class, persist: Persist) {
        let handled = self.of_request(line, data, class, persist);
        self.observers.tell(|one| one.handled(handled.clone()));
    }

    /// Tells observers that the controller writes `data` to `line` again, which has come to it before.
    pub fn handled_again(&mut self, line: Logical, data: &Line, class: Class, persist: Persist) {
        let handled = self.of_request(line, data, class, persist);
        self.observers
            .tell(|one| one.handled_again(handled.clone()));
    }

    fn of_request(&self, line: Logical, data: &Line, class: Class, persist: Persist) -> Handled {
        Handled {
            line,
            data: *data,
            class,
            persist,
            order: self.steps.upcoming().0,
        }
    }

    /// Tells observers that the steps planned from `from` on wrote `plain` to a hardware log.
    pub fn logged(&mut self, from: Step, plain: &Line) {
        let (from, until, data) = (from.0, self.steps.upcoming().0, *plain);
        self.observers
            .tell(|one| one.logged(Logged { from, until, data }));
    }

    /// Tells the guard and observers that `stored` is encrypted under `counter`. `paired` is the counter's own write if
    /// the two are one group.
    pub fn sealed(&mut self, stored: Stored, place: Place, counter: u64, paired: Option<Stored>) {
        if let Some(guard) = &mut self.guard {
            guard.sealed(place, counter);
        }
        if Place(self.medium).is_lost() {
            return;
        }
        let sealed = Sealed {
            order: stored.accepted.0,
            place: Place(place.0 | self.medium),
            counter,
            paired_with: paired.map(|counter| counter.accepted.0),
        };
        self.observers.tell(|one| one.sealed(sealed));
    }

    /// Tells observers that the bytes `bytes` of an on-chip copy of the line at `place` are those of `line`. A platform
    /// that drains the copy's `domain` may do so after `ripe`.
    pub fn on_chip(
        &mut self,
        place: Place,
        line: &Line,
        bytes: Range<usize>,
        ripe: Step,
        domain: Domain,
    ) {
        self.change_on_chip(place, line, bytes, ripe, (domain, &[]));
    }

    /// Tells observers that reserve power leaves a copy of `line` where it is, because memory must not have it yet.
    pub fn lock(&mut self, line: Logical) {
        let now = self.now;
        self.observers.tell(|one| one.locked(now, line));
    }

    /// Tells observers that the registers whose place is `place` have the bytes `line` after `ripe`, and that the lines
    /// `unlocked` are locked no more. Whatever relies on that waits for the returned step, which takes no time.
    pub fn registers(
        &mut self,
        place: Place,
        line: &Line,
        ripe: Step,
        unlocked: &[Logical],
    ) -> Step {
        self.change_on_chip(
            place,
            line,
            0..LINE_BYTES,
            ripe,
            (Domain::Registers, unlocked),
        )
    }

    fn change_on_chip(
        &mut self,
        place: Place,
        line: &Line,
        bytes: Range<usize>,
        ripe: Step,
        (domain, unlocked): (Domain, &[Logical]),
    ) -> Step {
        if !self.observers.closely() || Place(self.medium).is_lost() {
            return ripe;
        }
        let after = [ripe, Step::PAST, Step::PAST];
        let step = self.steps.create(Action::Join, self.purpose, after, false);
        let write = MediumWrite {
            order: step.0,
            place: Place(place.0 | self.medium),
            at: Place(place.0 | self.medium),
            moved: Moved::default(),
            line: *line,
            words: (bytes.start / 8..=(bytes.end - 1) / 8).fold(0, |all, word| all | 1 << word),
            sideband: None,
            merged_into: None,
        };
        let change = OnChip {
            domain,
            write,
            bytes: bytes.fold(0, |all, byte| all | 1 << byte),
            unlocked: unlocked.to_vec(),
        };
        self.observers.tell(|one| one.changes(step, change.clone()));
        step
    }
}
