//! Counters beside their lines, and words that keep their ciphertext (DEUCE).

use crate::fault::{Fault, rows};
use crate::own_beside::{Slip, co_located, words};
use crate::plans::{SHARED, WORDS, WORDS_BEYOND_16};

pub const FAULTS: &[Fault] = rows! { "identity+*", SHARED;
    "counter-kept-in-flight" co_located(CounterKeptInFlight)
        "A line that is written again while it is in flight is encrypted under the counter that it has." [Cuts: PadReused, Requests: PadReused]
    "sideband-shows-digest" co_located(ShowsDigest)
        "A checksum of the content lies beside a line." [Requests: WrongLine Digest]
    "counter-not-recovered" co_located(CounterNotRecovered)
        "Counters beside lines begin anew after a power cut." [Cuts: PadReused]
    "sideband-short" co_located(CounterShort)
        "Four bytes of a counter are kept beside its line." [Requests: WrongLine]
};

pub const WORDWISE: &[Fault] = rows! { "identity+*", WORDS;
    "word-bit-not-set" words(BitNotSet)
        "A word's bit is never set, and it lies under the pad of the epoch." [Cuts: PadReused, Requests: PadReused]
    "word-bit-not-stored" words(BitNotStored)
        "A word's bit is never stored, though it lies under the newest pad." [Cuts: WrongLine, Requests: WrongLine PadReused]
    "word-bits-cleared" words(BitsCleared)
        "Each write clears the bits of the words that it does not change." [Cuts: PadReused, Requests: PadReused]
    "word-low-bit-unseen" words(LowBitUnseen)
        "A word whose bytes change in their lowest bit counts as one that stays." [Cuts: PadReused, Requests: PadReused]
    "epoch-keeps" words(EpochKeeps)
        "A write that begins an epoch leaves the words that do not change as they lie." [Cuts: WrongLine]
};

pub const WORDWISE_GREAT: &[Fault] = rows! { "identity+*", WORDS_BEYOND_16;
    "word-counter-16" words(Counter16)
        "16 bits of the counter are kept." [Cuts: WrongLine, Requests: WrongLine PadReused]
};
