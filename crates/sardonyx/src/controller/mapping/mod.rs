//! The layers that say where a logical line lies, and which lines share a place.
//! Source: ESD (HPCA 2023) and the designs that it is compared with; DeWrite (MICRO 2018).
//! Left out: keeping the bytes secret, which is the layer below's.

pub mod amt;
/// The worked example of `docs/simulator/add-a-design.md`, in tests alone.
pub mod dedup_fold;
pub mod efit;
pub mod figures;
pub mod full_dedup;
pub mod index;
pub mod places;
pub mod references;
pub mod tables;

use super::layers::{Mapping, files};
use crate::mechanisms::Mechanism;

/// What every mapping does that lets lines share places.
const SHARING: [Mechanism; 8] = [
    Mechanism::Duplicate,
    Mechanism::Collision,
    Mechanism::Freed,
    Mechanism::Reused,
    Mechanism::FullMedium,
    Mechanism::EndedFull,
    Mechanism::MetadataEviction,
    Mechanism::MetadataWriteBack,
];

files! { Mapping: identity esd dedup_sha1 dewrite zero_lines }
