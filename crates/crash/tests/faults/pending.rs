//! Log entries that wait on chip: what they wait for, what becomes of those that a full queue lets go, and what a
//! recovery reads.

use crate::fault::{Fault, rows};
use crate::own_pending::{Slip, lad, own, silo};
use crate::plans::PENDING;

/// The queue has room for six entries, so that most transactions have some on chip and some in memory.
pub const FAULTS: &[Fault] = rows! { "*/identity+co-located", PENDING;
    "left-unwritten" own(LeftUnwritten)
        "An entry for which the queue has no room is dropped." [Cuts: WrongLine, Requests: WrongLine]
    "slot-not-awaited" own(SlotNotAwaited)
        "An entry's slot is taken before its write is accepted." [Cuts: WrongLine]
    "entry-not-awaited" own(EntryNotAwaited)
        "A line is written before its entries are in the queue." [Cuts: WrongLine]
    "queue-unread" own(QueueUnread)
        "Recovery does not read the entries that waited." [Cuts: WrongLine, Requests: WrongLine]
    "left-unread" own(LeftUnread)
        "Recovery does not read the entries that had left." [Cuts: WrongLine, Requests: WrongLine]
    "number-again" own(NumberAgain)
        "After a cut transactions are numbered from 1 again." [Lives: WrongLine]
};

/// Each buffer has room for two lines, so that some new lines outlive a cut there and others in memory.
pub const SILO: &[Fault] = rows! { "*/identity+co-located", PENDING;
    "buffer-left-unwritten" silo(LeftUnwritten)
        "An old line for which a buffer has no room is dropped." [Cuts: WrongLine, Requests: WrongLine]
    "buffer-slot-not-awaited" silo(SlotNotAwaited)
        "A buffer's entry is taken before the old line in it is accepted." [Cuts: WrongLine]
    "buffer-not-awaited" silo(EntryNotAwaited)
        "A line is acknowledged before it is in the buffer." [Cuts: WrongLine]
    "buffer-unread" silo(QueueUnread)
        "Recovery does not read the buffers." [Cuts: WrongLine, Requests: WrongLine]
};

/// The queue has room for three lines, so that most transactions have let some go.
pub const LAD: &[Fault] = rows! { "*/identity+co-located", PENDING;
    "gone-unlogged" lad(LeftUnwritten)
        "A line leaves a full queue before its old content is in the log." [Cuts: WrongLine, Requests: WrongLine]
    "gone-slot-not-awaited" lad(SlotNotAwaited)
        "A line leaves a full queue before its old content is accepted." [Cuts: WrongLine]
    "hold-not-awaited" lad(EntryNotAwaited)
        "A flush is answered before its line is in the queue." [Cuts: WrongLine]
    "held-unread" lad(QueueUnread)
        "Recovery does not read the lines that waited for a commit." [Cuts: WrongLine]
};
