//! What lies in items. A mapping may treat some contents apart, and one that mistakes them shows only where they are
//! written: so the crash explorer draws the class of each line. Whatever runs for its time keeps numbered words.
//! Left out: headers, keys and addresses, which are the programs' own.

use super::random::{Random, item};
use super::{Bytes, Fault, ProgramSpec};
use sardonyx::line::{LINE_BYTES, Line, ZERO_LINE};
use sardonyx_base::random::mix;

const LINE: u64 = LINE_BYTES as u64;

/// What lies in items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// The item's number, and words that follow from it.
    #[default]
    Numbered,
    /// Lines of all classes, and some lines that change to and fro.
    Drawn,
}

sardonyx::names::named! {
    /// A class of contents, by what a mapping may make of a line.
    Class {
        /// Nothing but zeros.
        Zeros = "zeros",
        /// All bits set.
        Ones = "ones",
        /// One byte, 64 times.
        OneByte = "one byte",
        /// One byte, 63 times, and another at some place.
        OneOther = "one byte but for one",
        /// Eight numbers that are close to each other, on both sides of a carry.
        Bases = "a base and small differences",
        /// Addresses in two heaps.
        Pointers = "pointers",
        /// Letters, digits and ends of lines.
        Text = "text",
        /// A few different bytes.
        Low = "low entropy",
        /// One of a few lines with one bit inverted.
        Near = "one bit from another",
        /// Words that nothing is known of.
        High = "high entropy",
    }
}

/// Byte values at which ranges and tables end.
const EDGES: [u8; 8] = [0x00, 0xff, 0x01, 0x7f, 0x80, 0x81, 0xfe, 0x55];
/// Numbers of bits below which a faulty adder loses a carry.
const CARRIES: [u32; 4] = [8, 16, 32, 48];
const NEAR: u64 = 3;

/// Contents with the same fingerprints, of whatever kind but SHA-1: a line's twins, and the line itself.
pub const TWINS: usize = TWISTS.len();

/// Values that a word may be XORed with: neither the check bits of the word under any matrix of [`sardonyx::ecc`] nor
/// the CRC-32 of the line change. Of the 1,023 that exist these are two independent ones and their sum.
const TWISTS: [u64; 4] = [
    0,
    0x0006_3645_C7C4_17C8,
    0x004A_68E5_7FA6_041A,
    0x0006_3645_C7C4_17C8 ^ 0x004A_68E5_7FA6_041A,
];
/// The first byte of the word that is XORed.
const TWISTED: usize = 56;

/// Twin `twin` of `line`, one of [`TWINS`]. Twin 0 is the line itself.
pub fn twin_of(mut line: Line, twin: usize) -> Line {
    let twist = TWISTS[twin].to_le_bytes();
    for (byte, twist) in line[TWISTED..].iter_mut().zip(twist) {
        *byte ^= twist;
    }
    line
}

impl Class {
    /// A line of the class, number `number`: small numbers go through what a class has, byte by byte and place by place.
    pub fn line(self, number: u64) -> Line {
        let mut dice = Random::new(self as u64 + 1, number);
        let byte = match (self, number) {
            (Class::OneByte, 0..256) => number as u8,
            (Class::OneOther, 0..512) => EDGES[number as usize / LINE_BYTES],
            _ if dice.below(2) == 0 => EDGES[dice.below(8) as usize],
            _ => dice.draw() as u8,
        };
        let mut line = ZERO_LINE;
        match self {
            Class::Zeros => {}
            Class::Ones => line = [0xff; LINE_BYTES],
            Class::OneByte => line = [byte; LINE_BYTES],
            Class::OneOther => {
                line = [byte; LINE_BYTES];
                line[number as usize % LINE_BYTES] ^= 1 << (dice.draw() % 8);
            }
            Class::Bases => {
                let carry = CARRIES[number as usize % CARRIES.len()];
                let base = dice.draw() >> carry << carry;
                words(&mut line, |_| {
                    base.wrapping_add(dice.draw() % 200).wrapping_sub(100)
                });
            }
            Class::Pointers => {
                let heaps = [0x5500_0000_0000, 0x7f00_0000_0000];
                words(&mut line, |at| {
                    heaps[at & 1] | (dice.draw() % (1 << 40) / 8 * 8)
                });
            }
            Class::Text => {
                let letters = b"etaoin shrdlu,ETAOIN.0123456789\n";
                line.fill_with(|| letters[dice.below(letters.len() as u64) as usize]);
            }
            Class::Low => {
                let few: [u8; 8] = dice.draw().to_le_bytes();
                let count = 2 + number % 7;
                line.fill_with(|| few[dice.below(count) as usize]);
            }
            Class::Near => {
                line.copy_from_slice(&item(mix(number % NEAR), LINE));
                let bit = dice.below(8 * LINE) as usize;
                line[bit / 8] ^= 1 << (bit % 8);
            }
            Class::High => line.copy_from_slice(&item(mix(number), LINE)),
        }
        line
    }

    /// Draws the class. Half of all lines have high entropy, so that different lines are not taken for equal.
    fn drawn(dice: u64) -> Class {
        let number = dice as usize % (2 * Class::ALL.len());
        Class::ALL.get(number).copied().unwrap_or(Class::High)
    }
}

fn words(line: &mut Line, mut word: impl FnMut(usize) -> u64) {
    for (at, bytes) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *bytes = word(at).to_le_bytes();
    }
}

/// A line of any class, by number.
pub fn drawn(number: u64) -> Line {
    let dice = mix(number);
    Class::drawn(dice).line(dice >> 32)
}

impl ProgramSpec {
    pub(super) fn item(&self, id: u64) -> Vec<u8> {
        match self.contents {
            Contents::Numbered => item(id, self.item_bytes),
            Contents::Drawn => (0..self.item_bytes / LINE)
                .flat_map(|line| drawn(mix(id).wrapping_add(line)))
                .collect(),
        }
    }

    pub(super) fn store_item(&self, memory: &mut dyn Bytes, at: u64, id: u64) {
        memory.store(at, &self.item(id));
    }

    pub(super) fn check_item(&self, memory: &mut dyn Bytes, at: u64, id: u64) -> Result<(), Fault> {
        let mut found = vec![0; self.item_bytes as usize];
        memory.load(at, &mut found);
        let expected = self.item(id);
        match found.iter().zip(&expected).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(byte) => Err(Fault {
                at: at + byte as u64,
                what: format!("the content is not that of item {id:#x}"),
            }),
        }
    }
}

const SELDOM: u64 = 3;
/// The steps of a line that changes to and fro: a content, the same content, another, the first, one bit of it changed,
/// the first.
const STEPS: u64 = 6;

/// Bytes set aside for the line that changes to and fro, so that it has its line of counters to itself.
pub const FRO_BYTES: u64 = super::COUNTER_SPAN;

/// Has transaction `number` change the line at `at`, if it is one of those that do. The content follows from the number
/// alone, so that it is the same in every life.
pub fn to_and_fro(number: u64, at: u64, memory: &mut dyn Bytes) {
    if !number.is_multiple_of(SELDOM) {
        return;
    }
    let (round, step) = (number / SELDOM / STEPS, number / SELDOM % STEPS);
    let mut line = drawn(2 * round);
    match step {
        2 => line = drawn(2 * round + 1),
        4 => {
            let bit = mix(round) as usize % (8 * LINE_BYTES);
            line[bit / 8] ^= 1 << (bit % 8);
        }
        _ => {}
    }
    memory.store(at, &line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_go_through_all_bytes_and_places() {
        let bytes: std::collections::BTreeSet<u8> = (0..512)
            .map(|number| Class::OneByte.line(number)[0])
            .collect();
        assert_eq!(bytes.len(), 256);
        let other = |number| {
            let line: Line = Class::OneOther.line(number);
            let usual = if line[0] == line[1] { line[0] } else { line[2] };
            line.iter().position(|byte| *byte != usual)
        };
        let places: std::collections::BTreeSet<_> = (0..64).filter_map(other).collect();
        assert_eq!(places.len(), LINE_BYTES);
    }

    #[test]
    fn every_class_is_drawn() {
        let all: std::collections::BTreeSet<Class> =
            (0..400).map(|n| Class::drawn(mix(n))).collect();
        assert_eq!(all.len(), Class::ALL.len());
    }
}
