//! The live controller against what a cut is said to leave: what reserve power drains, and the register that an
//! attacker does not reach. Nothing is timed, so nothing is on its way when the history's requests are cut short.

use std::collections::BTreeMap;

use super::life::UntimedLife;
use crate::history::History;
use sardonyx::controller::Write;
use sardonyx::line::{Line, Logical, Place, ZERO_LINE};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::near;
use sardonyx::plan::At;
use sardonyx::plan::start_gap::Places;

/// The history's requests are handled once more, up to each of so many points between the first and this one.
const POINTS: usize = 8;
const MOST_REQUESTS: usize = 720;

impl History {
    /// A controller that has handled the first `count` requests and nothing else, and what lines hold then. A hardware
    /// log is told nothing, so it keeps nothing.
    fn handled(&self, count: usize) -> (UntimedLife, BTreeMap<Logical, Line>) {
        let controller = (self.stack).build(&self.small, &mut Layout::new(self.data_lines()));
        let mut life = UntimedLife::recovered(controller, Image::new());
        let mut held = BTreeMap::new();
        for handled in &self.journal.handled[..count] {
            held.insert(handled.line, handled.data);
            life.handle(Write {
                class: handled.class,
                order: handled.persist,
                ..Write::new(handled.line, At::past(&handled.data))
            });
        }
        (life, held)
    }

    fn points(&self) -> impl Iterator<Item = usize> + use<> {
        let most = self.journal.handled.len().min(MOST_REQUESTS);
        (1..=POINTS).map(move |point| most * point / POINTS)
    }

    /// The first line that reads otherwise than last written when reserve power has drained all that the design says it
    /// drains after some requests, and their number. Nothing for a medium that levels wear or may be full, or under an
    /// integrity, whose part in it is another's.
    pub fn undrained(&self) -> Option<(Logical, usize)> {
        self.undrained_but(&|_| true)
    }

    fn undrained_but(&self, drains: &dyn Fn(Place) -> bool) -> Option<(Logical, usize)> {
        let has_near = near::settings(&self.machine.settings).is_some();
        let is_plain = self.levelling().is_none() && !self.may_fill() && !has_near;
        if !is_plain || self.stack.integrity.power_fail.is_some() {
            return None;
        }
        self.points().find_map(|count| {
            let (life, held) = self.handled(count);
            life.fits().ok()?;
            let controller = (self.stack).build(&self.small, &mut Layout::new(self.data_lines()));
            let mut left = UntimedLife::recovered(controller, life.untimed.drained(drains));
            Some((left.misread(&held)?, count))
        })
    }

    /// The line of the integrity's register that differs between the live controller, which is shut down in order, and
    /// what follows from the medium by then; with the number of requests before that.
    pub fn register_differs(&self) -> Option<(Place, usize)> {
        let on_chip = self.power_fail()?.on_chip()?.clone();
        if self.levelling().is_some() || self.may_fill() {
            return None;
        }
        self.points().find_map(|count| {
            let (mut life, _) = self.handled(count);
            life.flush();
            life.fits().ok()?;
            life.untimed.settle();
            let mut image = life.untimed.into_image();
            image.lose_near();
            let read = |image: &Image| -> Vec<Line> {
                let lines = (0..on_chip.lines).map(|line| on_chip.line(line));
                lines
                    .map(|at| image.read(at).unwrap_or(ZERO_LINE))
                    .collect()
            };
            let own = read(&image);
            let mut kept = self.power_fail()?;
            let written: Vec<Place> = image.written_lines().map(|(place, _)| place).collect();
            let places = &mut Places::new(&mut image, None);
            kept.begin(places);
            // It writes the register when it hears of a line.
            written
                .iter()
                .for_each(|place| kept.accepted(*place, places));
            let follows = read(&image);
            let differs = own
                .iter()
                .zip(&follows)
                .position(|(own, follows)| own != follows)?;
            Some((on_chip.line(differs as u64), count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sardonyx::config::Machine;
    use sardonyx_workload::{DurabilityKind, ProgramSpec};

    /// A single line of a cache that reserve power leaves out is noticed, wherever it lies, and nothing is without it.
    #[test]
    fn a_single_line_that_is_not_drained_is_noticed() {
        for (design, region) in [
            ("sca", "counters"),
            ("esd", "mapping"),
            ("dewrite", "mapping"),
        ] {
            let spec = ProgramSpec {
                name: "btree".into(),
                item_bytes: 64,
                footprint: 4096,
                transactions: 12,
                seed: 1,
                durability: DurabilityKind::default(),
                ..ProgramSpec::default()
            };
            let machine = Machine::load::<&str, &str>("sca", &[]).expect("a machine");
            let history = History::record(&machine, design, &[spec], 1).expect("a run");
            assert_eq!(history.undrained(), None, "{design}");
            let layout = history.layout();
            let tables = layout
                .regions()
                .iter()
                .filter(|table| table.name.starts_with(region));
            let tables: Vec<_> = tables.collect();
            assert!(!tables.is_empty(), "{design}");
            let lines = history
                .handled(history.journal.handled.len().min(MOST_REQUESTS))
                .0;
            let on_chip = lines.untimed.asked().changes().into_iter();
            let mut places: Vec<Place> = on_chip.map(|change| change.write.place).collect();
            places.sort_unstable();
            places.dedup();
            places.retain(|place| tables.iter().any(|table| table.contains(*place)));
            let missed = places
                .iter()
                .filter(|place| history.undrained_but(&|at| at != **place).is_none());
            let missed: Vec<&Place> = missed.collect();
            assert!(
                places.len() > 1 && missed.len() * 4 <= places.len(),
                "{design}: {missed:?} of {places:?}"
            );
        }
    }
}
