//! A bench for the layers' own tests: plans over a step ring and an image, without an engine.
//! Nothing ever finishes, so every dependency is kept, and the newest bytes lie in the overlay.
//! Left out: time.

use super::designs;
use super::{Class, Controller, Persist, Write};
use crate::exhausted::Exhausted;
use crate::line::{Line, Logical, Place};
use crate::medium::image::Image;
use crate::medium::layout::Layout;
use crate::plan::Group;
use crate::plan::contents::Contents;
use crate::plan::steps::Steps;
use crate::plan::{At, Plan, Step, Timers};
use crate::settings::Settings;
use crate::stats::{Cause, Purpose};
use crate::units::Time;

/// What a plan writes to.
pub struct Bench {
    steps: Steps,
    contents: Contents,
    groups: Vec<Group>,
    timers: Timers,
    failure: Option<Exhausted>,
}

impl Bench {
    pub fn new() -> Bench {
        Bench {
            steps: Steps::new(),
            contents: Contents::new(Image::new(), true),
            groups: Vec::new(),
            timers: Timers::default(),
            failure: None,
        }
    }

    pub fn plan(&mut self) -> Plan<'_> {
        Plan {
            steps: &mut self.steps,
            contents: &mut self.contents,
            groups: &mut self.groups,
            timers: &mut self.timers,
            failure: &mut self.failure,
            journal: None,
            now: Time::ZERO,
            purpose: Purpose::of(Cause::Data),
        }
    }

    pub fn newest(&self, place: Place) -> Option<Line> {
        self.contents.newest(place)
    }
}

/// A design over a bench.
pub struct Rig {
    pub bench: Bench,
    pub layout: Layout,
    pub controller: Controller,
    name: &'static str,
    settings: Settings,
}

impl Rig {
    pub fn new(name: &'static str, settings: &Settings, lines: u64) -> Rig {
        let mut layout = Layout::new(lines);
        Rig {
            controller: designs::build(name, settings, &mut layout).unwrap(),
            bench: Bench::new(),
            layout,
            name,
            settings: settings.clone(),
        }
    }

    pub fn write(&mut self, line: u64, data: &Line) {
        self.write_as(line, data, Class::Data, Persist::Relaxed);
    }

    pub fn write_as(&mut self, line: u64, data: &Line, class: Class, order: Persist) {
        let write = Write {
            class,
            order,
            ..Write::new(Logical(line), At::past(data))
        };
        let stored = self.controller.write(write, &mut self.bench.plan());
        assert!(stored.accepted != Step::PAST && stored.done >= stored.accepted);
    }

    pub fn read(&mut self, line: u64) -> Option<Line> {
        let mut plan = self.bench.plan();
        let line = Logical(line);
        let read = self
            .controller
            .read(line, Class::Data, Step::PAST, &mut plan);
        assert!(read.at != Step::PAST);
        read.value
    }

    pub fn figure(&self, name: &str) -> f64 {
        let figures = self.controller.figures();
        let found = figures.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no figure {name}")).1
    }

    /// Flushes, throws the controller away and builds another from the bytes.
    pub fn restart(&mut self) {
        self.controller.flush(&mut self.bench.plan());
        let mut layout = Layout::new(self.layout.data_lines());
        let mut plan = self.bench.plan();
        self.controller =
            designs::recover(self.name, &self.settings, &mut layout, &mut plan).unwrap();
        assert_eq!(layout.regions(), self.layout.regions());
    }
}
