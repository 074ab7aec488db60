//! Choices and contents that follow from numbers alone, so that a transaction is the same whoever
//! runs it. SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).

pub use sardonyx_base::random::mix;
use sardonyx_base::random::{GAMMA, SplitMix64, splitmix64};

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
