//! A recorded trace of level `cpu` as a core's operations: all threads' on one core, in the order of
//! the recording. Several cores play copies, as [`super::Stream`] has it.

use super::accesses::{Copies, OwnContents};
use crate::line::Virtual;
use crate::machine::error::{RunError, TraceUse};
use crate::machine::ops::{Batch, OpKind, OpSource};
use crate::trace::{GapUnit, Level, Op, Record, Source};
use crate::units::Time;

const CHUNK: usize = 256;
const LOADED: u8 = 8;

/// The operations of a trace.
pub struct TraceOps {
    source: Source,
    own: Option<OwnContents>,
    records: Vec<Record>,
    next: usize,
    ended: bool,
}

impl TraceOps {
    /// Plays the records of `source` as those of one of `copies`.
    ///
    /// # Errors
    /// The trace is of another level, or counts cycles.
    pub fn new(source: Source, copies: Copies) -> Result<TraceOps, TraceUse> {
        let provenance = source.provenance();
        let refuse = |problem: &str, remedy| {
            Err(TraceUse {
                trace: source.name().to_owned(),
                problem: problem.to_owned(),
                remedy,
            })
        };
        if provenance.level != Level::Cpu {
            return refuse(
                "was taken below the caches",
                "only a trace of level cpu can be played through caches",
            );
        }
        if provenance.gap_unit != GapUnit::Instructions {
            let remedy = "record the instructions between operations";
            return refuse("is of level cpu and counts cycles", remedy);
        }
        Ok(TraceOps {
            own: copies.own(),
            source,
            records: Vec::new(),
            next: 0,
            ended: false,
        })
    }

    fn translate(&mut self, record: &Record, batch: &mut Batch) -> Result<(), TraceUse> {
        batch.compute(record.gap);
        let mut bytes = || {
            let data = record.data.expect("sources refuse a store without bytes");
            batch.keep(&self.own.map_or(data, |own| own.content(&data)))
        };
        let kind = match record.op {
            Op::Load => OpKind::Load {
                from: 0,
                len: LOADED,
            },
            Op::Store => OpKind::StoreLine { bytes: bytes() },
            Op::NonTemporalWrite => OpKind::NonTemporal { bytes: bytes() },
            Op::Clwb => OpKind::WriteBack,
            Op::ClflushOpt | Op::Clflush => OpKind::Flush,
            Op::Fence => {
                batch.push(OpKind::Fence, Virtual(0));
                return Ok(());
            }
            Op::FinalDirty | Op::Changed => return Ok(()),
            Op::ReadMiss | Op::DirtyEviction | Op::FlushWriteBack => {
                return Err(TraceUse {
                    trace: self.source.name().to_owned(),
                    problem: format!("op {} in a trace of level cpu", record.op.code()),
                    remedy: "misses and evictions are for the simulated caches to make; say level \
                             memory if it was taken below caches",
                });
            }
        };
        batch.push(kind, record.line);
        Ok(())
    }
}

impl OpSource for TraceOps {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn refill(&mut self, _now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        if self.next == self.records.len() {
            self.next = 0;
            self.ended = !self.source.next_batch(&mut self.records)?;
        }
        let records = std::mem::take(&mut self.records);
        let end = records.len().min(self.next + CHUNK);
        for record in &records[self.next..end] {
            self.translate(record, batch)?;
        }
        self.records = records;
        self.next = end;
        Ok(!self.ended)
    }
}
