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
use super::mapping::esd::{AMT_POLICY, COLLISION, FORGET, MATRIX, RECLAIM, REFER_MAX};
use super::mapping::full_dedup::KEPT;
use super::{Class, Persist};
use crate::line::{Line, Place};
use crate::settings::{CacheParams, Key, Settings, Value, Word};

/// One request: a line, and what is written to it (`None`: it is read).
type TestRequest = (u64, Option<(u16, bool, bool)>);

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

fn requests() -> impl Strategy<Value = Vec<TestRequest>> {
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
        any_of(&FORGET),
        prop::sample::select(vec![3, 255]),
    );
    let all = (esd, any::<bool>(), any::<bool>(), 1..=2usize);
    all.prop_map(|(esd, small, encrypted, digest_bytes)| {
        let mut settings = Settings::default();
        let (matrix, collision, policy, amt_policy, reclaim, forget, refer_max) = esd;
        for (name, word) in [matrix, collision, policy, amt_policy, reclaim, forget] {
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
fn reads_give_what_was_written(name: &'static str, settings: &Settings, requests: &[TestRequest]) {
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

#[test]
fn a_tree_over_counters_that_are_not_there_is_refused_with_a_remedy() {
    use super::integrity::{LEAVES, Leaves};
    let mut settings = Settings::default();
    settings.set(&LEAVES, Leaves::Counters);
    let built = |name| {
        let mut layout = crate::medium::layout::Layout::new(64);
        super::designs::build(name, &settings, &mut layout).map(|_| ())
    };
    for (design, remedy) in [
        (
            "co-located@bonsai",
            "in lines of their own; take fca or split",
        ),
        (
            "identity+no-encryption@plp",
            "in lines of their own; take fca or split",
        ),
        ("ideal@triad", "from a forged one; take fca or split"),
        ("sca@bonsai", "from a forged one; take fca or split"),
        (
            "identity+per-line@plp",
            "from a forged one; take fca or split",
        ),
        ("sca@osiris", "take bonsai"),
        ("sca@sgx-sound", "take bonsai"),
    ] {
        let Err(error) = built(design) else {
            panic!("{design} stands")
        };
        let text = error.to_string();
        let said = format!("the design \"{design}\" cannot stand with integrity.leaves=counters: ");
        assert!(text.starts_with(&said) && text.contains(remedy), "{text}");
        assert!(text.contains("integrity.leaves=own-versions"), "{text}");
    }
    for design in ["fca@bonsai", "sca@mac", "sca", "identity+split@plp"] {
        built(design).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn split_counters_are_refused_under_what_settles_no_groups() {
    let settings = Settings::default();
    let built = |name: &str| {
        let mut layout = crate::medium::layout::Layout::new(64);
        super::designs::build(name, &settings, &mut layout).map(|_| ())
    };
    for scheme in ["mac", "merkle", "sgx", "sgx-sound"] {
        let design = format!("identity+split@{scheme}");
        let Err(error) = built(&design) else {
            panic!("{design} stands")
        };
        let text = error.to_string();
        let said = format!("the design \"{design}\" cannot stand with counters that lines share: ");
        let names = text.contains(&format!("and {scheme} would write"));
        assert!(
            text.starts_with(&said) && names && text.contains("take bonsai"),
            "{text}"
        );
    }
    for scheme in [
        "none",
        "bonsai",
        "osiris",
        "anubis",
        "plp",
        "anubis-asit",
        "phoenix",
        "star",
        "bmf",
    ] {
        built(&format!("esd-sound+split@{scheme}")).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn macs_beside_lines_are_refused_where_something_lies_there() {
    use super::integrity::{MAC_PLACE, MacPlace};
    let mut settings = Settings::default();
    settings.set(&MAC_PLACE, MacPlace::Beside);
    let built = |name| {
        let mut layout = crate::medium::layout::Layout::new(64);
        super::designs::build(name, &settings, &mut layout).map(|_| ())
    };
    for (design, why) in [
        ("co-located@bonsai", "its encryption counter"),
        ("ideal@bonsai", "the counter that it was written under"),
        ("deuce@sgx-sound", "its encryption counter and bits"),
        ("esd+fca@osiris", "its ECC"),
        ("sca@merkle", "needs the MACs in a region"),
        ("sca@mac", "needs the MACs in a region"),
    ] {
        let Err(error) = built(design) else {
            panic!("{design} stands")
        };
        let text = error.to_string();
        let said =
            format!("the design \"{design}\" cannot stand with integrity.mac_place=beside: ");
        assert!(text.starts_with(&said) && text.contains(why), "{text}");
        assert!(text.contains("integrity.mac_place=region"), "{text}");
    }
    for design in [
        "sca@osiris",
        "co-located",
        "fca@phoenix",
        "fca@star",
        "fca@scue",
        "dewrite-sound+fca@plp",
        "fca@bmf",
    ] {
        built(design).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Checks reads against a map, with minor numbers that overflow soon or never: a page that is encrypted again reads as
/// before, in a later life as well.
#[test]
fn lines_under_split_counters_read_as_they_were_written() {
    for bits in [1, 2, 7] {
        let mut settings = Settings::default();
        settings.set(&super::encryption::split::MINOR_BITS, bits);
        let mut rig = Rig::new("identity+split", &settings, 200);
        let mut written = std::collections::BTreeMap::new();
        let mut random = 1u64;
        for number in 0..2000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let line = if random >> 62 == 0 {
                70
            } else {
                (random >> 40) % 200
            };
            if random >> 33 & 3 == 0 {
                let known = written.get(&line).copied();
                assert_eq!(rig.read(line), known, "{bits} {line}");
                continue;
            }
            let content: Line = std::array::from_fn(|byte| (number * 3 + byte as u64) as u8);
            rig.write(line, &content);
            written.insert(line, content);
            if number == 1000 {
                assert!(rig.figure("page_encryptions") > 0.0 || bits == 7);
                rig.restart();
            }
        }
        assert!(rig.figure("page_encryptions") > 0.0, "{bits}");
        assert_eq!(rig.figure("counter_bytes"), written.len() as f64);
        for (line, content) in written {
            assert_eq!(rig.read(line), Some(content), "{bits} {line}");
        }
    }
}

/// A timed recovery counts the lines that have a counter; one that nobody times says nothing of them.
#[test]
fn counters_are_counted_after_a_restart_if_anybody_reads_figures() {
    for (design, each) in [
        ("sca", 8),
        ("ideal", 8),
        ("co-located", 8),
        ("deuce", 8),
        ("identity+split", 1),
    ] {
        let mut rig = Rig::new(design, &Settings::default(), 64);
        for line in 0..5 {
            rig.write(line, &[line as u8 + 1; 64]);
        }
        rig.restart();
        assert_eq!(rig.figure("counter_bytes"), f64::from(5 * each), "{design}");
        rig.plan.steps.timed = false;
        rig.restart();
        let figure = rig.controller.figures().named("counter_bytes").number();
        assert_eq!(figure, None, "{design}");
    }
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
