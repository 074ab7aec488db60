//! Accesses that become active: the schedule of Ramulator 2.1's controllers, command by command.

use crate::command_queues::{requests, row, run};
use crate::common::{figure, machine};
use sardonyx::config::Machine;
use sardonyx::plan::command::{Command, CommandKind};

/// As Ramulator 2.1 (c5b1c3a) exports its presets, refreshed more often: the standard, the controller, the channels, and
/// what the DRAM says of itself.
const MACHINES: [(&str, &str, usize, &str); 6] = [
    (
        "DDR4",
        "GenericDDR",
        1,
        r#""org": {"dq": 8, "count": [1, 1, 4, 4, 65536, 1024]}, "channel_width": 64, "command_cycles": [1, 1, 1, 1, 1, 1,
        1, 1], "timing": [2400, 4, 16, 16, 16, 39, 55, 18, 9, 12, 4, 6, 4, 6, 3, 9, 26, 433, 1000, 2, 833]"#,
    ),
    (
        "DDR5",
        "GenericDDR",
        1,
        r#""org": {"dq": 8, "count": [1, 1, 8, 4, 65536, 1024]}, "channel_width": 32, "command_cycles": [2, 1, 1, 2, 2, 2,
        2, 1], "timing": [4800, 8, 36, 36, 36, 77, 113, 72, 18, 34, 2, 8, 12, 8, 48, 8, 12, 6, 24, 48, 710, 4000, 2, 416]"#,
    ),
    (
        "HBM2",
        "HBM12",
        2,
        r#""org": {"dq": 64, "count": [1, 2, 4, 4, 32768, 128]}, "channel_width": 64, "command_cycles": [2, 1, 1, 1, 1, 1,
        1, 1, 1], "timing": [2400, 2, 17, 17, 14, 17, 40, 57, 19, 6, 6, 2, 4, 5, 5, 8, 10, 19, 313, 193, 10, 800, 147,
        833]"#,
    ),
    (
        "HBM3",
        "HBM34",
        2,
        r#""org": {"dq": 32, "count": [1, 2, 2, 4, 4, 8192, 256]}, "channel_width": 32, "command_cycles": [3, 1, 1, 2, 2,
        2, 2, 1, 1, 1, 1], "timing": [6400, 4, 40, 62, 30, 52, 90, 144, 66, 18, 20, 4, 8, 6, 8, 10, 14, 20, 40, 48, 4,
        832, 640, 832, 640, 16, 2500, 390, 312]"#,
    ),
    (
        "LPDDR5",
        "LPDDR5",
        2,
        r#""org": {"dq": 16, "count": [1, 1, 4, 4, 32768, 1024]}, "channel_width": 16, "timing": [6400, 2, 4, 17, 15, 15,
        17, 34, 49, 28, 8, 9, 2, 2, 4, 2, 4, 4, 4, 5, 10, 16, 168, 96, 900, 391, 1, 0, 8, 2, 1250, 72, 6]"#,
    ),
    (
        "LPDDR6",
        "LPDDR6",
        2,
        r#""org": {"dq": 12, "count": [1, 1, 4, 4, 65536, 1024]}, "channel_width": 12, "data_payload_bytes": 32,
        "command_cycles": [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2], "timing": [10667, 6, 12, 18, 24, 56, 26, 59, 48, 22,
        107, 115, 54, 169, 32, 14, 26, 4, 6, 10, 22, 6, 10, 22, 10, 17, 32, 41, 47, 53, 59, 5, 0, 27, 0, 40, 1014, 2500, 3,
        2, 8, 2, 375]"#,
    ),
];

fn exported((standard, controller, channels, dram): (&str, &str, usize, &str)) -> Machine {
    let channel = format!(
        r#"{{"impl": "{controller}", "dram": {{"impl": "{standard}", {dram}}}, "refresh_manager": {{"impl": "AllBank"}}}}"#
    );
    let channels = vec![channel; channels].join(", ");
    let text = format!(
        r#"{{"memory_system": {{"channel_mapper": {{"impl": "CacheLineInterleave"}}, "controllers": [{channels}]}}}}"#
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ramulator.json");
    std::fs::write(&file, text).unwrap();
    // There what waits for a queue is outside.
    machine(file.to_str().unwrap(), &[("engine.ingress", "1000")])
}

/// The requests in half a gibibyte, so many times as far apart.
fn slower(text: &str, times: u64) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let address = u64::from_str_radix(&words[0][2..], 16).unwrap() % (1 << 29);
        let cycle = times * words[2].parse::<u64>().unwrap();
        format!("{address:#x} {} {cycle}\n", words[1])
    });
    lines.collect()
}

/// The table is Ramulator's trace of the first channel's commands for these requests, without LPDDR's second activates and
/// its commands that start the data clock.
#[test]
fn the_commands_are_ramulators_to_the_cycle() {
    let text = slower(&requests(), 2);
    for of in MACHINES {
        let machine = exported(of);
        // In whole kHz, as of a trace's file: no request comes before its cycle.
        let mhz = (1e9 / machine.engine.medium.timing.clock.ps() as f64).floor() / 1000.0;
        let (_, log) = run(&machine, &text, 1000.0 / mhz);
        let name = of.0.to_lowercase();
        let theirs: Vec<&str> = include_str!("ramulator_commands.tsv")
            .lines()
            .filter(|line| line.split('\t').next() == Some(&name))
            .collect();
        let count = theirs.len();
        assert!(count >= 500);
        // Two commands in a cycle have no order.
        let in_order = |mut rows: Vec<String>| {
            rows.sort_by_key(|row| row.split('\t').nth(1).unwrap().parse::<u64>().unwrap());
            rows.chunk_by(|a, b| a.split('\t').nth(1) == b.split('\t').nth(1))
                .flat_map(|of_cycle| {
                    let mut of_cycle = of_cycle.to_vec();
                    of_cycle.sort();
                    of_cycle
                })
                .collect::<Vec<String>>()
        };
        let ours = log.iter().take(count);
        let ours = in_order(
            ours.map(|one| row(&name, one).trim_end().to_owned())
                .collect(),
        );
        let theirs = in_order(theirs.into_iter().map(str::to_owned).collect());
        // The last cycle may have more commands.
        for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate().take(count - 2) {
            assert_eq!(ours, theirs, "{}, command {number}", of.0);
        }
    }
}

/// Each key alone, on a machine without it: with room on the buses reads take longer, or with more buses less long.
#[test]
fn what_each_key_costs() {
    let latency = |times: u64, keys: &[(&str, &str)]| {
        let fixed = [
            ("medium.queues.active", "true"),
            ("medium.geometry.ranks", "2"),
            ("engine.ingress", "1000"),
        ];
        let machine = machine("ddr4-2400", &[&fixed, keys].concat());
        let text = slower(&requests(), times);
        figure(&run(&machine, &text, 0.833).0, "mean_read_latency_ns")
    };
    let plain = latency(8, &[]);
    for (key, value) in [
        ("medium.queues.activate_cycles", "4"),
        ("medium.queues.precharge_cycles", "8"),
        ("medium.queues.column_cycles", "8"),
        ("medium.queues.data_clock", "1"),
        ("medium.queues.second_activate", "8"),
        ("medium.queues.rising_edges", "true"),
        ("medium.timing.tRC", "400"),
        ("medium.timing.tRTW", "100"),
    ] {
        let slower = latency(8, &[(key, value)]);
        assert!(slower > plain, "{key}: {slower}, without it {plain}");
    }
    let busy = latency(1, &[]);
    for key in ["medium.queues.rank_buses", "medium.queues.row_bus"] {
        let faster = latency(1, &[(key, "true")]);
        assert!(faster < busy, "{key}: {faster}, without it {busy}");
    }
}

/// Reads of two stacks of a rank keep their distance, those of one do not.
#[test]
fn reads_of_two_stacks_are_as_far_apart_as_asked() {
    let least = |distance| {
        let keys = [
            ("medium.queues.active", "true"),
            ("medium.geometry.groups", "4"),
            ("medium.queues.stacks", "4"),
            ("medium.timing.tCCDR", distance),
            ("engine.ingress", "1000"),
        ];
        let machine = machine("ddr4-2400", &keys);
        let groups = machine.engine.medium.groups.count as u32;
        let (_, log) = run(&machine, &slower(&requests(), 1), 0.833);
        let is_read = |one: &&Command| matches!(one.kind, CommandKind::Read { .. });
        let reads: Vec<&Command> = log.iter().filter(is_read).collect();
        let apart = |others: bool| {
            let pairs = reads.windows(2).filter(|of| {
                let stack = |one: &Command| one.bank % groups;
                of[0].rank == of[1].rank && (stack(of[0]) != stack(of[1])) == others
            });
            pairs.map(|of| of[1].cycle - of[0].cycle).min().unwrap()
        };
        (apart(true), apart(false))
    };
    assert_eq!(least("0").0, 4);
    assert_eq!(least("20").0, 20);
    assert!(least("20").1 < 20);
}

#[test]
fn what_would_do_nothing_is_refused() {
    let active = ("medium.queues.active", "true");
    for (key, on, off, other) in [
        (
            "medium.queues.rank_buses",
            "true",
            "false",
            ("medium.geometry.ranks", "1"),
        ),
        (
            "medium.queues.stacks",
            "2",
            "1",
            ("medium.geometry.groups", "1"),
        ),
    ] {
        let refused = Machine::load("ddr4-2400", &[active, (key, on), other]).unwrap_err();
        let said = refused.to_string();
        assert!(said.ends_with(&format!("set {key} to {off}")), "{said}");
        machine("ddr4-2400", &[active, (key, off), other]);
    }
    let idle = Machine::load("ddr4-2400", &[("medium.queues.bursts", "2")]).unwrap_err();
    assert!(idle.to_string().contains("medium.queues.active"), "{idle}");
}
