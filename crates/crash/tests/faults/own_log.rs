//! Lines of a hardware log, sealed by the tests themselves: a record is a header and seven old lines, each a line of the
//! mapping below. The library's log manager ([`UndoLog`]) decides which record and when. A fault is one [`Slip`] in what
//! waits for what, or in what is read after a cut.

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Guarantee, Logging};
use sardonyx::controller::logging::undo::{
    BUCKETS, LogEntry, PER_RECORD, RECORDS, Sealing, Spot, UndoLog, addresses,
};
use sardonyx::controller::{Class, Persist, Top, Write};
use sardonyx::line::{Line, Logical, ZERO_LINE};
use sardonyx::plan::{At, Plan, Step, Stored};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What is wrong with the log's lines.
    Slip {
        Nothing, HeaderEarly, OldNotAwaited, CountersLeft, OldestFirst, OneRecordRead,
        LastRecordUnread, FullBucketUnbelieved, ClearingNotAwaited, BucketByte, AddressShort, HeaderNotAwaited,
        SecondRecordUngated,
    }
}

const RECORD_LINES: u64 = 1 + PER_RECORD as u64;

fn lines(settings: &Settings) -> u64 {
    settings.get(&BUCKETS) * settings.get(&RECORDS) * RECORD_LINES
}

struct ByLines {
    slip: Slip,
    /// The first line of the log.
    first: u64,
    records: u64,
}

impl ByLines {
    fn line(&self, bucket: u16, record: u64, index: usize) -> Logical {
        let bucket = match self.slip {
            Slip::BucketByte => u64::from(bucket & 0xff),
            _ => u64::from(bucket),
        };
        Logical(self.first + (bucket * self.records + record) * RECORD_LINES + index as u64)
    }

    fn put(
        &self,
        (spot, index): (Spot, usize),
        data: At<&Line>,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        let ungated = match self.slip {
            Slip::HeaderEarly => index == 0,
            Slip::ClearingNotAwaited => index > 0,
            Slip::SecondRecordUngated => index > 0 && spot.record > 0,
            _ => false,
        };
        let write = Write {
            gate: if ungated { Step::PAST } else { spot.gate },
            class: Class::Log,
            order: match self.slip {
                Slip::CountersLeft => Persist::Relaxed,
                _ => Persist::CounterAtomic,
            },
            core: spot.core,
            transaction: spot.transaction,
            ..Write::new(self.line(spot.bucket, spot.record, index), data)
        };
        below.write(write, plan)
    }
}

impl Sealing for ByLines {
    fn old(
        &mut self,
        spot: Spot,
        entry: usize,
        data: At<&Line>,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        let stored = self.put((spot, 1 + entry), data, below, plan);
        match self.slip {
            Slip::OldNotAwaited => Stored::at(Step::PAST),
            _ => stored,
        }
    }

    fn header(
        &mut self,
        spot: Spot,
        data: At<&Line>,
        _valid: Step,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        let mut header = *data.value;
        if self.slip == Slip::AddressShort {
            for word in header.as_chunks_mut::<8>().0.iter_mut().take(PER_RECORD) {
                word[1..].fill(0);
            }
        }
        let stored = self.put((spot, 0), At::new(&header, data.at), below, plan);
        match self.slip {
            Slip::HeaderNotAwaited => Stored::at(Step::PAST),
            _ => stored,
        }
    }

    fn read(
        &mut self,
        bucket: u16,
        headers: u64,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Vec<LogEntry> {
        let headers = match self.slip {
            Slip::LastRecordUnread => headers.saturating_sub(1),
            Slip::OneRecordRead => headers.min(1),
            Slip::FullBucketUnbelieved if headers == self.records => 0,
            _ => headers,
        };
        let mut entries = Vec::new();
        for record in 0..headers {
            let mut read = |index: usize, after: Step, plan: &mut Plan| {
                let line = self.line(bucket, record, index);
                let read = below.read(line, Class::Log, after, plan);
                At::new(read.value.unwrap_or(ZERO_LINE), read.at)
            };
            let header = read(0, Step::PAST, plan);
            for (index, line) in addresses(&header.value).enumerate() {
                let old = read(1 + index, header.at, plan);
                entries.push(LogEntry { line, old });
            }
        }
        if self.slip == Slip::OldestFirst {
            entries.reverse();
        }
        entries
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    let like = designs::loggings().find(|known| known.about.name == "hw-log");
    let like = like.expect("the log that it is like");
    AnyLayer::Logging(Box::leak(Box::new(Logging {
        about: About { name, ..like.about },
        keeps_log: true,
        lines,
        build: |settings, below, layout| {
            let first = layout.data_lines() - lines(settings);
            let sealing = ByLines {
                slip: Slip::ALL[SLIP],
                first,
                records: settings.get(&RECORDS),
            };
            Box::new(UndoLog::new(sealing, settings, below, first, layout))
        },
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    })))
}

/// The log with the slip of that number.
pub fn own<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-log"),
    }
}
