//! Settings drawn from the table of keys, each in its range: `compare` and `crash` give an answer or one line that says
//! what is wrong. None of them ends early, goes on for ever or takes memory that a host does not have.

use std::process::Command;

use sardonyx::config::{Machine, keys, presets};
use sardonyx::controller::designs::{self, Stack};
use sardonyx::settings::{Allowed, Row};
use sardonyx::units::Time;
use sardonyx_base::random::mix;
use sardonyx_crash::{Cuts, HistoryError, OneRun, Options};
use sardonyx_workload::{DurabilityKind, ProgramSpec, timed};

/// Kilobytes of addresses that a case may take.
const ADDRESSES: u64 = 16 << 20;
/// Cases of one process, and the seconds of processor time that they may take: usually three.
const TOGETHER: u64 = 50;
const LONGEST: u64 = 120;
/// A latency is no longer, as a run takes as long as the time that it simulates: refreshes go on meanwhile.
const LATENCY: Time = Time::from_ps(100_000_000);
/// Environment variable: the first case and the one behind the last.
const CASES: &str = "SETTINGS_CASES";

/// Numbers that follow from the case's.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % end.max(1)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// An end of the range, or a number between of any length.
    fn between(&mut self, min: u64, max: u64) -> u64 {
        match self.below(4) {
            0 => min,
            1 => max,
            _ => {
                let most = (max - min).max(1);
                let bits = self.below(u64::from(most.ilog2()) + 1);
                min + self.below(2 << bits).min(max - min)
            }
        }
    }

    fn value(&mut self, row: &Row) -> String {
        match row.kind {
            // What programs compute between transactions is only more of the same.
            Allowed::Int { min, .. } if row.name.starts_with("think.") => {
                self.between(min, min + 99).to_string()
            }
            Allowed::Int { min, max } => self.between(min, max).to_string(),
            Allowed::PowerOfTwo { min, max } => {
                let (least, most) = (u64::from(min.ilog2()), u64::from(max.ilog2()));
                (1u64 << (least + self.below(most - least + 1))).to_string()
            }
            Allowed::Cycles { min } => self.between(min, min + 5000).to_string(),
            Allowed::Ns { min_ps, max_ps } => {
                let ps = self.between(min_ps, max_ps.min(LATENCY.ps().max(min_ps)));
                format!("{}.{:03}", ps / 1000, ps % 1000)
            }
            Allowed::Nj => self.between(0, 10_000).to_string(),
            Allowed::Bool => self.one(&["true", "false"]).to_owned(),
            Allowed::Word(words) | Allowed::Text { tried: words, .. } => self.one(words).to_owned(),
        }
    }
}

/// A machine's name, settings over it, a design, and a program.
struct Case {
    machine: &'static str,
    settings: Vec<(&'static str, String)>,
    design: String,
    spec: ProgramSpec,
}

impl Case {
    fn drawn(number: u64) -> Case {
        let drawn = &mut Drawn(mix(number) << 16);
        let all: Vec<&Row> = keys().collect();
        let presets: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
        let designs: Vec<&str> = designs::all().map(|design| design.name).collect();
        let integrities = crate::stacks::integrities();
        let design = match drawn.below(2) {
            0 => drawn.one(&designs).to_owned(),
            _ => format!("{}@{}", drawn.one(&designs), drawn.one(&integrities)),
        };
        let stack = Stack::named(&design).expect("a stack");
        let machine = drawn.one(&presets);
        let known = Machine::load::<&str, &str>(machine, &[]).expect("a machine");
        let acts = |row: &&Row| stack.uses(row.name) && known.acts(row.name);
        let used: Vec<&Row> = all.into_iter().filter(acts).collect();
        let several = 1 + drawn.below(3);
        let settings = (0..several).map(|_| {
            let row = drawn.one(&used);
            (row.name, drawn.value(row))
        });
        Case {
            machine,
            settings: settings.collect(),
            spec: Case::program(number, &stack),
            design,
        }
    }

    fn program(number: u64, stack: &Stack) -> ProgramSpec {
        ProgramSpec {
            name: ["queue", "btree"][number as usize % 2].into(),
            item_bytes: 64,
            footprint: 4096,
            transactions: 4,
            seed: 1,
            durability: DurabilityKind::on(stack),
            ..ProgramSpec::default()
        }
    }

    fn told(&self) -> String {
        let set = self.settings.iter();
        let set: Vec<String> = set
            .map(|(key, value)| format!("--set {key}={value}"))
            .collect();
        let Case {
            machine,
            design,
            spec,
            ..
        } = self;
        format!(
            "{} --machine {machine} --designs {design} {}",
            spec.name,
            set.join(" ")
        )
    }

    fn loaded(&self) -> Result<Machine, String> {
        Machine::load(self.machine, &self.settings).map_err(|error| error.to_string())
    }

    fn compare(&self) -> Result<(), String> {
        let machine = self.loaded()?;
        let cores = machine.cores.min(2);
        let machine = machine.with_cores(cores);
        let system = timed::system(&machine, &self.design, &self.spec, cores, 1);
        let mut system = system.map_err(|error| error.to_string())?;
        let outcome = system.run(&mut |_| true);
        outcome.map(drop).map_err(|error| error.to_string())
    }

    fn crash(&self) -> Result<(), String> {
        let machine = self.loaded()?;
        let run = OneRun {
            machine,
            design: self.design.clone(),
            specs: vec![self.spec.clone()],
            seed: 1,
            options: Options {
                cuts: Cuts::Sample(3),
                recovery_cuts: 0,
                threads: 1,
                ..Options::default()
            },
            script: None,
        };
        match run.answer(&|_, _| true) {
            Err(HistoryError::Broken(what)) => panic!("{what}"),
            other => other.map(drop).map_err(|error| error.to_string()),
        }
    }
}

/// Runs some cases, by `CASES`, in a process whose memory is bounded.
#[test]
#[ignore = "by hand: the tests below start it"]
fn cases() {
    let asked = std::env::var(CASES).expect("it is set");
    let (first, end) = asked.split_once("..").expect("two numbers");
    let (first, end): (u64, u64) = (first.parse().unwrap(), end.parse().unwrap());
    for number in first..end {
        let case = Case::drawn(number);
        for (how, run) in [
            ("compare", Case::compare as fn(&Case) -> _),
            ("crash --once", Case::crash),
        ] {
            println!("case {number}: {how} {}", case.told());
            if let Err(error) = run(&case) {
                println!("  {error}");
                assert!(!error.is_empty() && !error.contains('\n'), "one line");
            }
        }
    }
    println!("all cases");
}

/// What is wrong with the cases of a range: the last that has begun, if not all have ended, and the next.
fn wrong(first: u64, end: u64) -> Vec<String> {
    let (mut next, mut wrong) = (first, Vec::new());
    while next < end {
        let this = std::env::current_exe().expect("this program");
        let shell = format!(
            "ulimit -v {ADDRESSES} && ulimit -t {LONGEST} && exec \"$0\" --exact settings::cases --ignored --nocapture"
        );
        let mut child = Command::new("sh");
        child
            .arg("-c")
            .arg(shell)
            .arg(this)
            .env(CASES, format!("{next}..{end}"));
        let out = child.output().expect("a shell");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        if out.status.success() && said.contains("all cases") {
            break;
        }
        let last = said.lines().rev().find(|line| line.contains("case "));
        let last = last.unwrap_or_default();
        let why = String::from_utf8_lossy(&out.stderr);
        wrong.push(format!("{last}\n{}: {}", out.status, why.trim()));
        let number = last
            .split("case ")
            .nth(1)
            .and_then(|rest| rest.split(':').next());
        next = number
            .and_then(|number| number.parse().ok())
            .map_or(end, |number: u64| number + 1);
    }
    wrong
}

fn all_answered(cases: u64) {
    let first = sardonyx_property::seed().unwrap_or(0) * 1_000_000;
    let starts = (first..first + cases).step_by(TOGETHER as usize);
    let wrong: Vec<String> = starts
        .flat_map(|start| wrong(start, (start + TOGETHER).min(first + cases)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A read waits for a queued write, which nothing forces out until the core, a slow one, waits for that read too.
#[test]
fn a_line_may_come_before_a_core_that_ran_on_asks_for_it() {
    let design = "lad@osiris".to_owned();
    let stack = Stack::named(&design).expect("a stack");
    let settings = [("core.width", "1"), ("core.clock_ns", "78.748")];
    let case = Case {
        machine: "nvmain-a",
        settings: settings.map(|(key, value)| (key, value.into())).into(),
        spec: Case::program(0, &stack),
        design,
    };
    case.crash().expect("a run");
}

#[test]
fn settings_in_their_ranges_get_an_answer_or_an_error() {
    all_answered(50);
}

#[test]
#[ignore = "slow: thousands of settings"]
fn many_settings_in_their_ranges_get_an_answer_or_an_error() {
    all_answered(3000);
}
