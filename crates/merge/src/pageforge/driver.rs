//! The operating system's side of PageForge: KSM's trees searched by the Scan Table (3.4). Its two other uses, a set
//! and a graph of pages (4.2), are left out, because nothing here needs them.

use super::scan_table::{Info, OTHER_PAGES, SECTIONS, ScanTable};
use crate::keys::row_list;
use crate::ksm::{ModuleWork, PageSearch, TreeWalk, Visit, Walkable};
use crate::rb::{NIL, Side};
use crate::{Page, PageFrame, PageStore};
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
    row_list! {
        ECC_MATRIX ECC_WORD ECC_OFFSET_0 ECC_OFFSET_1 ECC_OFFSET_2 ECC_OFFSET_3 CALL_NS
    }
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

#[derive(Clone, Debug)]
pub struct PageForge {
    pub table: ScanTable,
    loaded: Option<PageFrame>,
    call_ns: u64,
}

struct Batch {
    entries: [(u32, u32); OTHER_PAGES],
    count: usize,
    /// The lost child, by the pointer that leads to it.
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

    /// Has the hardware compare `frame` with the frames in the table, from the first entry on.
    fn compare(
        &mut self,
        contents: &mut impl PageStore,
        frame: PageFrame,
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

    /// Fills the table with `from` and its descendants, in breadth-first order. `None` if the tree has changed
    /// meanwhile.
    fn fill(&mut self, tree: &mut impl Walkable, from: u32) -> Option<Batch> {
        let mut batch = Batch {
            entries: [(NIL, NIL); OTHER_PAGES],
            count: 0,
            lost: None,
            last: true,
        };
        let mut frames = [PageFrame::Own(0); OTHER_PAGES];
        // The entries that each entry leads to, and nodes that wait for an entry, each with its parent and side.
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

    /// The candidate's key; if it is not ready, the hardware completes it.
    fn forced_key(&mut self, contents: &mut impl PageStore, candidate: PageFrame) -> u32 {
        let ready = (self.loaded == Some(candidate)).then(|| self.table.get_pfe_info().key);
        ready.flatten().unwrap_or_else(|| {
            let info = self.compare(contents, candidate, true, OUTSIDE);
            info.key.expect("L forces the key")
        })
    }
}

impl PageSearch for PageForge {
    fn walk(
        &mut self,
        contents: &mut impl PageStore,
        tree: &mut impl Walkable,
        frame: PageFrame,
    ) -> TreeWalk {
        'again: loop {
            let mut at = tree.root();
            let mut place = None;
            while at != NIL {
                let Some(batch) = self.fill(tree, at) else {
                    continue 'again;
                };
                if batch.count == 0 {
                    return TreeWalk::Lost;
                }
                let info = self.compare(contents, frame, batch.last, 0);
                if info.duplicate {
                    let (node, holder) = batch.entries[usize::from(info.ptr)];
                    return TreeWalk::Match { node, holder };
                }
                if batch.lost == Some(info.ptr) {
                    return TreeWalk::Lost;
                }
                let (entry, side) = left_at(info.ptr);
                let node = batch.entries[entry].0;
                place = Some((node, side));
                at = tree.child(node, side);
            }
            return TreeWalk::End(place);
        }
    }

    fn key(&mut self, contents: &mut impl PageStore, page: Page) -> u32 {
        self.forced_key(contents, PageFrame::Own(page))
    }

    fn begin(&mut self, _: Page) {
        self.loaded = None;
    }

    fn cpu_ns(&self, _: u64, _: u64) -> u64 {
        self.table.work.calls * self.call_ns
    }

    fn work(&self) -> Option<ModuleWork> {
        Some(self.table.work)
    }

    fn zero_key(&self) -> Option<u32> {
        Some(0) // the codes are linear
    }
}
