//! Requests to a memory without cores and caches between: what a load knows of each, until it is over.

use sardonyx_base::random::SplitMix64;

use super::curve::CurveError;
use crate::config::Machine;
use crate::controller::{Class, Write};
use crate::engine::Request;
use crate::line::{LINE_BYTES, Line, Logical};
use crate::memory::Memory;
use crate::plan::At;
use crate::stats::Direction;
use crate::units::Time;

/// Asks a memory for lines, and knows a `T` of each request.
pub(super) struct Requester<T> {
    pub memory: Memory,
    /// What addresses and contents are drawn from.
    pub draw: SplitMix64,
    /// By the requests' tags.
    known: Vec<T>,
    free: Vec<u64>,
}

impl<T: Copy> Requester<T> {
    pub fn new(machine: &Machine, design: &str, seed: u64) -> Result<Requester<T>, CurveError> {
        Ok(Requester {
            memory: Memory::new(machine, design)?,
            draw: SplitMix64(seed),
            known: Vec::new(),
            free: Vec::new(),
        })
    }

    /// Reads a line, or writes it with random bytes.
    pub fn ask(
        &mut self,
        (now, core, counted): (Time, u32, bool),
        kind: Direction,
        line: Logical,
        known: T,
    ) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.known.push(known);
            self.known.len() as u64 - 1
        });
        self.known[tag as usize] = known;
        let request = Request {
            arrival: now,
            core,
            tag,
            kind,
            counted,
        };
        if kind == Direction::Read {
            self.memory.read(request, now, line, Class::Data);
        } else {
            let mut data: Line = [0; LINE_BYTES];
            for word in data.chunks_exact_mut(8) {
                word.copy_from_slice(&self.draw.draw().to_le_bytes());
            }
            let write = Write::new(line, At::past(&data));
            self.memory.write_announced(request, now, write);
        }
    }

    /// Lets time pass until something happens, but not beyond `until`. Returns the requests that are over, reads that are
    /// answered and writes that are accepted, and when that was.
    pub fn wait(&mut self, until: Time) -> Vec<(T, Time)> {
        if self.memory.next_event() == Time::NEVER {
            assert!(
                self.memory.empty_queues(false),
                "requests wait, and nothing happens"
            );
            return Vec::new();
        }
        self.memory.advance_until(until);
        let mut over: Vec<(u64, Time)> = Vec::new();
        if self.memory.has_acceptances() {
            let accepted = self.memory.acceptances();
            over.extend(accepted.map(|accepted| (accepted.tag, accepted.at)));
        }
        if self.memory.has_answers() {
            let answers = self.memory.answers();
            let reads = answers.filter(|answer| answer.request.kind == Direction::Read);
            over.extend(reads.map(|answer| (answer.request.tag, answer.at)));
        }
        let free = &mut self.free;
        let known = &self.known;
        let known_of = over.into_iter().map(|(tag, at)| {
            free.push(tag);
            (known[tag as usize], at)
        });
        known_of.collect()
    }

    /// Checks that the run of `design` could go on to its end.
    pub fn check(&self, design: &str) -> Result<(), CurveError> {
        match self.memory.failure() {
            None => Ok(()),
            Some(why) => Err(CurveError::Exhausted {
                design: design.to_owned(),
                why,
            }),
        }
    }
}
