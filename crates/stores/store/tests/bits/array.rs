//! One ReCAM array (Sec. II): bit cells in rows and columns, KEY, MASK, TAG, MATCH.
//!
//! Follows Figs. 3 to 5. Left out: voltages and currents; what they cost is in `Energies`.

/// A bit cell: two memristors with complementary states, `true` for R_ON (Fig. 3b).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    bit: bool,
    bit_not: bool,
}

impl Cell {
    fn discharges(self, key: bool) -> bool {
        if key { self.bit_not } else { self.bit }
    }

    /// The two phases of a write: first V_ON switches one memristor on, then V_OFF the other off.
    fn write(&mut self, key: bool) {
        if key {
            self.bit = true;
        } else {
            self.bit_not = true;
        }
        if key {
            self.bit_not = false;
        } else {
            self.bit = false;
        }
    }
}

/// The use of the TAG of the row before, in a compare (Fig. 5a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// COMPS is set: the TAG samples the row's own match line. Every row is active.
    Single,
    /// The match result is ANDed with the TAG of the row before. Only rows after a tagged one are
    /// active.
    Continuous,
    /// [`Match::Continuous`], but no row is deactivated: every match line is precharged.
    ContinuousAllActive,
}

/// An array of bit cells with its registers.
#[derive(Clone, Debug)]
pub struct BitArray {
    rows: Vec<Vec<Cell>>,
    key: Vec<bool>,
    mask: Vec<bool>,
    tag: Vec<bool>,
}

impl BitArray {
    pub fn new(rows: usize, columns: usize) -> BitArray {
        let zero = Cell {
            bit: false,
            bit_not: true,
        };
        BitArray {
            rows: vec![vec![zero; columns]; rows],
            key: vec![false; columns],
            mask: vec![false; columns],
            tag: vec![false; rows],
        }
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn mask_off(&mut self) {
        self.mask.fill(false);
    }

    /// Sets KEY and masks on the columns from `at`.
    pub fn set(&mut self, at: usize, bits: &[bool]) {
        self.key[at..at + bits.len()].copy_from_slice(bits);
        self.mask[at..at + bits.len()].fill(true);
    }

    pub fn masked_on(&self) -> u32 {
        self.mask.iter().map(|&on| u32::from(on)).sum()
    }

    /// Compares KEY under MASK with the active rows into TAG; gives the number of active rows.
    pub fn compare(&mut self, how: Match) -> u64 {
        let before = self.tag.clone();
        let mut active = 0;
        for row in 0..self.rows.len() {
            let follows = row > 0 && before[row - 1];
            let precharged = match how {
                Match::Single | Match::ContinuousAllActive => true,
                Match::Continuous => follows,
            };
            active += u64::from(precharged);
            let stays_high = precharged
                && (0..self.key.len()).all(|column| {
                    !self.mask[column] || !self.rows[row][column].discharges(self.key[column])
                });
            self.tag[row] = stays_high && (how == Match::Single || follows);
        }
        active
    }

    /// MATCH: some row is tagged (Fig. 5b).
    pub fn matched(&self) -> bool {
        self.tag.contains(&true)
    }

    /// Leaves the topmost tag alone (Fig. 6: "tag topmost row").
    pub fn keep_topmost(&mut self) {
        let top = self.tag.iter().position(|&tag| tag);
        self.tag.fill(false);
        if let Some(row) = top {
            self.tag[row] = true;
        }
    }

    /// Moves each tag to the row below, to go on with the next segment of a block.
    pub fn shift(&mut self) {
        self.tag.rotate_right(1);
        self.tag[0] = false;
    }

    /// Tags one row, as a controller that knows it does.
    pub fn tag_row(&mut self, row: usize) {
        self.tag.fill(false);
        self.tag[row] = true;
    }

    /// Writes KEY under MASK into the tagged rows; gives their number.
    pub fn write(&mut self) -> u64 {
        let mut written = 0;
        for (row, _) in self.rows.iter_mut().zip(&self.tag).filter(|(_, tag)| **tag) {
            written += 1;
            for column in (0..self.key.len()).filter(|&column| self.mask[column]) {
                row[column].write(self.key[column]);
            }
        }
        written
    }

    /// The columns of the one tagged row.
    ///
    /// # Panics
    /// If not exactly one row is tagged.
    pub fn read(&self, at: usize, bits: usize) -> Vec<bool> {
        assert_eq!(self.tag.iter().filter(|&&tag| tag).count(), 1, "one row");
        let row = self.tag.iter().position(|&tag| tag).expect("counted");
        self.rows[row][at..at + bits]
            .iter()
            .map(|cell| cell.bit)
            .collect()
    }

    pub fn tagged(&self) -> Vec<usize> {
        (0..self.tag.len()).filter(|&row| self.tag[row]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Vec<bool> {
        text.chars().map(|c| c == '1').collect()
    }

    #[test]
    fn figure_4_compares_011x_and_writes_1xxx_into_the_first_row() {
        let mut array = BitArray::new(2, 4);
        for (row, content) in ["0110", "0101"].iter().enumerate() {
            array.tag_row(row);
            array.set(0, &bits(content));
            array.write();
        }
        array.mask_off();
        array.set(0, &bits("011"));
        assert_eq!(array.compare(Match::Single), 2);
        assert_eq!(array.tagged(), [0]);
        array.mask_off();
        array.set(0, &bits("1"));
        assert_eq!(array.write(), 1);
        assert_eq!(array.read(0, 4), bits("1110"));
        array.tag_row(1);
        assert_eq!(array.read(0, 4), bits("0101"));
    }

    #[test]
    fn a_continuous_compare_goes_on_below_tagged_rows_alone() {
        let mut array = BitArray::new(4, 2);
        for (row, content) in ["11", "10", "11", "00"].iter().enumerate() {
            array.tag_row(row);
            array.set(0, &bits(content));
            array.write();
        }
        array.set(0, &bits("11"));
        assert_eq!(array.compare(Match::Single), 4);
        assert_eq!(array.tagged(), [0, 2]);
        array.set(0, &bits("10"));
        let mut all = array.clone();
        assert_eq!(array.compare(Match::Continuous), 2);
        assert_eq!(array.tagged(), [1]);
        assert_eq!(all.compare(Match::ContinuousAllActive), 4);
        assert_eq!(all.tagged(), [1]);
        array.set(0, &bits("01"));
        assert_eq!(array.compare(Match::Continuous), 1);
        assert!(!array.matched());
    }
}
