//! Memory as one array of bytes, in which everything is persistent at once: where programs run
//! functionally, and what a test compares with.

use super::{Bytes, PersistentMemory};
use sardonyx::line::{LINE_BYTES, Line};

/// Memory with addresses from 0.
pub struct Flat {
    bytes: Vec<u8>,
}

impl Flat {
    /// Allocates `len` bytes of zeros, rounded up to lines. Bytes never touched take no memory.
    pub fn new(len: u64) -> Flat {
        let len = len.next_multiple_of(LINE_BYTES as u64);
        Flat {
            bytes: vec![0; len as usize],
        }
    }

    /// The number of lines.
    pub fn lines(&self) -> u64 {
        (self.bytes.len() / LINE_BYTES) as u64
    }

    /// Line number `line`.
    pub fn line(&self, line: u64) -> &Line {
        let (lines, _) = self.bytes.as_chunks::<LINE_BYTES>();
        &lines[line as usize]
    }

    /// Line number `line`, mutable.
    pub fn line_mut(&mut self, line: u64) -> &mut Line {
        let (lines, _) = self.bytes.as_chunks_mut::<LINE_BYTES>();
        &mut lines[line as usize]
    }
}

impl Bytes for Flat {
    fn load(&mut self, at: u64, bytes: &mut [u8]) {
        let at = at as usize;
        bytes.copy_from_slice(&self.bytes[at..at + bytes.len()]);
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        let at = at as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl PersistentMemory for Flat {
    fn store_counter_atomic(&mut self, at: u64, bytes: &[u8]) {
        self.store(at, bytes);
    }

    fn flush(&mut self, _: u64) {}

    fn fence(&mut self) {}

    fn counter_cache_writeback(&mut self, _: u64) {}
}
