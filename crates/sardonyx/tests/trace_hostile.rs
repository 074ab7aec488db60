//! Hostile bytes: thousands of seeded mutations of a valid file neither panic nor hang the reader.
//!
//! The fuzz target `trace_reader` runs the same entry point; this one needs no nightly compiler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sardonyx::trace::{Spec, synth_to_file};

#[path = "../../../fuzz/drain.rs"]
mod entry;

use entry::drain;

const MUTATIONS: u64 = 10_000;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Our own kind of file: zstd, dictionaries.
fn ours() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.parquet");
    let spec = Spec {
        records: 300,
        footprint_lines: 64,
        ..Spec::default()
    };
    synth_to_file(spec, 7, &path, &mut |_, _| ()).unwrap();
    std::fs::read(path).unwrap()
}

/// Another tool's: several row groups, no compression and so no checksum either.
fn foreign() -> Vec<u8> {
    let lines = (0..60u8).map(|i| (i % 3 > 0).then_some([i % 7; 64]));
    let data = FixedSizeBinaryArray::try_from_sparse_iter_with_size(lines, 64).unwrap();
    let columns: [(&str, ArrayRef); 5] = [
        ("gap", Arc::new(UInt32Array::from_iter_values(0..60))),
        ("thread", Arc::new(UInt16Array::from(vec![0; 60]))),
        (
            "op",
            Arc::new(UInt8Array::from_iter_values((0..60).map(|i| i % 3))),
        ),
        ("line", Arc::new(UInt64Array::from_iter_values(0..60))),
        ("data", Arc::new(data)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(20))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn mutate(bytes: &mut Vec<u8>, dice: &mut ChaCha8Rng) {
    for _ in 0..dice.random_range(1..=4) {
        let len = bytes.len();
        let footer = len.saturating_sub(700);
        // The footer is where a single byte does the most damage.
        let start = if dice.random_range(0..2) == 0 {
            footer
        } else {
            0
        };
        let at = dice.random_range(start..len);
        match dice.random_range(0..6) {
            0 => bytes[at] ^= 1 << dice.random_range(0..8),
            1 => bytes[at] = dice.next_u32() as u8,
            2 => bytes[at] = [0, 0x7F, 0x80, 0xFF][dice.random_range(0..4)],
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, dice.next_u32() as u8),
            _ => {
                let end = (at + dice.random_range(1..32)).min(len);
                let from = dice.random_range(0..len - (end - at) + 1);
                bytes.copy_within(from..from + (end - at), at);
            }
        }
    }
}

#[test]
fn mutated_files_give_records_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mutated.parquet");
    let valid = [ours(), foreign()];
    for bytes in &valid {
        std::fs::write(&path, bytes).unwrap();
        assert!(drain(&path), "the file to mutate is sound");
    }
    // Panics inside the parquet crate are expected and caught; count and do not print them.
    std::panic::set_hook(Box::new(|_| {
        PANICS.fetch_add(1, Ordering::Relaxed);
    }));
    let (mut sound, mut refused) = (0, 0);
    let mut slowest = Duration::ZERO;
    for seed in 0..MUTATIONS {
        let mut bytes = valid[(seed % 2) as usize].clone();
        mutate(&mut bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        std::fs::write(&path, &bytes).unwrap();
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| drain(&path));
        slowest = slowest.max(start.elapsed());
        match outcome {
            Ok(true) => sound += 1,
            Ok(false) => refused += 1,
            Err(_) => {
                let _ = std::panic::take_hook();
                panic!("mutation {seed} panics the reader");
            }
        }
    }
    let _ = std::panic::take_hook();
    let caught = PANICS.load(Ordering::Relaxed);
    println!("{sound} read, {refused} refused, {caught} panics caught, slowest {slowest:?}");
    // Both happen, or the mutations test nothing.
    assert!(
        sound > 100 && refused > 100,
        "{sound} read, {refused} refused"
    );
    assert!(
        slowest < Duration::from_secs(1),
        "a mutation took {slowest:?}"
    );
}
