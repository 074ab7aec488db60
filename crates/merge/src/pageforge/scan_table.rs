//! PageForge's hardware: the Scan Table, the comparator and the ECC-based keys (Sections 3.2 and 3.3), behind
//! the five functions of Table 1. The module reads lines; it has no cache and writes nothing.

use crate::ksm::ModuleWork;
use crate::{PageFrame, PageStore};
use sardonyx::ecc::Matrix;

/// Entries for pages to compare with: a root and four levels below it (Table 2).
pub const OTHER_PAGES: usize = 31;
const LINES: usize = 64;
/// A page has this many sections, each with one line in the key.
pub const SECTIONS: usize = 4;
const SECTION_LINES: usize = LINES / SECTIONS;

#[derive(Clone, Copy, Debug)]
struct Other {
    frame: PageFrame,
    less: u8,
    more: u8,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    frame: PageFrame,
    last_refill: bool,
    ptr: u8,
    scanned: bool,
    duplicate: bool,
    minikeys: [Option<u8>; SECTIONS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The key, once it is ready: the H bit.
    pub key: Option<u32>,
    /// The entry that matched if `duplicate`, else the place where the search left the table.
    pub ptr: u8,
    pub scanned: bool,
    /// The D bit: the entry at `ptr` has the same bytes.
    pub duplicate: bool,
}

#[derive(Clone, Debug)]
pub struct ScanTable {
    others: [Option<Other>; OTHER_PAGES],
    candidate: Option<Candidate>,
    /// The line of each section that is part of the key.
    offsets: [u8; SECTIONS],
    matrix: Matrix,
    /// The word of a line whose check byte is the minikey.
    word: usize,
    pub work: ModuleWork,
}

impl ScanTable {
    pub fn new(matrix: Matrix, word: usize) -> ScanTable {
        ScanTable {
            others: [None; OTHER_PAGES],
            candidate: None,
            offsets: [0; SECTIONS],
            matrix,
            word,
            work: ModuleWork::default(),
        }
    }

    /// `insert_PPN`: fills an entry. `less` and `more` are the entries to continue with; an invalid entry ends the
    /// search.
    pub fn insert_ppn(&mut self, index: usize, frame: PageFrame, less: u8, more: u8) {
        self.work.calls += 1;
        self.others[index] = Some(Other { frame, less, more });
    }

    /// Takes an entry's valid bit; part of filling the table.
    pub fn clear(&mut self) {
        self.others = [None; OTHER_PAGES];
    }

    /// `insert_PFE`: sets a new candidate, whose key begins from nothing.
    pub fn insert_pfe(&mut self, frame: PageFrame, last_refill: bool, ptr: u8) {
        self.work.calls += 1;
        self.candidate = Some(Candidate {
            frame,
            last_refill,
            ptr,
            scanned: false,
            duplicate: false,
            minikeys: [None; SECTIONS],
        });
    }

    /// `update_PFE`: keeps the candidate, with other entries.
    ///
    /// # Panics
    /// If there is no candidate.
    pub fn update_pfe(&mut self, last_refill: bool, ptr: u8) {
        self.work.calls += 1;
        let candidate = self.candidate.as_mut().expect("insert_PFE came before");
        candidate.last_refill = last_refill;
        candidate.ptr = ptr;
        (candidate.scanned, candidate.duplicate) = (false, false);
    }

    /// `get_PFE_info`.
    ///
    /// # Panics
    /// If there is no candidate.
    pub fn get_pfe_info(&mut self) -> Info {
        self.work.calls += 1;
        let candidate = self.candidate.as_ref().expect("insert_PFE came before");
        let [a, b, c, d] = candidate.minikeys;
        let key = match (a, b, c, d) {
            (Some(a), Some(b), Some(c), Some(d)) => Some(u32::from_le_bytes([a, b, c, d])),
            _ => None,
        };
        Info {
            key,
            ptr: candidate.ptr,
            scanned: candidate.scanned,
            duplicate: candidate.duplicate,
        }
    }

    /// `update_ECC_offset`: which line of each section is in the key.
    ///
    /// # Panics
    /// If an offset lies outside its section.
    pub fn update_ecc_offset(&mut self, offsets: [u8; SECTIONS]) {
        self.work.calls += 1;
        let inside = |offset: &u8| usize::from(*offset) < SECTION_LINES;
        assert!(offsets.iter().all(inside), "{offsets:?}");
        self.offsets = offsets;
    }

    /// Works until the candidate has been compared with all entries that its way leads to.
    ///
    /// # Panics
    /// If there is no candidate.
    pub fn run(&mut self, memory: &mut impl PageStore) {
        self.work.tables += 1;
        memory.hardware_runs(self.work.calls);
        let mut candidate = self.candidate.expect("insert_PFE came before");
        while let Some(other) = self
            .others
            .get(usize::from(candidate.ptr))
            .copied()
            .flatten()
        {
            self.work.comparisons += 1;
            match self.first_difference(memory, &mut candidate, other.frame) {
                None => {
                    candidate.duplicate = true;
                    break;
                }
                Some(true) => candidate.ptr = other.less,
                Some(false) => candidate.ptr = other.more,
            }
        }
        candidate.scanned = true;
        if candidate.last_refill || candidate.duplicate {
            for section in 0..SECTIONS {
                if candidate.minikeys[section].is_none() {
                    let line = section * SECTION_LINES + usize::from(self.offsets[section]);
                    let bytes = memory.line(candidate.frame, line);
                    candidate.minikeys[section] = Some(self.minikey(&bytes));
                    self.work.key_lines += 1;
                }
            }
        }
        self.candidate = Some(candidate);
    }

    /// Compares line by line, at the same offset of both pages. Returns whether the candidate is smaller; `None` if it
    /// is equal. Minikeys are taken from the candidate's lines that pass by.
    fn first_difference(
        &mut self,
        memory: &mut impl PageStore,
        candidate: &mut Candidate,
        other: PageFrame,
    ) -> Option<bool> {
        for line in 0..LINES {
            let order = memory.line_order(candidate.frame, other, line);
            self.work.compared_lines += 2;
            let section = line / SECTION_LINES;
            let in_key = line % SECTION_LINES == usize::from(self.offsets[section]);
            if in_key && candidate.minikeys[section].is_none() {
                let mine = memory.line(candidate.frame, line);
                candidate.minikeys[section] = Some(self.minikey(&mine));
            }
            if order.is_ne() {
                return Some(order.is_lt());
            }
        }
        None
    }

    /// The check byte of the line's word: "the least-significant 8 bits of the ECC code" (3.3.1).
    fn minikey(&self, line: &sardonyx::line::Line) -> u8 {
        let word = line.as_chunks::<8>().0[self.word];
        self.matrix.encode(u64::from_le_bytes(word))
    }
}
