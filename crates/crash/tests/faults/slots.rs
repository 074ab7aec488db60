//! Lines that wait in a queue that is safe before it is secure: what they wait for, and what a recovery makes of them.

use crate::fault::{Fault, rows};
use crate::own_slots::{Slip, own};
use crate::plans::WAITING;

/// The queue has room for eight lines, among which are older and newer contents of one.
pub const FAULTS: &[Fault] = rows! { "*/identity+co-located", WAITING;
    "waiting-not-awaited" own(NotAwaited)
        "A write is acknowledged before it is in its slot." [Cuts: WrongLine]
    "waiting-freed-early" own(FreedEarly)
        "A slot is free before its line is accepted below." [Cuts: WrongLine]
    "waiting-unread" own(Unread)
        "Recovery does not read the lines that waited." [Cuts: WrongLine]
    "waiting-newest-first" own(NewestFirst)
        "Recovery writes the lines that waited from the newest to the oldest." [Cuts: WrongLine]
    "waiting-unforgotten" own(Unforgotten)
        "Recovery leaves the slots as they were." [Lives: LineLost]
    "waiting-numbers-anew" own(NumberAgain)
        "After a cut lines that wait are numbered from 1 again." [Lives: PadReused]
};
