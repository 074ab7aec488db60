//! Table 1 of SCA, measured: which copy is usable in which stage of a transaction, which one
//! recovery takes, and in which stage a store must be counter-atomic. Each cell can turn.

use sardonyx::config::Machine;
use sardonyx_crash::{History, Platform, Shown, Stage, stages};
use sardonyx_workload::{self as workload, DurabilityKind, Mutant, ProgramSpec};

fn shown(program: &str, design: &str, cores: u64, mutant: Option<Mutant>) -> [Shown; 5] {
    let spec = |core| ProgramSpec {
        name: program.into(),
        item_bytes: 64,
        footprint: 4096,
        transactions: 24,
        seed: 11 + core,
        durability: DurabilityKind::SoftwareUndo { mutant },
        ..ProgramSpec::default()
    };
    let specs: Vec<ProgramSpec> = (0..cores).map(spec).collect();
    let machine = Machine::load::<&str, &str>("sca", &[]).expect("a machine");
    let history = History::record(&machine, design, &specs, 5).expect("a design and a program");
    let found = stages(&history, Platform::Adr, &|_| true).expect("nobody cancels");
    let cuts: u64 = found.iter().map(|stage| stage.cuts).sum();
    assert_eq!(cuts, history.positions() * cores);
    found
}

fn of(shown: &[Shown; 5], stage: Stage) -> Shown {
    shown[stage as usize]
}

fn lost(shown: &[Shown; 5]) -> u64 {
    shown.iter().map(|stage| stage.cuts - stage.recovered).sum()
}

#[test]
fn each_stage_has_the_copies_that_the_paper_says() {
    for program in workload::all() {
        for (design, cores) in [("sca", 1), ("sca", 2), ("fca", 1)] {
            let shown = shown(program.name, design, cores, None);
            let told = format!("{} on {design}: {shown:?}", program.name);
            let (prepare, mutate) = (of(&shown, Stage::Prepare), of(&shown, Stage::Mutate));
            assert!(prepare.backup_usable < prepare.cuts / 2, "{told}");
            assert_eq!(prepare.data_usable, prepare.cuts, "{told}");
            assert_eq!(prepare.takes_data, prepare.cuts, "{told}");
            assert_eq!(mutate.backup_usable, mutate.cuts, "{told}");
            assert_eq!(mutate.takes_backup, mutate.cuts, "{told}");
            assert!(mutate.data_usable < mutate.cuts, "{told}");
            for stage in [Stage::Validate, Stage::Commit] {
                let either = of(&shown, stage);
                assert_eq!(either.backup_usable, either.cuts, "{told}");
                assert_eq!(either.data_usable, either.cuts, "{told}");
                assert_eq!(either.takes_backup + either.takes_data, either.cuts);
                assert!(either.takes_backup > 0 && either.takes_data > 0, "{told}");
            }
            assert_eq!(lost(&shown), 0, "{told}");
        }
    }
}

#[test]
fn the_switches_need_counter_atomicity_and_the_rest_does_not() {
    for program in workload::all() {
        let lost = |design, mutant| lost(&shown(program.name, design, 1, Some(mutant)));
        for mutant in Mutant::EQUIVALENT {
            assert_eq!(
                lost("sca", *mutant),
                0,
                "{} {}",
                program.name,
                mutant.name()
            );
        }
        for mutant in [
            Mutant::ValidNotCounterAtomic,
            Mutant::CommitNotCounterAtomic,
        ] {
            assert!(
                lost("sca", mutant) > 0,
                "{} {}",
                program.name,
                mutant.name()
            );
            // Where every write is, or nothing is encrypted, the mark makes no difference.
            assert_eq!(lost("fca", mutant), 0, "{}", program.name);
            assert_eq!(lost("no-encryption", mutant), 0, "{}", program.name);
        }
    }
}

/// What each cell says follows from the bytes: a mistake turns the one that it is about.
#[test]
fn a_mistake_turns_its_cell() {
    let of = |mutant, stage| of(&shown("btree", "sca", 1, Some(mutant)), stage);
    for mutant in [
        Mutant::LogNotFlushed,
        Mutant::NoCountersAfterLog,
        Mutant::LogsNewValues,
    ] {
        let mutate = of(mutant, Stage::Mutate);
        assert!(mutate.backup_usable < mutate.cuts, "{}", mutant.name());
    }
    let validate = of(Mutant::NoFenceAfterLog, Stage::Validate);
    assert!(validate.backup_usable < validate.cuts && validate.recovered < validate.cuts);
    let prepare = of(Mutant::ValidBeforeLog, Stage::Prepare);
    assert!(prepare.takes_backup > 0 && prepare.recovered < prepare.cuts);
    let mutate = of(Mutant::DataBeforeLog, Stage::Mutate);
    assert!(mutate.backup_usable < mutate.cuts && mutate.recovered < mutate.cuts);
    for mutant in [
        Mutant::DataNotFlushed,
        Mutant::NoFenceAfterData,
        Mutant::NoCountersAfterData,
        Mutant::CommitBeforeData,
    ] {
        let commit = of(mutant, Stage::Commit);
        assert!(commit.data_usable < commit.cuts, "{}", mutant.name());
    }
    let naive = shown("btree", "no-atomicity", 1, None);
    let prepare = self::of(&naive, Stage::Prepare);
    assert!(prepare.data_usable < prepare.cuts, "counters are lost");
}
