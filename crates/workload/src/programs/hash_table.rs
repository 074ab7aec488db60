//! A persistent hash table with chains; a transaction inserts a random key. Invariant: each item
//! is in the chain of its key's bucket, and all items are in chains.

use super::{Heap, LINE, Program, ProgramFile, STEP, fault};
use crate::random::mix;
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "hash",
    line: "inserts an item into a chained hash table",
    least_bytes: super::PAGE,
    build: |spec, heap| {
        let node = LINE + spec.item_bytes;
        let filled = (spec.footprint / (node + 8)).max(1); // a bucket a node
        let buckets = filled.next_power_of_two();
        let nodes = (filled + spec.transactions) * node;
        let heap = Heap::new(heap, buckets * 8 + nodes + LINE);
        let table = HashTable {
            spec,
            heap,
            buckets,
            filled,
        };
        (heap, Box::new(table))
    },
};

/// Offsets in the root line: the number of items in the table, and the first free byte of the heap.
const COUNT: u64 = 0;
const FREE: u64 = 8;
/// Offsets in a node, whose item follows its header line.
const KEY: u64 = 0;
const NEXT: u64 = 8;

/// A table of buckets (addresses of nodes, 0 for none), followed by the nodes.
struct HashTable {
    spec: ProgramSpec,
    heap: Heap,
    buckets: u64,
    filled: u64,
}

impl HashTable {
    fn bucket(&self, key: u64) -> u64 {
        self.heap.start + mix(key) % self.buckets * 8
    }

    fn nodes(&self) -> u64 {
        (self.heap.start + self.buckets * 8).next_multiple_of(LINE)
    }

    fn node_bytes(&self) -> u64 {
        LINE + self.spec.item_bytes
    }

    fn insert(&self, memory: &mut dyn Bytes, key: u64) {
        let bucket = self.bucket(key);
        let first = memory.load_u64(bucket);
        let mut at = first;
        while at != 0 {
            memory.compute(STEP);
            memory.depend();
            if memory.load_u64(at + KEY) == key {
                return; // a key drawn before
            }
            at = memory.load_u64(at + NEXT);
        }
        let node = memory.load_u64(FREE);
        self.spec.store_item(memory, node + LINE, key);
        memory.store_u64(node + KEY, key);
        memory.store_u64(node + NEXT, first);
        memory.store_u64(bucket, node);
        let count = memory.load_u64(COUNT);
        memory.store_u64(COUNT, count + 1);
        memory.store_u64(FREE, node + self.node_bytes());
    }
}

impl Program for HashTable {
    fn setup(&self, memory: &mut dyn Bytes) {
        memory.store_u64(FREE, self.nodes());
        for number in 0..self.filled {
            self.insert(memory, self.spec.key(u64::MAX - number));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        self.insert(memory, self.spec.key(number));
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let count = memory.load_u64(COUNT);
        let free = memory.load_u64(FREE);
        let most = self.filled + self.spec.transactions;
        if count > most || free != self.nodes() + count * self.node_bytes() {
            return fault(COUNT, format!("{count:#x} items end at {free:#x}"));
        }
        let mut found = 0;
        for bucket in 0..self.buckets {
            let bucket = self.heap.start + bucket * 8;
            let mut at = memory.load_u64(bucket);
            let mut link = bucket;
            while at != 0 {
                if !self.heap.holds(at, self.node_bytes()) || at >= free {
                    return fault(link, format!("{at:#x} is not a node's address"));
                }
                found += 1;
                if found > count {
                    return fault(link, "a chain goes in a circle, or shares nodes");
                }
                let key = memory.load_u64(at + KEY);
                if self.bucket(key) != bucket {
                    return fault(at, format!("key {key:#x} is in the wrong chain"));
                }
                self.spec.check_item(memory, at + LINE, key)?;
                link = at + NEXT;
                at = memory.load_u64(link);
            }
        }
        match found == count {
            true => Ok(()),
            false => fault(COUNT, format!("{found} of {count} items found")),
        }
    }
}
