//! A persistent queue in a ring; a transaction puts an item in or takes one out. Invariant: the
//! items between head and tail are numbered without a gap.

use std::ops::Range;

use super::{OPERATION, Parts, fault};
use crate::workload::random::{Random, check_item, item};
use crate::workload::{Fault, Memory, Program, ProgramSpec, Recovered, Transaction};

/// Offsets in the root line: the number of the next item to be taken out, and to be put in.
const HEAD: u64 = 0;
const TAIL: u64 = 8;

/// The ring.
pub struct Queue {
    spec: ProgramSpec,
    parts: Parts,
    capacity: u64,
}

impl Queue {
    pub fn new(spec: &ProgramSpec) -> Queue {
        let capacity = (spec.footprint / spec.item_bytes).max(2);
        Queue {
            spec: spec.clone(),
            parts: Parts::new(spec, capacity * spec.item_bytes),
            capacity,
        }
    }

    fn place(&self, number: u64) -> u64 {
        self.parts.heap + number % self.capacity * self.spec.item_bytes
    }

    fn put(&self, memory: &mut dyn Memory, tail: u64) {
        let mut bytes = vec![0; self.spec.item_bytes as usize];
        item(tail, &mut bytes);
        memory.store(self.place(tail), &bytes);
        self.parts.set_root_u64(memory, TAIL, tail + 1);
    }

    fn take(&self, memory: &mut dyn Memory, head: u64) {
        let mut bytes = vec![0; self.spec.item_bytes as usize];
        memory.load(self.place(head), &mut bytes);
        self.parts.set_root_u64(memory, HEAD, head + 1);
    }
}

impl Program for Queue {
    fn region_bytes(&self) -> u64 {
        self.parts.end
    }

    fn log_bytes(&self) -> Range<u64> {
        self.parts.log.bytes()
    }

    /// Half full, at the end of a lap, so that the first lap touches what setup has written.
    fn setup(&mut self, memory: &mut dyn Memory) {
        for number in 0..self.capacity {
            self.put(memory, number);
        }
        let head = self.capacity / 2;
        self.parts.set_root_u64(memory, HEAD, head);
    }

    fn transaction(&mut self, number: u64, memory: &mut dyn Memory) {
        let mut random = Random::new(self.spec.seed, number);
        let mut tx = Transaction::begin(memory, self.parts.log, number, self.spec.mutant);
        tx.compute(OPERATION);
        let head = self.parts.root_u64(&mut tx, HEAD);
        let tail = self.parts.root_u64(&mut tx, TAIL);
        tx.depend();
        let put = match tail - head {
            0 => true,
            full if full == self.capacity => false,
            _ => random.below(2) == 0,
        };
        match put {
            true => self.put(&mut tx, tail),
            false => self.take(&mut tx, head),
        }
        tx.commit();
    }

    fn recover(&self, memory: &mut dyn Memory) -> Result<Recovered, Fault> {
        self.parts.log.recover(memory, self.parts.region())
    }

    fn check(&self, memory: &mut dyn Memory) -> Result<(), Fault> {
        let head = self.parts.root_u64(memory, HEAD);
        let tail = self.parts.root_u64(memory, TAIL);
        if head > tail || tail - head > self.capacity {
            let at = self.parts.root;
            return fault(at, format!("the queue goes from {head:#x} to {tail:#x}"));
        }
        for number in head..tail {
            let at = self.place(number);
            let id = check_item(memory, at, self.spec.item_bytes)?;
            if id != number {
                return fault(at, format!("item {id:#x} where {number} should be"));
            }
        }
        Ok(())
    }
}
