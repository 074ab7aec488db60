//! Persistent memory as a program sees it: bytes at addresses, and the instructions that make them
//! persistent. Source: SCA (HPCA 2018) Sec. 4.3 over Intel's clwb and sfence.
//! Left out: where the bytes are; caches and time, a fresh controller after a power cut, or an array.

use std::ops::Range;

use super::Mark;
use crate::line::LINE_BYTES;

/// Bytes that one line of encryption counters covers: eight lines (SCA Sec. 5.2.1).
pub const COUNTER_SPAN: u64 = 8 * LINE_BYTES as u64;

/// Memory as a data structure sees it, in a transaction or afterwards.
///
/// Addresses are bytes from the start of the program's own region. An access may span lines. After a power cut any byte
/// may be anything: a recovering program must check every length, index and pointer before it believes it.
pub trait Bytes {
    /// Reads `bytes.len()` bytes at `at`.
    fn load(&mut self, at: u64, bytes: &mut [u8]);

    /// Writes `bytes` at `at`.
    fn store(&mut self, at: u64, bytes: &[u8]);

    /// Computes for `instructions` instructions.
    fn compute(&mut self, _instructions: u32) {}

    /// Makes the following operations depend on everything that has been loaded (an address, an unpredictable branch).
    fn depend(&mut self) {}
}

/// Memory that survives a power cut as far as the program demands it: a store is persistent once its line is flushed
/// and a fence has passed.
pub trait PersistentMemory: Bytes {
    /// Writes `bytes` at `at` as a variable that decides what a recovery sees (`CounterAtomic`): whoever writes the
    /// line back, now or later, writes it with its encryption counter or not at all.
    fn store_counter_atomic(&mut self, at: u64, bytes: &[u8]);

    /// Writes the line of `at` back without invalidating it (`clwb`).
    fn flush(&mut self, at: u64);

    /// Waits until everything flushed and every counter written back is persistent (`sfence`).
    fn fence(&mut self);

    /// Writes the encryption counters of the [`COUNTER_SPAN`] bytes around `at` back
    /// (`counter_cache_writeback`); persistent at the next fence.
    fn counter_cache_writeback(&mut self, at: u64);

    /// Begins transaction `number`. Until [`PersistentMemory::tx_end`] all stores are to persist or none.
    fn tx_begin(&mut self, _number: u64) {}

    /// Ends the transaction. It is persistent at the next fence, if all that it has stored was flushed and fenced.
    fn tx_end(&mut self) {}

    /// Releases all locks of the transaction: others may change what it has changed.
    fn unlock(&mut self) {}

    /// Marks the phase of a transaction, at no cost.
    fn mark(&mut self, _mark: Mark) {}
}

/// Numbers in memory, little-endian.
pub trait Numbers: Bytes {
    /// The 8-byte number at `at`.
    fn load_u64(&mut self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.load(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Writes the 8-byte number `value` at `at`.
    fn store_u64(&mut self, at: u64, value: u64) {
        self.store(at, &value.to_le_bytes());
    }
}

impl<M: Bytes + ?Sized> Numbers for M {}

/// Splits `len` bytes at `at` into pieces by line: the line's address, the offset in it, and the range of the bytes.
pub fn pieces(at: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let here = at + done as u64;
        let within = here as usize % LINE_BYTES;
        let size = (LINE_BYTES - within).min(len - done);
        let piece = (here - within as u64, within, done..done + size);
        done += size;
        Some(piece)
    })
}
