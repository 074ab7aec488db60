//! A persistent array of items; a transaction swaps two of them. Invariant: the items are a
//! permutation of what setup put there.

use std::collections::BTreeMap;

use super::{Heap, Program, ProgramFile, fault};
use crate::random::Random;
use crate::{Bytes, Fault, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "array-swap",
    line: "swaps two items of an array",
    least_bytes: 0,
    build: |spec, heap| build(spec, heap, false),
};

/// The same, with durable stores between the swaps that belong to no transaction.
pub const AND_STORE: ProgramFile = ProgramFile {
    name: "swap-and-store",
    line: "swaps two items of an array; every third time stores one word outside of any transaction",
    build: |spec, heap| build(spec, heap, true),
    ..PROGRAM
};

fn build(spec: ProgramSpec, heap: u64, stores: bool) -> (Heap, Box<dyn Program>) {
    let items = (spec.footprint / spec.item_bytes).max(2);
    let heap = Heap::new(heap, items * spec.item_bytes);
    let swap = ArraySwap {
        spec,
        heap,
        items,
        stores,
    };
    (heap, Box::new(swap))
}

struct ArraySwap {
    spec: ProgramSpec,
    heap: Heap,
    items: u64,
    stores: bool,
}

impl ArraySwap {
    fn place(&self, index: u64) -> u64 {
        self.heap.start + index * self.spec.item_bytes
    }
}

impl Program for ArraySwap {
    fn setup(&self, memory: &mut dyn Bytes) {
        for index in 0..self.items {
            self.spec.store_item(memory, self.place(index), index);
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        let mut random = Random::new(self.spec.seed, number);
        let a = random.below(self.items);
        let b = (a + 1 + random.below(self.items - 1)) % self.items;
        let (a, b) = (self.place(a), self.place(b));
        let mut first = vec![0; self.spec.item_bytes as usize];
        let mut second = first.clone();
        memory.load(a, &mut first);
        memory.load(b, &mut second);
        memory.store(a, &second);
        memory.store(b, &first);
    }

    fn is_store(&self, number: u64) -> bool {
        self.stores && number.is_multiple_of(3)
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let mut left: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for index in 0..self.items {
            *left.entry(self.spec.item(index)).or_default() += 1;
        }
        for index in 0..self.items {
            let at = self.place(index);
            let mut item = vec![0; self.spec.item_bytes as usize];
            memory.load(at, &mut item);
            match left.get_mut(&item) {
                None => return fault(at, "there is no such item"),
                Some(0) => return fault(at, "an item is there twice"),
                Some(count) => *count -= 1,
            }
        }
        Ok(())
    }
}
