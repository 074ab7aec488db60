//! A counter tree whose register knows of each write at once, while the nodes between follow as the cache gives lines up.
//! Source: Huang and Hua, "Root crash consistency of SGX-style integrity trees in secure non-volatile memory systems",
//! HPCA 2023 (SCUE); its abstract was read, the two registers are from memory.
//!
//! The node of versions is in one group with the line and its MAC, as in `sgx-sound`. A register adds each write up, so it
//! has the sums of all lowest nodes that memory has; a recovery makes the nodes between anew as sums and compares. A second
//! register, which a cut loses, is the one that nodes are verified under while it runs: a value above follows when the
//! line below leaves the cache.
//! What the paper warns of, a register that follows with the nodes, is `sgx`.
//! The reading here: all counters above are sums in the run too, where the paper makes them so at a write-back.

use super::counter_tree::{LIMITS, Sums};
use super::guarded::{root, tree};
use super::mac::PLACED_KEYS as KEYS;
use super::root::Learns;
use super::sgx::build;
use super::tree::Node;
use super::versions::VersionFormat;
use crate::controller::layers::{File, Integrity};
use crate::line::Line;

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        settles_groups: false,
        ..tree(
            "scue",
            KEYS,
            "each line's version is atomic with it; a register has the sum of all versions, of which nodes are made anew",
            LIMITS,
            (
                |settings, layout| build::<LateSums>(true, settings, layout),
                |settings, layout| {
                    root::<Sums>((VersionFormat::Node, Learns::Versions), settings, layout)
                },
            ),
        )
    }],
    designs: &[],
};

/// Nodes of a counter tree whose sums come above them when they leave the cache.
struct LateSums;

impl Node for LateSums {
    const LAZY: bool = true;

    fn of(level: usize, index: u64, line: &Line) -> u64 {
        Sums::of(level, index, line)
    }

    fn is_right(level: usize, index: u64, line: &Line, above: u64) -> bool {
        Sums::is_right(level, index, line, above)
    }

    fn is_whole(level: usize, index: u64, line: &Line) -> bool {
        Sums::is_whole(level, index, line)
    }

    fn kept(node: &Line, number: u64) -> u64 {
        Sums::kept(node, number)
    }

    fn put(place: (usize, u64), node: &mut Line, number: u64, of: u64) {
        Sums::put(place, node, number, of);
    }
}
