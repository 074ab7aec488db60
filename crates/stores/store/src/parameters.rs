//! The array's shape, its cycles and its energies. A value that the paper leaves out is *assumed* and says so.

use serde::{Deserialize, Serialize};

/// The treatment of rows that have mismatched before, in compares after the first one (Sec. III-C, IV).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// Only rows that follow a matching row are active.
    #[default]
    Continuous,
    /// Every row is active in every compare, which the paper compares with.
    Single,
}

/// The rows that the first compare of a search activates. The paper masks the block-start column on "to enable
/// comparison of only the first segment of each data block" and does not say whether the match lines of other rows are
/// precharged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum First {
    /// All rows of the array: the mask decides by discharging, so that each match line is precharged.
    #[default]
    Rows,
    /// Only the rows that begin a stored block, as if the column gated the precharge.
    Starts,
}

/// The first step of an overwrite. Sec. III-C has the steps of a write and those of a deletion, and no overwrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overwrite {
    /// A deletion, then a write: a content that only this block had is new. If the array is full and others share the
    /// old content, the search comes first in any case.
    #[default]
    Deletes,
    /// The search; writing the content that the block already has changes nothing.
    Searches,
}

/// A value that no source gives exactly: between two published ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bracket {
    pub low: f64,
    pub high: f64,
}

impl Bracket {
    pub const fn exactly(value: f64) -> Bracket {
        Bracket {
            low: value,
            high: value,
        }
    }

    /// A value, or two ends as in `0.1-17`, the lower first; none is below 0 or without end.
    pub fn parse(text: &str) -> Option<Bracket> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let (low, high) = (low.parse::<f64>().ok()?, high.parse::<f64>().ok()?);
        (0.0 <= low && low <= high && high.is_finite()).then_some(Bracket { low, high })
    }

    /// The geometric middle, or the upper end's half where the lower end is zero.
    pub fn middle(self) -> f64 {
        match (self.low, self.high) {
            (low, high) if low == high => low,
            (0.0, high) => high / 2.0,
            (low, high) => (low * high).sqrt(),
        }
    }
}

impl std::fmt::Display for Bracket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bracket { low, high } = self;
        if low == high {
            write!(f, "{low}")
        } else {
            write!(f, "{low} to {high}")
        }
    }
}

/// Energies of the array's events, in femtojoules. The paper took them from a circuit simulation
/// and prints none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Energies {
    /// A bit compared in an active row, or read. Published CAM cells: 0.1 to 17 fJ. *assumed*
    pub compared_bit_fj: Bracket,
    /// A match line precharged, beyond its bits; the published figures contain it. *assumed*
    pub match_line_fj: Bracket,
    /// A bit written, both phases: 1 to 10 pJ. *assumed*
    pub written_bit_fj: Bracket,
}

impl Default for Energies {
    fn default() -> Energies {
        Energies {
            compared_bit_fj: Bracket {
                low: 0.1,
                high: 17.0,
            },
            match_line_fj: Bracket::exactly(0.0),
            written_bit_fj: Bracket {
                low: 1_000.0,
                high: 10_000.0,
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Bytes of data that the rows hold, fingerprint rows not counted (Sec. IV: 256 GB).
    pub capacity_bytes: u64,
    /// Bytes of a block (Sec. IV: 1, 2, 4 or 8 KB).
    pub block_bytes: u32,
    /// Data bits of a row: ReCAM_width (Sec. III-C's example: 256).
    pub row_bits: u32,
    /// Modules that work in parallel; a search goes to all of them (Fig. 2).
    pub modules: u32,
    pub logical_blocks: u64,
    pub compare: Compare,
    pub first: First,
    /// A write compares for an empty row first, as Fig. 6 does and Sec. III-C's counts do not.
    pub free_row_compare: bool,
    pub overwrite: Overwrite,
    /// Cycles for each of LBA and PA: 1-2 "depending on ReCAM_width" (Sec. III-C).
    pub address_cycles: u32,
    /// Bits of a fingerprint in a row of its own before each block; 0 for none, as in the paper.
    pub fingerprint_bits: u32,
    /// The array's clock (Sec. IV: 1 GHz).
    pub clock_ghz: f64,
    pub energies: Energies,
}

/// Below this width LBA and PA take two cycles each. *assumed*
const WIDE_ROW_BITS: u32 = 512;

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters::new(256 << 30, 4096, 256)
    }
}

impl Parameters {
    /// An array of the paper's kind, with a translation table for as many logical blocks as it has
    /// room for distinct ones.
    pub fn new(capacity_bytes: u64, block_bytes: u32, row_bits: u32) -> Parameters {
        Parameters {
            capacity_bytes,
            block_bytes,
            row_bits,
            modules: 1,
            logical_blocks: capacity_bytes / u64::from(block_bytes.max(1)),
            compare: Compare::Continuous,
            first: First::Rows,
            free_row_compare: false,
            overwrite: Overwrite::Deletes,
            address_cycles: if row_bits < WIDE_ROW_BITS { 2 } else { 1 },
            fingerprint_bits: 0,
            clock_ghz: 1.0,
            energies: Energies::default(),
        }
    }

    /// S of Sec. III-C: rows of data in a block.
    pub fn segments(&self) -> u64 {
        u64::from(self.block_bytes) * 8 / u64::from(self.row_bits)
    }

    pub fn block_rows(&self) -> u64 {
        self.segments() + u64::from(self.fingerprint_bits > 0)
    }

    pub fn slots(&self) -> u64 {
        self.capacity_bytes / u64::from(self.block_bytes)
    }

    pub fn rows(&self) -> u64 {
        self.slots() * self.block_rows()
    }

    /// Rows of the translation table: one a logical block, and one a physical address.
    pub fn table_rows(&self) -> u64 {
        self.logical_blocks + self.slots()
    }

    /// Bits of the short number by which an LBA's row names its PA's row.
    pub fn link_bits(&self) -> u32 {
        (u64::BITS - (self.slots() - 1).leading_zeros()).max(1)
    }

    /// An error that says what does not fit together.
    pub fn check(&self) -> Result<(), ParametersError> {
        let fail = |problem: String| Err(ParametersError(problem));
        if self.row_bits < 8 || !self.row_bits.is_multiple_of(8) {
            return fail(format!(
                "row_bits = {}: give a multiple of 8, as 64, 128, 256 or 512",
                self.row_bits
            ));
        }
        let block_bits = u64::from(self.block_bytes) * 8;
        if block_bits == 0 || !block_bits.is_multiple_of(u64::from(self.row_bits)) {
            return fail(format!(
                "block_bytes = {}: give whole rows of {} bits",
                self.block_bytes, self.row_bits
            ));
        }
        if self.segments() > 1 << 15 {
            return fail(format!(
                "block_bytes = {}: that is more than 32,768 rows of {} bits",
                self.block_bytes, self.row_bits
            ));
        }
        let modules = u64::from(self.modules);
        if modules == 0 || self.slots() == 0 || !self.slots().is_multiple_of(modules) {
            return fail(format!(
                "capacity_bytes = {}: give a whole number of blocks of {} bytes for each of {} \
                 modules",
                self.capacity_bytes, self.block_bytes, self.modules
            ));
        }
        if self.slots() > u64::from(u32::MAX) {
            return fail(format!(
                "capacity_bytes = {}: at most 2^32 - 1 blocks",
                self.capacity_bytes
            ));
        }
        if self.logical_blocks == 0 || self.logical_blocks > 1 << 40 {
            return fail(format!(
                "logical_blocks = {}: give 1 to 2^40",
                self.logical_blocks
            ));
        }
        if !(1..=2).contains(&self.address_cycles) {
            return fail(format!(
                "address_cycles = {}: give 1 or 2",
                self.address_cycles
            ));
        }
        if self.fingerprint_bits > self.row_bits.min(64) {
            return fail(format!(
                "fingerprint_bits = {}: give 0 for none, or at most {}",
                self.fingerprint_bits,
                self.row_bits.min(64)
            ));
        }
        if !(self.clock_ghz > 0.0 && self.clock_ghz.is_finite()) {
            return fail(format!("clock_ghz = {}: give more than 0", self.clock_ghz));
        }
        let Energies {
            compared_bit_fj,
            match_line_fj,
            written_bit_fj,
        } = self.energies;
        for (name, b) in [
            ("compared_bit_fj", compared_bit_fj),
            ("match_line_fj", match_line_fj),
            ("written_bit_fj", written_bit_fj),
        ] {
            if !(b.low >= 0.0 && b.low <= b.high && b.high.is_finite()) {
                return fail(format!(
                    "{name} = {} to {}: give 0 or more, the lower end first",
                    b.low, b.high
                ));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ParametersError(String);
