//! What the deduplicating designs count, against slow and obvious models: which writes share,
//! what is lost when nobody compares, and the counts in the tables against a recount.
//! Left out: that reads are right, which `tests` checks.

use std::collections::HashMap;

use proptest::prelude::*;

use super::harness::Rig;
use super::mapping::dedup_sha1::VERIFY;
use super::mapping::esd::{
    COLLISION, Collision, FORGET, Forget, MATRIX, RECLAIM, REFER_MAX, Reclaim,
};
use super::mapping::full_dedup::KEPT;
use super::mapping::index::INDEX;
use super::mapping::places::PAST;
use crate::line::Line;
use crate::settings::Settings;

const LINES: u64 = 60;

fn content(seed: u16) -> Line {
    let mut line = [0x5a; 64];
    line[..2].copy_from_slice(&seed.to_le_bytes());
    line
}

fn writes() -> impl Strategy<Value = Vec<(u64, u16)>> {
    prop::collection::vec((0..LINES, 0..25u16), 1..600)
}

fn written(name: &'static str, writes: &[(u64, u16)]) -> Rig {
    let mut rig = Rig::new(name, &Settings::default(), LINES * 2);
    for (line, seed) in writes {
        rig.write(*line, &content(*seed));
    }
    rig
}

fn table(rig: &Rig, name: &str) -> Vec<Line> {
    let mut regions = rig.layout.regions().iter();
    let region = regions.find(|region| region.name == name).unwrap();
    let lines = (0..region.lines).map(|index| rig.plan.peek(region.line(index)));
    lines.map(|line| line.unwrap_or([0; 64])).collect()
}

/// Counts shared writes of full deduplication, slowly: a write shares if any line holds its content when it comes. A
/// copy that was referred to `limit` times at once is shared no more.
fn shared(writes: &[(u64, u16)]) -> u64 {
    let mut held: HashMap<u64, u16> = HashMap::new();
    let mut shared = 0;
    for (line, seed) in writes {
        shared += u64::from(held.values().any(|content| content == seed));
        held.insert(*line, *seed);
    }
    shared
}

fn number(line: &Line, from: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..5].copy_from_slice(&line[from..from + 5]);
    u64::from_le_bytes(bytes).checked_sub(1)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]

    #[test]
    fn the_rivals_find_every_duplicate(writes in writes()) {
        for name in ["dedup-sha1", "dewrite"] {
            let rig = written(name, &writes);
            prop_assert_eq!(rig.figure("duplicate_writes"), shared(&writes) as f64);
            let found = ["duplicates_found_in_cache", "duplicates_found_in_medium"];
            let found: f64 = found.iter().map(|name| rig.figure(name)).sum();
            prop_assert_eq!(found, shared(&writes) as f64);
            if name == "dewrite" {
                let cases = ["t1", "f2", "t3", "f4"].map(|c| rig.figure(&format!("prediction_{c}")));
                prop_assert_eq!(cases.iter().sum::<f64>(), writes.len() as f64);
                prop_assert_eq!(cases[0] + cases[3], shared(&writes) as f64);
                prop_assert_eq!(cases[3], rig.figure("wasted_encryptions"));
            }
        }
    }

    #[test]
    fn esd_finds_every_duplicate_that_its_table_can_hold(writes in writes()) {
        let rig = written("esd", &writes);
        // Contents differ in 16 bits of one word: of these, some have the same check bits.
        let missed = shared(&writes) as f64 - rig.figure("duplicate_writes");
        prop_assert!(missed >= 0.0 && missed <= rig.figure("collisions"));
        prop_assert_eq!(rig.figure("efit_lookups"), writes.len() as f64);
    }

    #[test]
    fn esds_counts_are_those_of_a_recount(writes in writes()) {
        let mut rig = written("esd", &writes);
        rig.controller.flush(&mut rig.plan);
        let mut recount: HashMap<u64, u8> = HashMap::new();
        let mut counts: HashMap<u64, u8> = HashMap::new();
        for (index, line) in (0..).zip(table(&rig, "mapping")) {
            for slot in 0..10 {
                if let Some(place) = number(&line, slot * 6) {
                    *recount.entry(place).or_default() += 1;
                }
                if line[slot * 6 + 5] != 0 {
                    counts.insert(index * 10 + slot as u64, line[slot * 6 + 5]);
                }
            }
        }
        prop_assert_eq!(counts, recount);
    }

    #[test]
    fn the_rivals_counts_are_those_of_a_recount(writes in writes()) {
        for (name, digest, per_bucket) in [("dedup-sha1", 20, 2), ("dewrite", 4, 6)] {
            let mut rig = written(name, &writes);
            rig.controller.flush(&mut rig.plan);
            let mut recount: HashMap<u64, u8> = HashMap::new();
            for line in table(&rig, "mapping") {
                for place in (0..12).filter_map(|slot| number(&line, slot * 5)) {
                    *recount.entry(place).or_default() += 1;
                }
            }
            let mut counts: HashMap<u64, u8> = HashMap::new();
            for line in table(&rig, "fingerprints") {
                for slot in 0..per_bucket {
                    let from = slot * (digest + 6) + digest;
                    if let Some(place) = number(&line, from) {
                        counts.insert(place, line[from + 5]);
                    }
                }
            }
            prop_assert_eq!(counts, recount);
        }
    }
}

#[test]
fn without_comparing_a_collision_loses_data() {
    for (verify, lost) in [(true, 0), (false, 1)] {
        let mut settings = Settings::default();
        settings.set(&KEPT, 1);
        settings.set(&VERIFY, verify);
        let mut rig = Rig::new("dedup-sha1", &settings, 1024);
        for line in 0..300 {
            rig.write(line, &content(line as u16));
        }
        let wrong = (0..300).filter(|line| rig.read(*line) != Some(content(*line as u16)));
        assert_eq!(
            wrong.count().min(1),
            lost,
            "300 contents do not have 300 first bytes"
        );
        assert_eq!(rig.figure("collisions") > 0.0, verify);
    }
}

/// Check bits are linear: the balanced code gives all ones the check bits of all zeros.
#[test]
fn each_policy_meets_a_collision_in_its_own_way() {
    let ones_then_zeros = [[0xff; 64], [0; 64]];
    for (collision, duplicates) in [
        (Collision::Keep, 2.0),    // only the zeros, which came first, are ever shared
        (Collision::Replace, 0.0), // each drives the other out
        (Collision::Multi, 4.0),
    ] {
        let mut settings = Settings::default();
        settings.set(&MATRIX, crate::ecc::Matrix::HsiaoOpenTitan);
        settings.set(&COLLISION, collision);
        let mut rig = Rig::new("esd", &settings, 64);
        rig.write(0, &[0; 64]);
        let later = (1..).zip(ones_then_zeros.iter().cycle().take(5));
        for (line, data) in later {
            rig.write(line, data);
        }
        assert_eq!(rig.figure("duplicate_writes"), duplicates, "{collision:?}");
        assert!(rig.figure("collisions") > 0.0);
    }
}

#[test]
fn a_full_count_means_a_fresh_copy() {
    let mut settings = Settings::default();
    settings.set(&REFER_MAX, 3);
    let mut rig = Rig::new("esd", &settings, 2048);
    for line in 0..9 {
        rig.write(line, &content(1));
    }
    assert_eq!(rig.figure("saturated_rewrites"), 2.0);
    assert_eq!(rig.figure("duplicate_writes"), 6.0);

    let mut rig = Rig::new("dewrite", &settings, 2048);
    for line in 0..300 {
        rig.write(line, &content(1));
    }
    assert_eq!(rig.figure("duplicate_writes"), 298.0); // 255 lines share one copy, 45 the next
    assert_eq!(rig.figure("leaked_lines"), 1.0);
}

#[test]
fn the_papers_reading_leaks_what_the_counted_one_reuses() {
    for (reclaim, leaked) in [(Reclaim::Paper, 99.0), (Reclaim::Counted, 0.0)] {
        let mut settings = Settings::default();
        settings.set(&RECLAIM, reclaim);
        let mut rig = Rig::new("esd", &settings, 256);
        for seed in 0..100 {
            rig.write(0, &content(seed));
        }
        assert_eq!(rig.figure("leaked_lines"), leaked);
        assert_eq!(rig.read(0), Some(content(99)));
    }
}

#[test]
fn a_freed_place_is_not_shared_whenever_its_entry_is_given_up() {
    for forget in [Forget::AtOnce, Forget::OnCompare] {
        let mut settings = Settings::default();
        settings.set(&FORGET, forget);
        let mut rig = Rig::new("esd", &settings, 256);
        rig.write(0, &content(1));
        rig.write(0, &content(2)); // nothing holds the first content any more, but its cells do
        rig.write(1, &content(1));
        rig.write(2, &content(1));
        rig.write(1, &content(3));
        rig.write(3, &content(4));
        assert_eq!(rig.figure("duplicate_writes"), 1.0, "{forget:?}");
        for (line, seed) in [(0, 2), (1, 3), (2, 1), (3, 4)] {
            assert_eq!(rig.read(line), Some(content(seed)), "{forget:?}");
        }
    }
}

#[test]
fn contents_from_before_fill_the_index_and_are_nobodys() {
    for name in ["dedup-sha1", "dewrite", "dedup-sha1-sound", "dewrite-sound"] {
        let overflowing = |past: u64| {
            let mut settings = Settings::default();
            settings.set(&PAST, past);
            let mut rig = Rig::new(name, &settings, LINES * 2);
            for line in 0..LINES {
                rig.write(line, &content(line as u16 % 20));
            }
            assert_eq!(rig.figure("duplicate_writes"), 40.0, "{name}, {past}");
            rig.restart();
            for line in 0..LINES {
                let held = rig.read(line);
                assert_eq!(held, Some(content(line as u16 % 20)), "{name}, {past}");
            }
            let index = table(&rig, INDEX);
            index.iter().filter(|bucket| bucket[63] > 0).count()
        };
        assert!(overflowing(90) > 2 * overflowing(0), "{name}");
    }
}

#[test]
fn log_lines_are_never_shared() {
    for name in ["esd", "dedup-sha1", "dewrite"] {
        let mut rig = Rig::new(name, &Settings::default(), 64);
        for line in 0..5 {
            rig.write_as(
                line,
                &content(1),
                super::Class::Log,
                super::Persist::Relaxed,
            );
        }
        assert_eq!(rig.figure("duplicate_writes"), 0.0);
    }
}

#[test]
fn metadata_are_what_a_line_has_in_the_tables_and_what_entries_are_in_use() {
    // Ten lines, four contents: a mapping for each line; inverse and index entries, or counts, for each
    // content; DeWrite's ten bits.
    let expected = [
        ("dedup-sha1", 5.0 + 5.0 + 26.0, 5 * 10 + (5 + 26) * 4),
        ("dewrite", 16.375, 5 * 10 + (5 + 10) * 4 + 2),
        ("esd", 6.4, 5 * 10 + 4),
    ];
    for (name, per_line, in_use) in expected {
        let writes: Vec<(u64, u16)> = (0..10).map(|line| (line, line as u16 % 4)).collect();
        let rig = written(name, &writes);
        assert_eq!(rig.figure("metadata_bytes_per_line"), per_line, "{name}");
        assert_eq!(rig.figure("metadata_bytes"), 10.0 * per_line, "{name}");
        assert_eq!(
            rig.figure("metadata_bytes_in_use"),
            f64::from(in_use),
            "{name}"
        );
    }
}
