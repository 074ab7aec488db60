//! Traces mixed into one, against a sort by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::read;
use proptest::prelude::*;
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{GapUnit, Op, Provenance, Record, TraceWriter, mix};
use serde_json::json;

fn write(folder: &Path, name: &str, provenance: Provenance, records: &[Record]) -> PathBuf {
    let path = folder.join(name);
    let mut writer = TraceWriter::create(&path, provenance).unwrap();
    records.iter().for_each(|r| writer.push(r).unwrap());
    writer.finish().unwrap();
    path
}

fn record(gap: u32, thread: u16, line: u64) -> Record {
    Record {
        gap,
        thread,
        op: Op::DirtyEviction,
        line: Virtual(line),
        data: Some([line as u8; 64]),
    }
}

fn traces() -> impl Strategy<Value = Vec<Vec<Record>>> {
    let one = (0u32..50, 0u16..3, 0u64..1 << 40).prop_map(|(g, t, l)| record(g, t, l));
    prop::collection::vec(prop::collection::vec(one, 0..40), 2..5)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn a_mix_is_all_records_in_the_order_of_their_times(traces in traces()) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = traces.iter().enumerate()
            .map(|(k, t)| write(folder.path(), &format!("{k}.parquet"), Provenance::default(), t))
            .collect();
        let to = folder.path().join("mix.parquet");
        mix(&paths, &to, &mut |_, _| ()).unwrap();
        let mixed = read(&to);

        // (time, program, row), sorted.
        let mut expected = Vec::new();
        for (k, trace) in traces.iter().enumerate() {
            let mut time = 0;
            for (row, r) in trace.iter().enumerate() {
                time += u64::from(r.gap);
                expected.push((time, k, row));
            }
        }
        expected.sort_unstable();
        prop_assert_eq!(mixed.len(), expected.len());
        let mut threads = BTreeMap::new();
        for (got, &(_, k, row)) in mixed.iter().zip(&expected) {
            let was = traces[k][row];
            prop_assert_eq!(got.line.0, was.line.0 + ((k as u64) << 50));
            prop_assert_eq!(got.data, was.data);
            let thread = *threads.entry((k, was.thread)).or_insert(got.thread);
            prop_assert_eq!(thread, got.thread);
        }
        let distinct: std::collections::BTreeSet<_> = threads.values().collect();
        prop_assert_eq!(distinct.len(), threads.len());
        // Nobody's instructions are lost or made.
        let sum = |t: &[Record]| t.iter().map(|r| u64::from(r.gap)).sum::<u64>();
        prop_assert_eq!(sum(&mixed), traces.iter().map(|t| sum(t)).sum::<u64>());
    }
}

#[test]
fn a_file_of_two_programs_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let with = |files: serde_json::Value| {
        let mut provenance = Provenance::default();
        provenance.more.insert("files".into(), files);
        provenance
    };
    let (a, b) = (1u64 << 57, (1u64 << 57) + (1 << 38));
    let one = with(json!([{"path": "/x", "first_line": a}, {"path": "/y", "first_line": b}]));
    let two = with(json!([{"path": "/y", "first_line": a}]));
    let paths = [
        write(
            folder.path(),
            "1.parquet",
            one,
            &[record(1, 0, a + 5), record(9, 0, b + 6)],
        ),
        write(folder.path(), "2.parquet", two, &[record(2, 0, a + 6)]),
    ];
    let to = folder.path().join("mix.parquet");
    mix(&paths, &to, &mut |_, _| ()).unwrap();
    let lines: Vec<u64> = read(&to).iter().map(|r| r.line.0).collect();
    assert_eq!(lines, [a + 5, b + 6, b + 6]);
}

#[test]
fn what_cannot_be_mixed_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cycles = Provenance {
        gap_unit: GapUnit::Cycles,
        ..Provenance::default()
    };
    let plain = write(
        folder.path(),
        "a.parquet",
        Provenance::default(),
        &[record(1, 0, 1)],
    );
    let cycles = write(folder.path(), "c.parquet", cycles, &[record(1, 0, 1)]);
    let high = write(
        folder.path(),
        "h.parquet",
        Provenance::default(),
        &[record(1, 0, 1 << 57)],
    );
    let to = folder.path().join("mix.parquet");
    for (other, word) in [(&cycles, "cycles"), (&high, "2^50")] {
        let error = mix(&[&plain, other], &to, &mut |_, _| ()).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(
        mix(&[&plain], &to, &mut |_, _| ())
            .unwrap_err()
            .to_string()
            .contains("2 to")
    );
    assert!(!to.exists());
}
