//! Checksums of trace files: a byte that changed anywhere is found, and files without checksums are still read.

use std::path::{Path, PathBuf};

use sardonyx_trace::line::Virtual;
use sardonyx_trace::{
    Checksums, Op, Provenance, Record, Spec, TraceError, TraceReader, TraceWriter, check,
    synth_to_file,
};
use tempfile::TempDir;

/// A file in a folder of its own, written over and over.
struct Scratch {
    _folder: TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        Scratch {
            _folder: folder,
            path,
        }
    }

    /// The records of a file of these bytes, or its error.
    fn read(&self, bytes: &[u8]) -> Result<Vec<Record>, String> {
        std::fs::write(&self.path, bytes).unwrap();
        read(&self.path).map_err(|e| e.to_string())
    }

    /// Asserts that a file of these bytes is refused, in one line that names it, by reading and by checking.
    fn refused(&self, bytes: &[u8], what: &str) -> String {
        let Err(error) = self.read(bytes) else {
            panic!("{what} is not found");
        };
        assert!(error.starts_with(self.path.to_str().unwrap()), "{error}");
        assert!(!error.contains('\n'), "{what}: {error}");
        assert!(
            check(&self.path, 1, u64::MAX, &mut |_, _| ()).is_err(),
            "{what}"
        );
        error
    }
}

fn read(path: &Path) -> Result<Vec<Record>, TraceError> {
    let mut reader = TraceReader::open(path)?;
    let (mut batch, mut all) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch)? {
        all.append(&mut batch);
    }
    Ok(all)
}

/// A trace of a few records, with all columns and their dictionaries.
fn small() -> Vec<u8> {
    let scratch = Scratch::new();
    let mut writer =
        TraceWriter::with_sites(&scratch.path, Provenance::default(), 3, true).unwrap();
    for i in 0..40u8 {
        let op = Op::from_code(i % 4).unwrap();
        let record = Record {
            gap: u32::from(i) * 100,
            thread: u16::from(i % 2),
            op,
            line: Virtual((1 << 30) + u64::from(i) * 3),
            data: op.is_write().then_some([i / 4; 64]),
        };
        let site = (i % 3 == 0).then_some(u32::from(i));
        writer.push_at(&record, site).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(&scratch.path).unwrap()
}

/// A trace of two row groups, and several pages in a column.
fn large() -> Vec<u8> {
    let scratch = Scratch::new();
    let spec = Spec {
        records: 70_000,
        footprint_lines: 4096,
        ..Spec::default()
    };
    synth_to_file(spec, 7, &scratch.path, &mut |_, _| ()).unwrap();
    std::fs::read(&scratch.path).unwrap()
}

fn footer(bytes: &[u8]) -> usize {
    let tail = bytes.len() - 8;
    tail - u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap()) as usize
}

/// The file without the block before its footer, as if another program had written it.
fn without_block(bytes: &[u8]) -> Vec<u8> {
    let at = footer(bytes);
    let words: [u8; 4] = bytes[at - 20..at - 16].try_into().unwrap();
    let block = 20 + 4 * u32::from_le_bytes(words) as usize;
    let mut bytes = [&bytes[..at - block], &bytes[at..]].concat();
    let name = b"with checksums";
    let place = (bytes.windows(name.len()).position(|w| w == name)).unwrap();
    bytes[place..place + name.len()].fill(b'x');
    bytes
}

#[test]
fn every_inverted_bit_is_found() {
    let (scratch, whole) = (Scratch::new(), small());
    assert_eq!(scratch.read(&whole).unwrap().len(), 40);
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let what = format!("bit {} of byte {} of {}", bit % 8, bit / 8, whole.len());
        match bit % 8 {
            0 => drop(scratch.refused(&bytes, &what)),
            _ => assert!(scratch.read(&bytes).is_err(), "{what} is not found"),
        }
    }
}

#[test]
fn inverted_bytes_of_a_large_trace_are_found_with_their_place() {
    let (scratch, whole) = (Scratch::new(), large());
    let end = footer(&whole);
    // The columns' ends and beginnings are where their headers are.
    let step = sardonyx_property::count(10, 1);
    let last = (end - 300..whole.len()).step_by(step);
    for at in (4..end).step_by(9973 * step).chain(last) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        scratch.refused(&bytes, &format!("byte {at} of {}", whole.len()));
    }
    let mut bytes = whole;
    let at = end - 200;
    bytes[at] ^= 1;
    let error = scratch.refused(&bytes, "the end of the last column");
    let place = "(column `data` of rows 65536-69999, bytes ";
    assert!(error.contains(place), "{error}");
    assert!(error.contains("record or copy the trace again"), "{error}");
}

#[test]
fn what_comes_before_a_damaged_row_group_is_read() {
    let (scratch, mut bytes) = (Scratch::new(), large());
    let at = footer(&bytes) - 200;
    bytes[at] ^= 1;
    std::fs::write(&scratch.path, &bytes).unwrap();
    let report = check(&scratch.path, 1, 65_536, &mut |_, _| ()).unwrap();
    assert_eq!((report.records, report.bad), (65_536, 0));
}

#[test]
fn files_without_checksums_are_read_and_say_so() {
    let (scratch, whole) = (Scratch::new(), small());
    let checksums = |bytes: &[u8]| {
        std::fs::write(&scratch.path, bytes).unwrap();
        check(&scratch.path, 1, u64::MAX, &mut |_, _| ()).map(|report| report.checksums)
    };
    assert_eq!(checksums(&whole).unwrap(), Checksums::All);
    let pages_only = without_block(&whole);
    assert_eq!(checksums(&pages_only).unwrap(), Checksums::Pages);
    // Parquet's own checksums are checked too, whoever wrote them.
    let mut found = 0;
    for at in 4..footer(&pages_only) {
        let mut bytes = pages_only.clone();
        bytes[at] ^= 0xFF;
        found += usize::from(checksums(&bytes).is_err_and(|e| e.to_string().contains("CRC")));
    }
    assert!(found > footer(&pages_only) / 4, "{found}");
    // The name of the writer alone promises checksums.
    let at = footer(&whole);
    let bare = [&pages_only[..footer(&pages_only)], &whole[at..]].concat();
    let error = scratch.refused(&bare, "a block that was cut out");
    assert!(error.contains("its checksums, before byte"), "{error}");
}
