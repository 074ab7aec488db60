//! Synthetic traces have the statistics that they state, and the same seed gives the same bytes.

use crate::common::read;
use sardonyx_trace::{
    Addresses, Record, Source, Spec, Synth, TraceInfo, info, locality_ladder, synth_to_file,
};

fn survey(spec: Spec, seed: u64) -> TraceInfo {
    info(
        Source::from(Synth::new(spec, seed).unwrap()),
        &[],
        &mut |_, _| (),
    )
    .unwrap()
}

fn near(what: &str, got: f64, stated: f64, within: f64) {
    assert!(
        (got - stated).abs() <= within,
        "{what}: {got} is not {stated} +- {within}"
    );
}

#[test]
fn the_ladder_spans_the_applications_of_esd() {
    let ladder = locality_ladder();
    assert!(ladder.len() >= 12);
    let n = ladder.len() as f64;
    let (mut rate, mut contents, mut volume) = (0.0, 0.0, 0.0);
    for spec in &ladder {
        let info = survey(spec.clone(), 1);
        near(&spec.name, info.duplicate_rate, spec.duplicate_rate, 0.004);
        near(&spec.name, info.zero_rate, spec.zero_share, 0.004);
        near(
            &spec.name,
            info.reads as f64 / info.records as f64,
            spec.read_share,
            0.004,
        );
        let hot = info.locality.last().unwrap();
        near(&spec.name, hot.writes_share, spec.hot_share, 0.005);
        assert_eq!(hot.contents, u64::from(spec.hot_contents), "{}", spec.name);
        rate += info.duplicate_rate / n;
        contents += hot.contents_share / n;
        volume += hot.writes_share / n;
    }
    // ESD Fig. 1 and Sec. II-A.
    near("lowest rate", ladder[0].duplicate_rate, 0.331, 1e-9);
    near(
        "highest rate",
        ladder.last().unwrap().duplicate_rate,
        0.999,
        1e-9,
    );
    near("mean rate", rate, 0.629, 0.003);
    near("contents written over 1000 times", contents, 0.0008, 0.0001);
    near("their share of the writes", volume, 0.427, 0.004);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let spec = Spec {
        records: 20_000,
        ..Spec::default()
    };
    let take = |seed| {
        Synth::new(spec.clone(), seed)
            .unwrap()
            .collect::<Vec<Record>>()
    };
    assert_eq!(take(3).len(), 20_000);
    assert!(take(3) == take(3));
    assert!(take(3) != take(4));

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, seed| {
        let path = folder.path().join(name);
        assert_eq!(
            synth_to_file(spec.clone(), seed, &path, &mut |_, _| ()).unwrap(),
            20_000
        );
        path
    };
    let (a, b) = (file("a.parquet", 3), file("b.parquet", 3));
    assert!(std::fs::read(&a).unwrap() == std::fs::read(b).unwrap());
    let source = Source::open(&a).unwrap();
    let stated: Spec =
        serde_json::from_value(source.provenance().more["synthetic"].clone()).unwrap();
    assert_eq!(stated, spec);
    assert!(read(&a) == take(3), "a file holds what the generator gives");
}

/// The generator is part of a result's key: a change to it must be seen and meant.
#[test]
fn the_first_records_are_what_they_have_always_been() {
    let spec = Spec {
        records: 100,
        read_share: 0.0,
        ..Spec::default()
    };
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for record in Synth::new(spec, 42).unwrap() {
        let head = [
            u64::from(record.gap),
            u64::from(record.thread),
            record.line.0,
        ];
        let bytes = head
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .chain(record.data.unwrap());
        bytes.for_each(|b| hash = (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    }
    assert_eq!(hash, GOLDEN, "{hash:#018x}");
}

const GOLDEN: u64 = 0x3eec_121d_4b42_c15a;

#[test]
fn gaps_threads_and_addresses_are_as_stated() {
    let spec = Spec {
        records: 100_000,
        footprint_lines: 1000,
        mean_gap: 50,
        ..Spec::default()
    };
    for addresses in [Addresses::Sequential, Addresses::Random, Addresses::HotCold] {
        let spec = Spec {
            addresses,
            ..spec.clone()
        };
        let records: Vec<Record> = Synth::new(spec, 5).unwrap().collect();
        let gaps: u64 = records.iter().map(|r| u64::from(r.gap)).sum();
        near("mean gap", gaps as f64 / 1e5, 50.0, 0.5);
        let first = records.iter().map(|r| r.line.0).min().unwrap();
        assert!(
            records
                .iter()
                .all(|r| r.line.0 - first < 1000 && r.thread < 4)
        );
        let writes: Vec<u64> = records
            .iter()
            .filter(|r| r.op.is_write())
            .map(|r| r.line.0 - first)
            .collect();
        let front = writes.iter().filter(|&&l| l < 100).count() as f64 / writes.len() as f64;
        let stated = if addresses == Addresses::HotCold {
            0.91
        } else {
            0.1
        };
        near("writes to the first tenth", front, stated, 0.01);
        let next = writes.windows(2).all(|w| w[1] == (w[0] + 1) % 1000);
        assert_eq!(next, addresses == Addresses::Sequential);
    }
}

#[test]
fn reads_mainly_ask_for_what_was_written() {
    let spec = Spec {
        records: 50_000,
        addresses: Addresses::Random,
        ..Spec::default()
    };
    let (mut written, mut reads, mut known) = (std::collections::HashSet::new(), 0, 0);
    for record in Synth::new(spec, 9).unwrap() {
        if record.op.is_write() {
            written.insert(record.line);
        } else {
            reads += 1;
            known += u32::from(written.contains(&record.line));
        }
    }
    assert!(
        f64::from(known) > 0.94 * f64::from(reads),
        "{known} of {reads}"
    );
}

#[test]
fn what_cannot_be_had_is_refused_with_the_range() {
    let refused = |words: &str, change: fn(&mut Spec)| {
        let mut spec = Spec::default();
        change(&mut spec);
        let error = Synth::new(spec, 0).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused("can be 0.4270 to 0.94", |s| s.duplicate_rate = 0.2);
    refused("0.4270 to", |s| s.duplicate_rate = 0.95);
    refused("read_share = 1.5", |s| s.read_share = 1.5);
    refused("read_share", |s| s.read_share = f64::NAN);
    refused("at least 1", |s| s.records = 0);
    refused("hot_contents", |s| s.hot_contents = 0);
    refused("zero_share", |s| s.zero_share = 0.5);
    refused("zero_share", |s| s.hot_contents = 1);
    let unknown = serde_json::from_str::<Spec>(r#"{"duplicates": 0.5}"#)
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("duplicates"));
}
