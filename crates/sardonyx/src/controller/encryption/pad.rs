//! One-time pads: AES-128 in counter mode over (key, place, counter).
//! Source: SCA (HPCA 2018) Eq. 1-3, NIST SP 800-38A for the mode.
//! Left out: where counters come from and when they persist.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::global_counter;
use crate::line::{Line, Place};
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step};
use crate::settings::{Settings, keys, words};
use crate::stats::Cause;

/// The processor's key. A simulator keeps no secrets: it is fixed so that results repeat.
pub const KEY: [u8; 16] = *b"sardonyx-aes-128";

// No layer lists them: no machine sets them, the crash explorer and a near medium's stack do.
keys! {
    OTHER_KEY: u64 = int("encryption.other_key", (0, KEY.len() as u64), 0),
        Source("what the crash explorer compares with"),
        "Encrypt, and make MACs, under keys of which this byte, the first being 1, differs: what does not depend on it shows";
    NEAR_KEY: bool = flag("encryption.near_key", false),
        Source("places of two media have the same numbers, and no pad may be used twice"),
        "Encrypt under the near medium's key";
}

/// The pads that cost energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// Every pad that is made.
    EachUse,
    /// Pads of writes that are stored.
    StoredWrites,
}

words!(Charged { "each-use" => EachUse, "stored-writes" => StoredWrites });

keys! {
    CHARGED: Charged = word("energy.pad", "each-use"),
        Assumed("ESD and DeWrite do not say whether the pads of reads and of duplicates count"),
        "Pads that take energy: of each use, or of writes that are stored";
}

/// AES under [`KEY`], or under another key that the settings ask for.
pub(super) fn cipher(settings: &Settings) -> Aes128 {
    Aes128::new(&Array::from(other(KEY, settings)))
}

/// `key`, or another one if the settings ask for it.
pub fn other(mut key: [u8; 16], settings: &Settings) -> [u8; 16] {
    key[0] ^= u8::from(settings.get(&NEAR_KEY)) << 7;
    if let Some(byte) = settings.get(&OTHER_KEY).checked_sub(1) {
        key[byte as usize] ^= 1 << (byte % 8);
    }
    key
}

/// Makes pads.
#[derive(Clone)]
pub struct Pads {
    cipher: Aes128,
    charged: Charged,
    /// The counter of lines that were written before the run; 0 if there are none.
    before: u64,
}

impl Pads {
    /// Makes pads under [`KEY`], or under another key that the settings ask for.
    pub fn new(settings: &Settings) -> Pads {
        Pads {
            cipher: cipher(settings),
            charged: settings.get(&CHARGED),
            before: global_counter::before(settings),
        }
    }

    /// Makes a pad after `after` under which nothing is stored: that of a read, or of a write that turns out a
    /// duplicate.
    #[inline]
    pub fn unstored(&self, after: Step, plan: &mut Plan) -> Step {
        match self.charged {
            Charged::EachUse => plan.unit(Unit::Aes, after),
            Charged::StoredWrites => plan.unit_again(Unit::Aes, after),
        }
    }

    /// Encrypts or decrypts `line` under the pad of (`a`, `counter`).
    pub fn crypt(&self, a: Place, counter: u64, line: &Line) -> Line {
        crypt(&self.cipher, initial_value(a, counter), line)
    }

    /// Decrypts `stored`, which was read from `a`, under `counter`, once the guard has seen both.
    #[inline]
    pub fn decrypt(&self, a: Place, stored: Fetched, counter: At<u64>, plan: &mut Plan) -> Fetched {
        let stored = plan.opened(a, stored, counter);
        self.decrypt_opened(a, stored, counter, plan)
    }

    /// Decrypts `stored`, which was read from `a`, under `counter`. Counter 0 is that of a line that this run has not
    /// written: nothing comes out, after the time of a pad if the line was written before.
    #[inline]
    pub fn decrypt_opened(
        &self,
        a: Place,
        stored: Fetched,
        counter: At<u64>,
        plan: &mut Plan,
    ) -> Fetched {
        let line = stored.value.filter(|_| counter.value != 0);
        if line.is_none() && !self.covers_unknown() {
            return At::new(None, plan.both(stored.at, counter.at));
        }
        let pad = self.unstored(counter.at, &mut plan.because(Cause::Encryption));
        let at = plan.both(stored.at, pad);
        At::new(line.map(|line| self.crypt(a, counter.value, &line)), at)
    }

    /// Whether lines that this run has not written lie under pads.
    #[inline]
    pub fn covers_unknown(&self) -> bool {
        self.before != 0
    }

    /// The counter of lines that were written before this run; 0 if there are none.
    pub fn before(&self) -> u64 {
        self.before
    }
}

/// The initial value of a line's four blocks: the counter, the place and the number of the block. A carry-free
/// increment of the last byte counts the blocks.
fn initial_value(a: Place, counter: u64) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..8].copy_from_slice(&counter.to_be_bytes());
    iv[8..].copy_from_slice(&(a.0 << 8).to_be_bytes());
    iv
}

/// Applies AES-CTR to four blocks. The last two bits of the counter block start at zero, so no carry leaves them.
fn crypt(cipher: &Aes128, iv: [u8; 16], line: &Line) -> Line {
    let mut blocks = [Array::from(iv); 4];
    for (number, block) in blocks.iter_mut().enumerate() {
        *block = Array::from((u128::from_be_bytes(iv) + number as u128).to_be_bytes());
    }
    cipher.encrypt_blocks(&mut blocks);
    let mut out = *line;
    for (bytes, pad) in out.as_chunks_mut::<16>().0.iter_mut().zip(&blocks) {
        let pad = u128::from_ne_bytes((*pad).into());
        *bytes = (u128::from_ne_bytes(*bytes) ^ pad).to_ne_bytes();
    }
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        let digits = hex.as_bytes().as_chunks::<2>().0;
        let byte = |d: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
        let all: Vec<u8> = digits.iter().map(byte).collect();
        all.try_into().unwrap()
    }

    /// Checks the mode against NIST SP 800-38A, F.5.1.
    #[test]
    fn the_mode_is_nists() {
        let cipher = Aes128::new(&Array::from(bytes("2b7e151628aed2a6abf7158809cf4f3c")));
        let iv = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        let plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                     30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
        let secret = "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff\
                      5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee";
        assert_eq!(crypt(&cipher, iv, &bytes(plain)), bytes(secret));
    }

    #[test]
    fn pads_differ_by_place_counter_and_block() {
        let cipher = Aes128::new(&Array::from(KEY));
        let mut pads = std::collections::HashSet::new();
        for place in [0, 1, 1 << 40] {
            for counter in [1, 2, u64::MAX] {
                let pad = crypt(&cipher, initial_value(Place(place), counter), &[0; 64]);
                pads.extend(pad.as_chunks::<16>().0.iter().copied());
            }
        }
        assert_eq!(pads.len(), 3 * 3 * 4);
    }
}
