//! Random mixes: knobs, and the processes that hold, write, lose and share pages.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::holder::{LOSE, REMAP};
use sardonyx_merge::images::mixes;
use sardonyx_merge::{PAGE_BYTES, Page, PageBytes};

#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) pages: Range<Page>,
    /// The process that forks this one, and the pass before which it does.
    pub(super) forked: Option<(usize, usize)>,
    pub(super) exits: Option<usize>,
}

/// A random mix: knobs, the pages of each process, its forks and exits with the pass that they precede, and the writes
/// before each pass.
pub(super) struct RandomMix {
    pub(super) pages: usize,
    pub(super) passes: usize,
    pub(super) processes: Vec<Life>,
    pub(super) sets: Vec<(&'static str, &'static str, String)>,
    pub(super) loses: bool,
    rng: ChaCha8Rng,
    pool: u64,
    fresh: u64,
}

impl RandomMix {
    pub(super) fn new(seed: u64, number: u64) -> RandomMix {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let mut pick = |words: &[&str]| words[rng.random_range(0..words.len())].to_owned();
        let sets = vec![
            ("smart_scan", "ksm.smart_scan", pick(&["0", "1"])),
            ("use_zero_pages", "ksm.use_zero_pages", pick(&["0", "1"])),
            (
                "max_page_sharing",
                "ksm.max_page_sharing",
                pick(&["2", "3", "5", "16", "256"]),
            ),
        ];
        let mut pages = rng.random_range(64..3000);
        let passes = rng.random_range(4..26);
        let mut cuts: Vec<usize> = (0..rng.random_range(0..4))
            .map(|_| rng.random_range(1..pages))
            .collect();
        cuts.extend([0, pages]);
        cuts.sort_unstable();
        cuts.dedup();
        let stays = rng.random_range(1..cuts.len());
        let ranges = (1..).zip(cuts.windows(2));
        let lives = ranges.map(|(number, cut)| {
            let exits = number != stays && rng.random_bool(0.7);
            Life {
                pages: cut[0] as Page..cut[1] as Page,
                forked: None,
                exits: exits.then(|| rng.random_range(2..=passes)),
            }
        });
        let mut processes: Vec<Life> = lives.collect();
        let pool = rng.random_range(1..pages as u64);
        let loses = rng.random_bool(0.6);
        let mut forks: Vec<usize> = match rng.random_bool(0.6) {
            true => (0..rng.random_range(1..4))
                .map(|_| rng.random_range(2..=passes))
                .collect(),
            false => Vec::new(),
        };
        forks.sort_unstable();
        for before in forks {
            // A child may fork too, and a process that exits may fork just before.
            let parent = rng.random_range(0..processes.len());
            let of = &processes[parent];
            let lives = of.exits.is_none_or(|exits| exits >= before)
                && of.forked.is_none_or(|(_, born)| born <= before);
            if lives {
                let first = pages as Page;
                pages += of.pages.len();
                processes.push(Life {
                    pages: first..pages as Page,
                    forked: Some((parent, before)),
                    exits: rng
                        .random_bool(0.5)
                        .then(|| rng.random_range(before..=passes)),
                });
            }
        }
        RandomMix {
            processes,
            pages,
            passes,
            pool,
            fresh: 10_000_000 + number * 1_000_000,
            sets,
            loses,
            rng,
        }
    }

    fn content(&mut self) -> u64 {
        match self.rng.random_range(0..10) {
            0 => 0,
            1..=2 => {
                self.fresh += 1;
                self.fresh
            }
            3..=4 => 1 + self.rng.random_range(0..self.pool.div_ceil(20)),
            _ => 1 + self.rng.random_range(0..self.pool),
        }
    }

    pub(super) fn start(&mut self) -> Vec<PageBytes> {
        let mut pages = vec![[0; PAGE_BYTES]; self.pages];
        for page in &mut pages {
            mixes::fill(self.content(), page);
        }
        pages
    }

    /// Pages that are lost before a pass, with the way; each range within one process.
    pub(super) fn losses(&mut self) -> Vec<(u32, Range<Page>)> {
        if !self.loses || self.rng.random_bool(0.5) {
            return Vec::new();
        }
        let one = |_| {
            let first = self.rng.random_range(0..self.pages) as Page;
            let most = self.pages.div_ceil(12) as Page;
            let count = self.rng.random_range(1..=most);
            let how = [LOSE, REMAP][self.rng.random_range(0..2)];
            let mut processes = self.processes.iter().map(|life| &life.pages);
            let of = processes.find(|pages| pages.contains(&first));
            let of = of.expect("processes have all pages");
            // The first page stays, so that a process always shows a frame.
            let start = first.max(of.start + 1);
            (how, start..(first + count).min(of.end).max(start))
        };
        let lost = (0..3).map(one).filter(|(_, pages)| !pages.is_empty());
        lost.collect()
    }

    /// The writes before a pass: some pages whole, one word of others, others with the bytes that they have.
    pub(super) fn writes(&mut self, now: &[PageBytes]) -> Vec<(Page, PageBytes)> {
        let rate = [0, 0, 1, 4, 30][self.rng.random_range(0..5)];
        let count = self.pages * rate / 100;
        let stretch = self
            .rng
            .random_bool(0.5)
            .then(|| self.rng.random_range(0..self.pages));
        let mut writes = Vec::new();
        for index in 0..count {
            let page = match stretch {
                Some(first) => (first + index) % self.pages,
                None => self.rng.random_range(0..self.pages),
            };
            let mut bytes = now[page];
            match self.rng.random_range(0..3) {
                0 => {} // changes nothing, and breaks a merged mapping all the same
                1 => bytes[self.rng.random_range(0..PAGE_BYTES)] ^= 1,
                _ => mixes::fill(self.content(), &mut bytes),
            }
            writes.push((page as Page, bytes));
        }
        writes
    }
}
