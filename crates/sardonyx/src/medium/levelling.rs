//! How the medium's lines are moved so that all wear alike: Start-Gap (Qureshi et al., MICRO 2009). Parameters only;
//! what moves lines is `plan/start_gap`. The paper says how lines move and not what of it survives a power cut: each
//! reading of that has a name.
//!
//! Left out: the paper's randomised address before Start-Gap, and its regions against an attacker.

use super::parts::Part;
use crate::mechanisms::mechanisms;
use crate::settings::{Limit, Needs, Reached, Settings, keys, words};

/// Whether lines are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// A place is one line of the array for ever.
    #[default]
    None,
    /// A gap moves through each region, and all lines with it.
    StartGap,
}

words!(Scheme { "none" => None, "start-gap" => StartGap });

/// The way in which a region's start and gap survive a power cut, apart from the line that has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registers {
    /// Registers on chip hold them. They change when the moved line is accepted, and reserve power dumps them.
    #[default]
    Reserve,
    /// A line of the medium holds them, which is accepted with the moved line or not at all.
    Group,
    /// A line of the medium holds them, which is accepted after the moved line. Writes of that line and the region's
    /// next move wait for it.
    After,
    /// A line of the medium holds them, which is accepted after the moved line, and nothing waits for it: for the crash
    /// explorer to catch.
    Late,
    /// A line of the medium holds them, which is accepted before the moved line: for the crash explorer to catch.
    Before,
    /// As `Group`, but with eight bits of the number of moves: for the crash explorer to catch.
    Byte,
    /// As `Group`, but with sixteen bits of the number of moves: for the crash explorer to catch.
    TwoBytes,
}

words!(Registers {
    "reserve" => Reserve, "group" => Group, "after" => After, "late" => Late, "before" => Before,
    "byte" => Byte, "two-bytes" => TwoBytes
});

const MOVES: Needs = Needs {
    met: |settings| settings.get(&SCHEME) != Scheme::None,
    switches: &["medium.levelling.scheme"],
    what: "medium.levelling.scheme is start-gap",
};

keys! {
    SCHEME: Scheme = word("medium.levelling.scheme", "none"),
        Source("ESD, SCA and EASY-PM leave lines where they are"),
        "Which lines are moved so that all wear alike: none, or each region's by Start-Gap (Qureshi et al., MICRO 2009)";
    WRITES_PER_MOVE: u64 = int("medium.levelling.writes_per_move", (1, 1 << 30), 100),
        Source("MICRO 2009: one write in a hundred is a move"),
        "Writes of a region after which a line of it moves by one place" needs MOVES
        under |by| (by.short || by.limits).then_some(2);
    REGION_LINES: u64 = int("medium.levelling.region_lines", (2, 1 << 24), 262_144),
        Assumed("16 MB; the paper has a bank's lines in one region, and smaller ones against attackers"),
        "Lines of a region, which has one more place than lines"
        in Between("4096", "16777216", "256 KB to 1 GB, a bank's share") needs MOVES
        under |by| if by.limits { Some(8) } else { by.short.then_some(64) };
    FIRST_MOVE: u64 = int("medium.levelling.first_move", (0, 1 << 60), 0),
        Source("for the crash explorer: a machine that has run for long"),
        "Moves that each region has made before" needs MOVES;
    REGISTERS: Registers = word("medium.levelling.registers", "reserve"),
        Assumed("the paper has two registers a region in the controller, and no power cut"),
        "How start and gap survive a power cut: dumped by reserve power, or in a line that is accepted as a \
         group with the moved line or after it; late, before, byte and two-bytes are for the crash explorer to catch" needs MOVES;
}

mechanisms! {
    LINE_MOVED = "moved lines", least 30;
    GAP_ROUND = "rounds of a gap", least 30, by &[("medium.levelling.region_lines", 8)];
    REGION_ROUND = "rounds of a region", least 1, by &[("medium.levelling.region_lines", 2)];
}

/// The crash explorer's knowledge of wear levelling: lines move often and come round.
pub static PART: Part = Part {
    met: MOVES.met,
    keys: &[&WRITES_PER_MOVE, &REGION_LINES],
    tries: MECHANISMS,
    limits: &[Limit {
        name: "moves of a region",
        bits: u64::BITS,
        begins: Some(&FIRST_MOVE),
        pads: false,
        reached: Reached::Near {
            bits: &[8, 16, 32],
            below: 64,
        },
    }],
};

/// The parameters of wear levelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevellingParams {
    /// The number of moves that each region has made before.
    pub first_move: u64,
    /// Writes of a region for each move.
    pub writes_per_move: u64,
    /// Lines of a region.
    pub region_lines: u64,
    /// The way in which the registers survive, and the order of their writes.
    pub registers: Registers,
}

impl LevellingParams {
    /// The parameters in `settings`; `None` if lines stay where they are.
    pub fn from_settings(settings: &Settings) -> Option<LevellingParams> {
        (settings.get(&SCHEME) == Scheme::StartGap).then(|| LevellingParams {
            first_move: settings.get(&FIRST_MOVE),
            writes_per_move: settings.get(&WRITES_PER_MOVE),
            region_lines: settings.get(&REGION_LINES),
            registers: settings.get(&REGISTERS),
        })
    }
}

/// Rotations of a region until the first of its places has had `endurance` writes, if in each of them line `i` adds
/// `writes[i]` to its place. A place holds a line for one rotation and then the line before it.
pub fn rotations(writes: &[f64], endurance: f64) -> f64 {
    let (lines, all) = (writes.len(), writes.iter().sum::<f64>());
    let rounds = (endurance / all).floor();
    let left = endurance - rounds * all;
    // From each line on, backwards: so many whole lines, then a part of one.
    let back = |line: usize| writes[lines - 1 - line % lines];
    let (mut shortest, mut sum, mut end) = (lines as f64, 0.0, 0);
    for first in 0..lines {
        while sum + back(end) < left && end - first < lines {
            sum += back(end);
            end += 1;
        }
        let part = ((left - sum) / back(end)).max(0.0);
        shortest = shortest.min((end - first) as f64 + part);
        sum = (sum - back(first)).max(0.0);
        end = end.max(first + 1);
    }
    rounds * lines as f64 + shortest
}
