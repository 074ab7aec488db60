//! Lines of a region that goes round, each under a number of its own, and registers on reserve power with the number
//! from which on lines count. Left out: what is in the lines.
//! Sources: FWB (HPCA 2018), the abstract and a public summary of its Sec. III: a circular log with a head and a tail,
//! and a bit in each entry that tells one round from the next; HOOP (ISCA 2020) for slices in such a region.
//!
//! *Assumed*: a number stands for the bit that tells rounds apart, and, as the papers do not encrypt, is what a pad is
//! made of, with its place. After a cut numbers go on a whole round further, so that nothing which the cut left behind a
//! gap is taken for new.

use super::LOG_REGION;
use super::pending::{FIRST_NUMBER, SEALED};
use crate::controller::encryption::ENABLED;
use crate::controller::encryption::pad::Pads;
use crate::line::{Line, Logical, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Queue, Step};
use crate::settings::Settings;
use crate::stats::Cause;

/// Word `index` of a line.
pub fn word(line: &Line, index: usize) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[index])
}

/// Puts a word into a line.
pub fn put_word(line: &mut Line, index: usize, value: u64) {
    line.as_chunks_mut::<8>().0[index] = value.to_le_bytes();
}

/// The region, its registers and its encryption.
#[derive(Clone)]
pub struct Round {
    pads: Option<Pads>,
    region: Region,
    registers: Region,
    /// The first number.
    pub first: u64,
}

impl Round {
    /// Reserves a region of so many lines.
    pub fn new(settings: &Settings, lines: u64, layout: &mut Layout) -> Round {
        let sealed = settings.get(&ENABLED) && settings.get(&SEALED);
        Round {
            pads: sealed.then(|| Pads::new(settings)),
            region: layout.reserve(LOG_REGION, lines),
            registers: layout.reserve("log-registers", 2),
            first: settings.get(&FIRST_NUMBER),
        }
    }

    /// Lines of the region.
    pub fn lines(&self) -> u64 {
        self.region.lines
    }

    /// Writes `plain`, whose bytes exist after its step, under `number` into a line of the region, not before `gate`. It
    /// outlives a cut after the returned step.
    pub fn put(
        &self,
        (line, number): (u64, u64),
        plain: At<&Line>,
        gate: Step,
        plan: &mut Plan,
    ) -> Step {
        let place = self.region.line(line % self.region.lines);
        let from = plan.upcoming();
        let (mut bytes, mut at) = (*plain.value, plain.at);
        if let Some(pads) = &self.pads {
            let pad = plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
            bytes = pads.crypt(place, number, plain.value);
            at = plan.both(at, pad);
        }
        let stored = plan.write(place, At::new(&bytes, at), gate);
        plan.logged(from, plain.value);
        stored.accepted
    }

    /// Reads a line of the region, that was written under `number`, after `after`; `None` if it was never written.
    pub fn read(
        &self,
        (line, number): (u64, u64),
        after: Step,
        plan: &mut Plan,
    ) -> Option<At<Line>> {
        let place = self.region.line(line % self.region.lines);
        let read = plan.read(place, after);
        let (mut bytes, mut at) = (read.value?, read.at);
        if let Some(pads) = &self.pads {
            let pad = pads.unstored(after, &mut plan.because(Cause::Encryption));
            bytes = pads.crypt(place, number, &bytes);
            at = plan.both(at, pad);
        }
        Some(At::new(bytes, at))
    }

    /// Has lines count from number `tail` on, after `ripe`. What the others lay in may be written again after the
    /// returned step.
    pub fn move_tail(&self, tail: u64, ripe: Step, plan: &mut Plan) -> Step {
        plan.registers(self.registers.line(0), &tail_line(tail), ripe, &[])
    }

    /// Notes that what is kept here of `lines` of data outlives a cut after `ripe`, so that memory may have them.
    pub fn unlock(&self, lines: &[Logical], ripe: Step, plan: &mut Plan) -> Step {
        plan.registers(self.registers.line(1), &ZERO_LINE, ripe, lines)
    }

    /// The number from which on lines count, as a cut has left it.
    pub fn found_tail(&self, plan: &mut Plan) -> u64 {
        let line = plan.scan(self.registers.line(0)).unwrap_or(ZERO_LINE);
        word(&line, 0).max(self.first)
    }

    /// Begins anew with number `tail`, after `gate`. The returned step is that of its acceptance.
    pub fn restart(&self, tail: u64, gate: Step, plan: &mut Plan) -> Step {
        let (place, line) = (self.registers.line(0), tail_line(tail));
        plan.write_words(place, At::past(&line), 1, None, gate, Queue::Data)
            .accepted
    }
}

fn tail_line(tail: u64) -> Line {
    let mut line = ZERO_LINE;
    put_word(&mut line, 0, tail);
    line
}
