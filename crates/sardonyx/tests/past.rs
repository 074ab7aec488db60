//! What a read of a line costs that the run has not written: nothing but the access in a machine that is new, and a pad
//! like any other line's in one whose memory was written before.

use crate::common::machine;
use crate::memory_common::{drain, request};
use sardonyx::controller::{Class, Write, designs};
use sardonyx::line::{Line, Logical, Place};
use sardonyx::medium::params::Unit;
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::Direction;
use sardonyx::units::Time;

/// A memory of machine `sca` whose past is `past`.
fn memory(design: &str, past: &str, sets: &[(&str, &str)]) -> Memory {
    let machine = machine("sca", &[&[("memory.past", past)], sets].concat());
    Memory::new(&machine, design).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads `line` at rest, at the beginning of a cycle. Returns its content and the latency in picoseconds.
fn read(memory: &mut Memory, line: u64) -> (Option<Line>, u64) {
    drain(memory);
    memory.resume();
    let clock = machine("sca", &[] as &[(&str, &str)])
        .engine
        .medium
        .timing
        .clock
        .ps();
    let now = Time::from_ps(memory.now().ps().next_multiple_of(clock));
    let got = memory.read(
        request(Direction::Read, 1, now),
        now,
        Logical(line),
        Class::Data,
    );
    let answered = loop {
        memory.advance_until(Time::NEVER);
        if let Some(answer) = memory.answers().next() {
            break answer.at;
        }
    };
    (got.value, answered.since(now).ps())
}

fn write(memory: &mut Memory, line: u64, data: &Line) {
    let now = memory.now();
    let write = Write::new(Logical(line), At::past(data));
    memory.write(request(Direction::Write, 2, now), now, write);
    drain(memory);
    memory.resume();
}

fn pads(memory: &Memory) -> u64 {
    memory.unit_uses()[Unit::Aes as usize]
}

const PAD: u64 = 40_000;

#[test]
fn the_first_read_of_a_line_takes_a_pad_if_it_was_written_before() {
    let machine = machine("sca", &[] as &[(&str, &str)]);
    let timing = &machine.engine.medium.timing;
    let access = (timing.clock * (1 + timing.tCL + timing.tBURST + timing.off_chip)).ps();
    // The line before it has opened the row.
    let first = |design, past| {
        let mut memory = memory(design, past, &[]);
        read(&mut memory, 2);
        read(&mut memory, 3).1
    };
    assert_eq!(
        access, 43_148,
        "43.072 ns where a request comes within a cycle"
    );
    assert_eq!(first("no-encryption", "written"), access);
    assert_eq!(first("co-located", "empty"), access);
    assert_eq!(first("co-located", "written"), access + PAD);
}

#[test]
fn every_policy_decrypts_what_was_written_before_and_nothing_else() {
    for policy in designs::policies() {
        let design = format!("identity+{}", policy.about.name);
        let [empty, written] = ["empty", "written"].map(|past| {
            let mut memory = memory(&design, past, &[]);
            let (found, took) = read(&mut memory, 3);
            assert_eq!(found, None, "{design}: nobody knows it");
            (took, pads(&memory))
        });
        let encrypts = policy.about.name != "no-encryption";
        let pad = if encrypts { (PAD, 1) } else { (0, 0) };
        assert_eq!(written, (empty.0 + pad.0, pad.1), "{design}");
        assert_eq!(empty.1, 0, "{design}");
    }
}

#[test]
fn a_line_that_was_written_before_reads_as_fast_as_one_of_the_run() {
    for policy in designs::policies() {
        let design = format!("identity+{}", policy.about.name);
        let mut memory = memory(&design, "written", &[]);
        write(&mut memory, 3, &[7; 64]);
        // Both lines are of one row, and share a line of counters.
        read(&mut memory, 3);
        let (own, before) = (read(&mut memory, 3), read(&mut memory, 4));
        assert_eq!((own.0, before.0), (Some([7; 64]), None), "{design}");
        if policy.about.name != "co-located-cc" {
            assert_eq!(own.1, before.1, "{design}");
        }
    }
}

#[test]
fn a_mapping_reads_what_was_written_before_through_its_policy() {
    for mapping in designs::mappings() {
        let design = format!("{}+co-located", mapping.about.name);
        let took = |past| {
            let mut memory = memory(&design, past, &[]);
            read(&mut memory, 3).1
        };
        assert_eq!(took("written"), took("empty") + PAD, "{design}");
    }
}

#[test]
fn pads_of_before_are_never_used_again() {
    for design in [
        "identity+per-line",
        "identity+sca",
        "identity+co-located",
        "identity+ideal",
    ] {
        let first = |past| {
            let mut memory = memory(design, past, &[("encryption.global_counter", "paper")]);
            write(&mut memory, 3, &[0; 64]);
            let image = memory.image();
            image.content(Place(3)).expect("it was written").0
        };
        assert_ne!(
            first("empty"),
            first("written"),
            "{design}: counter 1 is of before"
        );
    }
}

#[test]
fn an_unknown_line_begins_an_epoch_of_deuce_and_is_decrypted_first() {
    let wrote = |past: &str| {
        let mut memory = memory("deuce", past, &[]);
        write(&mut memory, 3, &[1; 64]);
        let pads_of_first = pads(&memory);
        write(&mut memory, 3, &[1; 64]);
        assert_eq!(read(&mut memory, 3).0, Some([1; 64]));
        (
            pads_of_first,
            memory.figures().named("kept_words_share").number(),
        )
    };
    assert_eq!(wrote("empty"), (1, Some(0.5)));
    assert_eq!(wrote("written"), (2, Some(0.5)));
}

#[test]
fn pages_of_split_counters_overflow_as_if_they_had_been_written_before() {
    let overflows = |past: &str, minors: Option<&str>| {
        let sets: Vec<(&str, &str)> = minors
            .map(|m| ("encryption.past_minors", m))
            .into_iter()
            .collect();
        let mut memory = memory("identity+split", past, &sets);
        for page in 0..200 {
            write(&mut memory, page * 64 + 5, &[1; 64]);
        }
        let writes = memory.image().wear().writes;
        let other = read(&mut memory, 6);
        assert_eq!(
            other.0, None,
            "a line that was encrypted anew is still unknown"
        );
        for page in 0..200 {
            assert_eq!(read(&mut memory, page * 64 + 5).0, Some([1; 64]));
        }
        (
            memory.figures().named("page_encryptions").number().unwrap(),
            writes,
        )
    };
    assert_eq!(overflows("empty", None), (0.0, 400));
    assert_eq!(overflows("written", Some("least")), (0.0, 400));
    // One in 127 pages is full when it is written first, and then all its 64 lines are written.
    let (pages, writes) = overflows("written", None);
    assert!((1.0..8.0).contains(&pages), "{pages}");
    assert_eq!(writes, 400 + 63 * pages as u64);
}

/// All stacks of a mapping over a policy.
fn stacks() -> Vec<String> {
    let mut all = Vec::new();
    for mapping in designs::mappings() {
        let policies = designs::policies().map(|policy| policy.about.name);
        all.extend(policies.map(|policy| format!("{}+{policy}", mapping.about.name)));
    }
    all
}

fn content(number: u64) -> Line {
    std::array::from_fn(|at| (number >> (8 * (at % 8))) as u8 ^ at as u8)
}

fn checked(memory: &Memory) -> [u64; 3] {
    let checked = memory.checked().expect("reads are compared");
    [checked.verified, checked.preloaded, checked.unwritten]
}

#[test]
fn a_content_that_the_trace_knows_lies_in_memory_and_costs_what_an_unknown_one_does() {
    for design in stacks() {
        let mut memory = memory(&design, "written", &[]);
        memory.check(Some(Box::default()));
        memory.preload(Logical(3), &content(1));
        let known = read(&mut memory, 3);
        let unknown = read(&mut self::memory(&design, "written", &[]), 3);
        assert_eq!((known.0, unknown.0), (Some(content(1)), None), "{design}");
        assert_eq!(known.1, unknown.1, "{design}");
        assert_eq!(memory.image().wear().writes, 0, "{design}");
        memory.preload(Logical(3), &content(2));
        write(&mut memory, 3, &content(4));
        memory.preload(Logical(3), &content(5));
        assert_eq!(read(&mut memory, 3).0, Some(content(4)), "{design}");
        read(&mut memory, 4);
        assert_eq!(checked(&memory), [2, 1, 1], "{design}");
        assert_eq!(memory.wrong(), None, "{design}");
        if !design.ends_with("no-encryption") && !design.contains("zero") {
            let secret = memory.image().read(Place(3)).expect("it is there");
            assert_ne!(secret, content(1), "{design}");
        }
    }
}

#[test]
fn nothing_is_known_in_a_machine_that_is_new() {
    for design in ["no-encryption", "baseline", "esd", "dewrite-sound"] {
        let mut memory = memory(design, "empty", &[]);
        memory.preload(Logical(3), &content(1));
        assert_eq!(read(&mut memory, 3).0, None, "{design}");
    }
}

#[test]
fn a_guard_leaves_contents_unknown() {
    let mut memory = memory("baseline@mac", "written", &[]);
    memory.preload(Logical(3), &content(1));
    assert_eq!(read(&mut memory, 3).0, None);
    assert_eq!(memory.refused(), None);
}

#[test]
fn an_index_of_all_contents_knows_those_of_before_and_one_on_chip_does_not() {
    for (design, duplicates) in [
        ("dedup-sha1", 2.0),
        ("dedup-sha1-sound", 2.0),
        ("dewrite", 2.0),
        ("dewrite-sound", 2.0),
        ("esd", 1.0),
        ("esd-sound", 1.0),
    ] {
        let mut memory = memory(design, "written", &[]);
        for line in [3, 4] {
            memory.preload(Logical(line), &content(1));
        }
        for line in [8, 9] {
            write(&mut memory, line, &content(1));
        }
        let found = memory.figures().named("duplicate_writes").number();
        assert_eq!(found, Some(duplicates), "{design}");
        for line in [3, 4, 8, 9] {
            assert_eq!(read(&mut memory, line).0, Some(content(1)), "{design}");
        }
        // The lines that share a place let it go one after the other.
        for line in [3, 8, 4, 9] {
            write(&mut memory, line, &content(line));
        }
        for line in [3, 8, 4, 9] {
            assert_eq!(read(&mut memory, line).0, Some(content(line)), "{design}");
        }
    }
}

/// Reads, writes and contents of before come in any order, without a rest between them, over tables that the caches do
/// not hold; what was there is there after a flush and a fresh start too.
#[test]
fn contents_of_before_and_writes_on_their_way_do_not_harm_each_other() {
    let sets = [
        ("encryption.counter_cache.bytes", "1024"),
        ("esd.amt_bytes", "1024"),
        ("encryption.minor_bits", "3"),
        ("encryption.deuce.epoch", "4"),
    ];
    for (number, design) in stacks().into_iter().enumerate() {
        let mut random = sardonyx_base::random::SplitMix64(number as u64);
        let mut memory = memory(&design, "written", &sets);
        memory.check(Some(Box::default()));
        let mut newest = std::collections::BTreeMap::new();
        for step in 0..3000_u64 {
            let (line, what) = (random.draw() % 700, random.draw() % 3);
            let data = content(random.draw() % 40);
            let (line, now) = (Logical(line), memory.now());
            if what == 0 {
                memory.preload(line, &data);
                newest.entry(line).or_insert(data);
            }
            while !memory.accepts() {
                memory.advance_until(Time::NEVER);
            }
            let now = now.max(memory.now());
            match what {
                2 => {
                    let write = Write::new(line, At::past(&data));
                    memory.write(request(Direction::Write, step, now), now, write);
                    newest.insert(line, data);
                }
                _ => {
                    let read = request(Direction::Read, step, now);
                    memory.read(read, now, line, Class::Data);
                }
            }
            assert_eq!(memory.failure(), None, "{design}");
            assert_eq!(memory.wrong(), None, "{design}, request {step}");
        }
        drain(&mut memory);
        let [verified, preloaded, unwritten] = checked(&memory);
        assert!(
            verified > preloaded && preloaded > 100,
            "{design}: {preloaded} of {verified}"
        );
        assert!(unwritten > 100, "{design}: {unwritten}");
        memory.settle();
        let machine = machine("sca", &[&[("memory.past", "written")], &sets[..]].concat());
        let mut fresh = Memory::over(&machine, &design, memory.image().copy()).unwrap();
        drain(&mut fresh);
        for (line, data) in newest {
            assert_eq!(fresh.read_at_once(line), Some(data), "{design}, {line:?}");
        }
    }
}
