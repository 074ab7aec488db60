//! Every design under the engine, where steps do finish: reads give what was written, nothing waits
//! for ever, and a controller built from the array's bytes alone reads everything back.
//! Left out: how long things take, which the engine's own tests check.

use crate::memory_common::request;
use std::collections::HashMap;

use proptest::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Controller, Persist, Write, designs};
use sardonyx::engine::Engine;
use sardonyx::line::{Line, Logical};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::{At, Step, Stored};
use sardonyx::stats::Direction;
use sardonyx::units::Time;

/// A machine whose caches are so small that every table is evicted all the time.
fn machine(small: bool, reclaim: &str) -> Machine {
    let mut set = vec![("esd.reclaim", reclaim)];
    if small {
        for bytes in [
            "esd.amt_bytes",
            "encryption.counter_cache.bytes",
            "dedup_sha1.mapping_cache.bytes",
            "dedup_sha1.fingerprint_cache.bytes",
            "dewrite.mapping_cache.bytes",
            "dewrite.fingerprint_cache.bytes",
        ] {
            set.push((bytes, "1024"));
        }
    }
    Machine::load("esd", &set).expect("a machine")
}

fn content(seed: u16) -> Line {
    let mut line = [7; 64];
    line[..2].copy_from_slice(&seed.to_le_bytes());
    line
}

struct Rig {
    engine: Engine,
    controller: Controller,
    now: Time,
}

impl Rig {
    fn request(
        &mut self,
        kind: Direction,
        handle: impl FnOnce(&mut Controller, &mut sardonyx::plan::Plan) -> Stored,
    ) {
        while !self.engine.admits() {
            self.engine.advance();
        }
        self.now = self.now.max(self.engine.now()) + Time::from_ps(5000);
        while self.engine.next_event() <= self.now {
            self.engine.advance();
        }
        let request = request(kind, 0, self.now);
        let controller = &mut self.controller;
        self.engine
            .admit(request, self.now, |plan| handle(controller, plan));
        self.engine.answers();
    }

    fn write(&mut self, line: u64, data: &Line, order: Persist) {
        self.request(Direction::Write, |controller, plan| {
            let (line, data) = (Logical(line), At::past(data));
            let write = Write {
                order,
                ..Write::new(line, data)
            };
            controller.write(write, plan)
        });
    }

    fn read(&mut self, line: u64) -> Option<Line> {
        let mut value = None;
        self.request(Direction::Read, |controller, plan| {
            let read = controller.read(Logical(line), Class::Data, Step::PAST, plan);
            value = read.value;
            Stored::at(read.at)
        });
        value
    }
}

fn run(design: &'static str, machine: &Machine, requests: &[(u64, Option<(u16, bool)>)]) {
    let lines = machine.engine.medium.geometry.lines();
    let params = &machine.settings;
    let mut layout = Layout::new(lines);
    let mut rig = Rig {
        engine: Engine::new(&machine.engine),
        controller: designs::build(design, params, &mut layout).expect("a design"),
        now: Time::ZERO,
    };
    let mut model = HashMap::new();
    for (line, write) in requests {
        match write {
            Some((seed, atomic)) => {
                let order = match atomic {
                    true => Persist::CounterAtomic,
                    false => Persist::Relaxed,
                };
                rig.write(*line, &content(*seed), order);
                model.insert(*line, content(*seed));
            }
            None => assert_eq!(rig.read(*line), model.get(line).copied(), "{design}"),
        }
    }
    rig.engine.run_to_rest();
    let controller = &mut rig.controller;
    rig.engine.background(|plan| controller.flush(plan));
    rig.engine.end_of_input();
    rig.engine.run_to_rest();

    let mut engine = Engine::with_image(&machine.engine, rig.engine.into_image());
    let mut layout = Layout::new(lines);
    let controller = engine.background(|plan| designs::recover(design, params, &mut layout, plan));
    let mut rig = Rig {
        engine,
        controller: controller.expect("a design"),
        now: Time::ZERO,
    };
    for (line, _) in requests {
        assert_eq!(rig.read(*line), model.get(line).copied(), "{design}, after");
    }
}

proptest! {
    #![proptest_config(sardonyx_property::cases(6))]

    #[test]
    fn every_design_reads_back_what_it_was_given(
        requests in prop::collection::vec(
            (0..900u64, prop::option::weighted(0.7, (0..60u16, prop::bool::weighted(0.2)))),
            1..1500,
        ),
        small in any::<bool>(),
        paper in any::<bool>(),
    ) {
        let machine = machine(small, if paper { "paper" } else { "counted" });
        for design in designs::all() {
            run(design.name, &machine, &requests);
        }
    }
}

/// Host time of a request, to be looked at: `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "by hand: prints a time"]
fn how_long_a_request_takes() {
    let machine = machine(false, "counted");
    for design in designs::all() {
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        let mut rig = Rig {
            engine: Engine::new(&machine.engine),
            controller: designs::build(design.name, &machine.settings, &mut layout).unwrap(),
            now: Time::ZERO,
        };
        let requests = 1_000_000u64;
        let started = std::time::Instant::now();
        for number in 0..requests {
            let line = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47; // 8 MiB
            if number % 3 == 0 {
                rig.read(line);
            } else {
                let seed = ((number * 40_503) >> 3) as u16 >> ((number % 4) * 4);
                rig.write(line, &content(seed), Persist::Relaxed);
            }
        }
        let each = started.elapsed().as_nanos() as u64 / requests;
        println!("{}: {each} ns a request", design.name);
    }
}
