//! SCA's timelines (HPCA 2018, Fig. 6 and Fig. 8), to the cycle: what each design's reads and
//! writes take when nothing is in their way, from the machine's parameters alone.
//!
//! The rows that a test touches are open, so that a read is a column read: tCL, transfer, pins. The
//! lines are of bank 1, their counters of bank 0.

use crate::memory_common::request;
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Controller, Persist, Write, designs};
use sardonyx::engine::Engine;
use sardonyx::line::{Line, Logical};
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::Unit;
use sardonyx::plan::journal::{Event, Journal};
use sardonyx::plan::{At, Plan, Step, Stored};
use sardonyx::stats::Direction;
use sardonyx::units::Time;

/// The marks of the global counter would be writes beside those that the figures show; rows of 64
/// lines in one rank are those of the comments here.
const SETTINGS: [(&str, &str); 3] = [
    ("encryption.global_counter", "paper"),
    ("medium.geometry.ranks", "1"),
    ("medium.geometry.columns", "64"),
];

/// The first line of the row that a test plays in; lines below are counted from it.
const ROW: u64 = 64;

struct Rig {
    machine: Machine,
    engine: Engine,
    controller: Controller,
}

impl Rig {
    /// A fresh controller over a medium whose first 64 lines, one row, have been written.
    fn new(design: &str) -> Rig {
        let machine = Machine::load("sca", &SETTINGS).expect("a machine");
        let lines = machine.engine.medium.geometry.lines();
        let params = &machine.settings;
        let build = || designs::build(design, params, &mut Layout::new(lines)).expect("a design");
        let mut rig = Rig {
            engine: Engine::new(&machine.engine),
            controller: build(),
            machine: machine.clone(),
        };
        let all: Vec<u64> = (0..64).collect();
        rig.play(&all.iter().map(|l| Op::Write(*l)).collect::<Vec<_>>());
        let controller = &mut rig.controller;
        rig.engine.background(|plan| controller.flush(plan));
        rig.engine.end_of_input();
        rig.engine.run_to_rest();
        let engine = Engine::with_image(&machine.engine, rig.engine.into_image());
        let mut rig = Rig {
            engine,
            controller: build(),
            machine,
        };
        let controller = &mut rig.controller;
        rig.engine.background(|plan| controller.recover(plan));
        rig
    }

    fn cycles(&self, cycles: u64) -> u64 {
        self.machine.engine.medium.timing.clock.ps() * cycles
    }

    fn unit(&self, unit: Unit) -> u64 {
        self.machine.engine.units[unit as usize].latency.ps()
    }

    fn transfer(&self) -> u64 {
        let timing = &self.machine.engine.medium.timing;
        timing.tBURST.max(timing.tCCD)
    }

    /// From a column read of an open row to the data off the chip, in cycles.
    fn read(&self) -> u64 {
        let timing = &self.machine.engine.medium.timing;
        timing.tCL + timing.tBURST + timing.off_chip
    }

    /// From a column write to the end of the array write, in cycles.
    fn write(&self) -> u64 {
        let timing = &self.machine.engine.medium.timing;
        timing.tCWD + self.transfer() + timing.tWP + timing.off_chip
    }

    /// The first cycle in which the channel sees what arrived `ps` after a cycle's beginning.
    fn seen(&self, ps: u64) -> u64 {
        ps / self.cycles(1) + 1
    }

    /// Does `ops` at one instant, the beginning of a cycle, after a long rest; gives how long each
    /// took to be answered or done, and to be accepted.
    fn play(&mut self, ops: &[Op]) -> (Vec<u64>, Vec<u64>) {
        let clock = self.machine.engine.medium.timing.clock.ps();
        let start = (self.engine.now().ps() / clock + 10_000) * clock;
        let now = Time::from_ps(start);
        self.engine.observe(Journal::default());
        for (tag, op) in ops.iter().enumerate() {
            let kind = match op {
                Op::Read(_) => Direction::Read,
                _ => Direction::Write,
            };
            let request = request(kind, tag as u64, now);
            let controller = &mut self.controller;
            while !self.engine.admits() {
                self.engine.advance();
            }
            let handle = |plan: &mut Plan| op.handle(controller, plan);
            self.engine.admit(request, now, handle);
        }
        self.engine.run_to_rest();
        let mut done = vec![0; ops.len()];
        for answer in self.engine.answers() {
            done[answer.request.tag as usize] = answer.at.ps() - start;
        }
        let journal = self.engine.take::<Journal>().expect("it was kept");
        (done, accepted(&journal, start))
    }
}

/// When each write was accepted, in the order of handling.
fn accepted(journal: &Journal, start: u64) -> Vec<u64> {
    let mut times = vec![0; journal.handled.len()];
    for (at, event) in &journal.events {
        if let Event::Accepted(index) = event {
            times[*index as usize] = at.ps() - start;
        }
    }
    times
}

#[derive(Clone, Copy)]
enum Op {
    Read(u64),
    Write(u64),
    /// Counter-atomic.
    Commit(u64),
    CounterWriteback(u64),
}

impl Op {
    fn handle(self, controller: &mut Controller, plan: &mut Plan) -> Stored {
        let mut write = |line: u64, order| {
            let (data, line): (Line, u64) = ([line as u8 + 1; 64], ROW + line);
            plan.handled(Logical(line), &data, Class::Data, order);
            let data = At::past(&data);
            let write = Write {
                order,
                ..Write::new(Logical(line), data)
            };
            controller.write(write, plan)
        };
        match self {
            Op::Write(line) => write(line, Persist::Relaxed),
            Op::Commit(line) => write(line, Persist::CounterAtomic),
            Op::Read(line) => {
                let read = controller.read(Logical(ROW + line), Class::Data, Step::PAST, plan);
                assert!(read.value.is_some());
                Stored::at(read.at)
            }
            Op::CounterWriteback(line) => {
                controller.persist_metadata(Logical(ROW + line), Step::PAST, plan)
            }
        }
    }
}

/// Opens the rows of line 0 and of its counter, and caches that counter's line.
fn warmed(design: &str) -> Rig {
    let mut rig = Rig::new(design);
    rig.play(&[Op::Read(0)]);
    rig
}

/// Fig. 6(a): the counter comes with the line, and only then decryption begins.
#[test]
fn a_co_located_read_is_the_access_and_then_the_decryption() {
    let mut rig = warmed("co-located");
    let expected = rig.cycles(1 + rig.read()) + rig.unit(Unit::Aes);
    assert_eq!(rig.play(&[Op::Read(0)]).0, [expected]);
    assert_eq!(rig.play(&[Op::Read(9)]).0, [expected], "hit or not");
}

/// Fig. 6(b): a cached counter's pad is made during the access; a miss fetches the line once more.
#[test]
fn a_cached_co_located_read_hides_the_decryption_or_reads_twice() {
    let mut rig = warmed("co-located-cc");
    let pad = rig.unit(Unit::Counters) + rig.unit(Unit::Aes);
    let hit = rig.cycles(1 + rig.read()).max(pad);
    assert_eq!(rig.play(&[Op::Read(0)]).0, [hit]);
    let again = rig.cycles(1 + rig.transfer() + rig.read());
    let miss = again + rig.unit(Unit::Aes);
    assert_eq!(rig.play(&[Op::Read(1)]).0, [miss], "a neighbour's counter");
    assert_eq!(rig.play(&[Op::Read(1)]).0, [hit]);
}

/// Fig. 6(c): the same for a hit; a miss fetches eight counters, and a neighbour then hits.
#[test]
fn a_read_with_separate_counters_hides_the_decryption_or_waits_for_eight_counters() {
    for design in ["fca", "sca", "ideal", "no-atomicity"] {
        let mut rig = warmed(design);
        let pad = rig.unit(Unit::Counters) + rig.unit(Unit::Aes);
        let hit = rig.cycles(1 + rig.read()).max(pad);
        assert_eq!(rig.play(&[Op::Read(0)]).0, [hit]);
        // The counters' row is open, in another bank: the second transfer on the bus.
        let counters = rig.cycles(1 + rig.transfer() + rig.read());
        let miss = counters + rig.unit(Unit::Aes);
        assert_eq!(rig.play(&[Op::Read(8)]).0, [miss], "{design}");
        assert_eq!(rig.play(&[Op::Read(9)]).0, [hit], "{design}");
    }
}

/// Fig. 6: a write is encrypted and then written; with full counter-atomicity it is complete when
/// the counter is, the second transfer on the bus.
#[test]
fn a_write_is_the_encryption_and_then_one_access_or_two() {
    for (design, accesses) in [
        ("no-encryption", 1),
        ("co-located", 1),
        ("co-located-cc", 1),
        ("ideal", 1),
        ("sca", 1),
        ("fca", 2),
    ] {
        let mut rig = warmed(design);
        let pad = match design {
            "no-encryption" => 0,
            _ => rig.unit(Unit::Aes),
        };
        let first = rig.seen(pad);
        let last = first + (accesses - 1) * rig.transfer();
        let (done, accepted) = rig.play(&[Op::Write(3)]);
        assert_eq!(done, [rig.cycles(last + rig.write())], "{design}");
        assert_eq!(accepted, [pad], "{design}");
    }
}

/// A write that misses the counter cache does not wait for the counters: its counter is a new one.
/// The counter's half of a counter-atomic one does, since a line of eight is written.
#[test]
fn a_write_miss_does_not_stall_and_a_counter_atomic_one_completes_with_the_fetch() {
    let mut rig = warmed("sca");
    let pad = rig.unit(Unit::Aes);
    assert_eq!(rig.play(&[Op::Write(8)]).1, [pad]);
    let look = rig.unit(Unit::Counters);
    let fetched = rig.cycles(rig.seen(look) + rig.read());
    assert_eq!(rig.play(&[Op::Commit(16)]).1, [fetched.max(pad)]);
    assert_eq!(rig.play(&[Op::Commit(17)]).1, [pad], "now it hits");
}

/// Fig. 8, one stage of `n` writes. (a) Full counter-atomicity: each write of the counter line
/// waits for the one before. (b) Selective: the data go one after the other at the bus's pace, and
/// one write of the counter line goes among them.
#[test]
fn a_stage_is_serial_with_full_and_parallel_with_selective_counter_atomicity() {
    // From six on the sixth line is on the bus when the second counter could go.
    for n in 1..=5u64 {
        let stage: Vec<Op> = (0..n).map(Op::Write).collect();
        let mut rig = warmed("fca");
        let first = rig.seen(rig.unit(Unit::Aes));
        let (done, accepted) = rig.play(&stage);
        // A finished write's follower is seen by the channel in the next cycle.
        let full = first + rig.transfer() + n * rig.write() + (n - 1);
        assert_eq!(done.iter().max(), Some(&rig.cycles(full)), "{n} writes");

        let mut rig = warmed("sca");
        let with_counters = [stage, vec![Op::CounterWriteback(0)]].concat();
        let (done, relaxed) = rig.play(&with_counters);
        let selective = first + n * rig.transfer() + rig.write();
        assert_eq!(
            done.iter().max(),
            Some(&rig.cycles(selective)),
            "{n} writes"
        );
        assert_eq!(accepted, relaxed, "the persistence domain takes both alike");
        assert!(n == 1 || selective < full);
    }
}

/// Fig. 8, the commit: one counter-atomic write, the same in both.
#[test]
fn a_commit_takes_both_designs_as_long() {
    let commit = |design: &str| {
        let mut rig = warmed(design);
        let first = rig.seen(rig.unit(Unit::Aes));
        let both = rig.cycles(first + rig.transfer() + rig.write());
        assert_eq!(rig.play(&[Op::Commit(0)]).0, [both], "{design}");
    };
    commit("fca");
    commit("sca");
}
