//! What holds of every design in the table: whoever adds one has these tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;
use sardonyx_store::{
    Asked, DESIGNS, Design, KeyKind, Keys, Lba, Named, Question, Room, Stream, Workload,
};
use serde_json::Value;

const BLOCK: u32 = 64;
const BLOCKS: u64 = 6;

#[derive(Clone, Debug)]
enum Op {
    Write(Lba, u8),
    Read(Lba),
    Delete(Lba),
}

fn op() -> impl Strategy<Value = Op> {
    let lba = 0..5_u64;
    prop_oneof![
        5 => (lba.clone(), 0..4_u8).prop_map(|(lba, content)| Op::Write(lba, content)),
        2 => lba.clone().prop_map(Op::Read),
        2 => lba.prop_map(Op::Delete),
    ]
}

fn block(content: u8) -> Vec<u8> {
    let mut bytes = vec![7; BLOCK as usize];
    bytes[BLOCK as usize / 2..].fill(content);
    bytes
}

fn room(folder: &std::path::Path) -> Room<'_> {
    Room {
        capacity_bytes: BLOCKS * u64::from(BLOCK),
        block_bytes: BLOCK,
        folder,
        contents: None,
    }
}

proptest! {
    #![proptest_config(sardonyx_property::cases(24))]

    /// Every block comes back, and equal ones are kept once.
    #[test]
    fn a_store_does_what_a_map_does(ops in prop::collection::vec(op(), 1..60)) {
        for design in DESIGNS {
            let folder = tempfile::tempdir().unwrap();
            let keys = Keys::parse(design, &[]).unwrap();
            let mut store = (design.store)(&keys, room(folder.path())).unwrap();
            let mut held: HashMap<Lba, u8> = HashMap::new();
            let mut into = vec![1; BLOCK as usize];
            for op in &ops {
                match *op {
                    Op::Write(lba, content) => {
                        held.insert(lba, content);
                        store.write(lba, &block(content)).unwrap();
                    }
                    Op::Read(lba) => {
                        store.read(lba, &mut into).unwrap();
                        let expected = held.get(&lba).map_or(vec![0; BLOCK as usize], |&c| block(c));
                        prop_assert_eq!(&into, &expected, "{}", design.name);
                    }
                    Op::Delete(lba) => {
                        held.remove(&lba);
                        store.delete(lba).unwrap();
                    }
                }
            }
            let totals = store.totals();
            let distinct: BTreeSet<u8> = held.values().copied().collect();
            prop_assert_eq!(totals.live_blocks, held.len() as u64, "{}", design.name);
            prop_assert_eq!(totals.stored_blocks, distinct.len() as u64, "{}", design.name);
        }
    }
}

fn question(design: &str, keys: &[(&str, &str)], folder: &std::path::Path) -> Question {
    let pair = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
    Question {
        design: Asked {
            name: Named::find(design).unwrap(),
            keys: keys.iter().map(pair).collect(),
            folder: Some(folder.to_owned()),
        },
        workload: Workload::Stream(Stream {
            bytes: 1 << 18,
            span: 0,
            duplicates: 0.3,
            reads: 0.3,
            seed: 0,
            encrypted: false,
        }),
        block_bytes: 4096,
    }
}

#[test]
fn a_run_has_the_figures_that_its_design_names() {
    for design in DESIGNS {
        let folder = tempfile::tempdir().unwrap();
        let answer = question(design.name, &[], folder.path()).answer(&|_, _| true);
        let answer = answer.unwrap();
        let Value::Object(metrics) = &answer["metrics"] else {
            panic!("{answer}")
        };
        let found: BTreeSet<&str> = metrics.keys().map(String::as_str).collect();
        assert_eq!(
            found,
            design.figures.iter().copied().collect(),
            "{}",
            design.name
        );
        assert_eq!(found.len(), design.figures.len(), "{}", design.name);
        assert_eq!(
            (&metrics["writes"], &metrics["duplicate_writes"]),
            (&64.into(), &19.into())
        );
    }
}

fn other(design: &Design, number: usize) -> &'static str {
    let key = &design.keys[number];
    match key.kind {
        KeyKind::Bytes => "1M",
        KeyKind::Count { .. } if key.name == "row_bits" => "512",
        KeyKind::Count { .. } => "2",
        KeyKind::Flag if key.default == Some("true") => "false",
        KeyKind::Flag => "true",
        KeyKind::Choice { words } => words[words.len() - 1],
        KeyKind::Bracket => "3-4",
    }
}

/// A key that nobody reads would be a key that does nothing.
#[test]
fn every_key_has_a_default_and_is_read_by_its_design() {
    for design in DESIGNS {
        let names: BTreeSet<&str> = design.keys.iter().map(|key| key.name).collect();
        assert_eq!(
            names.len(),
            design.keys.len(),
            "{}: a key twice",
            design.name
        );
        let plain = Keys::parse(design, &[]).unwrap();
        let shown: BTreeMap<_, _> = plain.shown().iter().cloned().collect();
        for (number, key) in design.keys.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let set = [(key.name.to_owned(), other(design, number).to_owned())];
            let given = Keys::parse(design, &set).unwrap();
            assert!(
                given
                    .shown()
                    .iter()
                    .any(|(name, value)| shown.get(name) != Some(value))
            );
            let asked = question(
                design.name,
                &[(key.name, other(design, number))],
                folder.path(),
            );
            // Files to cut are not there; all else runs.
            assert!(
                asked.check().is_ok() || key.needs.is_some(),
                "{}.{}",
                design.name,
                key.name
            );
        }
    }
}

#[test]
fn keys_that_make_no_sense_are_refused_with_what_to_give() {
    let refused = |key, value, words: &str| {
        let asked = question("recam", &[(key, value)], "nowhere".as_ref());
        let error = asked.check().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let whole = "recam.row_bits = wide: give a whole number of at least 1";
    refused("row_bits", "wide", whole);
    let unknown = "recam.rowbits = 1: there is no such key; known: capacity_bytes, ";
    refused("rowbits", "1", unknown);
    refused("free_row_compare", "yes", "give true or false");
    refused("compare", "double", "give continuous or single");
    let ends = "give a number from 0, or two ends as in 0.1-17";
    refused("compared_bit_fj", "much", ends);
    for text in ["nan", "inf", "1e999", "-1", "1-inf", "17-0.1"] {
        refused("compared_bit_fj", text, ends);
    }
    refused("capacity_bytes", "4KB", "is not a size");
    refused("row_bits", "100", "row_bits = 100: give a multiple of 8");
    let error = Named::find("recma").unwrap_err().to_string();
    assert!(error.contains("known: recam, conventional"), "{error}");
}

fn table() -> String {
    let mut rows = String::from("key\tdefault\tsource\tmeaning\n");
    for design in DESIGNS {
        for key in design.keys {
            let default = key.default.unwrap_or("follows from others");
            let name = format!("{}.{}", design.name, key.name);
            rows += &format!("`{name}`\t{default}\t{}\t{}\n", key.source, key.line);
        }
    }
    rows
}

#[test]
fn the_table_of_keys_is_the_programs() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/tables/store-keys.tsv"
    );
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        return std::fs::write(path, table()).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == table(),
        "docs/tables/store-keys.tsv is not what the program says: run with UPDATE_REFERENCE=1"
    );
}
