//! Queues of commands: DRAMsim3's own schedule, command by command, and what each of the keys does alone.

use crate::common::{figure, machine};
use crate::sim_presets::source;
use sardonyx::config::Machine;
use sardonyx::machine::Outcome;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::plan::command::{Command, CommandKind, CommandLog};
use sardonyx_audit::audit;
use sardonyx_base::random::SplitMix64;
use std::collections::HashSet;

/// DRAMsim3's DDR4_8Gb_x8_2400, refreshed more often.
const FILE: &str = "[dram_structure]
protocol = DDR4
bankgroups = 4
banks_per_group = 4
rows = 65536
columns = 1024
device_width = 8
BL = 8
[timing]
tCK = 0.83
CL = 17
CWL = 12
tRCD = 17
tRP = 17
tRAS = 39
tRFC = 420
tREFI = 2000
tRRD_S = 4
tRRD_L = 6
tWTR_S = 3
tWTR_L = 9
tFAW = 26
tWR = 18
tRTP = 9
tCCD_S = 4
tCCD_L = 6
tRTRS = 1
[system]
channel_size = 16384
channels = 1
bus_width = 64
address_mapping = rochrababgco
queue_structure = PER_BANK
row_buf_policy = OPEN_PAGE
cmd_queue_size = 8
trans_queue_size = 32
";

/// Streams and random lines, none twice, two of three read, with a pause in every 400.
pub(crate) fn requests() -> String {
    let (mut dice, mut seen) = (SplitMix64(0), HashSet::new());
    let (mut text, mut cycle) = (String::new(), 0);
    for k in 0..1500 {
        let draw = dice.draw();
        let write = (draw >> 40) % 3 == 0;
        let line = match draw >> 4 & 3 {
            0 => draw >> 8 & 0x3FF_FFFF,
            _ => draw % 16 * (129 * 37) + k % 256 * 2,
        };
        let line = line & !1 | u64::from(write);
        if !seen.insert(line) {
            continue;
        }
        cycle += match k % 400 {
            399 => 400,
            _ => (draw >> 48) % 8,
        };
        let op = if write { "WRITE" } else { "READ" };
        text += &format!("{:#x} {op} {cycle}\n", line * 64);
    }
    text
}

pub(crate) fn run(machine: &Machine, text: &str, ns: f64) -> (Outcome, Vec<Command>) {
    let sources = vec![source(text, 1000.0 / ns)];
    let system = recordings::system(machine, "no-encryption", sources, Options::default());
    let mut system = system.unwrap();
    system.memory().observe(CommandLog::default());
    let outcome = system.run(&mut |_| true).unwrap();
    let log = system.memory().take::<CommandLog>().unwrap().by_channel();
    let audited = audit(&machine.engine.medium, &log);
    audited.unwrap_or_else(|found| panic!("{}: {found}", machine.name));
    (outcome, log)
}

/// As a row of the table, which is DRAMsim3 2981759's trace of commands for these requests, each offered at its cycle.
pub(crate) fn row(of: &str, command: &Command) -> String {
    let (kind, row) = match command.kind {
        CommandKind::Activate { row } => ("ACT", row.to_string()),
        CommandKind::Read { row, .. } => ("RD", row.to_string()),
        CommandKind::Write { row, .. } => ("WR", row.to_string()),
        CommandKind::Refresh => ("REF", String::new()),
        CommandKind::PrechargeAll => ("PREA", String::new()),
        _ => ("PRE", String::new()),
    };
    let Command {
        cycle, rank, bank, ..
    } = command;
    format!("{of}\t{cycle}\t{kind}\t{rank}\t{bank}\t{row}")
}

#[test]
fn the_commands_are_dramsim3s_to_the_cycle() {
    let text = requests();
    let folder = tempfile::tempdir().unwrap();
    for (of, structure) in [("bank", "PER_BANK"), ("rank", "PER_RANK")] {
        let file = folder.path().join("ddr4.ini");
        std::fs::write(&file, FILE.replace("PER_BANK", structure)).unwrap();
        // There what waits for a queue is outside.
        let machine = machine(file.to_str().unwrap(), &[("engine.ingress", "1000")]);
        let (_, log) = run(&machine, &text, 0.83);
        let theirs: Vec<&str> = include_str!("dramsim3_commands.tsv")
            .lines()
            .filter(|line| line.split('\t').next() == Some(of))
            .collect();
        assert_eq!(theirs.len(), 1000);
        for (ours, theirs) in log.iter().zip(theirs) {
            assert_eq!(row(of, ours).trim_end(), theirs);
        }
    }
}

/// Two rows of a bank in turn: a hit is found among the commands of its bank only, of which it holds so many.
#[test]
fn a_row_hit_is_found_among_the_commands_of_its_bank() {
    let row = 8192 * 32; // the next row of the bank, where columns are lowest
    let text: String = (0..2_000)
        .map(|k| format!("{:#x} READ 0\n", k % 2 * row + k / 2 % 128 * 64))
        .collect();
    let hits = |entries| {
        let keys = [
            ("medium.mapping", "row:rank:bank:channel:column"),
            ("medium.timing.tREFI", "0"),
            ("medium.queues.commands", entries),
        ];
        let machine = machine("ddr4-2400", &keys);
        figure(&run(&machine, &text, 1.0).0, "row_hit_rate")
    };
    let (one, four, eight) = (hits("1"), hits("4"), hits("8"));
    assert!(
        one == 0.0 && one < four && four < eight,
        "{one} {four} {eight}"
    );
}

/// Writes fill their queue, and a read comes after them. Where others pass it is answered first.
#[test]
fn a_full_queue_of_writes_holds_back_reads_unless_they_pass() {
    let mut text: String = (0..200)
        .map(|k| format!("{:#x} WRITE 0\n", k * 8192 * 64))
        .collect();
    text += "0x40 READ 1\n";
    let read = |passing| {
        let keys = [
            ("medium.queues.passing", passing),
            ("engine.ingress", "1000"),
        ];
        let machine = machine("ddr4-2400", &keys);
        figure(&run(&machine, &text, 1.0).0, "mean_read_latency_ns")
    };
    let (behind, past) = (read("false"), read("true"));
    assert!(past * 2.0 < behind, "{past} {behind}");
}

/// The cycles between data of writes to two ranks are tRTRS and a burst, or a burst alone.
#[test]
fn writes_to_two_ranks_are_parted_if_they_turn_the_bus() {
    let text: String = (0..64)
        .map(|k| format!("{:#x} WRITE 0\n", k % 2 * 8192 + k / 2 * 64))
        .collect();
    let least = |keys: &[(&str, &str)]| {
        let fixed = [
            ("medium.mapping", "row:bank:channel:rank:column"),
            ("medium.geometry.ranks", "2"),
            ("medium.timing.tRTRS", "3"),
        ];
        let machine = machine("ddr4-2400", &[&fixed, keys].concat());
        let (_, log) = run(&machine, &text, 1.0);
        let is_write = |command: &&Command| matches!(command.kind, CommandKind::Write { .. });
        let writes: Vec<&Command> = log.iter().filter(is_write).collect();
        let apart = writes
            .windows(2)
            .filter(|pair| pair[0].rank != pair[1].rank)
            .map(|pair| pair[1].cycle - pair[0].cycle);
        (apart.min().unwrap(), machine.engine.medium.timing.tBURST)
    };
    for queues in ["0", "8"] {
        let queues = ("medium.queues.commands", queues);
        let (turned, burst) = least(&[queues]);
        assert_eq!(turned, burst + 3);
        let (free, _) = least(&[queues, ("medium.timing.tRTRS_writes", "false")]);
        assert_eq!(free, burst);
    }
}

#[test]
fn what_chooses_another_access_goes_with_no_queues_of_commands() {
    let others = [
        ("medium.queues.scheduler", "fcfs"),
        ("medium.pausing.policy", "pause"),
        ("medium.buffer.blocks", "16"),
        ("medium.queues.commands", "8"),
    ];
    for (key, on, off) in [
        ("medium.queues.commands", "8", "0"),
        ("medium.queues.active", "true", "false"),
    ] {
        for (other, value) in others.into_iter().filter(|(other, _)| *other != key) {
            let refused = Machine::load("esd", &[(key, on), (other, value)]).unwrap_err();
            let said = refused.to_string();
            assert!(said.contains(other), "{said}");
            assert!(said.ends_with(&format!("set {key} to {off}")), "{said}");
            machine("esd", &[(key, off), (other, value)]);
        }
    }
    let idle = Machine::load("esd", &[("medium.queues.commands_of", "rank")]).unwrap_err();
    assert!(
        idle.to_string()
            .contains("medium.queues.commands is more than 0"),
        "{idle}"
    );
}

/// The least distance of a rank's commands from one to the `later`th after it is the timing's.
#[test]
fn precharges_and_activates_of_a_rank_are_as_far_apart_as_asked_and_no_further() {
    let text = requests();
    for queues in ["0", "8"] {
        let least = |later: usize, is: fn(CommandKind) -> bool, set: (&str, &str)| {
            let keys = [
                ("medium.queues.commands", queues),
                ("medium.timing.tREFI", "0"),
                set,
            ];
            let (_, log) = run(&machine("ddr4-2400", &keys), &text, 0.2);
            let at = log
                .iter()
                .filter(|command| command.rank == 0 && is(command.kind))
                .map(|command| command.cycle)
                .collect::<Vec<_>>();
            let apart = at.windows(later + 1).map(|of| of[later] - of[0]);
            apart.min().expect("there are some")
        };
        let activates = |kind| matches!(kind, CommandKind::Activate { .. });
        assert!(least(32, activates, ("medium.timing.t32AW", "0")) < 400);
        assert_eq!(least(32, activates, ("medium.timing.t32AW", "400")), 400);
        let precharges = |kind| kind == CommandKind::Precharge;
        assert!(least(1, precharges, ("medium.timing.tPPD", "0")) < 5);
        assert_eq!(least(1, precharges, ("medium.timing.tPPD", "5")), 5);
    }
}

/// A command of a row and one of a column go in a cycle where rows have a bus; never two of a kind.
#[test]
fn rows_have_a_bus_beside_that_of_columns_if_asked() {
    let text = requests();
    let together = |row_bus| {
        let keys = [
            ("medium.queues.commands", "8"),
            ("medium.queues.row_bus", row_bus),
        ];
        let (_, log) = run(&machine("ddr4-2400", &keys), &text, 0.2);
        let pairs = log.windows(2).filter(|of| of[0].cycle == of[1].cycle);
        let column = |command: &Command| {
            matches!(
                command.kind,
                CommandKind::Read { .. } | CommandKind::Write { .. }
            )
        };
        assert!(pairs.clone().all(|of| column(&of[0]) != column(&of[1])));
        pairs.count()
    };
    assert_eq!(together("false"), 0);
    assert!(together("true") > 20);
}
