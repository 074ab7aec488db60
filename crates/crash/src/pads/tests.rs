use std::sync::Arc;

use super::*;
use crate::words::numbers;
use sardonyx::controller::encryption::pad;
use sardonyx::line::Line;
use sardonyx::line::{Class, Logical, Persist};
use sardonyx::plan::journal::MediumWrite;
use sardonyx::plan::journal::{Domain, Event, Handled, Logged, OnChip, Sealed};
use sardonyx::settings::Settings;
use sardonyx::units::Time;

/// A run in which each content is encrypted by `pad`, given the place, the counter and the word's number.
fn run(writes: &[(u64, u64, Line)], pad: impl Fn(u64, u64, u64) -> u64) -> Pads {
    let mut journal = Journal::default();
    for (order, (place, counter, plain)) in (1..).zip(writes) {
        let mut line = *plain;
        for (number, word) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let pad = pad(*place, *counter, number as u64);
            *word = (u64::from_le_bytes(*word) ^ pad).to_le_bytes();
        }
        journal.handled.push(Handled {
            line: Logical(*place),
            data: *plain,
            class: Class::Data,
            persist: Persist::Relaxed,
            order,
        });
        journal.sealed.push(Sealed {
            order,
            place: Place(*place),
            counter: *counter,
            paired_with: None,
        });
        let from = journal.writes.len() as u32;
        journal
            .events
            .push((Time::ZERO, Event::Ready { from, count: 1 }));
        journal.writes.push(MediumWrite {
            order,
            place: Place(*place),
            at: Place(*place),
            moved: sardonyx::plan::journal::Moved::default(),
            line,
            words: 0xff,
            sideband: None,
            merged_into: None,
        });
    }
    Pads::new(Vec::new(), &journal, &held(), None)
}

fn held() -> Held {
    Held {
        lines: 1 << 20,
        log: 0..0,
        keeps: None,
    }
}

fn words(pads: &Pads) -> Vec<String> {
    let found = pads.within().into_iter();
    found
        .map(|v| format!("{}: {}", v.kind.name(), v.what))
        .collect()
}

fn mixed(place: u64, counter: u64, word: u64) -> u64 {
    sardonyx_base::random::mix(place << 40 ^ counter << 8 ^ word)
}

fn writes() -> Vec<(u64, u64, Line)> {
    let line = |n: u64| std::array::from_fn(|byte| (n * 7 + byte as u64) as u8);
    (1..400).map(|n| (n % 50, n, line(n))).collect()
}

#[test]
fn a_pad_of_place_counter_and_block_gives_nothing_away_and_any_less_does() {
    assert_eq!(words(&run(&writes(), mixed)), [""; 0]);
    for (pad, told) in [
        ((|_, _, _| 7) as fn(u64, u64, u64) -> u64, "pad-reused"),
        (
            |place, _, word| mixed(place, 0, word),
            "covers two contents",
        ),
        (
            |place, counter, _| mixed(place, counter, 0),
            "bytes 8 to 15, is that of",
        ),
        (
            |place, counter, word| mixed(place, counter / 100, word),
            "covers two contents",
        ),
        (
            |place, counter, word| mixed(place, counter, word) | 1 << 40,
            "a bit of the pad",
        ),
        (|_, _, _| 0, "plaintext"),
    ] {
        let told_of = words(&run(&writes(), pad));
        let is_there = told_of.iter().any(|what| what.contains(told));
        assert_eq!(is_there, !told.is_empty(), "{told}: {told_of:?}");
    }
    // Two lines draw the same counter, each from its own.
    let own = [(1, 1, [1; 64]), (2, 1, [2; 64])];
    assert_eq!(words(&run(&own, mixed)), [""; 0]);
    let shared = words(&run(&own, |_, counter, word| mixed(0, counter, word)));
    assert!(shared[0].contains("the pad of place 2, bytes 0 to 7, is that of place 1"));
    // An equal ciphertext under an equal counter is nothing new.
    let same = [(1, 1, [1; 64]), (1, 1, [1; 64])];
    assert_eq!(words(&run(&same, mixed)), [""; 0]);
    let other = [(1, 1, [1; 64]), (1, 2, [1; 64])];
    let ignored = words(&run(&other, |place, _, word| mixed(place, 0, word)));
    assert!(ignored[0].contains("the same under counters 1 and 2"));
}

#[test]
fn what_was_used_before_a_cut_counts_in_later_lives_and_what_was_not_yet_does_not() {
    let first = Arc::new(run(&[(1, 1, [1; 64]), (1, 2, [2; 64])], mixed));
    let again = |counter, plain| Encrypted {
        place: Place(1),
        counter: Some(counter),
        plain,
        words: 0xff,
        pad: std::array::from_fn(|word| mixed(1, counter, word as u64)),
        keeps: None,
        on_chip: false,
    };
    assert_eq!(first.clash(&again(2, [9; 64]), 1), None);
    assert!(first.clash(&again(2, [9; 64]), 2).is_some());
    assert_eq!(first.clash(&again(2, [2; 64]), 2), None);
    assert_eq!(first.clash(&again(3, [9; 64]), 2), None);
    assert_eq!((first.within_reach(2, 2), first.within_reach(3, 2)), (1, 0));
    let empty = Journal::default();
    for (at, clashes) in [(1, false), (2, true)] {
        let before = Some((first.clone(), at));
        let second = Pads::new(vec![again(2, [9; 64])], &empty, &held(), before);
        assert_eq!(!second.within().is_empty(), clashes);
        let third = Pads::new(Vec::new(), &empty, &held(), Some((Arc::new(second), 0)));
        assert!(third.clash(&again(2, [8; 64]), 0).is_some());
        assert_eq!(third.within_reach(2, 0), 1);
    }
}

/// The lower four bytes of each word are the same number, whatever the counter; the upper four differ.
#[test]
fn pieces_of_four_bytes_count_in_their_numbers() {
    fn low(place: u64, counter: u64, word: u64) -> u64 {
        mixed(place, counter, word) << 32
    }
    for (pad, told) in [
        (
            (|place, counter, word| low(place, counter, word) | mixed(place, 0, word) & 0xffff_ffff)
                as fn(u64, u64, u64) -> u64,
            "returns",
        ),
        (
            |place, counter, word| {
                low(place, counter, word) | mixed(place, counter, word) & 0xffff_ffff
            },
            "comes twice in the line",
        ),
        (
            |place, counter, word| low(place, counter, word),
            "the content as it is",
        ),
    ] {
        let told_of = words(&run(&writes(), pad));
        let is_there = told_of.iter().any(|what| what.contains(told));
        assert!(is_there, "{told}: {told_of:?}");
        assert!(told_of.iter().any(|what| what.contains("by chance")));
    }
    // A single word that returns is chance.
    let once = |place, counter, word| match (place, word) {
        (7, 3) => mixed(7, counter, 3) >> 32 << 32 | 0x5eed,
        _ => mixed(place, counter, word),
    };
    let few: Vec<_> = writes().into_iter().take(80).collect();
    assert_eq!(words(&run(&few, once)), [""; 0]);
}

#[test]
fn words_that_were_not_written_say_nothing_and_those_that_were_count() {
    let part = |words, counter, plain| Encrypted {
        place: Place(1),
        counter: Some(counter),
        plain,
        words,
        pad: std::array::from_fn(|word| mixed(1, 1, word as u64)),
        keeps: None,
        on_chip: false,
    };
    let pads = |second| Pads::from_uses(vec![part(0x0f, 1, [1; 64]), part(second, 2, [2; 64])]);
    assert_eq!(words(&pads(0xf0)), [""; 0]);
    assert_eq!(words(&pads(0x18)).len(), 1);
}

#[test]
fn any_word_of_a_pad_that_returns_after_a_cut_is_seen() {
    let first = run(&[(1, 1, [1; 64])], mixed);
    for word in 0..WORDS {
        let again = Encrypted {
            place: Place(1),
            counter: Some(2),
            plain: [9; 64],
            words: 0xff,
            pad: std::array::from_fn(|at| mixed(1, 1 + u64::from(at != word), at as u64)),
            keeps: None,
            on_chip: false,
        };
        assert!(first.clash(&again, 1).is_some(), "{word}");
    }
}

#[test]
fn the_other_key_makes_other_pads() {
    let mut settings = Settings::default();
    let this = pad::Pads::new(&settings).crypt(Place(3), 5, &[0; 64]);
    settings.set(&pad::OTHER_KEY, 1);
    let other = pad::Pads::new(&settings).crypt(Place(3), 5, &[0; 64]);
    let (this, other) = (numbers(&this), numbers(&other));
    assert!((0..8).all(|word| this[word] != other[word]));
}

/// Uses of a place whose words of two bytes are encrypted anew under the counter, or kept since an epoch of 16 began,
/// as `is_new` says.
fn in_parts(is_new: impl Fn(u64, u64) -> bool) -> Pads {
    let mut uses = Vec::new();
    for place in 0..8 {
        let mut plain: Line = std::array::from_fn(|byte| byte as u8);
        for counter in 16..160 {
            let begun = counter / 16 * 16;
            // One word of each place changes at each write, and another in each epoch.
            let changed = (place + counter / 16) % 32;
            plain[changed as usize * 2] = counter as u8;
            let under = |word| match word == changed && counter != begun && is_new(counter, word) {
                true => counter,
                false => begun,
            };
            let mut pad = [0; WORDS];
            for word in 0..32 {
                let part = mixed(place, under(word), word) & 0xffff;
                pad[word as usize / 4] |= part << (16 * (word % 4));
            }
            uses.push(Encrypted {
                place: Place(place),
                counter: Some(counter),
                plain,
                words: 0xff,
                pad,
                keeps: Some(2),
                on_chip: false,
            });
        }
    }
    Pads::from_uses(uses)
}

#[test]
fn parts_that_stay_may_keep_their_ciphertext_and_those_that_change_may_not() {
    assert_eq!(words(&in_parts(|_, _| true)), [""; 0]);
    // In one write of 16 the word lies under the pad of another content.
    let told = words(&in_parts(|counter, _| counter % 16 != 5));
    assert!(
        told.iter().any(|what| what.contains("covers two contents")),
        "{told:?}"
    );
    // One word of 2 bytes is encrypted anew among three that stay, so its pad returns by chance.
    let chance = |plain: u8, counter| Encrypted {
        place: Place(1),
        counter: Some(counter),
        plain: std::array::from_fn(|byte| if byte == 8 { plain } else { byte as u8 }),
        words: 0xff,
        pad: std::array::from_fn(|word| mixed(1, 16, word as u64)),
        keeps: Some(2),
        on_chip: false,
    };
    let pads = Pads::from_uses(vec![chance(0x40, 16), chance(0x48, 17)]);
    assert_eq!(words(&pads), [""; 0]);
    assert_eq!(pads.clash(&chance(0x49, 18), 1), None);
    let whole = Encrypted {
        plain: [9; 64],
        ..chance(0, 18)
    };
    assert!(pads.clash(&whole, 1).is_some());
    // One design may keep ciphertext and another may not.
    let mut others = in_parts(|_, _| true);
    for each in others.uses_mut() {
        each.keeps = None;
    }
    assert!(words(&others)[0].contains("the same under counters"));
}

/// Neighbours of four bytes, and of eight, are encrypted anew as they should be, so only two bytes can show it.
#[test]
fn two_bytes_of_a_pad_that_return_with_another_content_are_seen_in_their_numbers() {
    let run = |reused: bool| {
        let mut uses = Vec::new();
        for place in 0..16 {
            for counter in 16..80 {
                let plain: Line = std::array::from_fn(|byte| mixed(counter, 3, byte as u64) as u8);
                let mut pad: [u64; WORDS] =
                    std::array::from_fn(|word| mixed(place, counter, word as u64));
                if reused && counter % 8 == 7 {
                    let old = mixed(place, counter - 3, 2);
                    pad[2] = pad[2] & !0xffff_0000 | old & 0xffff_0000;
                }
                uses.push(Encrypted {
                    place: Place(place),
                    counter: Some(counter),
                    plain,
                    words: 0xff,
                    pad,
                    keeps: Some(2),
                    on_chip: false,
                });
            }
        }
        words(&Pads::from_uses(uses))
    };
    assert_eq!(run(false), [""; 0]);
    let told = run(true);
    assert!(
        told.iter()
            .any(|what| what.contains("bytes 18 to 19, covers two")),
        "{told:?}"
    );
}

/// A run in which lines wait on chip, each in the register of a place under a number, after another run.
fn waiting(lines: &[(u64, u64, Line)], before: Option<Before>) -> Pads {
    let mut journal = Journal::default();
    for (order, (place, number, plain)) in (1..).zip(lines) {
        let sealed = numbers(plain).into_iter().enumerate();
        let sealed = sealed
            .flat_map(|(word, plain)| (plain ^ mixed(*place, *number, word as u64)).to_le_bytes());
        let sealed: Vec<u8> = sealed.collect();
        journal.logged.push(Logged {
            from: order,
            until: order + 1,
            data: *plain,
        });
        journal
            .events
            .push((Time::ZERO, Event::OnChip(journal.on_chip.len() as u32)));
        journal.on_chip.push(OnChip {
            domain: Domain::Registers,
            write: MediumWrite {
                order,
                place: Place(*place),
                at: Place(*place),
                moved: sardonyx::plan::journal::Moved::default(),
                line: sealed.try_into().expect("a line's bytes"),
                words: 0xff,
                sideband: None,
                merged_into: None,
            },
            bytes: u64::MAX,
            unlocked: Vec::new(),
        });
    }
    let held = Held {
        lines: 0,
        log: 0..1 << 20,
        keeps: None,
    };
    Pads::new(Vec::new(), &journal, &held, before)
}

#[test]
fn a_line_on_chip_is_seen_by_whoever_cuts_the_power_while_it_is_there() {
    // Register 1 has number 1, then number 3; a cut at position 2 dumps number 1.
    let first = [(1, 1, [1; 64]), (2, 2, [2; 64]), (1, 3, [3; 64])];
    let run = |lines: &[(u64, u64, Line)], cut: Option<u64>| {
        let before = cut.map(|cut| (Arc::new(waiting(&first, None)), cut));
        words(&waiting(lines, before)).len()
    };
    assert_eq!(run(&first, None), 0, "a run's own are never seen together");
    assert_eq!(run(&[(1, 1, [1; 64])], Some(2)), 0, "the same content");
    assert_eq!(run(&[(1, 1, [9; 64])], Some(2)), 1, "another content");
    assert_eq!(
        run(&[(1, 1, [9; 64]), (1, 9, [8; 64])], Some(2)),
        1,
        "it waited for a while"
    );
    assert_eq!(
        run(&[(1, 1, [9; 64])], Some(3)),
        0,
        "number 1 was gone by then"
    );
    assert_eq!(
        run(&[(1, 3, [9; 64])], Some(2)),
        0,
        "number 3 had not come yet"
    );
    assert_eq!(run(&[(1, 4, [9; 64])], Some(3)), 0, "numbers that go on");
}
