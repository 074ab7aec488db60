//! What every design must keep, against a plain map: reads give what was written, whatever the
//! options and however small the caches; the secret stays one; a fresh controller reads it all.
//! Left out: time, which is the engine's, and each design's own figures (beside the design).

use std::collections::HashMap;

use proptest::prelude::*;

use super::harness::{Rig, params};
use super::params::{CacheParams, Collision, ControllerParams, Reclaim, Replacement};
use super::{Class, Persist};
use crate::ecc::Matrix;
use crate::line::{Line, Place};

/// One request: a line, and what is written to it (`None`: it is read).
type Request = (u64, Option<(u16, bool, bool)>);

const LINES: u64 = 48;

fn content(seed: u16) -> Line {
    let mut line = [0; 64];
    for (index, word) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // Few contents, some of them the words whose check bits are those of zeros.
        let value = match seed % 4 {
            0 => 0,
            1 if index as u16 == seed % 8 => u64::from(seed >> 3),
            2 => u64::MAX * u64::from(seed >> 2 & 1),
            _ => u64::from(seed) * 0x0101_0101,
        };
        *word = value.to_le_bytes();
    }
    line
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let write = (0..48u16, prop::bool::weighted(0.1), any::<bool>());
    let one = (0..LINES, prop::option::weighted(0.7, write));
    prop::collection::vec(one, 1..400)
}

fn tiny(params: &mut ControllerParams) {
    let cache = CacheParams {
        bytes: 128,
        ways: 2,
    };
    params.counter_mode.cache = cache;
    params.esd.amt_cache = cache;
    params.esd.efit_bytes = 14 * 6;
    params.esd.efit_ways = 2;
    params.esd.refresh_every = 50;
    params.dedup_sha1.fingerprint_cache = cache;
    params.dedup_sha1.mapping_cache = cache;
    params.dewrite.fingerprint_cache = cache;
    params.dewrite.mapping_cache = cache;
}

fn options() -> impl Strategy<Value = ControllerParams> {
    let esd = (
        prop::sample::select(vec![
            Matrix::TruncatedHamming,
            Matrix::HsiaoOpenTitan,
            Matrix::Hsiao1970,
        ]),
        prop::sample::select(vec![Collision::Keep, Collision::Replace, Collision::Multi]),
        prop::sample::select(vec![Replacement::Lrcu, Replacement::Lru]),
        prop::sample::select(vec![Replacement::Lrcu, Replacement::Lru]),
        prop::sample::select(vec![Reclaim::Counted, Reclaim::Paper]),
        prop::sample::select(vec![3, 255]),
    );
    let all = (esd, any::<bool>(), any::<bool>(), 1..=2usize);
    all.prop_map(|(esd, small, encrypted, digest_bytes)| {
        let mut params = params();
        let own = &mut params.esd;
        (
            own.matrix,
            own.collision,
            own.policy,
            own.amt_policy,
            own.reclaim,
            own.refer_max,
        ) = esd;
        params.encrypted = encrypted;
        params.dedup_sha1.digest_bytes = digest_bytes;
        if small {
            tiny(&mut params);
        }
        params
    })
}

/// Runs the requests and checks every read; then, after a restart, every line.
fn reads_give_what_was_written(
    name: &'static str,
    params: &ControllerParams,
    requests: &[Request],
) {
    // `paper` never uses a place again, so the medium must have one for every write.
    let mut rig = Rig::new(name, params, LINES + 400);
    let mut model = HashMap::new();
    for round in requests.chunks(150) {
        for (line, write) in round {
            let Some((seed, log, atomic)) = write else {
                assert_eq!(rig.read(*line), model.get(line).copied());
                continue;
            };
            let class = if *log { Class::Log } else { Class::Data };
            let order = match atomic {
                true => Persist::CounterAtomic,
                false => Persist::Relaxed,
            };
            rig.write_as(*line, &content(*seed), class, order);
            model.insert(*line, content(*seed));
        }
        rig.restart();
        for line in 0..LINES {
            assert_eq!(rig.read(line), model.get(&line).copied(), "line {line}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_design_gives_back_what_it_got(params in options(), requests in requests()) {
        for design in super::designs::all() {
            reads_give_what_was_written(design.name, &params, &requests);
        }
    }

    #[test]
    fn a_full_medium_still_works(writes in prop::collection::vec((0..8u64, 0..99u16), 1..300)) {
        for design in super::designs::all() {
            let mut rig = Rig::new(design.name, &params(), 8);
            let mut model = HashMap::new();
            for (line, seed) in &writes {
                rig.write(*line, &content(*seed * 4 + 3));
                model.insert(*line, content(*seed * 4 + 3));
            }
            for line in 0..8 {
                assert_eq!(rig.read(line), model.get(&line).copied());
            }
        }
    }
}

#[test]
fn no_plaintext_reaches_the_medium_and_no_pad_is_used_twice() {
    let secret = *b"sixty-four bytes that nobody but the processor may ever get read";
    for design in super::designs::all() {
        let mut rig = Rig::new(design.name, &params(), 64);
        let mut seen = Vec::new();
        for other in [[1; 64], [2; 64], [3; 64]] {
            rig.write(7, &secret);
            seen.push(rig.bench.newest(Place(7)).unwrap());
            rig.write(7, &other);
        }
        let plain = seen.contains(&secret);
        assert_eq!(plain, design.name == "no-encryption", "{}", design.name);
        if design.name == "baseline" {
            assert!(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
        }
    }
}

#[test]
fn an_unknown_design_is_told_what_there_is() {
    let mut layout = crate::medium::layout::Layout::new(64);
    let Err(unknown) = super::designs::build("edd", &params(), &mut layout) else {
        panic!("there is no such design")
    };
    let text = unknown.to_string();
    assert!(
        text.contains("did you mean \"esd\"?") && text.contains("baseline"),
        "{text}"
    );
}
