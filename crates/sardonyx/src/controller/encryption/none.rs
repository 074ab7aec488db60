//! No encryption: lines go to the medium as they are.
//! Source: SCA's `no-encryption`.
//! Left out: counters, and so everything that a counter-atomic write demands.

use crate::controller::{Class, Figures, Layer, Persist};
use crate::line::{Line, Place};
use crate::plan::{At, Plan, Step, Stored};

/// Straight through.
pub struct NoEncryption;

impl Layer for NoEncryption {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        plan.read(a, after)
    }

    fn write(
        &mut self,
        a: Place,
        data: At<&Line>,
        gate: Step,
        _class: Class,
        _order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        plan.write(a, data, gate)
    }

    fn persist_metadata(&mut self, _a: Place, after: Step, _plan: &mut Plan) -> Stored {
        Stored::at(after)
    }

    fn flush(&mut self, _plan: &mut Plan) {}

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
    }

    fn forget_figures(&mut self) {}

    fn figures(&self, _out: &mut Figures) {}
}
