//! The lists of the attacks of which none is drawn.

use std::ops::Range;
use std::rc::Rc;

use super::{Bench, CONSTANT, EnumeratedAttacks, GENERATIONS, Listed, MOST_WRITES};
use crate::attacker::changes::Changes;
use crate::attacker::knowledge::{Contents, Groups, Now, Seen, fields_beside};
use crate::options::Attack;
use crate::panics::caught;
use crate::words::{number_of, word_of};
use sardonyx::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use sardonyx::medium::image::Content;

/// All pairs of numbers below `count`, the lower one first.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |other| (0..other).map(move |one| (one, other)))
}

fn number_in(line: &Line, word: usize) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[word])
}

fn xor(one: &mut [u8], other: &[u8]) {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one ^= other);
}

impl Bench<'_> {
    /// Inverts each bit of a line of each region, and of what lies beside it.
    pub(super) fn bits(&mut self) {
        let last = self.last();
        for (region, places) in &last.all {
            let place = places[0];
            let (line, beside) = last.lines[&place];
            let bits = 8 * LINE_BYTES + beside.map_or(0, |_| 64);
            let name = self.name(place);
            let attacks = (0..bits).map(|bit| {
                let (mut line, mut beside) = (line, beside);
                match (bit / 8).checked_sub(LINE_BYTES) {
                    None => line[bit / 8] ^= 1 << (bit % 8),
                    Some(byte) => {
                        beside
                            .iter_mut()
                            .for_each(|word| word[byte] ^= 1 << (bit % 8));
                    }
                }
                (
                    format!("bit {bit} of {name} is inverted"),
                    vec![(place, Some((line, beside)))],
                )
            });
            let what = format!("all {bits} bits of a line of {region}");
            self.try_all(what, Attack::Tamper, attacks.collect::<Vec<_>>());
        }
    }

    /// Has any two parts of a line change places, and changes any two words in ways that leave their exclusive or, or
    /// their sum.
    pub(super) fn words(&mut self) {
        let last = self.last();
        for (region, places) in &last.all {
            let place = places[0];
            let (line, beside) = last.lines[&place];
            let name = self.name(place);
            let mut attacks = Vec::new();
            let mut add = |what: String, changed: Line| {
                let what = format!("{what} of {name}");
                attacks.push((what, vec![(place, Some((changed, beside)))]));
            };
            for size in [32, 16, 8, 4] {
                for (one, other) in pairs(LINE_BYTES / size) {
                    let mut changed = line;
                    let (before, after) = changed.split_at_mut(other * size);
                    before[one * size..][..size].swap_with_slice(&mut after[..size]);
                    let what = format!("parts {one} and {other} of {size} bytes change places");
                    add(what, changed);
                }
            }
            for (one, other) in pairs(LINE_BYTES / 8) {
                let (first, second) = (number_in(&line, one), number_in(&line, other));
                let bit = 1 << (9 * (one + other) % 64);
                for (how, first, second) in [
                    ("have the same bit inverted", first ^ bit, second ^ bit),
                    (
                        "keep their sum",
                        first.wrapping_add(1),
                        second.wrapping_sub(1),
                    ),
                ] {
                    let mut changed = line;
                    changed[one * 8..][..8].copy_from_slice(&first.to_le_bytes());
                    changed[other * 8..][..8].copy_from_slice(&second.to_le_bytes());
                    add(format!("words {one} and {other} {how},"), changed);
                }
            }
            let what = format!("all pairs of words of a line of {region}");
            self.try_all(what, Attack::Tamper, attacks);
        }
    }

    /// The change that gives `to` what `from` holds and what is kept of it.
    fn moved(&self, changes: &mut Changes, to: Place, from: Place, seen: &Seen, with_mac: bool) {
        changes.put(to, seen.lines.get(&from).copied());
        if let (Some((at, number)), Some((of, other)), true) =
            (self.kept.kept_of(to), self.kept.kept_of(from), with_mac)
        {
            changes.put_word(at, number, word_of(seen.lines.get(&of), other));
        }
    }

    /// Has any two lines of data change places, and copies one over the other, each with its MAC.
    pub(super) fn pairs_of_places(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let data = last.known.iter().find(|(region, _)| *region == "data");
        let Some((_, places)) = data else { return };
        let mut attacks = Vec::new();
        for (index, one) in places.iter().enumerate() {
            for other in &places[..index] {
                for both in [true, false] {
                    let mut changes = Changes::new(&now);
                    self.moved(&mut changes, *one, *other, &last, true);
                    if both {
                        self.moved(&mut changes, *other, *one, &last, true);
                    }
                    let how = if both {
                        "change places"
                    } else {
                        "become the second"
                    };
                    let what = format!("{} and {} {how}", self.name(*one), self.name(*other));
                    attacks.push((what, changes.done()));
                }
            }
        }
        let count = places.len();
        self.try_all(
            format!("all pairs of {count} lines of data"),
            Attack::Splice,
            attacks,
        );
    }

    /// Has a line of each region change places with one of each other, with what is kept of them and without.
    pub(super) fn pairs_of_regions(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let mut attacks = Vec::new();
        for (index, (_, ones)) in last.all.iter().enumerate() {
            for (_, others) in &last.all[..index] {
                for with_macs in [false, true] {
                    let (one, other) = (ones[0], others[0]);
                    let mut changes = Changes::new(&now);
                    self.moved(&mut changes, one, other, &last, with_macs);
                    self.moved(&mut changes, other, one, &last, with_macs);
                    let what = format!("{} and {} change places", self.name(one), self.name(other));
                    attacks.push((what, changes.done()));
                }
            }
        }
        let count = last.all.len();
        self.try_all(
            format!("all pairs of {count} regions"),
            Attack::Splice,
            attacks,
        );
    }

    /// Puts back parts of what the first, a middle and the last line of each region that has MACs were earlier.
    pub(super) fn replays(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let nothing = Seen {
            position: 0,
            known: Groups::new(),
            all: Groups::new(),
            lines: Contents::new(),
        };
        let mut attacks = Vec::new();
        for (_, places) in &last.known {
            let mut some = vec![
                places[0],
                places[places.len() / 2],
                places[places.len() - 1],
            ];
            some.dedup();
            for place in some {
                let earlier = self.generations[..self.generations.len() - 1].iter();
                for old in earlier.map(|old| &**old).chain([&nothing]) {
                    self.parts_of(place, &now, old, &mut attacks);
                    self.versions_of(place, &now, old, &mut attacks);
                }
            }
        }
        let what = "all parts of earlier states of three lines a region".to_owned();
        self.try_all(what, Attack::Replay, attacks);
    }

    fn parts_of(&self, place: Place, now: &Now, old: &Seen, attacks: &mut Vec<Listed>) {
        let name = self.name(place);
        let levels = (0..).map_while(|level| self.kept.over(place, level));
        let levels: Vec<Place> = levels.collect();
        for (line, mac) in [(true, true), (true, false), (false, true), (false, false)] {
            // Nodes up to any level, from any level on.
            for from in 0..=levels.len() {
                for to in from..=levels.len() {
                    let mut changes = Changes::new(now);
                    self.put_back(&mut changes, place, old, (line, mac));
                    for node in &levels[from..to] {
                        changes.put(*node, old.lines.get(node).copied());
                    }
                    let what = format!(
                        "of {name}, itself ({line}), its MAC ({mac}) and levels {from} to {to} are as they were"
                    );
                    attacks.push((what, changes.done()));
                    if to == from {
                        break;
                    }
                }
            }
        }
    }

    fn put_back(&self, changes: &mut Changes, place: Place, old: &Seen, (line, mac): (bool, bool)) {
        if line {
            changes.put(place, old.lines.get(&place).copied());
        }
        if let Some((at, number)) = self.kept.kept_of(place).filter(|_| mac) {
            changes.put_word(at, number, word_of(old.lines.get(&at), number));
        }
    }

    /// Puts back a line, its MAC and its version, and changes each other version of the line so that their sum stays, their
    /// exclusive or, or which numbers there are.
    fn versions_of(&self, place: Place, now: &Now, old: &Seen, attacks: &mut Vec<Listed>) {
        let Some((node, bits)) = self.kept.version_of(place) else {
            return;
        };
        let zero = (ZERO_LINE, None);
        let value =
            |seen: Option<&Content>, bits: &Range<usize>| number_of(&seen.unwrap_or(&zero).0, bits);
        let (newer, older) = (
            value(now.get(node), &bits),
            value(old.lines.get(&node), &bits),
        );
        let name = self.name(place);
        let mut as_it_was = |balance: Option<(&Range<usize>, u64)>| {
            let mut changes = Changes::new(now);
            self.put_back(&mut changes, place, old, (true, true));
            changes.put_bits(node, &bits, older);
            let mut what = format!("{name}, its MAC and its version are as they were");
            if let Some((field, number)) = balance {
                changes.put_bits(node, field, number);
                what += &format!(", and bits {field:?} are {number:#x}");
            }
            attacks.push((what, changes.done()));
        };
        as_it_was(None);
        for field in fields_beside(&*self.kept, place) {
            let has = value(now.get(node), &field);
            let mut balances = vec![
                has.wrapping_add(newer).wrapping_sub(older),
                has ^ newer ^ older,
                newer,
            ];
            balances.dedup();
            for number in balances {
                as_it_was(Some((&field, number)));
            }
        }
    }

    /// Puts back all that vouches for a line up to some level of the tree, and in the node above a part of it, with another
    /// part of that node changed so that their exclusive or stays, or their sum.
    pub(super) fn balanced_nodes(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let old = self.generations[self.generations.len() - 2].clone();
        let mut attacks = Vec::new();
        for (_, places) in &last.known {
            let place = places[0];
            let levels = (0..).map_while(|level| self.kept.over(place, level));
            let levels: Vec<Place> = levels.collect();
            for (level, node) in levels.iter().enumerate() {
                let [after, before] = [&last, &old].map(|seen| {
                    let line = seen.lines.get(node).map_or(ZERO_LINE, |(line, _)| *line);
                    std::array::from_fn::<u64, 8, _>(|at| number_in(&line, at))
                });
                for (one, other) in pairs(8).flat_map(|(one, other)| [(one, other), (other, one)]) {
                    if after[one] == before[one] {
                        continue;
                    }
                    let less = after[one].wrapping_sub(before[one]);
                    let both = after[one] ^ before[one];
                    for number in [after[other].wrapping_add(less), after[other] ^ both] {
                        let mut changes = Changes::new(&now);
                        self.put_back(&mut changes, place, &old, (true, true));
                        for below in &levels[..level] {
                            changes.put(*below, old.lines.get(below).copied());
                        }
                        changes.put_word(*node, one, before[one].to_le_bytes());
                        changes.put_word(*node, other, number.to_le_bytes());
                        let what = format!(
                            "{} and levels 0 to {level} are as they were, of the last word {one} alone, and word {other} is {number:#x}",
                            self.name(place)
                        );
                        attacks.push((what, changes.done()));
                    }
                }
            }
        }
        let what = "parts of nodes of an earlier state, balanced".to_owned();
        self.try_all(what, Attack::Replay, attacks);
    }

    /// Has any two lines of versions change places, and takes away the lines of data that have no version then.
    pub(super) fn pairs_of_leaves(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let data = last.known.iter().find(|(region, _)| *region == "data");
        let Some((_, places)) = data else { return };
        let zero = (ZERO_LINE, None);
        let leaf = |place: &Place| self.kept.version_of(*place).map(|(leaf, _)| leaf);
        let mut leaves: Vec<Place> = places.iter().filter_map(leaf).collect();
        leaves.dedup();
        let mut attacks = Vec::new();
        for (one, other) in pairs(leaves.len()).map(|(one, other)| (leaves[one], leaves[other])) {
            let mut changes = Changes::new(&now);
            changes.put(one, now.get(other).copied());
            changes.put(other, now.get(one).copied());
            for place in places {
                let Some((leaf, bits)) = self.kept.version_of(*place) else {
                    continue;
                };
                let from = match leaf {
                    _ if leaf == one => other,
                    _ if leaf == other => one,
                    _ => continue,
                };
                if number_of(&now.get(from).unwrap_or(&zero).0, &bits) == 0 {
                    changes.put(*place, None);
                    if let Some((at, number)) = self.kept.kept_of(*place) {
                        changes.put_word(at, number, [0; 8]);
                    }
                }
            }
            let what = format!(
                "{} and {} change places, and lines without a version are gone",
                self.name(one),
                self.name(other)
            );
            attacks.push((what, changes.done()));
        }
        let what = format!("all pairs of {} lines of versions", leaves.len());
        self.try_all(what, Attack::Splice, attacks);
    }

    /// Changes a line by the difference of others, and its MAC by that of theirs: of one line at two times, of two lines
    /// at one time, and of two lines at two times, in which all that does not hang on the content is there twice.
    pub(super) fn differences(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let data = last.known.iter().find(|(region, _)| *region == "data");
        let Some((_, places)) = data.filter(|(_, places)| places.len() > 2) else {
            return;
        };
        let (one, other, third) = (places[0], places[1], places[2]);
        let times = 0..self.generations.len();
        let mut sets: Vec<Vec<(Place, usize)>> = Vec::new();
        for from in times.clone() {
            sets.push(vec![(one, from), (other, from)]);
            for to in times.clone().filter(|to| *to > from) {
                sets.push(vec![(one, from), (one, to)]);
                sets.push(vec![(one, from), (other, from), (one, to), (other, to)]);
                sets.push(vec![(other, from), (third, from), (other, to), (third, to)]);
            }
        }
        let mut attacks = Vec::new();
        for set in sets {
            let Some((line, beside)) = last.lines.get(&one) else {
                return;
            };
            let (mut line, beside) = (*line, *beside);
            let mut mac = [0; 8];
            for (place, time) in &set {
                let seen = &self.generations[*time].lines;
                let old = seen.get(place).map_or(ZERO_LINE, |(line, _)| *line);
                xor(&mut line, &old);
                if let Some((at, number)) = self.kept.kept_of(*place) {
                    xor(&mut mac, &word_of(seen.get(&at), number));
                }
            }
            let Some((at, number)) = self.kept.kept_of(one) else {
                return;
            };
            xor(&mut mac, &word_of(last.lines.get(&at), number));
            let is_earlier = |seen: &Rc<Seen>| {
                let then = seen.lines.get(&one).map(|(line, _)| *line);
                then == Some(line) && word_of(seen.lines.get(&at), number) == mac
            };
            if self.generations.iter().any(is_earlier) {
                continue; // a replay
            }
            let mut changes = Changes::new(&now);
            changes.put(one, Some((line, beside)));
            changes.put_word(at, number, mac);
            let what = format!("{} and its MAC differ by {set:?}", self.name(one));
            attacks.push((what, changes.done()));
        }
        let what = "differences of two and four MACs".to_owned();
        self.try_all(what, Attack::Tamper, attacks);
    }

    /// Moves a line to another place, or back in time, with a MAC that differs as those of two lines do, or of one at two
    /// times, that had the same content: so that what follows from the place, or from the version, is the same twice.
    pub(super) fn equal_contents(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let data = last.known.iter().find(|(region, _)| *region == "data");
        let Some((_, places)) = data.filter(|(_, places)| places.len() > 2) else {
            return;
        };
        let mac = |place: Place, seen: &Seen| {
            let (at, number) = self.kept.kept_of(place).unwrap_or((place, 0));
            word_of(seen.lines.get(&at), number)
        };
        let put = |to: Place, from: (Place, &Seen), same: [[u8; 8]; 2]| {
            let mut word = mac(from.0, from.1);
            same.iter().for_each(|other| xor(&mut word, other));
            let mut changes = Changes::new(&now);
            changes.put(to, from.1.lines.get(&from.0).copied());
            if let Some((at, number)) = self.kept.kept_of(to) {
                changes.put_word(at, number, word);
            }
            changes.done()
        };
        let (mut moved, mut replayed) = (Vec::new(), Vec::new());
        let (first, constant) = (&self.generations[0], places[CONSTANT as usize]);
        for one in &places[..3] {
            // Of the constant line it would be a replay.
            let others = places[..3].iter().filter(|other| **other != constant);
            for other in others.filter(|other| *other != one) {
                let (name, of) = (self.name(*one), self.name(*other));
                let what = format!("{name} becomes {of}, its MAC by as much as theirs differed");
                let same = [mac(*one, first), mac(*other, first)];
                moved.push((what, put(*one, (*other, &last), same)));
            }
        }
        for one in places[..3].iter().filter(|one| **one != constant) {
            for old in &self.generations[..self.generations.len() - 1] {
                let (name, of) = (self.name(*one), self.name(constant));
                let what =
                    format!("{name} is as it was, its MAC by as much as that of {of} differs");
                let same = [mac(constant, old), mac(constant, &last)];
                replayed.push((what, put(*one, (*one, old), same)));
            }
        }
        let what = "differences of MACs of equal contents".to_owned();
        self.try_all(what.clone(), Attack::Splice, moved);
        self.try_all(what, Attack::Replay, replayed);
    }

    /// Inverts a bit of each word of a line with each bit of its MAC.
    pub(super) fn bits_of_both(&mut self) {
        let last = self.last();
        let data = last.known.iter().find(|(region, _)| *region == "data");
        let Some((place, (at, number))) =
            data.and_then(|(_, places)| Some((places[0], self.kept.kept_of(places[0])?)))
        else {
            return;
        };
        let now = Now::at_rest(&last);
        let (line, beside) = last.lines[&place];
        let mut attacks = Vec::new();
        for word in 0..LINE_BYTES / 8 {
            for bit in 0..64 {
                let mut changed = line;
                let of_line = 64 * word + 9 * word;
                changed[of_line / 8] ^= 1 << (of_line % 8);
                let mut mac = word_of(last.lines.get(&at), number);
                mac[bit / 8] ^= 1 << (bit % 8);
                let mut changes = Changes::new(&now);
                changes.put(place, Some((changed, beside)));
                changes.put_word(at, number, mac);
                let name = self.name(place);
                let what = format!("bit {of_line} of {name} and bit {bit} of its MAC are inverted");
                attacks.push((what, changes.done()));
            }
        }
        let what = "a bit of each word with each bit of the MAC".to_owned();
        self.try_all(what, Attack::Tamper, attacks);
    }

    /// Puts back a line and its MAC when 1, 2, 4 .. writes of it have followed, so that numbers of few bits come round.
    pub(super) fn later_versions(&mut self) {
        let line = 0;
        let Some(place) = self.home_of(line) else {
            return;
        };
        let old = self.last();
        let kind = Attack::Replay;
        let mut row = EnumeratedAttacks {
            kind: kind.name(),
            promised: kind.is_refused_by(self.promises),
            ..EnumeratedAttacks::default()
        };
        for power in 0..=MOST_WRITES {
            let times = GENERATIONS + (1 << power >> 1)..GENERATIONS + (1 << power);
            let times = if power == 0 {
                GENERATIONS..GENERATIONS + 1
            } else {
                times
            };
            let writes = times.map(|time| (line, self.content(line, time + 1)));
            let writes: Vec<(u64, Line)> = writes.collect();
            if !matches!(caught(|| self.live(&writes)), Ok(true)) {
                break;
            }
            let now = Now::at_rest(&self.see());
            let mut changes = Changes::new(&now);
            self.moved(&mut changes, place, place, &old, true);
            let writes = 1u64 << power;
            let what = format!(
                "{} and its MAC are as they were {writes} writes ago",
                self.name(place)
            );
            self.try_some([(what, changes.done())], &mut row);
            row.what = format!("a line and its MAC after 1, 2, 4 .. {writes} writes");
        }
        if row.tried > 0 {
            self.rows.push(row);
        }
    }
}
