//! What every design must keep, against a plain map: reads give what was written, whatever the
//! options and however small the caches; the secret stays one; a fresh controller reads it all.
//! Left out: time, which is the engine's, and each design's own figures (beside the design).

use std::collections::HashMap;

use proptest::prelude::*;

use super::designs::Stack;
use super::encryption::ENABLED;
use super::harness::Rig;
use super::layers::Counters;
use super::mapping::efit::{POLICY, REFRESH_EVERY};
use super::mapping::esd::{AMT_POLICY, COLLISION, MATRIX, RECLAIM, REFER_MAX};
use super::mapping::full_dedup::KEPT;
use super::{Class, Persist};
use crate::line::{Line, Place};
use crate::settings::{CacheParams, Key, Settings, Value, Word};

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

fn tiny(settings: &mut Settings) {
    for key in super::designs::caches() {
        let (bytes, ways) = (key.entry_bytes * 2, 2);
        settings.set_cache(key, CacheParams { bytes, ways });
    }
    settings.set(&REFRESH_EVERY, 50);
}

fn any_of<T: Word>(key: &'static Key<T>) -> impl Strategy<Value = (&'static str, Value)> {
    let words = prop::sample::select(T::WORDS);
    words.prop_map(|word| (key.row.name, Value::Word(word)))
}

fn options() -> impl Strategy<Value = Settings> {
    let esd = (
        any_of(&MATRIX),
        any_of(&COLLISION),
        any_of(&POLICY),
        any_of(&AMT_POLICY),
        any_of(&RECLAIM),
        prop::sample::select(vec![3, 255]),
    );
    let all = (esd, any::<bool>(), any::<bool>(), 1..=2usize);
    all.prop_map(|(esd, small, encrypted, digest_bytes)| {
        let mut settings = Settings::default();
        let (matrix, collision, policy, amt_policy, reclaim, refer_max) = esd;
        for (name, word) in [matrix, collision, policy, amt_policy, reclaim] {
            settings.put(name, word);
        }
        settings.set(&REFER_MAX, refer_max);
        settings.set(&ENABLED, encrypted);
        settings.set(&KEPT, digest_bytes);
        if small {
            tiny(&mut settings);
        }
        settings
    })
}

/// Runs the requests and checks every read; then, after a restart, every line.
fn reads_give_what_was_written(name: &'static str, settings: &Settings, requests: &[Request]) {
    // `paper` never uses a place again, so the medium must have one for every write.
    let mut rig = Rig::new(name, settings, LINES + 400);
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
    #![proptest_config(sardonyx_property::cases(96))]

    #[test]
    fn every_design_gives_back_what_it_got(settings in options(), requests in requests()) {
        for design in super::designs::all() {
            reads_give_what_was_written(design.name, &settings, &requests);
        }
    }

    #[test]
    fn a_full_medium_still_works(writes in prop::collection::vec((0..8u64, 0..99u16), 1..300)) {
        for design in super::designs::all() {
            let mut rig = Rig::new(design.name, &Settings::default(), 8);
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
        let mut rig = Rig::new(design.name, &Settings::default(), 64);
        let mut seen = Vec::new();
        for other in [[1; 64], [2; 64], [3; 64]] {
            rig.write(7, &secret);
            seen.push(rig.plan.peek(Place(7)).unwrap());
            rig.write(7, &other);
        }
        let plain = seen.contains(&secret);
        let policy = Stack::named(design.name).unwrap().policy;
        assert_eq!(plain, policy.counters == Counters::None, "{}", design.name);
        if design.name == "baseline" {
            assert!(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
        }
    }
}

#[test]
fn an_unknown_design_is_told_what_there_is() {
    let mut layout = crate::medium::layout::Layout::new(64);
    let Err(unknown) = super::designs::build("edd", &Settings::default(), &mut layout) else {
        panic!("there is no such design")
    };
    let text = unknown.to_string();
    assert!(
        text.contains("did you mean \"esd\"?") && text.contains("baseline"),
        "{text}"
    );
}

/// A name of a design that is a mapping's as well is that mapping, whatever the policy.
#[test]
fn one_name_means_one_thing() {
    for design in super::designs::all() {
        let stack = Stack::named(design.name).unwrap();
        let names = [stack.mapping.about.name, stack.policy.about.name];
        let layers = super::designs::mappings().map(|layer| layer.about.name);
        let layers = layers.chain(super::designs::policies().map(|layer| layer.about.name));
        for layer in layers.filter(|layer| *layer == design.name) {
            assert!(names.contains(&layer), "{layer} is not what the design has");
        }
        let others = super::designs::all().filter(|other| other.name == design.name);
        assert_eq!(others.count(), 1, "{}", design.name);
    }
}

/// Nobody but the layer's own file knows it by its name.
#[test]
fn no_layer_is_looked_up_by_matching_its_name() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut folders = vec![std::path::PathBuf::from(source)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            let mut rooms_of_layers = ["mapping", "encryption", "logging"].into_iter();
            if path.is_dir() {
                let of_layers =
                    rooms_of_layers.any(|room| name.ends_with(&format!("controller/{room}")));
                folders.extend((!of_layers).then_some(path));
                continue;
            }
            if !name.ends_with(".rs") || name.contains("test") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap().lines();
            let code: Vec<&str> = code.filter(|l| !l.trim_start().starts_with("//")).collect();
            let layers = super::designs::mappings().map(|layer| layer.about.name);
            // `esd` is the machine's name, too, and `identity` how a host's addresses are taken.
            let others = ["esd", "identity"];
            for layer in layers.filter(|layer| !others.contains(layer)) {
                let quoted = format!("\"{layer}\"");
                let matched = code.iter().find(|line| line.contains(&quoted));
                assert!(matched.is_none(), "{name}: {matched:?}");
            }
        }
    }
}
