//! For the layers' own tests: a design over a plan without an engine.
//! Nothing ever finishes, so every dependency is kept, and the newest bytes lie in the overlay.
//! Left out: time.

use super::designs::{self, Stack};
use super::{Class, Controller, Persist, Write};
use crate::line::{Line, Logical};
use crate::medium::image::Image;
use crate::medium::layout::Layout;
use crate::plan::{At, Plan, Step};
use crate::settings::Settings;

/// A design and its plans.
pub struct Rig {
    pub plan: Plan,
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
            plan: Plan::new(Image::new(), true),
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
        let stored = self.controller.write(write, &mut self.plan);
        assert!(stored.accepted != Step::PAST && stored.done >= stored.accepted);
    }

    pub fn read(&mut self, line: u64) -> Option<Line> {
        let line = Logical(line);
        let read = self
            .controller
            .read(line, Class::Data, Step::PAST, &mut self.plan);
        assert!(read.at != Step::PAST);
        read.value
    }

    pub fn figure(&self, name: &str) -> f64 {
        let figure = self.controller.figures().named(name).number();
        figure.unwrap_or_else(|| panic!("no figure {name}"))
    }

    /// Flushes, throws the controller away and builds another from the bytes.
    pub fn restart(&mut self) {
        self.controller.flush(&mut self.plan);
        let log = (Stack::named(self.name).unwrap().logging.lines)(&self.settings);
        let mut layout = Layout::new(self.layout.data_lines() - log);
        self.controller =
            designs::recover(self.name, &self.settings, &mut layout, &mut self.plan).unwrap();
        assert_eq!(layout.regions(), self.layout.regions());
    }
}
