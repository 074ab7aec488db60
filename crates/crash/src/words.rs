//! Words and numbers of a line's bytes, as tables, MACs and pads have them.

use std::ops::Range;

use sardonyx::controller::layers::BESIDE;
use sardonyx::line::{LINE_BYTES, Line, ZERO_LINE};
use sardonyx::medium::image::Content;

pub const WORDS: usize = LINE_BYTES / 8;

pub fn numbers(line: &Line) -> [u64; WORDS] {
    let (words, _) = line.as_chunks();
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

pub fn bytes_of_words(words: &[u64; WORDS]) -> Line {
    let mut line = ZERO_LINE;
    for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    line
}

pub fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

pub fn number_of(line: &Line, bits: &Range<usize>) -> u64 {
    let bit = |at: usize| u64::from(line[at / 8] >> (at % 8) & 1);
    let numbered = bits.clone().enumerate();
    numbered.fold(0, |all, (at, from)| all | bit(from) << at)
}

/// Reads a word of a line, or the bytes beside it.
pub fn word_of(content: Option<&Content>, number: usize) -> [u8; 8] {
    content.map_or([0; 8], |(line, beside)| match number {
        BESIDE => beside.unwrap_or_default(),
        number => line.as_chunks().0[number],
    })
}
