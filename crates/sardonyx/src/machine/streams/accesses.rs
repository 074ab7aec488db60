//! One core's accesses: records of a trace, decoded some way ahead of the core.
//!
//! Several cores run copies of a trace, each in its own address space and, on demand, with contents
//! of its own. Fences and flushes carry no traffic here: their gaps are kept and they are counted.

use std::collections::VecDeque;

use sardonyx_base::random::{SplitMix64, mix};

use crate::config::Machine;
use crate::line::{Line, Virtual, ZERO_LINE};
use crate::machine::error::{RunError, TraceUse};
use crate::machine::page_table::{AddressSpace, PageFrames};
use crate::medium::params::{Addresses, COPIES_SKEW};
use crate::stats::Direction;
use crate::trace::{CLOCK_REMEDY, GapUnit, Op, Record, Source, TraceError};

use super::threads::ThreadShare;

/// Accesses that [`Stream::peek`] can see ahead, if the trace has as many.
pub const LOOK_AHEAD: usize = 32;

const CHUNK: usize = 128;

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The gap since the stream's previous access, in the stream's [`GapUnit`].
    pub gap: u64,
    /// Read or write.
    pub kind: Direction,
    /// Fences and flushes since the previous access.
    pub skipped: u32,
    /// The line, in the address space of its copy.
    pub line: Virtual,
    /// The bytes written; those read if they are known, else zeros.
    pub data: Line,
    /// Whether the bytes are known, as they are of every write.
    pub known: bool,
}

impl Access {
    /// The bytes that a read finds, if the trace knows them.
    #[inline]
    pub fn held(&self) -> Option<&Line> {
        (self.known && self.kind == Direction::Read).then_some(&self.data)
    }
}

/// The number of a stream among the copies of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copies {
    /// The number of this copy, from 0, which is also its address space.
    pub copy: u32,
    /// The number of copies.
    pub of: u32,
    /// The share of contents that each copy has to itself. Equal contents of a copy stay equal, and all copies share
    /// lines of zeros.
    pub distinct: f64,
}

impl Copies {
    /// A trace without copies.
    pub const ONE: Copies = Copies {
        copy: 0,
        of: 1,
        distinct: 0.0,
    };

    /// The copy's share of a machine's memory. Its first page lies further into the share than that of the copy before,
    /// as the machine says.
    pub fn space(self, machine: &Machine, addresses: Addresses) -> AddressSpace {
        AddressSpace::Framed(self.frames(machine, addresses))
    }

    pub(in crate::machine) fn frames(self, machine: &Machine, addresses: Addresses) -> PageFrames {
        let lines = machine.engine.medium.geometry.lines();
        let skew = machine.settings.get(&COPIES_SKEW);
        let frames = PageFrames::share(lines, self.copy, self.of);
        let frames = frames.skewed(u64::from(self.copy) * skew);
        frames.placed(addresses).beside(machine)
    }

    pub(super) fn own(self) -> Option<OwnContents> {
        (self.distinct > 0.0 && self.copy > 0).then(|| OwnContents {
            key: contents_key(self.copy),
            below: (self.distinct * 2.0_f64.powi(64)) as u64,
        })
    }
}

enum Origin {
    Trace(Box<TraceRecords>),
    /// One thread of a recording whose other threads run on other cores.
    Thread(ThreadShare),
}

struct TraceRecords {
    source: Source,
    batch: Vec<Record>,
    at: usize,
}

/// The accesses of one core.
pub struct Stream {
    name: String,
    origin: Origin,
    unit: GapUnit,
    clock_khz: Option<u64>,
    own: Option<OwnContents>,
    ended: bool,
    gap: u64,
    skipped: u64,
    /// The fences and flushes after the last access that is ready.
    trailing: u32,
    taken: u64,
    ready: VecDeque<Access>,
}

impl Stream {
    /// The accesses of `source` as those of one of `copies`.
    ///
    /// # Errors
    /// The first records are broken; the trace's clock is none.
    pub fn new(source: Source, copies: Copies) -> Result<Stream, RunError> {
        let provenance = source.provenance();
        let clock_khz = provenance.clock_khz().map_err(|clock| TraceUse {
            trace: source.name().to_owned(),
            problem: format!("its clock_mhz is {clock}"),
            remedy: CLOCK_REMEDY,
        })?;
        let name = source.name().to_owned();
        let (batch, at) = (Vec::new(), 0);
        let origin = Origin::Trace(Box::new(TraceRecords { source, batch, at }));
        let mut stream = Stream {
            clock_khz,
            own: copies.own(),
            ..Stream::empty(name, origin, provenance.gap_unit)
        };
        stream.fill()?;
        Ok(stream)
    }

    /// The accesses of one thread of the recording `name`, whose gaps count instructions.
    pub(super) fn of_thread(name: String, share: ThreadShare) -> Stream {
        let mut stream = Stream::empty(name, Origin::Thread(share), GapUnit::Instructions);
        stream.take_share();
        stream
    }

    fn empty(name: String, origin: Origin, unit: GapUnit) -> Stream {
        Stream {
            name,
            origin,
            unit,
            clock_khz: None,
            own: None,
            ended: false,
            gap: 0,
            skipped: 0,
            trailing: 0,
            taken: 0,
            ready: VecDeque::with_capacity(LOOK_AHEAD + CHUNK),
        }
    }

    /// What the trace is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the gaps count.
    pub fn gap_unit(&self) -> GapUnit {
        self.unit
    }

    /// The clock whose cycles the gaps count, if they count cycles and the trace names the clock.
    pub fn clock_khz(&self) -> Option<u64> {
        self.clock_khz
    }

    /// The access `k` after the next one, for `k` less than [`LOOK_AHEAD`].
    #[inline]
    pub fn peek(&self, k: usize) -> Option<&Access> {
        self.ready.get(k)
    }

    /// The next access; `None` at the end.
    ///
    /// # Errors
    /// Records further on are broken. The stream is then of no more use.
    #[inline]
    pub fn next_access(&mut self) -> Result<Option<Access>, RunError> {
        let access = self.ready.pop_front();
        self.taken += access.map_or(0, |access| 1 + u64::from(access.skipped));
        if let Origin::Thread(share) = &mut self.origin {
            share.issued()?;
        }
        if self.ready.len() <= LOOK_AHEAD && !self.ended {
            self.fill()?;
        }
        Ok(access)
    }

    /// The number of records up to and including the last access taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Fences and flush instructions left out so far (as far as the stream has looked).
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The gaps after the last access, complete when [`Stream::peek`]`(0)` finds nothing.
    pub fn trailing_gap(&self) -> u64 {
        self.gap
    }

    /// Whether the next access is one that other threads come before, or is too far off to be known. If so, the agent
    /// is among those of [`Stream::freed`] when that has changed.
    #[inline]
    pub fn must_wait(&mut self) -> bool {
        match &mut self.origin {
            Origin::Trace(_) => false,
            Origin::Thread(share) => share.must_wait(self.ended),
        }
    }

    /// The agents that no longer need to wait since this stream's last access was taken.
    #[inline]
    pub fn freed(&mut self) -> Vec<usize> {
        match &mut self.origin {
            Origin::Trace(_) => Vec::new(),
            Origin::Thread(share) => share.freed(),
        }
    }

    /// The thread of a recording whose other threads run on other cores; `None` for a whole trace.
    pub fn thread(&self) -> Option<u16> {
        match &self.origin {
            Origin::Trace(_) => None,
            Origin::Thread(share) => Some(share.number()),
        }
    }

    fn fill(&mut self) -> Result<(), RunError> {
        let Origin::Trace(records) = &mut self.origin else {
            self.take_share();
            return Ok(());
        };
        while self.ready.len() <= LOOK_AHEAD && !self.ended {
            let chunk = records.next_chunk()?;
            self.ended = chunk.is_empty();
            for record in chunk {
                self.gap += u64::from(record.gap);
                let Some(kind) = direction(record.op) else {
                    self.skipped += 1;
                    self.trailing += 1;
                    continue;
                };
                let (gap, skipped) = (&mut self.gap, &mut self.trailing);
                let (gap, skipped) = (std::mem::take(gap), std::mem::take(skipped));
                self.ready
                    .push_back(Access::of(record, kind, self.own, gap, skipped));
            }
        }
        Ok(())
    }

    /// Takes the accesses of this stream's thread that have been read since.
    pub fn take_share(&mut self) {
        let Origin::Thread(share) = &mut self.origin else {
            return;
        };
        while self.ready.len() <= LOOK_AHEAD
            && let Some(access) = share.next_access()
        {
            self.skipped += u64::from(access.skipped);
            self.ready.push_back(access);
        }
        if !self.ended
            && let Some((gap, skipped)) = share.end()
        {
            self.ended = true;
            self.gap = gap;
            self.skipped += skipped;
        }
    }
}

impl TraceRecords {
    /// The next records, at most [`CHUNK`]; none at the end.
    fn next_chunk(&mut self) -> Result<&[Record], TraceError> {
        if self.at == self.batch.len() {
            self.at = 0;
            self.source.next_batch(&mut self.batch)?;
        }
        let from = self.at;
        self.at = self.batch.len().min(from + CHUNK);
        Ok(&self.batch[from..self.at])
    }
}

/// What an operation does to memory; nothing, for a fence, a flush or a note.
#[inline]
pub(super) fn direction(op: Op) -> Option<Direction> {
    match op {
        Op::ReadMiss => Some(Direction::Read),
        op if op.is_write() => Some(Direction::Write),
        _ => None,
    }
}

impl Access {
    #[inline(always)] // a copy of the bytes otherwise
    pub(super) fn of(
        record: &Record,
        kind: Direction,
        own: Option<OwnContents>,
        gap: u64,
        skipped: u32,
    ) -> Access {
        let data = record.data;
        let data = data.map(|data| own.map_or(data, |own| own.content(&data)));
        assert!(
            data.is_some() || kind == Direction::Read,
            "sources refuse a write without bytes"
        );
        Access {
            gap,
            kind,
            skipped,
            line: record.line,
            data: data.unwrap_or(ZERO_LINE),
            known: data.is_some(),
        }
    }
}

/// 64 bytes of SplitMix64, seeded with the copy's number, which is mixed, because neighbours' streams would overlap.
fn contents_key(copy: u32) -> Line {
    let mut words = SplitMix64(mix(u64::from(copy)));
    let mut key = ZERO_LINE;
    for word in key.as_chunks_mut::<8>().0 {
        *word = words.draw().to_le_bytes();
    }
    key
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OwnContents {
    key: Line,
    /// Contents whose hash is below this are the copy's own; at the largest value, all are.
    below: u64,
}

impl OwnContents {
    pub(super) fn content(&self, data: &Line) -> Line {
        let words = data.as_chunks::<8>().0.iter();
        let hash = || words.fold(0, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
        if self.below < u64::MAX && hash() >= self.below {
            return *data;
        }
        keyed(data, &self.key)
    }
}

/// Translates contents one to one. Zeros stay zeros, and so does the key itself, which XOR would turn into zeros.
fn keyed(data: &Line, key: &Line) -> Line {
    if *data == ZERO_LINE || data == key {
        return *data;
    }
    std::array::from_fn(|i| data[i] ^ key[i])
}
