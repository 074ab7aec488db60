//! The table of `docs/inside/planted-faults.md` is these faults, a row each.

use std::path::Path;

use crate::GROUPS;
use crate::fault::{Check, Fault};

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
    is_kept("crash-mutants.tsv", &table);
}

fn is_kept(name: &str, table: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("docs/tables").join(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, table).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("it is there");
    assert!(
        kept == table,
        "docs/tables/{name} has other faults: UPDATE_REFERENCE=1 writes it"
    );
}

#[test]
fn the_table_of_checks_in_the_docs_is_of_these_faults() {
    let all = || {
        let groups = GROUPS.iter();
        groups.flat_map(|group| group.faults().chain(group.rare()))
    };
    let mut table = String::from("piece\tlooks at\tfaults that it finds\tthat no other finds\n");
    let pieces = Check::ALL.into_iter().chain([Check::Lives]);
    for check in pieces {
        let by = all()
            .filter(|fault| fault.checks().contains(&check))
            .count();
        let alone = all().filter(|fault| fault.checks() == [check]).count();
        let name = format!("{check:?}").to_lowercase();
        table += &format!("{name}\t{}\t{by}\t{alone}\n", check.looks_at());
    }
    is_kept("crash-checks.tsv", &table);
}
