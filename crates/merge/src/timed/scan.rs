//! The thread's way over the pages. Merging happens at once when it comes to a page; its reads are then repeated in
//! time, piece by piece.

use std::ops::Range;

use super::frames::Frames;
use super::live::{Live, Touch};
use super::thread::{Costs, Filling, Piece};
use crate::ksm::{Ksm, Maps, PageSearch};
use crate::{Page, PageFrame};
use sardonyx::machine::PAGE_LINES;

/// A merging algorithm on live pages, whichever unit compares.
pub trait Merging<'i>: Send {
    /// Scans a page. Returns whether it counts among `pages_to_scan`.
    fn step(&mut self, page: Page) -> bool;
    fn begin_pass(&mut self);
    /// Gives a page a frame of its own with the same bytes, because a processor is about to write it.
    fn unshare(&mut self, page: Page);
    /// The frame behind a page; `None` if it maps the zero page.
    fn frame(&self, page: Page) -> Option<PageFrame>;
    fn live(&mut self) -> &mut Live<'i>;
    fn calls(&self) -> u64;
}

impl<'i, S: PageSearch + Send> Merging<'i> for Ksm<Live<'i>, S> {
    fn step(&mut self, page: Page) -> bool {
        let before = Ksm::counters(self).pages_scanned;
        Ksm::step(self, page);
        Ksm::counters(self).pages_scanned > before
    }

    fn begin_pass(&mut self) {
        Ksm::begin_pass(self);
    }

    fn unshare(&mut self, page: Page) {
        match (self.maps(page), Ksm::frame(self, page)) {
            (Maps::Merged, Some(frame)) => self.contents.copy(page, frame),
            (Maps::Zero, _) => self.contents.copy_zero(page),
            other => unreachable!("page {page} is {other:?}"),
        }
        self.write(page);
    }

    fn frame(&self, page: Page) -> Option<PageFrame> {
        Ksm::frame(self, page)
    }

    fn live(&mut self) -> &mut Live<'i> {
        &mut self.contents
    }

    fn calls(&self) -> u64 {
        self.search.work().map_or(0, |work| work.calls)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Scanned {
    pub pages: u64,
    pub comparisons: [u64; 2],
    pub merges: u64,
    /// The frame into which each page was merged, in order.
    pub order: Vec<(Page, u64)>,
}

pub struct Scan<'i> {
    pub merging: Box<dyn Merging<'i> + 'i>,
    pub done: Scanned,
    cursor: Page,
    /// The number of calls of a module's functions that were given to a core.
    calls: u64,
}

impl<'i> Scan<'i> {
    /// A scan from the page `cursor` on; pages that are merged already share the frame of the first.
    pub fn new(
        mut merging: Box<dyn Merging<'i> + 'i>,
        cursor: Page,
        frames: &mut Frames,
    ) -> Scan<'i> {
        for page in 0..frames.pages() {
            match merging.frame(page) {
                Some(PageFrame::Own(_)) => {}
                Some(PageFrame::Merged(frozen)) => {
                    frames.share(page, Some(frozen));
                }
                None => {
                    frames.share(page, None);
                }
            }
        }
        merging.live().log = Some(Vec::new());
        Scan {
            calls: merging.calls(),
            merging,
            done: Scanned::default(),
            cursor,
        }
    }

    /// Scans the next page at once, and returns the work that it takes in time.
    pub fn next_page(&mut self, frames: &mut Frames, costs: &Costs) -> Vec<Piece> {
        let pages = frames.pages();
        let mut page = self.cursor;
        for _ in 0..pages {
            page = self.cursor;
            if page == 0 {
                self.merging.begin_pass();
            }
            self.cursor = (page + 1) % pages;
            if self.merging.step(page) {
                break;
            }
        }
        self.done.pages += 1;
        let log = self.merging.live().log.as_mut().expect("it is kept");
        let events = std::mem::take(log);
        let script = self.script(page, &events, frames, costs);
        let log = self.merging.live().log.as_mut().expect("it is kept");
        *log = events;
        log.clear();
        script
    }

    /// The work on a page, piece by piece; merged pages share its frame from now on.
    fn script(
        &mut self,
        page: Page,
        events: &[Touch],
        frames: &mut Frames,
        costs: &Costs,
    ) -> Vec<Piece> {
        let mut script = vec![Piece::Node {
            line: frames.node(PageFrame::Own(page)),
            instructions: costs.visit,
        }];
        for event in events {
            match *event {
                Touch::Compare(a, b, lines) | Touch::Final(a, b, lines) => {
                    self.compared(lines);
                    script.push(Piece::Node {
                        line: frames.node(b),
                        instructions: costs.node,
                    });
                    let node = frames.node(b);
                    let (a, b) = (frames.place(a, page), frames.place(b, page));
                    script.push(match costs.offloads {
                        true => offloaded(Some(((a, b), node, lines)), 0..0),
                        false => Piece::Compare { a, b, lines },
                    });
                }
                Touch::Hash(page) => {
                    let (frame, lines) = (frames.own(page), costs.hashed_lines);
                    let first = frame * PAGE_LINES;
                    script.push(match costs.offloads {
                        true => offloaded(None, first..first + u64::from(lines)),
                        false => Piece::Hash { frame, lines },
                    });
                }
                Touch::Merged(page, frozen) => {
                    let frame = frames.share(page, Some(frozen));
                    self.done.order.push((page, frame));
                    self.done.merges += 1;
                    script.push(Piece::Compute(costs.merge));
                }
                Touch::Zeroed(page) => {
                    frames.share(page, None);
                    self.done.merges += 1;
                    script.push(Piece::Compute(costs.merge));
                }
                Touch::Hardware(calls) => {
                    script.push(Piece::Table {
                        calls: (calls - self.calls) as u32,
                        filling: Filling::default(),
                    });
                    self.calls = calls;
                }
                Touch::Pair(a, b, lines) => {
                    self.compared(lines);
                    let pair = (frames.place(a, page), frames.place(b, page));
                    if let Some(Piece::Table { filling, .. }) = script.last_mut() {
                        filling.pairs.push((pair, frames.node(b), lines));
                    }
                }
                Touch::KeyLine(frame, line) => {
                    let place = frames.place(frame, page);
                    if let Some(Piece::Table { filling, .. }) = script.last_mut() {
                        filling.keys.push(place * PAGE_LINES + u64::from(line));
                    }
                }
            }
        }
        script
    }

    fn compared(&mut self, lines: u8) {
        self.done.comparisons[0] += 1;
        self.done.comparisons[1] += u64::from(lines);
    }
}

/// A comparison, or a checksum over these lines, that a module makes for the thread.
fn offloaded(pair: Option<((u64, u64), u64, u8)>, hashed: Range<u64>) -> Piece {
    let filling = Filling {
        pairs: pair.into_iter().collect(),
        keys: hashed.collect(),
    };
    Piece::Table { calls: 1, filling }
}
