//! MACs: what they cover, what is verified, and whether they persist with their lines.

use crate::fault::{Fault, rows};
use crate::own_guard::{Slip, own};
use crate::plans::{ATTACKED, ENUMERATED, LOGGED, SMALL};

pub const UNNOTICED: &[Fault] = rows! { "identity+sca@*", SMALL;
    "mac-without-place" own(WithoutPlace)
        "The MAC does not depend on the place." [Requests: Undetected, Attacks: Undetected]
    "mac-half-line" own(HalfLine)
        "The MAC is of the first half of the line." [Attacks: Undetected]
    "mac-skips-last-byte" own(SkipsLastByte)
        "The MAC is not of the last byte of the line." [Attacks: Undetected]
    "mac-of-xor" own(XorOfWords)
        "The MAC is of the exclusive or of the line's words." [Attacks: Undetected]
    "tables-unverified" own(TablesUnverified)
        "Lines of tables, counters and logs are not verified." [Attacks: Undetected]
    "data-unverified" own(DataUnverified)
        "Lines of data are not verified." [Requests: Undetected, Attacks: Undetected]
    "gone-line-believed" own(GoneBelieved)
        "A line that is not there is believed never to have been written." [Attacks: Undetected]
};

pub const BESIDE: &[Fault] = rows! { "identity+co-located@*", SMALL;
    "mac-without-beside" own(WithoutBeside)
        "The MAC is not of what lies beside the line." [Attacks: Undetected]
};

pub const REFUSED: &[Fault] = rows! { "identity+sca@*", SMALL;
    "mac-not-grouped" own(NotGrouped)
        "The MAC is not in one group with its line." [Cuts: NotAuthentic]
};

pub const DUMPED: &[Fault] = rows! { "hw-log/identity+sca@*", LOGGED;
    "mac-dump-forgotten" own(DumpForgotten)
        "Reserve power makes no MAC of what it dumps." [Cuts: NotAuthentic]
    "mac-dump-whole-line" own(DumpWholeLine)
        "Reserve power writes one MAC over all of its line." [Cuts: NotAuthentic]
};

/// One attack in 256 shows it.
pub const ATTACKED_OFTEN: &[Fault] = rows! { "identity+sca@*", ATTACKED;
    "mac-one-byte" own(OneByte)
        "The MAC has one byte." [Requests: Undetected, Attacks: Undetected]
};

/// Few places of a run differ in them, and no attack meets two MACs of so many bits that are the same.
pub const WIDTHS: &[Fault] = rows! { "identity+sca@*", SMALL;
    "mac-place-16" own(Place16)
        "The MAC is of 16 bits of the place." [Requests: Undetected]
    "mac-place-20" own(Place20)
        "The MAC is of 20 bits of the place." [Requests: Undetected]
    "mac-place-32" own(Place32)
        "The MAC is of 32 bits of the place." [Requests: Undetected]
    "mac-16-bits" own(Bits16)
        "Eight bytes of MAC follow from 16 bits." [Requests: Undetected]
    "mac-32-bits" own(Bits32)
        "The MAC has 32 bits." [Requests: Undetected]
    "mac-63-bits" own(Bits63)
        "A bit of the MAC is always set." [Requests: Undetected]
    "mac-32-bits-twice" own(BitsTwice)
        "The MAC has 32 bits, two times." [Requests: Undetected]
};

pub const LATE: &[Fault] = rows! { "identity+sca@*", SMALL;
    "verified-one-late" own(LateByOne)
        "A line is verified when the next is read, and used before." [Requests: Undetected, Attacks: Undetected]
    "verified-four-late" own(LateByFour)
        "A line is verified four reads late." [Requests: Undetected, Attacks: Undetected]
    "verified-eight-late" own(LateByEight)
        "A line is verified eight reads late." [Requests: Undetected, Attacks: Undetected]
};

/// No drawn attack is likely to meet them.
pub const LISTED: &[Fault] = rows! { "identity+sca@*", ENUMERATED;
    "mac-without-bit" own(WithoutBit)
        "One bit of a line is not in its MAC." [Enumerated: Undetected]
    "mac-without-byte" own(WithoutByte)
        "One byte of a line is not in its MAC." [Enumerated: Undetected]
    "mac-linear" own(Linear)
        "The MAC of a difference of lines is the difference of their MACs." [Enumerated: Undetected]
    "mac-without-place-bit" own(PlaceBit)
        "One bit of the place is not in the MAC." [Enumerated: Undetected]
    "mac-of-sorted-words" own(SortedWords)
        "The MAC is of the line's words in the order of their values." [Enumerated: Undetected]
    "mac-of-halves-added" own(HalvesAdded)
        "The MAC is of the sums of words of both halves." [Enumerated: Undetected]
};

/// Without pads contents are equal at two places.
pub const LISTED_PLAIN: &[Fault] = rows! { "identity+no-encryption@*", ENUMERATED;
    "mac-place-apart" own(PlaceApart)
        "What follows from the place is added to the MAC." [Enumerated: Undetected]
};

pub const LISTED_BESIDE: &[Fault] = rows! { "identity+co-located@*", ENUMERATED;
    "mac-linear-beside" own(Linear)
        "The MAC of a difference of lines is the difference of their MACs, under a counter." [Enumerated: Undetected]
};
