//! What tests of trace files have in common.

use std::path::Path;

use sardonyx_trace::{Record, Source};

/// All records of a file.
pub fn read(path: &Path) -> Vec<Record> {
    let mut source = Source::open(path).unwrap();
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while source.next_batch(&mut batch).unwrap() {
        all.append(&mut batch);
    }
    all
}
