//! The same bytes on each processor: figures and causes of every design on every machine, as a digest in
//! `digests.tsv`, and with a memory that is new. `UPDATE_REFERENCE=1` writes the file; `tools/arm.py` runs this test on AArch64.

use std::fmt::Write as _;
use std::path::Path;

use sardonyx::config::{self, Machine};
use sardonyx::controller::designs;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::trace::{Source, Spec, Synth};
use sha1::{Digest, Sha1};

const RECORDS: u64 = 1_000;

fn digest(machine: &Machine, design: &str) -> Option<String> {
    let spec = Spec {
        records: RECORDS,
        footprint_lines: 1 << 8,
        mean_gap: 200,
        ..Spec::default()
    };
    let source = Source::from(Synth::new(spec, 7).expect("a valid spec"));
    let ran = recordings::run(
        machine,
        design,
        vec![source],
        Options::default(),
        &mut |_| true,
    );
    // Some machines have no such design.
    let outcome = ran.ok()?;
    let figures = serde_json::to_string(&outcome.figures).expect("JSON");
    let causes = format!("{:?}", outcome.ledger);
    let sum = Sha1::digest(format!("{figures}\n{causes}"));
    Some(sum[..6].iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string grows");
        text
    }))
}

#[test]
fn every_design_gives_the_same_figures_on_each_processor() {
    let mut said = String::from("machine\tdesign\tdigest\tin a new machine\n");
    for preset in config::presets() {
        let pasts = ["written", "empty"];
        let machines = pasts.map(|past| Machine::load(preset.name, &[("memory.past", past)]));
        let machines = machines.map(|machine| machine.expect("a preset"));
        for design in designs::all() {
            let sums = machines
                .iter()
                .filter_map(|machine| digest(machine, design.name));
            let sums: Vec<String> = sums.collect();
            if !sums.is_empty() {
                let sums = sums.join("\t");
                writeln!(said, "{}\t{}\t{sums}", preset.name, design.name).expect("a string grows");
            }
        }
    }
    assert!(said.lines().count() > 100, "{said}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digests.tsv");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &said).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("it is in the tree");
    for (now, was) in said.lines().zip(kept.lines()) {
        assert_eq!(now, was);
    }
    assert_eq!(said.lines().count(), kept.lines().count());
}
