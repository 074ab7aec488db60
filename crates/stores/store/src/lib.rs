//! Block stores that keep equal blocks once: a resistive content-addressable memory (ReCAM) that
//! compares inside the array, and the conventional rival with a hash index.
//!
//! Follows Kaplan, Yavits, Morad, Ginosar, "Deduplication in Resistive Content Addressable Memory
//! Based Solid State Drive". Left out: how a store is put behind a block device.
#![forbid(unsafe_code)]

mod block_trace;
mod compare;
mod conventional;
mod designs;
mod fingerprint;
mod fiu;
mod ledger;
mod operation;
mod outcome;
mod parameters;
mod question;
mod recam;
mod store;
mod synthetic;
mod workload;

pub use block_trace::BlockTrace;
pub use compare::{Asked, Question, Tell};
pub use conventional::{Activity, Conventional, ConventionalOptions, CostModel, PowerDraw};
pub use designs::{
    Assumed, Build, DESIGNS, Design, Job, Key, KeyKind, Keys, Named, Needs, Opened, Room, Running,
};
pub use fingerprint::{fingerprint, sha1};
pub use fiu::FiuRequest;
pub use ledger::{Action, CostLedger, LedgerStep, Log, Purpose, RowWork};
pub use operation::{Content, Operation, WorkloadError};
pub use outcome::RunError;
pub use parameters::{Bracket, Compare, Energies, First, Overwrite, Parameters, ParametersError};
pub use question::Comparison;
pub use recam::{BlockContents, InMemory, Recam, Regenerated};
pub use store::{Cost, Error, Lba, Outcome, Store, Totals};
pub use synthetic::Made;
pub use workload::{Stream, Tree, Workload};
