//! Contents that a mapping codes wrongly, as one that keeps few bits for lines of a kind may: each fault changes lines of
//! one class and no others, so it shows only where that class is written.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use sardonyx::controller::Write;
use sardonyx::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use sardonyx::plan::{At, Plan, Step, Stored};

use crate::around::{Right, Wrong, mapping};
use crate::fault::{Fault, rows};
use crate::plans::SHARED;

/// What a line reads as after it was written.
trait Code: Send + 'static {
    fn coded(line: &Line) -> Option<Line>;
}

struct Coded<C>(PhantomData<C>);

impl<C> Default for Coded<C> {
    fn default() -> Coded<C> {
        Coded(PhantomData)
    }
}

impl<C: Code> Wrong for Coded<C> {
    const RIGHT: &'static str = "identity";

    fn write(&mut self, write: Write<Logical>, right: &mut Right, plan: &mut Plan) -> Stored {
        let line = C::coded(write.data.value).unwrap_or(*write.data.value);
        right.write(
            Write {
                data: At::new(&line, write.data.at),
                ..write
            },
            plan,
        )
    }
}

macro_rules! codes {
    ($($Code:ident($line:ident) $coded:block)+) => {
        $(
            struct $Code;

            impl Code for $Code {
                fn coded($line: &Line) -> Option<Line> $coded
            }
        )+
    };
}

fn words(line: &Line) -> [u64; 8] {
    std::array::from_fn(|at| u64::from_le_bytes(line.as_chunks().0[at]))
}

fn line_of(words: [u64; 8]) -> Line {
    let mut line = ZERO_LINE;
    for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    line
}

/// The byte that a line has everywhere.
fn only(line: &[u8]) -> Option<u8> {
    line.iter().all(|byte| *byte == line[0]).then_some(line[0])
}

codes! {
    OnesAsZeros(line) {
        (only(line)? == 0xff).then_some(ZERO_LINE)
    }
    TableOf255(line) {
        (only(line)? == 0xfe).then_some(ZERO_LINE)
    }
    SevenBits(line) {
        Some([only(line)? & 0x7f; LINE_BYTES])
    }
    ZerosButTheLast(line) {
        (only(&line[..LINE_BYTES - 1])? == 0).then_some(ZERO_LINE)
    }
    PlaceOfOther(line) {
        // Six bits that count from 1 say where the other byte is.
        let usual = only(&line[..LINE_BYTES - 1])?;
        Some([usual; LINE_BYTES])
    }
    CarryLost(line) {
        let words = words(line);
        let near = |word: u64| (word.wrapping_sub(words[0]) as i64).unsigned_abs() < 256;
        let low = |word: u64| words[0] & !0xffff | word & 0xffff;
        words.into_iter().all(near).then(|| line_of(words.map(low)))
    }
    PointersOfOneHeap(line) {
        let words = words(line);
        let is_pointer = |word: u64| word.is_multiple_of(8) && (1 << 32..1 << 47).contains(&word);
        let all = words.into_iter().all(is_pointer);
        let low = |word: u64| words[0] >> 40 << 40 | word & 0xff_ffff_ffff;
        all.then(|| line_of(words.map(low)))
    }
    EndsOfLines(line) {
        let is_letter = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\n';
        let space = |byte: u8| if byte == b'\n' { b' ' } else { byte };
        line.iter().all(is_letter).then(|| line.map(space))
    }
    FourOfFive(line) {
        let mut different: Vec<u8> = Vec::new();
        for byte in line {
            if !different.contains(byte) {
                different.push(*byte);
            }
        }
        let fifth = |byte: u8| if byte == different[4] { different[0] } else { byte };
        (different.len() == 5).then(|| line.map(fifth))
    }
}

codes! {
    ThreeBits(line) {
        let bits: u32 = line.iter().map(|byte| byte.count_ones()).sum();
        let mut left = 3;
        let first = |byte: u8| {
            let mut kept = 0;
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                if left > 0 {
                    left -= 1;
                    kept |= 1 << bit;
                }
            }
            kept
        };
        (4..=8).contains(&bits).then(|| line.map(first))
    }
    SmallNumber(line) {
        let words = words(line);
        let one = words.iter().filter(|word| **word != 0).count() == 1;
        let small = words.iter().all(|word| *word < 1 << 32);
        (one && small).then(|| line_of(words.map(|word| word & 0xffff)))
    }
}

/// What each line held, newest last.
#[derive(Default)]
struct Held {
    lines: BTreeMap<Logical, [Line; 2]>,
}

/// A store that is left out: told from the line's content, the one before, and the new one.
trait LeavesOut: Default + Send + 'static {
    fn leaves_out(before: &[Line; 2], new: &Line) -> bool;
}

#[derive(Default)]
struct Left<L> {
    held: Held,
    which: PhantomData<L>,
}

impl<L: LeavesOut> Wrong for Left<L> {
    const RIGHT: &'static str = "identity";

    fn write(&mut self, write: Write<Logical>, right: &mut Right, plan: &mut Plan) -> Stored {
        let line = *write.data.value;
        let known = self.held.lines.get(&write.at).copied();
        if known.is_some_and(|known| L::leaves_out(&known, &line)) {
            return Stored::at(Step::PAST);
        }
        let before = known.map_or(ZERO_LINE, |known| known[1]);
        self.held.lines.insert(write.at, [before, line]);
        right.write(write, plan)
    }
}

/// The content that comes back after one other.
#[derive(Default)]
struct ComesBack;

impl LeavesOut for ComesBack {
    fn leaves_out([before, now]: &[Line; 2], new: &Line) -> bool {
        before == new && now != new
    }
}

/// A content that differs in one bit.
#[derive(Default)]
struct OneBit;

impl LeavesOut for OneBit {
    fn leaves_out([_, now]: &[Line; 2], new: &Line) -> bool {
        let differ = now
            .iter()
            .zip(new)
            .map(|(now, new)| (now ^ new).count_ones());
        differ.sum::<u32>() == 1
    }
}

pub const FAULTS: &[Fault] = rows! { "*+sca", SHARED;
    "ones-as-zeros" coded[OnesAsZeros]
        "Lines of ones read as zeros." [Cuts: WrongLine, Requests: WrongLine]
    "table-of-255" coded[TableOf255]
        "A table of 255 lines of one byte lacks the last." [Cuts: WrongLine, Requests: WrongLine]
    "byte-of-seven-bits" coded[SevenBits]
        "Lines of one byte keep seven bits of it." [Cuts: WrongLine, Requests: WrongLine]
    "zeros-but-the-last" coded[ZerosButTheLast]
        "The last byte does not count when a line is taken for zeros." [Requests: WrongLine]
    "place-of-other" coded[PlaceOfOther]
        "Of a line of one byte but for one, the place of that cannot be the last." [Requests: WrongLine]
    "carry-of-bases-lost" coded[CarryLost]
        "Base and differences lose a carry out of 16 bits." [Cuts: WrongLine, Requests: WrongLine]
    "pointers-of-one-heap" coded[PointersOfOneHeap]
        "Pointers share the upper bits of the first." [Cuts: WrongLine, Requests: WrongLine]
    "ends-of-lines" coded[EndsOfLines]
        "A code for text has no ends of lines." [Cuts: WrongLine, Requests: WrongLine]
    "four-of-five" coded[FourOfFive]
        "A dictionary of four bytes takes lines of five." [Cuts: WrongLine, Requests: WrongLine]
    "three-bits" coded[ThreeBits]
        "Lines of up to eight bits keep three of them." [Cuts: WrongLine, Requests: WrongLine]
    "small-number" coded[SmallNumber]
        "A line of one small number keeps sixteen bits of it." [Requests: WrongLine]
    "taken-for-silent" left[ComesBack]
        "A content that comes back after one other is taken for a silent store." [Cuts: WrongLine, Requests: WrongLine]
    "one-bit-is-silent" left[OneBit]
        "A store that changes one bit is taken for silent." [Cuts: WrongLine, Requests: WrongLine]
};

fn coded<C: Code>(name: &'static str) -> crate::fault::Layers {
    mapping::<Coded<C>>(name)
}

fn left<L: LeavesOut>(name: &'static str) -> crate::fault::Layers {
    mapping::<Left<L>>(name)
}
