//! The conventional store against a plain map: whatever collides, is overwritten, trimmed, committed,
//! reopened, every block comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use sardonyx_store::{Conventional, ConventionalOptions, Error, Lba, Made, Store};

#[derive(Clone, Debug)]
enum Op {
    Write(Lba, u128),
    Read(Lba),
    Delete(Lba),
    Flush,
    Reopen,
}

const BLOCK: usize = 64;
const BLOCKS: u64 = 8;

fn options() -> ConventionalOptions {
    ConventionalOptions {
        block_bytes: BLOCK as u32,
        ..ConventionalOptions::default()
    }
}

fn block(content: u128) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    Made::new(content).bytes(0, &mut bytes);
    bytes
}

fn op() -> impl Strategy<Value = Op> {
    let lba = 0..20_u64;
    prop_oneof![
        12 => (lba.clone(), 0..10_u128).prop_map(|(lba, content)| Op::Write(lba, content)),
        4 => lba.clone().prop_map(Op::Read),
        4 => lba.prop_map(Op::Delete),
        1 => Just(Op::Flush),
        1 => Just(Op::Reopen),
    ]
}

fn open(folder: &Path, options: ConventionalOptions) -> Conventional {
    Conventional::open(folder, options).unwrap()
}

fn distinct(held: &BTreeMap<Lba, u128>, deduplicate: bool) -> u64 {
    let contents: BTreeSet<_> = held.values().collect();
    (if deduplicate {
        contents.len()
    } else {
        held.len()
    }) as u64
}

proptest! {
    #![proptest_config(sardonyx_property::cases(32))]

    #[test]
    fn every_block_comes_back(
        ops in prop::collection::vec(op(), 1..150),
        hash_bits in prop_oneof![Just(0_u32), Just(1), Just(3), Just(160)],
        deduplicate in prop::bool::weighted(0.8),
        commit_every in prop_oneof![Just(1_usize), Just(7), Just(1000)],
        cache_entries in prop_oneof![Just(1_usize), Just(100)],
        sync_commits in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let options = ConventionalOptions {
            capacity_bytes: BLOCKS * BLOCK as u64,
            deduplicate,
            hash_bits,
            commit_every,
            cache_entries,
            sync_commits,
            ..options()
        };
        let mut store = open(folder.path(), options);
        let mut held: BTreeMap<Lba, u128> = BTreeMap::new();
        let mut into = vec![0; BLOCK];
        for op in ops {
            match op {
                Op::Write(lba, content) => {
                    let mut after = held.clone();
                    after.insert(lba, content);
                    match store.write(lba, &block(content)) {
                        Ok(outcome) => {
                            let known = deduplicate && held.values().any(|&c| c == content);
                            prop_assert_eq!(outcome.duplicate, known);
                            prop_assert_eq!(outcome.found, held.contains_key(&lba));
                            held = after;
                        }
                        Err(Error::Full { blocks }) => {
                            prop_assert_eq!(blocks, distinct(&held, deduplicate));
                            prop_assert!(distinct(&after, deduplicate) > BLOCKS);
                        }
                        Err(error) => prop_assert!(false, "{}", error),
                    }
                }
                Op::Read(lba) => {
                    let found = store.read(lba, &mut into).unwrap().found;
                    prop_assert_eq!(found, held.contains_key(&lba));
                    let expected = held.get(&lba).map_or(vec![0; BLOCK], |&c| block(c));
                    prop_assert_eq!(&into, &expected);
                }
                Op::Delete(lba) => {
                    let found = store.delete(lba).unwrap().found;
                    prop_assert_eq!(found, held.remove(&lba).is_some());
                }
                Op::Flush => store.flush().unwrap(),
                Op::Reopen => {
                    store.flush().unwrap();
                    drop(store);
                    store = open(folder.path(), options);
                }
            }
            let totals = store.totals();
            prop_assert_eq!(totals.live_blocks, held.len() as u64);
            prop_assert_eq!(totals.stored_blocks, distinct(&held, deduplicate));
        }
        for lba in 0..20 {
            store.read(lba, &mut into).unwrap();
            let expected = held.get(&lba).map_or(vec![0; BLOCK], |&c| block(c));
            prop_assert_eq!(&into, &expected);
        }
        if hash_bits > 100 {
            prop_assert_eq!(store.activity().collisions, 0);
        }
    }
}

#[test]
fn a_narrow_hash_collides_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = ConventionalOptions {
        hash_bits: 2,
        ..options()
    };
    let mut store = open(folder.path(), options);
    for lba in 0..40 {
        store.write(lba, &block(u128::from(lba % 20))).unwrap();
    }
    assert!(store.activity().collisions > 20, "{:?}", store.activity());
    assert_eq!(store.totals().stored_blocks, 20);
    let mut into = vec![0; BLOCK];
    for lba in 0..40 {
        store.read(lba, &mut into).unwrap();
        assert_eq!(into, block(u128::from(lba % 20)));
    }
}

#[test]
fn a_fingerprint_that_is_believed_loses_blocks() {
    // The other test would not notice if nothing were compared, unless this one is true.
    let folder = tempfile::tempdir().unwrap();
    let options = ConventionalOptions {
        hash_bits: 1,
        verify: false,
        ..options()
    };
    let mut store = open(folder.path(), options);
    for lba in 0..9 {
        store.write(lba, &block(u128::from(lba))).unwrap();
    }
    assert!(store.totals().stored_blocks < 9);
}

#[test]
fn a_folder_in_use_is_an_error_of_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path(), ConventionalOptions::default());
    let error = Conventional::open(folder.path(), ConventionalOptions::default())
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(
        text.contains("another process has this store open") && !text.contains('\n'),
        "{text}"
    );
}

#[test]
fn what_was_not_flushed_may_be_lost_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let options = options();
    let mut store = open(folder.path(), options);
    store.write(1, &block(1)).unwrap();
    store.write(2, &block(1)).unwrap();
    store.flush().unwrap();
    store.write(1, &block(3)).unwrap();
    store.delete(2).unwrap();
    store.write(4, &block(4)).unwrap(); // may not take the place of what the drive still names
    drop(store); // without a flush
    let mut store = open(folder.path(), options);
    let mut into = vec![0; BLOCK];
    for lba in [1, 2] {
        assert!(store.read(lba, &mut into).unwrap().found);
        assert_eq!(into, block(1));
    }
    assert!(!store.read(4, &mut into).unwrap().found);
}

#[test]
fn a_folder_made_otherwise_is_an_error_of_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let options = ConventionalOptions::default();
    drop(open(folder.path(), options));
    drop(open(folder.path(), options));
    for other in [
        ConventionalOptions {
            deduplicate: false,
            ..options
        },
        ConventionalOptions {
            block_bytes: 512,
            ..options
        },
    ] {
        let error = Conventional::open(folder.path(), other).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains("was made with blocks of 4096 bytes"),
            "{text}"
        );
    }
}

/// Time and energy are those of what was done, by the costs that are given: the same on every machine and load.
#[test]
fn what_it_takes_is_counted() {
    let told = |bytes: u64| {
        let folder = tempfile::tempdir().unwrap();
        let exactly = sardonyx_store::Bracket::exactly;
        let costs = sardonyx_store::CostModel {
            clock_mhz: 1_000,
            cores: 2,
            request_cycles: exactly(1_000.0),
            hash_cycles_per_byte: exactly(6.0),
            compare_cycles_per_byte: exactly(0.0),
            lookup_cycles: exactly(100.0),
            fetch_us: exactly(0.0),
            overlap: false,
        };
        let options = ConventionalOptions {
            capacity_bytes: 1 << 20,
            costs,
            ..options()
        };
        let mut store = open(folder.path(), options);
        for content in 0..100 {
            store.write(content as u64, &block(content)).unwrap();
        }
        store.flush().unwrap();
        let (seconds, working) = store.seconds();
        // Each: a request, its bytes hashed, a look-up of the mapping and one of the summary.
        let cycles = 100.0 * (1_000.0 + 6.0 * bytes as f64 + 2.0 * 100.0);
        assert!((working - cycles / 2e9).abs() < 1e-12, "{working}");
        assert!((seconds - working - 100.0 * bytes as f64 / 1.9e9).abs() < 1e-12);
        (seconds, store.totals().cost)
    };
    let bytes = block(0).len() as u64;
    assert_eq!(told(bytes), told(bytes));
}
