//! Where a program's lines lie: which of them share a line of counters, and whether two cores do.
//! SCA's programs keep what is written at different times apart; the crash explorer shares all that
//! can be shared.

use sardonyx::machine::COUNTER_SPAN;

/// The sharing of lines of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody shares: the root, the log's header, each block of the log, the heap and each core's region begin a line
    /// of counters.
    #[default]
    Apart,
    /// The parts of one core share: header, log and heap follow each other without a gap.
    Packed,
    /// All cores share: the parts are packed, and the lines of so many cores, a power of two, alternate.
    Interleaved {
        /// The number of cores. If fewer run, gaps are left.
        cores: u64,
    },
}

impl Sharing {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sharing::Apart => "apart",
            Sharing::Packed => "packed",
            Sharing::Interleaved { .. } => "interleaved",
        }
    }

    /// The sharing of that name, for this number of cores.
    pub fn named(name: &str, cores: usize) -> Option<Sharing> {
        let cores = cores.next_power_of_two() as u64;
        let all = [
            Sharing::Apart,
            Sharing::Packed,
            Sharing::Interleaved { cores },
        ];
        all.into_iter().find(|sharing| sharing.name() == name)
    }

    /// The distance from one line of a region to the next.
    pub fn stride(self) -> u64 {
        match self {
            Sharing::Interleaved { cores } => cores,
            Sharing::Apart | Sharing::Packed => 1,
        }
    }

    /// Consecutive bytes of a region, aligned, whose counters one write-back covers.
    pub fn span(self) -> u64 {
        (COUNTER_SPAN / self.stride()).max(64)
    }

    /// Whether a log's header has a line of counters of its own, and the heap begins one.
    pub fn is_apart(self) -> bool {
        self == Sharing::Apart
    }
}
