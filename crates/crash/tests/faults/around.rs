//! Wrappers around right layers. Each hands everything on to the layer that it stands around; a fault overrides the one
//! method in which it does something wrong. With the fault switched off the wrapper only hands on, which is the control.

use std::marker::PhantomData;

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Logging, Mapping, Policy};
use sardonyx::controller::{Class, Encryption, Figures, Layer, Storey, Top, Write};
use sardonyx::line::{Line, Logical, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::storey::Unfinished;
use sardonyx::plan::{At, Fetched, Plan, Step, Stored, Timer};
use sardonyx::settings::Settings;
use sardonyx::units::Time;

use crate::fault::{Layers, named};

pub type Right<A> = dyn Layer<Addr = A>;

pub trait Wrong: Default + Send + 'static {
    /// What the layer is asked for: a logical line above a mapping, a place below.
    type Addr: Copy + Send;
    const RIGHT: &'static str;

    fn read(
        &mut self,
        (at, class, after): (Self::Addr, Class, Step),
        right: &mut Right<Self::Addr>,
        plan: &mut Plan,
    ) -> Fetched {
        right.read(at, class, after, plan)
    }

    fn write(
        &mut self,
        write: Write<Self::Addr>,
        right: &mut Right<Self::Addr>,
        plan: &mut Plan,
    ) -> Stored {
        right.write(write, plan)
    }

    fn persist_metadata(
        &mut self,
        (at, after): (Self::Addr, Step),
        right: &mut Right<Self::Addr>,
        plan: &mut Plan,
    ) -> Stored {
        right.persist_metadata(at, after, plan)
    }

    fn flush(&mut self, right: &mut Right<Self::Addr>, plan: &mut Plan) {
        right.flush(plan);
    }

    fn recover(&mut self, right: &mut Right<Self::Addr>, plan: &mut Plan) {
        right.recover(plan);
    }

    fn undo(&mut self, right: &mut Right<Self::Addr>, plan: &mut Plan) -> Vec<Logical> {
        right.undo(plan)
    }

    fn begin(
        &mut self,
        (core, transaction): (u32, u64),
        right: &mut Right<Self::Addr>,
        plan: &mut Plan,
    ) {
        right.begin(core, transaction, plan);
    }

    fn log_old(
        &mut self,
        (core, line, old): (u32, Logical, At<&Line>),
        right: &mut Right<Self::Addr>,
        plan: &mut Plan,
    ) {
        right.log_old(core, line, old, plan);
    }

    fn commit(&mut self, core: u32, right: &mut Right<Self::Addr>, plan: &mut Plan) -> Stored {
        right.commit(core, plan)
    }
}

struct Nothing<W>(PhantomData<W>);

impl<W> Default for Nothing<W> {
    fn default() -> Nothing<W> {
        Nothing(PhantomData)
    }
}

impl<W: Wrong> Wrong for Nothing<W> {
    type Addr = W::Addr;
    const RIGHT: &'static str = W::RIGHT;
}

struct Around<W: Wrong> {
    wrong: W,
    right: Box<Right<W::Addr>>,
}

impl<W: Wrong> Storey for Around<W> {
    fn below(&self) -> Option<&dyn Storey> {
        self.right.below()
    }

    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        self.right.below_mut()
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.wrong.flush(&mut *self.right, plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.wrong.recover(&mut *self.right, plan);
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        self.wrong.undo(&mut *self.right, plan)
    }

    fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        self.right.unfinished(plan)
    }

    fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        self.wrong
            .begin((core, transaction), &mut *self.right, plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        self.wrong
            .log_old((core, line, old), &mut *self.right, plan);
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        self.wrong.commit(core, &mut *self.right, plan)
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
    type Addr = W::Addr;

    fn read(&mut self, at: W::Addr, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.wrong.read((at, class, after), &mut *self.right, plan)
    }

    fn write(&mut self, write: Write<W::Addr>, plan: &mut Plan) -> Stored {
        self.wrong.write(write, &mut *self.right, plan)
    }

    fn discard_encryption(&mut self, at: W::Addr, data: Step, plan: &mut Plan) {
        self.right.discard_encryption(at, data, plan);
    }

    fn persist_metadata(&mut self, at: W::Addr, after: Step, plan: &mut Plan) -> Stored {
        self.wrong
            .persist_metadata((at, after), &mut *self.right, plan)
    }

    fn hint(&self, at: W::Addr, plan: &Plan) {
        self.right.hint(at, plan);
    }
}

fn about(name: &'static str, right: &About) -> About {
    About { name, ..*right }
}

fn right_policy(name: &str) -> &'static Policy {
    let known = designs::policies().find(|known| known.about.name == name);
    known.expect("a policy of that name")
}

fn a_policy<W: Wrong<Addr = Place>>(name: &'static str) -> AnyLayer {
    fn build<W: Wrong<Addr = Place>>(settings: &Settings, layout: &mut Layout) -> Encryption {
        let right = (right_policy(W::RIGHT).build)(settings, layout);
        let wrong = W::default();
        Box::new(Around { wrong, right })
    }
    let right = right_policy(W::RIGHT);
    AnyLayer::Policy(Box::leak(Box::new(Policy {
        about: about(name, &right.about),
        build: build::<W>,
        ..*right
    })))
}

pub fn policy<W: Wrong<Addr = Place>>(name: &'static str) -> Layers {
    Layers {
        wrong: a_policy::<W>(name),
        right: a_policy::<Nothing<W>>(named("around", W::RIGHT)),
    }
}

fn right_mapping(name: &str) -> &'static Mapping {
    let known = designs::mappings().find(|known| known.about.name == name);
    known.expect("a mapping of that name")
}

fn a_mapping<W: Wrong<Addr = Logical>>(name: &'static str) -> AnyLayer {
    fn build<W: Wrong<Addr = Logical>>(
        settings: &Settings,
        below: Encryption,
        layout: &mut Layout,
    ) -> Top {
        let right = (right_mapping(W::RIGHT).build)(settings, below, layout);
        let wrong = W::default();
        Box::new(Around { wrong, right })
    }
    let right = right_mapping(W::RIGHT);
    AnyLayer::Mapping(Box::leak(Box::new(Mapping {
        about: about(name, &right.about),
        build: build::<W>,
        ..*right
    })))
}

pub fn mapping<W: Wrong<Addr = Logical>>(name: &'static str) -> Layers {
    Layers {
        wrong: a_mapping::<W>(name),
        right: a_mapping::<Nothing<W>>(named("around", W::RIGHT)),
    }
}

fn right_logging(name: &str) -> &'static Logging {
    let known = designs::loggings().find(|known| known.about.name == name);
    known.expect("a logging of that name")
}

fn a_logging<W: Wrong<Addr = Logical>>(name: &'static str) -> AnyLayer {
    fn build<W: Wrong<Addr = Logical>>(
        settings: &Settings,
        below: Top,
        layout: &mut Layout,
    ) -> Top {
        let right = (right_logging(W::RIGHT).build)(settings, below, layout);
        let wrong = W::default();
        Box::new(Around { wrong, right })
    }
    let right = right_logging(W::RIGHT);
    AnyLayer::Logging(Box::leak(Box::new(Logging {
        about: about(name, &right.about),
        build: build::<W>,
        ..*right
    })))
}

pub fn logging<W: Wrong<Addr = Logical>>(name: &'static str) -> Layers {
    Layers {
        wrong: a_logging::<W>(name),
        right: a_logging::<Nothing<W>>(named("around", W::RIGHT)),
    }
}
