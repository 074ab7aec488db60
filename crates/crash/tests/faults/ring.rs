//! A circular log of old and new lines: what waits for its entries, what has to be in memory before it comes round, and
//! what a recovery reads.

use crate::fault::{Fault, rows};
use crate::own_ring::{Slip, fwb, morlog};
use crate::plans::CIRCULAR;

/// The log comes round several times.
pub const FWB: &[Fault] = rows! { "*/identity+co-located", CIRCULAR;
    "ring-not-awaited" fwb(EntryNotAwaited)
        "A transaction commits before its entries are accepted." [Cuts: WrongLine]
    "ring-tail-not-awaited" fwb(TailNotAwaited)
        "The log comes round to entries whose lines are not yet accepted." [Cuts: WrongLine]
    "ring-nothing-forced" fwb(NothingForced)
        "The log comes round to entries of lines that were never forced back." [Cuts: WrongLine]
    "ring-new-unread" fwb(NewUnread)
        "Recovery writes no new lines again, as if the commit had forced them." [Cuts: WrongLine]
    "ring-old-unread" fwb(OldUnread)
        "Recovery puts no old lines back, as if nothing were stolen." [Cuts: WrongLine, Requests: WrongLine]
    "ring-number-again" fwb(NumberAgain)
        "After a cut the log goes on where it breaks off, before entries that lie beyond." [Lives: WrongLine]
};

/// New lines are logged at the commit, old ones without zeros.
pub const MORLOG: &[Fault] = rows! { "*/identity+co-located", CIRCULAR;
    "morph-not-awaited" morlog(EntryNotAwaited)
        "A transaction commits before its new lines are in the log." [Cuts: WrongLine]
    "morph-tail-not-awaited" morlog(TailNotAwaited)
        "A log of morphed entries comes round too early." [Cuts: WrongLine]
    "morph-nothing-forced" morlog(NothingForced)
        "A log of morphed entries comes round to lines that were never forced back." [Cuts: WrongLine]
    "morph-new-unread" morlog(NewUnread)
        "Recovery writes no new lines again that were logged at the commit." [Cuts: WrongLine]
};
