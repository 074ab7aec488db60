//! Counter-mode encryption: a line is its plaintext XOR a pad of (key, place, counter), and the
//! counter grows with every write. Source: SCA (HPCA 2018) Sec. 2, NIST SP 800-38A for the mode.
//! Left out: integrity (no MACs, no tree) and split counters.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::controller::metadata_cache::MetadataCache;
use crate::controller::params::CounterModeParams;
use crate::controller::{Class, Figures, Layer, Persist};
use crate::line::{Line, Place};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::stats::Cause;

/// The processor's key. A simulator keeps no secrets: it is fixed so that results repeat.
pub const KEY: [u8; 16] = *b"sardonyx-aes-128";

/// Counters in a line of the counter region.
const PER_LINE: u64 = 8;

/// Counter mode over the medium.
pub struct CounterMode {
    cipher: Aes128,
    region: Region,
    cache: MetadataCache,
    /// Lines that have a counter.
    counted: u64,
    wasted: u64,
}

impl CounterMode {
    /// Over the data lines of `layout`; their counters get a region of their own.
    pub fn new(params: &CounterModeParams, layout: &mut Layout) -> CounterMode {
        let lines = layout.data_lines().div_ceil(PER_LINE);
        CounterMode {
            cipher: Aes128::new(&Array::from(KEY)),
            region: layout.reserve("counters", lines),
            cache: MetadataCache::new(params.cache, Unit::Counters, Queue::Counter),
            counted: 0,
            wasted: 0,
        }
    }

    fn counter_line(&self, a: Place) -> Place {
        self.region.line(a.0 / PER_LINE)
    }

    fn crypt(&self, a: Place, counter: u64, line: &Line) -> Line {
        crypt(&self.cipher, initial_value(a, counter), line)
    }
}

/// The initial value of a line's four blocks: the counter, then the place, then the block's number,
/// which is what a carry-free increment of the last byte counts.
fn initial_value(a: Place, counter: u64) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..8].copy_from_slice(&counter.to_be_bytes());
    iv[8..].copy_from_slice(&(a.0 << 8).to_be_bytes());
    iv
}

/// AES-CTR of four blocks whose counter block's last two bits start at zero or do not carry out.
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

fn counter_of(line: &Line, a: Place) -> u64 {
    let from = (a.0 % PER_LINE) as usize * 8;
    u64::from_le_bytes(line[from..from + 8].try_into().expect("8 bytes"))
}

impl Layer for CounterMode {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        let stored = plan.read(a, after);
        let place = self.counter_line(a);
        let got = self
            .cache
            .get(place, after, &mut plan.because(Cause::Counter));
        let counter = counter_of(self.cache.line(got), a);
        let Some(line) = stored.value.filter(|_| counter != 0) else {
            return At::new(None, plan.both(stored.at, got.at));
        };
        let pad = plan.because(Cause::Encryption).unit(Unit::Aes, got.at);
        let at = plan.both(stored.at, pad);
        At::new(Some(self.crypt(a, counter, &line)), at)
    }

    fn write(
        &mut self,
        a: Place,
        data: At<&Line>,
        gate: Step,
        _class: Class,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        let place = self.counter_line(a);
        let got = self
            .cache
            .get(place, data.at, &mut plan.because(Cause::Counter));
        let counter = counter_of(self.cache.line(got), a) + 1;
        self.counted += u64::from(counter == 1);
        let pad = plan.because(Cause::Encryption).unit(Unit::Aes, got.at);
        let at = plan.both(data.at, pad);
        let line = self.crypt(a, counter, data.value);
        let stored = plan.write(a, At::new(&line, at), gate);

        // A sibling may be written back any time, so this counter leaves only after its data.
        let word = (a.0 % PER_LINE) as usize;
        let bytes = counter.to_le_bytes();
        let mut plan = plan.because(Cause::Counter);
        self.cache
            .set_bytes(got, word * 8, &bytes, stored.accepted, &mut plan);
        if order == Persist::CounterAtomic {
            let line = At::new(self.cache.line(got), got.at);
            let words = 1 << word;
            let counter = plan.write_words(place, line, words, None, gate, Queue::Counter);
            self.cache.clean(got, words);
            plan.group(&[stored, counter]);
            return Stored {
                accepted: stored.accepted,
                done: plan.both(stored.done, counter.done),
            };
        }
        stored
    }

    fn waste(&mut self, a: Place, data: Step, plan: &mut Plan) {
        self.wasted += 1;
        let place = self.counter_line(a);
        let mut plan = plan.because(Cause::Encryption);
        let got = self.cache.get(place, data, &mut plan);
        plan.unit(Unit::Aes, got.at);
    }

    fn persist_metadata(&mut self, a: Place, after: Step, plan: &mut Plan) -> Stored {
        let place = self.counter_line(a);
        self.cache
            .persist(place, after, &mut plan.because(Cause::Counter))
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.cache.flush(&mut plan.because(Cause::Counter));
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.counted = 0;
        for index in 0..self.region.lines {
            let Some(line) = plan.peek(self.region.line(index)) else {
                continue;
            };
            let counters = (0..PER_LINE).map(|word| counter_of(&line, Place(word)));
            self.counted += counters.filter(|counter| *counter != 0).count() as u64;
        }
    }

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
        self.cache.touch_ahead(self.counter_line(a), plan);
    }

    fn forget_figures(&mut self) {
        self.cache.forget_figures();
        self.wasted = 0;
    }

    fn figures(&self, out: &mut Figures) {
        out.push(("counter_cache_hit_rate", self.cache.hit_rate()));
        out.push(("counter_bytes", (self.counted * 8) as f64));
        out.push(("wasted_encryptions", self.wasted as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        let digits = hex.as_bytes().as_chunks::<2>().0;
        let byte = |d: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
        let all: Vec<u8> = digits.iter().map(byte).collect();
        all.try_into().unwrap()
    }

    /// NIST SP 800-38A, F.5.1.
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
