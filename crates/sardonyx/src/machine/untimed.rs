//! Memory as a program finds it after a power cut: a fresh controller over what survived. What the
//! program writes goes through the controller, and nowhere else.

use rustc_hash::FxHashMap;
use sardonyx_base::random::mix;

use super::bytes::pieces;
use super::{Batch, Bytes, OpKind, PersistentMemory};
use crate::controller::{Class, Controller, Persist, Write};
use crate::line::{LINE_BYTES, Line, Lines, Logical, Virtual};
use crate::plan::untimed::Untimed;
use crate::plan::{At, Step};

struct Cached {
    line: Line,
    dirty: bool,
    persist: Persist,
    stored: bool,
}

/// One program's region, accessed through a controller.
pub struct UntimedMemory<'v> {
    untimed: &'v mut Untimed,
    controller: &'v mut Controller,
    region: &'v Lines,
    log: &'v Lines,
    cache: FxHashMap<u64, Cached>,
    batch: Option<Batch>,
}

impl<'v> UntimedMemory<'v> {
    /// The memory of a program with the lines of `region`. Lines in `log` are log lines.
    pub fn new(
        untimed: &'v mut Untimed,
        controller: &'v mut Controller,
        region: &'v Lines,
        log: &'v Lines,
    ) -> UntimedMemory<'v> {
        UntimedMemory {
            untimed,
            controller,
            region,
            log,
            cache: FxHashMap::default(),
            batch: None,
        }
    }

    /// The memory below, for changes behind the program's back.
    pub fn untimed_mut(&mut self) -> &mut Untimed {
        self.untimed
    }

    /// Records operations from now on.
    pub fn record(&mut self) {
        self.batch = Some(Batch::default());
    }

    /// The operations since [`UntimedMemory::record`].
    pub fn take_record(&mut self) -> Option<Batch> {
        self.batch.take()
    }

    /// Lines written since the cut.
    pub fn stored(&self) -> Vec<u64> {
        let stored = self.cache.iter().filter(|(_, cached)| cached.stored);
        let mut lines: Vec<u64> = stored.map(|(line, _)| *line).collect();
        lines.sort_unstable();
        lines
    }

    /// The line as the program sees it.
    pub fn line(&mut self, line: u64) -> Line {
        match self.cache.get(&line) {
            Some(cached) => cached.line,
            None => read_untimed(self.controller, self.untimed, line),
        }
    }

    fn fetch(&mut self, line: u64) -> &mut Cached {
        let (controller, untimed) = (&mut *self.controller, &mut *self.untimed);
        self.cache.entry(line).or_insert_with(|| Cached {
            line: read_untimed(controller, untimed, line),
            dirty: false,
            persist: Persist::Relaxed,
            stored: false,
        })
    }

    fn write(&mut self, at: u64, bytes: &[u8], atomic: bool) {
        for (home, from, part) in pieces(at, bytes.len()) {
            let (line, part) = (self.line_at(home), &bytes[part]);
            let cached = self.fetch(line);
            cached.line[from..from + part.len()].copy_from_slice(part);
            (cached.dirty, cached.stored) = (true, true);
            if atomic {
                cached.persist = Persist::CounterAtomic;
            }
            if let Some(batch) = &mut self.batch {
                batch.store(Virtual(line), from as u8, part, atomic);
            }
        }
    }

    fn note(&mut self, kind: OpKind, line: u64) {
        if let Some(batch) = &mut self.batch {
            batch.push(kind, Virtual(line));
        }
    }

    fn line_at(&self, at: u64) -> u64 {
        self.region.at(at / LINE_BYTES as u64)
    }
}

/// Has the controller carry `write` out.
pub fn write_untimed(controller: &mut Controller, untimed: &mut Untimed, write: Write<Logical>) {
    untimed.plan(|plan| {
        plan.handled(write.at, write.data.value, write.class, write.order);
        controller.write(write, plan);
    });
}

/// Reads `line`. A line that the controller takes for never written reads as whatever its cells hold: noise, always the
/// same for a line.
pub fn read_untimed(controller: &mut Controller, untimed: &mut Untimed, line: u64) -> Line {
    let read = untimed.plan(|plan| controller.read(Logical(line), Class::Data, Step::PAST, plan));
    read.value.unwrap_or_else(|| noise(line))
}

/// The content of cells that nobody has written.
pub fn noise(line: u64) -> Line {
    let mut bytes = [0; LINE_BYTES];
    for (index, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = mix(!line ^ (index as u64) << 56).to_le_bytes();
    }
    bytes
}

impl Bytes for UntimedMemory<'_> {
    fn load(&mut self, at: u64, bytes: &mut [u8]) {
        for (home, from, part) in pieces(at, bytes.len()) {
            let cached = self.fetch(self.line_at(home));
            bytes[part.clone()].copy_from_slice(&cached.line[from..from + part.len()]);
        }
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        self.write(at, bytes, false);
    }
}

impl PersistentMemory for UntimedMemory<'_> {
    fn store_counter_atomic(&mut self, at: u64, bytes: &[u8]) {
        self.write(at, bytes, true);
    }

    fn flush(&mut self, at: u64) {
        let line = self.line_at(at);
        self.note(OpKind::WriteBack, line);
        let Some(cached) = self.cache.get_mut(&line) else {
            return;
        };
        if !std::mem::take(&mut cached.dirty) {
            return;
        }
        let (data, order) = (cached.line, std::mem::take(&mut cached.persist));
        let class = match self.log.contains(line) {
            true => Class::Log,
            false => Class::Data,
        };
        let write = Write {
            class,
            order,
            flushed: true,
            ..Write::new(Logical(line), At::past(&data))
        };
        write_untimed(self.controller, self.untimed, write);
    }

    fn fence(&mut self) {
        self.note(OpKind::Fence, 0);
    }

    fn counter_cache_writeback(&mut self, at: u64) {
        let line = self.line_at(at);
        self.note(OpKind::CounterWriteBack, line);
        let controller = &mut *self.controller;
        self.untimed
            .plan(|plan| controller.persist_metadata(Logical(line), Step::PAST, plan));
    }
}
