//! Full deduplication by a fingerprint of the tests' own, over the library's index in the medium; in its sound form, which
//! compares contents and makes its tables anew after a cut. A fault is one [`Slip`].

use sardonyx::controller::designs::AnyLayer;
use sardonyx::controller::layers::Mapping;
use sardonyx::controller::mapping::dedup_sha1::{FINGERPRINT_CACHE, MAPPING_CACHE};
use sardonyx::controller::mapping::full_dedup::{Fingerprint, layers};
use sardonyx::controller::mapping::index::{Digest, Index};
use sardonyx::controller::mapping::tables::Tables;
use sardonyx::line::Line;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::Unit;
use sardonyx::settings::{AnyKey, Settings};

use crate::fault::{Layers, slips};

slips! {
    /// What is wrong with the fingerprint.
    Slip { Nothing, FingerprintsCompared, TablesTrusted }
}

/// Bytes of the fingerprint: so few that contents collide.
const BYTES: usize = 2;

struct BySum<const SLIP: usize>;

impl<const SLIP: usize> Fingerprint for BySum<SLIP> {
    const KEYS: &'static [&'static dyn AnyKey] = &[&FINGERPRINT_CACHE, &MAPPING_CACHE];
    const UNIT: Unit = Unit::Crc32;
    const GUESSES: bool = false;

    fn build(settings: &Settings, sound: bool, layout: &mut Layout) -> (BySum<SLIP>, Tables) {
        let sound = sound && Slip::ALL[SLIP] != Slip::TablesTrusted;
        let (cache, buckets) = (&FINGERPRINT_CACHE, layout.data_lines());
        let index = Index::new(BYTES, buckets, false, cache, settings, layout);
        let tables = Tables::new(index, &MAPPING_CACHE, false, sound, settings, layout);
        (BySum, tables)
    }

    fn digest(&self, data: &Line) -> Digest {
        let sum = data
            .iter()
            .fold(0u16, |sum, byte| sum.wrapping_add(u16::from(*byte)));
        Digest::new(&sum.to_le_bytes())
    }

    fn compares(&self) -> bool {
        Slip::ALL[SLIP] != Slip::FingerprintsCompared
    }

    fn bytes_per_line(&self, tables: &Tables) -> f64 {
        tables.bytes_per_line() as f64
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    let [_, sound]: [Mapping; 2] = layers::<BySum<SLIP>>("not used", name);
    AnyLayer::Mapping(Box::leak(Box::new(sound)))
}

/// The mapping with the slip of that number.
pub fn index<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-index"),
    }
}
