//! A wrapper around a right mapping, which does something wrong at a write. With the fault switched off the wrapper only
//! hands on, which is the control.

use std::marker::PhantomData;

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Mapping};
use sardonyx::controller::{Class, Encryption, Figures, Layer, Storey, Top, Write};
use sardonyx::line::{Line, Logical};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::storey::Unfinished;
use sardonyx::plan::{At, Fetched, Plan, Step, Stored, Timer};
use sardonyx::settings::Settings;
use sardonyx::units::Time;

use crate::fault::{Layers, named};

pub type Right = dyn Layer<Addr = Logical>;

pub trait Wrong: Default + Send + 'static {
    const RIGHT: &'static str;

    fn write(&mut self, write: Write<Logical>, right: &mut Right, plan: &mut Plan) -> Stored {
        right.write(write, plan)
    }
}

struct Nothing<W>(PhantomData<W>);

impl<W> Default for Nothing<W> {
    fn default() -> Nothing<W> {
        Nothing(PhantomData)
    }
}

impl<W: Wrong> Wrong for Nothing<W> {
    const RIGHT: &'static str = W::RIGHT;
}

struct Around<W: Wrong> {
    wrong: W,
    right: Box<Right>,
}

impl<W: Wrong> Storey for Around<W> {
    fn below(&self) -> Option<&dyn Storey> {
        self.right.below()
    }

    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        self.right.below_mut()
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.right.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.right.recover(plan);
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        self.right.undo(plan)
    }

    fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        self.right.unfinished(plan)
    }

    fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        self.right.begin(core, transaction, plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        self.right.log_old(core, line, old, plan);
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        self.right.commit(core, plan)
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

impl<W: Wrong> Layer for Around<W> {
    type Addr = Logical;

    fn read(&mut self, at: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.right.read(at, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        self.wrong.write(write, &mut *self.right, plan)
    }

    fn discard_encryption(&mut self, at: Logical, data: Step, plan: &mut Plan) {
        self.right.discard_encryption(at, data, plan);
    }

    fn persist_metadata(&mut self, at: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.right.persist_metadata(at, after, plan)
    }

    fn hint(&self, at: Logical, plan: &Plan) {
        self.right.hint(at, plan);
    }
}

fn right(name: &str) -> &'static Mapping {
    let known = designs::mappings().find(|known| known.about.name == name);
    known.expect("a mapping of that name")
}

fn layer<W: Wrong>(name: &'static str) -> AnyLayer {
    fn build<W: Wrong>(settings: &Settings, below: Encryption, layout: &mut Layout) -> Top {
        let right = (right(W::RIGHT).build)(settings, below, layout);
        let wrong = W::default();
        Box::new(Around { wrong, right })
    }
    let right = right(W::RIGHT);
    AnyLayer::Mapping(Box::leak(Box::new(Mapping {
        about: About {
            name,
            ..right.about
        },
        build: build::<W>,
        ..*right
    })))
}

pub fn mapping<W: Wrong>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<W>(name),
        right: layer::<Nothing<W>>(named("around", W::RIGHT)),
    }
}
