//! Small runs of programs and all their cuts: what most tests of this crate begin with.

use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx_crash::{ExploredCuts, History, Options, Platform, explain, explore};
use sardonyx_workload::{DurabilityKind, ProgramSpec};

/// A program on each core.
#[derive(Clone, Copy)]
pub struct Small<'s> {
    pub machine: &'s str,
    pub sets: &'s [(&'s str, &'s str)],
    pub program: &'s str,
    pub cores: u64,
    pub transactions: u64,
    /// The first core's seed; the next core has the next.
    pub seed: u64,
    /// The seed of the schedule.
    pub schedule: u64,
    /// `None`: the design's own log, if it keeps one, and else the program's.
    pub durability: Option<DurabilityKind>,
}

impl Small<'_> {
    pub const BTREE: Small<'static> = Small {
        machine: "sca",
        sets: &[],
        program: "btree",
        cores: 1,
        transactions: 20,
        seed: 3,
        schedule: 5,
        durability: None,
    };

    pub fn run(&self, design: &str) -> History {
        let own = || DurabilityKind::on(&Stack::named(design).expect("a design"));
        let durability = self.durability.unwrap_or_else(own);
        let spec = |core| ProgramSpec {
            name: self.program.into(),
            item_bytes: 64,
            footprint: 8192,
            transactions: self.transactions,
            seed: self.seed + core,
            durability,
            ..ProgramSpec::default()
        };
        let specs: Vec<ProgramSpec> = (0..self.cores).map(spec).collect();
        let machine = Machine::load(self.machine, self.sets).expect("a machine");
        History::record(&machine, design, &specs, self.schedule)
            .unwrap_or_else(|error| panic!("{design}: {error}"))
    }
}

pub fn on(platform: Platform) -> Options {
    Options {
        platform,
        ..Options::default()
    }
}

pub fn explored(history: &History, options: &Options) -> ExploredCuts {
    explore(history, options, &|_| true).expect("nobody cancels")
}

/// What is wrong, in words, for a test that says nothing should be.
pub fn told(history: &History, explored: &ExploredCuts) -> String {
    let first = explored.tally.first();
    let stories = first.map(|violation| explain(history, violation).join("\n"));
    stories.collect::<Vec<_>>().join("\n")
}

pub fn assert_holds(history: &History, explored: &ExploredCuts) {
    assert!(
        explored.tally.kinds.is_empty(),
        "{}",
        told(history, explored)
    );
}

/// Honest recoveries are believed at every cut, in later lives as well.
pub fn assert_believed(design: &str, history: &History) {
    let options = Options {
        recovery_cuts: 16,
        ..Options::default()
    };
    let found = explored(history, &options);
    let covered = &found.covered;
    assert!(covered.cuts > 1000, "{design}: {covered:?}");
    assert!(covered.later_lives > 0, "{design}: {covered:?}");
    assert!(found.tally.kinds.is_empty(), "{design}: {:?}", found.tally);
}
