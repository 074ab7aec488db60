//! Handles a run's first requests again with fresh controllers: under another key, at other places, with counters that
//! begin elsewhere, all at one place, or with other contents. A result gives something away if it does not change with
//! a key or place that it must depend on, or changes with a content that it must not show.
//!
//! Other contents are the same contents XORed with one mask: equal lines stay equal, and lines with equal check bits or
//! CRC-32 keep them equal, as both are sums. So a mapping decides as before, and only what is computed from contents
//! changes. Where a mapping treats zeros apart, zeros stay zeros. Left out: cuts.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_base::random::mix;

use crate::history::History;
use crate::pads::chance::Chance;
use crate::pads::encrypted::{bytes_of, is_kept};
use crate::pads::{Encrypted, Pads};
use crate::probes::{Again, Crowded, Handling, Looked};
use crate::violation::{Kind, Violation};
use crate::words::numbers;
use sardonyx::controller::designs::AnyLayer;
use sardonyx::controller::encryption::pad::KEY;
use sardonyx::controller::integrity::{FIRST_VERSION, MACS};
use sardonyx::controller::layers::BESIDE;
use sardonyx::controller::logging::LOG_REGION;
use sardonyx::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use sardonyx::medium::params::CRASH_ENDURED;
use sardonyx::plan::journal::MediumWrite;

/// This many requests are handled again, more than a byte counts.
const AGAIN: usize = 300;
/// If one place, or one beginning of a counter, is compared, fewer requests will do.
const FEW: usize = 64;
/// If one byte of the key is compared, a few requests will do: a line has more pieces than could be alike by chance.
const FEWEST: usize = 4;
/// Bits of a place that are tried beyond those of the run's own medium.
const HIGH_BITS: [u32; 8] = [16, 24, 28, 31, 32, 34, 36, 37];
/// Bits in which the places of two compared lines differ. Lines of counters, each for eight lines, are that far apart
/// as well.
const TWIN_BITS: [u32; 6] = [16, 19, 24, 32, 35, 37];
/// Numbers of transactions that a hardware log undoes; the first is that of a long one.
const NUMBERS: [u64; 7] = [
    1 << 32 | 1,
    1 << 8,
    1 << 16,
    1 << 24,
    1 << 40,
    1 << 48,
    1 << 56,
];
const TWINS: usize = 24;
/// The number of masks of contents, each of which is tried with its complement.
const MASKS: u64 = 4;
/// The number of keys, after the other one, under which a digest is to be the same: with them a few digests are as sure
/// as many under one key.
const FURTHER_KEYS: u64 = 2;
/// Structures that depend on the key may have the same bytes under another key, though less often than this.
const STRUCTURE: f64 = 1.0 / 16.0;

pub(crate) fn with_less(history: &History, masked: &Cell<u64>) -> Vec<Violation> {
    let again = |how: Handling, count| history.again(&how, count);
    let Some(this) = again(Handling::default(), AGAIN) else {
        return Vec::new();
    };
    let other_key = again(
        Handling {
            other_key: 1,
            ..Handling::default()
        },
        AGAIN,
    );
    let other_key = other_key.expect("the same lines");
    let here = |this: &Encrypted, other: &Encrypted| {
        this.place == other.place && this.counter == other.counter
    };
    let key = alike(&this, &other_key, &here, "under another key");
    let key = key.map(|(first, what)| first.violation(Kind::KeyIgnored, 0, what));
    let key = key.or_else(|| part_of_the_key(history, &this, &here));
    let mut found: Vec<Violation> = key.into_iter().collect();
    found.extend(elsewhere(history, &this));
    found.extend(begun_elsewhere(history, &this));
    // All requests go to one line here, so that its place is encrypted under many counters.
    let first = history.journal.handled.first();
    let one_line = first.and_then(|first| {
        let line = first.line.0;
        let how = Handling {
            moved: &|_| line,
            ..Handling::default()
        };
        again(how, AGAIN)
    });
    let one_line = one_line.map_or(Vec::new(), |again| again.covered);
    found.extend(Pads::from_uses(one_line).within().into_iter().next());
    found.extend(vectors(history, &this, &other_key));
    found.extend(digests(history, &this, &other_key, masked));
    found
}

/// Tells the first piece of a pad that is the same in `this` and the `other` handling of the same content, if that is
/// no accident. Only lines for which `counts` holds must differ.
fn alike<'a>(
    this: &'a Again,
    other: &Again,
    counts: &dyn Fn(&Encrypted, &Encrypted) -> bool,
    where_else: &str,
) -> Option<(&'a Encrypted, String)> {
    let mut pieces = Chance::of_pieces();
    let mut newest: FxHashMap<Place, &Encrypted> = FxHashMap::default();
    for (index, (this, other)) in this.covered.iter().zip(&other.covered).enumerate() {
        let older = newest.insert(this.place, this);
        let kept = older.map_or(0, |old| this.kept(old));
        if this.plain != other.plain || !counts(this, other) {
            continue;
        }
        let both = this.pieces().zip(other.pieces());
        for ((number, piece), (_, other)) in both.filter(|((number, _), _)| !is_kept(kept, *number))
        {
            pieces.tried(1);
            if piece == other {
                pieces.saw(index, || {
                    let (place, bytes) = (this.place.0, bytes_of(number));
                    format!("place {place}, {bytes}: the same pad {where_else}")
                });
            }
        }
    }
    let (index, what) = pieces.told()?;
    Some((&this.covered[index], what))
}

fn part_of_the_key(
    history: &History,
    this: &Again,
    counts: &dyn Fn(&Encrypted, &Encrypted) -> bool,
) -> Option<Violation> {
    (2..=KEY.len() as u64).find_map(|byte| {
        let how = Handling {
            other_key: byte,
            ..Handling::default()
        };
        let other = history.again(&how, FEWEST)?;
        let what = format!("under a key of which byte {byte} differs");
        let (first, what) = alike(this, &other, counts, &what)?;
        Some(first.violation(Kind::KeyIgnored, 0, what))
    })
}

fn elsewhere(history: &History, this: &Again) -> Option<Violation> {
    let own = (0..u64::BITS).take_while(|bit| 1 << bit < history.data_lines());
    let high = HIGH_BITS.into_iter();
    let beyond = high.filter(|bit| 1 << bit >= history.data_lines());
    own.chain(beyond).find_map(|bit| {
        let how = Handling {
            moved: &|line| line ^ 1 << bit,
            high: bit,
            ..Handling::default()
        };
        let other = history.again(&how, FEW)?;
        let differ = |this: &Encrypted, other: &Encrypted| {
            this.place != other.place && this.counter == other.counter && this.counter.is_some()
        };
        let (first, what) = alike(this, &other, &differ, &format!("2^{bit} places away"))?;
        Some(first.violation(Kind::PadReused, 0, what))
    })
}

/// Handles the requests with numbers that begin elsewhere, where the layers' limits say.
fn begun_elsewhere(history: &History, this: &Again) -> Option<Violation> {
    let log = this.layout.region(LOG_REGION);
    let layers = history.stack.layers().into_iter();
    let begins = layers.flat_map(|layer| {
        let of_log = matches!(layer, AnyLayer::Logging(_));
        let limits = layer.about().limits.iter().filter(|limit| limit.pads);
        let keys = limits.filter_map(|limit| Some((limit.name, limit.begins?, limit.bits)));
        keys.map(move |(name, key, bits)| (of_log, name, key, bits))
    });
    begins.into_iter().find_map(|(of_log, name, key, bits)| {
        let mut widths = (8..bits).step_by(8);
        widths.find_map(|width| {
            let own = history.machine.settings.get(key);
            let begin = (key.name(), own + (1 << width));
            let how = Handling {
                begin: Some(begin),
                ..Handling::default()
            };
            let other = history.again(&how, FEW)?;
            let differ = |this: &Encrypted, other: &Encrypted| {
                let is_logs = log.is_some_and(|log| log.contains(this.place))
                    && this.counter.is_none()
                    && other.counter.is_none();
                let begun = if of_log {
                    is_logs
                } else {
                    this.counter != other.counter
                };
                this.place == other.place && begun
            };
            let what = format!("2^{width} further on ({name})");
            if let Some(line) = other.misread {
                return Some(misread(line, &format!("with counters that begin {what}")));
            }
            let (first, what) = alike(this, &other, &differ, &what)?;
            Some(first.violation(Kind::PadReused, 0, what))
        })
    })
}

/// A violation: a line does not read as it was last written, `because` of what was done otherwise.
fn misread(line: Logical, because: &str) -> Violation {
    let what = format!(
        "line {}, read after a recovery {because}: not as it was written last",
        line.0
    );
    Violation {
        line: Some(line.0),
        ..Violation::new(Kind::WrongLine, 0, what)
    }
}

/// Handles each request for a second line as well, whose number differs in one bit: neither may have the other's
/// content.
pub(crate) fn twins(history: &History) -> Option<Violation> {
    let high = TWIN_BITS.into_iter();
    let mut beyond = high.filter(|bit| 1 << bit >= history.data_lines());
    beyond.find_map(|bit| {
        let how = Handling {
            twin: Some((bit, mask(0))),
            ..Handling::default()
        };
        let line = history.again(&how, TWINS)?.misread?;
        Some(misread(line, &format!("beside lines 2^{bit} away")))
    })
}

/// Tries lines of every class of contents, some of which change to and fro.
pub(crate) fn contents(history: &History, looked: &Looked) -> Option<Violation> {
    let (line, class) = history.of_all_contents(looked)?;
    Some(misread(
        line,
        &format!("of contents of all classes ({class})"),
    ))
}

/// Tries more lines of one content than counts have room for.
pub(crate) fn shared(history: &History, looked: &Looked) -> Option<Violation> {
    let line = history.shared(looked)?;
    Some(misread(line, "and many that share one content"))
}

/// Looks for MACs that are the same under a much greater version: an attacker who has an old line waits for it.
pub(crate) fn versions(history: &History) -> Option<Violation> {
    let kept = history.power_fail()?;
    let (node, _) = kept.version_of(Place(0))?;
    // If data have the encryption's counters for versions, their MACs are the same under the same counters.
    let are_counters = history.counter_place(Place(0)) == Some(node);
    let lie_beside = kept.kept_of(Place(0)) == Some((Place(0), BESIDE));
    let of = |again: &Again| -> Vec<(Place, usize, u64)> {
        let macs = again.layout.region(MACS);
        let writes = again.beside.iter();
        let writes = writes.filter(|write| macs.is_some_and(|macs| macs.contains(write.place)));
        let words = writes.flat_map(|write| {
            let carried = (0..LINE_BYTES / 8).filter(|word| write.words >> word & 1 == 1);
            carried.map(|word| (write.place, word, numbers(&write.line)[word]))
        });
        let beside = again.sidebands.iter().filter(|_| lie_beside);
        let beside = beside.map(|(at, mac)| (*at, BESIDE, u64::from_le_bytes(*mac)));
        let number = |place: Place, word: usize| match macs {
            Some(macs) if word != BESIDE => (place.0 - macs.first.0) * 8 + word as u64,
            _ => place.0,
        };
        let counts = |(place, word, mac): &(Place, usize, u64)| {
            let is_data = number(*place, *word) < again.layout.data_lines();
            *mac != 0 && !(are_counters && is_data)
        };
        words.chain(beside).filter(counts).collect()
    };
    let own = history.again(&Handling::default(), FEW)?;
    let these: FxHashSet<_> = of(&own).into_iter().collect();
    let limits = history.stack.integrity.about.limits.iter();
    let most = limits.map(|limit| limit.bits).min().unwrap_or(u64::BITS);
    (8..most.min(u64::BITS - 8)).step_by(8).find_map(|width| {
        let how = Handling {
            begin: Some((FIRST_VERSION.name(), 1 << width)),
            ..Handling::default()
        };
        let other = history.again(&how, FEW)?;
        let begun = format!("with versions that begin at 2^{width}");
        let found = |kind, place, what| Violation {
            place: Some(place),
            ..Violation::new(kind, 0, what)
        };
        if let Some(place) = other.refused.filter(|_| own.refused.is_none()) {
            let what = format!("place {}: refused after a recovery {begun}", place.0);
            return Some(found(Kind::NotAuthentic, place, what));
        }
        let same = of(&other).into_iter().find(|mac| these.contains(mac));
        same.map(|(place, word, _)| {
            let what = format!("word {word} of MACs: the same {begun}");
            found(Kind::Undetected, place, what)
        })
    })
}

/// Tries lines whose places differ in one bit that the run's do not have, or add up with their versions to the same
/// number: one is put, with its MAC, where the other was, and read after a recovery.
pub(crate) fn spliced(history: &History) -> Option<Violation> {
    let (place, other) = history.spliced()?;
    let what = format!(
        "place {} reads as place {}, which was copied there with its MAC",
        place.0, other.0
    );
    Some(Violation {
        place: Some(place),
        ..Violation::new(Kind::Undetected, 0, what)
    })
}

/// Tries lines that change again and again in a medium with exactly one place for each.
pub(crate) fn churned(history: &History, looked: &Looked) -> Option<Violation> {
    let room = "for as many lines as the medium has places";
    Some(crowded(
        history.churned(looked.drains_caches)?,
        "in a medium that is full",
        room,
    ))
}

/// Makes a life of as many writes as `pages.crash_endured` says.
pub(crate) fn endured(history: &History, looked: &Looked) -> Option<Violation> {
    let writes = history.machine.settings.get(&CRASH_ENDURED);
    let (wrong, writes) = history.endured(writes, looked)?;
    Some(crowded(
        wrong,
        &format!("after a life of {writes} writes"),
        "after a life of as many lines as the medium has places",
    ))
}

fn crowded(wrong: Crowded, because: &str, room: &str) -> Violation {
    match wrong {
        Crowded::Misread(line) => misread(line, because),
        Crowded::Padded(place) => {
            let what = format!("{because}, a pad of place {} covers two contents", place.0);
            Violation {
                place: Some(place),
                ..Violation::new(Kind::PadReused, 0, what)
            }
        }
        Crowded::Full(why) => Violation::new(Kind::RunEnded, 0, format!("no room {room}: {why}")),
    }
}

/// Asks a hardware log to undo transactions that are as long as it has room for, or whose numbers are great.
pub(crate) fn undone(history: &History) -> Option<Violation> {
    if let Some((line, number, changed)) = history.undone(&NUMBERS) {
        let because =
            format!("with transaction {number} under way, which has changed {changed} lines");
        return Some(misread(line, &because));
    }
    let (wrong, under_way) = history.undone_together()?;
    let because = format!("with {under_way} transactions under way");
    let room = format!("for {under_way} transactions, which registers and buckets have");
    Some(crowded(wrong, &because, &room))
}

/// Checks initial vectors that a design says nobody can foresee: they must depend on the key, and so must the step from
/// one to the next.
fn vectors(history: &History, this: &Again, other_key: &Again) -> Option<Violation> {
    let of = |again: &Again| -> Vec<(Place, Vec<u32>)> {
        let lie = (history.stack.logging.vectors)(&history.machine.settings, &again.layout);
        let Some(lie) = lie else { return Vec::new() };
        let whole = again.beside.iter().filter(|write| write.words == 0xff);
        let whole = whole.filter(|write| lie.is_at(write.place));
        let pieces = |write: &MediumWrite| {
            let words = numbers(&write.line);
            let words = lie.words.clone().map(|word| words[word]);
            words
                .flat_map(|word| [word as u32, (word >> 32) as u32])
                .collect()
        };
        whole.map(|write| (write.place, pieces(write))).collect()
    };
    let (these, others) = (of(this), of(other_key));
    let mut pieces = Chance::of_pieces();
    // A vector may be the same under both keys, or differ from the one before by the same XOR or by the same
    // difference.
    let steps: [fn(u32, u32) -> u32; 3] =
        [|now, _| now, |now, before| now ^ before, u32::wrapping_sub];
    for (index, (this, other)) in these.iter().zip(&others).enumerate() {
        for step in steps {
            let before = index.saturating_sub(1);
            let (old, old_other) = (&these[before].1, &others[before].1);
            for number in 0..this.1.len() {
                pieces.tried(1);
                let now = step(this.1[number], old[number]);
                if index > 0 && now == step(other.1[number], old_other[number]) {
                    let place = this.0.0;
                    pieces.saw(index, || {
                        format!("the vectors of place {place} can be told without the key")
                    });
                }
            }
        }
    }
    let (index, what) = pieces.told()?;
    Some(Violation {
        place: Some(these[index].0),
        ..Violation::new(Kind::VectorForeseen, 0, what)
    })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Piece {
    place: u64,
    /// The number in the line; pieces beside the line come after it.
    number: usize,
    value: u32,
}

/// Pieces that lie under no pad, by region.
type Clear = BTreeMap<&'static str, FxHashSet<Piece>>;

fn clear(again: &Again) -> Clear {
    let mut clear = Clear::new();
    let mut put = |place: Place, first: usize, words: &[u64], written: u8| {
        let region = again.layout.name_of(place).0;
        let pieces = clear.entry(region).or_default();
        let words = words.iter().enumerate();
        for (number, word) in words.filter(|(number, _)| written >> number & 1 == 1) {
            for (half, value) in [*word as u32, (word >> 32) as u32].into_iter().enumerate() {
                pieces.insert(Piece {
                    place: place.0,
                    number: first + 2 * number + half,
                    value,
                });
            }
        }
    };
    for write in &again.beside {
        put(write.place, 0, &numbers(&write.line), write.words);
    }
    for (place, word) in &again.sidebands {
        put(*place, LINE_BYTES / 4, &[u64::from_le_bytes(*word)], 1);
    }
    clear
}

/// Looks for digests: what depends on contents, not on the key, and lies under no pad, so that anybody can check a
/// guess of the content. A design that is built on digests says so. Contents are changed by a mask and by its
/// complement, so that each bit changes; `masked` counts the masks that could tell. Left out: masks under which other
/// places are written. A hardware log's headers have no mask, so another of a mapping's sets may be full than was, and
/// what follows from that is not a digest. That is common where fingerprints collide on purpose, so such a run is not
/// judged.
fn digests(
    history: &History,
    this: &Again,
    other_key: &Again,
    masked: &Cell<u64>,
) -> Vec<Violation> {
    if history.keeps_log() && history.collides() {
        return Vec::new();
    }
    let these = clear(this);
    let keys = OnceCell::new();
    let keyed = || {
        let further = (2..2 + FURTHER_KEYS).filter_map(|other_key| {
            let how = Handling {
                other_key,
                ..Handling::default()
            };
            Some(clear(&history.again(&how, AGAIN)?))
        });
        std::iter::once(clear(other_key)).chain(further).collect()
    };
    let masks = (0..MASKS).flat_map(|number| [mask(number), mask(number).map(|byte| !byte)]);
    let others = masks.filter_map(|mask| {
        let how = Handling {
            mask: Some(mask),
            ..Handling::default()
        };
        let other = history.again(&how, AGAIN)?;
        are_placed_alike(this, &other).then_some(other)
    });
    let mut found = others.take(2).map(|other| {
        masked.set(masked.get() + 1);
        let hang = hang(&shown(history, this, &other), &these, &clear(&other));
        let told = hang.into_iter().filter_map(|(region, pieces)| {
            let keyed: &Vec<Clear> = keys.get_or_init(keyed);
            digest_of(region, &pieces, keyed)
        });
        told.collect::<Vec<_>>()
    });
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

fn are_placed_alike(this: &Again, other: &Again) -> bool {
    let places = |again: &Again| -> Vec<Place> {
        let covered = again.covered.iter();
        covered.map(|line| line.place).collect()
    };
    places(this) == places(other)
}

/// The regions that a design says show something of contents. Contents also decide what is found twice, and so which
/// lines are written, and when. Versions, nodes and what else integrity keeps with MACs count that, and say no more: they
/// are not judged if the `other` contents led to other writes. A MAC has a key.
fn shown(history: &History, this: &Again, other: &Again) -> Vec<&'static str> {
    let mut shown = history.stack.mapping.shows.to_vec();
    let places =
        |again: &Again| -> Vec<Place> { again.beside.iter().map(|write| write.place).collect() };
    if places(this) != places(other) {
        let beside_macs = this.layout.regions().iter().map(|region| region.name);
        shown.extend(beside_macs.skip_while(|name| *name != MACS).skip(1));
    }
    shown
}

/// The pieces of `these` that are not among the `masked`, in order, by region, without the regions that are `shown`.
fn hang<'a>(
    shown: &[&str],
    these: &'a Clear,
    masked: &Clear,
) -> Vec<(&'static str, Vec<&'a Piece>)> {
    let judged = these.iter().filter(|(region, _)| !shown.contains(region));
    let hang = judged.map(|(region, pieces)| {
        let masked = masked.get(region);
        let hangs = |piece: &&Piece| !masked.is_some_and(|masked| masked.contains(*piece));
        let mut hang: Vec<_> = pieces.iter().filter(hangs).collect();
        hang.sort_unstable();
        (*region, hang)
    });
    hang.filter(|(_, pieces)| !pieces.is_empty()).collect()
}

/// A violation if more of the `pieces` than by accident are the same under each other key.
fn digest_of(region: &'static str, pieces: &[&Piece], keyed: &[Clear]) -> Option<Violation> {
    let mut same = Chance::with_probability(STRUCTURE.powi(keyed.len() as i32));
    for (index, piece) in pieces.iter().enumerate() {
        same.tried(1);
        let stays = |clear: &Clear| {
            clear
                .get(region)
                .is_some_and(|clear| clear.contains(*piece))
        };
        if keyed.iter().all(stays) {
            let Piece { place, number, .. } = **piece;
            same.saw(index, || match number < LINE_BYTES / 4 {
                true => format!("place {place} ({region}), {}", bytes_of(number)),
                false => format!("beside place {place}"),
            });
        }
    }
    let (index, what) = same.told()?;
    let what = format!("a digest of contents that hangs on no key: {what}");
    Some(Violation {
        place: Some(Place(pieces[index].place)),
        ..Violation::new(Kind::Digest, 0, what)
    })
}

/// A mask for contents: no two of its words are equal, nor is one a word of a mask with another number.
fn mask(number: u64) -> Line {
    let mut line = ZERO_LINE;
    for (index, word) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = mix(0x6d61_736b ^ number << 8 ^ index as u64).to_le_bytes();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(values: impl IntoIterator<Item = u32>) -> FxHashSet<Piece> {
        let numbered = values.into_iter().enumerate();
        let piece = |(number, value)| Piece {
            place: 7,
            number,
            value,
        };
        numbered.map(piece).collect()
    }

    #[test]
    fn eight_pieces_are_a_digest_if_they_stay_under_three_other_keys() {
        let digest = pieces(1..=8);
        let hang: Vec<&Piece> = digest.iter().collect();
        let stays: Clear = [("free-map", digest.clone())].into();
        let gone: Clear = [("free-map", pieces(11..=18))].into();
        let told = |keyed: &[&Clear], pieces: &[&Piece]| {
            let keyed: Vec<Clear> = keyed.iter().map(|clear| (*clear).clone()).collect();
            digest_of("free-map", pieces, &keyed).is_some()
        };
        assert!(told(&[&stays, &stays, &stays], &hang));
        assert!(!told(&[&stays, &stays, &gone], &hang));
        assert!(!told(&[&stays], &hang), "one key leaves it to chance");
        assert!(!told(&[&stays, &stays, &stays], &hang[..4]));
    }

    #[test]
    fn no_word_of_a_mask_is_another_s() {
        let masks: Vec<Line> = (0..MASKS).map(mask).collect();
        let words = |line: &Line| -> Vec<[u8; 8]> { line.as_chunks().0.to_vec() };
        let all: FxHashSet<[u8; 8]> = masks.iter().flat_map(words).collect();
        assert_eq!(all.len(), MASKS as usize * LINE_BYTES / 8);
    }
}
