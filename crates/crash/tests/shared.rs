//! Programs whose lines all cores have together: sound designs keep what was answered and nothing that does not go
//! with it, and a program that gives its locks up too early is caught.

use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::mechanisms::{BESIDE, HANDED_LINE};
use sardonyx_crash::{Exhaustive, Once, OneRun, Options, Platform, ShownInAll, Verdict};
use sardonyx_workload::{self as workload, DurabilityKind, Mutant, ProgramSpec, Sharing};

fn run(program: &str, design: &str, cores: u64, seed: u64, mutant: Option<Mutant>) -> OneRun {
    let durability = match mutant {
        None => DurabilityKind::on(&Stack::named(design).expect("a design")),
        mutant => DurabilityKind::SoftwareUndo { mutant },
    };
    let spec = |core| ProgramSpec {
        name: program.into(),
        item_bytes: 128,
        footprint: 6 * 128,
        transactions: 24,
        seed: seed * 1024 + core,
        durability,
        sharing: Sharing::Packed,
        ..ProgramSpec::default()
    };
    OneRun {
        machine: Machine::load::<String, String>("sca", &[]).expect("a machine"),
        design: design.into(),
        specs: (0..cores).map(spec).collect(),
        seed,
        options: Options {
            recovery_cuts: 16,
            ..Options::default()
        },
        script: None,
    }
}

fn cut(run: &OneRun) -> Once {
    let answer = run.answer(&|_, _| true).expect("it runs");
    answer.expect("nobody ends it")
}

#[test]
fn what_was_answered_is_there_and_nothing_that_has_seen_what_is_not() {
    let designs = [
        "no-encryption",
        "sca",
        "fca",
        "co-located",
        "esd+sca",
        "esd-sound",
        "dewrite-sound",
        "hw-log",
        "easy-pm",
    ];
    for design in designs {
        for (cores, program) in [(2, "shared-accounts"), (3, "shared-queue")] {
            let told = cut(&run(program, design, cores, cores, None));
            assert!(told.violations.is_empty(), "{design}, {program}: {told:#?}");
            assert!(told.recovery_cuts > 0, "{design}, {program}");
            let handed = told.exercised.of(&HANDED_LINE);
            assert!(
                handed > 20,
                "{design}, {program}: {handed} lines handed over"
            );
        }
    }
}

#[test]
fn on_eadr_too() {
    for design in ["sca", "no-atomicity", "easy-pm"] {
        let mut run = run("shared-accounts", design, 2, 5, None);
        run.options.platform = Platform::Eadr;
        let told = cut(&run);
        assert!(told.violations.is_empty(), "{design}: {told:#?}");
    }
}

#[test]
fn cores_are_in_transactions_at_the_same_time() {
    let told = cut(&run("shared-accounts", "sca", 4, 1, None));
    let beside = told.exercised.of(&BESIDE);
    assert!(beside > 10, "{beside}");
    assert_eq!(told.verdict, Verdict::NotExercised);
}

#[test]
fn locks_that_are_given_up_early_or_not_taken_are_caught() {
    for mutant in Mutant::LOCKING {
        let mut seeds = 1..=4;
        let caught = seeds.find(|seed| {
            let told = cut(&run(
                "shared-accounts",
                "no-encryption",
                3,
                *seed,
                Some(*mutant),
            ));
            told.verdict == Verdict::Broken
        });
        assert!(caught.is_some(), "{}", mutant.name());
    }
}

#[test]
fn what_all_cores_have_together_has_no_stages() {
    let why = run("shared-queue", "sca", 2, 1, None).stages(&|_, _| true);
    let why = why.expect_err("no stages").to_string();
    assert!(
        why.contains("crash stages") && why.contains("shared-queue"),
        "{why}"
    );
}

#[test]
fn names_of_programs_differ() {
    let own: Vec<&str> = workload::all().iter().map(|file| file.name).collect();
    assert_eq!(workload::shared().len(), 2);
    assert!(
        workload::shared()
            .iter()
            .all(|file| !own.contains(&file.name))
    );
}

#[test]
fn all_orders_of_two_cores_on_shared_lines() {
    for (design, holds) in [
        ("no-encryption", true),
        ("fca", true),
        ("no-atomicity", false),
    ] {
        let mut run = run("shared-accounts", design, 2, 1, None);
        for spec in &mut run.specs {
            (spec.item_bytes, spec.footprint, spec.transactions) = (64, 128, 1);
        }
        run.options.recovery_cuts = 0;
        let all = Exhaustive {
            run,
            most_states: 100_000,
            order: None,
        };
        let proof = all.answer(&|_, _| true).expect("it runs");
        let proof = proof.expect("nobody ends it");
        let shown = format!("{proof:?}");
        println!(
            "{design}: {} states, {} orders, {:.1} s",
            proof.states, proof.orders, proof.seconds
        );
        assert!(proof.complete, "{shown}");
        assert_eq!(proof.verdict == ShownInAll::Proven, holds, "{shown}");
        assert!(proof.exercised.of(&HANDED_LINE) > 0, "{shown}");
    }
}
