//! Programs on designs whose hardware keeps the log, in time: where every write goes, what the log
//! manager says when it has no room, and what it costs beside its rivals.

use crate::common::{figure, machine};
use std::collections::BTreeSet;

use sardonyx::machine::{Outcome, RunError, System};
use sardonyx::plan::command::{CommandKind, CommandLog};
use sardonyx::stats::Cause;
use sardonyx_audit::audit;
use sardonyx_workload::{self as workload, DurabilityKind, ProgramSpec, timed};

const DESIGNS: [&str; 3] = ["hw-log", "alc", "easy-pm"];
/// Those whose entries wait on chip too.
const ALL: [&str; 6] = ["hw-log", "alc", "easy-pm", "proteus", "silo", "lad"];
/// Those whose log goes round.
const CIRCULAR: [&str; 3] = ["fwb", "morlog", "hoop"];

fn spec(name: &str, item_bytes: u64, transactions: u64) -> ProgramSpec {
    ProgramSpec {
        name: name.into(),
        item_bytes,
        footprint: 1 << 20,
        transactions,
        seed: 1,
        durability: DurabilityKind::Hardware,
        ..ProgramSpec::default()
    }
}

fn system(
    design: &str,
    settings: &[(&str, &str)],
    spec: &ProgramSpec,
    cores: usize,
) -> System<'static> {
    let machine = machine("sca", settings);
    timed::system(&machine, design, spec, cores, 0).unwrap_or_else(|error| panic!("{error}"))
}

fn run(design: &str, settings: &[(&str, &str)], spec: &ProgramSpec, cores: usize) -> Outcome {
    let outcome = system(design, settings, spec, cores).run(&mut |_| true);
    outcome.unwrap_or_else(|error| panic!("{design}: {error}"))
}

fn writes_of(outcome: &Outcome, cause: Cause) -> u64 {
    outcome.ledger.total(cause).medium_writes
}

/// Breaks if a write of a log has no cause, if a merged write is counted, or if the commands are illegal.
#[test]
fn writes_by_cause_are_those_of_the_command_log() {
    for design in ALL.into_iter().chain(CIRCULAR) {
        for known in workload::all() {
            let mut system = system(design, &[], &spec(known.name, 128, 60), 4);
            system.memory().observe(CommandLog::default());
            let outcome = system
                .run(&mut |_| true)
                .unwrap_or_else(|error| panic!("{design}: {error}"));
            let log = system
                .memory()
                .take::<CommandLog>()
                .expect("it listens")
                .by_channel();
            let machine = machine("sca", &[]);
            let summary = audit(&machine.engine.medium, &log)
                .unwrap_or_else(|broken| panic!("{design}: {broken}"));
            let causes = || Cause::ALL.into_iter();
            let writes = causes().map(|cause| writes_of(&outcome, cause));
            let reads = causes().map(|cause| outcome.ledger.total(cause).medium_reads);
            let name = (design, known.name);
            assert_eq!(
                (writes.sum(), reads.sum()),
                (summary.writes, summary.reads),
                "{name:?}"
            );
            assert_eq!(
                figure(&outcome, "medium_writes") as u64,
                summary.writes,
                "{name:?}"
            );
            let logged = writes_of(&outcome, Cause::Log);
            if DESIGNS.contains(&design) {
                assert!(logged > 0, "{name:?}");
            } else if CIRCULAR.contains(&design) {
                let lines = match design {
                    "hoop" => 2 * figure(&outcome, "oop_slices") as u64,
                    _ => figure(&outcome, "log_lines") as u64,
                };
                assert!((1..=lines).contains(&logged), "{name:?}");
            } else {
                let spilled = figure(&outcome, "log_entries_spilled") as u64;
                assert!(logged <= spilled, "{name:?}");
            }
        }
    }
}

/// Breaks if the log takes another line, or another counter, than EASY-PM says; nothing is merged here.
#[test]
fn a_transaction_of_seven_lines_costs_what_the_paper_says() {
    let alone = [
        ("medium.queues.coalescing", "false"),
        ("log.timeout_ns", "1000000"),
    ];
    let writes = |design: &str| {
        // Two items of three lines, and the root line.
        let outcome = run(design, &alone, &spec("array-swap", 192, 200), 1);
        [Cause::Data, Cause::Log, Cause::Counter].map(|cause| writes_of(&outcome, cause))
    };
    let [hw_log, alc, easy_pm] = DESIGNS.map(writes);
    // Seven old lines and their header; EASY-PM's vectors and their number of headers as well.
    assert_eq!(
        [hw_log, alc].map(|[data, log, _]| (data, log)),
        [(1400, 1600); 2]
    );
    assert_eq!((easy_pm[0], easy_pm[1]), (1400, 2000));
    // The cache has room for the counters of a log of this size.
    assert_eq!(hw_log[2] - alc[2], 1600);
    assert!(alc[2].abs_diff(easy_pm[2]) <= 2, "{alc:?} {easy_pm:?}");
}

/// Breaks if buckets come back in another order: first given up, first taken goes round all of them; last
/// given up, first taken has one core stay in one.
#[test]
fn buckets_come_back_in_the_order_that_is_chosen() {
    for design in DESIGNS {
        let lines = |reuse| {
            let chosen = [("log.reuse", reuse), ("log.buckets", "8")];
            let mut system = system(design, &chosen, &spec("array-swap", 64, 50), 1);
            system.memory().observe(CommandLog::default());
            let outcome = system.run(&mut |_| true);
            outcome.unwrap_or_else(|error| panic!("{design}: {error}"));
            let log = system
                .memory()
                .take::<CommandLog>()
                .expect("it listens")
                .by_channel();
            let written = log.iter().filter_map(|command| match command.kind {
                CommandKind::Write { .. } => Some(command.place),
                _ => None,
            });
            written.collect::<BTreeSet<u64>>().len()
        };
        // A record of two lines or three and its header, in seven buckets more.
        let more = lines("fifo") - lines("lifo");
        assert!((7 * 3..=7 * 8).contains(&more), "{design}: {more}");
    }
}

/// Breaks if the number of valid headers is written where it is not kept.
#[test]
fn headers_are_counted_where_it_is_chosen() {
    let writes = |kept| {
        let settings = [
            ("medium.queues.coalescing", "false"),
            ("log.timeout_ns", "1000000"),
            ("easy_pm.valid_headers", kept),
        ];
        let outcome = run("easy-pm", &settings, &spec("array-swap", 192, 200), 1);
        writes_of(&outcome, Cause::Log)
    };
    // Seven old lines, a header, the vectors; and the number of headers.
    assert_eq!(
        ["registers", "medium", "both"].map(writes),
        [1800, 2000, 2000]
    );
}

/// Breaks if a log that has no room is not said to have none, or says what does not help.
#[test]
fn a_log_without_room_says_so() {
    let swap = spec("array-swap", 64, 50);
    let large = spec("array-swap", 4096, 5);
    type Keys<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Keys, &ProgramSpec, &str); 3] = [
        (
            &[("log.transactions", "1")],
            &swap,
            "set log.transactions higher, or use fewer cores",
        ),
        (
            &[("log.buckets", "1")],
            &swap,
            "set log.buckets or log.records higher",
        ),
        (
            &[("log.records", "1")],
            &large,
            "set log.records higher, or make shorter transactions",
        ),
    ];
    for design in ALL {
        for (settings, spec, remedy) in &cases {
            let told = system(design, settings, spec, 2).run(&mut |_| true);
            let told = told.expect_err("it has no room");
            assert!(matches!(told, RunError::Exhausted { .. }), "{told:?}");
            assert!(told.to_string().contains(remedy), "{design}: {told}");
        }
        for (_, spec, _) in &cases {
            run(design, &[], spec, 2);
        }
    }
}

/// Breaks if an entry is written though the queue has room, if one is not that finds none, or if a commit does not drop
/// the others; two items of three lines and the root line, two entries a line.
#[test]
fn entries_on_chip_are_written_only_where_there_is_no_room() {
    let counted = |design: &str, key, room: &str| {
        let alone = [("medium.queues.coalescing", "false"), (key, room)];
        let outcome = run(design, &alone, &spec("array-swap", 192, 200), 1);
        let written = writes_of(&outcome, Cause::Log);
        let figures = ["log_entries_spilled", "log_entries_dropped"];
        let [spilled, dropped] = figures.map(|name| figure(&outcome, name) as u64);
        assert_eq!(written, spilled, "{design}");
        (spilled / 200, dropped / 200)
    };
    assert_eq!(counted("proteus", "proteus.queue", "14"), (0, 14));
    assert_eq!(counted("proteus", "proteus.queue", "13"), (1, 13));
    assert_eq!(counted("silo", "silo.entries", "7"), (0, 14));
    assert_eq!(counted("silo", "silo.entries", "5"), (4, 10));
    assert_eq!(counted("lad", "lad.queue", "7"), (0, 14));
    assert_eq!(counted("lad", "lad.queue", "5"), (4, 10));
}

/// Breaks if a commit of Silo's waits for memory: each waits for less than the write of one line takes.
#[test]
fn a_commit_that_keeps_its_data_on_chip_does_not_wait_for_memory() {
    let waits = |design| {
        let outcome = run(design, &[], &spec("array-swap", 192, 200), 1);
        figure(&outcome, "simulated_ns")
    };
    let [silo, proteus, hw_log] = ["silo", "proteus", "hw-log"].map(waits);
    assert!(
        silo < proteus && proteus < hw_log,
        "{silo} {proteus} {hw_log}"
    );
}

/// Breaks if a commit forces a line to memory, if a log that comes round does not, if it is not said to have no room, or
/// if clean words are logged.
#[test]
fn a_circular_log_forces_lines_back_only_when_it_comes_round() {
    let swap = spec("array-swap", 192, 200);
    let counted = |design: &str, settings: &[(&str, &str)]| {
        let alone = [("medium.queues.coalescing", "false")];
        let outcome = run(design, &[&alone, settings].concat(), &swap, 1);
        let [lines, forced] =
            ["log_lines", "log_forced_back"].map(|name| figure(&outcome, name) as u64);
        assert_eq!(writes_of(&outcome, Cause::Log), lines, "{design}");
        assert_eq!(writes_of(&outcome, Cause::Data), forced, "{design}");
        (lines, forced)
    };
    for (design, settings) in [("fwb", &[][..]), ("morlog", &[("morlog.encoded", "false")])] {
        // Two lines of the log for each old and each new line, and a commit.
        let once = [settings, &[("fwb.walks", "1")]].concat();
        assert_eq!(counted(design, &once), (200 * 29, 0), "{design}");
        let small = [settings, &[("fwb.log_lines", "256")]].concat();
        let (lines, forced) = counted(design, &small);
        assert!(
            lines == 200 * 29 && (200..=1400).contains(&forced),
            "{design}: {forced}"
        );
        let told = system(design, &[("fwb.log_lines", "16")], &swap, 1).run(&mut |_| true);
        let told = told.expect_err("it has no room").to_string();
        assert!(told.contains("set fwb.log_lines higher"), "{told}");
    }
    let (lines, _) = counted("morlog", &[]);
    assert!((200 * 15..200 * 29).contains(&lines), "{lines}");
}
