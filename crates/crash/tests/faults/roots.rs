//! A register over all MACs, so that old lines are refused: what it follows, and what is compared with it.

use crate::fault::{Fault, rows};
use crate::own_root::{Slip, numbered, rooted};
use crate::plans::{ENUMERATED, LOGGED, SMALL};

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
    "last-two-accepted" rooted(LastTwo)
        "A recovery accepts what the register was before." [Cuts: NotAuthentic, Attacks: Undetected]
    "last-four-accepted" rooted(LastFour)
        "A recovery accepts one of the register's last four values." [Cuts: NotAuthentic, Attacks: Undetected]
    "last-eight-accepted" rooted(LastEight)
        "A recovery accepts one of the register's last eight values." [Cuts: NotAuthentic, Attacks: Undetected]
    "empty-believed" rooted(EmptyBelieved)
        "A medium without any MAC is taken for new." [Attacks: Undetected]
    "halves-believed" rooted(HalvesBelieved)
        "The register's sum over one half of all MACs does not count if none of them is there." [Attacks: Undetected]
    "eighths-believed" rooted(EighthsBelieved)
        "The register's sum over an eighth of all MACs does not count if none of them is there." [Attacks: Undetected]
};

/// Their control has versions of 16 bits (Versions), to which no small run comes.
pub const NUMBERED: &[Fault] = rows! { "identity+sca@*", SMALL;
    "version-of-two-bits" numbered(VersionsOfTwo)
        "Versions of two bits wrap around." [Attacks: Undetected]
    "version-of-three-bits" numbered(VersionsOfThree)
        "Versions of three bits wrap around." [Attacks: Undetected]
    "version-of-four-bits" numbered(VersionsOfFour)
        "Versions of four bits wrap around." [Attacks: Undetected]
};

pub const DUMPED: &[Fault] = rows! { "hw-log/identity+sca@*", LOGGED;
    "sum-not-dumped" rooted(NotDumped)
        "The register does not follow what reserve power dumps." [Cuts: NotAuthentic]
};

pub const LISTED: &[Fault] = rows! { "identity+sca@*", ENUMERATED;
    "versions-summed" numbered(VersionsSummed)
        "The register is of the sum of the versions in a line." [Enumerated: Undetected]
    "versions-xored" numbered(VersionsXored)
        "The register is of the exclusive or of the versions in a line." [Enumerated: Undetected]
    "versions-sorted" numbered(VersionsSorted)
        "The register is of the versions in a line, in the order of their values." [Enumerated: Undetected]
};

/// Without pads a line has equal contents at two times.
pub const LISTED_PLAIN: &[Fault] = rows! { "identity+no-encryption@*", ENUMERATED;
    "mac-version-apart" numbered(VersionApart)
        "What follows from the version is added to the MAC." [Enumerated: Undetected]
};
