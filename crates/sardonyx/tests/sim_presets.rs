//! Machines with bank groups and pseudo-channels: legal commands under load, and the latency that their parameters add
//! up to without one.

use crate::common::machine;
use sardonyx::config::Machine;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::plan::command::{CommandKind, CommandLog};
use sardonyx::trace::{Format, ImportOptions, Source, import};
use sardonyx_audit::{AuditSummary, Rule, audit};

const MACHINES: [&str; 5] = ["ddr5-4800", "lpddr5-6400", "gddr6-16", "hbm2", "hbm3"];

/// Of `clock_mhz`, so that requests come as fast as is said here.
pub fn source(text: &str, clock_mhz: f64) -> Source {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (
        folder.path().join("in.txt"),
        folder.path().join("t.parquet"),
    );
    std::fs::write(&from, text).unwrap();
    let options = ImportOptions {
        clock_mhz: Some(clock_mhz),
        ..ImportOptions::default()
    };
    import(&from, &to, Format::DramSim3, &options, &mut |_, _| ()).unwrap();
    Source::open(&to).unwrap()
}

fn audited(machine: &Machine, source: Source) -> (AuditSummary, f64) {
    let system = recordings::system(machine, "no-encryption", vec![source], Options::default());
    let mut system = system.unwrap();
    system.memory().observe(CommandLog::default());
    let outcome = system.run(&mut |_| true).unwrap();
    let log = system.memory().take::<CommandLog>().unwrap().by_channel();
    let summary = audit(&machine.engine.medium, &log);
    let summary = summary.unwrap_or_else(|found| panic!("{}: {found}", machine.name));
    let latency = outcome.figures.named("mean_read_latency_ns").number();
    (summary, latency.unwrap_or_default())
}

/// Streams and any lines, reads and writes, bursts and pauses.
fn load(requests: u64, lines: u64) -> String {
    let (mut text, mut cycle) = (String::new(), 0);
    for k in 0..requests {
        let draw = k.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let line = match k / 200 % 3 {
            0 => k % lines,
            1 => draw % lines,
            _ => draw % 8 * (lines / 8) + k % 4,
        };
        let op = if draw % 10 < 3 { "WRITE" } else { "READ" };
        cycle += if k % 1000 == 0 { 4_000 } else { draw % 3 };
        text += &format!("{:#x} {op} {cycle}\n", line * 64);
    }
    text
}

#[test]
fn the_auditor_finds_nothing_on_machines_with_bank_groups() {
    for name in MACHINES {
        let machine = machine(name, &[]);
        let lines = machine.engine.medium.geometry.lines();
        let requests = sardonyx_property::count(12_000, 1_000_000) as u64;
        let (summary, _) = audited(&machine, source(&load(requests, lines), 2400.0));
        assert!(summary.reads + summary.writes > requests / 2, "{name}"); // queues answer some
        assert!(summary.refreshes > 0, "{name}");
        let tight = [Rule::ReadToRead, Rule::WriteToRead].map(|rule| summary.tight(rule));
        assert!(tight.iter().all(|pairs| *pairs > 0), "{name}: {tight:?}");
    }
}

/// DDR5's REFsb, of 16 Gb: 130 ns at 416.66 ps, and 30 ns until other banks may be activated.
#[test]
fn one_bank_of_each_group_is_refreshed_while_others_work() {
    let keys = [
        ("medium.timing.tRFCsb", "312"),
        ("medium.timing.tREFSBRD", "72"),
    ];
    let took = |keys: &[(&str, &str)]| {
        let machine = machine("ddr5-4800", keys);
        let lines = machine.engine.medium.geometry.lines();
        audited(&machine, source(&load(20_000, lines), 400.0))
    };
    let ((at_once, slow), (in_turn, quick)) = (took(&[]), took(&keys));
    let often = in_turn.refreshes as f64 / at_once.refreshes as f64;
    assert!((3.5..4.5).contains(&often), "four sets of banks: {often}");
    assert!(quick < slow, "{quick} and {slow} ns");
    assert!(in_turn.tight(Rule::RefreshToActivate) > 0);
}

/// Refreshes that wait for a write's cells are made up for one by one; they once were skipped as those of an idle
/// channel are, and the write never ended.
#[test]
fn a_write_may_take_longer_than_many_periods_of_refreshes() {
    let machine = machine("ddr4-2400", &[("medium.cells.set_ns", "100000")]);
    let writes: String = (0..6)
        .map(|k| format!("{:#x} WRITE {k}\n", k << 16))
        .collect();
    let system = recordings::system(
        &machine,
        "no-encryption",
        vec![source(&writes, 1000.0)],
        Options::default(),
    );
    let outcome = system.unwrap().run(&mut |_| true).unwrap();
    let took = outcome.figures.named("simulated_ns").number().unwrap();
    assert!((100e3..700e3).contains(&took), "{took} ns");
}

#[test]
fn an_unloaded_read_takes_what_its_parameters_add_up_to() {
    for name in MACHINES {
        let keys = [
            ("medium.timing.tREFI", "0"),
            ("medium.queues.page", "closed"),
        ];
        let machine = machine(name, &keys);
        let medium = &machine.engine.medium;
        // Each read in a row, and a bank, of its own, long after the one before.
        let lines = medium.geometry.lines();
        let reads =
            (0..50).map(|k| format!("{:#x} READ {}\n", k * (lines / 64 + 1) * 64, k * 4_000));
        let text: String = reads.collect();
        let (_, latency) = audited(&machine, source(&text, 1000.0));
        let t = &medium.timing;
        let (clock, sum) = (t.clock.ns(), t.tRCD + t.tCL + t.tBURST);
        let (least, most) = (sum as f64 * clock, (sum + 1) as f64 * clock);
        assert!(
            (least..=most).contains(&latency),
            "{name}: {latency}, {least} to {most}"
        );
    }
}

/// Two open rows, read in turn: in one bank group each column command waits tCCD_L, in two tCCD.
#[test]
fn a_bank_group_takes_column_commands_at_its_own_rate() {
    let keys = [
        ("medium.timing.tREFI", "0"),
        ("medium.mapping", "row:rank:bank:channel:column"),
    ];
    let machine = machine("ddr5-4800", &keys);
    let row = 64 * 64 * 2; // bytes of a row in both channels: the next bank
    let took = |bank: u64| {
        let reads = (0..120).map(|k| format!("{:#x} READ 0\n", k % 2 * bank * row + k / 2 * 64));
        let text: String = reads.collect();
        let (summary, _) = audited(&machine, source(&text, 2400.0));
        summary.end
    };
    let (one, two) = (took(8), took(1));
    assert_eq!(one - two, 119 * (12 - 8), "{one} and {two} cycles");
}

/// What a rank of eight MT40A1G8PM-083E takes that does nothing but refresh: IDD2N, and IDD5AB for tRFC of each tREFI, at
/// 1.2 V (its data sheet).
#[test]
fn an_idle_rank_takes_what_its_data_sheet_adds_up_to() {
    let machine = machine("ddr4-2400", &[]);
    let text = "0x0 READ 0\n0x40000 READ 100000000\n";
    let outcome = recordings::run(
        &machine,
        "no-encryption",
        vec![source(text, 1200.0)],
        Options::default(),
        &mut |_| true,
    )
    .unwrap();
    let of = |name: &str| outcome.figures.named(name).number().unwrap();
    let ranks = machine.engine.medium.geometry.ranks as f64;
    let sheet = 8.0 * 1.2 * (34.0 + (250.0 - 34.0) * 350.0 / 7_800.0);
    let ratio = of("power_mw") / ranks / sheet;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
    let parts = ["read", "write", "activation", "refresh", "standby", "units"];
    let sum: f64 = parts
        .map(|part| of(&format!("energy_{part}_nj")))
        .iter()
        .sum();
    assert!((sum / of("energy_nj") - 1.0).abs() < 1e-9);
    let opened = of("energy_activation_nj") / of("medium_reads");
    assert!((opened - (48.0 * 56.0 - 43.0 * 39.0 - 34.0 * 17.0) * 0.833 * 1.2 * 8e-3).abs() < 0.01);
}

/// A stream of reads that comes as fast as it is taken gets nine tenths of what the pins can move, refreshes included.
#[test]
fn one_stream_reaches_the_pins_of_every_dram() {
    let stream: String = (0..40_000)
        .map(|line| format!("{:#x} READ 0\n", line * 64))
        .collect();
    for name in MACHINES.into_iter().chain(["ddr4-2400"]) {
        let machine = machine(name, &[]);
        let medium = &machine.engine.medium;
        let line_ns = medium.timing.tBURST as f64 * medium.timing.clock.ns();
        let pins = 64.0 / line_ns * medium.geometry.channels as f64;
        let options = Options::default();
        let sources = vec![source(&stream, 1000.0)];
        let system = recordings::system(&machine, "no-encryption", sources, options);
        let outcome = system.unwrap().run(&mut |_| true).unwrap();
        let moved = outcome.figures.named("medium_gb_per_s").number();
        let share = moved.unwrap_or_default() / pins;
        assert!(
            (0.9..=1.0).contains(&share),
            "{name}: {share} of {pins} GB/s"
        );
    }
}

/// Standby as the commands on the bus tell it: cycle by cycle, whether a rank has an open row.
#[test]
fn a_rank_stands_by_with_open_rows_as_long_as_its_commands_say() {
    for page in ["open", "closed"] {
        let keys = [
            ("medium.queues.page", page),
            ("medium.energy.standby_nj_per_us", "1"),
            ("medium.energy.active_nj_per_us", "1001"),
        ];
        let machine = machine("ddr4-2400", &keys);
        let medium = &machine.engine.medium;
        let lines = medium.geometry.lines();
        let sources = vec![source(&load(4_000, lines), 400.0)];
        let options = Options::default();
        let mut system = recordings::system(&machine, "no-encryption", sources, options).unwrap();
        system.memory().observe(CommandLog::default());
        let outcome = system.run(&mut |_| true).unwrap();
        let log = system.memory().take::<CommandLog>().unwrap().by_channel();
        let simulated = outcome.figures.named("simulated_ns").number().unwrap();
        let cycle_ns = medium.timing.clock.ns();
        let end = (simulated / cycle_ns) as usize;
        let mut open = vec![[0i32; 2]; end + 1]; // changes of the open banks of each rank
        let mut since = [[None; 16]; 2];
        let mut closed = |rank: usize, since: &mut Option<u64>, at: u64| {
            if let Some(from) = since.take() {
                open[(from as usize).min(end)][rank] += 1;
                open[(at as usize).min(end)][rank] -= 1;
            }
        };
        let t = &medium.timing;
        for command in &log {
            let (rank, bank, cycle) = (command.rank as usize, command.bank as usize, command.cycle);
            let row = &mut since[rank][bank];
            match command.kind {
                CommandKind::Activate { .. } => *row = Some(cycle),
                CommandKind::Precharge => closed(rank, row, cycle),
                CommandKind::PrechargeAll => {
                    let banks = since[rank].iter_mut();
                    banks.for_each(|row| closed(rank, row, cycle));
                }
                CommandKind::Read { auto_precharge, .. } if auto_precharge => {
                    let at = (cycle + t.tBURST + t.tRTP - t.tCCD).max(row.unwrap() + t.tRAS);
                    closed(rank, row, at);
                }
                CommandKind::Write { auto_precharge, .. } if auto_precharge => {
                    let at = cycle + t.tCWD + t.tBURST + t.tWR;
                    closed(rank, row, at.max(row.unwrap() + t.tRAS));
                }
                _ => {}
            }
        }
        for (rank, banks) in since.iter_mut().enumerate() {
            banks.iter_mut().for_each(|row| closed(rank, row, u64::MAX));
        }
        let (mut now, mut active) = ([0; 2], 0u64);
        for change in &open[..end] {
            for (banks, change) in now.iter_mut().zip(change) {
                *banks += change;
                active += u64::from(*banks > 0);
            }
        }
        let wanted = (2.0 * simulated + 1000.0 * active as f64 * cycle_ns) * 1e-3;
        let standby = outcome.figures.named("energy_standby_nj").number().unwrap();
        let share = active as f64 / (2 * end) as f64;
        assert!(
            (0.05..0.999).contains(&share),
            "{page}: {share} of the time"
        );
        assert!(
            (standby / wanted - 1.0).abs() < 1e-3,
            "{page}: {standby}, {wanted} by commands"
        );
    }
}
