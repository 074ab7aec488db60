//! The operating system's side of PageForge: KSM's trees searched by the Scan Table (3.4), and the two
//! other ways to use it (4.2): a set of pages, and a graph.

use super::scan_table::{Info, OTHER_PAGES, SECTIONS, ScanTable};
use crate::ksm::{Search, Visit, Walk, Walkable, Work};
use crate::rb::{NIL, Side};
use crate::{Contents, Frame, Page};
use sardonyx::ecc::Matrix;
use sardonyx::settings::{Key, Row, Settings, keys};

keys! {
    ECC_MATRIX: Matrix = word("pageforge.ecc_matrix", "truncated-hamming"),
        Source("PageForge 6.2"), "code whose check bits make the keys";
    ECC_WORD: usize = int("pageforge.ecc_word", (0, 7), 0),
        Assumed("the paper takes 8 bits of a line's 64 check bits and does not say of which word"),
        "word of a line whose check byte is the minikey"
        in Between("0", "7", "any word of the line");
    ECC_OFFSET_0: u8 = int("pageforge.ecc_offset_0", (0, 15), 0),
        Assumed("the paper gives no offsets; they are to be profiled"), "line of the page's first kilobyte that is in the key"
        in Between("0", "15", "any line of the kilobyte");
    ECC_OFFSET_1: u8 = int("pageforge.ecc_offset_1", (0, 15), 0),
        Assumed("as ecc_offset_0"), "line of the second kilobyte"
        in Between("0", "15", "any line of the kilobyte");
    ECC_OFFSET_2: u8 = int("pageforge.ecc_offset_2", (0, 15), 0),
        Assumed("as ecc_offset_0"), "line of the third kilobyte"
        in Between("0", "15", "any line of the kilobyte");
    ECC_OFFSET_3: u8 = int("pageforge.ecc_offset_3", (0, 15), 0),
        Assumed("as ecc_offset_0"), "line of the fourth kilobyte"
        in Between("0", "15", "any line of the kilobyte");
    CALL_NS: u64 = int("pageforge.call_ns", (0, 1_000_000), 20),
        Assumed("no source: an uncached access to the memory controller"),
        "processor time of a call of the five functions"
        in Between("5", "80", "a quarter, and four times as long");
}

pub fn rows() -> Vec<&'static Row> {
    vec![
        &ECC_MATRIX.row,
        &ECC_WORD.row,
        &ECC_OFFSET_0.row,
        &ECC_OFFSET_1.row,
        &ECC_OFFSET_2.row,
        &ECC_OFFSET_3.row,
        &CALL_NS.row,
    ]
}

/// Pointers from here on are no entries. The system gives each missing child its own, so that `Ptr` says
/// where the search left the table (*assumed*: the paper says only "an invalid entry").
const OUTSIDE: u8 = 32;

fn outside(entry: usize, side: Side) -> u8 {
    OUTSIDE + 2 * entry as u8 + side as u8
}

fn left_at(ptr: u8) -> (usize, Side) {
    let side = if ptr.is_multiple_of(2) {
        Side::Left
    } else {
        Side::Right
    };
    (usize::from(ptr - OUTSIDE) / 2, side)
}

/// Search by the Scan Table.
#[derive(Clone, Debug)]
pub struct PageForge {
    pub table: ScanTable,
    loaded: Option<Frame>,
    call_ns: u64,
}

/// A part of a tree in the table.
struct Batch {
    entries: [(u32, u32); OTHER_PAGES],
    count: usize,
    /// The child that is lost, by the pointer that leads there.
    lost: Option<u8>,
    last: bool,
}

impl PageForge {
    pub fn new(settings: &Settings) -> PageForge {
        let mut table = ScanTable::new(settings.get(&ECC_MATRIX), settings.get(&ECC_WORD));
        let offset = |key: &Key<u8>| settings.get(key);
        let offsets: [u8; SECTIONS] = [
            offset(&ECC_OFFSET_0),
            offset(&ECC_OFFSET_1),
            offset(&ECC_OFFSET_2),
            offset(&ECC_OFFSET_3),
        ];
        table.update_ecc_offset(offsets);
        PageForge {
            table,
            loaded: None,
            call_ns: settings.get(&CALL_NS),
        }
    }

    /// Lets the hardware compare `frame` with what is in the table, from the first entry on.
    fn compare(
        &mut self,
        contents: &mut impl Contents,
        frame: Frame,
        last: bool,
        first: u8,
    ) -> Info {
        if self.loaded == Some(frame) {
            self.table.update_pfe(last, first);
        } else {
            self.table.insert_pfe(frame, last, first);
            self.loaded = Some(frame);
        }
        self.table.run(contents);
        let info = self.table.get_pfe_info();
        debug_assert!(info.scanned);
        info
    }

    /// Fills the table with `from` and what hangs below it, in breadth-first order. `None` if the tree
    /// has changed meanwhile.
    fn fill(&mut self, tree: &mut impl Walkable, from: u32) -> Option<Batch> {
        let mut batch = Batch {
            entries: [(NIL, NIL); OTHER_PAGES],
            count: 0,
            lost: None,
            last: true,
        };
        let mut frames = [Frame::Own(0); OTHER_PAGES];
        // Where each entry leads, and the nodes that wait for one: whose child they are, on which side.
        let mut ways = [[0; 2]; OTHER_PAGES];
        let mut waiting = [(NIL, 0, Side::Left); 2 * OTHER_PAGES + 1];
        waiting[0].0 = from;
        let (mut next, mut end) = (0, 1);
        while next < end {
            if batch.count == OTHER_PAGES {
                batch.last = false;
                break;
            }
            let (at, above, side) = waiting[next];
            next += 1;
            match tree.visit(at) {
                Visit::Again => return None,
                Visit::Lost if next == 1 => return Some(batch),
                Visit::Lost => batch.lost = batch.lost.or(Some(outside(above, side))),
                Visit::Here {
                    node,
                    holder,
                    frame,
                } => {
                    let entry = batch.count;
                    if next > 1 {
                        ways[above][side as usize] = entry as u8;
                    }
                    batch.entries[entry] = (node, holder);
                    frames[entry] = frame;
                    ways[entry] = [outside(entry, Side::Left), outside(entry, Side::Right)];
                    for side in [Side::Left, Side::Right] {
                        let child = tree.child(node, side);
                        if child != NIL {
                            waiting[end] = (child, entry, side);
                            end += 1;
                        }
                    }
                    batch.count += 1;
                }
            }
        }
        self.table.clear();
        let filled = frames.into_iter().zip(ways).take(batch.count);
        for (index, (frame, [less, more])) in filled.enumerate() {
            self.table.insert_ppn(index, frame, less, more);
        }
        Some(batch)
    }

    /// Which of `pages` has the candidate's bytes, and the candidate's key. Any number of pages, in order:
    /// both pointers of an entry lead to the next (4.2).
    pub fn find_in_set(
        &mut self,
        contents: &mut impl Contents,
        candidate: Frame,
        pages: &[Frame],
    ) -> (Option<usize>, u32) {
        self.loaded = None;
        let batches = pages.chunks(OTHER_PAGES);
        let count = batches.len();
        for (number, batch) in batches.enumerate() {
            self.table.clear();
            for (index, frame) in batch.iter().enumerate() {
                let next = if index + 1 < batch.len() {
                    index as u8 + 1
                } else {
                    OUTSIDE
                };
                self.table.insert_ppn(index, *frame, next, next);
            }
            let info = self.compare(contents, candidate, number + 1 == count, 0);
            if info.duplicate {
                let found = number * OTHER_PAGES + usize::from(info.ptr);
                return (Some(found), info.key.expect("D forces the key"));
            }
        }
        (None, self.forced_key(contents, candidate))
    }

    /// Which node of a graph has the candidate's bytes, going from node 0 by the comparisons' results, and
    /// the candidate's key (4.2). `Less` and `More` lead to later nodes only, so that the way ends.
    ///
    /// # Panics
    /// If a node leads to itself or to an earlier one.
    pub fn find_in_graph(
        &mut self,
        contents: &mut impl Contents,
        candidate: Frame,
        graph: &[GraphNode],
    ) -> (Option<usize>, u32) {
        self.loaded = None;
        let mut next = (!graph.is_empty()).then_some(0);
        while let Some(from) = next {
            let inside = &graph[from..graph.len().min(from + OTHER_PAGES)];
            self.table.clear();
            for (index, node) in inside.iter().enumerate() {
                let way = |to: Option<usize>, side| match to {
                    Some(to) => {
                        assert!(to > from + index, "node {} leads to {to}", from + index);
                        if to - from < inside.len() {
                            (to - from) as u8
                        } else {
                            outside(index, side)
                        }
                    }
                    None => outside(index, side),
                };
                let (less, more) = (way(node.less, Side::Left), way(node.more, Side::Right));
                self.table.insert_ppn(index, node.frame, less, more);
            }
            let last = from + inside.len() == graph.len();
            let info = self.compare(contents, candidate, last, 0);
            if info.duplicate {
                let key = info.key.expect("D forces the key");
                return (Some(from + usize::from(info.ptr)), key);
            }
            let (entry, side) = left_at(info.ptr);
            let node = &inside[entry];
            next = if side == Side::Left {
                node.less
            } else {
                node.more
            };
        }
        (None, self.forced_key(contents, candidate))
    }

    /// The candidate's key; if it is not ready, the hardware is made to complete it.
    fn forced_key(&mut self, contents: &mut impl Contents, candidate: Frame) -> u32 {
        let ready = (self.loaded == Some(candidate)).then(|| self.table.get_pfe_info().key);
        ready.flatten().unwrap_or_else(|| {
            let info = self.compare(contents, candidate, true, OUTSIDE);
            info.key.expect("L forces the key")
        })
    }
}

/// A page in a graph of pages.
#[derive(Clone, Copy, Debug)]
pub struct GraphNode {
    pub frame: Frame,
    /// The place where the search continues if the candidate is smaller.
    pub less: Option<usize>,
    /// The place where the search continues if the candidate is larger.
    pub more: Option<usize>,
}

impl Search for PageForge {
    fn walk(
        &mut self,
        contents: &mut impl Contents,
        tree: &mut impl Walkable,
        frame: Frame,
    ) -> Walk {
        'again: loop {
            let mut at = tree.root();
            let mut place = None;
            while at != NIL {
                let Some(batch) = self.fill(tree, at) else {
                    continue 'again;
                };
                if batch.count == 0 {
                    return Walk::Lost;
                }
                let info = self.compare(contents, frame, batch.last, 0);
                if info.duplicate {
                    let (node, holder) = batch.entries[usize::from(info.ptr)];
                    return Walk::Match { node, holder };
                }
                if batch.lost == Some(info.ptr) {
                    return Walk::Lost;
                }
                let (entry, side) = left_at(info.ptr);
                let node = batch.entries[entry].0;
                place = Some((node, side));
                at = tree.child(node, side);
            }
            return Walk::End(place);
        }
    }

    fn key(&mut self, contents: &mut impl Contents, page: Page) -> u32 {
        self.forced_key(contents, Frame::Own(page))
    }

    fn begin(&mut self, _: Page) {
        self.loaded = None;
    }

    fn cpu_ns(&self, _: u64, _: u64) -> u64 {
        self.table.work.calls * self.call_ns
    }

    fn work(&self) -> Option<Work> {
        Some(self.table.work)
    }

    fn zero_key(&self) -> Option<u32> {
        Some(0) // the codes are linear
    }
}
