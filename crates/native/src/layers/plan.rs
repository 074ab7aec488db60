//! The means by which a layer in Python plans: steps, the plan of the request at hand, and the layer below.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sardonyx::controller::{self, Class, Encryption, Persist};
use sardonyx::exhausted::Exhausted;
use sardonyx::line::{LINE_BYTES, Line, Place};
use sardonyx::mechanisms::Mechanism;
use sardonyx::medium::params::Unit;
use sardonyx::plan::{self, At, Fetched, Queue};
use sardonyx::stats::{Cause, Purpose};

use super::intern;
use super::parts::Table;
use crate::bad;

/// A value of a line and the step at which it exists, as Python has it: bytes, or `None` if the line was never written.
pub type Timed<'py> = (Option<Bound<'py, PyBytes>>, Step);

pub fn timed(py: Python<'_>, got: Fetched) -> Timed<'_> {
    (got.value.map(|line| PyBytes::new(py, &line)), Step(got.at))
}

pub fn line(bytes: &[u8]) -> PyResult<Line> {
    bytes.try_into().map_err(|_| {
        bad(format!(
            "{} bytes where a line has {LINE_BYTES}: give bytes of that length",
            bytes.len()
        ))
    })
}

/// A moment in a plan; ``PAST`` has always been.
#[pyclass(frozen, eq, hash, module = "sardonyx._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step(pub plan::Step);

#[pymethods]
impl Step {
    /// The step that has always been.
    #[classattr]
    #[allow(non_snake_case)]
    fn PAST() -> Step {
        Step(plan::Step::PAST)
    }
}

/// The two moments of a write.
#[pyclass(frozen, module = "sardonyx._core")]
#[derive(Clone, Copy)]
pub struct Stored(pub plan::Stored);

#[pymethods]
impl Stored {
    #[new]
    #[pyo3(signature = (accepted, done=None))]
    fn new(accepted: &Step, done: Option<&Step>) -> Stored {
        Stored(plan::Stored {
            accepted: accepted.0,
            done: done.unwrap_or(accepted).0,
        })
    }

    /// When it is in the persistence domain.
    #[getter]
    fn accepted(&self) -> Step {
        Step(self.0.accepted)
    }

    /// When it is in the medium's array.
    #[getter]
    fn done(&self) -> Step {
        Step(self.0.done)
    }

    /// Both writes.
    fn also(&self, other: &Stored, plan: &Plan) -> PyResult<Stored> {
        plan.ask(|plan| Stored(self.0.and(other.0, plan)))
    }
}

/// A write of one line.
#[pyclass(frozen, module = "sardonyx._core")]
#[derive(Clone, Copy)]
pub struct Write {
    pub place: u64,
    pub data: Line,
    pub rest: controller::Write<'static, ()>,
}

static NOTHING: Line = [0; LINE_BYTES];

impl Write {
    pub fn of(place: u64, write: controller::Write<'_, ()>) -> Write {
        let data = *write.data.value;
        let rest = controller::Write {
            data: At::new(&NOTHING, write.data.at),
            at: (),
            gate: write.gate,
            class: write.class,
            order: write.order,
            core: write.core,
            transaction: write.transaction,
            flushed: write.flushed,
        };
        Write { place, data, rest }
    }

    fn below(&self) -> controller::Write<'_, Place> {
        let data = At::new(&self.data, self.rest.data.at);
        controller::Write {
            data,
            ..self.rest.to(Place(self.place))
        }
    }
}

#[pymethods]
impl Write {
    /// The line that is written: a mapping's own number of it, or a place.
    #[getter]
    fn line(&self) -> u64 {
        self.place
    }

    /// Its 64 bytes.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    /// When the bytes exist.
    #[getter]
    fn at(&self) -> Step {
        Step(self.rest.data.at)
    }

    /// Nothing is sent to the layer below before this.
    #[getter]
    fn gate(&self) -> Step {
        Step(self.rest.gate)
    }

    /// A record of a log, which must not be deduplicated.
    #[getter]
    fn is_log(&self) -> bool {
        self.rest.class == Class::Log
    }

    /// It must persist together with its metadata, or not at all.
    #[getter]
    fn atomic(&self) -> bool {
        self.rest.order == Persist::CounterAtomic
    }

    /// The write of another line; with other bytes, or at other moments.
    #[pyo3(signature = (line, *, data=None, at=None, gate=None, atomic=None))]
    fn to(
        &self,
        line: u64,
        data: Option<&[u8]>,
        at: Option<&Step>,
        gate: Option<&Step>,
        atomic: Option<bool>,
    ) -> PyResult<Write> {
        let mut write = Write {
            place: line,
            ..*self
        };
        if let Some(data) = data {
            write.data = self::line(data)?;
        }
        let at = at.map_or(self.rest.data.at, |at| at.0);
        write.rest.data = At::new(&NOTHING, at);
        write.rest.gate = gate.map_or(self.rest.gate, |gate| gate.0);
        write.rest.order = atomic.map_or(self.rest.order, order);
        Ok(write)
    }
}

pub fn order(atomic: bool) -> Persist {
    match atomic {
        true => Persist::CounterAtomic,
        false => Persist::Relaxed,
    }
}

/// The things that are lent to Python during a call: the plan, and the layer below if there is one.
pub struct Lent {
    pub plan: plan::Plan,
    pub below: Option<Encryption>,
    open: bool,
}

/// The plan of the request at hand; of no use afterwards.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Plan {
    lent: Mutex<Lent>,
    mechanisms: &'static [&'static Mechanism],
}

impl Plan {
    pub fn new(mechanisms: &'static [&'static Mechanism]) -> Plan {
        Plan {
            lent: Mutex::new(Lent {
                plan: plan::Plan::idle(),
                below: None,
                open: false,
            }),
            mechanisms,
        }
    }

    /// Exchanges what is lent with what the layer has: lends it, and takes it back the next time.
    pub fn exchange(&self, plan: &mut plan::Plan, below: &mut Option<Encryption>) {
        let mut lent = self.lent.lock().unwrap_or_else(|e| e.into_inner());
        std::mem::swap(&mut lent.plan, plan);
        std::mem::swap(&mut lent.below, below);
        lent.open = !lent.open;
    }

    fn lent(&self) -> PyResult<MutexGuard<'_, Lent>> {
        let lent = self.lent.try_lock().ok().filter(|lent| lent.open);
        lent.ok_or_else(|| {
            PyRuntimeError::new_err(
                "the plan of another request: use the one that the method was given",
            )
        })
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut Lent) -> PyResult<T>) -> PyResult<T> {
        act(&mut *self.lent()?)
    }

    /// Lets `act` use the plan itself.
    pub fn ask<T>(&self, act: impl FnOnce(&mut plan::Plan) -> T) -> PyResult<T> {
        Ok(act(&mut self.lent()?.plan))
    }
}

fn named<T: Copy>(
    kind: &str,
    name: &str,
    all: &[T],
    of: impl Fn(T) -> &'static str,
) -> PyResult<T> {
    let found = all.iter().copied().find(|one| of(*one) == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| of(*one)).collect();
        bad(format!(
            "there is no {kind} {name:?}; give one of {}",
            names.join(", ")
        ))
    })
}

#[pymethods]
impl Plan {
    /// Uses a unit on chip, as ``"compare"``, once ``after`` is over; when it is done.
    fn unit(&self, unit: &str, after: &Step) -> PyResult<Step> {
        let unit = named("unit", unit, &Unit::ALL, Unit::name)?;
        self.ask(|plan| Step(plan.unit(unit, after.0)))
    }

    /// When all of these are over.
    #[pyo3(signature = (*steps))]
    fn all(&self, steps: Vec<PyRef<'_, Step>>) -> PyResult<Step> {
        self.ask(|plan| {
            let steps = steps.iter().map(|one| one.0);
            let all = steps.reduce(|all, one| plan.both(all, one));
            Step(all.unwrap_or(plan::Step::PAST))
        })
    }

    /// ``with plan.because("mapping"):`` books what is planned within under that cause.
    fn because(slf: Py<Plan>, cause: &str) -> PyResult<Because> {
        let cause = named("cause", cause, &Cause::ALL, Cause::name)?;
        Ok(Because {
            plan: slf,
            cause,
            before: Mutex::new(None),
        })
    }

    /// Counts that one of the layer's mechanisms has been used.
    fn exercise(&self, mechanism: &str) -> PyResult<()> {
        let mechanism = named("mechanism", mechanism, self.mechanisms, |one| one.name)?;
        self.ask(|plan| plan.exercise(mechanism))
    }

    /// No place is free: the run ends, as of a full memory, with a remedy. Until then the line may lie at its own place.
    fn full(&self, line: u64, remedy: &str) -> PyResult<(u64, Step)> {
        self.ask(|plan| plan.fail(Exhausted::medium_full(intern(remedy))))?;
        Ok((line, Step(plan::Step::PAST)))
    }

    /// The line at a place is not what was written there last.
    fn refuse(&self, place: u64) -> PyResult<()> {
        self.ask(|plan| plan.refuse(Place(place)))
    }

    /// Reads a line of the medium.
    fn read<'py>(&self, py: Python<'py>, place: u64, after: &Step) -> PyResult<Timed<'py>> {
        let got = self.ask(|plan| plan.read(Place(place), after.0))?;
        Ok(timed(py, got))
    }

    /// Writes a line of the medium, with eight bytes beside it if there are any.
    #[pyo3(signature = (place, data, at, gate=None, beside=None))]
    fn write(
        &self,
        place: u64,
        data: &[u8],
        at: &Step,
        gate: Option<&Step>,
        beside: Option<[u8; 8]>,
    ) -> PyResult<Stored> {
        let data = line(data)?;
        let (place, data) = (Place(place), At::new(&data, at.0));
        let gate = gate.map_or(plan::Step::PAST, |gate| gate.0);
        self.ask(|plan| Stored(plan.write_words(place, data, 0xff, beside, gate, Queue::Data)))
    }

    /// The eight bytes beside a line of the medium, as they are known on chip.
    fn beside(&self, place: u64) -> PyResult<Option<[u8; 8]>> {
        self.ask(|plan| plan.peek_sideband(Place(place)))
    }

    /// Says that a write is encrypted under a counter.
    fn sealed(&self, stored: &Stored, place: u64, counter: u64) -> PyResult<()> {
        self.ask(|plan| plan.sealed(stored.0, Place(place), counter, None))
    }

    /// A recovery's look at a line of the medium; ``None`` if it was never written.
    fn scan<'py>(&self, py: Python<'py>, place: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let line = self.ask(|plan| plan.scan(Place(place)))?;
        Ok(line.map(|line| PyBytes::new(py, &line)))
    }

    /// The places of a table that have been written.
    fn written(&self, table: &Table) -> PyResult<Vec<u64>> {
        let places = self.ask(|plan| plan.written(&table.0))?;
        Ok(places.into_iter().map(|place| place.0).collect())
    }

    /// All of these writes are accepted at one instant, or none of them.
    fn group(&self, writes: Vec<PyRef<'_, Stored>>) -> PyResult<()> {
        let writes: Vec<plan::Stored> = writes.iter().map(|one| one.0).collect();
        self.ask(|plan| plan.group(&writes))
    }
}

/// What ``Plan.because`` gives.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Because {
    plan: Py<Plan>,
    cause: Cause,
    before: Mutex<Option<Purpose>>,
}

#[pymethods]
impl Because {
    fn __enter__(&self) -> PyResult<()> {
        let before = self
            .plan
            .get()
            .with(|lent| Ok(lent.plan.enter(self.cause)))?;
        *self.before.lock().unwrap_or_else(|e| e.into_inner()) = Some(before);
        Ok(())
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: Vec<Py<PyAny>>) -> PyResult<bool> {
        let before = self.before.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(before) = before {
            self.plan.get().ask(|plan| plan.leave(before))?;
        }
        Ok(false)
    }
}

/// The layer below a mapping: the encryption.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Below;

fn below<T>(plan: &Plan, act: impl FnOnce(&mut Encryption, &mut plan::Plan) -> T) -> PyResult<T> {
    plan.with(|lent| match &mut lent.below {
        Some(below) => Ok(act(below, &mut lent.plan)),
        None => Err(bad(
            "there is no layer below a policy: it has plan.read and plan.write",
        )),
    })
}

#[pymethods]
impl Below {
    /// Reads the line at a place.
    #[pyo3(signature = (place, after, plan, is_log=false))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        place: u64,
        after: &Step,
        plan: &Plan,
        is_log: bool,
    ) -> PyResult<Timed<'py>> {
        let class = if is_log { Class::Log } else { Class::Data };
        let got = below(plan, |below, plan| {
            below.read(Place(place), class, after.0, plan)
        })?;
        Ok(timed(py, got))
    }

    /// Writes a line to a place.
    fn write(&self, write: &Write, plan: &Plan) -> PyResult<Stored> {
        below(plan, |below, plan| Stored(below.write(write.below(), plan)))
    }

    /// Writes back what the layer below keeps of the lines around a place.
    fn persist(&self, place: u64, after: &Step, plan: &Plan) -> PyResult<Stored> {
        below(plan, |below, plan| {
            Stored(below.persist_metadata(Place(place), after.0, plan))
        })
    }

    /// A line that exists after ``after`` was encrypted ahead, and turned out not to be needed.
    fn discard(&self, place: u64, after: &Step, plan: &Plan) -> PyResult<()> {
        below(plan, |below, plan| {
            below.discard_encryption(Place(place), after.0, plan)
        })
    }
}
