//! Timings that differ from others where a part has them: within a bank group, if a rank has several, and to a write.

use super::timing::{Cycles, Timing};
use super::{cycles, power_of_two};
use crate::settings::{Needs, Origin, Row, Settings, Value, keys};

const GROUPED: Needs = Needs {
    met: |settings| settings.named::<u64>(BankGroups::COUNT) > 1,
    switches: &[BankGroups::COUNT],
    what: "medium.geometry.groups is more than 1",
};

const RANKED: Needs = Needs {
    met: |settings| settings.named::<u64>("medium.geometry.ranks") > 1,
    switches: &["medium.geometry.ranks"],
    what: "medium.geometry.ranks is more than 1",
};

keys! {
    WRITES_TURN: bool = flag("medium.timing.tRTRS_writes", true),
        Source("NVMain; in DRAMsim3 and Ramulator 2.1 nothing parts writes to two ranks"),
        "Whether tRTRS parts the data of writes to two ranks, as it parts those of reads" needs RANKED;
}

/// Timings between commands to one bank group, where a rank has several. A bank's group is its number modulo the number
/// of groups.
#[allow(non_snake_case)]
#[derive(Clone, Debug, PartialEq)]
pub struct BankGroups {
    /// The number of groups in a rank.
    pub count: u64,
    /// Column command to column command, by a read and by a write, as [`Timing::tCCD`].
    pub tCCD: [Cycles; 2],
    /// Activate to activate, as [`Timing::tRRD`].
    pub tRRD: Cycles,
    /// End of write data to column read, as [`Timing::tWTR`].
    pub tWTR: Cycles,
    /// Activate to column write, in a group or not, as [`Timing::tRCD`].
    pub tRCDWR: Cycles,
    /// Precharge to precharge of a rank; 0 for none.
    pub tPPD: Cycles,
    /// Window of at most 32 activates of a rank; 0 for none.
    pub t32AW: Cycles,
    /// Column read to column write of a rank; 0 for as soon as the data bus is free.
    pub tRTW: Cycles,
    /// Whether [`Timing::tRTRS`] parts the data of writes to two ranks, as it parts those of reads.
    pub writes_turn: bool,
}

impl BankGroups {
    pub(super) const COUNT: &'static str = "medium.geometry.groups";
    const NONE: Origin = Origin::Source("no bank groups");

    const fn other(name: &'static str, default: &'static str, meaning: &'static str) -> Row {
        Row {
            default: Some((Value::Int(0), Origin::Source(default))),
            ..Row::required(name, cycles(0), meaning)
        }
    }

    const fn long(name: &'static str, meaning: &'static str) -> Row {
        BankGroups::other(name, "no bank groups", meaning).needing(GROUPED)
    }

    /// The parameters of bank groups.
    pub const ROWS: &'static [Row] = &[
        Row {
            default: Some((Value::Int(1), BankGroups::NONE)),
            ..Row::required(BankGroups::COUNT, power_of_two(16), "Bank groups of a rank")
        },
        BankGroups::long(
            "medium.timing.tCCD_L",
            "tCCD within a bank group; 0 for tCCD",
        ),
        BankGroups::long(
            "medium.timing.tCCD_L_WR",
            "The same from write to write; 0 for tCCD_L",
        ),
        BankGroups::long(
            "medium.timing.tRRD_L",
            "tRRD within a bank group; 0 for tRRD",
        ),
        BankGroups::long(
            "medium.timing.tWTR_L",
            "tWTR within a bank group; 0 for tWTR",
        ),
        BankGroups::other(
            "medium.timing.tRCDWR",
            "one tRCD for both, as DDR has it",
            "tRCD to a column write; 0 for tRCD",
        ),
        BankGroups::other(
            "medium.timing.tPPD",
            "DDR3 and DDR4 have none",
            "Precharge to precharge of a rank; 0 for none",
        ),
        BankGroups::other(
            "medium.timing.t32AW",
            "files of GDDR alone have one",
            "Window of at most 32 activates of a rank; 0 for none",
        ),
        BankGroups::other(
            "medium.timing.tRTW",
            "a write follows a read as soon as the bus is free; files of HBM3 give a time",
            "Column read to column write of a rank; 0 for as soon as the data bus is free",
        ),
    ];

    pub(super) fn from_settings(settings: &Settings) -> BankGroups {
        let long = |name| settings.named(name);
        BankGroups {
            count: settings.named(BankGroups::COUNT),
            tCCD: ["medium.timing.tCCD_L", "medium.timing.tCCD_L_WR"].map(long),
            tRRD: long("medium.timing.tRRD_L"),
            tWTR: long("medium.timing.tWTR_L"),
            tRCDWR: long("medium.timing.tRCDWR"),
            tPPD: long("medium.timing.tPPD"),
            t32AW: long("medium.timing.t32AW"),
            tRTW: long("medium.timing.tRTW"),
            writes_turn: settings.get(&WRITES_TURN),
        }
    }

    /// Resolves timings: 0 stands for the one between groups, or to a read.
    #[must_use]
    pub fn within(&self, between: &Timing) -> BankGroups {
        let or = |long, short| if long == 0 { short } else { long };
        let reads = or(self.tCCD[0], between.tCCD);
        BankGroups {
            count: self.count,
            tCCD: [reads, or(self.tCCD[1], reads)],
            tRRD: or(self.tRRD, between.tRRD),
            tWTR: or(self.tWTR, between.tWTR),
            tRCDWR: or(self.tRCDWR, between.tRCD),
            tPPD: self.tPPD,
            t32AW: self.t32AW,
            tRTW: self.tRTW,
            writes_turn: self.writes_turn,
        }
    }
}
