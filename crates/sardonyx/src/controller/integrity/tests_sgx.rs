//! The counter tree against a model of its own: how often each line was written, and plain sums over that. Nothing
//! of the scheme's code is used but where regions lie and the keys.

use std::collections::BTreeMap;
use std::hash::Hasher;

use proptest::prelude::*;
use siphasher::sip::SipHasher24;

use super::super::harness::Rig;
use crate::controller::designs;
use crate::line::{Line, Place};
use crate::settings::{CacheParams, Settings};

fn hash(key: &[u8; 16], parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(&parts.concat());
    match hasher.finish() {
        0 => 1,
        hash => hash,
    }
}

fn bytes(rig: &Rig, place: u64) -> Line {
    rig.plan.peek(Place(place)).unwrap_or([0; 64])
}

fn node(level: u64, index: usize, counters: &[u64]) -> Line {
    let mut line = [0; 64];
    for (slot, counter) in counters.iter().enumerate() {
        for byte in 0..7 {
            line[slot * 7 + byte] = (counter >> (8 * byte)) as u8;
        }
    }
    let above: u64 = counters.iter().sum();
    if above > 0 {
        let (level, index) = (level.to_le_bytes(), (index as u64).to_le_bytes());
        let parts: &[&[u8]] = &[&level, &index, &above.to_le_bytes(), &line[..56]];
        let mac = hash(b"sardonyx: counte", parts);
        line[56..].copy_from_slice(&mac.to_le_bytes());
    }
    line
}

/// Compares all that integrity keeps, computed from the medium's versions. Returns those versions by the line's number.
fn compare(rig: &Rig) -> Vec<u64> {
    let all = rig.layout.regions();
    let own = all.iter().position(|region| region.name == "macs").unwrap();
    let (macs, versions) = (&all[own], &all[own + 1]);
    assert_eq!(versions.name, "versions");
    assert!(macs.lines == 0 || macs.lines == versions.lines);
    // The lowest ten bits of a MAC's word are its version's, under star.
    let has_low_bits = all.iter().any(|region| region.name == "stale-nodes");
    let byte = |number: usize, byte: usize| {
        bytes(rig, versions.first.0 + number as u64 / 8)[number % 8 * 7 + byte]
    };
    let version = |number| {
        (0..7)
            .map(|at| u64::from(byte(number, at)) << (8 * at))
            .sum()
    };
    let counted: Vec<u64> = (0..8 * versions.lines as usize).map(version).collect();

    let mut number = 0;
    let data = std::iter::once((0, rig.layout.data_lines()));
    for (first, lines) in data.chain(all[..own].iter().map(|r| (r.first.0, r.lines))) {
        for place in first..first + lines {
            let held = rig.plan.peek(Place(place));
            assert_eq!(counted[number] > 0, held.is_some(), "place {place}");
            let beside = rig.plan.peek_sideband(Place(place));
            let covered = beside.filter(|_| macs.lines > 0);
            let (flag, covered) = (u8::from(covered.is_some()), covered.unwrap_or_default());
            let right = held.map_or(0, |held| {
                let version = counted[number].to_le_bytes();
                let parts: &[&[u8]] = &[&place.to_le_bytes(), &version, &held, &[flag], &covered];
                match has_low_bits {
                    true => hash(b"sardonyx: newest", parts) & !0x3ff | counted[number] & 0x3ff,
                    false => hash(b"sardonyx: newest", parts),
                }
            });
            let kept: [u8; 8] = match macs.lines {
                0 => beside.unwrap_or_default(),
                _ => bytes(rig, macs.first.0 + number as u64 / 8)[number % 8 * 8..][..8]
                    .try_into()
                    .unwrap(),
            };
            assert_eq!(kept, right.to_le_bytes(), "MAC of {place}");
            number += 1;
        }
        number = number.next_multiple_of(8);
    }

    let mut below = counted.clone();
    let levels = all[own + 1..]
        .iter()
        .filter(|region| !["integrity-root", "shadow-nodes", "stale-nodes"].contains(&region.name));
    let mut level = 0;
    for region in levels {
        let nodes: Vec<&[u64]> = below.chunks(8).collect();
        assert_eq!(nodes.len() as u64, region.lines, "{}", region.name);
        for (index, counters) in nodes.iter().enumerate() {
            let right = node(level, index, counters);
            assert_eq!(
                bytes(rig, region.first.0 + index as u64),
                right,
                "{} {index}",
                region.name
            );
        }
        below = nodes.iter().map(|counters| counters.iter().sum()).collect();
        level += 1;
    }
    assert!(level >= 3, "{level} levels");
    let register = bytes(rig, rig.layout.region("integrity-root").unwrap().first.0);
    for (slot, sum) in below.iter().enumerate() {
        assert_eq!(register[slot * 8..][..8], sum.to_le_bytes(), "the register");
    }
    counted
}

proptest! {
    #![proptest_config(sardonyx_property::cases(16))]
    #[test]
    fn versions_count_writes_and_counters_are_their_sums(
        requests in prop::collection::vec((0..400u64, any::<u8>(), any::<bool>()), 1..300),
        (small, beside) in (any::<bool>(), any::<bool>()),
    ) {
        for design in [
            "identity+no-encryption@sgx", "identity+no-encryption@sgx-sound", "sca@sgx", "sca@sgx-sound",
            "esd-sound+fca@sgx-sound", "co-located@sgx-sound", "identity+no-encryption@anubis-asit", "sca@anubis-asit",
            "esd-sound+fca@anubis-asit", "identity+no-encryption@phoenix", "sca@phoenix", "esd-sound+fca@phoenix",
            "identity+no-encryption@star", "sca@star", "esd-sound+fca@star", "identity+no-encryption@scue", "sca@scue",
            "esd-sound+fca@scue",
        ] {
            let mut settings = Settings::default();
            if beside {
                settings.set(&super::MAC_PLACE, super::MacPlace::Beside);
            }
            if crate::controller::designs::Stack::under(design, &settings).is_err() {
                continue; // something else lies beside its lines
            }
            if small {
                for key in designs::caches() {
                    let (bytes, ways) = (key.entry_bytes * 2, 2);
                    settings.set_cache(key, CacheParams { bytes, ways });
                }
            }
            let mut rig = Rig::new(design, &settings, 640);
            let mut written: BTreeMap<u64, u64> = BTreeMap::new();
            for (line, content, write) in &requests {
                match write {
                    true => {
                        rig.write(*line, &[*content; 64]);
                        *written.entry(*line).or_default() += 1;
                    }
                    false => drop(rig.read(*line)),
                }
            }
            rig.controller.flush(&mut rig.plan);
            prop_assert!(rig.plan.refused.is_empty(), "{design}: {:?}", rig.plan.refused);
            let counted = compare(&rig);
            if design.starts_with("identity+no-encryption") {
                for (line, counted) in counted[..640].iter().enumerate() {
                    let times = written.get(&(line as u64)).copied().unwrap_or(0);
                    prop_assert_eq!(*counted, times, "line {}", line);
                }
            }
            rig.restart();
            prop_assert!(rig.plan.refused.is_empty(), "{design}, again: {:?}", rig.plan.refused);
            prop_assert!(compare(&rig).iter().sum::<u64>() >= counted.iter().sum());
        }
    }
}
