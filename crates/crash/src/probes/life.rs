//! A controller and its medium between two power cuts, with nothing timed.

use std::collections::BTreeMap;

use crate::probes::Looked;
use sardonyx::controller::{Class, Controller, Write};
use sardonyx::exhausted::Exhausted;
use sardonyx::line::{Line, Logical};
use sardonyx::machine::write_untimed;
use sardonyx::medium::image::Image;
use sardonyx::plan::untimed::Untimed;
use sardonyx::plan::{At, Plan, Step};

pub(super) struct UntimedLife {
    controller: Controller,
    pub untimed: Untimed,
}

impl UntimedLife {
    /// Begins a life whose `controller` has recovered from what is in `image`.
    pub fn recovered(controller: Controller, image: Image) -> UntimedLife {
        UntimedLife::recover(controller, Untimed::new(image))
    }

    fn recover(controller: Controller, untimed: Untimed) -> UntimedLife {
        let mut life = UntimedLife {
            controller,
            untimed,
        };
        life.ask(Controller::recover);
        life
    }

    /// Begins the next life after an orderly end: `controller` has recovered from what this one has settled in the
    /// medium.
    pub fn then(self, controller: Controller) -> UntimedLife {
        UntimedLife::recover(controller, self.untimed)
    }

    /// Begins the life after a power cut now: `controller` has recovered from what it leaves, and undone what was not
    /// committed.
    pub fn cut(&self, controller: Controller) -> UntimedLife {
        let mut life = UntimedLife::recovered(controller, self.untimed.left());
        life.ask(Controller::undo);
        life
    }

    pub fn ask<T>(&mut self, ask: impl FnOnce(&mut Controller, &mut Plan) -> T) -> T {
        self.untimed.plan(|plan| ask(&mut self.controller, plan))
    }

    pub fn handle(&mut self, write: Write<Logical>) {
        write_untimed(&mut self.controller, &mut self.untimed, write);
    }

    pub fn write(&mut self, line: Logical, data: &Line) {
        self.handle(Write::new(line, At::past(data)));
    }

    pub fn begin(&mut self, core: u32, transaction: u64) {
        self.ask(|controller, plan| controller.begin(core, transaction, plan));
    }

    pub fn log(&mut self, core: u32, line: Logical, old: &Line) {
        self.ask(|controller, plan| controller.log_old(core, line, At::past(old), plan));
    }

    pub fn read(&mut self, line: Logical) -> Option<Line> {
        self.ask(|controller, plan| controller.read(line, Class::Data, Step::PAST, plan))
            .value
    }

    pub fn flush(&mut self) {
        self.ask(Controller::flush);
    }

    pub fn fits(&self) -> Result<(), Exhausted> {
        self.untimed.failure().map_or(Ok(()), Err)
    }

    /// The first line that does not read as `held` says.
    pub fn misread(&mut self, held: &BTreeMap<Logical, Line>) -> Option<Logical> {
        let mut wrong = held
            .iter()
            .filter(|(line, data)| self.read(**line) != Some(**data));
        wrong.next().map(|(line, _)| *line)
    }

    /// The first unwritten line of `lines` that reads as something: it shows what lies in its place.
    pub fn written_by_nobody(
        &mut self,
        held: &BTreeMap<Logical, Line>,
        lines: u64,
        looked: &Looked,
    ) -> Option<Logical> {
        let unwritten = (0..lines).map(Logical);
        let mut unwritten = unwritten.filter(|line| !held.contains_key(line));
        unwritten.find(|line| {
            looked.unwritten.update(|all| all + 1);
            self.read(*line).is_some()
        })
    }
}
