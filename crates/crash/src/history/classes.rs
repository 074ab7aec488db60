//! The classes of contents that a run's requests have written, told from the bytes alone, because whoever drew them may
//! have drawn something else. Left out: how a layer treats them.

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx::line::{LINE_BYTES, Line};
use sardonyx::mechanisms::{Exercised, Mechanism, mechanisms};
use sardonyx::plan::journal::Handled;

mechanisms! {
    ZEROS_WRITTEN = "lines of zeros", least 10;
    ONES_WRITTEN = "lines of ones", least 10;
    ONE_BYTE_WRITTEN = "lines of one byte", least 10;
    ONE_OTHER_WRITTEN = "lines of one byte but for one", least 10;
    BASES_WRITTEN = "lines of a base and differences", least 10;
    POINTERS_WRITTEN = "lines of pointers", least 10;
    TEXT_WRITTEN = "lines of text", least 10;
    LOW_WRITTEN = "lines of low entropy", least 10;
    NEAR_WRITTEN = "lines a bit from another", least 10;
    HIGH_WRITTEN = "lines of high entropy", least 10;
    SILENT_STORE = "silent stores", least 10;
    WRITTEN_AGAIN = "contents that come back", least 10;
}

/// Words count as near if they differ from the first by at most this.
const NEAR: i64 = 1 << 8;
/// Entropy is low up to this number of different bytes, and high from the next constant on.
const LOW: u32 = 8;
const HIGH: u32 = 48;
const WORDS: usize = LINE_BYTES / 8;

pub fn count(handled: &[Handled], exercised: &mut Exercised) {
    let mut lines: FxHashMap<u64, (Option<Line>, FxHashSet<Line>)> = FxHashMap::default();
    // Maps all words of a line but one to that one.
    let mut but_one: FxHashMap<(usize, [u64; WORDS]), u64> = FxHashMap::default();
    for request in handled {
        let line = request.data;
        if let Some(class) = class(&line) {
            exercised.count(class);
        }
        let words = words(&line);
        let mut is_near = false;
        for at in 0..WORDS {
            let mut others = words;
            others[at] = 0;
            let other = but_one.insert((at, others), words[at]);
            is_near |= other.is_some_and(|other| (other ^ words[at]).count_ones() == 1);
        }
        exercised.add(&NEAR_WRITTEN, u64::from(is_near));
        let (newest, older) = lines.entry(request.line.0).or_default();
        if *newest == Some(line) {
            exercised.count(&SILENT_STORE);
        } else {
            exercised.add(&WRITTEN_AGAIN, u64::from(older.contains(&line)));
            older.insert(line);
            *newest = Some(line);
        }
    }
}

fn words(line: &Line) -> [u64; WORDS] {
    std::array::from_fn(|at| u64::from_le_bytes(line.as_chunks().0[at]))
}

/// The class of `line` by itself, if it has one.
fn class(line: &Line) -> Option<&'static Mechanism> {
    let mut seen = [0u64; 4];
    line.iter()
        .for_each(|byte| seen[usize::from(byte / 64)] |= 1 << (byte % 64));
    let different: u32 = seen.iter().map(|bits| bits.count_ones()).sum();
    let first = words(line)[0];
    let is_near = |word: u64| (word.wrapping_sub(first) as i64).unsigned_abs() <= NEAR as u64;
    let is_pointer = |word: u64| word.is_multiple_of(8) && (1 << 32..1 << 47).contains(&word);
    let is_letter = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\n';
    let usual = if line[0] == line[1] { line[0] } else { line[2] };
    Some(match different {
        1 if line[0] == 0 => &ZEROS_WRITTEN,
        1 if line[0] == 0xff => &ONES_WRITTEN,
        1 => &ONE_BYTE_WRITTEN,
        2 if line.iter().filter(|byte| **byte != usual).count() == 1 => &ONE_OTHER_WRITTEN,
        _ if words(line).into_iter().all(is_near) => &BASES_WRITTEN,
        _ if words(line).into_iter().all(is_pointer) => &POINTERS_WRITTEN,
        _ if line.iter().all(is_letter) => &TEXT_WRITTEN,
        0..=LOW => &LOW_WRITTEN,
        HIGH.. => &HIGH_WRITTEN,
        _ => return None,
    })
}
