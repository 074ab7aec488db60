//! Encryption counters: how they count, the mark that they stay below, and when they persist.

use crate::fault::{Fault, rows};
use crate::own_counters::{Slip, own};
use crate::plans::{BEYOND_32, BEYOND_56, ENDURED, SHARED};

pub const FAULTS: &[Fault] = rows! { "identity+*", SHARED;
    "counter-of-content" own(CounterOfContent)
        "A counter is left out if the first byte of the content is odd." [Requests: Digest]
    "mark-not-awaited" own(MarkNotAwaited)
        "A counter is used before its mark is written." [Cuts: PadWithinReach, Order: PadWithinReach]
    "mark-forgotten" own(MarkForgotten)
        "Counting begins anew after a power cut." [Cuts: PadReused]
    "siblings-forgotten" own(SiblingsForgotten)
        "A marked write drops the dirty bits of the other counters in its line." [Cuts: WrongLine, Requests: WrongLine]
    "siblings-forgotten-in-flight" own(SiblingsForgottenInFlight)
        "A marked write drops the other counters' dirty bits while their line is on its way to memory." [Cuts: WrongLine, Requests: WrongLine]
    "counter-before-data" own(CounterBeforeData)
        "A counter may leave the chip before its line is accepted." [Cuts: HalfAPair, Order: HalfAPair]
    "pair-not-grouped" own(PairNotGrouped)
        "A marked write and its counter are no group." [Cuts: HalfAPair, Order: HalfAPair]
    "pair-not-grouped-on-miss" own(PairNotGroupedOnMiss)
        "A marked write and its counter are no group if the counter has missed the cache." [Cuts: Unrecoverable, Order: HalfAPair]
    "pair-skipped-in-flight" own(PairSkippedInFlight)
        "A marked write does not write its counter if the line of counters is on its way already." [Cuts: Unrecoverable]
    "pair-cleans-next" own(PairCleansNext)
        "A marked write drops the dirty bit of the counter behind its own." [Cuts: Unrecoverable]
    "write-back-not-awaited" own(WriteBackNotAwaited)
        "A write-back of counters is not awaited." [Cuts: WrongLine]
    "write-back-forgotten" own(WriteBackForgotten)
        "Counters are not written back on demand." [Cuts: WrongLine]
    "flush-forgotten" own(FlushForgotten)
        "An orderly shutdown leaves dirty counters on chip." [Cuts: WrongLine, Requests: WrongLine]
    "stale-counter-read" own(StaleCounterRead)
        "A read decrypts with the counter that memory has, not with the cache's." [Cuts: Unrecoverable, Requests: WrongLine]
    "counter-stored-16" own(CounterStored16)
        "Two bytes of a counter are kept." [Requests: WrongLine]
    "counter-stored-56" own(CounterStored56)
        "Seven bytes of a counter are kept." [Requests: WrongLine]
    "counter-line-32" own(CounterLine32)
        "32 bits of a place say which line of counters is its own." [Requests: WrongLine]
};

pub const GREAT: &[Fault] = rows! { "identity+*", BEYOND_32;
    "counter-carry-lost" own(CounterCarryLost)
        "The global counter does not carry beyond its low 32 bits." [Cuts: PadReused, Requests: PadReused]
};
pub const LATE: &[Fault] = rows! { "identity+*", ENDURED;
    "counter-again-late" own(CounterAgainLate)
        "One counter in 30,000 is drawn twice." [Requests: PadReused]
};
pub const GREATEST: &[Fault] = rows! { "identity+*", BEYOND_56;
    "counter-carry-56" own(CounterCarry56)
        "The global counter does not carry beyond its low 56 bits." [Cuts: PadReused, Requests: PadReused]
};
