//! Two persistent counters in lines of their own; a transaction adds one to each. Invariant: they are equal.

use super::{Heap, LINE, Program, ProgramFile, fault};
use crate::workload::{Bytes, Fault, Numbers};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "twins",
    line: "adds one to each of two counters",
    least_bytes: 0,
    build: |_, heap| {
        let heap = Heap::new(heap, 2 * LINE);
        (heap, Box::new(Twins { heap }))
    },
};

struct Twins {
    heap: Heap,
}

impl Program for Twins {
    fn setup(&self, memory: &mut dyn Bytes) {
        for at in [self.heap.start, self.heap.start + LINE] {
            memory.store_u64(at, 1);
        }
    }

    fn apply(&self, _: u64, memory: &mut dyn Bytes) {
        for at in [self.heap.start, self.heap.start + LINE] {
            let value = memory.load_u64(at);
            memory.store_u64(at, value + 1);
        }
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let [a, b] = [self.heap.start, self.heap.start + LINE].map(|at| memory.load_u64(at));
        match a == b {
            true => Ok(()),
            false => fault(self.heap.start, format!("the counters are {a} and {b}")),
        }
    }
}
