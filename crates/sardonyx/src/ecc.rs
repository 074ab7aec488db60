//! SECDED (72,64) check bits, which memory computes anyway and deduplication borrows as a fingerprint.
//!
//! Three published matrices; `docs/inside/ecc.md` gives the sources. Left out: codes over wider words
//! (chipkill, on-die ECC), which no design here uses.

use crate::line::Line;
use crate::settings::{Word, words};
use crate::trace::Fingerprint;

/// The data masks of a code: check bit j is the parity of `word & masks[j]`.
type Masks = [u64; 8];

// Bits of a Hamming (127,120) codeword cut to 64 data bits; bit 7 is made from the other seven.
const HAMMING: Masks = [
    0xAB55_5555_56AA_AD5B,
    0xCD99_9999_9B33_366D,
    0xF1E1_E1E1_E3C3_C78E,
    0x01FE_01FE_03FC_07F0,
    0x01FF_FE00_03FF_F800,
    0x01FF_FFFF_FC00_0000,
    0xFE00_0000_0000_0000,
    0,
];

// OpenTitan, prim_secded_72_64.
const OPEN_TITAN: Masks = [
    0xB900_0000_001F_FFFF,
    0x5E00_000F_FFE0_003F,
    0x6700_3FF0_03E0_07C1,
    0xCD0F_C0F0_3C20_7842,
    0xB671_C711_C443_8884,
    0xB5B6_5926_488C_9108,
    0xCBDA_AA4A_9115_2210,
    0x7AED_348D_221A_4420,
];

// M. Y. Hsiao, IBM Journal of Research and Development 14 (1970), figure 6.
const HSIAO_1970: Masks = [
    0xFF0F_0F0C_6888_8880,
    0xF0FF_00F3_6444_4440,
    0x30F0_FF0F_0222_2226,
    0xCF00_F0FF_0111_1116,
    0x6888_8880_FF0F_00F3,
    0x6444_4440_F0FF_0F0C,
    0x0222_2226_CF00_FF0F,
    0x0111_1116_30F0_F0FF,
];

/// A SECDED (72,64) code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// Truncated (127,120) Hamming plus overall parity, which PageForge names.
    TruncatedHamming,
    /// The balanced odd-weight-column code of OpenTitan.
    HsiaoOpenTitan,
    /// The balanced odd-weight-column code of Hsiao's paper.
    Hsiao1970,
}

words!(Matrix {
    "truncated-hamming" => TruncatedHamming,
    "hsiao-opentitan" => HsiaoOpenTitan,
    "hsiao-1970" => Hsiao1970,
});

impl Matrix {
    /// Every code.
    pub const ALL: [Matrix; 3] = [
        Matrix::TruncatedHamming,
        Matrix::HsiaoOpenTitan,
        Matrix::Hsiao1970,
    ];

    /// The name in configurations and reports.
    pub const fn name(self) -> &'static str {
        Matrix::WORDS[self as usize]
    }

    fn tables(self) -> &'static CheckBitTables {
        match self {
            Matrix::TruncatedHamming => &TRUNCATED_HAMMING,
            Matrix::HsiaoOpenTitan => &HSIAO_OPEN_TITAN,
            Matrix::Hsiao1970 => &HSIAO_OF_1970,
        }
    }

    /// The eight check bits of `word`.
    #[inline]
    pub fn encode(self, word: u64) -> u8 {
        encode(self.tables(), word)
    }
}

/// The 64-bit check word of a line: byte i holds the check bits of its i-th (little-endian) word.
#[inline]
pub fn check_word(matrix: Matrix, line: &Line) -> u64 {
    let tables = matrix.tables();
    let mut checks = [0; 8];
    for (check, word) in checks.iter_mut().zip(line.as_chunks::<8>().0) {
        *check = encode(tables, u64::from_le_bytes(*word));
    }
    u64::from_le_bytes(checks)
}

/// The check words of all codes, as fingerprints of a trace's contents.
pub const FINGERPRINTS: [Fingerprint; 3] = [
    Fingerprint {
        name: Matrix::TruncatedHamming.name(),
        of: |line| check_word(Matrix::TruncatedHamming, line),
    },
    Fingerprint {
        name: Matrix::HsiaoOpenTitan.name(),
        of: |line| check_word(Matrix::HsiaoOpenTitan, line),
    },
    Fingerprint {
        name: Matrix::Hsiao1970.name(),
        of: |line| check_word(Matrix::Hsiao1970, line),
    },
];

/// Check bits of each value of each byte of a word. The code is linear, so they are combined by XOR.
type CheckBitTables = [[u8; 256]; 8];

static TRUNCATED_HAMMING: CheckBitTables = tables(&HAMMING, true);
static HSIAO_OPEN_TITAN: CheckBitTables = tables(&OPEN_TITAN, false);
static HSIAO_OF_1970: CheckBitTables = tables(&HSIAO_1970, false);

#[inline]
fn encode(tables: &CheckBitTables, word: u64) -> u8 {
    let b = word.to_le_bytes();
    let at = |i: usize| tables[i][usize::from(b[i])];
    at(0) ^ at(1) ^ at(2) ^ at(3) ^ at(4) ^ at(5) ^ at(6) ^ at(7)
}

/// Computes check bits by the definition, a mask at a time. With `parity`, bit 7 covers the data and the checks.
const fn by_masks(masks: &Masks, parity: bool, word: u64) -> u8 {
    let mut check = 0;
    let mut j = 0;
    while j < 8 {
        check |= (((word & masks[j]).count_ones() & 1) as u8) << j;
        j += 1;
    }
    if parity {
        check |= (((word.count_ones() + check.count_ones()) & 1) as u8) << 7;
    }
    check
}

const fn tables(masks: &Masks, parity: bool) -> CheckBitTables {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 64 {
        let column = by_masks(masks, parity, 1 << i);
        let mut value = 0;
        while value < 256 {
            if value >> (i % 8) & 1 == 1 {
                tables[i / 8][value] ^= column;
            }
            value += 1;
        }
        i += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    fn masks(matrix: Matrix) -> (&'static Masks, bool) {
        match matrix {
            Matrix::TruncatedHamming => (&HAMMING, true),
            Matrix::HsiaoOpenTitan => (&OPEN_TITAN, false),
            Matrix::Hsiao1970 => (&HSIAO_1970, false),
        }
    }

    #[test]
    fn the_known_words_have_the_known_check_bits() {
        let known = [
            (0, [0x00, 0x00, 0x00]),
            (1, [0x83, 0x07, 0xD0]),
            (0xFF, [0x03, 0xE4, 0x0F]),
            (u64::MAX, [0xFF, 0x00, 0x00]),
            (0x0123_4567_89AB_CDEF, [0x9C, 0x56, 0x50]),
            (0xDEAD_BEEF_CAFE_BABE, [0x3A, 0xEE, 0xC5]),
            (0x8000_0000_0000_0000, [0xC7, 0x79, 0x0B]),
            (0x5555_5555_5555_5555, [0x55, 0x7B, 0x00]),
        ];
        for (word, checks) in known {
            assert_eq!(Matrix::ALL.map(|m| m.encode(word)), checks, "{word:016x}");
        }
    }

    /// Checks that every column has odd weight (in the Hamming code thanks to bit 7) and none occurs twice. One error
    /// then shows its own column, and two together show an even weight.
    #[test]
    fn every_single_error_is_corrected_and_every_double_error_detected() {
        for matrix in Matrix::ALL {
            for word in [0, u64::MAX, 0x0123_4567_89AB_CDEF, 0xDEAD_BEEF_CAFE_BABE] {
                let check = matrix.encode(word);
                let of_data = (0..64).map(|bit| matrix.encode(word ^ 1 << bit) ^ check);
                let columns: Vec<u8> = of_data.chain((0..8).map(|bit| 1 << bit)).collect();
                let different: HashSet<u8> = columns.iter().copied().collect();
                assert_eq!(different.len(), 72, "{matrix:?}");
                assert!(columns.iter().all(|column| column.count_ones() % 2 == 1));
            }
        }
    }

    #[test]
    fn each_code_has_its_own_name() {
        assert_eq!(
            Matrix::ALL.map(Matrix::name),
            ["truncated-hamming", "hsiao-opentitan", "hsiao-1970"]
        );
    }

    proptest! {
        #![proptest_config(sardonyx_property::cases(256))]

        #[test]
        fn the_tables_say_what_the_masks_say(words: [u64; 8]) {
            for matrix in Matrix::ALL {
                let (masks, parity) = masks(matrix);
                let mut line = [0; 64];
                for (bytes, word) in line.chunks_mut(8).zip(words) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                let check = check_word(matrix, &line);
                for (i, word) in words.into_iter().enumerate() {
                    prop_assert_eq!(matrix.encode(word), by_masks(masks, parity, word));
                    prop_assert_eq!((check >> (8 * i)) as u8, matrix.encode(word));
                }
            }
        }
    }
}
