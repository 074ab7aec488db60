//! The default plan on stacks that are drawn: log, mapping, policy, integrity, platform and wear levelling. Each plan
//! runs, and accuses none of them, because none of them loses anything.

use sardonyx::controller::designs::Stack;
use sardonyx::settings::Settings;
use sardonyx_base::random::mix;
use sardonyx_crash::{Attacks, Cuts, Options, Platform, Tear, Trial, Tried, Verdict};
use sardonyx_workload::DurabilityKind;

use crate::stacks::{LOGGINGS, MAPPINGS, ONLY_ADR, POLICIES, PROGRAMS, REFUSE, integrities};

const PLATFORMS: [Platform; 3] = [Platform::Adr, Platform::Eadr, Platform::Gpf];
const LEVELLINGS: [Option<&str>; 4] = [None, Some("reserve"), Some("group"), Some("after")];

/// The trial with this number, of any length of plan, or of those without a tree over memory.
fn drawn(number: u64) -> Trial {
    let one = |what: u64, of: usize| (mix(mix(number) ^ what) % of as u64) as usize;
    let integrities = integrities();
    let integrities: Vec<_> = integrities
        .iter()
        .filter(|name| !REFUSE.contains(name))
        .collect();
    let integrity = integrities[one(1, integrities.len())];
    let (logging, mapping) = (
        LOGGINGS[one(2, LOGGINGS.len())],
        MAPPINGS[one(3, MAPPINGS.len())],
    );
    // Counters that lines share stand under no integrity that settles no groups.
    let designs = POLICIES.map(|policy| format!("{logging}/{mapping}+{policy}@{integrity}"));
    let stand = |design: &String| Stack::under(design, &Settings::default()).is_ok();
    let designs: Vec<String> = designs.into_iter().filter(stand).collect();
    let design = designs[one(4, designs.len())].clone();
    let stack = Stack::named(&design).unwrap_or_else(|error| panic!("{design}: {error}"));
    let levelling = LEVELLINGS[one(5, LEVELLINGS.len())];
    let set = |registers: &str| {
        let sets = [("scheme", "start-gap"), ("registers", registers)];
        sets.map(|(key, value)| (format!("medium.levelling.{key}"), value.to_owned()))
    };
    Trial {
        machine: "sca".into(),
        overrides: levelling.map(set).into_iter().flatten().collect(),
        program: PROGRAMS[one(6, PROGRAMS.len())].into(),
        durability: DurabilityKind::on(&stack),
        seed: number,
        options: Options {
            platform: match logging {
                ONLY_ADR => Platform::Adr,
                _ => PLATFORMS[one(7, PLATFORMS.len())],
            },
            tear: Tear::Lines,
            cuts: Cuts::Sample(60),
            // A life is cut everywhere, so those of one plan in four take as long as all else.
            recovery_cuts: if number.is_multiple_of(4) { 256 } else { 0 },
            threads: 0, // the last test of a long run has both processors
            attacks: Attacks::unless_said(&stack),
            ..Options::default()
        },
        design,
        ..Trial::default()
    }
}

fn accused(trial: &Trial) -> Option<String> {
    let told = |what: String| {
        let set = trial.overrides.iter();
        let set: String = set
            .map(|(key, value)| format!(" --set {key}={value}"))
            .collect();
        Some(format!(
            "crash run {} --designs {} --platform {} --seed {} --cuts 60{set}: {what}",
            trial.program,
            trial.design,
            trial.options.platform.name(),
            trial.seed
        ))
    };
    let tried: Tried = match trial.answer(&|_, _| true) {
        Ok(tried) => tried.expect("nobody ends it"),
        Err(error) => return told(error.to_string()),
    };
    if tried.cuts == 0 {
        return told("no cut was made".into());
    }
    let refused = tried
        .attacks
        .as_ref()
        .map_or(0, |attacks| attacks.honest_refused);
    // Sixty cuts may be too few for a verdict, but nothing may be out of reach.
    let mut lacks = tried.lacks.iter();
    let unreached = lacks.find(|lack| lack.had == 0 && lack.kept_by.is_empty());
    let is_accused = tried.fails && tried.verdict != Verdict::NotExercised;
    (is_accused || unreached.is_some() || refused > 0)
        .then(|| told(format!("{:?} {unreached:?}", tried.violations)))?
}

/// These once asked for more than the run has, or for less than a transaction takes.
#[test]
#[ignore = "slow: four rounds of three plans"]
fn a_plan_presses_no_harder_than_its_programs_allow() {
    for (design, program) in [
        ("hw-log/zero-lines+sca", "queue"),
        ("easy-pm/zero-lines+sca", "queue"),
        ("hw-log/esd+sca@bonsai", "btree"),
    ] {
        let few = Trial {
            machine: "sca".into(),
            program: program.into(),
            design: design.into(),
            durability: DurabilityKind::Hardware,
            seed: 1,
            options: Options {
                cuts: Cuts::Sample(1),
                recovery_cuts: 0,
                threads: 1,
                ..Options::default()
            },
            ..Trial::default()
        };
        let tried = few
            .answer(&|_, _| true)
            .unwrap_or_else(|error| panic!("{design}: {error}"));
        let tried = tried.expect("nobody ends it");
        assert_eq!(
            tried.verdict,
            Verdict::NotExercised,
            "{design}: {:?}",
            tried.violations
        );
    }
}

/// One key that is the user's, or the machine's, is an error and no accusation.
#[test]
fn a_log_that_the_user_made_too_small_is_an_error() {
    let small = Trial {
        machine: "sca".into(),
        overrides: vec![("log.records".into(), "1".into())],
        program: "array-swap".into(),
        design: "hw-log/esd+sca".into(),
        durability: DurabilityKind::Hardware,
        item_bytes: Some(4096),
        transactions: Some(6),
        footprint: Some(32_768),
        seed: 1,
        options: Options {
            cuts: Cuts::Sample(1),
            recovery_cuts: 0,
            threads: 1,
            ..Options::default()
        },
        ..Trial::default()
    };
    let error = small
        .answer(&|_, _| true)
        .map(|tried| tried.map(|tried| tried.verdict));
    let told = error.expect_err("no transaction fits").to_string();
    assert!(told.contains("set log.records higher"), "{told}");
}

#[test]
#[ignore = "slow: whole plans"]
fn plans_of_drawn_stacks_accuse_none() {
    let first = sardonyx_property::seed().unwrap_or(0);
    let numbers = (0..sardonyx_property::count(1, 3)).map(|number| 3 * first + number);
    let accused: Vec<String> = numbers
        .filter_map(|number| accused(&drawn(number)))
        .collect();
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

/// Zeros of a log, which a mapping that keeps zeros apart writes all the same, are not under the mask of other contents,
/// so which words of a line had changed depended on it.
#[test]
#[ignore = "slow: a whole plan"]
fn zeros_of_a_log_beside_a_line_are_no_digest() {
    let trial = Trial {
        machine: "sca".into(),
        program: "queue".into(),
        design: "none/zero-lines+deuce@mac".into(),
        durability: DurabilityKind::SoftwareUndo { mutant: None },
        seed: 11_485_731_189,
        options: Options {
            platform: Platform::Eadr,
            cuts: Cuts::Sample(1),
            recovery_cuts: 0,
            threads: 1,
            ..Options::default()
        },
        ..Trial::default()
    };
    assert_eq!(accused(&trial), None);
}

#[test]
#[ignore = "by hand: one plan by its number"]
fn one() {
    let number = std::env::var("PLAN").expect("a number");
    for number in number.split(',') {
        let trial = drawn(number.parse().expect("a number"));
        println!(
            "{number} {}: {} {:?}",
            trial.design, trial.program, trial.options.platform
        );
        let began = std::time::Instant::now();
        let accused = accused(&trial);
        println!(
            "{number} {:?} {} {accused:?}",
            began.elapsed(),
            trial.design
        );
    }
}
