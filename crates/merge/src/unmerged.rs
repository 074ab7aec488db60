//! Reasons why pages have not merged: they changed between snapshots, an equal page existed but did not merge, or no
//! page is equal; and for those that differ from another in a few bytes, their number, offsets and region.

use std::collections::BTreeMap;

use serde::Serialize;
use twox_hash::XxHash64;

use super::images::Images;
use super::ksm::Maps;
use super::run::Runner;
use super::{PAGE_BYTES, Page, PageBytes};

/// Two pages are nearly identical if at most this many bytes differ.
pub const NEAR: usize = 64;
/// Nearly identical pages are looked for among those that share a block of this many bytes.
const BLOCK: usize = 256;
const BLOCKS: usize = PAGE_BYTES / BLOCK;
/// A page is compared with this many other sharers of a block.
const NEIGHBOURS: usize = 3;
const REGIONS: usize = 12;
const EXAMPLES: usize = 8;

#[derive(Clone, Debug, Default, Serialize)]
pub struct WhyNot {
    pub pages: u64,
    pub merged: u64,
    /// Changed between snapshots, so that the checksum held them back or the equal page was gone.
    pub changed: u64,
    /// An equal page is there: the limit of sharing, skipping or too few passes kept them apart.
    pub equal_unmerged: u64,
    /// No page is equal, but one differs in at most 64 bytes.
    pub nearly_identical: u64,
    pub unique: u64,
    /// No page is equal; whether one is near is not known, since the bytes of processes were not kept.
    pub not_compared: u64,
    /// Pages that images name but do not hold: mapped files in a core, unreadable pages.
    pub not_in_image: u64,
    /// Nearly identical pages by how many bytes differ: up to 1, 4, 16, 64.
    pub near_by_bytes: [u64; 4],
    /// Differing bytes of the nearest pairs by sixteenth of the page.
    pub near_by_offset: [u64; BLOCKS],
    pub regions: Vec<RegionCount>,
    pub examples: Vec<Pair>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RegionCount {
    /// The machine and what lies there, machines taken together if the name is a file's.
    pub region: String,
    pub unmerged: u64,
    pub near: u64,
    pub changed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    pub a: String,
    pub b: String,
    pub bytes: u32,
    pub first: u32,
}

#[derive(Clone, Copy)]
struct Near {
    content: u32,
    bytes: u32,
}

/// The offsets at which two pages differ, if there are at most [`NEAR`].
fn differences(a: &PageBytes, b: &PageBytes) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    for (index, (x, y)) in words.enumerate() {
        if x == y {
            continue;
        }
        let bytes = x.iter().zip(y).enumerate().filter(|(_, (x, y))| x != y);
        found.extend(bytes.map(|(byte, _)| (index * 8 + byte) as u32));
        if found.len() > NEAR {
            return None;
        }
    }
    Some(found)
}

/// The nearest other content found for each content of `alone`.
fn nearest(images: &Images, alone: &[u32], all: &[u32]) -> BTreeMap<u32, Near> {
    let is_alone = |content: &u32| alone.binary_search(content).is_ok();
    let mut found: BTreeMap<u32, Near> = BTreeMap::new();
    for block in 0..BLOCKS {
        let range = block * BLOCK..(block + 1) * BLOCK;
        let mut hashed: Vec<(u64, u32)> = Vec::with_capacity(all.len());
        for content in all {
            let bytes = &images.bytes(*content)[range.clone()];
            if bytes.iter().any(|byte| *byte != bytes[0]) {
                hashed.push((XxHash64::oneshot(0, bytes), *content));
            }
        }
        hashed.sort_unstable();
        for (index, (hash, a)) in hashed.iter().enumerate() {
            let sharers = hashed[index + 1..].iter().take(NEIGHBOURS);
            for (_, b) in sharers.take_while(|(other, _)| other == hash) {
                if !is_alone(a) && !is_alone(b) {
                    continue;
                }
                let Some(bytes) = differences(images.bytes(*a), images.bytes(*b)) else {
                    continue;
                };
                let bytes = bytes.len() as u32;
                for (of, content) in [(*a, *b), (*b, *a)] {
                    let near = Near { content, bytes };
                    let best = found.entry(of).or_insert(near);
                    if bytes < best.bytes {
                        *best = near;
                    }
                }
            }
        }
    }
    found.retain(|content, _| is_alone(content));
    found
}

impl WhyNot {
    /// Counts a page as nearly identical to the content `near`; `one` has a page of each content.
    fn count_near(
        &mut self,
        images: &Images,
        (page, content): (Page, u32),
        near: Near,
        one: &[Page],
    ) {
        self.nearly_identical += 1;
        let differing = differences(images.bytes(content), images.bytes(near.content));
        let differing = differing.expect("they are near");
        let class = [1, 4, 16, NEAR]
            .iter()
            .position(|most| differing.len() <= *most);
        self.near_by_bytes[class.expect("at most 64")] += 1;
        for offset in &differing {
            self.near_by_offset[*offset as usize / BLOCK] += 1;
        }
        if self.examples.len() < EXAMPLES {
            let place = |page: Page| {
                let machine = images.machine_of(page);
                let address = machine.space.address_of(page) * PAGE_BYTES as u64;
                format!("{} {address:#x}", machine.name)
            };
            self.examples.push(Pair {
                a: place(page),
                b: place(one[near.content as usize]),
                bytes: near.bytes,
                first: differing[0],
            });
        }
    }
}

/// Finds the reasons after a run. Nearly identical pages are found by equal blocks of 256 bytes, so a page whose
/// differences touch all blocks is not found.
pub fn why_not(images: &Images, run: &dyn Runner) -> WhyNot {
    let mut why = WhyNot::default();
    let present: Vec<(Page, u32)> = (0..images.pages() as Page)
        .filter_map(|page| Some((page, images.last(page)?)))
        .collect();
    let mut holders = vec![0u32; images.contents()];
    let mut one = vec![0; images.contents()];
    for (page, content) in &present {
        holders[*content as usize] += 1;
        one[*content as usize] = *page;
    }
    let unmerged = |page: Page| run.maps(page) == Maps::Own;
    let alone = present.iter().filter(|(page, content)| {
        unmerged(*page) && holders[*content as usize] == 1 && images.changes_of(*page) == 0
    });
    let mut alone: Vec<u32> = alone.map(|(_, content)| *content).collect();
    alone.sort_unstable();
    let mut all: Vec<u32> = present.iter().map(|(_, content)| *content).collect();
    all.sort_unstable();
    all.dedup();
    let near = match images.has_bytes() {
        true => nearest(images, &alone, &all),
        false => BTreeMap::new(),
    };
    let mut regions: BTreeMap<String, RegionCount> = BTreeMap::new();
    for (page, content) in &present {
        why.pages += 1;
        if !unmerged(*page) {
            why.merged += 1;
            continue;
        }
        let machine = images.machine_of(*page);
        let region = machine.space.region(*page).0;
        let region = if region.starts_with("0x") {
            format!("{} {region}", machine.name)
        } else {
            region
        };
        let at = regions.entry(region.clone()).or_insert(RegionCount {
            region,
            unmerged: 0,
            near: 0,
            changed: 0,
        });
        at.unmerged += 1;
        if images.changes_of(*page) > 0 {
            why.changed += 1;
            at.changed += 1;
        } else if holders[*content as usize] > 1 {
            why.equal_unmerged += 1;
        } else if let Some(near) = near.get(content) {
            at.near += 1;
            why.count_near(images, (*page, *content), *near, &one);
        } else if images.has_bytes() {
            why.unique += 1;
        } else {
            why.not_compared += 1;
        }
    }
    why.not_in_image = images.machines.iter().map(|machine| machine.missing).sum();
    let mut regions: Vec<RegionCount> = regions.into_values().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.unmerged));
    regions.truncate(REGIONS);
    why.regions = regions;
    why
}
