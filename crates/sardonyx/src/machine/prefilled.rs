//! Memory before a run: an engine, a controller over it, and what lies in the medium already.

use super::RunError;
use crate::config::Machine;
use crate::controller::{Class, Controller, Write, designs};
use crate::engine::Engine;
use crate::line::{Line, Logical};
use crate::medium::image::Image;
use crate::medium::layout::Layout;
use crate::plan::{At, Plan, Step};

/// Prefilled memory.
pub struct Prefilled {
    pub(super) engine: Engine,
    pub(super) controller: Controller,
    /// The design's name.
    pub(super) design: String,
}

impl Prefilled {
    /// An empty medium under a fresh controller.
    ///
    /// # Errors
    /// There is no such design.
    pub fn new(machine: &Machine, design: &str) -> Result<Prefilled, RunError> {
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        Ok(Prefilled {
            engine: Engine::new(&machine.engine),
            controller: designs::build(design, &machine.settings, &mut layout)?,
            design: design.to_owned(),
        })
    }

    /// What a power cut left, as `image`, under a fresh `controller` that recovers from it in time; a
    /// journal is kept from then on, and some writes are held back, as `delays` draws.
    pub fn recovering(
        machine: &Machine,
        design: &str,
        mut controller: Controller,
        image: Image,
        delays: u64,
    ) -> Prefilled {
        let mut engine = Engine::with_image(&machine.engine, image);
        engine.keep_journal();
        engine.hold_back(delays);
        engine.background(|plan| {
            controller.recover(plan);
            controller.undo(plan);
        });
        Prefilled {
            engine,
            controller,
            design: design.to_owned(),
        }
    }

    /// Has the controller write `data` to `line`, at no time and no cost.
    pub fn write(&mut self, line: Logical, data: &Line) {
        let controller = &mut self.controller;
        self.engine
            .at_once(|plan| controller.write(Write::new(line, At::past(data)), plan));
    }

    /// What the controller reads at `line`, at no time and no cost; `None` if it was never written.
    pub fn read(&mut self, line: Logical) -> Option<Line> {
        let controller = &mut self.controller;
        let read = |plan: &mut Plan| controller.read(line, Class::Data, Step::PAST, plan).value;
        self.engine.at_once(read)
    }

    /// Everything is in the medium, and nothing has been counted.
    pub fn settle(&mut self) {
        let controller = &mut self.controller;
        self.engine.at_once(|plan| controller.flush(plan));
        self.engine.forget_figures();
        self.controller.forget_figures();
    }

    /// The engine, to keep a log or a journal of what follows.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }
}
