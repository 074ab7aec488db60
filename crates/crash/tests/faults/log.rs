//! The hardware log: what waits for what, what is written, and what a recovery reads.

use crate::fault::{Fault, rows};
use crate::own_log::{Slip, own};
use crate::plans::{LOGGED, LONG_LOGGED};

/// Counters lie beside their lines, so that no shared line of counters keeps writes in order.
pub const OWN: &[Fault] = rows! { "*/identity+co-located", LOGGED;
    "header-early" own(HeaderEarly)
        "A header is sent before the old lines that it names are accepted." [Cuts: WrongLine]
    "old-not-awaited" own(OldNotAwaited)
        "A record counts as written before its old lines are accepted." [Cuts: WrongLine]
    "oldest-first" own(OldestFirst)
        "Old lines of a bucket are put back oldest first." [Cuts: WrongLine]
    "buckets-read-short" own(OneRecordRead)
        "Recovery reads one record of each bucket." [Cuts: WrongLine, Requests: WrongLine]
    "last-record-unread" own(LastRecordUnread)
        "Recovery does not read the last record." [Cuts: WrongLine, Requests: WrongLine]
    "full-bucket-unbelieved" own(FullBucketUnbelieved)
        "Recovery does not believe a bucket that is full." [Cuts: WrongLine, Requests: WrongLine]
    "bucket-byte" own(BucketByte)
        "One byte of a bucket's number says where it lies." [Requests: WrongLine]
    "address-short" own(AddressShort)
        "A header names a line by one byte." [Requests: WrongLine, Cuts: WrongLine]
    "header-not-awaited" own(HeaderNotAwaited)
        "The registers count a header before it is accepted." [Cuts: WrongLine]
};

pub const WITH_COUNTERS: &[Fault] = rows! { "*/identity+sca", LOGGED;
    "log-counters-left" own(CountersLeft)
        "The counters of the log's lines are not written with them." [Cuts: WrongLine, Requests: WrongLine]
};

/// The power is cut again while a recovery's last writes are on their way.
pub const RARE: &[Fault] = rows! { "*/identity+co-located", LONG_LOGGED;
    "clearing-not-awaited" own(ClearingNotAwaited)
        "A life's records do not wait until the old registers are cleared." [Lives: WrongLine]
    "second-record-ungated" own(SecondRecordUngated)
        "Of a life's first bucket only the first record waits until the old registers are cleared." [Lives: WrongLine]
};
