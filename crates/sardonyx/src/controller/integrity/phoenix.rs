//! A counter tree that is written lazily, and a table in memory that names what of it the cache alone has: as `anubis-asit`,
//! but for the versions, which change at each write of a line. Those are found again as in `osiris`: their node is
//! written at every Nth count (stop-loss), and a recovery tries the counts between until the line's MAC is right. So the
//! table is written when a node becomes dirty, and not at each write. Source: Alwadi, Mohaisen and Awad, "Phoenix:
//! Towards Persistently Secure, Recoverable, and NVM Friendly Tree of Counters", arXiv 1911.01922; its abstract was read, all
//! else is from memory.
//!
//! The reading here: counters above are sums, as in `asit`, which the register has. So the table needs no tree of its own,
//! and a line that is older, with its MAC, makes a sum smaller.
//! Left out: ECC as the check of a trial, the paper's tree over its table, its count of updates of nodes above.

use super::asit::{Leaves, build};
use super::counter_tree::{LIMITS, Sums};
use super::guarded::{root, tree};
use super::macs::{CACHE, MAC_PLACE, VERIFY};
use super::osiris::STOP_LOSS;
use super::root::Learns;
use super::versions::VersionFormat;
use crate::controller::layers::{File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::settings::AnyKey;

const KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS, &STOP_LOSS, &MAC_PLACE];

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[tree(
        "phoenix",
        KEYS,
        "a line is atomic with its MAC, which says its version within a few; a table names the nodes to restore",
        LIMITS,
        (
            |settings, layout| build(Leaves::Tried(settings.get(&STOP_LOSS)), settings, layout),
            |settings, layout| {
                root::<Sums>((VersionFormat::Node, Learns::NamedMacs), settings, layout)
            },
        ),
    )],
    designs: &[],
};
