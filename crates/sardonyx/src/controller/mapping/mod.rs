//! The layers that say where a logical line lies, and which lines share a place.
//! Source: ESD (HPCA 2023) and the designs that it is compared with; DeWrite (MICRO 2018).
//! Left out: keeping the bytes secret, which is the layer below's.

pub mod amt;
pub mod dedup_sha1;
pub mod dewrite;
pub mod efit;
pub mod esd;
pub mod full_dedup;
pub mod identity;
pub mod index;
pub mod places;
pub mod tables;
