//! A layer whose methods are Python's. Each call lends it the plan and the layer below, and takes them back. An error
//! ends the run: the first is kept with its line, and the caller of the run reports it.

use std::sync::PoisonError;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sardonyx::controller::{self, Class, Encryption, Layer, Storey};
use sardonyx::exhausted::Exhausted;
use sardonyx::figures::{Amount, Figures};
use sardonyx::line::{Logical, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::guard::Guard;
use sardonyx::plan::{self, At, Fetched, Written};
use sardonyx::settings::Settings;

use super::declared::Declared;
use super::failed;
use super::parts::Memory;
use super::plan::{Plan, Step, Stored, Write, line};
use crate::bad;

/// Ends the run; the error itself is kept elsewhere.
const ENDED: Exhausted = Exhausted {
    problem: "a layer in Python has raised an error",
    remedy: "correct it",
    key: None,
};

/// Builds the arguments of a method, of which one is the plan; only the plan if none are named.
macro_rules! given {
    (|$plan:ident|) => {
        given!(|$plan| $plan)
    };
    (|$plan:ident| $($argument:expr),+) => {
        |py: Python<'_>, $plan: Py<Plan>| -> PyResult<Py<PyTuple>> {
            Ok(($($argument,)+).into_pyobject(py)?.unbind())
        }
    };
}

struct Own {
    declared: &'static Declared,
    /// `None` if no object could be made of the class.
    object: Option<Py<PyAny>>,
    plan: Py<Plan>,
    below: Option<Encryption>,
}

impl Own {
    fn build(
        declared: &'static Declared,
        settings: &Settings,
        below: Option<Encryption>,
        layout: &mut Layout,
    ) -> Own {
        Python::attach(|py| {
            let plan = Py::new(py, Plan::new(declared.mechanisms)).expect("memory for a plan");
            let memory = Py::new(py, Memory::new(settings, layout)).expect("memory for a builder");
            let class = declared.class(py);
            let made = class.call1(py, (memory.clone_ref(py),));
            *layout = memory.get().take_layout();
            let counted = *memory
                .get()
                .counted
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *declared
                .counted
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = counted;
            let object = made.map_err(|error| failed(py, declared.name, &error)).ok();
            Own {
                declared,
                object,
                plan,
                below,
            }
        })
    }

    /// Calls a method, if the class has it; `None` if it has not, or if it has raised an error.
    fn ask<T>(
        &mut self,
        method: &str,
        plan: &mut plan::Plan,
        arguments: impl FnOnce(Python<'_>, Py<Plan>) -> PyResult<Py<PyTuple>>,
        answer: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let Some(object) = &self.object else {
            plan.fail(ENDED);
            return None;
        };
        Python::attach(|py| {
            let object = object.bind(py);
            let Ok(method) = object.getattr(method) else {
                return None;
            };
            self.plan.get().exchange(plan, &mut self.below);
            let given = arguments(py, self.plan.clone_ref(py));
            let said = given.and_then(|given| method.call1(given.into_bound(py)));
            self.plan.get().exchange(plan, &mut self.below);
            let said = said
                .and_then(|said| answer(&said).map_err(|error| wrong(py, &method, &said, &error)));
            said.map_err(|error| {
                failed(py, self.declared.name, &error);
                plan.fail(ENDED);
            })
            .ok()
        })
    }

    fn flush(&mut self, plan: &mut plan::Plan) {
        self.ask("flush", plan, given!(|plan|), |_| Ok(()));
    }

    fn recover(&mut self, plan: &mut plan::Plan) {
        self.ask("recover", plan, given!(|plan|), |_| Ok(()));
    }

    fn forget(&self) {
        let Some(object) = &self.object else { return };
        Python::attach(|py| {
            if let Ok(method) = object.bind(py).getattr("forget")
                && let Err(error) = method.call0()
            {
                failed(py, self.declared.name, &error);
            }
        });
    }

    fn figures(&self, out: &mut Figures) {
        let Some(object) = &self.object else { return };
        Python::attach(|py| {
            let Ok(method) = object.bind(py).getattr("figures") else {
                return;
            };
            let told = method.call0().and_then(|said| self.told(&said, out));
            if let Err(error) = told {
                failed(py, self.declared.name, &error);
            }
        });
    }

    fn told(&self, said: &Bound<'_, PyAny>, out: &mut Figures) -> PyResult<()> {
        for (name, value) in said.cast::<PyDict>()?.iter() {
            let name: String = name.extract()?;
            let figure = self.declared.figures.iter().find(|one| one.name == name);
            let figure = figure.ok_or_else(|| {
                bad(format!(
                    "figures: {name} is not declared; add it to the class's figures"
                ))
            })?;
            let value = match value.extract::<(u64, u64)>() {
                Ok((part, of)) => Amount::Part { of, part },
                Err(_) => Amount::Real(value.extract()?),
            };
            out.put(figure, value);
        }
        Ok(())
    }
}

/// The error for a method's result that cannot be used.
fn wrong(
    py: Python<'_>,
    method: &Bound<'_, PyAny>,
    said: &Bound<'_, PyAny>,
    error: &PyErr,
) -> PyErr {
    let code = method
        .getattr("__func__")
        .and_then(|of| of.getattr("__code__"));
    let place = code.and_then(|code| {
        let (file, line) = (
            code.getattr("co_filename")?,
            code.getattr("co_firstlineno")?,
        );
        Ok(format!("{file}:{line}: "))
    });
    let name = method
        .getattr("__name__")
        .map_or_else(|_| "a method".into(), |name| name.to_string());
    let given = said
        .repr()
        .map_or_else(|_| "that".into(), |said| said.to_string());
    let given: String = given.chars().take(80).collect();
    let why = super::said(py, error);
    let place = place.unwrap_or_default();
    bad(format!("{place}{name} returns {given}: {why}"))
}

fn stored(said: &Bound<'_, PyAny>) -> PyResult<plan::Stored> {
    let stored = said.cast::<Stored>();
    let stored =
        stored.map_err(|_| bad("a Stored is asked for, as plan.write and below.write give it"))?;
    Ok(stored.get().0)
}

fn got(said: &Bound<'_, PyAny>) -> PyResult<Fetched> {
    let pair =
        || bad("a pair is asked for, of 64 bytes or None and the step after which they exist");
    let (bytes, at): (Bound<'_, PyAny>, Bound<'_, PyAny>) = said.extract().map_err(|_| pair())?;
    let at = at.cast::<Step>().map_err(|_| pair())?.get().0;
    let value = match bytes.is_none() {
        true => None,
        false => Some(line(bytes.extract::<&[u8]>().map_err(|_| pair())?)?),
    };
    Ok(At::new(value, at))
}

/// The number of a line, whichever kind.
trait LineNumber: Copy {
    fn number(self) -> u64;
}

impl LineNumber for Logical {
    fn number(self) -> u64 {
        self.0
    }
}

impl LineNumber for Place {
    fn number(self) -> u64 {
        self.0
    }
}

impl Own {
    fn read(
        &mut self,
        a: impl LineNumber,
        class: Class,
        after: plan::Step,
        plan: &mut plan::Plan,
    ) -> Fetched {
        let is_log = class == Class::Log;
        let given = given!(|plan| a.number(), Step(after), plan, is_log);
        let answer = self.ask("read", plan, given, got);
        answer.unwrap_or(At::past(None))
    }

    fn write<A: LineNumber>(
        &mut self,
        write: controller::Write<'_, A>,
        plan: &mut plan::Plan,
    ) -> plan::Stored {
        let write = Write::of(write.at.number(), write.to(()));
        let answer = self.ask("write", plan, given!(|plan| write, plan), stored);
        answer.unwrap_or(plan::Stored::at(plan::Step::PAST))
    }

    fn persist(
        &mut self,
        a: impl LineNumber,
        after: plan::Step,
        plan: &mut plan::Plan,
    ) -> plan::Stored {
        let given = given!(|plan| a.number(), Step(after), plan);
        let answer = self.ask("persist", plan, given, stored);
        answer.unwrap_or(plan::Stored::at(after))
    }

    fn discard(&mut self, a: impl LineNumber, data: plan::Step, plan: &mut plan::Plan) {
        let given = given!(|plan| a.number(), Step(data), plan);
        self.ask("discard", plan, given, |_| Ok(()));
    }
}

macro_rules! storey {
    ($name:ty) => {
        impl Storey for $name {
            fn below(&self) -> Option<&dyn Storey> {
                self.0.below.as_ref().map(|below| &**below as &dyn Storey)
            }

            fn below_mut(&mut self) -> Option<&mut dyn Storey> {
                self.0
                    .below
                    .as_mut()
                    .map(|below| &mut **below as &mut dyn Storey)
            }

            fn flush(&mut self, plan: &mut plan::Plan) {
                self.0.flush(plan);
            }

            fn recover(&mut self, plan: &mut plan::Plan) {
                self.0.recover(plan);
            }

            fn forget_figures(&mut self) {
                self.0.forget();
            }

            fn figures(&self, out: &mut Figures) {
                self.0.figures(out);
            }
        }
    };
}

macro_rules! layers {
    ($($name:ident $addr:ty, $about:literal;)*) => {
        $(#[doc = $about]
        pub struct $name(Own);

        storey!($name);

        impl Layer for $name {
            type Addr = $addr;

            fn read(
                &mut self,
                a: $addr,
                class: Class,
                after: plan::Step,
                plan: &mut plan::Plan,
            ) -> Fetched {
                self.0.read(a, class, after, plan)
            }

            fn write(&mut self, write: controller::Write<'_, $addr>, plan: &mut plan::Plan) -> plan::Stored {
                self.0.write(write, plan)
            }

            fn discard_encryption(&mut self, a: $addr, data: plan::Step, plan: &mut plan::Plan) {
                self.0.discard(a, data, plan);
            }

            fn persist_metadata(&mut self, a: $addr, after: plan::Step, plan: &mut plan::Plan) -> plan::Stored {
                self.0.persist(a, after, plan)
            }
        })*
    };
}

layers! {
    OwnMapping Logical, "A mapping, over an encryption.";
    OwnPolicy Place, "An encryption policy, on the medium.";
}

impl OwnMapping {
    pub fn build(
        declared: &'static Declared,
        settings: &Settings,
        below: Encryption,
        layout: &mut Layout,
    ) -> OwnMapping {
        OwnMapping(Own::build(declared, settings, Some(below), layout))
    }
}

impl OwnPolicy {
    pub fn build(
        declared: &'static Declared,
        settings: &Settings,
        layout: &mut Layout,
    ) -> OwnPolicy {
        OwnPolicy(Own::build(declared, settings, None, layout))
    }
}

/// A guard, before the medium.
pub struct OwnGuard(Own);

impl OwnGuard {
    pub fn build(
        declared: &'static Declared,
        settings: &Settings,
        layout: &mut Layout,
    ) -> OwnGuard {
        OwnGuard(Own::build(declared, settings, None, layout))
    }
}

storey!(OwnGuard);

impl Guard for OwnGuard {
    fn read(
        &mut self,
        place: Place,
        read: Fetched,
        after: plan::Step,
        plan: &mut plan::Plan,
    ) -> Fetched {
        let given = |py: Python<'_>, plan: Py<Plan>| {
            let (bytes, at) = super::plan::timed(py, read);
            let given = (place.0, bytes, at, Step(after), plan);
            Ok(given.into_pyobject(py)?.unbind())
        };
        let answer = self.0.ask("read", plan, given, got);
        answer.unwrap_or(At::past(None))
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut plan::Plan) -> plan::Step {
        let write = Write::of(place.0, controller::Write::new((), written.line));
        let given = given!(|plan| write, written.sideband, Stored(written.stored), plan);
        let answer = self.0.ask("write", plan, given, |said| {
            let step = said.cast::<Step>();
            Ok(step
                .map_err(|_| bad("a Step is asked for: when all of it is in the array"))?
                .get()
                .0)
        });
        answer.unwrap_or(written.stored.done)
    }
}
