//! The interface between the layers and the medium. Everything that a layer, a cache of its metadata, a log or a
//! recovery reads or writes goes through the plan, and so past the guard if a stack has one: data, counters, tables and
//! logs alike. A guard reads and writes the medium by the same plan, which then has no guard. Left out: the guards
//! themselves (integrity).

use super::storey::Storey;
use super::{At, Fetched, Plan, Step, Written};
use crate::line::Place;

/// A layer between all other layers and the medium.
pub trait Guard: Storey {
    /// Checks the line at `place`, which was asked for after `after` and read from the medium (`None` if it was never
    /// written). Returns what the layers get, and when. A line that is not what was last written is refused
    /// ([`Plan::refuse`]).
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched;

    /// Checks the line read at `place`, whose encryption counter is `counter`, before it is decrypted. Returns what the
    /// encryption gets, and when. A guard that takes encryption counters for versions verifies the line here.
    fn opened(
        &mut self,
        _place: Place,
        got: Fetched,
        _counter: At<u64>,
        _plan: &mut Plan,
    ) -> Fetched {
        got
    }

    /// Hears that the line at `place` is about to be written. Returns the step before which it is not accepted, which
    /// may be a promise of the guard's.
    fn before_write(&mut self, _place: Place, _plan: &mut Plan) -> Step {
        Step::PAST
    }

    /// Hears that the request's last write to `place` is encrypted under `counter`.
    fn sealed(&mut self, _place: Place, _counter: u64) {}

    /// Hears that the line at `place` is written. Writes of the guard that must not be accepted without the line join
    /// its group ([`Plan::group`]). Returns the step after which all of it is in the array.
    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step;

    /// Whether the line at `place`, of which some words are about to be written, is what was last written there,
    /// according to what is on chip or what the write itself will verify. Otherwise the words that stay would get a new
    /// MAC, whoever has written them. Takes no time (*assumed*: the line is where its words are combined).
    fn holds(&self, _place: Place, _plan: &Plan) -> bool {
        true
    }

    /// Hears that the layers have handled a request, whose writes are all known and in their groups.
    fn finish(&mut self, _plan: &mut Plan) {}
}
