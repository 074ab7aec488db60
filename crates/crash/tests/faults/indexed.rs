//! Full deduplication over an index in the medium.

use crate::fault::{Fault, rows};
use crate::own_index::{Slip, index};
use crate::plans::DUPLICATES;

pub const FAULTS: &[Fault] = rows! { "*+fca", DUPLICATES;
    "fingerprints-compared" index(FingerprintsCompared)
        "Equal fingerprints are taken for equal contents." [Cuts: LineLost, Requests: WrongLine]
    "tables-trusted" index(TablesTrusted)
        "Recovery trusts the index, the counts and the inverse table." [Cuts: WrongLine, Requests: WrongLine]
};
