// What the fuzz target and the stable test of hostile bytes do with a file: read all of it. Shared, so
// that an input found by one is a test case for the other.

use std::path::Path;

use sardonyx_trace::TraceReader;

/// Reads the file to its end (`true`) or its error (`false`), and holds what is read against the rules
/// of the format. Panics if the reader breaks one.
pub fn drain(path: &Path) -> bool {
    let Ok(mut reader) = TraceReader::open(path) else {
        return false;
    };
    let mut batch = Vec::new();
    let mut count = 0;
    loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => {
                assert!(!batch.is_empty(), "a batch holds records");
                count += batch.len() as u64;
                assert!(count <= reader.records(), "no more records than promised");
                for record in &batch {
                    assert!(record.line.0 < 1 << 58, "a byte address fits 64 bits");
                    assert!(
                        !record.op.is_write() || record.data.is_some(),
                        "writes carry data"
                    );
                }
            }
            Ok(false) => {
                assert_eq!(count, reader.records(), "no fewer records than promised");
                return true;
            }
            Err(e) => {
                assert!(!e.to_string().is_empty(), "an error says something");
                return false;
            }
        }
    }
}
