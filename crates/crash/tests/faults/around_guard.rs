//! Wrappers around right integrities: around the guard that looks at what is read, and around what reserve power keeps.

use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::ops::Range;

use sardonyx::controller::Figures;
use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Integrity, PowerFail};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::guard::Guard;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::storey::Storey;
use sardonyx::plan::{At, Fetched, Plan, Step, Timer, Written};
use sardonyx::settings::Settings;
use sardonyx::units::Time;

use crate::fault::{Layers, named};

#[derive(Default)]
pub struct Seen {
    regions: Vec<Region>,
    pub written: BTreeSet<Place>,
    rewrites: u64,
}

impl Seen {
    /// The name of the region that `place` is in.
    pub fn region(&self, place: Place) -> &'static str {
        let region = self.regions.iter().find(|region| region.contains(place));
        region.map_or("data", |region| region.name)
    }
}

pub trait Wrong: Send + 'static {
    const RIGHT: &'static str;
    const LATE: usize = 0;
    const DUMPS: bool = true;
    const ON_CHIP: bool = true;
    /// A region that is empty when a recovery looks.
    const FORGETS: &'static str = "";
    /// When data have been written again this many times, the live controller's own register is wrong.
    const REGISTER_HOLDS: u64 = u64::MAX;

    /// Whether a line that was read is believed, whatever the right integrity says.
    fn believes(_seen: &Seen, _place: Place, _line: Option<&Line>) -> bool {
        false
    }

    fn follows(_seen: &Seen, _place: Place) -> bool {
        true
    }
}

struct Nothing<W>(PhantomData<W>);

impl<W: Wrong> Wrong for Nothing<W> {
    const RIGHT: &'static str = W::RIGHT;
}

struct AroundGuard<W> {
    seen: Seen,
    right: Box<dyn Guard>,
    wrong: PhantomData<W>,
}

impl<W: Wrong> Storey for AroundGuard<W> {
    fn flush(&mut self, plan: &mut Plan) {
        self.right.flush(plan);
        let root = self
            .seen
            .regions
            .iter()
            .find(|region| region.name == "integrity-root");
        if let Some(root) = root.filter(|_| self.seen.rewrites > W::REGISTER_HOLDS) {
            let mut line = plan.peek(root.line(0)).unwrap_or(ZERO_LINE);
            line[3] ^= 1;
            plan.write(root.line(0), At::past(&line), Step::PAST);
        }
    }

    fn recover(&mut self, plan: &mut Plan) {
        let regions = self.seen.regions.iter();
        for region in regions.filter(|region| region.name == W::FORGETS) {
            for line in plan.written(region) {
                plan.write(line, At::past(&ZERO_LINE), Step::PAST);
            }
        }
        self.right.recover(plan);
    }

    fn wake(&mut self, timer: Timer, now: Time, plan: &mut Plan) -> bool {
        self.right.wake(timer, now, plan)
    }

    fn forget_figures(&mut self) {
        self.right.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        self.right.figures(out);
    }
}

impl<W: Wrong> Guard for AroundGuard<W> {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        match W::believes(&self.seen, place, got.value.as_ref()) {
            true => got,
            false => self.right.read(place, got, after, plan),
        }
    }

    fn opened(&mut self, place: Place, got: Fetched, counter: At<u64>, plan: &mut Plan) -> Fetched {
        self.right.opened(place, got, counter, plan)
    }

    fn sealed(&mut self, place: Place, counter: u64) {
        self.right.sealed(place, counter);
    }

    fn before_write(&mut self, place: Place, plan: &mut Plan) -> Step {
        self.right.before_write(place, plan)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        let again = !self.seen.written.insert(place) && self.seen.region(place) == "data";
        self.seen.rewrites += u64::from(again);
        self.right.write(place, written, plan)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let line = plan.peek(place);
        W::believes(&self.seen, place, line.as_ref()) || self.right.holds(place, plan)
    }

    fn finish(&mut self, plan: &mut Plan) {
        self.right.finish(plan);
    }
}

struct AroundPower<W> {
    seen: Seen,
    /// Acceptances that registers have not followed yet.
    late: VecDeque<Place>,
    right: Box<dyn PowerFail>,
    wrong: PhantomData<W>,
}

impl<W: Wrong> PowerFail for AroundPower<W> {
    fn begin(&mut self, image: &mut Places) {
        self.right.begin(image);
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        self.late.push_back(place);
        while self.late.len() > W::LATE {
            let place = self.late.pop_front().expect("one more than it may have");
            if W::follows(&self.seen, place) {
                self.right.accepted(place, image);
            }
        }
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        if W::DUMPS {
            self.right.dumped(place, image);
        }
    }

    fn on_chip(&self) -> Option<&Region> {
        self.right.on_chip().filter(|_| W::ON_CHIP)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.right.kept_of(place)
    }

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        self.right.version_of(place)
    }

    fn has_register(&self, place: Place) -> bool {
        self.right.has_register(place)
    }

    fn version_in_mac(&self) -> u64 {
        self.right.version_in_mac()
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        self.right.over(place, level)
    }
}

fn right(name: &str) -> &'static Integrity {
    let known = designs::integrities().find(|known| known.about.name == name);
    known.expect("an integrity of that name")
}

fn seen(layout: &Layout) -> Seen {
    Seen {
        regions: layout.regions().to_vec(),
        ..Seen::default()
    }
}

fn layer<W: Wrong>(name: &'static str) -> AnyLayer {
    fn build<W: Wrong>(settings: &Settings, layout: &mut Layout) -> Option<Box<dyn Guard>> {
        let right = (right(W::RIGHT).build)(settings, layout)?;
        Some(Box::new(AroundGuard::<W> {
            seen: seen(layout),
            right,
            wrong: PhantomData,
        }))
    }
    fn power_fail<W: Wrong>(settings: &Settings, layout: &Layout) -> Box<dyn PowerFail> {
        let make = right(W::RIGHT).power_fail.expect("it keeps something");
        Box::new(AroundPower::<W> {
            seen: seen(layout),
            late: VecDeque::new(),
            right: make(settings, layout),
            wrong: PhantomData,
        })
    }
    let right = right(W::RIGHT);
    AnyLayer::Integrity(Box::leak(Box::new(Integrity {
        about: About {
            name,
            ..right.about
        },
        build: build::<W>,
        power_fail: Some(power_fail::<W>),
        ..*right
    })))
}

pub fn integrity<W: Wrong>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<W>(name),
        right: layer::<Nothing<W>>(named("around", W::RIGHT)),
    }
}
