//! The changes that the attacker makes. A region is drawn first, so that tables, counters, logs, MACs and nodes have
//! their share relative to data, which has many more lines. In a tree the level is drawn: lines are put back up to any
//! level, alone or with all that hangs below. Left out: when he makes them.

use std::collections::BTreeMap;
use std::ops::Range;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::attacker::knowledge::{Knowledge, Now, Past, Seen, fields_beside, one_of};
use crate::options::Attack;
use crate::words::{number_of, word_of};
use sardonyx::controller::layers::BESIDE;
use sardonyx::line::{LINE_BYTES, Place, ZERO_LINE};
use sardonyx::medium::image::Content;

/// An unwritten line is looked for among this many lines after a place.
const NEAR: u64 = 64;

pub struct Change {
    /// Lines with their new contents; `None` stands for a line that nobody has written.
    pub lines: Vec<(Place, Option<Content>)>,
    pub region: &'static str,
    pub what: String,
}

impl Knowledge<'_> {
    /// Draws an attack on the medium; `None` if what was drawn changes nothing.
    pub fn draw(&self, kind: Attack, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let mut change = match kind {
            Attack::Tamper => self.tamper(now, dice),
            Attack::Splice => self.splice(now, dice),
            Attack::Replay => self.replay(now, dice),
            Attack::Region => self.region(now, dice),
            Attack::Rollback => self.rollback(now, dice),
        }?;
        change
            .lines
            .retain(|(place, content)| now.get(*place) != content.as_ref());
        if now.running {
            // A write cannot take away again what lies beside a line.
            change.lines.retain(|(place, content)| {
                let beside = now.get(*place).is_some_and(|(_, beside)| beside.is_some());
                content.is_some_and(|content| content.1.is_some() == beside)
            });
        }
        (!change.lines.is_empty()).then_some(change)
    }

    /// Changes a bit, a number or all of a line.
    fn tamper(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let (region, place) = any(&now.seen.all, dice)?;
        let (mut line, mut beside) = *now.get(place)?;
        let name = self.name(place);
        match dice.next_u64() % 8 {
            0 => {
                let word = (dice.next_u64() % 8) as usize;
                let step = [1, u64::MAX, 8][(dice.next_u64() % 3) as usize];
                let number = u64::from_le_bytes(line.as_chunks().0[word]).wrapping_add(step);
                line[word * 8..][..8].copy_from_slice(&number.to_le_bytes());
                return Some(Change {
                    lines: vec![(place, Some((line, beside)))],
                    region,
                    what: format!("{} is added to word {word} of {name}", step as i64),
                });
            }
            1 => return Some(self.wiped(place, now, dice)),
            2 => return Some(self.without_mac(place, now, dice)),
            _ => {}
        }
        let bits = 8 * LINE_BYTES as u64 + 64 * u64::from(beside.is_some());
        let bit = match dice.next_u64() % 4 {
            0 => 8 * (LINE_BYTES - 8) as u64 + dice.next_u64() % 64, // the last of what nodes have of lines below
            _ => dice.next_u64() % bits,
        } as usize;
        // One time in four the same bit of two words is inverted, which a sum of words does not show.
        let twin = dice.next_u64().is_multiple_of(4);
        match (bit / 8).checked_sub(LINE_BYTES) {
            None if twin => {
                line[bit / 8] ^= 1 << (bit % 8);
                line[(bit / 8 + 8) % LINE_BYTES] ^= 1 << (bit % 8);
            }
            None => line[bit / 8] ^= 1 << (bit % 8),
            Some(byte) => beside.as_mut()?[byte] ^= 1 << (bit % 8),
        }
        Some(Change {
            lines: vec![(place, Some((line, beside)))],
            region,
            what: match twin && bit / 8 < LINE_BYTES {
                true => format!("bit {bit} of {name} and that of the next word are inverted"),
                false => format!("bit {bit} of {name} is inverted"),
            },
        })
    }

    /// Makes zeros of the line at `place`, with or without its MAC and what vouches for it.
    fn wiped(&self, place: Place, now: &Now, dice: &mut ChaCha8Rng) -> Change {
        let mut changes = Changes::new(now);
        let beside = now
            .get(place)
            .and_then(|(_, beside)| beside.map(|_| [0; 8]));
        let (mac, depth) = (dice.next_u64() & 1 == 1, self.depth(dice));
        // One time in two the line stays, and only what says that it was written becomes zeros.
        let line = !mac || dice.next_u64() & 1 == 1;
        if line {
            changes.put(place, Some((ZERO_LINE, beside)));
        }
        if let Some((at, number)) = self.kept_of(place).filter(|_| mac) {
            changes.put_word(at, number, [0; 8]);
        }
        let above = (0..depth).filter_map(|level| self.over(place, level));
        for node in above {
            changes.put(node, Some((ZERO_LINE, None)));
        }
        let parts = [
            (line, "itself".to_owned()),
            (mac, "its MAC".to_owned()),
            (depth > 0, format!("{depth} levels above it")),
        ];
        Change {
            lines: changes.done(),
            region: self.region_of(place),
            what: format!("of {}, {} become zeros", self.name(place), listed(parts)),
        }
    }

    /// Replaces the line at `place` and makes its MAC say that nobody has written it; or, while the power is off, makes
    /// the line itself unwritten.
    fn without_mac(&self, place: Place, now: &Now, dice: &mut ChaCha8Rng) -> Change {
        let mut changes = Changes::new(now);
        let gone = !now.running && dice.next_u64() & 1 == 1;
        let zeroed = self.kept_of(place).filter(|_| !gone);
        let other = now
            .get(place)
            .map(|(line, beside)| (line.map(|byte| !byte), *beside));
        changes.put(place, other.filter(|_| !gone));
        if let Some((at, number)) = zeroed {
            changes.put_word(at, number, [0; 8]);
        }
        let name = self.name(place);
        Change {
            lines: changes.done(),
            region: self.region_of(place),
            what: match (gone, zeroed) {
                (true, _) => format!("{name} becomes one that nobody has written"),
                (false, Some(_)) => format!("all bits of {name} are inverted, and its MAC is 0"),
                (false, None) => format!("all bits of {name} are inverted"),
            },
        }
    }

    /// Exchanges two lines, or copies one over another, each with its MAC and what vouches for it up to any level.
    fn splice(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let bare = dice.next_u64().is_multiple_of(4);
        let groups = if bare { &now.seen.all } else { &now.seen.known };
        let (region, first) = any(groups, dice)?;
        let copied = dice.next_u64().is_multiple_of(4);
        let (_, mut second) = match dice.next_u64() & 1 {
            0 if !bare => any(groups, dice)?,
            _ => {
                let own = groups.iter().find(|(name, _)| *name == region)?;
                any(std::slice::from_ref(own), dice)?
            }
        };
        if copied && dice.next_u64() & 1 == 1 {
            second = self.next_hole(second, now);
        }
        let depth = match dice.next_u64().is_multiple_of(4) {
            true => self.depth(dice),
            false => 0,
        };
        let pairs = [(first, second), (second, first)];
        let mut changes = Changes::new(now);
        for (place, other) in pairs.into_iter().skip(usize::from(copied)) {
            changes.put(place, now.get(other).copied());
            if let (Some((at, number)), Some(from)) = (self.kept_of(place), self.kept_of(other)) {
                let word = word_of(now.get(from.0), from.1);
                changes.put_word(at, number, word);
            }
            for level in 0..depth {
                let (at, from) = (self.over(place, level), self.over(other, level));
                if let (Some(at), Some(from)) = (at, from)
                    && at != from
                {
                    changes.put(at, now.get(from).copied());
                }
            }
        }
        let (one, other) = (self.name(first), self.name(second));
        let with = match depth {
            0 => String::new(),
            depth => format!(", with {depth} levels above each"),
        };
        Some(Change {
            lines: changes.done(),
            region,
            what: match copied {
                true => format!("{one} is copied over {other}{with}"),
                false => format!("{one} and {other} change places{with}"),
            },
        })
    }

    /// The next unwritten line of the region after `place`, if one is near; `place` if none is.
    fn next_hole(&self, place: Place, now: &Now) -> Place {
        let region = self.region_of(place);
        let near = (place.0 + 1..place.0 + NEAR).map(Place);
        let mut near = near.take_while(|at| self.region_of(*at) == region);
        near.find(|at| now.get(*at).is_none()).unwrap_or(place)
    }

    /// Puts back a line of an earlier look, or all that hangs below a node, with MACs and what vouches for them up to
    /// any level.
    fn replay(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let directed = match dice.next_u64() % 8 {
            0 => self.under_the_same_version(now, dice),
            1 => self.alone(now, dice),
            _ => None,
        };
        if directed.is_some() {
            return directed;
        }
        let look = self.look_back(now, dice)?;
        let chance = match self.levels {
            0 => dice.next_u64() % 2 * 7,
            _ => dice.next_u64() % 9,
        };
        // A line that the layers know is drawn two times in three, and always if all that integrity has is put back
        // with it.
        let known = chance < 2 || !dice.next_u64().is_multiple_of(3);
        let place = look.drawn(known, self, dice)?;
        let mut changes = Changes::new(now);
        let name = self.name(place);
        let what = match chance {
            0..2 => {
                let counter = self.history.counter_place(place);
                for place in [Some(place), counter].into_iter().flatten() {
                    self.put_back(place, &look.old, &mut changes);
                }
                self.put_back_nodes(&look, &mut changes);
                format!("{name}, its MAC, its counter's line and all that vouches for lines are")
            }
            8 => self.version(&mut changes, place, &look, dice)?,
            2..5 => {
                let level = (dice.next_u64() % self.levels as u64) as usize;
                let node = self.over(place, level)?;
                let below = |at: &Place| self.over(*at, level) == Some(node);
                for at in look.places().filter(below) {
                    changes.put(at, look.old.lines.get(&at).copied());
                }
                format!("{} and all that it vouches for are", self.name(node))
            }
            _ => self.branch(&mut changes, place, (&look, chance == 7), dice),
        };
        Some(Change {
            lines: changes.done(),
            region: self.region_of(place),
            what: format!("{what} as at position {}", look.old.position),
        })
    }

    /// Puts back a line of an earlier look, its MAC and nodes on its branch of the tree, or some of them, and tells so
    /// in words. `above` may leave out the lowest nodes.
    fn branch(
        &self,
        changes: &mut Changes,
        place: Place,
        (look, above): (&Past, bool),
        dice: &mut ChaCha8Rng,
    ) -> String {
        let (line, mac) = [(true, true), (true, true), (true, false), (false, true)]
            [(dice.next_u64() % 4) as usize];
        let depth = self.depth(dice);
        let lowest = match above && depth > 1 {
            true => dice.next_u64() as usize % depth,
            false => 0,
        };
        let mac = mac && self.kept_of(place).is_some();
        let line = line || !mac;
        if line {
            changes.put(place, look.old.lines.get(&place).copied());
        }
        if mac {
            self.put_back_mac(place, &look.old, changes);
        }
        let nodes = (lowest..depth).filter_map(|level| self.over(place, level));
        for node in nodes {
            changes.put(node, look.old.lines.get(&node).copied());
        }
        let levels = format!("levels {lowest} to {} above it", depth.max(1) - 1);
        let parts = [
            (line, "itself".to_owned()),
            (mac, "its MAC".to_owned()),
            (lowest < depth, levels),
        ];
        format!("of {}, {} are", self.name(place), listed(parts))
    }

    /// Puts back a line of an earlier look with its MAC and its version, and tells so in words. One time in two the
    /// line is one whose version lies at the very end of its line, as far as such have changed. One time in two as much
    /// as its version falls is added to another version in the same line, best to that of an unwritten line, so that
    /// the sum of all stays.
    fn version(
        &self,
        changes: &mut Changes,
        place: Place,
        look: &Past,
        dice: &mut ChaCha8Rng,
    ) -> Option<String> {
        let version_of = |at: Place| self.kept.as_deref()?.version_of(at);
        let ends = |at: Place| version_of(at).map_or(0, |(_, bits)| bits.end);
        let place = match dice.next_u64() & 1 {
            0 => place,
            _ => {
                let end = look.places().map(ends).max()?;
                let last = look.places().filter(|at| ends(*at) == end);
                one_of(&last.collect::<Vec<Place>>(), dice)
            }
        };
        let (node, bits) = version_of(place)?;
        let now = |bits: &Range<usize>| {
            number_of(changes.now.get(node).map_or(&ZERO_LINE, |at| &at.0), bits)
        };
        let old = look
            .old
            .lines
            .get(&node)
            .map_or(0, |at| number_of(&at.0, &bits));
        let less = now(&bits).wrapping_sub(old);
        let balanced = dice.next_u64() & 1 == 1;
        let others = fields_beside(self.kept.as_deref()?, place);
        let free = others.iter().find(|other| now(other) == 0);
        let drawn = (dice.next_u64() as usize).checked_rem(others.len());
        let other = free.or(drawn.map(|at| &others[at]));
        let other = other.filter(|_| balanced).cloned();
        let more = other.as_ref().map(|other| now(other).wrapping_add(less));
        self.put_back(place, &look.old, changes);
        changes.put_bits(node, &bits, old);
        if let Some((other, more)) = other.zip(more) {
            changes.put_bits(node, &other, more);
        }
        let sum = if balanced {
            ", and another version is so much greater, "
        } else {
            " "
        };
        Some(format!(
            "{}, its MAC and its version are{sum}",
            self.name(place)
        ))
    }

    /// Puts back a line of an earlier look and nothing with it, as if nothing vouched for its region.
    fn alone(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let look = self.look_back(now, dice)?;
        let place = look.drawn(true, self, dice)?;
        let mut changes = Changes::new(now);
        changes.put(place, look.old.lines.get(&place).copied());
        Some(Change {
            lines: changes.done(),
            region: self.region_of(place),
            what: format!(
                "{} alone is as at position {}",
                self.name(place),
                look.old.position
            ),
        })
    }

    /// Puts back a line and its MAC that once had the version that lies there now, because a version has come round.
    fn under_the_same_version(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let found = self.same_version(now);
        let drawn = dice.next_u64().checked_rem(found.len() as u64)?;
        let (place, (line, mac)) = found[drawn as usize];
        let mut changes = Changes::new(now);
        changes.put(
            place,
            Some((line, now.get(place).and_then(|(_, beside)| *beside))),
        );
        let (at, number) = self.kept_of(place)?;
        changes.put_word(at, number, mac);
        Some(Change {
            lines: changes.done(),
            region: self.region_of(place),
            what: format!(
                "{} and its MAC are as they were once under the same version",
                self.name(place)
            ),
        })
    }

    /// Puts back all lines of a region of an earlier look: with their MACs and all nodes, with their MACs only, or
    /// without both.
    fn region(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let look = self.look_back(now, dice)?;
        let (nodes, known) = match dice.next_u64() % 4 {
            0 | 1 => (true, true),
            2 => (false, true),
            _ => (false, false),
        };
        let place = look.drawn(known, self, dice)?;
        let region = self.region_of(place);
        let mut changes = Changes::new(now);
        for place in look.places().filter(|at| self.region_of(*at) == region) {
            self.put_back(place, &look.old, &mut changes);
        }
        if nodes {
            self.put_back_nodes(&look, &mut changes);
        }
        let with = if nodes {
            " with all that vouches for it"
        } else {
            ""
        };
        let position = look.old.position;
        Some(Change {
            lines: changes.done(),
            region,
            what: format!("the region {region} is as at position {position}{with}"),
        })
    }

    /// Puts back all of an earlier look, all but one region, only the lines and their MACs, or only what vouches for
    /// them.
    fn rollback(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Change> {
        let look = self.look_back(now, dice)?;
        let chance = dice.next_u64() % 8;
        let but = match chance {
            0 | 1 => self.region_of(look.drawn(false, self, dice)?),
            _ => "",
        };
        let macs = self.macs();
        let is_wanted = |at: &Place| {
            let region = self.region_of(*at);
            let of_lines = self.is_known(*at) || macs == Some(region);
            match chance {
                2 => of_lines,
                3 => !of_lines,
                _ => region != but,
            }
        };
        let mut changes = Changes::new(now);
        for at in look.places().filter(is_wanted) {
            changes.put(at, look.old.lines.get(&at).copied());
        }
        let of = match (chance, but) {
            (2, _) => "all lines and their MACs are".to_owned(),
            (3, _) => "all that vouches for lines is".to_owned(),
            (_, "") => "the whole medium is".to_owned(),
            (_, but) => format!("all but the region {but} is"),
        };
        Some(Change {
            lines: changes.done(),
            region: "all",
            what: format!("{of} as at position {}", look.old.position),
        })
    }

    fn depth(&self, dice: &mut ChaCha8Rng) -> usize {
        (dice.next_u64() % (self.levels as u64 + 1)) as usize
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.kept.as_deref()?.kept_of(place)
    }

    fn put_back(&self, place: Place, old: &Seen, changes: &mut Changes) {
        changes.put(place, old.lines.get(&place).copied());
        self.put_back_mac(place, old, changes);
    }

    fn put_back_mac(&self, place: Place, old: &Seen, changes: &mut Changes) {
        if let Some((at, number)) = self.kept_of(place) {
            changes.put_word(at, number, word_of(old.lines.get(&at), number));
        }
    }

    fn put_back_nodes(&self, look: &Past, changes: &mut Changes) {
        if self.kept.is_none() {
            return;
        }
        let macs = self.macs();
        let is_node = |at: &Place| !self.is_known(*at) && Some(self.region_of(*at)) != macs;
        for at in look.places().filter(is_node) {
            changes.put(at, look.old.lines.get(&at).copied());
        }
    }
}

/// Draws a region, and then a line of it.
fn any(
    groups: &[(&'static str, Vec<Place>)],
    dice: &mut ChaCha8Rng,
) -> Option<(&'static str, Place)> {
    let number = dice.next_u64().checked_rem(groups.len() as u64)? as usize;
    let (region, places) = &groups[number];
    Some((region, one_of(places, dice)))
}

fn listed<const N: usize>(parts: [(bool, String); N]) -> String {
    let parts = parts.into_iter().filter(|(holds, _)| *holds);
    let parts: Vec<String> = parts.map(|(_, part)| part).collect();
    match parts.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        parts => parts.concat(),
    }
}

pub(crate) struct Changes<'n> {
    now: &'n Now,
    lines: BTreeMap<Place, Option<Content>>,
}

impl<'n> Changes<'n> {
    pub(crate) fn new(now: &'n Now) -> Changes<'n> {
        let lines = BTreeMap::new();
        Changes { now, lines }
    }

    pub(crate) fn put(&mut self, place: Place, content: Option<Content>) {
        self.lines.insert(place, content);
    }

    pub(crate) fn put_word(&mut self, place: Place, number: usize, word: [u8; 8]) {
        let now = self.now.get(place).copied();
        let content = self.lines.entry(place).or_insert(now);
        let (line, beside) = content.get_or_insert((ZERO_LINE, None));
        match number {
            BESIDE => *beside = Some(word),
            number => line[number * 8..][..8].copy_from_slice(&word),
        }
    }

    pub(crate) fn put_bits(&mut self, place: Place, bits: &Range<usize>, number: u64) {
        let now = self.now.get(place).copied();
        let content = self.lines.entry(place).or_insert(now);
        let (line, _) = content.get_or_insert((ZERO_LINE, None));
        for (at, bit) in bits.clone().enumerate() {
            line[bit / 8] &= !(1 << (bit % 8));
            line[bit / 8] |= ((number >> at & 1) as u8) << (bit % 8);
        }
    }

    pub(crate) fn done(self) -> Vec<(Place, Option<Content>)> {
        self.lines.into_iter().collect()
    }
}
