//! Checks every row of a trace file and reports all bad rows, not only the first.

use std::path::Path;

use serde::Serialize;

use super::{Checksums, TraceError, TraceReader};

/// The findings of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Rows checked.
    pub records: u64,
    /// Rows that are not valid records.
    pub bad: u64,
    /// The first bad rows, as many as were asked for.
    pub problems: Vec<Problem>,
    /// The part of the file under checksums, all of which hold.
    pub checksums: Checksums,
}

impl CheckReport {
    /// Whether the trace is sound.
    pub fn is_ok(&self) -> bool {
        self.bad == 0
    }
}

/// A problem of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The row, from 0.
    pub row: u64,
    /// The problem and its remedy.
    pub problem: String,
}

/// Checks the rows of the trace at `path`, all or the first `limit`, and keeps the first `keep` problems.
///
/// # Errors
/// Damage to the file as a whole, after which no row can be trusted.
pub fn check(
    path: impl AsRef<Path>,
    keep: usize,
    limit: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CheckReport, TraceError> {
    let mut reader = TraceReader::open(path)?;
    let mut report = CheckReport {
        records: 0,
        bad: 0,
        problems: Vec::new(),
        checksums: Checksums::None,
    };
    let total = reader.records().min(limit);
    while report.records < total {
        let Some((first, rows)) = reader.next_rows()? else {
            break;
        };
        let looked_at = rows
            .len()
            .min(usize::try_from(total - first).unwrap_or(usize::MAX));
        for i in 0..looked_at {
            let Err(problem) = rows.record(i) else {
                continue;
            };
            report.bad += 1;
            if report.problems.len() < keep {
                report.problems.push(Problem {
                    row: first + i as u64,
                    problem,
                });
            }
        }
        report.records += looked_at as u64;
        progress(report.records, total);
    }
    report.checksums = reader.checksums();
    Ok(report)
}
