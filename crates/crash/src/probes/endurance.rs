//! A life longer than any run: what counts operations comes further there than in a run's thousands.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sardonyx_base::random::mix;

use super::life::UntimedLife;
use super::{Crowded, Looked, content};
use crate::history::History;
use crate::pads::{self, Held};
use crate::words::numbers;
use sardonyx::controller::layers::Guarantee;
use sardonyx::controller::logging::fwb;
use sardonyx::controller::mapping::places::least_lines;
use sardonyx::controller::{Controller, Write};
use sardonyx::line::{Line, Logical, Persist, Place};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::near;
use sardonyx::plan::At;
use sardonyx::settings::Settings;

/// The lines of its medium, which is full. One write in so many is of another line than the first, whose counter or
/// version so comes furthest.
const LINES: u64 = 64;
const OTHERS: u64 = 8;
/// Writes of a transaction, if a hardware log is told of them. Cores take turns.
const TRANSACTION: u64 = 5;
const CORES: u64 = 2;
/// Nothing is timed, so a circular log is walked only at the end of a part. It has room for the transactions of so many
/// writes before that.
const CIRCULAR: u64 = 5_000;
/// Fresh controllers read all lines after each of so many parts of it; the life itself goes on. What a part did is
/// remembered to its end, so none is longer than this.
const PARTS: u64 = 8;
const LONGEST_PART: u64 = 20_000;

struct Endurance<'h> {
    history: &'h History,
    settings: Settings,
    lines: u64,
    part: u64,
    life: UntimedLife,
    held: BTreeMap<Logical, Line>,
    /// The core of the transaction under way, and the lines that it has changed, as they were before.
    under_way: Option<(u32, BTreeMap<Logical, Line>)>,
    transactions: u64,
    encrypted: Held,
    /// The first word of each content, by its place and by that of its pad.
    covered: FxHashMap<(Place, u64), u64>,
}

impl History {
    /// Makes so many writes under one controller, most of them of one line, and reads lines in between. After each part
    /// of them fresh controllers read all lines after a power cut, which may fall into a transaction, and after an
    /// orderly end. Returns what is wrong, if anything is, with the number of writes by then.
    pub fn endured(&self, writes: u64, looked: &Looked) -> Option<(Crowded, u64)> {
        let settings = self.with_room();
        let lines = least_lines(LINES, &settings);
        let mut layout = Layout::new(lines);
        let controller = self.stack.build(&settings, &mut layout);
        let mut endurance = Endurance {
            history: self,
            encrypted: Held::from_stack(&layout, &self.stack, &settings),
            covered: FxHashMap::default(),
            settings,
            lines,
            life: UntimedLife::recovered(controller, Image::sparse()),
            held: BTreeMap::new(),
            under_way: None,
            transactions: 0,
            part: (writes / PARTS).clamp(1, LONGEST_PART),
        };
        (0..writes).find_map(|number| {
            let wrong = endurance.write(number);
            looked.endured.update(|all| all + 1);
            let ends = (number + 1).is_multiple_of(endurance.part);
            let stop = |endurance: &mut Endurance| endurance.stop(looked.drains_caches);
            let wrong = wrong.or_else(|| ends.then(|| stop(&mut endurance))?);
            Some((wrong?, number + 1))
        })
    }
}

impl Endurance<'_> {
    fn write(&mut self, number: u64) -> Option<Crowded> {
        let dice = mix(number ^ mix(self.history.seed));
        let line = Logical(match number {
            0..LINES => number,
            _ if dice.is_multiple_of(OTHERS) => dice >> 8 & (LINES - 1),
            _ => 0,
        });
        let shared = self.history.finds_duplicates() && dice >> 32 & 3 == 0;
        let data = content(0, if shared { dice >> 40 & 7 } else { 8 + number });
        if number >= LINES && number.is_multiple_of(TRANSACTION) {
            self.commit();
            self.begin(number);
        }
        let old = self.held.insert(line, data);
        if let (Some((core, before)), Some(old)) = (&mut self.under_way, old)
            && !before.contains_key(&line)
        {
            before.insert(line, old);
            self.life.log(*core, line, &old);
        }
        self.life.handle(Write {
            order: Persist::CounterAtomic, // whoever commits has seen to it
            ..Write::new(line, At::past(&data))
        });
        let read = Logical(dice >> 16 & (LINES - 1));
        let held = self.held.get(&read).filter(|_| dice >> 48 & 15 == 0);
        let misread = held.is_some_and(|data| self.life.read(read) != Some(*data));
        misread
            .then_some(Crowded::Misread(read))
            .or_else(|| self.full())
    }

    /// Begins a transaction, if a log has room for it. Logs of designs whose reserve power dumps past an integrity are
    /// left out, as everywhere without a clock.
    fn begin(&mut self, number: u64) {
        let stack = &self.history.stack;
        let is_circular = stack.uses(fwb::LINES.name());
        let has_room = !is_circular || self.part - number % self.part <= CIRCULAR;
        if stack.keeps_log() && stack.integrity.power_fail.is_none() && has_room {
            let core = (self.transactions % CORES) as u32;
            self.transactions += 1;
            self.life.begin(core, self.transactions);
            self.under_way = Some((core, BTreeMap::new()));
        }
    }

    fn commit(&mut self) {
        if let Some((core, _)) = self.under_way.take() {
            self.life
                .ask(|controller, plan| controller.commit(core, plan));
        }
    }

    fn full(&self) -> Option<Crowded> {
        self.life.fits().err().map(Crowded::Full)
    }

    /// Has fresh controllers read all lines as a power cut now leaves them, and then as an orderly end does.
    fn stop(&mut self, drains_caches: bool) -> Option<Crowded> {
        if self.may_cut() {
            let untimed = &self.life.untimed;
            let mut left = self.recovered(match drains_caches {
                true => untimed.drained(|_| true),
                false => untimed.left(),
            });
            left.ask(Controller::undo);
            let mut held = self.held.clone();
            held.extend(self.under_way.iter().flat_map(|(_, old)| old));
            if let Some(line) = left.misread(&held) {
                return Some(Crowded::Misread(line));
            }
        }
        self.commit();
        self.life.flush();
        if let Some(wrong) = self.full().or_else(|| self.given_away()) {
            return Some(wrong);
        }
        self.life.untimed.settle();
        let image = self.life.untimed.image().copy();
        self.recovered(image)
            .misread(&self.held)
            .map(Crowded::Misread)
    }

    /// The place of a pad that covers two contents, of which one is of this part. Words that keep their ciphertext are not
    /// looked at.
    fn given_away(&mut self) -> Option<Crowded> {
        let written = pads::written(&self.life.untimed, 0, &self.encrypted).into_iter();
        let mut all =
            written.filter(|one| one.keeps.is_none() && one.carries(0) && one.pad[0] != 0);
        let again = all.find(|one| {
            let content = numbers(&one.plain)[0];
            let before = self.covered.insert((one.place, one.pad[0]), content);
            before.is_some_and(|before| before != content)
        });
        again.map(|one| Crowded::Padded(one.place))
    }

    fn recovered(&self, image: Image) -> UntimedLife {
        let layout = &mut Layout::new(self.lines);
        UntimedLife::recovered(self.history.stack.build(&self.settings, layout), image)
    }

    /// Whether a cut may be made here: logic that is not called gives the lines that it leaves their MACs, and a near
    /// cache keeps lines that nobody flushes.
    fn may_cut(&self) -> bool {
        let History { stack, machine, .. } = self.history;
        stack.integrity.power_fail.is_none()
            && self.history.guarantee != Guarantee::Nothing
            && near::settings(&machine.settings).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted;
    use sardonyx::config::Machine;
    use sardonyx::controller::designs::Stack;
    use sardonyx_workload::{DurabilityKind, ProgramSpec};

    fn endured(design: &str, drains_caches: bool) -> Option<(Crowded, u64)> {
        planted::know();
        let spec = ProgramSpec {
            name: "queue".into(),
            item_bytes: 64,
            footprint: 4096,
            transactions: 2,
            seed: 1,
            durability: DurabilityKind::on(&Stack::named(design).expect("a design")),
            ..ProgramSpec::default()
        };
        let machine = Machine::load::<&str, &str>("sca", &[]).expect("a machine");
        let history = History::record(&machine, design, &[spec], 1).expect("a run");
        let looked = Looked {
            drains_caches,
            ..Looked::default()
        };
        history.endured(80_000, &looked)
    }

    /// Each of these layers does what is right for longer than any run is.
    #[test]
    fn what_goes_wrong_late_is_found_after_that_and_nothing_is_without_it() {
        let all = [
            ("sca", "policy-late-write-dropped", 1 << 16),
            ("fwb", "log-late-entry-dropped", 1_900),
            ("esd-sound", "mapping-late-write-dropped", 1 << 16),
            ("hw-log", "log-late-entry-dropped", 1_900),
            ("sca@bonsai", "policy-late-write-dropped", 1 << 16),
        ];
        for (number, (sound, fault, first)) in
            sardonyx_property::some(&all, 2).into_iter().enumerate()
        {
            assert!(endured(sound, number % 2 == 1).is_none(), "{sound}");
            let wrong = endured(&format!("{sound}!{fault}"), false);
            assert!(wrong.is_some_and(|(_, at)| at > first), "{sound}");
        }
    }
}
