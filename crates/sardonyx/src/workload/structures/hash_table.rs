//! A persistent hash table with chains; a transaction inserts a random key. Invariant: each item
//! is in the chain of its key's bucket, and all items are in chains.

use std::ops::Range;

use super::{LINE, OPERATION, Parts, STEP, fault, words};
use crate::workload::random::{Random, check_item, item, mix};
use crate::workload::{Fault, Memory, MemoryExt, Program, ProgramSpec, Recovered, Transaction};

/// Offsets in the root line: items in the table, and the first free byte of the heap.
const COUNT: u64 = 0;
const FREE: u64 = 8;
/// Offsets in a node, whose item follows its header line.
const KEY: u64 = 0;
const NEXT: u64 = 8;

/// The table: buckets (addresses of nodes, 0 for none), then nodes.
pub struct HashTable {
    spec: ProgramSpec,
    parts: Parts,
    buckets: u64,
    filled: u64,
}

impl HashTable {
    pub fn new(spec: &ProgramSpec) -> HashTable {
        let node = LINE + spec.item_bytes;
        let filled = (spec.footprint / (node + 8)).max(1); // a bucket a node
        let buckets = filled.next_power_of_two();
        let heap = buckets * 8 + (filled + spec.transactions) * node;
        HashTable {
            spec: spec.clone(),
            parts: Parts::new(spec, heap + LINE),
            buckets,
            filled,
        }
    }

    fn bucket(&self, key: u64) -> u64 {
        self.parts.heap + mix(key) % self.buckets * 8
    }

    fn nodes(&self) -> u64 {
        (self.parts.heap + self.buckets * 8).next_multiple_of(LINE)
    }

    fn node_bytes(&self) -> u64 {
        LINE + self.spec.item_bytes
    }

    fn key(&self, number: u64) -> u64 {
        Random::new(self.spec.seed, number).draw()
    }

    fn insert(&self, memory: &mut dyn Memory, key: u64) {
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
        let node = self.parts.root_u64(memory, FREE);
        let mut bytes = vec![0; self.spec.item_bytes as usize];
        item(key, &mut bytes);
        memory.store(node + LINE, &bytes);
        memory.store_u64(node + KEY, key);
        memory.store_u64(node + NEXT, first);
        memory.store_u64(bucket, node);
        let count = self.parts.root_u64(memory, COUNT);
        self.parts.set_root_u64(memory, COUNT, count + 1);
        self.parts
            .set_root_u64(memory, FREE, node + self.node_bytes());
    }
}

impl Program for HashTable {
    fn region_bytes(&self) -> u64 {
        self.parts.end
    }

    fn log_bytes(&self) -> Range<u64> {
        self.parts.log.bytes()
    }

    fn setup(&mut self, memory: &mut dyn Memory) {
        self.parts.set_root_u64(memory, FREE, self.nodes());
        for number in 0..self.filled {
            self.insert(memory, self.key(u64::MAX - number));
        }
    }

    fn transaction(&mut self, number: u64, memory: &mut dyn Memory) {
        let key = self.key(number);
        let mut tx = Transaction::begin(memory, self.parts.log, number, self.spec.mutant);
        tx.compute(OPERATION);
        self.insert(&mut tx, key);
        tx.commit();
    }

    fn recover(&self, memory: &mut dyn Memory) -> Result<Recovered, Fault> {
        self.parts.log.recover(memory, self.parts.region())
    }

    fn check(&self, memory: &mut dyn Memory) -> Result<(), Fault> {
        let [count, free] = {
            let mut root = [0; 16];
            memory.load(self.parts.root, &mut root);
            words(&root)
        };
        let most = self.filled + self.spec.transactions;
        if count > most || free != self.nodes() + count * self.node_bytes() {
            let what = format!("{count:#x} items end at {free:#x}");
            return fault(self.parts.root, what);
        }
        let mut found = 0;
        for bucket in 0..self.buckets {
            let bucket = self.parts.heap + bucket * 8;
            let mut at = memory.load_u64(bucket);
            let mut link = bucket;
            while at != 0 {
                if !self.parts.holds(at, self.node_bytes()) || at >= free {
                    return fault(link, format!("{at:#x} is no node's address"));
                }
                found += 1;
                if found > count {
                    return fault(link, "a chain goes in a circle, or shares nodes");
                }
                let key = memory.load_u64(at + KEY);
                if self.bucket(key) != bucket {
                    return fault(at, format!("key {key:#x} is in the wrong chain"));
                }
                if check_item(memory, at + LINE, self.spec.item_bytes)? != key {
                    return fault(at, format!("key {key:#x} has another key's item"));
                }
                link = at + NEXT;
                at = memory.load_u64(link);
            }
        }
        match found == count {
            true => Ok(()),
            false => fault(self.parts.root, format!("{found} of {count} items found")),
        }
    }
}
