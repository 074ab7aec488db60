//! Nodes of a counter tree, as in SGX: eight counters of 56 bits and a MAC. A counter above is the sum of those in the
//! node below it, and the MAC is under it. So an older node makes a sum smaller, and nobody makes a greater one without
//! the key.
//! Left out: when nodes are written ([`super::sgx`], [`super::asit`]).

use super::keyed::SipHasher24;
use super::macs::word;
use super::tree::{ARITY, Node};
use crate::controller::layers::Limit;
use crate::line::Line;

const COUNTER_BYTES: usize = 7;
/// Bits of a counter.
pub const COUNTER_BITS: u64 = 8 * COUNTER_BYTES as u64;
/// The word of a node that has its MAC.
pub const MAC_WORD: u64 = 7;
const MAC_AT: usize = ARITY as usize * COUNTER_BYTES;
/// The key of the MACs of nodes, as public as all keys here.
const KEY: &[u8; 16] = b"sardonyx: counte";

/// The limits of such nodes' counters, whose end no run reaches.
pub const LIMITS: &[Limit] = &[Limit::unreached(
    "versions of a counter tree",
    COUNTER_BITS as u32,
    "it takes 2^56 writes of a line",
)];

/// Nodes of eight counters and a MAC. The counter above a node is the sum of the node's counters.
pub struct Sums;

impl Node for Sums {
    fn of(_level: usize, _index: u64, line: &Line) -> u64 {
        sum(line)
    }

    fn is_right(level: usize, index: u64, line: &Line, above: u64) -> bool {
        sum(line) == above && word(line, MAC_WORD as usize) == mac(level, index, line, above)
    }

    fn is_whole(level: usize, index: u64, line: &Line) -> bool {
        Sums::is_right(level, index, line, sum(line))
    }

    fn kept(node: &Line, number: u64) -> u64 {
        counter(node, number)
    }

    fn put((level, index): (usize, u64), node: &mut Line, number: u64, of: u64) {
        *node = counted(level, index, node, number, of);
    }
}

/// Counter `number` of a node.
pub fn counter(node: &Line, number: u64) -> u64 {
    let mut bytes = [0; 8];
    let from = number as usize * COUNTER_BYTES;
    bytes[..COUNTER_BYTES].copy_from_slice(&node[from..][..COUNTER_BYTES]);
    u64::from_le_bytes(bytes)
}

/// The sum of a node's counters.
pub fn sum(node: &Line) -> u64 {
    (0..ARITY).map(|number| counter(node, number)).sum()
}

/// The MAC of a node under the counter above it; 0 for a node that has counted nothing.
fn mac(level: usize, index: u64, node: &Line, above: u64) -> u64 {
    if above == 0 && node[..MAC_AT].iter().all(|byte| *byte == 0) {
        return 0;
    }
    let mut hasher = SipHasher24::new_with_key(KEY);
    hasher.write(&(level as u64).to_le_bytes());
    hasher.write(&index.to_le_bytes());
    hasher.write(&above.to_le_bytes());
    hasher.write(&node[..MAC_AT]);
    hasher.finish().max(1)
}

/// Sets counter `number` of `node` to `value` and updates the MAC.
pub fn counted(level: usize, index: u64, node: &Line, number: u64, value: u64) -> Line {
    let mut node = *node;
    let from = number as usize * COUNTER_BYTES;
    node[from..][..COUNTER_BYTES].copy_from_slice(&value.to_le_bytes()[..COUNTER_BYTES]);
    let mac = mac(level, index, &node, sum(&node));
    node[MAC_AT..].copy_from_slice(&mac.to_le_bytes());
    node
}
