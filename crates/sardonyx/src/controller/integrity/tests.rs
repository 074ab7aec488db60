//! Every MAC, every node and the root against a model of its own: a plain recursive tree over the bytes that a run
//! has left, in which nothing of the schemes' code is used but where regions lie and the keys.

use std::hash::Hasher;

use proptest::prelude::*;
use siphasher::sip::SipHasher24;

use super::super::harness::Rig;
use crate::controller::designs;
use crate::line::{Line, Place};
use crate::medium::layout::Region;
use crate::settings::{CacheParams, Settings};

/// SipHash-2-4 of `parts` one after the other. It is never 0, which stands for "nothing".
fn hash(key: &[u8; 16], parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(&parts.concat());
    match hasher.finish() {
        0 => 1,
        hash => hash,
    }
}

fn bytes(rig: &Rig, place: u64) -> Option<Line> {
    rig.plan.peek(Place(place))
}

/// The place of each protected line in the order of their MACs: data first, then each region before the MACs. A region
/// begins where a line of MACs does, or one of `together` versions.
fn protected(rig: &Rig, before: &[Region], together: usize) -> Vec<Option<u64>> {
    let mut places = Vec::new();
    let data = std::iter::once((0, rig.layout.data_lines()));
    for (first, lines) in data.chain(before.iter().map(|r| (r.first.0, r.lines))) {
        places.extend((first..first + lines).map(Some));
        places.resize(places.len().next_multiple_of(together), None);
    }
    places
}

/// Version `slot` of a line of 64 or of eight, bit by bit.
fn version(line: &Line, slot: usize, together: usize) -> u64 {
    let bits = |from: usize, count: usize| {
        let bit = |at: usize| u64::from(line[at / 8] >> (at % 8) & 1);
        (0..count).fold(0, |all, number| all | bit(from + number) << number)
    };
    match (together, bits(64 + 7 * (slot % 64), 7)) {
        (8, _) => bits(64 * slot, 64),
        (_, 0) => 0,
        (_, minor) => bits(0, 64) * 128 + minor,
    }
}

/// Compares the MACs under the versions that lie in `region`, or of data under the counters there. Returns how many
/// lines have one.
fn versioned(
    rig: &Rig,
    before: &[Region],
    region: &Region,
    counters: Option<&Region>,
) -> (Vec<u64>, usize) {
    let together = if region.name == "versions" { 8 } else { 64 };
    let before: Vec<Region> = before
        .iter()
        .filter(|one| Some(*one) != counters)
        .cloned()
        .collect();
    let places = protected(rig, &before, together);
    let data = match counters {
        Some(_) => (rig.layout.data_lines() as usize).next_multiple_of(together),
        None => 0,
    };
    let mut counted = 0;
    let mac = |(number, place): (usize, &Option<u64>)| {
        let version = match counters.filter(|_| number < data) {
            Some(counters) if counters.lines * 8 < rig.layout.data_lines() => {
                let line = bytes(rig, counters.first.0 + number as u64 / 64);
                line.map_or(0, |line| version(&line, number % 64, 64))
            }
            Some(counters) => words(bytes(rig, counters.first.0 + number as u64 / 8))[number % 8],
            None => {
                let number = number - data;
                let line = bytes(rig, region.first.0 + (number / together) as u64);
                line.map_or(0, |line| version(&line, number % together, together))
            }
        };
        let held = place.and_then(|place| bytes(rig, place));
        assert_eq!(
            version == 0,
            held.is_none(),
            "{place:?} has version {version}"
        );
        let (Some(place), Some(held)) = (*place, held) else {
            return 0;
        };
        counted += 1;
        let macs_beside = rig.layout.region("macs").unwrap().lines == 0;
        let beside = rig.plan.peek_sideband(Place(place));
        let covered = beside.filter(|_| !macs_beside);
        let (flag, covered) = (u8::from(covered.is_some()), covered.unwrap_or_default());
        let parts: &[&[u8]] = &[
            &place.to_le_bytes(),
            &version.to_le_bytes(),
            &held,
            &[flag],
            &covered,
        ];
        let mac = hash(b"sardonyx: newest", parts);
        if macs_beside {
            assert_eq!(beside, Some(mac.to_le_bytes()), "beside {place}");
        }
        mac
    };
    (places.iter().enumerate().map(mac).collect(), counted)
}

/// Compares everything of a Bonsai tree: MACs under versions, and a tree over the lines of these, or over the
/// encryption's counters, which are the versions of data and come after the others. Returns how many lines that were.
fn compare_bonsai(rig: &Rig, over_counters: bool) -> usize {
    let all = rig.layout.regions();
    let own = all.iter().position(|region| region.name == "macs").unwrap();
    let versions = all
        .iter()
        .find(|region| region.name.starts_with("versions"))
        .unwrap();
    let counters = rig.layout.region("counters").filter(|_| over_counters);
    assert_eq!(counters.is_some(), over_counters);
    let (macs, mut compared) = versioned(rig, &all[..own], versions, counters);
    let lines = macs.chunks(8).enumerate().take(all[own].lines as usize);
    for (index, right) in lines {
        let kept = words(bytes(rig, all[own].first.0 + index as u64));
        assert_eq!(kept[..right.len()], *right, "MACs {index}");
    }
    // The lowest level of the tree is not computed: it is what has been counted.
    let counted = (0..versions.lines).flat_map(|index| words(bytes(rig, versions.first.0 + index)));
    let mut counted: Vec<u64> = counted.collect();
    if let Some(counters) = counters {
        counted.resize(counted.len().next_multiple_of(64), 0);
        let lines = (0..counters.lines).map(|index| bytes(rig, counters.first.0 + index));
        counted.extend(lines.flat_map(words));
    }
    let nodes = all
        .iter()
        .filter(|region| region.name.starts_with("nodes-"));
    let mut top = 1;
    for (level, region) in nodes.enumerate() {
        for index in 0..region.lines {
            let kept = words(bytes(rig, region.first.0 + index));
            let right = node(&counted, level as u64 + 1, index as usize);
            assert_eq!(kept, right, "{} {index}", region.name);
            compared += 1;
        }
        top = level as u64 + 2;
    }
    let register = rig.layout.region("integrity-root").unwrap();
    let kept = words(bytes(rig, register.first.0));
    assert_eq!(kept, node(&counted, top, 0), "the root");
    assert!(top >= 2, "{top} levels");
    compared
}

/// The MACs as they should be, in the order of the region: of data first, then of each region before it.
fn macs(rig: &Rig, before: &[Region]) -> Vec<u64> {
    let mut macs = Vec::new();
    let data = std::iter::once((0, rig.layout.data_lines()));
    for (first, lines) in data.chain(before.iter().map(|r| (r.first.0, r.lines))) {
        for place in first..first + lines {
            let beside = rig.plan.peek_sideband(Place(place));
            let (flag, beside) = (u8::from(beside.is_some()), beside.unwrap_or_default());
            macs.push(bytes(rig, place).map_or(0, |line| {
                hash(
                    b"sardonyx: a MAC!",
                    &[&place.to_le_bytes(), &line, &[flag], &beside],
                )
            }));
        }
        macs.resize(macs.len().next_multiple_of(8), 0);
    }
    macs
}

/// The eight hashes in line `index` of `level`, from the MACs up, by recursion.
fn node(macs: &[u64], level: u64, index: usize) -> [u64; 8] {
    std::array::from_fn(|slot| {
        let below = index * 8 + slot;
        if level == 0 {
            return macs.get(below).copied().unwrap_or(0);
        }
        if below * 8usize.pow(level as u32) >= macs.len() {
            return 0;
        }
        let line = node(macs, level - 1, below);
        let line: Vec<u8> = line.iter().flat_map(|word| word.to_le_bytes()).collect();
        match line.iter().all(|byte| *byte == 0) {
            true => 0,
            false => hash(
                b"sardonyx: nodes!",
                &[
                    &(level - 1).to_le_bytes(),
                    &(below as u64).to_le_bytes(),
                    &line,
                ],
            ),
        }
    })
}

fn words(line: Option<Line>) -> [u64; 8] {
    let line = line.unwrap_or([0; 64]);
    std::array::from_fn(|word| u64::from_le_bytes(line[word * 8..][..8].try_into().unwrap()))
}

fn compare(rig: &Rig, trees: bool) -> usize {
    let all = rig.layout.regions();
    let own = all.iter().position(|region| region.name == "macs").unwrap();
    let macs = macs(rig, &all[..own]);
    let mut compared = 0;
    let levels = all[own..]
        .iter()
        .filter(|region| region.name != "integrity-root");
    let mut top = 0;
    for (level, region) in levels.enumerate() {
        for index in 0..region.lines {
            let kept = words(bytes(rig, region.first.0 + index));
            assert_eq!(
                kept,
                node(&macs, level as u64, index as usize),
                "{} {index}",
                region.name
            );
            compared += 1;
        }
        top = level as u64 + 1;
    }
    if trees {
        let register = all
            .iter()
            .find(|region| region.name == "integrity-root")
            .unwrap();
        assert_eq!(
            words(bytes(rig, register.first.0)),
            node(&macs, top, 0),
            "the root"
        );
        assert!(top >= 3, "{top} levels");
    }
    compared
}

/// Schemes whose nodes in the medium are right when all is written back, with stacks that they stand on.
const BONSAI: &[&str] = &[
    "sca@bonsai",
    "sca@bonsai-lazy",
    "sca@bonsai-lazy-sound",
    "esd-sound+fca@bonsai",
    "co-located@bonsai-lazy-sound",
    "identity+no-encryption@bonsai",
    "sca@supermem",
    "sca@osiris",
    "esd-sound+fca@osiris",
    "sca@triad",
    "sca@anubis",
    "esd-sound+fca@anubis",
    "sca@plp",
    "esd-sound+fca@plp",
    "sca@bmf",
    "esd-sound+fca@bmf",
];

/// Schemes, and stacks below them, in which the tree stands over the encryption's counters.
const OVER_COUNTERS: &[&str] = &[
    "fca@bonsai",
    "fca@bonsai-lazy",
    "identity+split@bonsai-lazy-sound",
    "esd-sound+fca@supermem",
    "fca@triad",
    "esd-sound+fca@plp",
    "identity+split@bonsai",
    "identity+split@triad",
    "fca@bmf",
    "identity+split@bmf",
];

/// Schemes whose MACs may lie beside the lines, over policies that have nothing there.
const BESIDE: &[&str] = &[
    "sca@bonsai",
    "fca@bonsai-lazy-sound",
    "sca@supermem",
    "fca@osiris",
    "sca@anubis",
    "identity+split@triad",
    "identity+split@plp",
    "sca@bmf",
];

fn shrunk() -> Settings {
    let mut settings = Settings::default();
    for key in designs::caches() {
        let (bytes, ways) = (key.entry_bytes * 2, 2);
        settings.set_cache(key, CacheParams { bytes, ways });
    }
    settings.set(&super::bmf::ROOTS, 24);
    settings.set(&super::bmf::PRUNE_AFTER, 1);
    settings
}

proptest! {
    #![proptest_config(sardonyx_property::cases(6))]
    #[test]
    fn versions_nodes_and_root_of_bonsai_trees_are_those_of_a_plain_recursive_tree(
        requests in prop::collection::vec((0..400u64, any::<u8>(), 0..8u8), 1..300),
        (small, bits) in (any::<bool>(), prop_oneof![Just(0u64), Just(2), Just(7)]),
    ) {
        let over_counters = OVER_COUNTERS.iter().map(|design| (*design, true, false));
        let beside = BESIDE.iter().flat_map(|design| [(*design, false, true), (*design, true, true)]);
        let all = BONSAI.iter().map(|design| (*design, false, false)).chain(over_counters).chain(beside);
        for (design, over_counters, beside) in all {
            let mut settings = if small { shrunk() } else { Settings::default() };
            settings.set(&super::versions::MINOR_BITS, bits);
            if over_counters {
                settings.set(&super::LEAVES, super::Leaves::Counters);
            }
            if beside {
                settings.set(&super::MAC_PLACE, super::MacPlace::Beside);
            }
            if over_counters && crate::controller::designs::Stack::under(design, &settings).is_err() {
                continue; // its versions have to be tried
            }
            let mut rig = Rig::new(design, &settings, 640);
            for (line, content, what) in &requests {
                match what {
                    0..3 => drop(rig.read(*line)),
                    // One line often: its minor number overflows.
                    3 => (0..50).for_each(|more| rig.write(7, &[content ^ more; 64])),
                    _ => rig.write(*line, &[*content; 64]),
                }
            }
            rig.controller.flush(&mut rig.plan);
            prop_assert!(rig.plan.refused.is_empty(), "{design}: {:?}", rig.plan.refused);
            let before = compare_bonsai(&rig, over_counters);
            rig.restart();
            prop_assert!(rig.plan.refused.is_empty(), "{design}, again: {:?}", rig.plan.refused);
            for (line, content, what) in &requests {
                match what {
                    0..4 => drop(rig.read(*line)),
                    _ => rig.write(*line, &[*content ^ 1; 64]),
                }
            }
            rig.controller.flush(&mut rig.plan);
            prop_assert!(rig.plan.refused.is_empty(), "{design}, later: {:?}", rig.plan.refused);
            prop_assert!(compare_bonsai(&rig, over_counters) >= before);
        }
    }
}

proptest! {
    #![proptest_config(sardonyx_property::cases(24))]
    #[test]
    fn macs_nodes_and_root_are_those_of_a_plain_recursive_tree(
        requests in prop::collection::vec((0..400u64, any::<u8>(), any::<bool>()), 1..300),
        small in any::<bool>(),
    ) {
        for design in [
            "sca@mac", "sca@merkle", "esd-sound+fca@merkle", "co-located@merkle", "identity+no-encryption@merkle",
        ] {
            let mut settings = Settings::default();
            if small {
                for key in designs::caches() {
                    let (bytes, ways) = (key.entry_bytes * 2, 2);
                    settings.set_cache(key, CacheParams { bytes, ways });
                }
            }
            let mut rig = Rig::new(design, &settings, 640);
            for (line, content, write) in &requests {
                match write {
                    true => rig.write(*line, &[*content; 64]),
                    false => drop(rig.read(*line)),
                }
            }
            rig.controller.flush(&mut rig.plan);
            prop_assert!(rig.plan.refused.is_empty(), "{design}: {:?}", rig.plan.refused);
            prop_assert!(compare(&rig, design.ends_with("merkle")) > 80);
            rig.restart();
            prop_assert!(rig.plan.refused.is_empty(), "{design}, again: {:?}", rig.plan.refused);
            compare(&rig, design.ends_with("merkle"));
        }
    }
}
