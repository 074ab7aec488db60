//! Mappings in which lines share places: comparison, reference counts, the order of mapping and line, full media.

use crate::fault::{Fault, rows};
use crate::own_dedup::{Slip, keeping, on_demand, sound};
use crate::plans::{DUPLICATES, FULL, FULL_OF_DUPLICATES, LONG_FULL_OF_DUPLICATES};

pub const SOUND: &[Fault] = rows! { "*+fca", DUPLICATES;
    "comparison-skipped" sound(ComparisonSkipped)
        "A line with the same check bits is taken for the same." [Cuts: WrongLine, Requests: WrongLine]
    "compares-half" sound(ComparesHalf)
        "Of a line with the same check bits the first half is compared." [Cuts: WrongLine, Requests: WrongLine]
    "shared-freed-early" sound(SharedFreedEarly)
        "A place is freed while one line still refers to it." [Cuts: WrongLine, Requests: WrongLine]
    "check-keeps-freed" sound(CheckKeepsFreed)
        "The table of check bits still names a place that has been freed." [Cuts: WrongLine, Requests: WrongLine]
    "counts-trusted" sound(CountsTrusted)
        "Recovery trusts the reference counts." [Cuts: WrongLine, Requests: WrongLine]
    "places-forgotten" sound(PlacesForgotten)
        "Recovery takes the places of all lines for free." [Cuts: WrongLine, Requests: WrongLine]
    "mapping-before-line" sound(MappingBeforeLine)
        "A mapping may leave the chip before its line is accepted." [Cuts: WrongLine]
    "mapping-not-awaited" sound(MappingNotAwaited)
        "A write that must persist with its mapping does not wait for that." [Cuts: WrongLine]
    "duplicate-not-persisted" sound(DuplicateNotPersisted)
        "The mapping of a duplicate does not persist with it." [Cuts: LineLost, Requests: WrongLine]
    "place-not-awaited" sound(PlaceNotAwaited)
        "A place is written again before its old line's mapping has persisted." [Cuts: LineLost]
    "own-place-ungated" sound(OwnPlaceUngated)
        "A line that gets its own place does not wait until that is let go." [Cuts: LineLost]
    "duplicate-not-counted" sound(DuplicateNotCounted)
        "A duplicate does not count as a reference." [Cuts: WrongLine, Requests: WrongLine]
    "recount-of-4-bits" sound(RecountOf4Bits)
        "Recovery counts up to fifteen lines of a place." [Cuts: WrongLine]
    "count-of-4-bits" sound(CountOf4Bits)
        "A place counts up to fifteen lines." [Requests: WrongLine]
    "unwritten-shown" sound(UnwrittenShown)
        "A line that nobody has written shows what lies at its own place." [Requests: WrongLine]
    "freed-once" sound(FreedOnce)
        "A place that has been freed and used again is never free again." [Requests: RunEnded]
};

/// Mappings persist when the program asks for it.
pub const ON_DEMAND: &[Fault] = rows! { "*+sca", DUPLICATES;
    "mappings-not-flushed" on_demand(FlushForgotten)
        "An orderly shutdown leaves dirty mappings on chip." [Cuts: WrongLine, Requests: WrongLine]
    "span-one-line" on_demand(SpanOneLine)
        "A write-back of mappings writes back one line of the table." [Cuts: WrongLine]
    "span-counters-of-home" on_demand(SpanCountersOfHome)
        "A write-back of counters takes the lines' own places for those where they lie." [Cuts: WrongLine]
};

pub const LOGGED: &[Fault] = rows! { "hw-log/*+sca", DUPLICATES;
    "duplicate-ungated" on_demand(DuplicateUngated)
        "The mapping of a duplicate does not wait for the log of its line." [Cuts: WrongLine]
};

pub const WITHOUT_PLACES: &[Fault] = rows! { "*+fca", FULL;
    "full-writes-over" sound(FullWritesOver)
        "If no place is free a line goes to its own, whoever is there." [Cuts: WrongLine]
};

pub const FULL_AND_SHARED: &[Fault] = rows! { "*+fca", FULL_OF_DUPLICATES;
    "full-gives-shared" sound(FullGivesShared)
        "In a full medium a line's place is free although others share it." [Cuts: WrongLine]
};

/// Compared lines stay on chip, as in FSDedup.
pub const KEEPING: &[Fault] = rows! { "*+fca", DUPLICATES;
    "kept-beyond-write" keeping(KeptBeyondWrite)
        "A line stays on chip for comparisons although another was written to its place." [Cuts: WrongLine]
    "kept-uncompared" keeping(KeptUncompared)
        "A line that is on chip for comparisons is taken for the same." [Cuts: WrongLine, Requests: WrongLine]
    "kept-of-write" keeping(KeptOfWrite)
        "After a comparison the line that was written stays on chip, not the one at the place." [Cuts: WrongLine, Requests: WrongLine]
};

/// A few cuts in many thousands show it.
pub const RARE: &[Fault] = rows! { "*+fca", LONG_FULL_OF_DUPLICATES;
    "let-go-forgotten" sound(LetGoForgotten)
        "A place that was shared waits for the last unmapping and not for those before." [Lives: LineLost]
};
