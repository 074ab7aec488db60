//! Choices and contents that follow from numbers alone, so that a transaction is the same whoever
//! runs it. SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).

pub use sardonyx_base::random::mix;
use sardonyx_base::random::{GAMMA, SplitMix64, splitmix64};

use super::{Bytes, Fault};

/// A stream of numbers.
pub struct Random(SplitMix64);

impl Random {
    /// The stream of `seed` for transaction (or setup step) `number`.
    pub fn new(seed: u64, number: u64) -> Random {
        Random(SplitMix64(splitmix64(seed) ^ mix(number)))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }
}

/// The bytes of item `id`: its number, then words that follow from it.
pub fn item(id: u64, len: u64) -> Vec<u8> {
    let word = |i| match i {
        0 => id,
        _ => mix(id.wrapping_add(GAMMA.wrapping_mul(i))),
    };
    (0..len / 8).flat_map(|i| word(i).to_le_bytes()).collect()
}

/// Writes item `id`, of `len` bytes, at `at`.
pub fn store_item(memory: &mut dyn Bytes, at: u64, len: u64, id: u64) {
    memory.store(at, &item(id, len));
}

/// The number of the item at `at`, whose bytes must follow from it.
pub fn check_item(memory: &mut dyn Bytes, at: u64, len: u64) -> Result<u64, Fault> {
    let mut found = vec![0; len as usize];
    memory.load(at, &mut found);
    let id = u64::from_le_bytes(found[..8].try_into().expect("8 bytes"));
    let expected = item(id, len);
    match found.iter().zip(&expected).position(|(a, b)| a != b) {
        None => Ok(id),
        Some(byte) => Err(Fault {
            at: at + byte as u64,
            what: format!("the content of item {id:#x} is not its own"),
        }),
    }
}
