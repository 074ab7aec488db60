//! What a write does to phase-change cells: which of a line's bits are programmed, how long that takes and what it
//! costs. Left as it is, a write takes `tWP` and `write_nj` whatever it changes.
//!
//! Sources: data-comparison write (Yang et al., ISCAS 2007), Flip-N-Write (Cho and Lee, MICRO 2009), the two stages of a
//! write (Yue and Zhu, HPCA 2013); four levels a cell: 00 is RESET, 11 is SET, and the levels between are RESET and
//! then SET several times, as in NVMain (`SubArray.cpp`, `PCM_MLC_example.config`). Left out: numbers of pulses that differ
//! between cells of a level, drift.

use super::parts::Part;
use crate::line::LINE_BYTES;
use crate::mechanisms::mechanisms;
use crate::settings::{Allowed, Needs, Origin, Row, Settings, Value, keys, words};
use crate::units::Time;

/// The bits of a written word that are programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// All bits are programmed.
    #[default]
    Whole,
    /// Only bits that change are, which a read before the write finds.
    Changed,
    /// Of a group of bits or of its inverse, whichever changes fewer, only bits that change are programmed. A bit
    /// beside the group says which it is.
    FlipNWrite,
}

words!(Coding { "whole" => Whole, "changed" => Changed, "flip-n-write" => FlipNWrite });

keys! {
    CODING: Coding = word("medium.cells.coding", "whole"),
        Source("ESD, SCA and EASY-PM give a write one latency and one energy, whatever it changes"),
        "Which bits of a written word are programmed: whole, changed (data-comparison write), or flip-n-write";
}

const fn row(name: &'static str, value: Value, allowed: Allowed, meaning: &'static str) -> Row {
    let none = Origin::Source("a machine says nothing of it unless it programs cells one by one");
    Row {
        default: Some((value, none)),
        ..Row::required(name, allowed, meaning)
    }
}

const INVERTS: Needs = Needs {
    met: |settings| settings.get(&CODING) == Coding::FlipNWrite,
    switches: &["medium.cells.coding"],
    what: "medium.cells.coding is flip-n-write",
};
const IN_ROUNDS: Needs = Needs {
    met: |settings| matches!(settings.find("medium.cells.budget"), Some(Value::Int(1..))),
    switches: &["medium.cells.budget"],
    what: "medium.cells.budget is more than 0",
};

const FOUR_LEVELS: Needs = Needs {
    met: |settings| matches!(settings.find("medium.cells.bits"), Some(Value::Int(2))),
    switches: &["medium.cells.bits"],
    what: "medium.cells.bits is 2",
};

mechanisms! {
    GROUP_INVERTED = "groups of cells inverted", least 30;
}

/// The crash explorer's knowledge of groups that are kept inverted.
pub static PART: Part = Part {
    met: INVERTS.met,
    keys: &[],
    tries: MECHANISMS,
    limits: &[],
};

const fn pulses(name: &'static str, sets: u64, meaning: &'static str) -> Row {
    let example = Origin::Source("NVMain's example of cells of two bits (PCM_MLC_example.config)");
    Row {
        default: Some((Value::Int(sets), example)),
        ..Row::required(name, Allowed::Int { min: 0, max: 64 }, meaning)
    }
    .needing(FOUR_LEVELS)
}

/// The parameters of programming cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellParams {
    /// The bits that are programmed.
    pub coding: Coding,
    /// Bits of a cell: 1, or 2 for four levels.
    pub bits: u64,
    /// SETs that bring a cell of two bits to 00, 01, 10 and 11, where the right bit is the lower one. All levels except
    /// 11 get a RESET first.
    pub pulses: [u64; 4],
    /// The number of times that a cell is sensed to be read, each time for tRCD.
    pub sensings: u64,
    /// Bits of a group of Flip-N-Write.
    pub group: usize,
    /// RESETs at once, at most; 0 means no limit.
    pub budget: u64,
    /// SETs that take the power of one RESET.
    pub sets_per_reset: u64,
    /// The time of a SET; zero means the array write's.
    pub set: Time,
    /// The time of a RESET; zero means the array write's.
    pub reset: Time,
}

impl CellParams {
    /// The parameters of cells.
    pub const ROWS: &'static [Row] = &[
        row(
            "medium.cells.bits",
            Value::Int(1),
            Allowed::Int { min: 1, max: 2 },
            "Bits of a cell: 1, or 2 in four levels, of which those between take a RESET and several SETs",
        ),
        pulses(
            "medium.cells.sets_00",
            0,
            "SETs of a cell of two bits to 00, after its RESET",
        ),
        pulses(
            "medium.cells.sets_01",
            7,
            "SETs of a cell of two bits to 01, after its RESET; 1 is the lower bit",
        ),
        pulses(
            "medium.cells.sets_10",
            5,
            "SETs of a cell of two bits to 10, after its RESET",
        ),
        pulses(
            "medium.cells.sets_11",
            1,
            "SETs of a cell of two bits to 11, without a RESET",
        ),
        Row {
            default: Some((
                Value::Int(2),
                Origin::Assumed(
                    "a sensing for each bit, one after the other; machines give the time of one",
                ),
            )),
            ..Row::required(
                "medium.cells.sensings",
                Allowed::Int { min: 1, max: 4 },
                "How often a cell of two bits is sensed to be read, each time for tRCD",
            )
        }
        .needing(FOUR_LEVELS),
        row(
            "medium.cells.group",
            Value::Int(32),
            Allowed::PowerOfTwo { min: 8, max: 64 },
            "Bits of a group that Flip-N-Write keeps as they are or inverted",
        )
        .needing(INVERTS),
        row(
            "medium.cells.budget",
            Value::Int(0),
            Allowed::Int { min: 0, max: 1024 },
            "Power budget of a line's write: RESETs at once, at most; 0 is any number",
        ),
        row(
            "medium.cells.sets_per_reset",
            Value::Int(2),
            Allowed::Int { min: 1, max: 64 },
            "SETs that take the power of one RESET",
        )
        .needing(IN_ROUNDS),
        row(
            "medium.cells.set_ns",
            Value::Time(Time::ZERO),
            crate::settings::latency(),
            "Time to SET cells (to 1); 0 is the array write's tWP",
        ),
        row(
            "medium.cells.reset_ns",
            Value::Time(Time::ZERO),
            crate::settings::latency(),
            "Time to RESET cells (to 0); 0 is the array write's tWP",
        ),
    ];

    /// The parameters in `settings`; `None` if all writes take equally long.
    pub fn from_settings(settings: &Settings) -> Option<CellParams> {
        let int = |name: &str, none: u64| match settings.find(name) {
            Some(Value::Int(value)) => value,
            _ => none,
        };
        let time = |name: &str| match settings.find(name) {
            Some(Value::Time(time)) => time,
            _ => Time::ZERO,
        };
        let bits = int("medium.cells.bits", 1);
        let cells = CellParams {
            coding: settings.get(&CODING),
            bits,
            pulses: [
                int("medium.cells.sets_00", 0),
                int("medium.cells.sets_01", 7),
                int("medium.cells.sets_10", 5),
                int("medium.cells.sets_11", 1),
            ],
            sensings: match bits {
                1 => 1,
                _ => int("medium.cells.sensings", 2),
            },
            group: int("medium.cells.group", 32) as usize,
            budget: int("medium.cells.budget", 0),
            sets_per_reset: int("medium.cells.sets_per_reset", 2),
            set: time("medium.cells.set_ns"),
            reset: time("medium.cells.reset_ns"),
        };
        let any = cells.coding != Coding::Whole
            || cells.bits > 1
            || cells.budget > 0
            || cells.set > Time::ZERO
            || cells.reset > Time::ZERO;
        any.then_some(cells)
    }

    /// The number of cells in a line.
    pub fn cells(&self) -> u64 {
        LINE_BYTES as u64 * 8 / self.bits
    }
}
