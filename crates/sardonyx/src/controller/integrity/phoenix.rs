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

use super::asit::{Asit, Follows, Leaves};
use super::mac::UNITS;
use super::macs::{CACHE, MECHANISMS, VERIFY};
use super::osiris::STOP_LOSS;
use super::sgx::LIMITS;
use super::tree::REGISTER_BYTES;
use crate::controller::layers::{About, File, Integrity, Refuses};
use crate::controller::metadata_cache::SETS;
use crate::settings::AnyKey;

const KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS, &STOP_LOSS];

/// What this file has.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            name: "phoenix",
            keys: KEYS,
            units: UNITS,
            figures: &[super::mac::FIGURES],
            cut: "a line is atomic with its MAC, which says its version within a few; a table names the nodes to restore",
            tries: &[MECHANISMS],
            limits: LIMITS,
        },
        build: |settings, layout| {
            let leaves = Leaves::Tried(settings.get(&STOP_LOSS));
            Some(Box::new(Asit::new(leaves, settings, layout)))
        },
        promises: Refuses::ALL,
        registers: |_| REGISTER_BYTES,
        // Whatever the stride, a MAC says the version.
        power_fail: Some(|layout| Box::new(Follows::from_layout(Leaves::Tried(1), layout))),
    }],
    designs: &[],
};
