//! A log that changes its form: old content is logged before a line is changed, new content only when its transaction
//! commits, only the newest of it, and only if memory does not have it by then; and of both only what counts.
//! Source: MorLog (ISCA 2020), the abstract and a public summary: eager undo and lazy redo, redo data that are dropped
//! when their line is written back, clean parts of log data that are left out. Otherwise as [`super::fwb`].
//!
//! Left out: the states of lines in L1 and the log buffers' lengths (every line may wait for its commit), the commit
//! that does not wait for redo data, and which bits of what is left are compressed further. *Assumed*: parts are words;
//! old content is whole, because it is logged before anybody knows what changes, and how long its log is must not tell
//! what a line held.

use super::fwb::{self, CUT, Fwb, MECHANISMS, SHARED_MECHANISMS};
use super::pending::{FIRST_NUMBER, SEALED};
use super::ring;
use super::window::{self, SHARED_FIGURES};
use crate::controller::Top;
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::settings::{AnyKey, Settings, keys};

keys! {
    ENCODED: bool = flag("morlog.encoded", true),
        Source("MorLog: log data of clean bits are clean, and are discarded"),
        "Words of new lines that are as before are not logged";
}

static KEYS: [&dyn AnyKey; 5] = [&fwb::LINES, &fwb::WALKS, &FIRST_NUMBER, &SEALED, &ENCODED];

/// When and how a line's new content is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// As it comes, and whole.
    Eager,
    /// When its transaction commits, if memory does not have it by then; without words that are as before if `encoded`.
    Morphing {
        /// Whether words are left out.
        encoded: bool,
    },
}

impl LogForm {
    /// Whether words are left out.
    pub fn is_encoded(self) -> bool {
        self == LogForm::Morphing { encoded: true }
    }
}

/// The form of its log.
pub fn form(settings: &Settings) -> LogForm {
    LogForm::Morphing {
        encoded: settings.get(&ENCODED),
    }
}

fn build(settings: &Settings, below: Top, layout: &mut Layout) -> Top {
    Box::new(Fwb::new(settings, form(settings), below, layout, |ring| {
        ring
    }))
}

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "morlog",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[&SHARED_FIGURES, window::FIGURES],
            cut: CUT,
            tries: &[MECHANISMS, &SHARED_MECHANISMS],
            limits: ring::LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build,
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "morlog",
        source: "MorLog, ISCA 2020",
        line: "FWB's log with new lines logged at commit and without clean words, over data in counter mode",
        stack: "morlog/identity+sca",
    }],
};
