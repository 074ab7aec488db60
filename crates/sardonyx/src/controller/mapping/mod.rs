//! The layers that say where a logical line lies, and which lines share a place.
//! Source: ESD (HPCA 2023) and the designs that it is compared with; DeWrite (MICRO 2018); FSDedup (TOS 2024).
//! Left out: keeping the bytes secret, which is the layer below's.

pub mod amt;
/// The worked example of `docs/simulator/add-a-design.md`. Only tests use it.
pub mod dedup_fold;
pub mod efit;
pub mod figures;
pub mod full_dedup;
pub mod index;
pub mod places;
pub mod references;
pub mod tables;

use self::places::{AWAY, FREED, LEFT, REUSED};
use super::layers::{Mapping, files};
use super::metadata_cache::{METADATA_EVICTION, METADATA_WRITE_BACK};
use crate::mechanisms::{ENDED_FULL, Mechanism, mechanisms};

mechanisms! {
    DUPLICATE = "duplicates", least 30;
    OWN_AGAIN = "duplicates of a line's own content", least 1;
    COLLISION = "collisions", least 30;
    FULL_MEDIUM = "writes to a full medium", least 30, by &[("pages.crash_short", 1)];
}

const SHARING: &[&Mechanism] = &[
    &DUPLICATE,
    &OWN_AGAIN,
    &COLLISION,
    &FREED,
    &REUSED,
    &AWAY,
    &LEFT,
    &FULL_MEDIUM,
    &ENDED_FULL,
    &METADATA_EVICTION,
    &METADATA_WRITE_BACK,
];

files! { Mapping: identity esd fsdedup dedup_sha1 dewrite zero_lines }
