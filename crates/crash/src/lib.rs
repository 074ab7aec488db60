//! Power cuts: one timed run writes a journal, and a cut is a position in it. What survives is given to a fresh
//! controller and to the program's own recovery, and is then checked.
//!
//! `docs/crash-explorer.md` says what is compared. The possible faults here are a power cut at any position, also
//! within recovery, and on the platform `none` a torn line. Reserve power never fails here. An attacker who writes is
//! apart (`attacker`); a stack whose integrity promises to notice him is broken if it does not.

mod asked;
mod attacked;
mod attacker;
pub mod audit;
mod caught;
mod check;
mod cost;
mod cut;
mod exhaustive;
mod explain;
mod explore;
mod found;
mod golden;
mod history;
mod joint;
mod mapped;
mod narrow;
mod nested;
mod pass;
mod platform;
mod recorded;
mod reduce;
mod report;
mod restart;
mod rests;
pub mod secrecy;
mod stages;
mod trial;
mod tried;
mod violation;
mod whole;

pub use asked::{Cuts, Options};
pub use attacked::{Attack, AttackReport, Attacked, Attacks, OneAttack, When};
pub use attacker::attack;
pub use check::{Checker, Live};
pub use cut::survivors;
pub use exhaustive::{Exhaustive, InOrder, Proof, Shown as ShownInAll};
pub use explain::explain;
pub use explore::explore;
pub use found::{Covered, Explored};
pub use golden::Expected;
pub use history::{History, HistoryError};
pub use platform::{Platform, Tear};
pub use recorded::{Readable, readable};
pub use reduce::Size;
pub use report::{Once, OneRun, Run, Stages, Told, Verdict};
pub use restart::{Filled, Restart, restart};
pub use rests::{Lack, Need};
pub use stages::{Shown, Stage, stages};
pub use trial::Trial;
pub use tried::{Row, Tried};
pub use violation::{Kind, Tally, Violation};
