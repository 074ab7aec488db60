//! The contents of a unit of persistence, one after another: a line of 64 bytes, or a sector or a page of a file on a
//! disk.
//!
//! Of each content only the words that changed are kept, and now and then all words of the line, so that any content is
//! assembled from a few. A unit of several lines has a content for each store to any of them.

use std::hash::{DefaultHasher, Hash, Hasher};

use sardonyx_trace::line::Line;

/// The bytes of a line.
pub const LINE: usize = 64;
const WORDS: usize = 8;
const WHOLE_EACH: usize = 16;

/// The hash of some bytes at the place of a line of a file.
pub fn hash_of(file: u16, line: u32, data: &Line) -> u64 {
    let mut hasher = DefaultHasher::new();
    (file, line, data).hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Copy, Debug)]
struct WordChange {
    /// A hash of the whole unit, in two halves, so that the structure has 20 bytes.
    hash: [u32; 2],
    event: u32,
    at: u32,
    /// A bit for each word of the line that this content changed.
    kept: u8,
    /// The changed line, as an index of [`Versions::parts`].
    part: u8,
}

#[derive(Clone, Debug)]
struct UnitLine {
    line: u32,
    /// The index of the words that the line held before its first store.
    ground: u32,
    /// The unit's versions that changed the line; empty in a unit of one line, where all did.
    versions: Vec<u32>,
}

#[derive(Clone, Debug)]
pub struct PersistenceUnit {
    /// The file, as an index of [`Recording::pools`].
    pub file: u16,
    pub line: u32,
    pub versions: Versions,
}

#[derive(Clone, Debug)]
pub struct Versions {
    changes: Vec<WordChange>,
    words: Vec<u64>,
    parts: Vec<UnitLine>,
    file: u16,
    is_line: bool,
}

pub fn words_of(data: &Line) -> [u64; WORDS] {
    std::array::from_fn(|i| u64::from_le_bytes(data[i * 8..i * 8 + 8].try_into().expect("8 bytes")))
}

/// Makes room for `more`, and for a quarter of what is there. There are millions of these lists, and doubling would
/// leave half of them empty.
fn room<T>(all: &mut Vec<T>, more: usize) {
    if all.capacity() - all.len() < more {
        all.reserve_exact(more.max(all.len() / 4));
    }
}

impl Versions {
    /// Makes a unit before any store: one line of a file, or several.
    pub fn new(file: u16, is_line: bool) -> Versions {
        Versions {
            changes: Vec::new(),
            words: Vec::new(),
            parts: Vec::new(),
            file,
            is_line,
        }
    }

    pub fn count(&self) -> u32 {
        self.changes.len() as u32
    }

    pub fn last(&self) -> u32 {
        self.count() - 1
    }

    /// The event that made a content; meaningless for content 0.
    pub fn event(&self, version: u32) -> u32 {
        self.changes[version as usize].event
    }

    /// The number of the content that an event left, if there was one by then.
    pub fn at(&self, event: u32) -> u32 {
        let changes = self.changes.get(1..).unwrap_or_default();
        changes.partition_point(|change| change.event <= event) as u32
    }

    /// Counts the contents of `from..=to` that were made up to an event, if events are in order there.
    pub fn made_by(&self, from: u32, to: u32, event: u32) -> u32 {
        let range = from as usize..=to as usize;
        self.changes[range].partition_point(|change| change.event <= event) as u32
    }

    /// Renumbers the events, by their old numbers; the order of those that made contents here stays.
    pub fn renumber(&mut self, numbers: &[u32]) {
        for change in self.changes.iter_mut().skip(1) {
            change.event = numbers[change.event as usize];
        }
    }

    pub fn hash(&self, version: u32) -> u64 {
        let [high, low] = self.changes[version as usize].hash;
        u64::from(high) << 32 | u64::from(low)
    }

    fn keep(&mut self, words: &[u64; WORDS], kept: u8) -> u32 {
        let at = self.words.len() as u32;
        room(&mut self.words, kept.count_ones() as usize);
        let chosen = (0..WORDS).filter(|i| kept & 1 << i != 0);
        self.words.extend(chosen.map(|i| words[i]));
        at
    }

    /// Notes the content of the line from an event on; `ground` says what it held before the program. Returns the
    /// content's number, which is the last one's if nothing changed.
    pub fn push(
        &mut self,
        line: u32,
        data: &Line,
        event: u32,
        ground: impl FnOnce() -> Line,
    ) -> u32 {
        self.push_over(None, line, data, event, ground)
    }

    /// Takes the line's content from before too, from a caller that knows it.
    pub fn push_over(
        &mut self,
        held: Option<&Line>,
        line: u32,
        data: &Line,
        event: u32,
        ground: impl FnOnce() -> Line,
    ) -> u32 {
        let part = match self.parts.iter().position(|part| part.line == line) {
            Some(part) => part,
            None => self.first_of(line, &ground()),
        };
        let before = match held {
            Some(held) => *held,
            None => self.data_of(part, self.last()),
        };
        if before == *data {
            return self.last();
        }
        let (old, new) = (words_of(&before), words_of(data));
        let nth = match self.is_line {
            true => self.changes.len(),
            false => self.parts[part].versions.len() + 1,
        };
        let differ = (0..WORDS).filter(|&i| old[i] != new[i]);
        let kept = match nth % WHOLE_EACH {
            0 => u8::MAX,
            _ => differ.fold(0, |kept, i| kept | 1 << i),
        };
        let hash = self.hash(self.last())
            ^ hash_of(self.file, line, &before)
            ^ hash_of(self.file, line, data);
        let at = self.keep(&new, kept);
        room(&mut self.changes, 1);
        self.changes.push(WordChange {
            hash: [(hash >> 32) as u32, hash as u32],
            event,
            at,
            kept,
            part: part as u8,
        });
        if !self.is_line {
            let last = self.last();
            self.parts[part].versions.push(last);
        }
        self.last()
    }

    fn first_of(&mut self, line: u32, ground: &Line) -> usize {
        let words = words_of(ground);
        let at = self.keep(&words, u8::MAX);
        if self.changes.is_empty() {
            // Lines that are stored to later are only known to be as before.
            let hash = hash_of(self.file, line, ground);
            room(&mut self.changes, 2);
            self.changes.push(WordChange {
                hash: [(hash >> 32) as u32, hash as u32],
                event: 0,
                at,
                kept: u8::MAX,
                part: 0,
            });
        }
        room(&mut self.parts, 1);
        self.parts.push(UnitLine {
            line,
            ground: at,
            versions: Vec::new(),
        });
        self.parts.len() - 1
    }

    fn data_of(&self, part: usize, version: u32) -> Line {
        let UnitLine {
            ground, versions, ..
        } = &self.parts[part];
        let mut data = [0; WORDS * 8];
        let mut wanted = u8::MAX;
        let mut take = |kept: u8, at: u32| {
            let words = (0..WORDS).filter(|i| kept & 1 << i != 0);
            for (i, word) in words.zip(&self.words[at as usize..]) {
                if wanted & 1 << i != 0 {
                    data[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
            wanted &= !kept;
            wanted == 0
        };
        let mut changed = |number: u32| {
            let change = &self.changes[number as usize];
            take(change.kept, change.at)
        };
        let found = match self.is_line {
            true => (1..=version).rev().any(&mut changed),
            false => {
                let before = versions.partition_point(|&number| number <= version);
                versions[..before]
                    .iter()
                    .rev()
                    .any(|&number| changed(number))
            }
        };
        if !found {
            take(u8::MAX, *ground);
        }
        data
    }

    /// The line that a content changed, with its bytes before and since.
    pub fn change(&self, version: u32) -> (u32, Line, Line) {
        let part = self.changes[version as usize].part as usize;
        let before = self.data_of(part, version.saturating_sub(1));
        (self.parts[part].line, before, self.data_of(part, version))
    }

    pub fn data(&self, version: u32) -> Line {
        debug_assert!(self.is_line);
        self.data_of(0, version)
    }

    /// Each line that was ever stored to, with its last bytes.
    pub fn at_end(&self) -> impl Iterator<Item = (u32, Line)> + '_ {
        self.lines(self.last())
    }

    /// Each line of the unit that was ever stored to, with its bytes in a content.
    pub fn lines(&self, version: u32) -> impl Iterator<Item = (u32, Line)> + '_ {
        let parts = self.parts.iter().enumerate();
        parts.map(move |(number, part)| (part.line, self.data_of(number, version)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *seed >> 33
    }

    /// Compares every content of a unit of some lines with a list of whole copies.
    fn check(lines: u32, stores: usize) {
        let (mut seed, ground) = (7, [9; 64]);
        let mut versions = Versions::new(0, lines == 1);
        let mut slow: Vec<Vec<Line>> = vec![vec![ground; lines as usize]];
        for event in 0..stores as u32 {
            let line = drawn(&mut seed) as u32 % lines;
            let mut now = slow.last().expect("the ground")[line as usize];
            for _ in 0..drawn(&mut seed) % 4 {
                now[drawn(&mut seed) as usize % 64] = drawn(&mut seed) as u8;
            }
            let number = versions.push(100 + line, &now, event, || ground);
            if slow.last().expect("the ground")[line as usize] != now {
                let mut next = slow.last().expect("the ground").clone();
                next[line as usize] = now;
                slow.push(next);
            }
            assert_eq!(number as usize, slow.len() - 1);
        }
        assert_eq!(versions.count() as usize, slow.len());
        for (number, whole) in slow.iter().enumerate() {
            for (line, data) in versions.lines(number as u32) {
                assert_eq!(data, whole[line as usize - 100], "{number}");
            }
        }
        for (one, a) in slow.iter().enumerate() {
            for (other, b) in slow.iter().enumerate().take(one) {
                let same = versions.hash(one as u32) == versions.hash(other as u32);
                assert_eq!(same, a == b, "{one} and {other}");
            }
        }
    }

    #[test]
    fn contents_are_those_that_were_stored() {
        check(1, 200);
        check(8, 400);
        check(64, 400);
    }

    #[test]
    fn a_content_says_which_line_changed_and_how() {
        let mut versions = Versions::new(0, false);
        versions.push(8, &[1; 64], 3, || [0; 64]);
        versions.push(9, &[2; 64], 5, || [7; 64]);
        assert_eq!(versions.change(1), (8, [0; 64], [1; 64]));
        assert_eq!(versions.change(2), (9, [7; 64], [2; 64]));
        assert_eq!((versions.event(1), versions.event(2)), (3, 5));
        assert_eq!(versions.made_by(1, 2, 4), 1);
    }
}
