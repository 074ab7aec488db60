//! Encrypted lines: which writes of the medium are some, the pad of each, and what two of them give away together. A pad
//! is what lies in the medium XOR the content that was asked for, whatever a design says of its counters.

use std::ops::Range;

use crate::pads::chance::{Chance, PIECE_BYTES};
use crate::violation::{Kind, Violation};
use crate::words::{WORDS, bytes_of_words, numbers};
use sardonyx::controller::designs::Stack;
use sardonyx::controller::logging::LOG_REGION;
use sardonyx::line::{LINE_BYTES, Line, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::journal::{Domain, Journal, MediumWrite, OnChip};
use sardonyx::plan::untimed::Untimed;
use sardonyx::settings::Settings;

#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The number of lines of data, counted from the first; lines of a log may lie among them.
    pub lines: u64,
    /// The lines of a log that has a region of its own.
    pub log: Range<u64>,
    /// The bytes of a word, if words of data that do not change may keep their ciphertext.
    pub keeps: Option<usize>,
}

impl Held {
    /// The encrypted lines of a layout in which `stack` has been built.
    pub fn from_stack(layout: &Layout, stack: &Stack, settings: &Settings) -> Held {
        let mut regions = layout.regions().iter();
        let log = regions.find(|region| region.name == LOG_REGION);
        Held {
            lines: layout.data_lines(),
            log: log.map_or(0..0, |log| log.first.0..log.first.0 + log.lines),
            keeps: stack.keeps(settings),
        }
    }

    pub fn covers(&self, place: Place) -> bool {
        place.0 < self.lines || self.log.contains(&place.0)
    }
}

/// An encrypted line that a write request or a hardware log put into the medium, or that waits on chip to be dumped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    pub place: Place,
    /// The counter under which it was encrypted, by the design's own word; `None` if the design does not say.
    pub counter: Option<u64>,
    pub plain: Line,
    /// The 8-byte words that were written, a bit each.
    pub words: u8,
    pub pad: [u64; WORDS],
    /// The bytes of a part, if parts that do not change may keep their ciphertext.
    pub keeps: Option<usize>,
    /// Whether it waits on chip, where only a power cut shows it. It may leave for another place, as it is.
    pub on_chip: bool,
}

impl Encrypted {
    /// The encrypted line that `write` put into one of the places `held`; `None` if neither a request of `journal` nor
    /// its log caused the write.
    pub fn from_write(write: &MediumWrite, journal: &Journal, held: &Held) -> Option<Encrypted> {
        let (place, logged) = (write.place.0, journal.logged_by(write.order));
        let is_line = place < held.lines || logged.is_some() && held.log.contains(&place);
        // Some words of a log's own line, such as a bucket's, are written by themselves; and a line that moves keeps
        // its pad.
        if !is_line || write.is_move() || write.words != 0xff && place >= held.lines {
            return None;
        }
        let plain = match logged {
            Some(logged) => logged.data,
            None => journal.handled[journal.request_of(write.order)?].data,
        };
        let keeps = held.keeps.filter(|_| place < held.lines);
        Some(Encrypted {
            keeps,
            ..Encrypted::of(write, plain, journal)
        })
    }

    /// The line of a hardware log that `change` has a register hold; `None` if it is something else.
    pub fn from_register(change: &OnChip, journal: &Journal, held: &Held) -> Option<Encrypted> {
        let write = &change.write;
        if change.domain != Domain::Registers || !held.log.contains(&write.place.0) {
            return None;
        }
        let plain = journal.logged_by(write.order)?.data;
        Some(Encrypted {
            on_chip: true,
            ..Encrypted::of(write, plain, journal)
        })
    }

    fn of(write: &MediumWrite, plain: Line, journal: &Journal) -> Encrypted {
        let (plain_words, words) = (numbers(&plain), numbers(&write.line));
        Encrypted {
            place: write.place,
            counter: journal.counter_of(write.order),
            plain,
            words: write.words,
            pad: std::array::from_fn(|word| plain_words[word] ^ words[word]),
            keeps: None,
            on_chip: false,
        }
    }

    pub fn carries(&self, word: usize) -> bool {
        self.words >> word & 1 == 1
    }

    /// Whether all of word `word` is encrypted anew where parts that stay keep their ciphertext. If only some of it is,
    /// its pad returns by chance more often than a whole word's, and `parts_of` counts it.
    pub fn is_all_new(&self, word: usize, old: &Encrypted) -> bool {
        let Some(part) = self.keeps else { return true };
        let mut parts = (word * 8..word * 8 + 8).step_by(part);
        parts.all(|from| self.plain[from..from + part] != old.plain[from..from + part])
    }

    /// Tells what word `word` gives away next to `old_word` of the older `old`, if their pads are equal. The same
    /// content at the same place under the same counter gives nothing away, nor does one that may keep its ciphertext.
    pub fn clash_of(&self, word: usize, old: &Encrypted, old_word: usize) -> Option<String> {
        let bytes = |word: usize| format!("bytes {} to {}", word * 8, word * 8 + 7);
        let (place, old_place) = (self.place.0, old.place.0);
        if self.on_chip || old.on_chip {
            let (new, before) = (numbers(&self.plain)[word], numbers(&old.plain)[old_word]);
            return (new != before).then(|| {
                format!(
                    "the pad of a line that waited on chip covers two contents: {:016x} at place {place} and \
                     {:016x} at place {old_place}",
                    new.swap_bytes(),
                    before.swap_bytes()
                )
            });
        }
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
        if !self.is_all_new(word, old) {
            return None;
        }
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

    /// Tells the first word that lies in clear.
    pub fn bare(&self) -> Option<String> {
        let word = (0..WORDS).find(|word| self.carries(*word) && self.pad[*word] == 0)?;
        let (from, to) = (word * 8, word * 8 + 7);
        Some(format!(
            "place {}, bytes {from} to {to}: the content as it is",
            self.place.0
        ))
    }

    /// The pieces of the pad that were written, each with its number.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, u32)> {
        let words = (0..WORDS).filter(|word| self.carries(*word));
        words.flat_map(|word| {
            let pad = self.pad[word];
            [(2 * word, pad as u32), (2 * word + 1, (pad >> 32) as u32)]
        })
    }

    /// Adds the pieces of use `index` that no pad covers to `clear`, and those that repeat an earlier piece of the line
    /// to `alike`. Bytes that are `kept` were counted before.
    pub fn pieces_by_themselves(
        &self,
        (index, kept): (usize, u64),
        clear: &mut Chance,
        alike: &mut Chance,
    ) {
        let mut before: [u32; 2 * WORDS] = [0; 2 * WORDS];
        for (count, (number, piece)) in self.pieces().enumerate() {
            before[count] = piece;
            if is_kept(kept, number) {
                continue;
            }
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
        }
    }

    /// Adds the pieces of the pad of use `index` that `old`, an older use of its place, has too to `pieces`.
    pub fn pieces_of(&self, old: &Encrypted, index: usize, pieces: &mut Chance) {
        for word in 0..WORDS {
            if !(self.carries(word) && old.carries(word)) {
                continue;
            }
            pieces.tried(2);
            // Most words differ in both halves, so this comes first.
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

    /// The bytes, a bit each, that may stay as they lay in `old`, the use of this place before, and do.
    pub fn kept(&self, old: &Encrypted) -> u64 {
        let Some(part) = self.keeps else { return 0 };
        let (pad, old_pad) = (bytes_of_words(&self.pad), bytes_of_words(&old.pad));
        let parts = (0..LINE_BYTES).step_by(part).map(|from| from..from + part);
        let kept = parts.filter(|bytes| {
            self.plain[bytes.clone()] == old.plain[bytes.clone()]
                && pad[bytes.clone()] == old_pad[bytes.clone()]
        });
        kept.flatten().fold(0, |bytes, byte| bytes | 1 << byte)
    }

    /// Adds those parts of use `index`, or halves of larger ones, to `returned` that are encrypted anew and whose pad
    /// is that of an older use of its place with another content. `olds` are those uses, the newest first. A part comes
    /// true at most once, whichever of the different pads before it is the same: as likely as one of so many trials.
    pub fn parts_of(&self, olds: &[&Encrypted], index: usize, returned: &mut Chance) {
        let (Some(part), Some(newest)) = (self.keeps, olds.first()) else {
            return;
        };
        let part = part.min(PIECE_BYTES);
        let pad = bytes_of_words(&self.pad);
        let pads: Vec<Line> = olds.iter().map(|old| bytes_of_words(&old.pad)).collect();
        let kept = self.kept(newest);
        for from in (0..LINE_BYTES)
            .step_by(part)
            .filter(|from| kept >> from & 1 == 0)
        {
            let bytes = from..from + part;
            let mut different: Vec<&[u8]> = pads.iter().map(|pad| &pad[bytes.clone()]).collect();
            different.sort_unstable();
            different.dedup();
            returned.tried(different.len() as u64);
            let mut same = olds.iter().zip(&pads).filter(|(old, old_pad)| {
                old_pad[bytes.clone()] == pad[bytes.clone()]
                    && old.plain[bytes.clone()] != self.plain[bytes.clone()]
            });
            if same.next().is_some() {
                returned.saw(index, || {
                    let (place, to) = (self.place.0, from + part - 1);
                    format!("the pad of place {place}, bytes {from} to {to}, covers two contents")
                });
            }
        }
    }

    pub fn violation(&self, kind: Kind, position: u64, what: String) -> Violation {
        Violation {
            place: Some(self.place),
            ..Violation::new(kind, position, what)
        }
    }
}

pub fn is_kept(kept: u64, number: usize) -> bool {
    kept >> (number * PIECE_BYTES) & 0xf == 0xf
}

pub fn bytes_of(number: usize) -> String {
    let from = number * PIECE_BYTES;
    format!("bytes {from} to {}", from + PIECE_BYTES - 1)
}

/// The lines that requests have written over an image, from the write numbered `from` on.
pub fn written(untimed: &Untimed, from: u64, held: &Held) -> Vec<Encrypted> {
    if untimed.asked().handled.is_empty() {
        return Vec::new();
    }
    let writes = untimed.writes(from);
    writes
        .filter_map(|write| Encrypted::from_write(&write, untimed.asked(), held))
        .collect()
}
