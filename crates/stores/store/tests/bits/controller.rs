//! The controller over bit-level arrays (Sec. III-C): it knows the registers and MATCH, and of what
//! is stored only what it has just read. Each line of an operation is a step of the hardware.

use sardonyx_store::{
    Action, Compare, Error, First, Lba, Log, Overwrite, Parameters, Purpose, fingerprint,
};

use super::array::{BitArray, Match};

const ADDRESS: usize = 64;

#[derive(Clone, Debug)]
pub struct BitLevel {
    parameters: Parameters,
    modules: Vec<BitArray>,
    /// The translation table, in a module of its own. Columns: address (of an LBA row its LBA, of a
    /// PA row its PA), link, `kind` (1 for a PA row), `empty`. Several LBA rows may link to one PA row,
    /// so a shared PA is kept once.
    table: BitArray,
    log: Log,
    /// The PA to be assigned next: arbitrary and unique (Sec. III-C).
    next_pa: u64,
    turn: usize,
    wear: Vec<u32>,
}

impl BitLevel {
    /// A formatted store: every row empty (Fig. 6, `Init`).
    pub fn new(parameters: Parameters) -> BitLevel {
        let p = parameters;
        let rows = (p.rows() / u64::from(p.modules)) as usize;
        let mut module = BitArray::new(rows, p.row_bits as usize + ADDRESS + 2);
        fill(&mut module, p.row_bits as usize + ADDRESS);
        let link = p.link_bits() as usize;
        let mut table = BitArray::new(p.table_rows() as usize, ADDRESS + link + 2);
        fill(&mut table, ADDRESS + link + 1);
        BitLevel {
            parameters,
            modules: vec![module; p.modules as usize],
            table,
            log: Log::default(),
            next_pa: 0,
            turn: 0,
            wear: vec![0; p.slots() as usize],
        }
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Writes of data that each slot of a block has seen.
    pub fn wear(&self) -> &[u32] {
        &self.wear
    }

    /// Writes a block; whether it was a duplicate.
    ///
    /// # Errors
    /// [`Error::Full`].
    pub fn write(&mut self, lba: Lba, block: &[u8]) -> Result<bool, Error> {
        self.log.clear();
        let live = self.find_lba(lba).is_some();
        if !live && self.live_blocks() == self.parameters.logical_blocks {
            return Err(self.full());
        }
        let mut searched = None;
        if live {
            let is_full = self.empty_slots() == 0 && self.is_shared(lba);
            let searches = self.parameters.overwrite == Overwrite::Searches;
            if is_full || searches {
                let found = self.search(block);
                if is_full && found.is_none() {
                    return Err(self.full());
                }
                if searches && let Some(found) = found {
                    let link = self.locate_lba(lba).expect("it is there");
                    if self.pa_of(&link) == found {
                        let cycles = 2 * u64::from(self.parameters.address_cycles);
                        self.log.cycles(Purpose::Translate, cycles);
                        return Ok(true);
                    }
                }
                searched = Some(found);
            }
            self.delete_live(lba);
        }
        let found = match searched {
            Some(found) => found,
            None => self.search(block),
        };
        let (pa, duplicate) = match found {
            Some(pa) => (pa, true),
            None if self.empty_slots() == 0 => return Err(self.full()),
            None => (self.store(block), false),
        };
        self.translate_new(lba, pa, duplicate);
        Ok(duplicate)
    }

    pub fn read(&mut self, lba: Lba) -> Option<Vec<u8>> {
        let p = self.parameters;
        self.log.clear();
        let address_cycles = u64::from(p.address_cycles);
        self.log.cycles(Purpose::Translate, address_cycles);
        let link = self.find_lba(lba)?;
        let pa = self.pa_of(&link);
        self.find_pa(pa, Purpose::Read);
        self.log.cycles(Purpose::Read, 1);
        let mut bytes = Vec::new();
        let module = self.tagged_module();
        for row in 0..p.block_rows() {
            let is_data = row >= p.block_rows() - p.segments();
            if is_data {
                let bits = self.modules[module].read(0, p.row_bits as usize);
                bytes.extend(to_bytes(&bits));
                self.log.step(Purpose::Read, Action::Read, 1, p.row_bits, 1);
            }
            self.log.cycles(Purpose::Read, 1);
            self.modules[module].shift();
        }
        Some(bytes)
    }

    pub fn delete(&mut self, lba: Lba) -> bool {
        self.log.clear();
        if self.find_lba(lba).is_none() {
            self.log.cycles(Purpose::Translate, 1);
            return false;
        }
        self.delete_live(lba);
        true
    }

    /// The three steps of Sec. III-C, the first compare of the first one done.
    fn delete_live(&mut self, lba: Lba) {
        let p = self.parameters;
        // First: the PA is read and the LBA's row is emptied, in 3 cycles.
        let link = self.locate_lba(lba).expect("it is there");
        let row = self.table.tagged()[0];
        let pa = self.pa_of(&link);
        self.table.tag_row(row);
        self.empty_table_row();
        self.log.cycles(Purpose::Translate, 3);
        // Second: does another LBA have the PA?
        self.table.mask_off();
        self.table.set(ADDRESS, &link);
        self.table.set(ADDRESS + link.len(), &[false, false]);
        self.compare_table();
        self.log
            .cycles(Purpose::Translate, u64::from(p.address_cycles));
        if self.table.matched() {
            return;
        }
        // Third: no. The PA's row and the block's rows are emptied.
        self.table.mask_off();
        self.table.set(ADDRESS, &link);
        self.table.set(ADDRESS + link.len(), &[true, false]);
        self.table.compare(Match::Single); // whose row the controller has seen when it read the PA
        self.empty_table_row();
        self.find_pa(pa, Purpose::Erase);
        let module = self.tagged_module();
        for _ in 0..p.block_rows() {
            let array = &mut self.modules[module];
            array.mask_off();
            array.set(p.row_bits as usize + ADDRESS, &[true, false]);
            let rows = array.write();
            self.log
                .step(Purpose::Erase, Action::Write, rows, array.masked_on(), 1);
            self.log.cycles(Purpose::Erase, 1);
            array.shift();
        }
    }

    /// A single compare of the first row, then continuous ones; the PA of the match.
    fn search(&mut self, block: &[u8]) -> Option<u64> {
        let p = self.parameters;
        let data = p.row_bits as usize;
        for (index, row) in self.rows_of(block).into_iter().enumerate() {
            let how = match (index, p.compare) {
                (0, _) => Match::Single,
                (_, Compare::Continuous) => Match::Continuous,
                (_, Compare::Single) => Match::ContinuousAllActive,
            };
            let (mut active, mut bits) = (0, 0);
            for array in &mut self.modules {
                array.mask_off();
                array.set(0, &row);
                if index == 0 {
                    array.set(data + ADDRESS + 1, &[true]);
                }
                bits = array.masked_on();
                active += array.compare(how);
            }
            if index == 0 && p.first == First::Starts {
                active = self.starts();
            }
            self.log
                .step(Purpose::Search, Action::Compare, active, bits, 1);
            self.log.cycles(Purpose::Search, 1);
        }
        if !self.modules.iter().any(BitArray::matched) {
            return None;
        }
        let module = self.tagged_module();
        Some(to_u64(&self.modules[module].read(data, ADDRESS)))
    }

    /// Writes a unique block into the topmost empty rows of the module whose turn it is.
    fn store(&mut self, block: &[u8]) -> u64 {
        let p = self.parameters;
        let data = p.row_bits as usize;
        let module = self.module_with_room().expect("counted");
        self.turn = (module + 1) % self.modules.len();
        if p.free_row_compare {
            self.log
                .step(Purpose::Free, Action::Compare, p.rows(), 1, 1);
            self.log.cycles(Purpose::Free, 1);
        }
        let pa = self.next_pa;
        self.next_pa += 1;
        let rows = self.rows_of(block);
        let array = &mut self.modules[module];
        tag_topmost_empty(array, data + ADDRESS);
        let slot = array.tagged()[0] / p.block_rows() as usize;
        for (index, row) in rows.iter().enumerate() {
            array.mask_off();
            array.set(0, row);
            array.set(data, &of_u64(pa, ADDRESS));
            array.set(data + ADDRESS, &[false, index == 0]);
            let rows = array.write();
            self.log
                .step(Purpose::Store, Action::Write, rows, array.masked_on(), 1);
            self.log.cycles(Purpose::Store, 1);
            array.shift();
        }
        let slots = p.slots() as usize / self.modules.len();
        self.wear[module * slots + slot] += 1;
        pa
    }

    /// LBA and PA into the table; of a duplicate the PA is there.
    fn translate_new(&mut self, lba: Lba, pa: u64, duplicate: bool) {
        let p = self.parameters;
        let link_bits = p.link_bits() as usize;
        let link = if duplicate {
            self.log
                .step(Purpose::Translate, Action::Read, 1, ADDRESS as u32, 1);
            self.table.mask_off();
            self.table.set(0, &of_u64(pa, ADDRESS));
            self.table.set(ADDRESS + link_bits, &[true, false]);
            self.compare_table();
            let link = self.table.read(ADDRESS, link_bits);
            self.log
                .step(Purpose::Translate, Action::Read, 1, link_bits as u32, 1);
            link
        } else {
            let link = self.free_link();
            self.write_table_row(pa, &link, true);
            link
        };
        self.write_table_row(lba, &link, false);
        self.log
            .cycles(Purpose::Translate, 2 * u64::from(p.address_cycles));
    }

    /// Compares for the LBA and reads the link of its row.
    fn find_lba(&mut self, lba: Lba) -> Option<Vec<bool>> {
        let link = self.locate_lba(lba);
        let (rows, bits) = (self.table.rows() as u64, self.table.masked_on());
        self.log
            .step(Purpose::Translate, Action::Compare, rows, bits, 1);
        link
    }

    fn locate_lba(&mut self, lba: Lba) -> Option<Vec<bool>> {
        let link_bits = self.parameters.link_bits() as usize;
        self.table.mask_off();
        self.table.set(0, &of_u64(lba, ADDRESS));
        self.table.set(ADDRESS + link_bits, &[false, false]);
        self.table.compare(Match::Single);
        self.table
            .matched()
            .then(|| self.table.read(ADDRESS, link_bits))
    }

    /// Reads the link that was found, compares for its PA row and reads the PA.
    fn pa_of(&mut self, link: &[bool]) -> u64 {
        self.log
            .step(Purpose::Translate, Action::Read, 1, link.len() as u32, 1);
        self.table.mask_off();
        self.table.set(ADDRESS, link);
        self.table.set(ADDRESS + link.len(), &[true, false]);
        self.compare_table();
        self.log
            .step(Purpose::Translate, Action::Read, 1, ADDRESS as u32, 1);
        to_u64(&self.table.read(0, ADDRESS))
    }

    /// Compares the address field of the rows that begin a block.
    fn find_pa(&mut self, pa: u64, purpose: Purpose) {
        let p = self.parameters;
        let (mut active, mut bits) = (0, 0);
        for array in &mut self.modules {
            array.mask_off();
            array.set(p.row_bits as usize, &of_u64(pa, ADDRESS));
            array.set(p.row_bits as usize + ADDRESS + 1, &[true]);
            bits = array.masked_on();
            active += array.compare(Match::Single);
        }
        if p.first == First::Starts {
            active = self.starts();
        }
        self.log.step(purpose, Action::Compare, active, bits, 1);
    }

    fn compare_table(&mut self) {
        let rows = self.table.compare(Match::Single);
        let bits = self.table.masked_on();
        self.log
            .step(Purpose::Translate, Action::Compare, rows, bits, 1);
    }

    fn write_table_row(&mut self, address: u64, link: &[bool], is_pa: bool) {
        let (rows, columns) = (self.table.rows() as u64, ADDRESS + link.len());
        if self.parameters.free_row_compare {
            self.log.step(Purpose::Free, Action::Compare, rows, 1, 1);
            self.log.cycles(Purpose::Free, 1);
        }
        tag_topmost_empty(&mut self.table, columns + 1);
        self.table.mask_off();
        self.table.set(0, &of_u64(address, ADDRESS));
        self.table.set(ADDRESS, link);
        self.table.set(columns, &[is_pa, false]);
        let (rows, bits) = (self.table.write(), self.table.masked_on());
        self.log
            .step(Purpose::Translate, Action::Write, rows, bits, 1);
    }

    fn empty_table_row(&mut self) {
        let empty = ADDRESS + self.parameters.link_bits() as usize + 1;
        self.table.mask_off();
        self.table.set(empty, &[true]);
        let rows = self.table.write();
        self.log.step(Purpose::Translate, Action::Write, rows, 1, 1);
    }

    // ---- what the controller keeps in registers; here it is looked up, at no cost

    fn full(&mut self) -> Error {
        Error::Full {
            blocks: self.starts(),
        }
    }

    fn starts(&self) -> u64 {
        let start = self.parameters.row_bits as usize + ADDRESS + 1;
        self.modules
            .iter()
            .map(|m| count(m, &[(start, true)]))
            .sum()
    }

    fn empty_slots(&self) -> u64 {
        self.parameters.slots() - self.starts()
    }

    fn live_blocks(&self) -> u64 {
        let kind = ADDRESS + self.parameters.link_bits() as usize;
        count(&self.table, &[(kind, false), (kind + 1, false)])
    }

    fn is_shared(&mut self, lba: Lba) -> bool {
        let link = self.locate_lba(lba).expect("it is there");
        let mut columns: Vec<(usize, bool)> = (ADDRESS..).zip(link.iter().copied()).collect();
        columns.extend([
            (ADDRESS + link.len(), false),
            (ADDRESS + link.len() + 1, false),
        ]);
        count(&self.table, &columns) > 1
    }

    fn module_with_room(&self) -> Option<usize> {
        let empty = self.parameters.row_bits as usize + ADDRESS;
        let all = self.modules.len();
        (0..all)
            .map(|index| (self.turn + index) % all)
            .find(|&module| count(&self.modules[module], &[(empty, true)]) > 0)
    }

    fn free_link(&mut self) -> Vec<bool> {
        let link_bits = self.parameters.link_bits() as usize;
        (0..)
            .map(|link| of_u64(link, link_bits))
            .find(|link| {
                let mut columns: Vec<(usize, bool)> =
                    (ADDRESS..).zip(link.iter().copied()).collect();
                columns.extend([
                    (ADDRESS + link_bits, true),
                    (ADDRESS + link_bits + 1, false),
                ]);
                count(&self.table, &columns) == 0
            })
            .expect("as many links as slots")
    }

    fn tagged_module(&self) -> usize {
        self.modules
            .iter()
            .position(BitArray::matched)
            .expect("a tagged row")
    }

    /// A block as rows of data, its fingerprint's first if there is one.
    fn rows_of(&self, block: &[u8]) -> Vec<Vec<bool>> {
        let p = self.parameters;
        let mut rows = Vec::new();
        if p.fingerprint_bits > 0 {
            let print = fingerprint(block, p.fingerprint_bits);
            rows.push(of_u64(print, p.fingerprint_bits as usize));
        }
        rows.extend(block.chunks(p.row_bits as usize / 8).map(of_bytes));
        rows
    }
}

/// Sets a column of all rows (`Init` of Fig. 6).
fn fill(array: &mut BitArray, column: usize) {
    array.mask_off();
    array.compare(Match::Single); // nothing is masked on, so every row matches
    array.set(column, &[true]);
    array.write();
}

fn count(array: &BitArray, columns: &[(usize, bool)]) -> u64 {
    let mut copy = array.clone();
    copy.mask_off();
    for &(column, bit) in columns {
        copy.set(column, &[bit]);
    }
    copy.compare(Match::Single);
    copy.tagged().len() as u64
}

fn tag_topmost_empty(array: &mut BitArray, empty: usize) {
    array.mask_off();
    array.set(empty, &[true]);
    array.compare(Match::Single);
    array.keep_topmost();
}

fn of_u64(value: u64, bits: usize) -> Vec<bool> {
    (0..bits).map(|bit| value >> bit & 1 == 1).collect()
}

fn to_u64(bits: &[bool]) -> u64 {
    let ones = (0..).zip(bits).filter(|(_, bit)| **bit);
    ones.map(|(index, _)| 1 << index).sum()
}

fn of_bytes(bytes: &[u8]) -> Vec<bool> {
    bytes
        .iter()
        .flat_map(|&byte| of_u64(u64::from(byte), 8))
        .collect()
}

fn to_bytes(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|byte| to_u64(byte) as u8).collect()
}
