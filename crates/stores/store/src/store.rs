//! The interface of every deduplicating store, and the cost of an operation.

use serde::Serialize;

/// A logical block address: what the outside world calls a block.
pub type Lba = u64;

/// Cost of an operation. Times and energies are at the border, so their units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Cycles of the array; 0 in a store that has no array.
    pub cycles: u64,
    /// Nanoseconds: of the array by its clock, of the conventional store as measured.
    pub time_ns: f64,
    /// Nanojoules: counted events times the energies that the store was given.
    pub energy_nj: f64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.cycles += other.cycles;
        self.time_ns += other.time_ns;
        self.energy_nj += other.energy_nj;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Set if the content of a write was in the store; false for a read or a delete.
    pub duplicate: bool,
    /// Set if a read or a delete found the block, or a write replaced one.
    pub found: bool,
    pub cost: Cost,
}

/// The reason why an operation was not done. The store has not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no room for the block or for its address.
    #[error("the store is full: {blocks} blocks are stored; delete some, or make the store larger")]
    Full { blocks: u64 },
    #[error("a block has {given} bytes, but this store has blocks of {wanted}")]
    BlockSize {
        /// The size given, in bytes.
        given: usize,
        wanted: usize,
    },
    #[error("{path}: {source}; check the folder, its permissions and its free space")]
    Io {
        path: String,
        source: std::io::Error,
    },
    #[error("{path}: {problem}")]
    Index { path: String, problem: String },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub writes: u64,
    /// Writes whose content was in the store.
    pub duplicate_writes: u64,
    pub reads: u64,
    /// The number of blocks that were deleted. An overwrite counts as one.
    pub deletes: u64,
    pub live_blocks: u64,
    pub stored_blocks: u64,
    pub cost: Cost,
    pub energy_by: Vec<(&'static str, f64)>,
}

/// A store of blocks of one size that keeps equal ones once.
pub trait Store {
    fn block_bytes(&self) -> usize;

    /// Writes a block. A block that is there under this address is deleted first.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room, even if the old block is given up; the old block stays.
    fn write(&mut self, lba: Lba, block: &[u8]) -> Result<Outcome, Error>;

    /// Reads a block; zeros and `found: false` where nothing was written.
    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<Outcome, Error>;

    /// Counts the read of a block whose bytes the caller has already. An executed store reads it all the same.
    fn count_read(&mut self, lba: Lba) -> Result<Outcome, Error> {
        let mut into = vec![0; self.block_bytes()];
        self.read(lba, &mut into)
    }

    /// Deletes (trims) a block; its content goes with the last address that has it.
    fn delete(&mut self, lba: Lba) -> Result<Outcome, Error>;

    /// Makes everything so far survive the end of the process, if the store is one that persists.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn totals(&self) -> Totals;
}
