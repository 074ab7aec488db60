//! Merges until the savings stay the same, for the timed part to begin with.

use super::live::Live;
use super::queries::QueryDraw;
use super::scan::Merging;
use super::settings::{self as keys, MergePhase};
use crate::images::{Images, View};
use crate::ksm::settings::Knobs;
use crate::ksm::{Keys, Ksm, PageSearch};
use crate::run::{PageCounts, pages_of};
use crate::{Page, PageFrame};
use sardonyx::line::{LINE_BYTES, Line, ZERO_LINE};
use sardonyx::machine::PAGE_LINES;
use sardonyx::settings::Settings;

pub(super) const SETTLED: usize = 10;
/// After this many passes it continues although the savings still change.
const MOST_PASSES: usize = 100;
/// In this many passes pages are written and keys looked at.
const CHURNED: usize = 2;

#[derive(Default)]
pub struct Settled<'i> {
    pub(super) merging: Option<Box<dyn Merging<'i> + 'i>>,
    pub(super) pages: PageCounts,
    pub(super) passes: usize,
    pub(super) keys: Keys,
    pub(super) cursor: Page,
}

pub struct Start<'i, 'g> {
    pub images: &'i Images,
    pub settings: &'g Settings,
    pub seed: u64,
    pub go_on: &'g mut dyn FnMut() -> bool,
}

impl<'i> Start<'i, '_> {
    /// Merges by KSM's passes with that search until the savings stay the same, then lets some pages be written
    /// between passes, and stops in the middle of one. `None` if it was ended.
    pub fn settle<S: PageSearch + Send + 'i>(self, search: S) -> Option<Settled<'i>> {
        let Start {
            images,
            settings,
            seed,
            go_on,
        } = self;
        let live = Live::new(View::new(images, vec![true; images.machines.len()]));
        let count = images.pages();
        let mut ksm = Ksm::new(live, search, Knobs::from_settings(settings), count);
        for page in 0..count as Page {
            if images.last(page).is_some() {
                ksm.map(page);
            }
        }
        let mut saved = Vec::new();
        let merging = settings.get(&keys::PHASE) == MergePhase::Merging;
        while saved.len() < if merging { 1 } else { MOST_PASSES } {
            if !ksm.pass(&mut |_| go_on()) {
                return None;
            }
            let counters = ksm.counters();
            saved.push(counters.pages_sharing + counters.ksm_zero_pages);
            let last = saved.len() - 1;
            // The first pass only remembers checksums, so its savings do not count.
            if saved[1.min(last)..]
                .iter()
                .rev()
                .take_while(|some| **some == saved[last])
                .count()
                > SETTLED
            {
                break;
            }
        }
        let frame = |page| match ksm.frame(page) {
            Some(PageFrame::Merged(content)) => Some(content),
            _ => None,
        };
        let maps = |page| ksm.maps(page);
        let pages = pages_of(count, images.zero, maps, frame, ksm.merged_frames());
        let before = ksm.keys;
        let mut draw = QueryDraw::new(seed, 4);
        for _ in 0..if merging { 0 } else { CHURNED } {
            churn(&mut ksm, settings, &mut draw);
            if !ksm.pass(&mut |_| go_on()) {
                return None;
            }
        }
        let now = ksm.keys;
        let keys = Keys {
            matches: now.matches - before.matches,
            mismatches: now.mismatches - before.mismatches,
            false_matches: now.false_matches - before.false_matches,
        };
        let pages = if merging {
            PageCounts::default()
        } else {
            pages
        };
        churn(&mut ksm, settings, &mut draw);
        let cursor = count as Page / 2;
        ksm.begin_pass();
        for page in 0..cursor {
            ksm.step(page);
        }
        Some(Settled {
            merging: Some(Box::new(ksm)),
            pages,
            passes: saved.len(),
            keys,
            cursor,
        })
    }
}

fn churn<S: PageSearch>(ksm: &mut Ksm<Live<'_>, S>, settings: &Settings, draw: &mut QueryDraw) {
    let lines = settings.get(&keys::CHURN_LINES);
    for page in 0.. {
        let drawn = draw.below(1_000) < settings.get(&keys::CHURN);
        match ksm.contents.exists(page) {
            None => break,
            Some(true) if drawn && ksm.frame(page) == Some(PageFrame::Own(page)) => {}
            Some(_) => continue,
        }
        for _ in 0..lines {
            let mut bytes: Line = ZERO_LINE;
            for word in bytes.as_chunks_mut::<8>().0 {
                *word = draw.next().to_le_bytes();
            }
            let at = draw.below(PAGE_LINES) as usize * LINE_BYTES;
            ksm.contents.store(page, at, &bytes);
        }
    }
}
