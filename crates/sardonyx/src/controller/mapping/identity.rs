//! No mapping: a line lies at the place of its own number.
//! Source: ESD's Baseline, and every design here that does not deduplicate.
//! Left out: everything.

use crate::controller::{Class, Encryption, Figures, Layer, Persist};
use crate::line::{Line, Logical, Place};
use crate::plan::{At, Plan, Step, Stored};

/// Every line at home.
pub struct Identity {
    below: Encryption,
}

impl Identity {
    /// Over `below`.
    pub fn new(below: Encryption) -> Identity {
        Identity { below }
    }
}

impl Layer for Identity {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        self.below.read(Place(a.0), class, after, plan)
    }

    fn write(
        &mut self,
        a: Logical,
        data: At<&Line>,
        gate: Step,
        class: Class,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        self.below.write(Place(a.0), data, gate, class, order, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(Place(a.0), after, plan)
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.below.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.below.recover(plan);
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        self.below.hint(Place(a.0), plan);
    }

    fn forget_figures(&mut self) {
        self.below.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        self.below.figures(out);
    }
}
