//! Holds each read to what was written last to its line, whatever the design has made of it: the first byte that is
//! wrong ends the run. Left out: reads of a medium's tables and logs, which are no program's.

use std::fmt;

use rustc_hash::FxHashSet;

use super::contents::Contents;
use crate::line::{LINE_BYTES, Line, Logical};

const SHOWN: usize = 8;

/// Counts of reads that were compared with earlier writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Reads that returned what was written last.
    pub verified: u64,
    /// Those of them that returned what a line had held since before the run.
    pub preloaded: u64,
    /// Reads of lines that nobody has written and whose content nobody knows, so that it cannot be compared.
    pub unwritten: u64,
}

/// A read that did not return the last write to its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line.
    pub line: Logical,
    /// The position of the first wrong byte.
    pub byte: usize,
    /// The byte that was written.
    pub expected: u8,
    found: Option<Line>,
}

impl Wrong {
    fn new(line: Logical, written: &Line, found: Option<Line>) -> Wrong {
        let pairs = || found.iter().flatten().zip(written);
        let byte = pairs().position(|(found, written)| found != written);
        let byte = byte.unwrap_or_default();
        Wrong {
            line,
            byte,
            expected: written[byte],
            found,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Wrong { byte, expected, .. } = self;
        let Some(found) = &self.found else {
            return write!(
                f,
                "read as never written (first differing byte {byte}: expected {expected:02x}, found none)"
            );
        };
        let from = byte / SHOWN * SHOWN;
        write!(f, "read as ")?;
        for byte in &found[from..from + SHOWN] {
            write!(f, "{byte:02x}")?;
        }
        write!(
            f,
            " in bytes {from} to {} of {LINE_BYTES} (first differing byte {byte}: expected {expected:02x}, found {:02x})",
            from + SHOWN - 1,
            found[byte]
        )
    }
}

/// The last writes, and the results of comparing reads with them.
#[derive(Default)]
pub struct Checks {
    pub(super) contents: Contents,
    /// Lines of the contents that the run has not written.
    preloaded: FxHashSet<Logical>,
    pub(super) checked: Checked,
    pub(super) wrong: Option<Wrong>,
}

impl Checks {
    #[inline]
    pub(super) fn wrote(&mut self, line: Logical, data: &Line) {
        self.contents.put(line, data, false);
        if !self.preloaded.is_empty() {
            self.preloaded.remove(&line);
        }
    }

    pub(super) fn preloaded(&mut self, line: Logical, data: &Line) {
        self.contents.put(line, data, false);
        self.preloaded.insert(line);
    }

    #[inline]
    pub(super) fn read(&mut self, line: Logical, found: Option<&Line>) {
        match self.contents.get(line) {
            None => self.checked.unwritten += 1,
            written if written == found => {
                self.checked.verified += 1;
                if !self.preloaded.is_empty() {
                    self.checked.preloaded += u64::from(self.preloaded.contains(&line));
                }
            }
            Some(written) => {
                if !self.contents.is_ahead(line) && self.wrong.is_none() {
                    self.wrong = Some(Wrong::new(line, written, found.copied()));
                }
            }
        }
    }
}
