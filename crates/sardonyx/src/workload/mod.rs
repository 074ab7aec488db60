//! Persistent programs: five data structures written once against [`Memory`], each operation an
//! undo-log transaction (SCA, HPCA 2018, Fig. 9 and Sec. 6.2). They run functionally, ahead of the
//! timed cores, which play the operations that they make. `docs/programs.md` adds one.

mod flat;
mod program;
pub(crate) mod random;
mod run;
mod structures;
pub mod timed;
mod transaction;
mod undo_log;

pub use crate::machine::{COUNTER_SPAN, Mark, Memory, MemoryExt, Phase};
pub use flat::Flat;
pub use program::{Fault, Mutant, Program, ProgramSpec, Recovered};
pub use run::{Delta, LineChange, ProgramRun, SpecError};
pub use structures::Known;
pub use transaction::Transaction;
pub(crate) use undo_log::Header;
pub use undo_log::UndoLog;

/// Every program.
pub fn all() -> &'static [Known] {
    structures::PROGRAMS
}
