//! Other tools' traces keep what they say: where each request lies and when it comes.

use sardonyx::config::Machine;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{Outcome, Sampling};
use sardonyx::plan::command::{Command, CommandKind, CommandLog};
use sardonyx::plan::observe::Observer;
use sardonyx::plan::request::{Answer, Request};
use sardonyx::trace::{Format, ImportOptions, Source, import};
use sardonyx::units::Time;

const DESIGN: &str = "no-encryption";
/// Cycles of 1200 MHz, as the machine's.
const CYCLE_PS: u64 = 833;

/// When requests arrived and were answered, in the order of their admission.
#[derive(Default)]
struct Times(Vec<(Time, Time)>, Vec<u32>);

impl Observer for Times {
    fn admitted(&mut self, _now: Time, number: u32, request: &Request) {
        self.0.push((request.arrival, Time::ZERO));
        self.1.push(number);
    }

    fn answered(&mut self, number: u32, answer: &Answer) {
        let last = self.1.iter().rposition(|known| *known == number);
        self.0[last.expect("it was admitted")].1 = answer.at;
    }
}

struct Ran {
    outcome: Outcome,
    times: Vec<(Time, Time)>,
    commands: Vec<Command>,
}

fn source(text: &str, format: Format, options: &ImportOptions) -> Source {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (
        folder.path().join("in.txt"),
        folder.path().join("t.parquet"),
    );
    std::fs::write(&from, text).unwrap();
    import(&from, &to, format, options, &mut |_, _| ()).unwrap();
    Source::open(&to).unwrap()
}

fn dramsim3(text: &str) -> Source {
    source(text, Format::DramSim3, &ImportOptions::default())
}

fn machine(keys: &[(&str, &str)]) -> Machine {
    let still = [("medium.timing.tREFI", "0"), ("medium.timing.tRFC", "0")];
    Machine::load("ddr4-2400", &[&still, keys].concat()).unwrap()
}

fn played(machine: &Machine, sources: Vec<Source>) -> Ran {
    let system = recordings::system(machine, DESIGN, sources, Options::default());
    let mut system = system.unwrap_or_else(|error| panic!("{error}"));
    system.memory().observe(Times::default());
    system.memory().observe(CommandLog::default());
    let outcome = system.run(&mut |_| true).unwrap();
    let log = system.memory().take::<CommandLog>().unwrap();
    Ran {
        outcome,
        times: system.memory().take::<Times>().unwrap().0,
        commands: log.by_channel(),
    }
}

fn figure(ran: &Ran, name: &str) -> f64 {
    ran.outcome.figures.named(name).number().unwrap()
}

/// Line 0, and the first line of the next row of its bank, in turn, 200 cycles between.
fn two_rows() -> String {
    let row = 64 * 128 * 16 * 2; // bytes of a row, in each bank of both ranks
    let lines = (0..100).map(|k| format!("{:#x} READ {}\n", k % 2 * row, k * 200));
    lines.collect()
}

#[test]
fn two_rows_of_one_bank_conflict_where_the_trace_has_them() {
    let traced = played(&machine(&[]), vec![dramsim3(&two_rows())]);
    assert_eq!(figure(&traced, "row_hit_rate"), 0.0);
    // tRP, tRCD, tCL and the burst: 17 + 17 + 17 + 4 cycles, from the next clock on; the first finds its bank closed.
    let latencies = traced.times.iter().map(|(from, to)| to.since(*from).ps());
    let latencies: Vec<u64> = latencies.map(|ps| ps / CYCLE_PS).collect();
    assert!([38, 39].contains(&latencies[0]), "{latencies:?}");
    assert!(
        latencies[1..]
            .iter()
            .all(|cycles| *cycles == 55 || *cycles == 56),
        "{latencies:?}"
    );

    let touched = machine(&[("addresses", "first-touch")]);
    let touched = played(&touched, vec![dramsim3(&two_rows())]);
    assert_eq!(figure(&touched, "row_hit_rate"), 0.99);
    assert!(figure(&touched, "mean_read_latency_ns") < 20.0);
}

/// As Ramulator's trace of device addresses says it: on a machine that cuts addresses up in that order.
#[test]
fn each_request_goes_to_the_channel_bank_and_row_of_the_trace() {
    let keys = [
        ("medium.mapping", "channel:rank:bank:row:column"),
        ("medium.geometry.channels", "2"),
        ("medium.geometry.rows", "512"),
    ];
    let levels = vec![2, 2, 4, 4, 512, 128];
    let options = ImportOptions {
        levels,
        ..ImportOptions::default()
    };
    let (mut text, mut wanted) = (String::new(), Vec::new());
    for k in 0..500_u64 {
        let draw = |of: u64, salt: u64| (k * 2_654_435_761 + salt * 40_503 + k * k * salt) / 7 % of;
        let place = [
            draw(2, 1),
            draw(2, 2),
            draw(4, 3),
            draw(4, 4),
            draw(512, 5),
            draw(128, 6),
        ];
        let [channel, rank, group, bank, row, column] = place;
        text += &format!("R {channel},{rank},{group},{bank},{row},{column}\n");
        let bank = (group * 4 + bank) as u32;
        wanted.push((channel as u32, rank as u32, bank, row));
    }
    let source = source(&text, Format::RamulatorReadWrite, &options);
    let ran = played(&machine(&keys), vec![source]);
    let mut found = Vec::new();
    for command in &ran.commands {
        if let CommandKind::Read { row, .. } = command.kind {
            found.push((command.channel, command.rank, command.bank, row));
        }
    }
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn requests_of_an_open_trace_arrive_at_their_stamps() {
    // Bursts that overfill every queue, between long and short pauses.
    let (mut text, mut stamps, mut stamp) = (String::new(), Vec::new(), 0_u64);
    for k in 0..10_000_u64 {
        stamp += match k % 500 {
            0 => 9_000,
            1..400 => 0,
            _ => 7,
        };
        let op = if k % 3 == 0 { "WRITE" } else { "READ" };
        text += &format!("{:#x} {op} {stamp}\n", k * 0x1_2340 % 0x1000_0000 / 64 * 64);
        stamps.push(stamp * 1_000_000_000 / 1_200_000);
    }
    let open = played(&machine(&[]), vec![dramsim3(&text)]);
    let arrivals: Vec<u64> = open.times.iter().map(|(at, _)| at.ps()).collect();
    assert_eq!(arrivals, stamps);
    assert!(
        figure(&open, "max_read_latency_ns") > 1_000.0,
        "bursts wait"
    );

    let closed = played(&machine(&[("arrivals", "closed")]), vec![dramsim3(&text)]);
    let arrivals: Vec<u64> = closed.times.iter().map(|(at, _)| at.ps()).collect();
    assert_ne!(arrivals, stamps);
}

#[test]
fn what_lies_beyond_the_machine_is_an_error_before_any_work() {
    let text = "0x40 READ 0\n0x400000000 WRITE 10\n";
    let refused = recordings::check(&machine(&[]), dramsim3(text), 1).unwrap_err();
    let refused = refused.to_string();
    let said = "t: record 2 is at address 0x400000000, and ddr4-2400 has 17179869184 bytes; give a machine with \
                more medium.geometry.rows, or --addresses wrapped";
    assert_eq!(refused, said);
    let run = recordings::system(
        &machine(&[]),
        DESIGN,
        vec![dramsim3(text)],
        Options::default(),
    );
    let run = run.unwrap().run(&mut |_| true).unwrap_err().to_string();
    assert!(
        run.starts_with("t: address 0x400000000 is beyond the 17179869184 bytes"),
        "{run}"
    );
    // What the remedies say is taken.
    for remedy in [("addresses", "wrapped"), ("medium.geometry.rows", "131072")] {
        let machine = machine(&[remedy]);
        recordings::check(&machine, dramsim3(text), 1).unwrap();
        assert_eq!(played(&machine, vec![dramsim3(text)]).times.len(), 2);
    }
    // Copies have equal shares.
    let text = "0x200000000 READ 0\n";
    recordings::check(&machine(&[]), dramsim3(text), 1).unwrap();
    let refused = recordings::check(&machine(&[]), dramsim3(text), 2).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("one of 2 copies on ddr4-2400 has 8589934592 bytes")
    );
}

#[test]
fn a_trace_of_instructions_has_no_arrivals() {
    let text = "3 0x40\n";
    let source = || {
        source(
            text,
            Format::RamulatorInstructions,
            &ImportOptions::default(),
        )
    };
    recordings::check(&machine(&[]), source(), 1).unwrap();
    let refused = recordings::check(&machine(&[("arrivals", "open")]), source(), 1).unwrap_err();
    let said = "t: counts instructions, and has no arrivals at memory; give --arrivals closed";
    assert_eq!(refused.to_string(), said);
}

#[test]
fn a_sample_of_an_open_trace_is_near_the_whole() {
    let lines = (0..60_000_u64).map(|k| {
        format!(
            "{:#x} READ {}\n",
            k * 0x5_1240 % 0x1000_0000 / 64 * 64,
            k * 9
        )
    });
    let text: String = lines.collect();
    let whole = played(&machine(&[]), vec![dramsim3(&text)]);
    let system = recordings::system(
        &machine(&[]),
        DESIGN,
        vec![dramsim3(&text)],
        Options::default(),
    );
    let sampling = Sampling {
        windows: 20,
        requests: 500,
        ramp: 200,
        seed: 1,
    };
    let sample = system
        .unwrap()
        .sample(&sampling, 0..60_000, &mut |_| true)
        .unwrap();
    let of = |outcome: &Outcome| {
        outcome
            .figures
            .named("mean_read_latency_ns")
            .number()
            .unwrap()
    };
    let ratio = of(&sample.outcome) / of(&whole.outcome);
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
}
