//! Power cuts: one timed run writes a journal, and a cut is a position in it. What survives is given to a fresh
//! controller and to the program's own recovery, and is then checked.
//!
//! `docs/crash/explorer.md` says what is compared. The possible faults here are a power cut at any position, also
//! within recovery, and on the platform `none` a torn line. Reserve power never fails here. An attacker who writes is
//! apart (`attacker`); a stack whose integrity promises to notice him is broken if it does not.

mod attacker;
mod check;
mod exhaustive;
mod explore;
mod history;
mod options;
mod panics;
mod platform;
mod recovery_cost;
mod schedule;
pub mod secrecy;
mod stages;
mod verdict;

pub use attacker::attack;
pub use attacker::report::{Attack, Attacked, Attacks, OneAttack, When};
pub use check::journal as audit;
pub use check::{Checker, LiveLines};
pub use exhaustive::{Exhaustive, InOrder, Proof, ShownInAll};
pub use explore::explore;
pub use history::golden::Expected;
pub use history::recording::{Readable, readable};
pub use history::run::Run;
pub use history::{History, HistoryError};
pub use options::{Cuts, Options};
pub use platform::cut::survivors;
pub use platform::{Platform, Tear};
pub use recovery_cost::{Filled, Restart, restart};
pub use schedule::Trial;
pub use stages::{Shown, Stage, stages};
pub use verdict::attacks::AttackReport;
pub use verdict::coverage::{Lack, Need, mechanisms};
pub use verdict::explanation::explain;
pub use verdict::findings::{Covered, ExploredCuts};
pub use verdict::passes::{Row, Tried};
pub use verdict::report::{Once, OneRun, Stages, Told, Verdict};
pub use verdict::shrink::Size;
pub use verdict::violation::{Kind, Tally, Violation};
