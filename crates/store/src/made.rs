//! Blocks made of a number: the same number gives the same bytes, different numbers different ones.

use serde::{Deserialize, Serialize};

/// What a generated block is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The number of its content.
    pub content: u64,
}

/// SplitMix64's increment and mixing function (Steele, Lea, Flood): a bijection, so that words of
/// different numbers at one place differ.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Made {
    /// The bytes from `at` on.
    pub fn bytes(&self, at: usize, into: &mut [u8]) {
        let seed = mix(self.content.wrapping_add(GAMMA));
        let word = |index: usize| mix(seed.wrapping_add(GAMMA.wrapping_mul(index as u64 + 1)));
        if at.is_multiple_of(8) {
            let mut words = into.chunks_exact_mut(8);
            for (index, chunk) in (at / 8..).zip(&mut words) {
                chunk.copy_from_slice(&word(index).to_le_bytes());
            }
            let rest = words.into_remainder();
            let length = rest.len();
            if length > 0 {
                let last = word((at + into.len()) / 8).to_le_bytes();
                let from = into.len() - length;
                into[from..].copy_from_slice(&last[..length]);
            }
        } else {
            for (index, byte) in (at..).zip(into) {
                *byte = word(index / 8).to_le_bytes()[index % 8];
            }
        }
    }
}
