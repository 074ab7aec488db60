//! The statistics of a trace against a slow, obvious model, and on the recordings in `traces/`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proptest::prelude::*;
use sardonyx::ecc::{FINGERPRINTS, Matrix, check_word};
use sardonyx::line::{Line, Virtual};
use sardonyx::trace::{Level, Op, Provenance, Record, Source, TraceInfo, TraceWriter, check, info};

/// Reads, writes and flushes, or the core's loads and stores: few lines and few contents, many of which share check words: a pattern that no matrix sees in
/// some words (the sum of two words with equal checks) makes collisions common.
fn records() -> impl Strategy<Value = Vec<Record>> {
    prop_oneof![
        records_of(&[0, 1, 2, 3, 4, 5, 6, 7]),
        records_of(&[2, 4, 5, 6, 7, 8, 9])
    ]
}

fn records_of(codes: &'static [u8]) -> impl Strategy<Value = Vec<Record>> {
    let record = (
        0u32..9,
        0u16..3,
        prop::sample::select(codes),
        0u64..6,
        0u64..12,
    );
    let record = record.prop_map(|(gap, thread, op, line, content)| {
        let op = Op::from_code(op).unwrap();
        let data = op.has_data().then(|| content_of(content));
        Record {
            gap,
            thread,
            op,
            line: Virtual(line),
            data,
        }
    });
    // Repeated, so that the bucket of 11-100 is reached.
    (prop::collection::vec(record, 0..60), 1usize..9).prop_map(|(part, n)| part.repeat(n))
}

fn content_of(number: u64) -> Line {
    let mut line = [0; 64];
    if number % 2 == 1 {
        // All ones has the check bits of all zeros under both Hsiao codes.
        line[8..16].fill(0xFF);
    }
    line[..8].copy_from_slice(&(number / 2).to_le_bytes());
    line
}

fn survey(records: &[Record]) -> TraceInfo {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let at_the_core = |r: &Record| matches!(r.op, Op::Load | Op::Store);
    let level = if records.iter().any(at_the_core) {
        Level::Cpu
    } else {
        Level::Memory
    };
    let provenance = Provenance {
        level,
        ..Provenance::default()
    };
    let mut writer = TraceWriter::create(&path, provenance).unwrap();
    records.iter().for_each(|r| writer.push(r).unwrap());
    writer.finish().unwrap();
    info(Source::open(&path).unwrap(), &FINGERPRINTS, &mut |_, _| ()).unwrap()
}

type Print = fn(&Line) -> u64;

const PRINTS: [Print; 4] = [
    |data| u64::from(crc32fast::hash(data)),
    |data| check_word(Matrix::TruncatedHamming, data),
    |data| check_word(Matrix::HsiaoOpenTitan, data),
    |data| check_word(Matrix::Hsiao1970, data),
];

proptest! {
    #![proptest_config(sardonyx_property::cases(128))]
    #[test]
    fn the_survey_says_what_counting_by_hand_says(records in records()) {
        let info = survey(&records);
        let writes: Vec<(u64, Line)> =
            records.iter().filter(|r| r.op.has_data()).map(|r| (r.line.0, r.data.unwrap())).collect();
        let of = |n: usize| if writes.is_empty() { 0.0 } else { n as f64 / writes.len() as f64 };
        prop_assert_eq!(info.records, records.len() as u64);
        prop_assert_eq!(info.writes, writes.len() as u64);
        let reads = records.iter().filter(|r| matches!(r.op, Op::ReadMiss | Op::Load)).count();
        prop_assert_eq!(info.reads, reads as u64);
        prop_assert_eq!(info.instructions, Some(records.iter().map(|r| u64::from(r.gap)).sum()));

        let seen_before = |i: usize| writes[..i].iter().any(|w| w.1 == writes[i].1);
        let duplicates = (0..writes.len()).filter(|&i| seen_before(i)).count();
        prop_assert_eq!(info.duplicate_rate, of(duplicates));
        prop_assert_eq!(info.distinct_contents as usize, writes.len() - duplicates);
        prop_assert_eq!(info.zero_rate, of(writes.iter().filter(|w| w.1 == [0; 64]).count()));
        let silent = |i: usize| {
            writes[..i].iter().rev().find(|w| w.0 == writes[i].0).is_some_and(|w| w.1 == writes[i].1)
        };
        prop_assert_eq!(info.silent_write_rate, of((0..writes.len()).filter(|&i| silent(i)).count()));

        let mut times: BTreeMap<Line, usize> = BTreeMap::new();
        writes.iter().for_each(|w| *times.entry(w.1).or_default() += 1);
        for (bucket, (least, most)) in
            info.locality.iter().zip([(1, 1), (2, 10), (11, 100), (101, 1000), (1001, usize::MAX)])
        {
            let held: Vec<usize> =
                times.values().copied().filter(|n| (least..=most).contains(n)).collect();
            prop_assert_eq!(bucket.contents as usize, held.len());
            prop_assert_eq!(bucket.writes as usize, held.iter().sum::<usize>());
            prop_assert_eq!(bucket.writes_share, of(held.iter().sum()));
        }

        for (collisions, print) in info.collisions.iter().zip(PRINTS) {
            // A store that keeps the first content with each fingerprint.
            let mut store: BTreeMap<u64, Line> = BTreeMap::new();
            let mut wrong = 0;
            let mut contents = BTreeSet::new();
            for (_, data) in &writes {
                if store.entry(print(data)).or_insert(*data) != data {
                    wrong += 1;
                    contents.insert(*data);
                }
            }
            prop_assert_eq!(collisions.writes, wrong, "{}", collisions.fingerprint);
            prop_assert_eq!(collisions.contents as usize, contents.len());
        }

        let touched = |r: &&Record| r.op.has_data() || matches!(r.op, Op::ReadMiss | Op::Load);
        let lines: BTreeSet<u64> = records.iter().filter(touched).map(|r| r.line.0).collect();
        let read_first = lines.iter().filter(|&&line| {
            !records.iter().filter(touched).find(|r| r.line.0 == line).unwrap().op.has_data()
        });
        prop_assert_eq!(info.lines_read_before_written as usize, read_first.count());
        prop_assert_eq!(info.footprint_lines as usize, lines.len());
        prop_assert_eq!(info.footprint_bytes as usize, lines.len() * 64);
    }
}

#[test]
fn collisions_are_common_in_the_model_above() {
    // Otherwise the property test would compare zeros.
    let record = |n| Record {
        gap: 0,
        thread: 0,
        op: Op::DirtyEviction,
        line: Virtual(0),
        data: Some(content_of(n)),
    };
    let info = survey(&[record(0), record(1), record(1)]);
    let writes: Vec<_> = info
        .collisions
        .iter()
        .map(|c| (c.fingerprint, c.writes))
        .collect();
    assert_eq!(
        writes,
        [
            ("crc-32", 0),
            ("truncated-hamming", 0),
            ("hsiao-opentitan", 2),
            ("hsiao-1970", 2)
        ]
    );
    assert_eq!(info.collisions[2].writes_to_crc32, None);
}

#[test]
fn an_empty_trace_has_no_rates() {
    let info = survey(&[]);
    assert_eq!(
        (info.records, info.duplicate_rate, info.zero_rate),
        (0, 0.0, 0.0)
    );
    assert!(!serde_json::to_string(&info).unwrap().contains("NaN"));
}

fn recording(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(format!("{name}.parquet"))
}

#[test]
fn the_recordings_in_the_repository_are_sound_and_as_described() {
    // Records, writes and duplicates in percent, as another program (Python, pandas) counts them.
    for (name, records, writes, duplicates) in RECORDINGS {
        let path = recording(name);
        assert!(
            check(&path, 1, u64::MAX, &mut |_, _| ()).unwrap().is_ok(),
            "{name}"
        );
        let mut last = (0, 0);
        let info = info(
            Source::open(&path).unwrap(),
            &FINGERPRINTS,
            &mut |done, all| last = (done, all),
        )
        .unwrap();
        assert_eq!((info.records, info.writes), (records, writes), "{name}");
        assert_eq!(last, (records, records), "{name}: progress ends at the end");
        let percent = 100.0 * info.duplicate_rate;
        assert!((percent - duplicates).abs() < 0.05, "{name}: {percent}");
    }
}

const RECORDINGS: [(&str, u64, u64, f64); 6] = [
    ("sqlite3", 145_000, 72_138, 3.27),
    ("redis", 300_000, 212_041, 63.57),
    ("cc1", 150_000, 137_492, 16.99),
    ("x264", 165_000, 76_036, 71.14),
    ("stockfish", 900_000, 750_110, 98.34),
    ("pmdk-tx", 362_266, 35_323, 58.75),
];

fn write(gap: u32, line: u64) -> Record {
    Record {
        gap,
        thread: 0,
        op: Op::DirtyEviction,
        line: Virtual(line),
        data: Some([line as u8; 64]),
    }
}

fn passing(op: Op, gap: u32) -> Record {
    Record {
        op,
        data: op.has_data().then_some([0; 64]),
        ..write(gap, 0)
    }
}

/// A write after a gap and `n - 1` at the same instant.
fn run(n: u64) -> Vec<Record> {
    (0..n).map(|i| write(u32::from(i == 0) * 9, i)).collect()
}

#[test]
fn bursts_are_runs_of_64_and_more_accesses_without_an_instruction_between() {
    let bursts = |records: &[Record]| {
        let info = survey(records);
        (info.burst_writes.unwrap(), info.longest_burst.unwrap())
    };
    assert_eq!(bursts(&run(63)), (0, 0));
    assert_eq!(bursts(&run(64)), (64, 64));
    assert_eq!(bursts(&[run(64), run(63), run(70)].concat()), (134, 70));
    // A read is one of the run, and no write.
    let with_a_read = [
        run(40),
        vec![passing(Op::ReadMiss, 0)],
        run(24)[1..].to_vec(),
    ]
    .concat();
    assert_eq!(bursts(&with_a_read), (63, 63));
    assert_eq!(bursts(&with_a_read[1..]), (0, 0));
    for op in [Op::Fence, Op::Clwb] {
        let broken = [run(40), vec![passing(op, 0)], run(40)[1..].to_vec()].concat();
        assert_eq!(bursts(&broken), (0, 0), "{op:?}");
    }
    // Records without traffic only carry their gaps.
    for op in [Op::Changed, Op::FinalDirty] {
        let rest = run(40)[1..].to_vec();
        let whole = [run(40), vec![passing(op, 0)], rest.clone()].concat();
        assert_eq!(bursts(&whole), (79, 79), "{op:?}");
        let apart = [run(40), vec![passing(op, 1)], rest].concat();
        assert_eq!(bursts(&apart), (0, 0), "{op:?}");
    }
}

#[test]
fn what_makes_a_mean_doubtful_is_said() {
    let scattered = |n: u64| (0..n).map(|i| write(9, i)).collect::<Vec<_>>();
    let warnings = |records: &[Record]| survey(records).warnings;
    assert!(warnings(&scattered(1000)).is_empty());
    assert!(warnings(&scattered(999))[0].starts_with("999 writes are too few for a mean"));
    assert!(warnings(&[scattered(1330), run(70)].concat()).is_empty());
    let said = warnings(&[scattered(1300), run(70)].concat());
    assert!(
        said[0].starts_with("5.1 % of the writes come in bursts"),
        "{said:?}"
    );
    assert!(said[0].contains("the longest has 70"), "{said:?}");
    assert_eq!(said.len(), 1);
}

#[test]
fn the_last_cache_of_a_recording_is_that_of_its_provenance() {
    let redis = Source::open(recording("redis")).unwrap();
    let about = info(redis.limit(10), &FINGERPRINTS, &mut |_, _| ()).unwrap();
    assert_eq!(about.recorded_cache_bytes, Some(16 << 20));
    assert_eq!(survey(&run(3)).recorded_cache_bytes, None);
}

#[test]
fn the_middle_of_a_trace_is_of_what_comes_before_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = TraceWriter::create(&path, Provenance::default()).unwrap();
    for at in 0..10 {
        writer.push(&write(9, at)).unwrap();
    }
    for _ in 0..90 {
        writer.push(&passing(Op::FinalDirty, 0)).unwrap();
    }
    writer.finish().unwrap();
    let lines = |records| -> Vec<u64> {
        let mut source = Source::open(&path).unwrap().window(records, 0.5).unwrap();
        let (mut batch, mut lines) = (Vec::new(), Vec::new());
        while source.next_batch(&mut batch).unwrap() {
            lines.extend(batch.iter().map(|record| record.line.0));
        }
        lines
    };
    assert_eq!(lines(4), [3, 4, 5, 6]);
    assert_eq!(lines(100).len(), 100);
}
