//! The fast model against the array bit by bit, operation by operation, and against a plain map.

use std::collections::HashMap;

use proptest::prelude::*;
use sardonyx_store::{
    Compare, Error, First, InMemory, Lba, Made, Overwrite, Parameters, Purpose, Recam, Regenerated,
    Store,
};

use crate::bits::BitLevel;

#[derive(Clone, Debug)]
enum Op {
    Write(Lba, Vec<u8>),
    Read(Lba),
    Delete(Lba),
}

/// Blocks that often begin alike: each row is one of two.
fn block(parameters: &Parameters) -> impl Strategy<Value = Vec<u8>> + use<> {
    let row_bytes = parameters.row_bits as usize / 8;
    let rows = prop::collection::vec(prop::bool::weighted(0.3), parameters.segments() as usize);
    rows.prop_map(move |rows| {
        let row = |other: &bool| vec![if *other { 0xA5 } else { 0x3C }; row_bytes];
        rows.iter().flat_map(row).collect()
    })
}

fn op(parameters: &Parameters) -> impl Strategy<Value = Op> + use<> {
    let lba = 0..14_u64;
    prop_oneof![
        5 => (lba.clone(), block(parameters)).prop_map(|(lba, block)| Op::Write(lba, block)),
        2 => lba.clone().prop_map(Op::Read),
        2 => lba.prop_map(Op::Delete),
    ]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let shapes = (
        prop_oneof![Just((6, 1)), Just((6, 2)), Just((6, 3)), Just((1, 1))],
        prop_oneof![Just((8, 16)), Just((8, 64)), Just((6, 8))],
        prop_oneof![Just(6), Just(12)],
        prop_oneof![Just(0), Just(2), Just(8)],
        1..=2_u32,
    );
    let ways = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (shapes, ways).prop_map(
        |((shape, (block_bytes, row_bits), logical, fingerprint_bits, address_cycles), ways)| {
            let (slots, modules) = shape;
            let (single, starts, free_row_compare, searches) = ways;
            Parameters {
                modules,
                logical_blocks: logical,
                compare: if single {
                    Compare::Single
                } else {
                    Compare::Continuous
                },
                first: if starts { First::Starts } else { First::Rows },
                free_row_compare,
                overwrite: if searches {
                    Overwrite::Searches
                } else {
                    Overwrite::Deletes
                },
                fingerprint_bits,
                address_cycles,
                ..Parameters::new(slots * u64::from(block_bytes), block_bytes, row_bits)
            }
        },
    )
}

fn parameters_and_ops() -> impl Strategy<Value = (Parameters, Vec<Op>)> {
    parameters().prop_flat_map(|p| (Just(p), prop::collection::vec(op(&p), 1..60)))
}

proptest! {
    #![proptest_config(sardonyx_property::cases(400))]

    /// Answers, steps, active rows, cycles and wear are the same after every operation, whatever
    /// the rows' hashes.
    #[test]
    fn the_fast_model_does_what_the_bits_do(
        (p, ops) in parameters_and_ops(),
        hash_bits in prop_oneof![Just(0_u32), Just(1), Just(63)],
    ) {
        let mut bits = BitLevel::new(p);
        let mut fast = Recam::new(p, InMemory::default()).unwrap().with_narrow_hash(hash_bits);
        let mut held: HashMap<Lba, Vec<u8>> = HashMap::new();
        for op in ops {
            match op {
                Op::Write(lba, block) => {
                    // An only copy that is written again is not found if it is deleted first.
                    let is_found = |l: Lba| l != lba || p.overwrite == Overwrite::Searches;
                    let duplicate = held.iter().any(|(&l, b)| *b == block && is_found(l))
                        || held.values().filter(|b| **b == block).count() > 1;
                    let slow = bits.write(lba, &block);
                    let quick = fast.write(lba, &block);
                    match (slow, quick) {
                        (Ok(slow), Ok(quick)) => {
                            prop_assert_eq!(slow, quick.duplicate);
                            prop_assert_eq!(slow, duplicate);
                            prop_assert_eq!(quick.found, held.contains_key(&lba));
                            held.insert(lba, block);
                        }
                        (Err(Error::Full { blocks: a }), Err(Error::Full { blocks: b })) => {
                            prop_assert_eq!(a, b);
                        }
                        (slow, quick) => prop_assert!(false, "{:?} but {:?}", slow, quick),
                    }
                }
                Op::Read(lba) => {
                    let slow = bits.read(lba);
                    let mut into = vec![0xFF; p.block_bytes as usize];
                    let quick = fast.read(lba, &mut into).unwrap();
                    prop_assert_eq!(quick.found, slow.is_some());
                    prop_assert_eq!(slow.as_ref(), held.get(&lba));
                    let zeros = vec![0; p.block_bytes as usize];
                    prop_assert_eq!(&into, slow.as_ref().unwrap_or(&zeros));
                }
                Op::Delete(lba) => {
                    let slow = bits.delete(lba);
                    prop_assert_eq!(fast.delete(lba).unwrap().found, slow);
                    prop_assert_eq!(held.remove(&lba).is_some(), slow);
                }
            }
            prop_assert_eq!(bits.log(), fast.log());
            for slot in 0..p.slots() as u32 {
                prop_assert_eq!(bits.wear()[slot as usize], fast.slot_wear(slot));
            }
        }
        for lba in 0..14 {
            let slow = bits.read(lba);
            prop_assert_eq!(slow.as_ref(), held.get(&lba));
            let mut into = vec![0; p.block_bytes as usize];
            prop_assert_eq!(fast.read(lba, &mut into).unwrap().found, held.contains_key(&lba));
            prop_assert!(held.get(&lba).is_none_or(|block| *block == into));
        }
        let total = fast.totals();
        let mut distinct: Vec<_> = held.values().collect();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(total.live_blocks, held.len() as u64);
        prop_assert_eq!(total.stored_blocks, distinct.len() as u64);
        if p.modules == 1 {
            prop_assert_eq!(fast.elapsed_cycles(), total.cost.cycles);
        } else {
            prop_assert!(fast.elapsed_cycles() <= total.cost.cycles);
        }
    }

    /// A block made of a number is the same in pieces, and its bytes need not be kept.
    #[test]
    fn made_blocks_are_what_they_were(
        writes in prop::collection::vec((0..9_u64, 0..5_u128), 1..40),
        at in 0..60_usize,
        length in 0..60_usize,
        pad in 0..2_u64,
    ) {
        let p = Parameters::new(16 * 1024, 1024, 256);
        let whole = |made: Made| {
            let mut bytes = vec![0; 1024];
            made.bytes(0, &mut bytes);
            bytes
        };
        let (at, length) = (at * 8, length * 8);
        let mut piece = vec![0; length];
        let first = Made { content: writes[0].1, pad };
        first.bytes(at, &mut piece);
        prop_assert_eq!(&piece, &whole(first)[at..at + length]);
        let mut kept = Recam::new(p, InMemory::default()).unwrap();
        let mut made = Recam::new(p, Regenerated::default()).unwrap();
        for (lba, content) in writes {
            let content = Made { content, pad };
            let a = kept.write(lba, &whole(content)).unwrap();
            let b = made.put(lba, &content).unwrap();
            prop_assert_eq!((a, kept.log()), (b, made.log()));
            let (mut x, mut y) = (vec![0; 1024], vec![1; 1024]);
            kept.read(lba, &mut x).unwrap();
            made.get(lba, &mut y);
            prop_assert_eq!(x, y);
        }
    }
}

fn made(content: u128, bytes: usize) -> Vec<u8> {
    let mut block = vec![0; bytes];
    Made::new(content).bytes(0, &mut block);
    block
}

#[test]
fn cycles_are_those_of_section_iii_c() {
    // 4 KB in rows of 256 bits: S = 128.
    let p = Parameters::new(1 << 20, 4096, 256);
    assert_eq!(p.segments(), 128);
    let mut store = Recam::new(p, InMemory::default()).unwrap();
    let a = made(1, 4096);
    assert_eq!(store.write(7, &a).unwrap().cost.cycles, 128 + 128 + 4);
    assert_eq!(store.write(8, &a).unwrap().cost.cycles, 128 + 4);
    assert_eq!(store.log().ledger().of(Purpose::Search).cycles, 128);
    let mut into = vec![0; 4096];
    assert_eq!(store.read(8, &mut into).unwrap().cost.cycles, 2 + 1 + 128);
    // The first of two references goes: no row of data does.
    assert_eq!(store.delete(7).unwrap().cost.cycles, 3 + 2);
    assert_eq!(store.delete(8).unwrap().cost.cycles, 3 + 2 + 128);
    assert_eq!(store.totals().stored_blocks, 0);
}

#[test]
fn eight_kilobytes_with_three_duplicates_in_ten_give_2_28_million_writes_a_second() {
    let p = Parameters::new(64 << 20, 8192, 256);
    let mut store = Recam::new(p, Regenerated::default()).unwrap();
    for lba in 0..1000 {
        let content = if lba % 10 < 3 { 0 } else { lba + 1 };
        store.put(lba, &Made::new(u128::from(content))).unwrap();
    }
    let totals = store.totals();
    assert_eq!(totals.duplicate_writes, 299); // the first of them is new
    let per_second = 1e9 * totals.writes as f64 / totals.cost.time_ns;
    assert!((2.275e6..2.285e6).contains(&per_second), "{per_second}");
}

#[test]
fn a_continuous_compare_activates_only_rows_below_matching_ones() {
    let p = Parameters::new(1 << 20, 1024, 256);
    let mut store = Recam::new(p, InMemory::default()).unwrap();
    let mut block = made(1, 1024);
    store.write(0, &block).unwrap();
    block[1023] ^= 1; // the last row of 32 differs
    store.write(1, &block).unwrap();
    block[0] ^= 1; // the first one
    store.write(2, &block).unwrap();
    let active = |store: &Recam| store.log().ledger().of(Purpose::Search).active_rows;
    assert_eq!(active(&store), u128::from(p.rows()));
    block[0] ^= 1;
    assert!(store.write(3, &block).unwrap().duplicate);
    // Two blocks agree in 31 rows.
    assert_eq!(active(&store), u128::from(p.rows()) + 2 * 31);
}

#[test]
fn a_full_array_is_an_error_and_loses_nothing() {
    let p = Parameters {
        logical_blocks: 8,
        ..Parameters::new(2 * 1024, 1024, 256)
    };
    let mut store = Recam::new(p, InMemory::default()).unwrap();
    let [a, b, c] = [1, 2, 3].map(|content| made(content, 1024));
    store.write(0, &a).unwrap();
    store.write(1, &a).unwrap();
    store.write(2, &b).unwrap();
    let full = store.write(3, &c).unwrap_err();
    assert!(full.to_string().contains("full: 2 blocks"), "{full}");
    assert!(matches!(store.write(1, &c), Err(Error::Full { .. })));
    let mut into = vec![0; 1024];
    for (lba, block) in [(0, &a), (1, &a), (2, &b)] {
        assert!(store.read(lba, &mut into).unwrap().found);
        assert_eq!(&into, block);
    }
    assert!(store.write(2, &c).is_ok(), "its own old block makes room");
    assert!(store.write(3, &a).unwrap().duplicate);
    assert!(store.write(4, &[0; 10]).is_err());
}

#[test]
fn modules_read_at_once_and_search_together() {
    let p = Parameters {
        modules: 4,
        ..Parameters::new(16 * 1024, 1024, 256)
    };
    let mut store = Recam::new(p, InMemory::default()).unwrap();
    for lba in 0..4 {
        store.write(lba, &made(u128::from(lba), 1024)).unwrap();
    }
    // Four unique blocks go to four modules, but each search waits for the store before it.
    let written = store.elapsed_cycles();
    assert_eq!(written, store.totals().cost.cycles);
    let mut into = vec![0; 1024];
    let cycles: Vec<u64> = (0..4)
        .map(|lba| store.read(lba, &mut into).unwrap().cost.cycles)
        .collect();
    assert_eq!(cycles, [2 + 1 + 32; 4]);
    // The last module is free only when its store is done; the others have read by then.
    assert_eq!(store.elapsed_cycles(), written + 35);
}

#[test]
fn a_fingerprint_row_makes_the_first_compare_narrow() {
    let plain = Parameters::new(1 << 20, 4096, 256);
    let p = Parameters {
        fingerprint_bits: 40,
        ..plain
    };
    assert_eq!(p.block_rows(), 129);
    let mut store = Recam::new(p, InMemory::default()).unwrap();
    store.write(0, &made(1, 4096)).unwrap();
    store.write(1, &made(2, 4096)).unwrap();
    let search = *store.log().ledger().of(Purpose::Search);
    assert_eq!(search.compared_bits, u128::from(p.rows()) * 41);
    assert_eq!(search.cycles, 129);
}

#[test]
fn blocks_that_are_mostly_equal_are_told_apart_without_touching_every_row() {
    // A thousand blocks of zeros but for one row, of which each is different.
    let p = Parameters::new(4 << 20, 4096, 256);
    let mut store = Recam::new(p, InMemory::default()).unwrap();
    for lba in 0..1000_u64 {
        let mut block = vec![0; 4096];
        let row = (lba % 128) as usize;
        block[32 * row] = 1 + (lba / 128) as u8;
        assert!(!store.write(lba, &block).unwrap().duplicate);
    }
    let mut zeros = vec![0; 4096];
    zeros[4095] = 255; // in the last row, where it parts from the 993 that have zeros before
    store.write(1000, &zeros).unwrap();
    let active = store.log().ledger().of(Purpose::Search).active_rows;
    let counted: u64 = (1..128_u64)
        // Blocks whose first k rows are zeros: those that differ in row k or later.
        .map(|k| (0..1000).filter(|lba| lba % 128 >= k).count() as u64)
        .sum();
    assert_eq!(active, u128::from(p.rows() + counted));
}
