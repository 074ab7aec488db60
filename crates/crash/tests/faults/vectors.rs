//! What a hardware log in chains shows: initial vectors, and what chains are made of.

use crate::fault::{Fault, rows};
use crate::own_chain::{Slip, own};
use crate::plans::LOGGED;

pub const FAULTS: &[Fault] = rows! { "*/identity+sca", LOGGED;
    "log-plain" own(Plain)
        "Lines of the log are not encrypted." [Cuts: Plaintext, Requests: PadReused Plaintext KeyIgnored]
    "log-key-ignored" own(KeyOfZeros)
        "The log has a key of its own, which is no secret." [Requests: KeyIgnored VectorForeseen]
    "vector-reused" own(VectorReused)
        "Two buckets in a row have the same vectors." [Cuts: PadReused, Requests: PadReused VectorForeseen]
    "one-vector" own(OneVector)
        "A bucket has one vector for both of its chains." [Cuts: PadReused, Requests: PadReused]
    "vector-is-number" own(VectorIsNumber)
        "A vector is the number that it should be made of." [Requests: PadReused VectorForeseen]
    "vector-steps-on" own(VectorStepsOn)
        "A vector is one more than the vector before." [Requests: VectorForeseen]
    "vector-number-16" own(NumberShort)
        "16 bits of the number go into a vector." [Requests: PadReused]
    "vectors-begin-anew" own(NumberForgotten)
        "Vectors begin anew after a power cut." [Lives: PadReused]
    "vector-one-low" own(NumberOneLow)
        "Recovery goes on with the last number that vectors were made of." [Lives: PadReused]
    "chain-of-plaintext" own(ChainOfPlaintext)
        "A chain goes on from the last plaintext, not from the last ciphertext." [Cuts: PadReused, Requests: PadReused]
    "chain-of-first-block" own(ChainOfFirstBlock)
        "A chain goes on from the first block of the last ciphertext." [Cuts: PadReused, Requests: PadReused]
    "vectors-not-awaited" own(VectorsNotAwaited)
        "A line of the log does not wait for the vectors that it hangs on." [Cuts: WrongLine]
};
