//! Compares a complete trace with the program's memory at its end.

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_recorder::codec;
use sardonyx_trace::{Op, Source, TraceError};
use serde::Serialize;

use crate::pages::PAGE_LINES;

const NAMED: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Pages with lines in the trace that the program still had.
    pub pages: usize,
    /// Lines of these pages whose bytes the trace has.
    pub lines: usize,
    /// Lines whose last bytes in the trace differ from memory.
    pub different: usize,
    pub first: Vec<u64>,
}

/// Compares the last bytes of each line in the trace with the hashes of memory.
pub fn verify(trace: &Path, held: &[(u64, u64)]) -> Result<Verified, TraceError> {
    let mut last: FxHashMap<u64, u64> = FxHashMap::default();
    let (mut source, mut batch) = (Source::open(trace)?, Vec::new());
    while source.next_batch(&mut batch)? {
        for record in batch.drain(..) {
            let Some(data) = &record.data else { continue };
            let line = record.line.0;
            if record.op != Op::Changed {
                last.insert(line, codec::hash(data));
                continue;
            }
            let number =
                |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("8 bytes"));
            let (lines, from) = (
                line..line.saturating_add(number(0)),
                number(8).checked_sub(1),
            );
            last.retain(|line, _| !lines.contains(line));
            let moved = from.map(|from| from..from.saturating_add(number(0)));
            let moved: Vec<_> = (last.iter())
                .filter(|(old, _)| moved.as_ref().is_some_and(|moved| moved.contains(old)))
                .map(|(old, hash)| (old - moved.as_ref().map_or(0, |m| m.start) + line, *hash))
                .collect();
            last.extend(moved);
        }
    }
    let known = |(line, hash): &(u64, u64)| Some((*line, last.get(line)? == hash));
    let compared: Vec<(u64, bool)> = held.iter().filter_map(known).collect();
    let pages: FxHashSet<u64> = compared.iter().map(|(line, _)| line / PAGE_LINES).collect();
    let different: Vec<u64> = (compared.iter())
        .filter_map(|(line, same)| (!same).then_some(*line))
        .collect();
    Ok(Verified {
        pages: pages.len(),
        lines: compared.len(),
        different: different.len(),
        first: different.into_iter().take(NAMED).collect(),
    })
}
