//! Interrupted array writes under every cut of small runs.

use sardonyx::config::Machine;
use sardonyx::medium::pausing::WRITE_INTERRUPTED;
use sardonyx::workload::ProgramSpec;
use sardonyx_crash::{History, Options, Platform, explore};

fn crash(design: &str, policy: &str, options: Options) -> (Vec<String>, u64) {
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 15,
        seed: 3,
        ..ProgramSpec::default()
    };
    let sets = [
        ("medium.geometry.banks", "2"),
        ("medium.pausing.policy", policy),
    ];
    let machine = Machine::load("easy-pm", &sets).expect("a machine");
    let history = History::record(&machine, design, &[spec], 5);
    let history = history.unwrap_or_else(|error| panic!("{design}: {error}"));
    let interrupted = history.exercised().of(&WRITE_INTERRUPTED);
    let found = explore(&history, &options, &|_| true).expect("nobody cancels");
    assert!(found.covered.cuts > 300, "{design}: {:?}", found.covered);
    let kinds = found.tally.kinds.into_values();
    (kinds.map(|(_, first)| first.what).collect(), interrupted)
}

#[test]
fn interrupted_writes_survive_every_cut() {
    let on = |platform| Options {
        platform,
        ..Options::default()
    };
    for (design, policy, platform) in [
        ("sca", "pause", Platform::Adr),
        ("fca", "cancel", Platform::Adr),
        ("esd+sca", "both", Platform::Adr),
        ("hw-log", "both", Platform::Adr),
        ("easy-pm", "cancel", Platform::Adr),
        ("fca@bonsai", "pause", Platform::Adr),
        ("sca", "cancel", Platform::Eadr),
    ] {
        let (found, interrupted) = crash(design, policy, on(platform));
        assert!(interrupted > 5, "{design} {policy}: {interrupted}");
        assert!(found.is_empty(), "{design} {policy}: {found:?}");
    }
}
