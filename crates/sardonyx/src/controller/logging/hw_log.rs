//! The log of EASY-PM's baselines: lines of the mapping like any others, behind those of the programs, each
//! under a counter of its own. Source: EASY-PM Sec. IV-A. `hw-log` writes the counters with the lines,
//! `alc` when the counter cache evicts them.
//!
//! A bucket is records of a header and seven old lines, one after the other.

use super::undo::{self, LogEntry, PER_RECORD, Sealing, Spot, UndoLog, addresses};
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::controller::{Class, Persist, Top, Write};
use crate::line::{Line, Logical, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::plan::{At, Plan, Step, Stored};
use crate::settings::Settings;

const RECORD_LINES: u64 = 1 + PER_RECORD as u64;

fn pitch(settings: &Settings) -> u64 {
    undo::pitch(settings, settings.get(&undo::RECORDS) * RECORD_LINES)
}

fn lines(settings: &Settings) -> u64 {
    settings.get(&undo::BUCKETS) * pitch(settings)
}

const fn about(name: &'static str) -> About {
    About {
        name,
        keys: &undo::KEYS,
        units: &[],
        figures: &[undo::FIGURES],
        cut: undo::CUT,
        tries: undo::TRIES,
        limits: undo::LIMITS,
    }
}

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[
        Logging {
            about: about("hw-log"),
            keeps_log: true,
            lines,
            build: |settings, below, layout| build(Persist::CounterAtomic, settings, below, layout),
            guarantee: Guarantee::on_demand,
            vectors: |_, _| None,
        },
        Logging {
            about: about("alc"),
            keeps_log: true,
            lines,
            build: |settings, below, layout| build(Persist::Relaxed, settings, below, layout),
            guarantee: |_| Guarantee::Nothing,
            vectors: |_, _| None,
        },
    ],
    designs: &[
        Design {
            name: "hw-log",
            source: "EASY-PM, the baseline design",
            line: "a hardware undo log, encrypted by counters that are written with it",
            stack: "hw-log/identity+sca",
        },
        Design {
            name: "alc",
            source: "EASY-PM, Asynchronous-Log-Counter",
            line: "the same, but the log's counters are written when they are evicted",
            stack: "alc/identity+sca",
        },
    ],
};

fn build(order: Persist, settings: &Settings, below: Top, layout: &mut Layout) -> Top {
    let sealing = ByCounters {
        order,
        first: layout.data_lines() - lines(settings),
        pitch: pitch(settings),
    };
    let programs = sealing.first;
    Box::new(UndoLog::new(sealing, settings, below, programs, layout))
}

/// Log lines that the layer below encrypts like all other lines.
struct ByCounters {
    order: Persist,
    first: u64,
    pitch: u64,
}

impl ByCounters {
    /// Line `index` of record `record` of `bucket`. The header has index 0.
    fn line(&self, bucket: u16, record: u64, index: usize) -> Logical {
        let bucket = self.first + u64::from(bucket) * self.pitch;
        Logical(bucket + record * RECORD_LINES + index as u64)
    }

    fn put(
        &self,
        spot: Spot,
        index: usize,
        data: At<&Line>,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        let write = Write {
            gate: spot.gate,
            class: Class::Log,
            order: self.order,
            core: spot.core,
            transaction: spot.transaction,
            ..Write::new(self.line(spot.bucket, spot.record, index), data)
        };
        below.write(write, plan)
    }
}

impl Sealing for ByCounters {
    fn old(
        &mut self,
        spot: Spot,
        entry: usize,
        data: At<&Line>,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        self.put(spot, 1 + entry, data, below, plan)
    }

    fn header(
        &mut self,
        spot: Spot,
        data: At<&Line>,
        _valid: Step,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        self.put(spot, 0, data, below, plan)
    }

    fn read(
        &mut self,
        bucket: u16,
        headers: u64,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Vec<LogEntry> {
        let mut entries = Vec::new();
        let mut read = |line, after, plan: &mut Plan| {
            let read = below.read(line, Class::Log, after, plan);
            At::new(read.value.unwrap_or(ZERO_LINE), read.at)
        };
        let headers: Vec<At<Line>> = (0..headers)
            .map(|record| read(self.line(bucket, record, 0), Step::PAST, plan))
            .collect();
        for (record, header) in (0..).zip(&headers) {
            for (index, line) in addresses(&header.value).enumerate() {
                let old = read(self.line(bucket, record, 1 + index), header.at, plan);
                entries.push(LogEntry { line, old });
            }
        }
        entries
    }
}
