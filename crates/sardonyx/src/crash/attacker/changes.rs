//! What the attacker changes: drawn by region, so that tables, counters, logs, MACs and nodes have their share
//! beside data, which are many more. Left out: when he does it.

use std::collections::BTreeMap;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Attacker, Groups};
use crate::controller::layers::PowerFail;
use crate::crash::attacked::Attack;
use crate::crash::platform::Whole;
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::medium::image::Image;

/// What the medium held at a cut.
pub type Held = BTreeMap<Place, Content>;

/// A line, and what lies beside it.
type Content = (Line, Option<[u8; 8]>);

/// What one attack changes.
pub struct Change {
    pub lines: Vec<Whole>,
    /// Where it begins.
    pub region: &'static str,
    /// The look whose bytes it puts back, if it does.
    pub look: usize,
    /// In words.
    pub what: String,
}

impl Attacker<'_> {
    /// An attack on a medium that holds `now`; nothing if what was drawn changes nothing.
    pub(super) fn draw(&self, kind: Attack, now: &Held, dice: &mut ChaCha8Rng) -> Option<Change> {
        let mut change = match kind {
            Attack::Tamper => self.tamper(now, dice),
            Attack::Splice => self.splice(now, dice),
            Attack::Replay => self.replay(now, dice),
            Attack::Region => self.region(now, dice),
            Attack::Rollback => Some(self.rollback(dice)),
        }?;
        change
            .lines
            .retain(|(place, line, beside)| now.get(place) != Some(&(*line, *beside)));
        // What lies beside a line cannot be taken away again: such an attack would change what comes after it.
        let stays = |(place, _, beside): &Whole| {
            let now = now.get(place).and_then(|(_, beside)| *beside);
            now.is_some() == beside.is_some()
        };
        match kind {
            Attack::Region | Attack::Rollback => change.lines.retain(stays),
            _ if !change.lines.iter().all(stays) => return None,
            _ => {}
        }
        (!change.lines.is_empty()).then_some(change)
    }

    /// One bit of any line.
    fn tamper(&self, now: &Held, dice: &mut ChaCha8Rng) -> Option<Change> {
        let (region, place) = one(&self.grouped(now, false), dice)?;
        let (mut line, mut beside) = now[&place];
        let bits = 8 * LINE_BYTES as u64 + 64 * u64::from(beside.is_some());
        let bit = (dice.next_u64() % bits) as usize;
        // Of two words the same bit, one time in four: what adds words up does not notice that.
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
            lines: vec![(place, line, beside)],
            region,
            look: 0,
            what: match twin && bit / 8 < LINE_BYTES {
                true => format!(
                    "bit {bit} of {} and that of the next word are inverted",
                    self.name(place)
                ),
                false => format!("bit {bit} of {} is inverted", self.name(place)),
            },
        })
    }

    /// Two lines with their MACs, half of the time of one region.
    fn splice(&self, now: &Held, dice: &mut ChaCha8Rng) -> Option<Change> {
        let groups = self.grouped(now, true);
        let (region, first) = one(&groups, dice)?;
        let (_, second) = match dice.next_u64() & 1 {
            0 => one(&groups, dice)?,
            _ => one(&Groups::from([(region, groups[region].clone())]), dice)?,
        };
        let mut changes = Changes::new(now);
        for (place, other) in [(first, second), (second, first)] {
            changes.put(place, now[&other].0, now[&other].1);
        }
        if let Some(kept) = &self.kept {
            let at = [kept.kept_of(first)?, kept.kept_of(second)?];
            let words = at.map(|(at, number)| word_of(now, at, number));
            changes.put_word(at[0], words[1]);
            changes.put_word(at[1], words[0]);
        }
        Some(Change {
            lines: changes.done(),
            region,
            look: 0,
            what: format!(
                "{} and {} change places",
                self.name(first),
                self.name(second)
            ),
        })
    }

    /// A line of an earlier look, its MAC, its counter's line and that one's, and all nodes.
    fn replay(&self, now: &Held, dice: &mut ChaCha8Rng) -> Option<Change> {
        let look = (dice.next_u64() % self.before.len() as u64) as usize;
        let (position, old) = &self.before[look];
        let mut groups = self.grouped(old, true);
        groups.retain(|_, places| {
            places.retain(|place| now.get(place) != old.get(place));
            !places.is_empty()
        });
        let (region, place) = one(&groups, dice)?;
        let mut changes = Changes::new(now);
        let counter = self.history.counter_place(place);
        for place in [Some(place), counter].into_iter().flatten() {
            self.put_back(place, old, &mut changes)?;
        }
        self.put_back_nodes(old, &mut changes);
        Some(Change {
            lines: changes.done(),
            region,
            look,
            what: format!("{} is as at position {position}", self.name(place)),
        })
    }

    /// All lines of a region of an earlier look, their MACs, and all nodes.
    fn region(&self, now: &Held, dice: &mut ChaCha8Rng) -> Option<Change> {
        let look = (dice.next_u64() % self.before.len() as u64) as usize;
        let (position, old) = &self.before[look];
        let groups = self.grouped(old, true);
        let (region, _) = one(&groups, dice)?;
        let mut changes = Changes::new(now);
        for place in &groups[region] {
            self.put_back(*place, old, &mut changes)?;
        }
        self.put_back_nodes(old, &mut changes);
        Some(Change {
            lines: changes.done(),
            region,
            look,
            what: format!("the region {region} is as at position {position}"),
        })
    }

    /// Everything that an earlier look found.
    fn rollback(&self, dice: &mut ChaCha8Rng) -> Change {
        let look = (dice.next_u64() % self.before.len() as u64) as usize;
        let (position, old) = &self.before[look];
        let off_chip = old.iter().filter(|(place, _)| !self.is_on_chip(**place));
        Change {
            lines: off_chip
                .map(|(place, (line, beside))| (*place, *line, *beside))
                .collect(),
            region: "all",
            look,
            what: format!("the whole medium is as at position {position}"),
        }
    }

    fn put_back(&self, place: Place, old: &Held, changes: &mut Changes) -> Option<()> {
        let Some((line, beside)) = old.get(&place) else {
            return Some(());
        };
        changes.put(place, *line, *beside);
        if let Some(kept) = &self.kept {
            let at = kept.kept_of(place)?;
            changes.put_word(at, word_of(old, at.0, at.1));
        }
        Some(())
    }

    fn put_back_nodes(&self, old: &Held, changes: &mut Changes) {
        let Some(kept) = &self.kept else {
            return;
        };
        let layout = self.history.layout();
        let data = kept.kept_of(Place(0));
        let words = data.map(|(at, _)| layout.name_of(at).0);
        for (region, places) in self.grouped(old, false) {
            if Some(region) == words || kept.kept_of(places[0]).is_some() {
                continue;
            }
            for place in places {
                changes.put(place, old[&place].0, old[&place].1);
            }
        }
    }

    /// The lines that the attacker reaches; with `protected` those that the layers above the integrity know.
    fn grouped(&self, held: &Held, protected: bool) -> Groups {
        let layout = self.history.layout();
        let data = ("data", 0..layout.data_lines());
        let regions = layout.regions().iter();
        let regions = regions.map(|r| (r.name, r.first.0..r.first.0 + r.lines));
        let mut groups = Groups::new();
        for (name, places) in std::iter::once(data).chain(regions) {
            let held = held.range(Place(places.start)..Place(places.end));
            let places: Vec<Place> = held.map(|(place, _)| *place).collect();
            let Some(first) = places.first() else {
                continue;
            };
            let known = |kept: &dyn PowerFail| !protected || kept.kept_of(*first).is_some();
            if !self.is_on_chip(*first) && self.kept.as_deref().is_none_or(known) {
                groups.insert(name, places);
            }
        }
        groups
    }

    pub(super) fn is_on_chip(&self, place: Place) -> bool {
        let kept = self.kept.as_ref();
        let region = kept.and_then(|kept| kept.on_chip());
        region.is_some_and(|region| region.contains(place))
    }

    fn name(&self, place: Place) -> String {
        let (region, line) = self.history.layout().name_of(place);
        format!("line {line} of {region}")
    }
}

/// Any line of any region: first the region is drawn.
fn one(groups: &Groups, dice: &mut ChaCha8Rng) -> Option<(&'static str, Place)> {
    let number = dice.next_u64().checked_rem(groups.len() as u64)? as usize;
    let (region, places) = groups.iter().nth(number)?;
    let place = dice.next_u64().checked_rem(places.len() as u64)? as usize;
    Some((region, places[place]))
}

/// Lines that are about to be changed.
struct Changes<'n> {
    now: &'n Held,
    lines: Held,
}

impl<'n> Changes<'n> {
    fn new(now: &'n Held) -> Changes<'n> {
        let lines = Held::new();
        Changes { now, lines }
    }

    fn put(&mut self, place: Place, line: Line, beside: Option<[u8; 8]>) {
        self.lines.insert(place, (line, beside));
    }

    fn put_word(&mut self, (place, number): (Place, usize), word: [u8; 8]) {
        let now = self.now.get(&place).copied().unwrap_or((ZERO_LINE, None));
        let (line, _) = self.lines.entry(place).or_insert(now);
        line[number * 8..][..8].copy_from_slice(&word);
    }

    fn done(self) -> Vec<Whole> {
        let lines = self.lines.into_iter();
        lines
            .map(|(place, (line, beside))| (place, line, beside))
            .collect()
    }
}

/// Word `number` of the line at `place`.
fn word_of(held: &Held, place: Place, number: usize) -> [u8; 8] {
    let line = held.get(&place).map_or(ZERO_LINE, |(line, _)| *line);
    line.as_chunks().0[number]
}

/// All that was ever written.
pub fn held(image: &Image) -> Held {
    let lines = image.written_lines();
    lines
        .map(|(place, line)| (place, (line, image.sideband(place))))
        .collect()
}
