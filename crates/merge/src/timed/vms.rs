//! Virtual machines without an image: pages that occur once, pages of zeros, and pages that several machines have, in
//! the shares of PageForge's Fig. 7. Pages of a family begin alike, so that comparing them takes some lines.

use sardonyx_base::random::mix;

use super::settings::{VM_ALIKE, VM_DISTINCT, VM_FAMILIES, VM_UNMERGEABLE, VM_ZERO};
use crate::images::{Data, ImageMachine, PageExtent, Snapshot, mixes};
use crate::{PAGE_BYTES, PageBytes};
use sardonyx::line::LINE_BYTES;
use sardonyx::settings::Settings;

/// The first numbers of contents that occur once, and of the beginnings of families.
const ONCE: u64 = 1 << 40;
const FAMILY: u64 = 1 << 41;

pub fn machines(settings: &Settings, count: u64, pages: u64, seed: u64) -> Vec<ImageMachine> {
    (0..count)
        .map(|number| machine(settings, number, count, pages, seed))
        .collect()
}

fn machine(settings: &Settings, number: u64, count: u64, pages: u64, seed: u64) -> ImageMachine {
    let mut bytes = vec![0; pages as usize * PAGE_BYTES];
    let distinct = (count * pages * settings.get(&VM_DISTINCT) / 1_000).max(1);
    let (once, zero) = (settings.get(&VM_UNMERGEABLE), settings.get(&VM_ZERO));
    for (page, bytes) in (number * pages..).zip(bytes.as_chunks_mut::<PAGE_BYTES>().0) {
        let drawn = mix(seed ^ mix(page));
        let content = match drawn % 1_000 {
            kind if kind < once => ONCE + page,
            kind if kind < once + zero => continue,
            _ => 1 + (drawn >> 32) % distinct,
        };
        fill(settings, content ^ seed << 48, bytes);
    }
    ImageMachine {
        name: format!("vm-{number}"),
        snapshots: vec![Snapshot {
            data: Data::Memory(bytes),
            extents: vec![PageExtent {
                first: 0,
                pages: pages as u32,
                offset: 0,
            }],
            names: Vec::new(),
            missing: 0,
            holes: 0,
        }],
        process: None,
        ended: None,
    }
}

fn fill(settings: &Settings, content: u64, bytes: &mut PageBytes) {
    let family = mix(content) % settings.get(&VM_FAMILIES);
    let alike = (mix(FAMILY + family) % (settings.get(&VM_ALIKE) + 1)) as usize * LINE_BYTES;
    mixes::fill(FAMILY + family, bytes);
    let head: Vec<u8> = bytes[..alike].to_vec();
    mixes::fill(content, bytes);
    bytes[..alike].copy_from_slice(&head);
}
