//! Refreshes: of whole ranks or of some of a rank's banks, and their turns.

use super::bank_groups::BankGroups;
use super::timing::{Cycles, Timing};
use super::{MAX_BANKS, cycles, int};
use crate::settings::{Allowed, Needs, Origin, Row, Settings, Value, keys, words};

/// The moments at which the ranks of a channel are refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Ranks take turns, so that the others go on meanwhile, as in DRAMsim3 and NVMain.
    InTurn,
    /// All ranks at once, as in Ramulator 2.1 unless its `scatter_interval` is given.
    Together,
}

words!(Turns { "in-turn" => InTurn, "together" => Together });

keys! {
    SINGLY: bool = flag("medium.refresh.closes_singly", false),
        Source("one command closes all; in DRAMsim3 each bank has its own"),
        "Whether the open banks of a refresh are closed one by one, each as soon as it may";
    TURNS: Turns = word("medium.refresh.ranks", "in-turn"),
        Source("DRAMsim3 and NVMain; in Ramulator 2.1 all at once"),
        "Whether the refreshes of a channel's ranks are due one after the other, or together";
}

const BANKS: &str = "medium.refresh.banks";
const SET: &str = "medium.timing.tRFCsb";

const OF_SETS: Needs = Needs {
    met: |settings| settings.named::<u64>(SET) > 0,
    switches: &[SET],
    what: "medium.timing.tRFCsb is more than 0",
};

/// How ranks are refreshed. A rank's banks that are refreshed together have successive numbers.
#[allow(non_snake_case)]
#[derive(Clone, Debug, PartialEq)]
pub struct Refreshes {
    /// The length of a refresh of some of a rank's banks; 0 means that all are refreshed at once, for tRFC.
    pub tRFCsb: Cycles,
    /// The time from such a refresh to an activate of the rank's other banks.
    pub tREFSBRD: Cycles,
    /// The time from such a refresh to the rank's next; 0 for tRFCsb.
    pub tRREFD: Cycles,
    /// The banks of such a refresh; 0 for one of each bank group (DDR5's REFsb).
    pub banks: u64,
    /// Whether a refresh's banks are closed one by one.
    pub closes_singly: bool,
    /// Whether ranks take turns.
    pub turns: Turns,
}

impl Refreshes {
    const fn of_sets(name: &'static str, kind: Allowed, meaning: &'static str) -> Row {
        let none = Origin::Source("refreshes of whole ranks");
        Row {
            default: Some((Value::Int(0), none)),
            ..Row::required(name, kind, meaning)
        }
    }

    /// The parameters of refreshes of some banks.
    pub const ROWS: &'static [Row] = &[
        Refreshes::of_sets(
            SET,
            cycles(0),
            "Length of a refresh of some of a rank's banks; 0: all banks at once, for tRFC",
        ),
        Refreshes::of_sets(
            "medium.timing.tREFSBRD",
            cycles(0),
            "From such a refresh to an activate of the rank's other banks",
        )
        .needing(OF_SETS),
        Refreshes::of_sets(
            "medium.timing.tRREFD",
            cycles(0),
            "From such a refresh to one of the rank's other banks; 0 for tRFCsb",
        )
        .needing(OF_SETS),
        Refreshes::of_sets(
            BANKS,
            int(0, MAX_BANKS as u64),
            "Banks of such a refresh; 0 for one of each bank group",
        )
        .needing(OF_SETS),
    ];

    pub(super) fn from_settings(settings: &Settings) -> Refreshes {
        let of = |name| settings.named(name);
        Refreshes {
            tRFCsb: of(SET),
            tREFSBRD: of("medium.timing.tREFSBRD"),
            tRREFD: of("medium.timing.tRREFD"),
            banks: of(BANKS),
            closes_singly: settings.get(&SINGLY),
            turns: settings.get(&TURNS),
        }
    }

    /// The number of a rank's `banks` that are refreshed together.
    #[must_use]
    pub fn together(&self, banks: u64, groups: &BankGroups) -> u64 {
        match (self.tRFCsb, self.banks) {
            (0, _) => banks,
            (_, 0) => groups.count,
            (_, some) => some,
        }
    }

    /// The cycles of a refresh.
    #[must_use]
    pub fn length(&self, timing: &Timing) -> Cycles {
        match self.tRFCsb {
            0 => timing.tRFC,
            some => some,
        }
    }

    /// The cycles from a refresh of some banks to one of the rank's others.
    #[must_use]
    pub fn apart(&self) -> Cycles {
        match self.tRREFD {
            0 => self.tRFCsb,
            apart => apart,
        }
    }
}
