//! What reserve power drains of the processor's caches at a power cut after a run, and where to.

use crate::settings::{Needs, keys, words};

/// The lines of the processor's caches that reserve power drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainedLines {
    /// None: the platform is `adr`, or nobody asks.
    None,
    /// Those that are dirty at the end of the run.
    Dirty,
    /// All that are there, each with one word that memory does not have: for what a battery has to last.
    All,
}

words!(DrainedLines { "none" => None, "dirty" => Dirty, "all" => All });

/// The way of drained lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainedBy {
    /// Through the design.
    Controller,
    /// Into a vault.
    Vault,
}

words!(DrainedBy { "controller" => Controller, "vault" => Vault });

/// Whether anything is drained.
pub const DRAINS: Needs = Needs {
    met: |settings| settings.get(&LINES) != DrainedLines::None,
    switches: &["drain.lines"],
    what: "drain.lines is dirty or all",
};

keys! {
    LINES: DrainedLines = word("drain.lines", "none"),
        Source("a question, which is asked after the run"),
        "What reserve power drains of the processor's caches at a cut after the run: `none`, lines that are `dirty` then, \
         or `all` lines that are there, as if each were";
    BY: DrainedBy = word("drain.by", "controller"),
        Source("Horus (MICRO 2022) compares both"),
        "Whether drained lines go through the `controller`, or into a `vault`, encrypted under their places there, with \
         addresses and MACs beside them, eight to a line" needs DRAINS;
}
