//! The reasons why a run cannot be made, each with what to give instead.

use sardonyx::config::ConfigError;
use sardonyx::controller::designs::UnknownDesign;
use sardonyx::exhausted::Exhausted;
use sardonyx::machine::RunError;
use sardonyx_workload::SpecError;

pub type Result<T, E = HistoryError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    #[error(transparent)]
    Program(#[from] SpecError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    #[error(transparent)]
    Machine(#[from] ConfigError),
    #[error(
        "the run needs about {:.1} GiB of memory, and {:.1} GiB are free; give a smaller footprint, or \
         fewer transactions or cores",
        *needed as f64 / (1u64 << 30) as f64, *free as f64 / (1u64 << 30) as f64
    )]
    Memory {
        /// The bytes that the run needs.
        needed: u64,
        free: u64,
    },
    #[error(
        "the programs' {end} lines do not fit in the machine's {there}; give a smaller footprint, fewer transactions \
         or cores, or a larger machine"
    )]
    Room {
        /// The line after the last one of the programs.
        end: u64,
        there: u64,
    },
    #[error(
        "pages.crash_short = {short}: is more than the run has places or buckets; give {most} at most"
    )]
    Short {
        /// The value as it was set.
        short: u64,
        most: u64,
    },
    /// At an overflow of versions a scheme writes the MACs beside 63 other lines anew, and the lines with them. What a
    /// cut leaves of that is not what the schemes promise.
    #[error(
        "{design} cannot be cut under integrity.mac_place=beside with versions that overflow; give \
         integrity.minor_bits=0 too, or integrity.mac_place=region"
    )]
    OverflowBeside {
        /// The design.
        design: String,
    },
    #[error(
        "drain.lines asks what a cut costs, and a plan what it leaves; leave it out, or ask `sardonyx compare`"
    )]
    Drains,
    #[error("the run ends early, which is a bug in the design or in Sardonyx: {0}")]
    Broken(String),
    #[error("{0}")]
    Cuts(String),
}
