//! What lines held that a run has not written: a memory in use has a past.

use crate::settings::{Needs, keys, words};

/// What happened to the memory before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Nothing: the machine is new, and lines that the run has not written have no counter.
    Empty,
    /// Every line was written, so that it has an encryption counter. Nobody knows its content, unless a trace does.
    Written,
}

words!(Past { "empty" => Empty, "written" => Written });

keys! {
    PAST: Past = word("memory.past", "written"),
        Assumed("no paper says it; in a machine in use every line was written, if only to clear it"),
        "Lines that the run has not written: written before it, so that a read of them is decrypted; or empty, as in a \
         machine that is new";
}

/// The condition of keys about lines that were written before the run.
pub const WRITTEN: Needs = Needs {
    met: |settings| settings.get(&PAST) == Past::Written,
    switches: &["memory.past"],
    what: "memory.past is written",
};
