//! The table of `docs/inside/planted-faults.md` is these faults, a row each.

use std::path::Path;

use crate::GROUPS;
use crate::fault::Fault;

fn row(part: &str, fault: &Fault, rare: bool) -> String {
    let kinds = fault.by.iter().map(|(check, kinds)| {
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        format!(
            "{}: {}",
            format!("{check:?}").to_lowercase(),
            kinds.join(", ")
        )
    });
    let kinds: Vec<String> = kinds.collect();
    let part = part.replace('_', " ");
    let when = if rare { "long runs" } else { "every run" };
    let Fault {
        name,
        meaning,
        stack,
        plan,
        ..
    } = fault;
    let kinds = kinds.join("; ");
    format!(
        "{part}\t{name}\t{meaning}\t{stack}\t{}\t{}\t{kinds}\t{when}\n",
        plan.program, plan.cores
    )
}

#[test]
fn the_table_in_the_docs_is_of_these_faults() {
    let mut table =
        String::from("part\tfault\twhat is wrong\tstack\tprogram\tcores\treported by\ttried in\n");
    for group in GROUPS {
        let rows = group.faults().map(|fault| (fault, false));
        for (fault, rare) in rows.chain(group.rare().map(|fault| (fault, true))) {
            table += &row(group.name, fault, rare);
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("docs/tables/crash-mutants.tsv");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &table).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("it is there");
    assert!(
        kept == table,
        "docs/tables/crash-mutants.tsv has other faults: UPDATE_REFERENCE=1 writes it"
    );
}
