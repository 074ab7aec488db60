//! A register over all MACs, so that old lines are refused: what it follows, and what is compared with it.

use crate::fault::{Fault, rows};
use crate::own_root::{Slip, rooted};
use crate::plans::{LOGGED, SMALL};

pub const FAULTS: &[Fault] = rows! { "identity+sca@*", SMALL;
    "register-not-compared" rooted(NotCompared)
        "A recovery does not compare with the register." [Attacks: Undetected]
    "register-half-compared" rooted(HalfCompared)
        "A recovery compares four bits of the register." [Attacks: Undetected]
    "sum-of-half" rooted(SumOfHalf)
        "The register is of the first half of each line of MACs." [Attacks: Undetected]
    "odd-not-summed" rooted(OddNotSummed)
        "The register does not follow every other line of MACs." [Attacks: Undetected]
    "sum-of-first" rooted(SumOfFirst)
        "The register follows the first line of MACs." [Attacks: Undetected]
    "macs-from-memory" rooted(MacsFromMemory)
        "Lines of MACs are not verified when they come from memory." [Attacks: Undetected]
};

pub const DUMPED: &[Fault] = rows! { "hw-log/identity+sca@*", LOGGED;
    "sum-not-dumped" rooted(NotDumped)
        "The register does not follow what reserve power dumps." [Cuts: NotAuthentic]
};
