//! What a core executes at the `cpu` level: loads, stores and persist instructions, in batches whose
//! bytes lie side by side. Recorded traces and persistent programs make the same stream.

use super::RunError;
use crate::line::{LINE_BYTES, Line, Lines, Virtual};
use crate::units::Time;

/// A transaction of a core has reached a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Its number, counted from 1.
    pub transaction: u64,
    /// The phase that it has reached.
    pub phase: Phase,
}

/// The phase of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The transaction begins, and may not be visible after a power cut.
    Begin,
    /// Its commit begins, and from here on it may be visible.
    Committing,
    /// Its last fence has passed, and it must be visible.
    Committed,
}

/// One operation and the instructions before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Instructions since the previous operation.
    pub gap: u32,
    /// The operation's effect on its line, or on the core.
    pub kind: OpKind,
    /// Its line, in the program's own address space; of a mark, the transaction.
    pub line: Virtual,
}

/// The kind of an operation. `bytes` is the index of its first byte in the [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads `len` bytes of the line from byte `from` on, eight for each instruction.
    Load {
        /// The first byte within the line, 0 to 63.
        from: u8,
        /// How many bytes, 1 to 64.
        len: u8,
    },
    /// Reads a whole line from the cache that holds it, else from memory; no cache takes it.
    LoadPast,
    /// Writes `len` bytes of the line from byte `from` on, eight for each instruction.
    Store {
        /// The first byte within the line, 0 to 63.
        from: u8,
        /// How many bytes, 1 to 64.
        len: u8,
        /// Whether it stores a counter-atomic variable.
        atomic: bool,
        /// Index of the first of its bytes in the [`Batch`].
        bytes: u32,
    },
    /// Stores in one instruction, after which the whole line holds these 64 bytes (recorded traces).
    StoreLine {
        /// Index of the first of its bytes in the [`Batch`].
        bytes: u32,
    },
    /// Writes the whole line past the caches.
    NonTemporal {
        /// Index of the first of its bytes in the [`Batch`].
        bytes: u32,
    },
    /// `clwb`: writes the line back and keeps it.
    WriteBack,
    /// `clflush`, `clflushopt`: writes the line back and drops it.
    Flush,
    /// `sfence`.
    Fence,
    /// `counter_cache_writeback()`.
    CounterWriteBack,
    /// `tx_begin()`. The line is the transaction's number, as in a mark.
    TxBegin,
    /// `tx_end()`.
    TxEnd,
    /// The following operations need everything that has been loaded.
    Depend,
    /// Tells the agent whose number the line is to look for work.
    Doorbell,
    /// Takes the lock whose number the line is, in volatile memory, or waits for it.
    Lock,
    /// Releases the lock, to the core that has waited longest.
    Unlock,
    /// The transaction that the line stands for has reached this phase.
    Mark(Phase),
}

impl OpKind {
    /// Whether it is a load or a store through the caches.
    pub fn is_access(self) -> bool {
        matches!(
            self,
            OpKind::Load { .. } | OpKind::Store { .. } | OpKind::StoreLine { .. }
        )
    }

    /// Whether the operation is one on a line.
    #[inline]
    pub fn has_line(self) -> bool {
        !matches!(
            self,
            OpKind::Fence
                | OpKind::Depend
                | OpKind::Doorbell
                | OpKind::Lock
                | OpKind::Unlock
                | OpKind::Mark(_)
                | OpKind::TxBegin
                | OpKind::TxEnd
        )
    }
}

/// A batch of operations and their bytes.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    ops: Vec<Op>,
    bytes: Vec<u8>,
    gap: u32,
}

impl Batch {
    /// Empties the batch; instructions after the last operation carry over.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.bytes.clear();
    }

    /// Operations, in order.
    #[inline]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The operations, mutable.
    pub fn ops_mut(&mut self) -> &mut [Op] {
        &mut self.ops
    }

    /// The `len` bytes at `bytes`.
    #[inline]
    pub fn bytes(&self, bytes: u32, len: u8) -> &[u8] {
        &self.bytes[bytes as usize..bytes as usize + usize::from(len)]
    }

    /// The whole line at `bytes`.
    #[inline]
    pub fn line(&self, bytes: u32) -> &Line {
        let line = &self.bytes[bytes as usize..bytes as usize + LINE_BYTES];
        line.try_into().expect("a line's bytes")
    }

    /// Adds instructions that touch no memory.
    pub fn compute(&mut self, instructions: u32) {
        self.gap = self.gap.saturating_add(instructions);
    }

    /// Instructions after the last operation.
    pub fn trailing_gap(&self) -> u32 {
        self.gap
    }

    /// Adds an operation without bytes.
    pub fn push(&mut self, kind: OpKind, line: Virtual) {
        let gap = std::mem::take(&mut self.gap);
        self.ops.push(Op { gap, kind, line });
    }

    /// Adds a load of `len` bytes of `line` from byte `from` on.
    pub fn load(&mut self, line: Virtual, from: u8, len: u8) {
        self.push(OpKind::Load { from, len }, line);
    }

    /// Adds a store of `bytes` into `line` from byte `from` on.
    pub fn store(&mut self, line: Virtual, from: u8, bytes: &[u8], atomic: bool) {
        let (at, len) = (self.keep(bytes), bytes.len() as u8);
        let kind = OpKind::Store {
            from,
            len,
            atomic,
            bytes: at,
        };
        self.push(kind, line);
    }

    /// Appends the operations of `rest` from `next` on. The caller adjusts the gap of the first one.
    pub fn append(&mut self, rest: &Batch, next: usize) {
        let base = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&rest.bytes);
        for (at, op) in rest.ops[next..].iter().enumerate() {
            let mut op = *op;
            if at == 0 {
                op.gap = std::mem::take(&mut self.gap);
            }
            match &mut op.kind {
                OpKind::Store { bytes, .. }
                | OpKind::StoreLine { bytes }
                | OpKind::NonTemporal { bytes } => *bytes += base,
                _ => {}
            }
            self.ops.push(op);
        }
        self.gap = rest.gap;
    }

    /// Keeps `bytes` and returns their index.
    pub fn keep(&mut self, bytes: &[u8]) -> u32 {
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        at
    }
}

/// A source of a core's operations.
pub trait OpSource: Send {
    /// The source's name in reports.
    fn name(&self) -> &str;

    /// Puts the next operations into `batch`, which has been cleared; false at the end. The last operation before them
    /// has been fetched at `now`.
    ///
    /// # Errors
    /// A trace is broken.
    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError>;

    /// Handles a store to the write-protected page of `line`, which has trapped at `now`: changes the page table, and
    /// puts into `batch` what a core executes until the store can be repeated.
    ///
    /// # Panics
    /// Unless the source has an address space of pages that can be protected.
    fn fault(&mut self, _now: Time, line: Virtual, _batch: &mut Batch) {
        panic!("line {} is write-protected by nobody", line.0);
    }

    /// Whether the source wants to hear of stores.
    fn watches_stores(&self) -> bool {
        false
    }

    /// Hears that `bytes` have been stored in `line` from byte `from` on.
    fn stored(&mut self, _line: Virtual, _from: u8, _bytes: &[u8]) {}

    /// Lines that hold logs.
    fn log_lines(&self) -> Lines {
        Lines::NONE
    }

    /// The number of its 4 KiB pages, if each of its lines lies at its own number.
    fn pages(&self) -> u64 {
        0
    }

    /// The locks that its core holds at the beginning.
    fn holds(&self) -> Vec<u64> {
        Vec::new()
    }
}

impl<S: OpSource + ?Sized> OpSource for &mut S {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        (**self).refill(now, batch)
    }

    fn fault(&mut self, now: Time, line: Virtual, batch: &mut Batch) {
        (**self).fault(now, line, batch);
    }

    fn watches_stores(&self) -> bool {
        (**self).watches_stores()
    }

    fn stored(&mut self, line: Virtual, from: u8, bytes: &[u8]) {
        (**self).stored(line, from, bytes);
    }

    fn log_lines(&self) -> Lines {
        (**self).log_lines()
    }

    fn pages(&self) -> u64 {
        (**self).pages()
    }

    fn holds(&self) -> Vec<u64> {
        (**self).holds()
    }
}
