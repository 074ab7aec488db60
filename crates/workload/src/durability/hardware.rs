//! Transactions that the hardware makes durable (EASY-PM, Sec. III-A): a program says where one begins and
//! ends and which data it has changed. Stores go to memory at once. Left out: how the hardware undoes
//! them after a power cut, which is over before a program recovers.
//!
//! The last word of the root line is the number of the last transaction, written like any other data.

use std::ops::Range;

use super::software_undo::write_back_counters;
use super::{Durability, LoggedItems, Recovered, Transaction};
use crate::{Bytes, COUNTER_SPAN, Fault, Mark, Numbers, PersistentMemory, Phase, Sharing};
use sardonyx::line::LINE_BYTES;
use sardonyx::machine::pieces;

const LINE: u64 = LINE_BYTES as u64;

const DONE: u64 = LINE - 8;

/// Durability by the hardware's log. The program keeps nothing of its own but the number of its last transaction.
#[derive(Clone, Copy)]
pub struct Hardware {
    /// How lines share a line of counters.
    sharing: Sharing,
    done: u64,
    end: u64,
}

impl Hardware {
    /// The durability of core `core` of `cores`. If there are several cores, each has a line of its own for its number,
    /// from `start` on.
    pub fn new(sharing: Sharing, start: u64, (core, cores): (u64, u64)) -> Hardware {
        let (line, end) = match cores {
            1 => (0, start),
            _ => (start + core * LINE, start + cores * LINE),
        };
        Hardware {
            sharing,
            done: line + DONE,
            end: match sharing.is_apart() {
                true => end.next_multiple_of(COUNTER_SPAN),
                false => end,
            },
        }
    }
}

impl Durability for Hardware {
    fn log_bytes(&self) -> Range<u64> {
        self.end..self.end
    }

    fn begin<'m>(
        &self,
        number: u64,
        memory: &'m mut dyn PersistentMemory,
    ) -> Box<dyn Transaction + 'm> {
        memory.mark(Mark {
            transaction: number,
            phase: Phase::Begin,
        });
        memory.tx_begin(number);
        Box::new(HardwareTransaction {
            memory,
            number,
            changed: Vec::new(),
            span: self.sharing.span(),
            done: self.done,
        })
    }

    /// Stores the number outside of any transaction: one word, so that it is there or not.
    fn store(&self, number: u64, memory: &mut dyn PersistentMemory) {
        let mark = |phase| Mark {
            transaction: number,
            phase,
        };
        memory.mark(mark(Phase::Begin));
        memory.mark(mark(Phase::Committing));
        memory.store_counter_atomic(self.done, &number.to_le_bytes());
        memory.flush(self.done - self.done % LINE);
        memory.fence();
        memory.mark(mark(Phase::Committed));
        memory.unlock();
    }

    fn recover(
        &self,
        memory: &mut dyn PersistentMemory,
        _: Range<u64>,
    ) -> Result<Recovered, Fault> {
        Ok(Recovered {
            visible: memory.load_u64(self.done),
            restored: 0,
        })
    }

    fn log(&self, _: &mut dyn PersistentMemory) -> LoggedItems {
        LoggedItems::default()
    }
}

struct HardwareTransaction<'m> {
    memory: &'m mut dyn PersistentMemory,
    number: u64,
    changed: Vec<u64>,
    span: u64,
    done: u64,
}

impl HardwareTransaction<'_> {
    /// Flushes all that was changed, `flush_data()` of SCA: the lines, then their counters.
    fn flush_data(&mut self) {
        for line in &self.changed {
            self.memory.flush(*line);
        }
        write_back_counters(self.memory, &self.changed, self.span);
    }

    fn mark(&mut self, phase: Phase) {
        let transaction = self.number;
        self.memory.mark(Mark { transaction, phase });
    }
}

impl Transaction for HardwareTransaction<'_> {
    fn commit(mut self: Box<Self>) {
        self.store(self.done, &self.number.to_le_bytes());
        self.flush_data();
        self.memory.fence();
        self.mark(Phase::Committing);
        self.memory.tx_end();
        self.memory.fence();
        self.mark(Phase::Committed);
        self.memory.unlock();
    }
}

impl Bytes for HardwareTransaction<'_> {
    fn load(&mut self, at: u64, bytes: &mut [u8]) {
        self.memory.load(at, bytes);
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        for (home, ..) in pieces(at, bytes.len()) {
            if !self.changed.contains(&home) {
                self.changed.push(home);
            }
        }
        self.memory.store(at, bytes);
    }

    fn compute(&mut self, instructions: u32) {
        self.memory.compute(instructions);
    }

    fn depend(&mut self) {
        self.memory.depend();
    }
}
