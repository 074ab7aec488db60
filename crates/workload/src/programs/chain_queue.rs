//! A persistent queue as a chain of nodes, with a chain of free nodes; a transaction puts an item in
//! or takes one out. Invariant: each node is in one chain, and queued items are numbered without a gap.

use super::{Heap, LINE, Program, ProgramFile, fault};
use crate::random::Random;
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "chain-queue",
    line: "puts an item into a linked queue or takes one out",
    least_bytes: super::PAGE,
    build: |spec, heap| {
        let node = LINE + spec.item_bytes;
        let nodes = (spec.footprint / node).max(2);
        let heap = Heap::new(heap, nodes * node);
        (heap, Box::new(ChainQueue { spec, heap, nodes }))
    },
};

/// Offsets in the root line: the first and the last node of the queue, the first free node, the number of the first
/// item, and the number of queued items.
const HEAD: u64 = 0;
const TAIL: u64 = 8;
const FREE: u64 = 16;
const FIRST: u64 = 24;
const COUNT: u64 = 32;
/// Offset in a node, whose item follows its header line. No node has address 0.
const NEXT: u64 = 0;

struct ChainQueue {
    spec: ProgramSpec,
    heap: Heap,
    nodes: u64,
}

impl ChainQueue {
    fn node_bytes(&self) -> u64 {
        LINE + self.spec.item_bytes
    }

    fn put(&self, memory: &mut dyn Bytes) {
        let node = memory.load_u64(FREE);
        let (first, count) = (memory.load_u64(FIRST), memory.load_u64(COUNT));
        memory.depend();
        let free = memory.load_u64(node + NEXT);
        memory.store_u64(FREE, free);
        self.spec.store_item(memory, node + LINE, first + count);
        memory.store_u64(node + NEXT, 0);
        match count {
            0 => memory.store_u64(HEAD, node),
            _ => {
                let last = memory.load_u64(TAIL);
                memory.store_u64(last + NEXT, node);
            }
        }
        memory.store_u64(TAIL, node);
        memory.store_u64(COUNT, count + 1);
    }

    fn take(&self, memory: &mut dyn Bytes) {
        let node = memory.load_u64(HEAD);
        memory.depend();
        let mut bytes = vec![0; self.spec.item_bytes as usize];
        memory.load(node + LINE, &mut bytes);
        let next = memory.load_u64(node + NEXT);
        let free = memory.load_u64(FREE);
        memory.store_u64(node + NEXT, free);
        memory.store_u64(FREE, node);
        memory.store_u64(HEAD, next);
        if next == 0 {
            memory.store_u64(TAIL, 0);
        }
        let (first, count) = (memory.load_u64(FIRST), memory.load_u64(COUNT));
        memory.store_u64(FIRST, first + 1);
        memory.store_u64(COUNT, count - 1);
    }
}

impl Program for ChainQueue {
    /// Fills the queue to half, after every node has been in it once.
    fn setup(&self, memory: &mut dyn Bytes) {
        let mut free = 0;
        for index in (0..self.nodes).rev() {
            let node = self.heap.start + index * self.node_bytes();
            memory.store_u64(node + NEXT, free);
            free = node;
        }
        memory.store_u64(FREE, free);
        (0..self.nodes).for_each(|_| self.put(memory));
        (0..self.nodes / 2).for_each(|_| self.take(memory));
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        let mut random = Random::new(self.spec.seed, number);
        let count = memory.load_u64(COUNT);
        memory.depend();
        let put = match count {
            0 => true,
            full if full == self.nodes => false,
            _ => random.below(2) == 0,
        };
        match put {
            true => self.put(memory),
            false => self.take(memory),
        }
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let (first, count) = (memory.load_u64(FIRST), memory.load_u64(COUNT));
        if count > self.nodes {
            return fault(COUNT, format!("{count:#x} items in {} nodes", self.nodes));
        }
        let mut seen = vec![false; self.nodes as usize];
        let mut number = first;
        let mut last = 0;
        for (chain, length) in [(HEAD, count), (FREE, self.nodes - count)] {
            let mut link = chain;
            for _ in 0..length {
                let node = memory.load_u64(link);
                let within = node.wrapping_sub(self.heap.start);
                let index = (within / self.node_bytes()) as usize;
                if !within.is_multiple_of(self.node_bytes()) || index >= seen.len() {
                    return fault(link, format!("{node:#x} is not a node's address"));
                }
                if std::mem::replace(&mut seen[index], true) {
                    return fault(link, format!("node {index} is there twice"));
                }
                link = node + NEXT;
                if chain == FREE {
                    continue;
                }
                self.spec.check_item(memory, node + LINE, number)?;
                number = number.wrapping_add(1);
                last = node;
            }
            if memory.load_u64(link) != 0 {
                return fault(link, "a chain goes on where it should end");
            }
        }
        match memory.load_u64(TAIL) == last {
            true => Ok(()),
            false => fault(TAIL, format!("the tail is not the last node, {last:#x}")),
        }
    }
}
