//! Faults between the layers: a mark that is lost, a step that is not waited for, a call that is not handed on. Around
//! the library's layers.

use sardonyx::controller::Write;
use sardonyx::line::{Logical, ZERO_LINE};
use sardonyx::plan::{Plan, Step, Stored};

use crate::around::{Right, Wrong, mapping};
use crate::fault::{Fault, rows};
use crate::plans::{DUPLICATES, LOGGED, LOGGED_BRIEFLY, LONG_LIVES, MANY, SHARED};

pub const BARE: &[Fault] = rows! { "identity+sca", SHARED;
    "mark-lost" planted["policy-mark-lost"]
        "A marked write loses its mark on the way to memory." [Cuts: Unrecoverable]
    "some-marks-lost" planted["policy-some-marks-lost"]
        "One marked write in eight loses its mark." [Cuts: Unrecoverable]
    "taken-for-accepted" planted["policy-not-awaited"]
        "A fence waits for no write." [Cuts: Lost]
    "one-taken-for-accepted" planted["policy-one-not-awaited"]
        "A fence does not wait for one write in sixteen." [Cuts: Lost]
    "last-word-lost" planted["policy-last-word-lost"]
        "One write in 32 loses the last word of its line." [Cuts: WrongLine, Requests: WrongLine]
};

#[derive(Default)]
struct ZerosUngated;

impl Wrong for ZerosUngated {
    const RIGHT: &'static str = "zero-lines";

    fn write(&mut self, write: Write<Logical>, right: &mut Right, plan: &mut Plan) -> Stored {
        let gate = match *write.data.value == ZERO_LINE {
            true => Step::PAST,
            false => write.gate,
        };
        right.write(Write { gate, ..write }, plan)
    }
}

pub const ZEROS: &[Fault] = rows! { "zero-lines+sca", DUPLICATES;
    "bits-not-written-back" planted["mapping-metadata-forgotten"]
        "Bits of lines of zeros are not written back on demand." [Cuts: WrongLine]
};
pub const BELOW_ZEROS: &[Fault] = rows! { "zero-lines+sca", DUPLICATES;
    "counters-below-forgotten" planted["policy-metadata-forgotten"]
        "A write-back of bits writes no counters back." [Cuts: WrongLine]
};
pub const BESIDE_ZEROS: &[Fault] = rows! { "zero-lines+co-located", DUPLICATES;
    "bit-before-line" planted["policy-not-awaited"]
        "A bit is cleared, and a fence passes, before the line is accepted." [Cuts: WrongLine]
};
pub const ZEROS_LOGGED: &[Fault] = rows! { "hw-log/*+sca", DUPLICATES;
    "zeros-ungated" mapping[ZerosUngated]
        "A line of zeros does not wait for the log of its line." [Cuts: WrongLine]
};

pub const BELOW_LOG: &[Fault] = rows! { "hw-log/identity+sca", LOGGED;
    "lock-ignored" planted["mapping-gate-ignored"]
        "A line does not wait until its log counts." [Cuts: Early]
    "undo-relaxed" planted["log-undo-relaxed"]
        "What recovery puts back is not marked." [Cuts: WrongLine, Requests: WrongLine]
    "undo-not-awaited" planted["log-undo-not-awaited"]
        "Recovery clears the registers before the old lines are accepted." [Lives: WrongLine]
};

pub const LOG: &[Fault] = rows! { "hw-log/identity+sca", LOGGED;
    "entry-dropped" planted["log-entry-dropped"]
        "One old line in eight is not logged." [Cuts: WrongLine, Requests: WrongLine]
    "old-half" planted["log-old-half"]
        "The log has the first half of an old line." [Cuts: WrongLine, Requests: WrongLine]
    "log-not-undone" planted["log-not-undone"]
        "Recovery puts nothing back." [Cuts: WrongLine, Requests: WrongLine]
    "log-of-one-core" planted["log-of-one-core"]
        "Old lines go to the record of the first core." [Cuts: WrongLine, Requests: RunEnded]
    "number-two-bits" planted["log-number-two-bits"]
        "Registers keep two bits of a transaction's number." [Cuts: WrongLine, Requests: WrongLine]
};

pub const LOG_OF_LONG_LIVES: &[Fault] = rows! { "hw-log/identity+sca", LONG_LIVES;
    "log-forgets-later" planted["log-forgets-later"]
        "After a power cut the log takes the old lines of eight transactions and no others." [Lives: WrongLine]
};

pub const LOG_OF_MANY: &[Fault] = rows! { "hw-log/identity+sca", MANY;
    "core-one-bit" planted["log-core-one-bit"]
        "The log knows cores by one bit of their number." [Cuts: WrongLine, Requests: RunEnded]
    "two-cores-logged" planted["log-of-two-cores"]
        "The log begins no transaction of a third core." [Cuts: WrongLine, Requests: WrongLine]
};

pub const LOG_OF_FEW: &[Fault] = rows! { "hw-log/identity+sca", LOGGED_BRIEFLY;
    "log-not-truncated" planted["log-not-truncated"]
        "A commit does not truncate the log." [Cuts: Lost, Requests: WrongLine]
};
