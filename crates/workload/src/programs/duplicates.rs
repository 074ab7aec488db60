//! An array of lines whose contents repeat; a transaction overwrites some with contents of a small
//! pool, with ones that collide with those in every fingerprint but SHA-1, and with new ones. For the
//! mapping designs: places are shared, freed and used again. Invariant: each line holds a content that
//! the program may write there.

use std::sync::LazyLock;

use super::{Heap, LINE, Program, ProgramFile, fault};
use crate::contents::{TWINS, twin_of};
use crate::random::{Random, item};
use crate::{Bytes, Class, Contents, Fault, ProgramSpec};
use sardonyx::line::{LINE_BYTES, Line};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "duplicates",
    line: "overwrites lines of an array with contents that repeat and that collide",
    least_bytes: super::PAGE,
    build: |spec, heap| {
        let lines = spec.footprint / LINE;
        let heap = Heap::new(heap, lines * LINE);
        (heap, Box::new(Duplicates { spec, heap, lines }))
    },
};

/// Number of contents in the pool. Content 0 is zeros, content 1 is written most.
const POOL: u64 = 12;
const ZEROS: u64 = 0;
const FAVOURITE: u64 = 1;
/// Lines that setup gives the favourite content, or half of all lines if those are fewer. With one more line, a count
/// of one byte is full.
const FAVOURITES: u64 = 254;
/// The first lines, which are overwritten most.
const HOT: u64 = 20;
const OVERWRITTEN: u64 = 4;

struct Duplicates {
    spec: ProgramSpec,
    heap: Heap,
    lines: u64,
}

/// The contents of the pool where classes are drawn, a line each.
static DRAWN: LazyLock<[Line; POOL as usize]> = LazyLock::new(|| {
    let class = |id: usize| Class::ALL[id.saturating_sub(1) % Class::ALL.len()];
    std::array::from_fn(|id| class(id).line(id as u64))
});

/// Twin `twin` of content `id`. Twin 0 is the content itself.
fn content(contents: Contents, id: u64, twin: u64) -> Line {
    let mut line = [0; LINE_BYTES];
    match (contents, id) {
        (_, ZEROS) => {}
        (Contents::Drawn, id) if id > FAVOURITE && id < POOL => line = DRAWN[id as usize],
        _ => line.copy_from_slice(&item(id, LINE)),
    }
    twin_of(line, twin as usize)
}

fn read(contents: Contents, line: &Line) -> Option<(u64, u64)> {
    let first = u64::from_le_bytes(line[..8].try_into().expect("8 bytes"));
    let starts_alike = |id: &u64| content(contents, *id, 0)[..8] == line[..8];
    let ids = (0..POOL).filter(starts_alike).chain([first]);
    let twins = 0..TWINS as u64;
    let mut all = ids.flat_map(|id| twins.clone().map(move |twin| (id, twin)));
    all.find(|(id, twin)| content(contents, *id, *twin) == *line)
}

impl Duplicates {
    fn place(&self, index: u64) -> u64 {
        self.heap.start + index * LINE
    }

    fn unique(&self, number: u64, index: u64) -> u64 {
        POOL + number * self.lines + index
    }

    fn next(&self, old: &Line, number: u64, index: u64, random: &mut Random) -> Line {
        match random.below(16) {
            0 => *old,
            1..=3 => content(self.spec.contents, FAVOURITE, 0),
            4..=7 => content(self.spec.contents, random.below(POOL), 0),
            8..=9 => content(self.spec.contents, random.below(POOL), 1 + random.below(3)),
            10..=12 => content(self.spec.contents, self.unique(number, index), 0),
            // To and fro between two that collide.
            _ => match read(self.spec.contents, old) {
                Some((id, 0)) => content(self.spec.contents, id, 1),
                Some((id, _)) => content(self.spec.contents, id, 0),
                None => content(self.spec.contents, ZEROS, 0),
            },
        }
    }
}

impl Program for Duplicates {
    fn setup(&self, memory: &mut dyn Bytes) {
        let hot = HOT.min(self.lines);
        let favourites = hot..hot + FAVOURITES.min(self.lines / 2);
        for index in 0..self.lines {
            let id = match index {
                _ if favourites.contains(&index) => FAVOURITE,
                _ if index % 2 == 0 => index / 2 % POOL,
                _ => self.unique(0, index),
            };
            memory.store(self.place(index), &content(self.spec.contents, id, 0));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        let mut random = Random::new(self.spec.seed, number);
        for _ in 0..OVERWRITTEN * self.spec.item_bytes / LINE {
            let among = match random.below(4) {
                0 => self.lines,
                _ => HOT.min(self.lines),
            };
            let index = random.below(among);
            let mut old = [0; LINE_BYTES];
            memory.load(self.place(index), &mut old);
            memory.depend();
            let new = self.next(&old, number, index, &mut random);
            memory.store(self.place(index), &new);
        }
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        for index in 0..self.lines {
            let at = self.place(index);
            let mut line = [0; LINE_BYTES];
            memory.load(at, &mut line);
            let Some((id, _)) = read(self.spec.contents, &line) else {
                return fault(at, format!("line {index} holds no content of the program"));
            };
            let unique = id.wrapping_sub(POOL);
            let (number, of) = (unique / self.lines, unique % self.lines);
            if id >= POOL && (of != index || number > self.spec.transactions) {
                return fault(at, format!("line {index} holds {id:#x}, another's content"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sardonyx::ecc::{Matrix, check_word};

    #[test]
    fn twins_differ_and_no_fingerprint_tells() {
        let all = [ZEROS, FAVOURITE, 5, 1 << 40].into_iter();
        let all = all.flat_map(|id| [(Contents::Numbered, id), (Contents::Drawn, id)]);
        for (contents, id) in all {
            let plain = content(contents, id, 0);
            for twin in 1..TWINS as u64 {
                let other = content(contents, id, twin);
                assert_ne!(plain, other);
                assert_eq!(read(contents, &other), Some((id, twin)));
                assert_eq!(crc32fast::hash(&plain), crc32fast::hash(&other));
                for matrix in Matrix::ALL {
                    assert_eq!(check_word(matrix, &plain), check_word(matrix, &other));
                }
            }
        }
    }
}
