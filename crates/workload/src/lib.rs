//! Persistent programs: data structures written once against [`PersistentMemory`], and what makes their
//! transactions durable (SCA, HPCA 2018, Fig. 9 and Sec. 6.2). They run functionally, ahead of the
//! timed cores, which play the operations that they make. `docs/simulator/programs.md` adds one.

mod contents;
mod durability;
mod flat;
mod programs;
pub(crate) mod random;
mod run;
mod shared;
mod sharing;
mod spec;
pub mod timed;

pub use contents::{Class, Contents, drawn as drawn_content, twin_of};
pub use durability::Header;
pub use durability::{Durability, DurabilityKind, LoggedItems, Mutant, Recovered, Transaction};
pub use flat::Flat;
pub use programs::{Program, ProgramFile};
pub use run::ProgramRun;
pub use sardonyx::machine::{Bytes, COUNTER_SPAN, Mark, Numbers, PersistentMemory, Phase};
pub use shared::{RECOVERING, SharedRun};
pub use sharing::Sharing;
pub use spec::{Fault, ProgramSpec, SpecError, Workload};

/// The programs of which each core has a copy of its own.
pub fn all() -> &'static [ProgramFile] {
    programs::PROGRAMS
}

/// The programs that all cores share, for the crash explorer.
pub fn shared() -> &'static [ProgramFile] {
    programs::SHARED
}
