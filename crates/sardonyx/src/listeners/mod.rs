//! Who listens to a run and writes down what happens: a timeline for Perfetto, a table of all requests.
//! They hear of a run through `plan::observe` and change nothing of it; a run that nobody listens to pays nothing.

pub mod perfetto;
pub mod requests;
pub mod timeline;
