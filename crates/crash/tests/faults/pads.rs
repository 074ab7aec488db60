//! Pads: what goes into them, and what they cover.

use crate::fault::{Fault, rows};
use crate::own_counters::{Slip, own};
use crate::plans::SMALL;

pub const FAULTS: &[Fault] = rows! { "identity+*", SMALL;
    "pad-constant" own(PadConstant)
        "One pad for all." [Cuts: PadReused, Requests: PadReused]
    "pad-without-place" own(PadWithoutPlace)
        "The pad does not depend on the place." [Requests: PadReused]
    "pad-without-counter" own(PadWithoutCounter)
        "The pad does not depend on the counter." [Cuts: PadReused, Requests: PadReused]
    "pad-without-key" own(PadWithoutKey)
        "The pad does not depend on the key." [Requests: KeyIgnored]
    "pad-counter-byte" own(PadCounterByte)
        "The low byte of the counter goes into the pad." [Cuts: PadReused, Requests: PadReused]
    "pad-counter-48" own(PadCounter48)
        "48 bits of the counter go into the pad." [Requests: PadReused]
    "pad-counter-hole" own(PadCounterHole)
        "The sixth byte of the counter does not go into the pad." [Requests: PadReused]
    "pad-place-16" own(PadPlace16)
        "16 bits of the place go into the pad." [Requests: PadReused]
    "pad-place-36" own(PadPlace36)
        "36 bits of the place go into the pad." [Requests: PadReused]
    "pad-of-sum" own(PadOfSum)
        "The pad is made of the exclusive or of counter and place." [Cuts: PadReused, Requests: PadReused]
    "pad-place-of-eight" own(PadPlaceOfEight)
        "Eight places in a row have one pad." [Requests: PadReused]
    "pad-low-without-counter" own(PadLowWithoutCounter)
        "The low four bytes of each word of the pad do not depend on the counter." [Cuts: PadReused, Requests: PadReused]
    "pad-tail-clear" own(PadTailClear)
        "The last four bytes of a line are not covered." [Cuts: Plaintext, Requests: PadReused Plaintext KeyIgnored]
    "pad-repeats" own(PadRepeats)
        "The upper four bytes of each word of the pad are the lower four." [Cuts: PadReused, Requests: PadReused]
};
