//! What a trace knows of lines' contents before the first record that is kept.

use std::collections::BTreeMap;

use crate::line::{Line, Virtual};
use crate::{Op, Record};

/// The contents of lines at a point of a trace: what the last record before it that says so says.
///
/// Whoever leaves out the beginning of a trace shows it what is left out, and gets the bytes of later reads. It has a
/// line from its last record before the point up to its first one after that.
#[derive(Debug, Default)]
pub struct Contents {
    lines: BTreeMap<u64, Line>,
}

impl Contents {
    /// Learns from a record before the point.
    pub fn see(&mut self, record: &Record) {
        match (record.op, record.data) {
            (Op::FinalDirty, _) | (_, None) => {}
            (Op::Changed, Some(data)) => self.change(record.line, &data),
            (_, Some(data)) => drop(self.lines.insert(record.line.0, data)),
        }
    }

    /// Gives a read after the point its bytes, if it has none and no record since the point is of its line.
    pub fn fill(&mut self, record: &mut Record) {
        if self.lines.is_empty() {
            return;
        }
        match (record.op, record.data) {
            (Op::Changed, Some(data)) => self.change(record.line, &data),
            (Op::ReadMiss | Op::Load, None) => record.data = self.lines.remove(&record.line.0),
            (Op::ReadMiss | Op::Load, _) => drop(self.lines.remove(&record.line.0)),
            (op, Some(_)) if op.has_data() => drop(self.lines.remove(&record.line.0)),
            _ => {}
        }
    }

    /// Forgets lines that changed without a write, or has them from where they were before.
    fn change(&mut self, first: Virtual, data: &Line) {
        let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("8 bytes"));
        self.moved(first.0, word(0), word(8).checked_sub(1));
    }

    /// The lines from `first` on hold what lay at `from`, or something else if nothing is said of that.
    pub fn moved(&mut self, first: u64, lines: u64, from: Option<u64>) {
        let source = from.unwrap_or(first);
        let taken = self.take(source, lines);
        if from.is_some() {
            self.take(first, lines);
            let put = |(line, data): (u64, Line)| (line - source + first, data);
            self.lines.extend(taken.into_iter().map(put));
        }
    }

    fn take(&mut self, first: u64, lines: u64) -> Vec<(u64, Line)> {
        let within = self.lines.range(first..first.saturating_add(lines));
        let taken: Vec<(u64, Line)> = within.map(|(line, data)| (*line, *data)).collect();
        for (line, _) in &taken {
            self.lines.remove(line);
        }
        taken
    }
}
