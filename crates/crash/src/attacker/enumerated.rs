//! Attacks of which none is drawn: on a few lines in a memory that holds nothing else, after an orderly shutdown. All
//! bits of a line of each region are inverted one by one, all pairs of lines change places, all parts of earlier states
//! come back, and MACs are forged from differences of others. Left out: cuts, the programs, warm caches.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use sardonyx_base::random::mix;
use serde::Serialize;

use crate::attacker::changes::Changes;
use crate::attacker::knowledge::{Contents, Groups, Now, Seen, fields_beside};
use crate::history::machine::fresh;
use crate::options::Attack;
use crate::panics::caught;
use crate::words::{number_of, word_of};
use sardonyx::controller::designs::Stack;
use sardonyx::controller::integrity::{VERIFY, Verify};
use sardonyx::controller::layers::{Placement, PowerFail, Refuses};
use sardonyx::controller::{Controller, Write};
use sardonyx::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use sardonyx::machine::{read_untimed, write_untimed};
use sardonyx::medium::image::{Content, Image};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::At;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::untimed::Untimed;
use sardonyx::settings::Settings;

/// The memory has two to this power lines where lines lie at their own places, so that any two bits of a place differ
/// between some two of the lines; and two to that power where a table places them, one after the other.
const PLACE_BITS: (u32, u32) = (34, 12);
/// Each line is written this many times, with a shutdown after each.
const GENERATIONS: u64 = 4;
/// A line is then written this many times a power of two.
const MOST_WRITES: u32 = 12;

/// What came of the attacks of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EnumeratedAttacks {
    /// All of what, in words.
    pub what: String,
    pub kind: &'static str,
    pub promised: bool,
    pub tried: u64,
    pub refused: u64,
    pub harmless: u64,
    pub undetected: u64,
    /// The first that nobody noticed.
    pub first: Option<String>,
}

impl EnumeratedAttacks {
    /// Whether somebody should have noticed what nobody has.
    pub fn is_unkept(&self) -> bool {
        self.promised && self.undetected > 0
    }
}

/// Makes all of them on `stack` under `settings`; nothing without integrity.
pub fn enumerate(stack: &Stack, settings: &Settings) -> Vec<EnumeratedAttacks> {
    let Some(mut bench) = Bench::new(stack, settings) else {
        return Vec::new();
    };
    if caught(|| bench.write_generations()).is_err() || bench.generations.is_empty() {
        return Vec::new(); // the plan's runs say why it cannot be written
    }
    bench.bits();
    bench.pairs_of_places();
    bench.pairs_of_regions();
    bench.replays();
    bench.differences();
    bench.later_versions();
    bench.rows
}

/// Lines with their new contents.
type Edits = Vec<(Place, Option<Content>)>;
/// An attack: what it does, in words, and its changes.
type Listed = (String, Edits);

enum Came {
    Refused,
    Harmless,
    Undetected(String),
}

struct Bench<'s> {
    stack: &'s Stack,
    settings: Settings,
    data_lines: u64,
    layout: Layout,
    kept: Box<dyn PowerFail>,
    promises: Refuses,
    speculates: bool,
    /// The lines, with what each should hold.
    lines: BTreeMap<u64, Line>,
    untimed: Untimed,
    /// The medium after each shutdown, without what is on chip.
    generations: Vec<Rc<Seen>>,
    rows: Vec<EnumeratedAttacks>,
}

/// The content that `line` gets the `time`th time.
fn content(line: u64, time: u64) -> Line {
    let mut content = ZERO_LINE;
    for (word, bytes) in (0..).zip(content.as_chunks_mut::<8>().0) {
        *bytes = mix(mix(line << 16 | time) ^ word).to_le_bytes();
    }
    content
}

fn xor(one: &mut [u8], other: &[u8]) {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one ^= other);
}

impl<'s> Bench<'s> {
    fn new(stack: &'s Stack, settings: &Settings) -> Option<Bench<'s>> {
        let make = stack.integrity.power_fail?;
        let settings = fresh(settings);
        let build = |bits: u32| {
            let mut layout = Layout::new(1 << bits);
            stack.build(&settings, &mut layout);
            layout
        };
        let mut layout = build(PLACE_BITS.1);
        let mut bits = PLACE_BITS.1;
        if matches!(
            (stack.mapping.placement)(&settings, &layout),
            Placement::Home
        ) {
            (layout, bits) = (build(PLACE_BITS.0), PLACE_BITS.0);
        }
        let lines = (0..bits).map(|bit| 1 << bit);
        Some(Bench {
            kept: make(&settings, &layout),
            promises: stack.integrity.promises,
            speculates: settings.get(&VERIFY) == Verify::Speculate,
            lines: std::iter::once(0)
                .chain(lines)
                .map(|line| (line, ZERO_LINE))
                .collect(),
            untimed: Untimed::tried_out(Image::sparse()),
            generations: Vec::new(),
            rows: Vec::new(),
            data_lines: 1 << bits,
            stack,
            settings,
            layout,
        })
    }

    fn controller(&self) -> Controller {
        self.stack
            .build(&self.settings, &mut Layout::new(self.data_lines))
    }

    /// Writes each line once, in a life that ends with an orderly shutdown, as often as there are generations.
    fn write_generations(&mut self) {
        for time in 1..=GENERATIONS {
            let lines: Vec<u64> = self.lines.keys().copied().collect();
            let writes = lines.into_iter().map(|line| (line, content(line, time)));
            if !self.live(&writes.collect::<Vec<_>>()) {
                self.generations.clear();
                return;
            }
            self.generations.push(self.see());
        }
    }

    /// A life that makes `writes` and is shut down in order; false if it cannot.
    fn live(&mut self, writes: &[(u64, Line)]) -> bool {
        let image = std::mem::replace(&mut self.untimed, Untimed::new(Image::new())).into_image();
        let (mut untimed, mut controller) = (Untimed::new(image), self.controller());
        untimed.plan(|plan| controller.recover(plan));
        for (line, data) in writes {
            let write = Write::new(Logical(*line), At::past(data));
            write_untimed(&mut controller, &mut untimed, write);
            self.lines.insert(*line, *data);
        }
        untimed.plan(|plan| controller.flush(plan));
        let right = untimed.failure().is_none() && untimed.refused().is_empty();
        untimed.settle();
        let mut image = untimed.into_image();
        image.lose_near();
        self.kept = self.power_fail();
        self.kept.begin(&mut Places::new(&mut image, None));
        self.untimed = Untimed::tried_out(image);
        right
    }

    fn power_fail(&self) -> Box<dyn PowerFail> {
        let make = self.stack.integrity.power_fail.expect("it has one");
        make(&self.settings, &self.layout)
    }

    fn region_of(&self, place: Place) -> &'static str {
        self.layout.name_of(place).0
    }

    fn name(&self, place: Place) -> String {
        let (region, line) = self.layout.name_of(place);
        format!("line {line} of {region}")
    }

    fn see(&self) -> Rc<Seen> {
        let image = self.untimed.image();
        let on_chip = self.kept.on_chip();
        let reached = |place: &Place| !on_chip.is_some_and(|region| region.contains(*place));
        let lines = image.written_lines().filter(|(place, _)| reached(place));
        let lines: Contents = lines
            .map(|(place, line)| (place, (line, image.sideband(place))))
            .collect();
        let mut all = Groups::new();
        for place in lines.keys() {
            let region = self.region_of(*place);
            match all.last_mut() {
                Some((last, places)) if *last == region => places.push(*place),
                _ => all.push((region, vec![*place])),
            }
        }
        let known = all
            .iter()
            .filter(|(_, places)| self.kept.kept_of(places[0]).is_some());
        Rc::new(Seen {
            position: 0,
            known: known.cloned().collect(),
            all,
            lines,
        })
    }

    fn last(&self) -> Rc<Seen> {
        self.generations
            .last()
            .expect("it has been written")
            .clone()
    }

    /// Recovers over the medium with `change` made, and reads all lines until one is refused.
    fn outcome(&mut self, change: &[(Place, Option<Content>)]) -> Came {
        let before: Edits = change
            .iter()
            .map(|(place, _)| (*place, self.untimed.image().content(*place)))
            .collect();
        for (place, content) in change {
            self.untimed.image_mut().put(*place, content.as_ref());
        }
        let came = caught(|| {
            let mut controller = self.controller();
            let untimed = &mut self.untimed;
            untimed.plan(|plan| controller.recover_integrity(plan));
            if untimed.refused().is_empty() {
                untimed.plan(|plan| controller.recover_layers(plan));
            }
            if untimed.refused().is_empty() {
                untimed.plan(|plan| controller.undo(plan));
            }
            let mut wrong = None;
            for (line, right) in &self.lines {
                if !untimed.refused().is_empty() {
                    break;
                }
                let read = read_untimed(&mut controller, untimed, *line);
                if untimed.refused().is_empty() && read != *right && wrong.is_none() {
                    wrong = Some(*line);
                }
            }
            (!untimed.refused().is_empty(), wrong)
        });
        self.untimed.forget();
        for (place, content) in &before {
            self.untimed.image_mut().put(*place, content.as_ref());
        }
        match came {
            Ok((true, None)) => Came::Refused,
            Ok((true, Some(_))) if self.speculates => Came::Refused,
            Ok((false, None)) => Came::Harmless,
            Ok((refused, Some(line))) => Came::Undetected(format!(
                "line {line} reads wrongly{}",
                if refused {
                    " before anything is refused"
                } else {
                    ""
                }
            )),
            Err(what) => Came::Undetected(format!("nothing more is read: {what}")),
        }
    }

    /// Makes the attacks of one kind.
    fn try_all(&mut self, what: String, kind: Attack, attacks: impl IntoIterator<Item = Listed>) {
        let mut row = EnumeratedAttacks {
            what,
            kind: kind.name(),
            promised: kind.is_refused_by(self.promises),
            ..EnumeratedAttacks::default()
        };
        self.try_some(attacks, &mut row);
        if row.tried > 0 {
            self.rows.push(row);
        }
    }

    fn try_some(&mut self, attacks: impl IntoIterator<Item = Listed>, row: &mut EnumeratedAttacks) {
        for (attack, change) in attacks {
            let same = |(place, content): &(Place, Option<Content>)| {
                self.untimed.image().content(*place) == *content
            };
            if change.iter().all(same) {
                continue;
            }
            row.tried += 1;
            match self.outcome(&change) {
                Came::Refused => row.refused += 1,
                Came::Harmless => row.harmless += 1,
                Came::Undetected(how) => {
                    row.undetected += 1;
                    row.first.get_or_insert(format!("{attack}: {how}"));
                }
            }
        }
    }

    /// Inverts each bit of a line of each region, and of what lies beside it.
    fn bits(&mut self) {
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
    fn pairs_of_places(&mut self) {
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
    fn pairs_of_regions(&mut self) {
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
    fn replays(&mut self) {
        let last = self.last();
        let now = Now::at_rest(&last);
        let mut attacks = Vec::new();
        for (_, places) in &last.known {
            let mut some = vec![
                places[0],
                places[places.len() / 2],
                places[places.len() - 1],
            ];
            some.dedup();
            for place in some {
                for old in &self.generations[..self.generations.len() - 1] {
                    self.parts_of(place, &now, old, &mut attacks);
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
        let put_line = |changes: &mut Changes| changes.put(place, old.lines.get(&place).copied());
        let put_mac = |changes: &mut Changes| {
            if let Some((at, number)) = self.kept.kept_of(place) {
                changes.put_word(at, number, word_of(old.lines.get(&at), number));
            }
        };
        for (line, mac) in [(true, true), (true, false), (false, true), (false, false)] {
            // Nodes up to any level, from any level on.
            for from in 0..=levels.len() {
                for to in from..=levels.len() {
                    let mut changes = Changes::new(now);
                    if line {
                        put_line(&mut changes);
                    }
                    if mac {
                        put_mac(&mut changes);
                    }
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
        let less = newer.wrapping_sub(older);
        let balances = fields_beside(&*self.kept, place).into_iter().map(Some);
        for field in std::iter::once(None).chain(balances) {
            let mut changes = Changes::new(now);
            put_line(&mut changes);
            put_mac(&mut changes);
            changes.put_bits(node, &bits, older);
            if let Some(field) = &field {
                let more = value(now.get(node), field).wrapping_add(less);
                changes.put_bits(node, field, more);
            }
            let with = field.map_or(String::new(), |bits| {
                format!(", and bits {bits:?} are so much greater")
            });
            attacks.push((
                format!("{name}, its MAC and its version are as they were{with}"),
                changes.done(),
            ));
        }
    }

    /// Changes a line by the difference of others, and its MAC by that of theirs: of one line at two times, of two lines
    /// at one time, and of two lines at two times, in which all that does not hang on the content is there twice.
    fn differences(&mut self) {
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

    /// Puts back a line and its MAC when 1, 2, 4 .. writes of it have followed, so that numbers of few bits come round.
    fn later_versions(&mut self) {
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
            let writes = times.map(|time| (line, content(line, time + 1)));
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

    /// The place of `line`, if it lies at its own.
    fn home_of(&self, line: u64) -> Option<Place> {
        let placement = (self.stack.mapping.placement)(&self.settings, &self.layout);
        matches!(placement, Placement::Home).then_some(Place(line))
    }
}
