//! Updates out of place (HOOP) at every cut of small runs, whose region, table and data buffers are soon full.

use sardonyx_crash::{Options, Platform};

use crate::small_runs::{Small, assert_holds, explored, on};

#[test]
fn what_commits_out_of_place_is_whole_at_every_cut() {
    let full: &[(&str, &str)] = &[
        ("hoop.slices", "80"),
        ("hoop.buffer", "1"),
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
    ];
    let timely: &[(&str, &str)] = &[("hoop.collect_us", "2"), ("hoop.buffer", "2")];
    let mut collected = 0;
    for (number, (program, cores)) in [("btree", 2), ("hash", 1), ("queue", 2), ("rbtree", 1)]
        .into_iter()
        .enumerate()
    {
        let small = Small {
            sets: [full, timely][number % 2],
            program,
            cores,
            transactions: 40,
            ..Small::BTREE
        };
        let history = small.run("hoop");
        let options = Options {
            recovery_cuts: 256,
            ..on(Platform::Adr)
        };
        assert_holds(&history, &explored(&history, &options));
        collected += history
            .exercised()
            .of(&sardonyx::controller::logging::hoop::COLLECTED);
    }
    assert!(collected > 200, "{collected}");
}

/// A store outside of any transaction outlives what the log of a commit before it, or of a life before, puts back.
#[test]
fn stores_between_transactions_outlive_what_logs_put_back() {
    let few: &[(&str, &str)] = &[
        ("medium.queues.writes", "4"),
        ("medium.queues.counter_writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
    ];
    for design in ["silo", "lad", "fwb", "morlog", "hoop", "proteus", "hw-log"] {
        let small = Small {
            sets: few,
            program: "swap-and-store",
            cores: 2,
            transactions: 12,
            ..Small::BTREE
        };
        let history = small.run(design);
        let options = Options {
            recovery_cuts: 64,
            ..on(Platform::Adr)
        };
        assert_holds(&history, &explored(&history, &options));
    }
}
