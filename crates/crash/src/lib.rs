//! Power cuts: one timed run writes a journal, and a cut is a position in it. What survives is given to a fresh
//! controller and to the program's own recovery, and is then checked.
//!
//! `docs/crash/explorer.md` says what is compared. The possible faults here are a power cut at any position, also
//! within recovery, and on the platform `none` a torn line. Reserve power never fails here. An attacker who writes is
//! apart (`attacker`); a stack whose integrity promises to notice him is broken if it does not.
//!
//! The rooms from the top down; each knows only rooms further down:
//! * `self_test` a plan over a design with a fault of `planted`
//! * `schedule` many runs, planned; `exhaustive` all orders of a small one; `recovery_cost` the time of a restart
//! * `verdict` what is concluded and reported; `one_run` a run and its cuts, as asked for; `explore` all cuts of a run
//! * `check` one cut, held against what must be true; `attacker` changes of the medium; `stages` SCA's Table 1
//! * `findings` what was found and how much was checked; `secrecy` what the bytes give away; `recording` a program
//!   that is only known by its stores; `options`
//! * `platform` what survives a cut; `probes` requests that fresh controllers handle; `explanation`, `memory`
//! * `history` the timed run; below it `pads` the encrypted lines of a run
//! * `violation`, `words`, `panics`: the vocabulary

mod attacker;
mod check;
mod exhaustive;
mod explanation;
mod explore;
mod findings;
mod history;
mod memory;
mod one_run;
mod options;
mod pads;
mod panics;
mod planted;
mod platform;
mod probes;
mod recording;
mod recovery_cost;
mod schedule;
pub mod secrecy;
mod self_test;
mod stages;
mod verdict;
mod violation;
mod words;

pub use attacker::attack;
pub use attacker::enumerated::{EnumeratedAttacks, enumerate};
pub use attacker::outcome::Attacked;
pub use check::journal as audit;
pub use check::{Checker, LiveLines};
pub use exhaustive::{Exhaustive, InOrder, Proof, ShownInAll};
pub use explanation::explain;
pub use explore::explore;
pub use findings::{Covered, ExploredCuts};
pub use history::golden::Expected;
pub use history::run::Run;
pub use history::{History, HistoryError};
pub use one_run::OneRun;
pub use options::{Attack, Attacks, Cuts, OneAttack, Options, When};
pub use planted::know as know_planted_faults;
pub use platform::cut::survivors;
pub use platform::{Platform, Tear};
pub use recording::{Readable, readable};
pub use recovery_cost::{Filled, Restart, restart};
pub use schedule::Trial;
pub use self_test::{PlantedFault, SelfTest};
pub use stages::{Shown, Stage, stages};
pub use verdict::attacks::AttackReport;
pub use verdict::coverage::{Lack, Need, mechanisms};
pub use verdict::passes::{Row, Tried};
pub use verdict::report::{Once, Stages, Verdict};
pub use verdict::shrink::Size;
pub use verdict::told::Told;
pub use violation::{Kind, Tally, Violation};
