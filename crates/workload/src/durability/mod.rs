//! What makes a program's transactions persistent as a whole or not at all, and what it does first
//! after a power cut. A program's own code knows nothing of it.

mod hardware;
mod mutant;
mod software_undo;

use std::ops::Range;

use super::{Bytes, COUNTER_SPAN, Fault, PersistentMemory, Sharing};
use hardware::Hardware;
pub use mutant::Mutant;
use sardonyx::controller::designs::Stack;
use sardonyx::line::{LINE_BYTES, Line};
pub use software_undo::Header;
use software_undo::SoftwareUndo;

/// How transactions become durable.
pub trait Durability: Send {
    /// The bytes of the region that it keeps for itself: the log, if software writes one.
    fn log_bytes(&self) -> Range<u64>;

    /// Begins transaction `number`.
    fn begin<'m>(
        &self,
        number: u64,
        memory: &'m mut dyn PersistentMemory,
    ) -> Box<dyn Transaction + 'm>;

    /// Makes transaction `number` visible, which changes nothing else. By default it is one like the others.
    fn store(&self, number: u64, memory: &mut dyn PersistentMemory) {
        self.begin(number, memory).commit();
    }

    /// Rolls back what was under way in a `region` when the power was cut. Knows nothing but the
    /// bytes; may be cut short and run again.
    ///
    /// # Errors
    /// The bytes make no sense; nothing has been changed then.
    fn recover(
        &self,
        memory: &mut dyn PersistentMemory,
        region: Range<u64>,
    ) -> Result<Recovered, Fault>;

    /// The log's content, be it sensible or not, for explaining a failure.
    fn log(&self, memory: &mut dyn PersistentMemory) -> LoggedItems;
}

/// A transaction under way: a structure's code loads from it and stores to it as if there were none.
pub trait Transaction: Bytes {
    /// Makes all that was stored persistent, or after a power cut nothing.
    fn commit(self: Box<Self>);
}

/// The content of an undo log, as it is in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedItems {
    /// The word that says whether the entries are to be put back: 0 or 1.
    pub valid: u64,
    /// The transaction that it belongs to, or the last visible one.
    pub transaction: u64,
    /// The number of its entries.
    pub entries: u64,
    /// The entries that there can be: the offset in the region, and the line's old content.
    pub lines: Vec<(u64, Line)>,
}

/// The findings of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last transaction that is visible, 0 for none.
    pub visible: u64,
    /// Lines put back from the undo log.
    pub restored: u64,
}

/// The durability that a program runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityKind {
    /// SCA's undo log, written by the program.
    SoftwareUndo {
        /// The mistake, or the unneeded work, in its transactions.
        mutant: Option<Mutant>,
    },
    /// The hardware's log; the program says where transactions begin and end.
    Hardware,
}

impl Default for DurabilityKind {
    fn default() -> DurabilityKind {
        DurabilityKind::SoftwareUndo { mutant: None }
    }
}

impl DurabilityKind {
    /// The mistake, or the unneeded work, in its transactions.
    pub fn mutant(self) -> Option<Mutant> {
        match self {
            DurabilityKind::SoftwareUndo { mutant } => mutant,
            DurabilityKind::Hardware => None,
        }
    }

    /// The durability for such a stack: the hardware's log if the stack has one, else SCA's undo log.
    pub fn on(stack: &Stack) -> DurabilityKind {
        match stack.keeps_log() {
            true => DurabilityKind::Hardware,
            false => DurabilityKind::default(),
        }
    }

    /// Makes the durability of one of the cores that share the region, for transactions that change up to `lines`
    /// lines. Its own data follow the root line.
    pub(super) fn build(
        self,
        sharing: Sharing,
        lines: u64,
        (core, cores): (u64, u64),
    ) -> Box<dyn Durability> {
        let start = match sharing.is_apart() {
            true => COUNTER_SPAN,
            false => LINE_BYTES as u64,
        };
        match self {
            DurabilityKind::Hardware => Box::new(Hardware::new(sharing, start, (core, cores))),
            DurabilityKind::SoftwareUndo { mutant } => {
                let mut log = SoftwareUndo {
                    start,
                    sharing,
                    capacity: lines,
                    mutant,
                };
                let Range { start, end } = log.log_bytes();
                log.start += core * (end - start);
                Box::new(log)
            }
        }
    }
}
