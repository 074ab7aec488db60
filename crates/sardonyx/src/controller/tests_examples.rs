//! The worked example of `docs/simulator/add-a-design.md`, which is compiled for tests alone: it gives back what it got, it
//! shares what is equal.

use std::collections::HashMap;
use std::sync::Once;

use super::designs::{self, AnyLayer};
use super::harness::Rig;
use super::mapping::dedup_fold::FILE;
use crate::line::Line;
use crate::settings::Settings;

fn know() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        FILE.layers
            .iter()
            .map(AnyLayer::Mapping)
            .for_each(designs::register)
    });
}

fn content(seed: u64) -> Line {
    let mut line = [0x33; 64];
    line[8..16].copy_from_slice(&seed.to_le_bytes());
    line
}

#[test]
fn the_worked_example_gives_back_what_it_got_and_shares_what_is_equal() {
    know();
    for stack in [FILE.designs[0].stack, "dedup-fold-sound+fca"] {
        let mut rig = Rig::new(stack, &Settings::default(), 128);
        let mut held: HashMap<u64, u64> = HashMap::new();
        let mut shared = 0;
        for number in 0..600 {
            let (line, seed) = (number * 7 % 60, number * number % 23);
            shared += u64::from(held.values().any(|content| *content == seed));
            rig.write(line, &content(seed));
            held.insert(line, seed);
        }
        assert_eq!(rig.figure("duplicate_writes"), shared as f64, "{stack}");
        assert!(shared > 100);
        rig.restart();
        for (line, seed) in held {
            assert_eq!(rig.read(line), Some(content(seed)), "{stack}, line {line}");
        }
    }
}
