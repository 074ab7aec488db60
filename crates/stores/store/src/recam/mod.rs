//! The fast model of a ReCAM store: the same answers and the same number of active rows at every compare as an array of
//! bit cells (`tests/bits`), at a size where rows cannot be touched one by one.
//!
//! It follows Sec. III-C. Where the paper leaves something open, `Parameters` and docs/store/stores.md say what was
//! settled. Memory grows with distinct blocks and live addresses, not with the array.

mod contents;
mod modules;
mod prefixes;
mod table;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

pub use contents::{BlockContents, InMemory, Regenerated};
use modules::Modules;
use prefixes::{BranchPoint, Prefixes, SharedPrefix, StoredRows};
use table::Table;

use crate::fingerprint::fingerprint;
use crate::ledger::{Action, CostLedger, Log, Purpose};
use crate::parameters::{Compare, First, Overwrite, Parameters, ParametersError};
use crate::store::{Cost, Error, Lba, Outcome, Store, Totals};

const ADDRESS: u32 = 64;
/// `empty` and `block_start` of a row; `kind` and `empty` of the table's.
const FLAGS: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct StoredSlot {
    /// The number of logical blocks with this content; 0 for an empty slot.
    shared_by: u32,
    leaf: u32,
    wear: u32,
}

#[derive(Debug)]
pub struct Recam<C: BlockContents = InMemory> {
    parameters: Parameters,
    contents: C,
    prefixes: Prefixes,
    slots: Vec<Vec<StoredSlot>>,
    /// Slots used before and empty, the topmost first, module by module.
    emptied: Vec<BinaryHeap<Reverse<u32>>>,
    /// Fingerprints of stored blocks by slot, if the array has rows for them.
    prints: FxHashMap<u32, u64>,
    table: Table,
    turn: u32,
    shared: Vec<SharedPrefix>,
    log: Log,
    ledger: CostLedger,
    modules: Modules,
    counts: RecamCounts,
    /// The bits of a row's hash that count; a test narrows them to make hashes collide.
    hash_mask: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RecamCounts {
    writes: u64,
    duplicates: u64,
    reads: u64,
    deletes: u64,
}

/// One operation's view of the rows: the new block's, and those stored.
struct View<'a, C: BlockContents> {
    contents: &'a C,
    block: Option<&'a C::Block>,
    /// The new block's fingerprint and those stored, if there is a row for it.
    print: Option<u64>,
    prints: &'a FxHashMap<u32, u64>,
    row_bytes: usize,
    fingerprint_rows: u32,
    mask: u64,
}

/// The bytes that are compared at once: the first row, and then more.
const STRETCH: usize = 1024;

impl<C: BlockContents> View<'_, C> {
    fn hash_of(&self, bytes: &[u8]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        hasher.finish() & self.mask
    }

    /// The offset of a row of data in its block; `None` for the fingerprint's row.
    fn at(&self, row: u32) -> Option<usize> {
        let index = row.checked_sub(self.fingerprint_rows)?;
        Some(index as usize * self.row_bytes)
    }

    fn row<'b>(&self, scratch: &'b mut Scratch) -> &'b mut [u8] {
        scratch.get(self.row_bytes)
    }
}

/// Room for a row, on the stack unless rows are wide.
struct Scratch {
    small: [u8; STRETCH],
    large: Vec<u8>,
}

impl Scratch {
    fn new() -> Scratch {
        Scratch {
            small: [0; STRETCH],
            large: Vec::new(),
        }
    }

    fn get(&mut self, bytes: usize) -> &mut [u8] {
        if bytes <= STRETCH {
            return &mut self.small[..bytes];
        }
        self.large.resize(bytes, 0);
        &mut self.large
    }
}

impl<C: BlockContents> StoredRows for View<'_, C> {
    fn hash(&mut self, row: u32) -> u64 {
        let Some(at) = self.at(row) else {
            return self.print.expect("a new block's") & self.mask;
        };
        let mut scratch = Scratch::new();
        let bytes = self.row(&mut scratch);
        self.contents
            .new_bytes(self.block.expect("a new block"), at, bytes);
        self.hash_of(bytes)
    }

    fn kept_hash(&mut self, slot: u32, row: u32) -> u64 {
        let Some(at) = self.at(row) else {
            return self.prints[&slot] & self.mask;
        };
        let mut scratch = Scratch::new();
        let bytes = self.row(&mut scratch);
        self.contents.kept_bytes(slot, at, bytes);
        self.hash_of(bytes)
    }

    fn common(&mut self, slot: u32, from: u32, to: u32) -> u32 {
        let (mut row, block) = (from, self.block.expect("a new block"));
        if self.at(row).is_none() {
            if self.print != Some(self.prints[&slot]) {
                return 0;
            }
            row += 1;
        }
        let (mut ours, mut theirs) = (Scratch::new(), Scratch::new());
        let mut rows = 1;
        while row < to {
            let rows_now = rows.min(to - row);
            let bytes = rows_now as usize * self.row_bytes;
            let at = self.at(row).expect("data");
            let (a, b) = (ours.get(bytes), theirs.get(bytes));
            self.contents.new_bytes(block, at, a);
            self.contents.kept_bytes(slot, at, b);
            if a != b {
                let same = a.iter().zip(&*b).take_while(|(a, b)| a == b).count();
                return row + (same / self.row_bytes) as u32 - from;
            }
            row += rows_now;
            rows = (STRETCH / self.row_bytes).max(1) as u32;
        }
        to - from
    }
}

/// A view of the rows for the tree, so that the tree itself may be borrowed separately.
macro_rules! view {
    ($self:ident, $block:expr, $print:expr) => {
        View {
            contents: &$self.contents,
            block: $block,
            print: $print,
            prints: &$self.prints,
            row_bytes: $self.parameters.row_bits as usize / 8,
            fingerprint_rows: u32::from($self.parameters.fingerprint_bits > 0),
            mask: $self.hash_mask,
        }
    };
}

impl<C: BlockContents> Recam<C> {
    /// A formatted store that keeps its bytes in `contents`.
    pub fn new(parameters: Parameters, contents: C) -> Result<Recam<C>, ParametersError> {
        parameters.check()?;
        let modules = parameters.modules as usize;
        Ok(Recam {
            prefixes: Prefixes::new(parameters.block_rows() as u32),
            parameters,
            contents,
            slots: vec![Vec::new(); modules],
            emptied: vec![BinaryHeap::new(); modules],
            prints: FxHashMap::default(),
            table: Table::default(),
            turn: 0,
            shared: Vec::new(),
            log: Log::default(),
            ledger: CostLedger::default(),
            modules: Modules::new(modules),
            counts: RecamCounts::default(),
            hash_mask: u64::MAX,
        })
    }

    /// Hashes of so few bits that they collide, for tests.
    #[must_use]
    pub fn with_narrow_hash(mut self, bits: u32) -> Recam<C> {
        self.hash_mask = (1 << bits) - 1;
        self
    }

    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn ledger(&self) -> &CostLedger {
        &self.ledger
    }

    /// Cycles from the first operation's start to the last one's end; with one module their sum.
    pub fn elapsed_cycles(&self) -> u64 {
        self.modules.elapsed()
    }

    /// Writes of data of every slot that was ever used.
    pub fn wear(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().flatten().map(|slot| slot.wear)
    }

    pub fn slot_wear(&self, slot: u32) -> u32 {
        let (module, within) = self.place_of(slot);
        self.slots[module].get(within).map_or(0, |slot| slot.wear)
    }

    pub fn put(&mut self, lba: Lba, block: &C::Block) -> Result<Outcome, Error> {
        self.log.clear();
        let done = self.put_logged(lba, block);
        let cost = self.book();
        let (duplicate, replaced) = done?;
        self.counts.writes += 1;
        self.counts.duplicates += u64::from(duplicate);
        Ok(Outcome {
            duplicate,
            found: replaced,
            cost,
        })
    }

    fn put_logged(&mut self, lba: Lba, block: &C::Block) -> Result<(bool, bool), Error> {
        let p = self.parameters;
        self.compare_table_for_address();
        let old = self.table.get(lba);
        if old.is_none() && self.table.len() == p.logical_blocks {
            return Err(self.full());
        }
        let print = (p.fingerprint_bits > 0).then(|| {
            let mut bytes = vec![0; p.block_bytes as usize];
            self.contents.new_bytes(block, 0, &mut bytes);
            fingerprint(&bytes, p.fingerprint_bits)
        });
        let mut searched = None;
        if let Some(slot) = old {
            let is_full = self.has_no_room() && self.slot(slot).shared_by > 1;
            let searches = p.overwrite == Overwrite::Searches;
            if is_full || searches {
                let place = self.search(block, print);
                if is_full && !matches!(place, BranchPoint::Stored(_)) {
                    return Err(self.full());
                }
                if searches && let BranchPoint::Stored(found) = place {
                    self.read_address();
                    if found == slot {
                        let cycles = 2 * u64::from(p.address_cycles);
                        self.log.cycles(Purpose::Translate, cycles);
                        self.modules.one(self.place_of(slot).0, cycles);
                        return Ok((true, true));
                    }
                }
                searched = Some(place);
            }
            self.delete_live(lba, slot);
        }
        let place = match searched {
            Some(BranchPoint::Stored(slot)) => BranchPoint::Stored(slot),
            // The deleted block may have been next to it.
            Some(_) => self.place_for(block, print),
            None => self.search(block, print),
        };
        if let BranchPoint::Stored(slot) = place {
            self.translate_new(lba, slot, true);
            return Ok((true, old.is_some()));
        }
        if self.has_no_room() {
            return Err(self.full());
        }
        let slot = self.store(block, print, place);
        self.translate_new(lba, slot, false);
        Ok((false, old.is_some()))
    }

    pub fn get(&mut self, lba: Lba, into: &mut [u8]) -> Outcome {
        match self.table.get(lba) {
            Some(slot) => self.contents.kept_bytes(slot, 0, into),
            None => into.fill(0),
        }
        self.count_get(lba)
    }

    /// Counts the work of [`Recam::get`] without the bytes.
    fn count_get(&mut self, lba: Lba) -> Outcome {
        self.log.clear();
        let p = self.parameters;
        self.compare_table_for_address();
        let slot = self.table.get(lba);
        self.log
            .cycles(Purpose::Translate, u64::from(p.address_cycles));
        match slot {
            Some(slot) => {
                self.read_address();
                self.compare_addresses(Purpose::Read);
                self.log
                    .step(Purpose::Read, Action::Read, 1, p.row_bits, p.segments());
                self.log.cycles(Purpose::Read, 1 + p.block_rows());
                let cycles = self.log.ledger().total().cycles;
                self.modules.one(self.place_of(slot).0, cycles);
            }
            None => {
                self.modules.table(u64::from(p.address_cycles));
            }
        }
        self.counts.reads += 1;
        Outcome {
            duplicate: false,
            found: slot.is_some(),
            cost: self.book(),
        }
    }

    pub fn remove(&mut self, lba: Lba) -> Outcome {
        self.log.clear();
        self.compare_table_for_address();
        let slot = self.table.get(lba);
        match slot {
            Some(slot) => self.delete_live(lba, slot),
            None => {
                self.log.cycles(Purpose::Translate, 1);
                self.modules.table(1);
            }
        }
        Outcome {
            duplicate: false,
            found: slot.is_some(),
            cost: self.book(),
        }
    }

    // ---- the steps of the operations

    fn delete_live(&mut self, lba: Lba, slot: u32) {
        let p = self.parameters;
        self.counts.deletes += 1;
        self.table.remove(lba);
        self.read_address();
        self.empty_table_row();
        self.compare_table(p.link_bits() + FLAGS);
        let mut cycles = 3 + u64::from(p.address_cycles);
        self.log.cycles(Purpose::Translate, cycles);
        let (module, within) = self.place_of(slot);
        let kept = &mut self.slots[module][within];
        kept.shared_by -= 1;
        if kept.shared_by == 0 {
            let leaf = kept.leaf;
            self.empty_table_row();
            self.compare_addresses(Purpose::Erase);
            self.log
                .step(Purpose::Erase, Action::Write, 1, FLAGS, p.block_rows());
            self.log.cycles(Purpose::Erase, p.block_rows());
            cycles += p.block_rows();
            self.prefixes.remove(leaf);
            self.contents.forget(slot);
            self.prints.remove(&slot);
            self.emptied[module].push(Reverse(within as u32));
        }
        self.modules.one(module, cycles);
    }

    fn place_for(&mut self, block: &C::Block, print: Option<u64>) -> BranchPoint {
        self.prefixes
            .find(&mut view!(self, Some(block), print), &mut self.shared)
    }

    fn search(&mut self, block: &C::Block, print: Option<u64>) -> BranchPoint {
        let p = self.parameters;
        let first_bits = match p.fingerprint_bits {
            0 => p.row_bits,
            bits => bits,
        };
        let place = self.place_for(block, print);
        let mut compare = |rows, bits, times| {
            self.log
                .step(Purpose::Search, Action::Compare, rows, bits, times);
        };
        let first_rows = match p.first {
            First::Rows => p.rows(),
            First::Starts => u64::from(self.prefixes.blocks()),
        };
        compare(first_rows, first_bits + 1, 1);
        let mut left = p.block_rows() - 1;
        match p.compare {
            Compare::Single => compare(p.rows(), p.row_bits, left),
            Compare::Continuous => {
                // Compare k + 1 has as many active rows as blocks agree in k rows.
                for shared in &self.shared {
                    let times = u64::from(shared.rows).min(left);
                    compare(u64::from(shared.blocks), p.row_bits, times);
                    left -= times;
                }
                compare(0, p.row_bits, left);
            }
        }
        self.log.cycles(Purpose::Search, p.block_rows());
        self.modules.all(p.block_rows());
        place
    }

    fn store(&mut self, block: &C::Block, print: Option<u64>, place: BranchPoint) -> u32 {
        let p = self.parameters;
        let module = self.module_with_room().expect("there is room");
        self.turn = (module as u32 + 1) % p.modules;
        if p.free_row_compare {
            self.log
                .step(Purpose::Free, Action::Compare, p.rows(), 1, 1);
            self.log.cycles(Purpose::Free, 1);
        }
        let within = match self.emptied[module].pop() {
            Some(Reverse(within)) => within,
            None => {
                self.slots[module].push(StoredSlot::default());
                self.slots[module].len() as u32 - 1
            }
        };
        let slot = module as u32 * self.slots_a_module() + within;
        if let Some(print) = print {
            self.prints.insert(slot, print);
            let bits = p.fingerprint_bits + ADDRESS + FLAGS;
            self.log.step(Purpose::Store, Action::Write, 1, bits, 1);
        }
        let bits = p.row_bits + ADDRESS + FLAGS;
        self.log
            .step(Purpose::Store, Action::Write, 1, bits, p.segments());
        self.log.cycles(Purpose::Store, p.block_rows());
        let free = u64::from(p.free_row_compare);
        self.modules.one(module, free + p.block_rows());
        self.contents.keep(slot, block);
        let mut view = view!(self, Some(block), print);
        let leaf = self.prefixes.insert(place, slot, &mut view);
        let kept = &mut self.slots[module][within as usize];
        kept.leaf = leaf;
        kept.wear += 1;
        slot
    }

    fn translate_new(&mut self, lba: Lba, slot: u32, duplicate: bool) {
        let p = self.parameters;
        let mut cycles = 2 * u64::from(p.address_cycles);
        self.log.cycles(Purpose::Translate, cycles);
        if duplicate {
            self.log
                .step(Purpose::Translate, Action::Read, 1, ADDRESS, 1);
            self.compare_table(ADDRESS + FLAGS);
            self.log
                .step(Purpose::Translate, Action::Read, 1, p.link_bits(), 1);
        } else {
            cycles += self.write_table_row();
        }
        cycles += self.write_table_row();
        self.table.insert(lba, slot);
        let (module, within) = self.place_of(slot);
        self.slots[module][within].shared_by += 1;
        self.modules.one(module, cycles);
    }

    fn compare_table_for_address(&mut self) {
        self.compare_table(ADDRESS + FLAGS);
    }

    fn compare_table(&mut self, bits: u32) {
        let rows = self.parameters.table_rows();
        self.log
            .step(Purpose::Translate, Action::Compare, rows, bits, 1);
    }

    /// Reads the link of the row found, the row it leads to, and the PA in it.
    fn read_address(&mut self) {
        let link_bits = self.parameters.link_bits();
        self.log
            .step(Purpose::Translate, Action::Read, 1, link_bits, 1);
        self.compare_table(link_bits + FLAGS);
        self.log
            .step(Purpose::Translate, Action::Read, 1, ADDRESS, 1);
    }

    /// Writes a row of the table. Returns the cycles beyond Sec. III-C's.
    fn write_table_row(&mut self) -> u64 {
        let p = self.parameters;
        let extra = u64::from(p.free_row_compare);
        if p.free_row_compare {
            self.log
                .step(Purpose::Free, Action::Compare, p.table_rows(), 1, 1);
            self.log.cycles(Purpose::Free, extra);
        }
        let bits = ADDRESS + p.link_bits() + FLAGS;
        self.log.step(Purpose::Translate, Action::Write, 1, bits, 1);
        extra
    }

    fn empty_table_row(&mut self) {
        self.log.step(Purpose::Translate, Action::Write, 1, 1, 1);
    }

    /// Compares the address field of the rows that begin a block.
    fn compare_addresses(&mut self, purpose: Purpose) {
        let p = self.parameters;
        let rows = match p.first {
            First::Rows => p.rows(),
            First::Starts => u64::from(self.prefixes.blocks()),
        };
        self.log
            .step(purpose, Action::Compare, rows, ADDRESS + 1, 1);
    }

    // ---- what the controller knows

    fn full(&self) -> Error {
        Error::Full {
            blocks: u64::from(self.prefixes.blocks()),
        }
    }

    fn has_no_room(&self) -> bool {
        u64::from(self.prefixes.blocks()) == self.parameters.slots()
    }

    fn slots_a_module(&self) -> u32 {
        (self.parameters.slots() / u64::from(self.parameters.modules)) as u32
    }

    fn place_of(&self, slot: u32) -> (usize, usize) {
        let each = self.slots_a_module();
        ((slot / each) as usize, (slot % each) as usize)
    }

    fn slot(&self, slot: u32) -> &StoredSlot {
        let (module, within) = self.place_of(slot);
        &self.slots[module][within]
    }

    fn module_with_room(&self) -> Option<usize> {
        let all = self.slots.len();
        let each = self.slots_a_module() as usize;
        (0..all)
            .map(|index| (self.turn as usize + index) % all)
            .find(|&module| !self.emptied[module].is_empty() || self.slots[module].len() < each)
    }

    /// Adds the operation's work to all work. Returns its cost.
    fn book(&mut self) -> Cost {
        self.ledger += self.log.ledger();
        self.log.ledger().cost(&self.parameters)
    }
}

impl<C: BlockContents<Block = [u8]>> Store for Recam<C> {
    fn block_bytes(&self) -> usize {
        self.parameters.block_bytes as usize
    }

    fn write(&mut self, lba: Lba, block: &[u8]) -> Result<Outcome, Error> {
        self.check_size(block.len())?;
        self.put(lba, block)
    }

    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<Outcome, Error> {
        self.check_size(into.len())?;
        Ok(self.get(lba, into))
    }

    fn count_read(&mut self, lba: Lba) -> Result<Outcome, Error> {
        Ok(self.count_get(lba))
    }

    fn delete(&mut self, lba: Lba) -> Result<Outcome, Error> {
        Ok(self.remove(lba))
    }

    fn totals(&self) -> Totals {
        Recam::totals(self)
    }
}

impl<C: BlockContents> Recam<C> {
    fn check_size(&self, given: usize) -> Result<(), Error> {
        let wanted = self.parameters.block_bytes as usize;
        if given != wanted {
            return Err(Error::BlockSize { given, wanted });
        }
        Ok(())
    }

    /// All work since the store was made. The time is of one operation after the other.
    pub fn totals(&self) -> Totals {
        Totals {
            writes: self.counts.writes,
            duplicate_writes: self.counts.duplicates,
            reads: self.counts.reads,
            deletes: self.counts.deletes,
            live_blocks: self.table.len(),
            stored_blocks: u64::from(self.prefixes.blocks()),
            cost: self.ledger.cost(&self.parameters),
            energy_by: self.ledger.energy_by(&self.parameters),
        }
    }
}
