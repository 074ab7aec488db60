//! Interrupted array writes under every cut of small runs.

use sardonyx::medium::pausing::WRITE_INTERRUPTED;
use sardonyx_crash::{Options, Platform};
use sardonyx_workload::DurabilityKind;

use crate::small_runs::{Small, explored, on};

fn crash(design: &str, policy: &str, options: Options) -> (Vec<String>, u64) {
    let sets = [
        ("medium.geometry.banks", "2"),
        ("medium.pausing.policy", policy),
    ];
    let run = Small {
        machine: "easy-pm",
        sets: &sets,
        transactions: 15,
        durability: Some(DurabilityKind::default()),
        ..Small::BTREE
    };
    let history = run.run(design);
    let interrupted = history.exercised().of(&WRITE_INTERRUPTED);
    let found = explored(&history, &options);
    assert!(found.covered.cuts > 300, "{design}: {:?}", found.covered);
    let kinds = found.tally.kinds.into_values();
    (kinds.map(|(_, first)| first.what).collect(), interrupted)
}

#[test]
fn interrupted_writes_survive_every_cut() {
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
