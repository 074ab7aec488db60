//! The oracle of secrecy, which knows what no attacker needs to be told: a pad is what lies in the
//! medium, XOR the content that was asked for. Two contents under one pad give each other away, whoever
//! has both. Taken from the bytes: a design may say of its counters what it likes.
//! Watched apart from recoverability: a design that recovers may yet use a pad twice.
//!
//! A pad counts as used when its ciphertext reached the array; encryptions that were merged over in
//! a queue, wasted or dropped do not. Words of eight bytes count one by one, whatever they are; pieces of
//! four in their numbers (`chance`). Here is what lies under a pad; `pads` has what returns of them, `shown` what
//! lies in clear, `again` what another key, place, counter or content would change.

mod again;
mod chance;
mod pads;
mod shown;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ops::Range;

use super::history::History;
use super::violation::{Kind, Violation};
use crate::controller::logging::LOG_REGION;
use crate::line::{LINE_BYTES, Line, Place};
use crate::medium::layout::Layout;
use crate::plan::journal::{Journal, MediumWrite};
use crate::plan::untimed::Untimed;
use chance::{Chance, PIECE_BYTES};

pub use pads::{Before, Pads};

/// Eight-byte words of a line.
const WORDS: usize = LINE_BYTES / 8;

/// Where the medium holds lines under pads.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// So many lines of data from the first on, those of a log among them that lies there.
    pub lines: u64,
    /// The lines of a log that has a region of its own.
    pub log: Range<u64>,
}

impl Held {
    /// All of a layout in which a design has been built.
    pub fn of(layout: &Layout) -> Held {
        let mut regions = layout.regions().iter();
        let log = regions.find(|region| region.name == LOG_REGION);
        Held {
            lines: layout.data_lines(),
            log: log.map_or(0..0, |log| log.first.0..log.first.0 + log.lines),
        }
    }

    /// Whether lines at `place` lie under a pad.
    pub fn covers(&self, place: Place) -> bool {
        place.0 < self.lines || self.log.contains(&place.0)
    }
}

/// What a write request, or a hardware log, put into the medium: its content under a pad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    /// The place in the medium where the encrypted line lies.
    pub place: Place,
    /// The counter that the design says it was encrypted under; `None` if it does not say.
    pub counter: Option<u64>,
    /// What the line holds, unencrypted.
    pub plain: Line,
    /// Those of its 8-byte words that were written, a bit each.
    pub words: u8,
    /// What covers it, in 8-byte words.
    pub pad: [u64; WORDS],
}

impl Encrypted {
    /// `write` of a place where lines are `held`; `None` for what neither a request of `journal` nor its
    /// log caused.
    pub fn of(write: &MediumWrite, journal: &Journal, held: &Held) -> Option<Encrypted> {
        let (place, logged) = (write.place.0, journal.logged_by(write.order));
        let is_line = place < held.lines || logged.is_some() && held.log.contains(&place);
        // Of a log's own line, such as a bucket's, some words are written by themselves. A line that moves keeps its pad.
        if !is_line || write.is_move() || write.words != 0xff && place >= held.lines {
            return None;
        }
        let plain = match logged {
            Some(logged) => logged.data,
            None => journal.handled[journal.request_of(write.order)?].data,
        };
        let (plain_words, words) = (numbers(&plain), numbers(&write.line));
        Some(Encrypted {
            place: write.place,
            counter: journal.counter_of(write.order),
            plain,
            words: write.words,
            pad: std::array::from_fn(|word| plain_words[word] ^ words[word]),
        })
    }

    /// Whether word `word` was written.
    fn carries(&self, word: usize) -> bool {
        self.words >> word & 1 == 1
    }

    /// What word `word` here gives away beside `old_word` of `old`, written before, if their pads are equal.
    /// The same content at the same place under the same counter gives nothing away.
    fn clash_of(&self, word: usize, old: &Encrypted, old_word: usize) -> Option<String> {
        let bytes = |word: usize| format!("bytes {} to {}", word * 8, word * 8 + 7);
        let (place, old_place) = (self.place.0, old.place.0);
        if (self.place, word) != (old.place, old_word) {
            return Some(format!(
                "the pad of place {place}, {}, is that of place {old_place}, {}",
                bytes(word),
                bytes(old_word)
            ));
        }
        let under = match self.counter {
            Some(counter) => format!("counter {counter}"),
            None => "no counter that is known".to_owned(),
        };
        let (new, before) = (numbers(&self.plain)[word], numbers(&old.plain)[word]);
        if new != before {
            return Some(format!(
                "the pad of place {place}, {under}, covers two contents: {} are {:016x} and were {:016x}",
                bytes(word),
                new.swap_bytes(),
                before.swap_bytes()
            ));
        }
        let (Some(counter), Some(before)) = (self.counter, old.counter) else {
            return None;
        };
        (counter != before).then(|| {
            format!("the pad of place {place} is the same under counters {before} and {counter}")
        })
    }

    /// The first word that is not covered at all.
    pub fn bare(&self) -> Option<String> {
        let word = (0..WORDS).find(|word| self.carries(*word) && self.pad[*word] == 0)?;
        let (from, to) = (word * 8, word * 8 + 7);
        Some(format!(
            "place {}, bytes {from} to {to}: the content as it is",
            self.place.0
        ))
    }

    /// The pieces of its pad that were written: the number of each, and the piece.
    fn pieces(&self) -> impl Iterator<Item = (usize, u32)> {
        let words = (0..WORDS).filter(|word| self.carries(*word));
        words.flat_map(|word| {
            let pad = self.pad[word];
            [(2 * word, pad as u32), (2 * word + 1, (pad >> 32) as u32)]
        })
    }

    /// Takes its pieces that are not covered, and those that are an earlier one of the line's, into `clear` and
    /// `alike`; of the use numbered `index`.
    fn pieces_by_themselves(&self, index: usize, clear: &mut Chance, alike: &mut Chance) {
        let mut before: [u32; 2 * WORDS] = [0; 2 * WORDS];
        for (count, (number, piece)) in self.pieces().enumerate() {
            clear.tried(1);
            alike.tried(count as u64);
            let place = self.place.0;
            if piece == 0 {
                clear.saw(index, || {
                    format!("place {place}, {}: the content as it is", bytes_of(number))
                });
            }
            if before[..count].contains(&piece) {
                alike.saw(index, || {
                    let bytes = bytes_of(number);
                    format!("the pad of place {place}, {bytes}, comes twice in the line")
                });
            }
            before[count] = piece;
        }
    }

    /// Takes the pieces of its pad that are those of `old`, an older use of its place, into `pieces`; of the use
    /// numbered `index`.
    fn pieces_of(&self, old: &Encrypted, index: usize, pieces: &mut Chance) {
        for word in 0..WORDS {
            if !(self.carries(word) && old.carries(word)) {
                continue;
            }
            pieces.tried(2);
            let differ = self.pad[word] ^ old.pad[word];
            if differ as u32 != 0 && differ >> 32 != 0 {
                continue;
            }
            let same_plain = numbers(&self.plain)[word] == numbers(&old.plain)[word];
            let known = self.counter.zip(old.counter);
            if same_plain && known.is_none_or(|(new, old)| new == old) {
                continue;
            }
            for half in 0..2 {
                if (differ >> (32 * half)) as u32 == 0 {
                    pieces.saw(index, || {
                        let (place, bytes) = (self.place.0, bytes_of(2 * word + half));
                        format!("the pad of place {place}, {bytes}, returns")
                    });
                }
            }
        }
    }

    fn violation(&self, kind: Kind, position: u64, what: String) -> Violation {
        Violation {
            place: Some(self.place),
            ..Violation::new(kind, position, what)
        }
    }
}

/// Which bytes of a line piece `number` is.
fn bytes_of(number: usize) -> String {
    let from = number * PIECE_BYTES;
    format!("bytes {from} to {}", from + PIECE_BYTES - 1)
}

/// What requests have had written over an image, from the write numbered `from` on.
pub fn written(untimed: &Untimed, from: u64, held: &Held) -> Vec<Encrypted> {
    if untimed.asked().handled.is_empty() {
        return Vec::new();
    }
    let writes = untimed.writes(from);
    writes
        .filter_map(|write| Encrypted::of(&write, untimed.asked(), held))
        .collect()
}

/// What a run gives away without any cut; which of its lines have what is another's, and what its log does not undo.
/// `masked` is told how often its requests were handled with other contents that could tell.
pub fn within(history: &History, masked: &Cell<u64>) -> Vec<Violation> {
    let mut found = Vec::new();
    if history.life == 1 {
        found.extend(again::twins(history));
        found.extend(again::undone(history));
        found.extend(again::shared(history));
        found.extend(again::churned(history));
        found.extend(again::versions(history));
    }
    if !history.is_encrypted() {
        return found;
    }
    found.extend(history.pads.within());
    found.extend(shown::in_clear(history));
    if history.life == 1 {
        found.extend(again::with_less(history, masked));
    }
    found
}

/// What writes after a cut at `position` give away by pieces, all of them together.
pub fn pieces_after(pads: &Pads, written: &[Encrypted], position: u64) -> Option<(Place, String)> {
    let mut pieces = Chance::of_pieces();
    for new in written.iter().enumerate() {
        pads.pieces(new, position, &mut pieces);
    }
    let (index, told) = pieces.told()?;
    Some((written[index].place, told))
}

fn numbers(line: &Line) -> [u64; WORDS] {
    let (words, _) = line.as_chunks();
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}
