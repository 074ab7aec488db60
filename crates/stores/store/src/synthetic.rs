//! Blocks made from a number: equal numbers give equal bytes, different numbers different ones. They may lie under a
//! one-time pad, like blocks that were encrypted by the sender.

use std::sync::LazyLock;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use sardonyx_base::random::{GAMMA, mix, splitmix64};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Made {
    pub content: u128,
    /// The number of its pad, 0 for none: AES-128 in counter mode, so that no pad is used twice.
    pub pad: u64,
}

/// The sender's key. Nothing here is secret; results must repeat.
const KEY: [u8; 16] = *b"sardonyx-sender.";
static CIPHER: LazyLock<Aes128> = LazyLock::new(|| Aes128::new(&Array::from(KEY)));

const WORD: usize = 8;
const PAD: usize = 16;

impl Made {
    pub const fn new(content: u128) -> Made {
        Made { content, pad: 0 }
    }

    pub(crate) fn pack(&self) -> [u64; 3] {
        [self.content as u64, (self.content >> 64) as u64, self.pad]
    }

    pub(crate) fn unpack([low, high, pad]: [u64; 3]) -> Made {
        Made {
            content: u128::from(high) << 64 | u128::from(low),
            pad,
        }
    }

    /// The bytes from `at` on.
    ///
    /// # Panics
    /// If `at` and the length are not whole words of 8 bytes.
    pub fn bytes(&self, at: usize, into: &mut [u8]) {
        assert!(at.is_multiple_of(WORD) && into.len().is_multiple_of(WORD));
        let low = splitmix64(self.content as u64);
        let high = (self.content >> 64) as u64;
        for (index, chunk) in (at / WORD..).zip(into.as_chunks_mut::<WORD>().0) {
            // Even words tell the lower halves of two numbers apart, odd ones the upper halves.
            let seed = if index % 2 == 0 { low } else { low ^ mix(high) };
            let word = mix(seed.wrapping_add(GAMMA.wrapping_mul(index as u64 + 1)));
            *chunk = word.to_le_bytes();
        }
        if self.pad > 0 {
            self.cover(at, into);
        }
    }

    /// Lays the pad over bytes from `at` on.
    fn cover(&self, at: usize, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let (number, skip) = ((at + done) / PAD, (at + done) % PAD);
            let mut pads = [Array::from([0; PAD]); 8];
            for (index, pad) in pads.iter_mut().enumerate() {
                let counter = u128::from(self.pad) << 64 | (number + index) as u128;
                *pad = Array::from(counter.to_be_bytes());
            }
            CIPHER.encrypt_blocks(&mut pads);
            let length = (pads.len() * PAD - skip).min(into.len() - done);
            let words = into[done..done + length].as_chunks_mut::<WORD>().0;
            for (index, word) in (skip / WORD..).zip(words) {
                let pad = &pads[index / 2][index % 2 * WORD..][..WORD];
                let pad = u64::from_ne_bytes(pad.try_into().expect("a word"));
                *word = (u64::from_ne_bytes(*word) ^ pad).to_ne_bytes();
            }
            done += length;
        }
    }
}
