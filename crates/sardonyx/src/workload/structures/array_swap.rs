//! A persistent array of items; a transaction swaps two of them. Invariant: the items are a
//! permutation of what setup put there.

use std::ops::Range;

use super::{OPERATION, Parts, fault};
use crate::workload::random::{Random, check_item, item};
use crate::workload::{Fault, Memory, Program, ProgramSpec, Recovered, Transaction};

/// The array.
pub struct ArraySwap {
    spec: ProgramSpec,
    parts: Parts,
    items: u64,
}

impl ArraySwap {
    pub fn new(spec: &ProgramSpec) -> ArraySwap {
        let items = (spec.footprint / spec.item_bytes).max(2);
        ArraySwap {
            spec: spec.clone(),
            parts: Parts::new(spec, items * spec.item_bytes),
            items,
        }
    }

    fn place(&self, index: u64) -> u64 {
        self.parts.heap + index * self.spec.item_bytes
    }
}

impl Program for ArraySwap {
    fn region_bytes(&self) -> u64 {
        self.parts.end
    }

    fn log_bytes(&self) -> Range<u64> {
        self.parts.log.bytes()
    }

    fn setup(&mut self, memory: &mut dyn Memory) {
        let mut bytes = vec![0; self.spec.item_bytes as usize];
        for index in 0..self.items {
            item(index, &mut bytes);
            memory.store(self.place(index), &bytes);
        }
    }

    fn transaction(&mut self, number: u64, memory: &mut dyn Memory) {
        let mut random = Random::new(self.spec.seed, number);
        let a = random.below(self.items);
        let b = (a + 1 + random.below(self.items - 1)) % self.items;
        let (a, b) = (self.place(a), self.place(b));

        let mut tx = Transaction::begin(memory, self.parts.log, number, self.spec.mutant);
        tx.compute(OPERATION);
        let mut first = vec![0; self.spec.item_bytes as usize];
        let mut second = first.clone();
        tx.load(a, &mut first);
        tx.load(b, &mut second);
        tx.store(a, &second);
        tx.store(b, &first);
        tx.commit();
    }

    fn recover(&self, memory: &mut dyn Memory) -> Result<Recovered, Fault> {
        self.parts.log.recover(memory, self.parts.region())
    }

    fn check(&self, memory: &mut dyn Memory) -> Result<(), Fault> {
        let mut seen = vec![false; self.items as usize];
        for index in 0..self.items {
            let at = self.place(index);
            let id = check_item(memory, at, self.spec.item_bytes)?;
            match seen.get_mut(id as usize) {
                None => return fault(at, format!("there is no item {id:#x}")),
                Some(true) => return fault(at, format!("item {id} is there twice")),
                Some(seen) => *seen = true,
            }
        }
        Ok(())
    }
}
