//! A near medium before the persistent one and beside it: its channels keep their own clock's rules, no byte changes, and
//! what it loses in a power cut is what nobody was promised.

use std::ops::Range;

use crate::memory_common::{drain, request};
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Write};
use sardonyx::line::{Line, Logical, Place, Tier};
use sardonyx::medium::image::Image;
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::plan::command::{Command, CommandLog};
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_audit::{Rule, audit};
use sardonyx_base::random::SplitMix64;

fn machine(near: &str, sets: &[(&str, &str)]) -> Machine {
    let near = [("near.extends", near)];
    Machine::load("pcm-isscc-2012", &[&near[..], sets].concat()).unwrap()
}

/// Random reads and writes of `lines` through `memory`.
fn play(memory: &mut Memory, lines: Range<u64>, number: u64) {
    let mut draw = SplitMix64(7);
    let mut at = Time::ZERO;
    for tag in 0..number {
        while !memory.accepts() {
            memory.advance_until(Time::NEVER);
        }
        at = at.max(memory.now()) + Time::from_ps(draw.draw() % 40_000);
        while memory.next_event() <= at {
            memory.advance_until(at);
        }
        if !memory.accepts() {
            continue;
        }
        let (line, kind) = (
            Logical(lines.start + draw.draw() % (lines.end - lines.start)),
            draw.draw() % 4,
        );
        if kind < 2 {
            memory.read(request(Direction::Read, tag, at), at, line, Class::Data);
        } else {
            let data: Line = [(draw.draw() % 250) as u8; 64];
            let write = Write {
                flushed: kind == 3,
                ..Write::new(line, At::past(&data))
            };
            memory.write_announced(request(Direction::Write, tag, at), at, write);
        }
    }
    drain(memory);
    memory.acceptances().for_each(drop);
}

#[test]
fn both_media_keep_the_rules_of_their_own_clocks() {
    for (near, form, tags) in [
        ("ddr4-2400", "cache", "beside"),
        ("hbm2", "cache", "on-chip"),
        ("ddr5-4800", "beside", "none"),
    ] {
        let mut sets = vec![
            ("near.form", form),
            ("near.lines", "256"),
            ("medium.geometry.rows", "16"),
        ];
        if form == "cache" {
            sets.push(("near.tags", tags));
        }
        if tags == "on-chip" {
            sets.extend([("near.ways", "4"), ("near.block_lines", "4")]);
        }
        let machine = machine(near, &sets);
        let far = machine.engine.medium.geometry.lines();
        let lines = match form {
            "beside" => far - 256..far + machine.near_lines(),
            _ => 0..2_000,
        };
        let mut memory = Memory::new(&machine, "sca").unwrap();
        memory.check(Some(Box::default()));
        memory.observe(CommandLog::default());
        play(&mut memory, lines, 6_000);
        assert_eq!(memory.wrong(), None, "{near} {form}");
        assert!(memory.checked().unwrap().verified > 500, "{near} {form}");
        let log: Vec<Command> = memory.take::<CommandLog>().unwrap().by_channel();
        let own = machine.engine.medium.geometry.channels as u32;
        let (far, close): (Vec<Command>, Vec<Command>) =
            log.into_iter().partition(|command| command.channel < own);
        let close: Vec<Command> = close
            .into_iter()
            .map(|command| Command {
                channel: command.channel - own,
                ..command
            })
            .collect();
        let medium = machine.engine.near.as_ref().unwrap();
        let [far, close] =
            [(&machine.engine.medium, far), (&**medium, close)].map(|(medium, log)| {
                audit(medium, &log).unwrap_or_else(|fault| panic!("{near}: {fault}"))
            });
        let done = |tier| {
            [Direction::Read, Direction::Write].map(|kind| memory.service_of(tier, kind).accesses)
        };
        assert_eq!([far.reads, far.writes], done(Tier::Far));
        assert_eq!([close.reads, close.writes], done(Tier::Near));
        assert!(
            close.reads > 1_000 && close.refreshes > 0 && far.reads > 500,
            "{near} {form}"
        );
        assert!(close.tight(Rule::ReadToRead) > 0, "{near} {form}");
    }
}

/// What a power cut would leave in a memory at rest, under a fresh controller.
fn left(memory: &Memory, machine: &Machine, design: &str) -> Memory {
    let mut image: Image = memory.image().copy();
    image.lose_near();
    Memory::over(machine, design, image).unwrap()
}

#[test]
fn a_cut_leaves_what_was_flushed_and_loses_what_stayed_near() {
    for design in ["no-encryption", "fca", "esd-sound"] {
        let machine = machine("ddr4-2400", &[("near.lines", "64")]);
        let mut memory = Memory::new(&machine, design).unwrap();
        let [old, new]: [Line; 2] = [[1; 64], [2; 64]];
        let write = |memory: &mut Memory, line: u64, data: &Line, flushed| {
            let now = memory.now();
            let write = Write {
                flushed,
                ..Write::new(Logical(line), At::past(data))
            };
            memory.write_announced(request(Direction::Write, line, now), now, write);
            drain(memory);
        };
        write(&mut memory, 1, &old, true);
        write(&mut memory, 2, &old, true);
        write(&mut memory, 2, &new, false);
        write(&mut memory, 3, &new, false);
        write(&mut memory, 3 + 64, &new, false); // takes the place of line 3
        assert_eq!(memory.read_at_once(Logical(2)), Some(new));
        let mut after = left(&memory, &machine, design);
        let lines = [1, 2, 3].map(|line| after.read_at_once(Logical(line)));
        if design == "no-encryption" {
            assert_eq!(lines, [Some(old), Some(old), Some(new)], "{design}");
        }
        // The flush of a line that no cache of the processor has.
        let now = memory.now();
        assert!(memory.flushes_below());
        memory.flush_line(request(Direction::Write, 9, now), now, Logical(2));
        drain(&mut memory);
        memory.settle();
        let mut after = left(&memory, &machine, design);
        let lines = [1, 2, 3, 67].map(|line| after.read_at_once(Logical(line)));
        assert_eq!(
            lines,
            [Some(old), Some(new), Some(new), Some(new)],
            "{design}"
        );
    }
}

#[test]
fn blocks_learn_what_memory_held_and_are_written_home_in_the_end() {
    let sets = [
        ("near.tags", "on-chip"),
        ("near.ways", "2"),
        ("near.block_lines", "4"),
        ("near.lines", "16"),
    ];
    for design in ["no-encryption", "fca", "esd-sound"] {
        let mut memory = Memory::new(&machine("ddr4-2400", &sets), design).unwrap();
        let held: Line = std::array::from_fn(|byte| byte as u8);
        // Line 5 comes with the block of line 4, before anybody says what it held.
        assert_eq!(memory.read_at_once(Logical(4)), None);
        memory.preload(Logical(5), &held);
        assert_eq!(memory.read_at_once(Logical(5)), Some(held), "{design}");
        let lines: Vec<Line> = (0..64).map(|line| [line as u8 % 9; 64]).collect();
        for (line, data) in lines.iter().enumerate() {
            memory.write_at_once(Logical(line as u64), data);
        }
        memory.settle();
        let mut after = left(&memory, &machine("ddr4-2400", &sets), design);
        for (line, data) in lines.iter().enumerate() {
            let read = after.read_at_once(Logical(line as u64));
            assert_eq!(read, Some(*data), "{design} {line}");
        }
    }
}

#[test]
fn a_near_medium_that_is_saved_is_all_there_after_a_cut() {
    let saved = [("near.survives", "yes"), ("near.lines", "64")];
    for tables in ["none", "all"] {
        let machine = machine(
            "ddr4-2400",
            &[&saved[..], &[("near.tables", tables)]].concat(),
        );
        let mut memory = Memory::new(&machine, "esd-sound").unwrap();
        let lines: Vec<Line> = (0..200).map(|line| [(line % 7) as u8; 64]).collect();
        for (line, data) in lines.iter().enumerate() {
            memory.write_at_once(Logical(line as u64), data);
        }
        memory.settle();
        let mut after = left(&memory, &machine, "esd-sound");
        for (line, data) in lines.iter().enumerate() {
            assert_eq!(
                after.read_at_once(Logical(line as u64)),
                Some(*data),
                "{line}"
            );
        }
    }
}

#[test]
fn near_lines_lie_as_their_own_design_has_them_under_pads_of_their_own() {
    let data: Line = std::array::from_fn(|byte| byte as u8 + 1);
    let pads = |design: &str| {
        let sets = [
            ("near.lines", "64"),
            ("near.design", design),
            ("near.survives", "yes"),
        ];
        let machine = machine("ddr4-2400", &sets);
        let mut memory = Memory::new(&machine, "fca").unwrap();
        // It is here before anybody says what it held.
        assert_eq!(memory.read_at_once(Logical(5)), None);
        memory.preload(Logical(5), &data);
        memory.write_at_once(Logical(6), &data);
        memory.settle();
        let read = [5, 6].map(|line| memory.read_at_once(Logical(line)));
        assert_eq!(read, [Some(data); 2], "{design}");
        let image = memory.image();
        [6, 6 | Place::NEAR_SAVED].map(|place| {
            let line = image.read(Place(place)).unwrap_or(data);
            std::array::from_fn::<u8, 64, _>(|byte| line[byte] ^ data[byte])
        })
    };
    assert_eq!(pads("no-encryption")[1], [0; 64]);
    for design in ["baseline", "fca", "sca"] {
        let [far, near] = pads(design);
        assert_ne!(near, [0; 64], "{design}");
        assert_ne!(near, far, "{design}");
    }
}

#[test]
fn no_pad_is_of_both_media() {
    let sets = [
        ("near.lines", "64"),
        ("near.design", "baseline"),
        ("near.survives", "yes"),
        ("near.fills_on_write", "false"),
    ];
    let mut memory = Memory::new(&machine("ddr4-2400", &sets), "baseline").unwrap();
    let mut stored = |line: u64, place: u64| {
        memory.write_at_once(Logical(line), &[1; 64]);
        memory.image().read(Place(place)).expect("it was written")
    };
    let near = stored(6, 6 | Place::NEAR_SAVED);
    // Line 70 takes its slot, and it goes home: the first write of a place of the same number.
    assert_ne!(near, stored(6 + 64, 6));
}

#[test]
fn what_cannot_be_near_is_refused_with_the_key_and_a_remedy() {
    for (sets, says) in [
        (&[("near.extends", "optane")][..], "near.extends=ddr4-2400"),
        (
            &[("near.extends", "ddr4-2400"), ("near.tables", "all")],
            "near.survives=yes",
        ),
        (&[("near.lines", "9")], "near.form is cache or beside"),
        (
            &[("near.extends", "none"), ("near.writes", "stop")],
            "near.form is cache",
        ),
        (
            &[
                ("near.extends", "ddr4-2400"),
                ("near.medium.timing.tRFC", "9999999"),
            ],
            "near.medium.timing.tRFC",
        ),
        (
            &[("near.extends", "ddr4-2400"), ("link.down_ns", "9")],
            "near.form=beside",
        ),
        (
            &[("near.extends", "ddr4-2400"), ("near.ways", "4")],
            "near.tags is on-chip",
        ),
        (
            &[
                ("near.extends", "ddr4-2400"),
                ("near.tags", "on-chip"),
                ("near.looks_before_write", "false"),
            ],
            "near.tags is beside",
        ),
        (
            &[
                ("near.extends", "ddr4-2400"),
                ("near.tags", "on-chip"),
                ("near.survives", "yes"),
            ],
            "near.tags=beside",
        ),
    ] {
        let refused = Machine::load("esd", sets).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn a_list_of_media_is_a_machine_with_a_near_one() {
    let list = "extends = \"esd\"\n[[media]]\nname = \"far\"\n[media.medium.geometry]\nrows = 1024\n\
        [[media]]\nname = \"near\"\nextends = \"hbm2\"\ndesign = \"sca\"\nlines = 64\n[media.medium.timing]\ntRCD = 9\n";
    let listed = Machine::parse(list, "two.toml").unwrap();
    let sets = [
        ("medium.geometry.rows", "1024"),
        ("near.extends", "hbm2"),
        ("near.design", "sca"),
        ("near.lines", "64"),
        ("near.medium.timing.tRCD", "9"),
    ];
    let set = Machine::load("esd", &sets).unwrap();
    assert_eq!(listed.settings, set.settings);
    for (text, says) in [
        ("[[media]]\nextends = \"hbm2\"\n", "without a name"),
        ("[[media]]\nname = \"middle\"\n", "neither near nor far"),
        ("[[media]]\nname = \"far\"\ndesign = \"esd\"\n", "--designs"),
        ("media = [3]\n", "no table"),
        (
            "[[media]]\nname = \"near\"\ndesign = \"esd\"\nextends = \"hbm2\"\n",
            "near.design",
        ),
        (
            "[[media]]\nname = \"near\"\nextends = \"nothing\"\n",
            "nothing",
        ),
    ] {
        let text = format!("extends = \"esd\"\n{text}").replace(
            "extends = \"esd\"\nmedia = [3]\n",
            "media = [3]\nextends = \"esd\"\n",
        );
        let refused = Machine::parse(&text, "two.toml").unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}
