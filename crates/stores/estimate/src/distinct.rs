//! Distinct contents and how often each occurs, in memory of a given size.
//!
//! Counts are exact while the contents fit. When they do not, half of them are dropped by a bit of their digests, and
//! from then on only every second content is followed, then every fourth (distinct sampling: Gibbons, VLDB 2001). A
//! content that is followed is counted from its first occurrence to its last, so the numbers scale. Left out: the data
//! that digests are of.

use std::io::{self, Read, Write};

use serde::Serialize;

const PLACE: u64 = size_of::<TableEntry>() as u64;
const COMPRESSED: u64 = size_of::<u32>() as u64;

/// 128 bits of a digest (two contents of 2^40 share them with a probability of 2^-49); the third word has the number of
/// occurrences (0 for a free place) in its lower half, and the content's bytes in the upper.
type TableEntry = [u64; 3];

fn times(place: &TableEntry) -> u64 {
    place[2] & 0xffff_ffff
}

fn length(place: &TableEntry) -> u64 {
    place[2] >> 32
}

/// Whether a content is followed, by bits that the table does not look up by.
fn followed(place: &TableEntry, level: u32) -> bool {
    place[1].trailing_zeros() >= level
}

pub(super) struct Distinct {
    /// Contents are at the place that their digest names, or at the next that was free.
    places: Vec<TableEntry>,
    /// The number of contents that are followed, and its limit.
    contents: usize,
    limit: usize,
    /// The bytes of each content after compression, at its place; empty if nothing is compressed.
    compressed: Vec<u32>,
    /// One content of 2^level is followed.
    level: u32,
    pub chunks: u64,
    pub bytes: u64,
    pub zero_chunks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct References {
    pub least: u64,
    pub most: u64,
    pub contents: u64,
    pub chunks: u64,
}

/// The room of a table: places, a power of two. A quarter of them stays free, so that it never grows.
#[derive(Debug)]
pub(super) struct Allotment {
    places: usize,
    compresses: bool,
}

impl Allotment {
    /// Divides `bytes` among the tables: each gets what it wants; if that is too much, the table that lacks most is
    /// doubled first. `compresses` says whether they hold compressed lengths too.
    pub fn share(wanted: &[u64], bytes: u64, compresses: bool) -> Vec<Allotment> {
        let smallest = |_| Allotment {
            places: 16,
            compresses,
        };
        let mut rooms: Vec<Allotment> = wanted.iter().map(smallest).collect();
        loop {
            let taken: u64 = rooms.iter().map(Allotment::bytes).sum();
            let lacking = rooms.iter_mut().zip(wanted).filter(|(room, wanted)| {
                **wanted > room.limit() as u64 && taken + room.bytes() <= bytes
            });
            let most = |(room, wanted): &(&mut Allotment, &u64)| **wanted / room.places as u64;
            let Some((room, _)) = lacking.max_by_key(most) else {
                return rooms;
            };
            room.places *= 2;
        }
    }

    pub fn limit(&self) -> usize {
        self.places / 4 * 3
    }

    pub fn bytes(&self) -> u64 {
        let compressed = if self.compresses { COMPRESSED } else { 0 };
        self.places as u64 * (PLACE + compressed)
    }
}

impl Distinct {
    pub fn new(room: &Allotment) -> Distinct {
        Distinct {
            places: vec![[0; 3]; room.places],
            contents: 0,
            limit: room.limit(),
            compressed: vec![0; if room.compresses { room.places } else { 0 }],
            level: 0,
            chunks: 0,
            bytes: 0,
            zero_chunks: 0,
        }
    }

    /// Counts one chunk. The digest's bits must be evenly distributed. `compressed` is asked for the chunk's bytes after
    /// compression, once for each content that is followed, if the table holds them.
    pub fn add(&mut self, digest: &[u8; 20], length: u32, compressed: impl FnOnce() -> u32) {
        self.chunks += 1;
        self.bytes += u64::from(length);
        let word = |from: usize| u64::from_le_bytes(digest[from..from + 8].try_into().unwrap());
        let new = [word(0), word(8), u64::from(length) << 32];
        if !followed(&new, self.level) {
            return;
        }
        let at = self.find(&new);
        let place = &mut self.places[at];
        if times(place) == 0 {
            *place = new;
            self.contents += 1;
            if let Some(place) = self.compressed.get_mut(at) {
                *place = compressed();
            }
        }
        if times(place) < u64::from(u32::MAX) {
            place[2] += 1;
        }
        while self.contents > self.limit {
            self.level += 1;
            self.let_go();
        }
    }

    fn find(&self, wanted: &TableEntry) -> usize {
        let mut at = self.home(wanted);
        while times(&self.places[at]) > 0 && self.places[at][..2] != wanted[..2] {
            at = self.after(at);
        }
        at
    }

    fn home(&self, place: &TableEntry) -> usize {
        place[0] as usize & (self.places.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    fn let_go(&mut self) {
        for at in 0..self.places.len() {
            while times(&self.places[at]) > 0 && !followed(&self.places[at], self.level) {
                self.free(at);
            }
        }
    }

    /// Frees a place; entries behind it move up as far as they may.
    fn free(&mut self, mut hole: usize) {
        let mut at = self.after(hole);
        while times(&self.places[at]) > 0 {
            let to_home = at.wrapping_sub(self.home(&self.places[at])) & (self.places.len() - 1);
            let to_hole = at.wrapping_sub(hole) & (self.places.len() - 1);
            if to_home >= to_hole {
                self.places[hole] = self.places[at];
                if !self.compressed.is_empty() {
                    self.compressed[hole] = self.compressed[at];
                }
                hole = at;
            }
            at = self.after(at);
        }
        self.places[hole] = [0; 3];
        self.contents -= 1;
    }

    fn taken(&self) -> impl Iterator<Item = &TableEntry> {
        self.places.iter().filter(|place| times(place) > 0)
    }

    /// One content in this many is followed; with 1 the counts are exact.
    pub fn one_in(&self) -> u64 {
        1 << self.level
    }

    pub fn unique(&self) -> (u64, u64) {
        let bytes: u64 = self.taken().map(length).sum();
        (self.contents as u64 * self.one_in(), bytes * self.one_in())
    }

    /// Bytes after compression: of distinct contents, and of every chunk; `None` if nothing is compressed.
    pub fn compressed(&self) -> Option<(u64, u64)> {
        let places = self.places.iter().zip(&self.compressed);
        let taken = places.filter(|(place, _)| times(place) > 0);
        let add = |(distinct, all): (u64, u64), (place, &bytes): (&TableEntry, &u32)| {
            let bytes = u64::from(bytes) * self.one_in();
            (distinct + bytes, all + bytes * times(place))
        };
        (!self.compressed.is_empty()).then(|| taken.fold((0, 0), add))
    }

    /// Contents by the number of their occurrences: one, two, 3-4, 5-8 and so on.
    pub fn references(&self) -> Vec<References> {
        let mut rows: Vec<References> = Vec::new();
        for place in self.taken() {
            let row = times(place).next_power_of_two().ilog2() as usize;
            while rows.len() <= row {
                let most = 1 << rows.len();
                rows.push(References {
                    least: most / 2 + 1,
                    most,
                    contents: 0,
                    chunks: 0,
                });
            }
            rows[row].contents += self.one_in();
            rows[row].chunks += times(place) * self.one_in();
        }
        rows
    }

    /// The table's bytes, for [`Distinct::load`].
    pub fn save(&self, to: &mut impl Write) -> io::Result<()> {
        let numbers = [
            u64::from(self.level),
            self.chunks,
            self.bytes,
            self.zero_chunks,
            self.contents as u64,
        ];
        for number in numbers {
            to.write_all(&number.to_le_bytes())?;
        }
        for (at, place) in self.places.iter().enumerate() {
            if times(place) > 0 {
                let compressed = self.compressed.get(at).copied().map(u64::from);
                for word in place.iter().copied().chain(compressed) {
                    to.write_all(&word.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }

    /// Fills an empty table of the same size with saved bytes.
    pub fn load(&mut self, from: &mut impl Read) -> io::Result<()> {
        let mut number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        self.level = number()? as u32;
        self.chunks = number()?;
        self.bytes = number()?;
        self.zero_chunks = number()?;
        let contents = number()?;
        if self.level > 63 || contents > self.limit as u64 {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        for _ in 0..contents {
            let place = [number()?, number()?, number()?];
            let at = self.find(&place);
            self.contents += usize::from(times(&self.places[at]) == 0);
            self.places[at] = place;
            if let Some(compressed) = self.compressed.get_mut(at) {
                *compressed = number()? as u32;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use sha1::{Digest, Sha1};

    fn digest(number: u64) -> [u8; 20] {
        Sha1::digest(number.to_le_bytes()).into()
    }

    fn small() -> Distinct {
        Distinct::new(&Allotment::share(&[u64::MAX / 8], 1 << 18, true)[0])
    }

    #[test]
    fn rooms_are_as_large_as_wanted_or_as_the_memory() {
        let rooms = Allotment::share(&[100, 1000], 1 << 20, false);
        assert!(rooms[0].limit() >= 100 && rooms[1].limit() >= 1000);
        let shared = |compresses| Allotment::share(&[1 << 40, 1 << 38, 10], 1 << 20, compresses);
        let bytes = |rooms: &[Allotment]| rooms.iter().map(Allotment::bytes).sum::<u64>();
        let rooms = shared(true);
        assert!(bytes(&rooms) <= 1 << 20 && rooms[2].bytes() == 16 * 28);
        let rooms = shared(false);
        assert!(bytes(&rooms) <= 1 << 20);
        assert!(rooms[0].bytes() >= 2 * rooms[1].bytes() && rooms[2].limit() >= 10);
    }

    #[test]
    fn exact_counts_equal_those_of_a_plain_map() {
        let mut table = Distinct::new(&Allotment::share(&[1000], 1 << 20, false)[0]);
        let mut plain: HashMap<u64, u64> = HashMap::new();
        for number in 0..5000_u64 {
            let content = number * number % 997;
            table.add(&digest(content), 4096, || unreachable!());
            *plain.entry(content).or_default() += 1;
        }
        assert_eq!((table.one_in(), table.compressed()), (1, None));
        assert_eq!(
            table.unique(),
            (plain.len() as u64, plain.len() as u64 * 4096)
        );
        for row in table.references() {
            let within = plain
                .values()
                .filter(|times| (row.least..=row.most).contains(times));
            assert_eq!(row.contents, within.clone().count() as u64, "{row:?}");
            assert_eq!(row.chunks, within.sum::<u64>(), "{row:?}");
        }
    }

    #[test]
    fn a_full_table_keeps_its_size_and_its_estimate_is_near() {
        let mut table = Distinct::new(&Allotment::share(&[u64::MAX / 8], 1 << 20, true)[0]);
        let contents = 300_000_u64;
        for _ in 0..3 {
            for content in 0..contents {
                table.add(&digest(content), 512, || 100);
            }
        }
        assert!(table.one_in() > 1);
        assert_eq!(
            table.chunks,
            3 * contents,
            "chunks are counted, not estimated"
        );
        let (unique, bytes) = table.unique();
        assert!(unique.abs_diff(contents) < contents / 20, "{unique}");
        assert_eq!(bytes, unique * 512);
        assert_eq!(table.compressed(), Some((unique * 100, unique * 300)));
        let rows = table.references();
        assert_eq!(
            (rows[2].contents, rows[2].chunks),
            (unique, 3 * unique),
            "3 each"
        );
    }

    #[test]
    fn a_saved_table_goes_on_as_if_nothing_had_happened() {
        let mut whole = small();
        let mut half = small();
        for content in 0..40_000 {
            whole.add(&digest(content % 30_000), 4096, || content as u32 % 4096);
            if content == 20_000 {
                let mut bytes = Vec::new();
                half.save(&mut bytes).unwrap();
                half = small();
                half.load(&mut bytes.as_slice()).unwrap();
            }
            half.add(&digest(content % 30_000), 4096, || content as u32 % 4096);
        }
        assert_eq!(
            (half.unique(), half.one_in()),
            (whole.unique(), whole.one_in())
        );
        assert_eq!(half.references(), whole.references());
        assert!(whole.one_in() > 1 && whole.compressed().is_some());
        assert_eq!(half.compressed(), whole.compressed());
    }
}
