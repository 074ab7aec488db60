//! A persistent queue in a ring; a transaction puts an item in or takes one out. Invariant: the
//! items between head and tail are numbered without a gap.

use super::{Heap, Program, ProgramFile, fault};
use crate::random::Random;
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "queue",
    line: "puts an item into a ring or takes one out",
    least_bytes: super::PAGE,
    build,
};

pub(super) fn build(spec: ProgramSpec, heap: u64) -> (Heap, Box<dyn Program>) {
    let capacity = (spec.footprint / spec.item_bytes).max(2);
    let heap = Heap::new(heap, capacity * spec.item_bytes);
    let queue = RingQueue {
        spec,
        heap,
        capacity,
    };
    (heap, Box::new(queue))
}

/// Offsets in the root line: the number of the next item to take out, and of the next to put in.
const HEAD: u64 = 0;
const TAIL: u64 = 8;

struct RingQueue {
    spec: ProgramSpec,
    heap: Heap,
    capacity: u64,
}

impl RingQueue {
    fn place(&self, number: u64) -> u64 {
        self.heap.start + number % self.capacity * self.spec.item_bytes
    }

    fn put(&self, memory: &mut dyn Bytes, tail: u64) {
        self.spec.store_item(memory, self.place(tail), tail);
        memory.store_u64(TAIL, tail + 1);
    }

    fn take(&self, memory: &mut dyn Bytes, head: u64) {
        let mut bytes = vec![0; self.spec.item_bytes as usize];
        memory.load(self.place(head), &mut bytes);
        memory.store_u64(HEAD, head + 1);
    }
}

impl Program for RingQueue {
    /// Fills the queue to half, at the end of a lap, so that the first lap touches what setup has written.
    fn setup(&self, memory: &mut dyn Bytes) {
        for number in 0..self.capacity {
            self.put(memory, number);
        }
        memory.store_u64(HEAD, self.capacity / 2);
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        let mut random = Random::new(self.spec.seed, number);
        let head = memory.load_u64(HEAD);
        let tail = memory.load_u64(TAIL);
        memory.depend();
        let put = match tail - head {
            0 => true,
            full if full == self.capacity => false,
            _ => random.below(2) == 0,
        };
        match put {
            true => self.put(memory, tail),
            false => self.take(memory, head),
        }
    }

    /// One lock serves both ends, because whoever takes an item has to know what was put in.
    fn locks(&self, _number: u64) -> Vec<u64> {
        vec![0]
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let head = memory.load_u64(HEAD);
        let tail = memory.load_u64(TAIL);
        if head > tail || tail - head > self.capacity {
            return fault(HEAD, format!("the queue goes from {head:#x} to {tail:#x}"));
        }
        for number in head..tail {
            let at = self.place(number);
            self.spec.check_item(memory, at, number)?;
        }
        Ok(())
    }
}
