//! Attacks of which none is drawn: on a few lines in a memory that holds nothing else, after an orderly shutdown. All
//! bits of a line of each region are inverted one by one, all pairs of lines change places, all parts of earlier states
//! come back, and MACs are forged from differences of others. Left out: cuts, the programs, warm caches.

mod lists;

use std::collections::BTreeMap;
use std::rc::Rc;

use sardonyx_base::random::mix;
use serde::Serialize;

use crate::attacker::knowledge::{Contents, Groups, Seen};
use crate::history::machine::fresh;
use crate::options::Attack;
use crate::panics::caught;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::integrity::{VERIFY, Verify};
use sardonyx::controller::layers::{Placement, PowerFail, Refuses};
use sardonyx::controller::{Controller, Write};
use sardonyx::line::{Line, Logical, Place, ZERO_LINE};
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

/// Makes all of them on `stack` under `settings`; no rows without integrity, and one of nothing if the lines cannot be
/// written.
pub fn enumerate(stack: &Stack, settings: &Settings) -> Vec<EnumeratedAttacks> {
    Bench::new(stack, settings).map_or(Vec::new(), Bench::all)
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

/// The line that always gets the same content, where lines lie at their own places.
const CONSTANT: u64 = 1;

fn content(line: u64, time: u64) -> Line {
    let mut content = ZERO_LINE;
    for (word, bytes) in (0..).zip(content.as_chunks_mut::<8>().0) {
        *bytes = mix(mix(line << 16 | time) ^ word).to_le_bytes();
    }
    content
}

impl<'s> Bench<'s> {
    fn new(stack: &'s Stack, settings: &Settings) -> Option<Bench<'s>> {
        stack.integrity.power_fail?;
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
        // One in two of them is at the second place of eight, so that leaves of a tree differ though their sums are equal.
        let lines = (0..bits).map(|bit| 1 << bit | u64::from(bit > 3 && bit % 2 == 0));
        Some(Bench {
            kept: stack.power_fail(&settings, &layout)?,
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

    fn all(mut self) -> Vec<EnumeratedAttacks> {
        if caught(|| self.write_generations()).is_err() || self.generations.is_empty() {
            return vec![EnumeratedAttacks {
                what: "none: the few lines cannot be written".to_owned(),
                ..EnumeratedAttacks::default()
            }];
        }
        self.bits();
        self.words();
        self.pairs_of_places();
        self.pairs_of_regions();
        self.replays();
        self.balanced_nodes();
        self.pairs_of_leaves();
        self.differences();
        self.equal_contents();
        self.bits_of_both();
        self.later_versions();
        self.rows
    }

    fn controller(&self) -> Controller {
        self.stack
            .build(&self.settings, &mut Layout::new(self.data_lines))
    }

    /// Writes each line once, in a life that ends with an orderly shutdown, as often as there are generations.
    fn write_generations(&mut self) {
        for time in 1..=GENERATIONS {
            let lines: Vec<u64> = self.lines.keys().copied().collect();
            let writes = lines
                .into_iter()
                .map(|line| (line, self.content(line, time)));
            if !self.live(&writes.collect::<Vec<_>>()) {
                self.generations.clear();
                return;
            }
            self.generations.push(self.see());
        }
    }

    /// The content that `line` gets the `time`th time. Where equal contents do not share a place, all lines get the same
    /// the first time, and one line always.
    fn content(&self, line: u64, time: u64) -> Line {
        let is_same = time == 1 || line == CONSTANT;
        match is_same && self.home_of(line).is_some() {
            true => content(0, 1),
            false => content(line, time),
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
        let kept = self.stack.power_fail(&self.settings, &self.layout);
        kept.expect("it has one")
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

    /// The place of `line`, if it lies at its own.
    fn home_of(&self, line: u64) -> Option<Place> {
        let placement = (self.stack.mapping.placement)(&self.settings, &self.layout);
        matches!(placement, Placement::Home).then_some(Place(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sardonyx::config::Machine;

    /// What cannot be tried is no green answer.
    #[test]
    fn lines_that_cannot_be_written_leave_a_row_of_nothing() {
        let machine = Machine::load::<&str, &str>("sca", &[]).expect("a machine");
        let stack = Stack::named("esd+sca@mac").expect("a stack");
        let whole = Bench::new(&stack, &machine.settings)
            .expect("an integrity")
            .all();
        assert!(whole.iter().all(|row| row.tried > 0));
        let mut bench = Bench::new(&stack, &machine.settings).expect("an integrity");
        bench.lines.insert(1 << 40, ZERO_LINE); // beyond the memory
        let rows = bench.all();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].tried, 0);
    }
}
