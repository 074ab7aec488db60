//! The parts that a layer in Python is built from: tables, caches of their lines, a mapping table, places, a
//! fingerprint table.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sardonyx::controller::designs;
use sardonyx::controller::encryption::pad::Pads;
use sardonyx::controller::mapping::amt::{self, Amt, When};
use sardonyx::controller::mapping::efit;
use sardonyx::controller::mapping::places::{Allocator, Paged};
use sardonyx::controller::mapping::references::{Left, References};
use sardonyx::controller::metadata_cache::{self, MetadataCache, Replacement};
use sardonyx::ecc::{self, Matrix};
use sardonyx::figures::Amount;
use sardonyx::line::{Class, Logical, Place};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::medium::params::Unit;
use sardonyx::plan::{self, Queue};
use sardonyx::settings::{Settings, Value};
use sardonyx::stats::Cause;

use super::declared::cache_named;
use super::intern;
use super::plan::{Below, Plan, Step, Stored, Timed, line, order, timed};
use crate::bad;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// A number out of a total, as a figure has it.
type ShareOf = (u64, u64);

fn part(amount: Amount) -> ShareOf {
    match amount {
        Amount::Part { part, of } => (part, of),
        _ => (0, 0),
    }
}

/// What a layer is built from: the machine's settings, and room in the medium.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Memory {
    settings: Settings,
    layout: Mutex<Layout>,
    /// Whether the entries of the mapping table have counts, if there is one.
    pub counted: Mutex<Option<bool>>,
}

impl Memory {
    pub fn new(settings: &Settings, layout: &mut Layout) -> Memory {
        Memory {
            settings: settings.clone(),
            layout: Mutex::new(std::mem::replace(layout, Layout::new(1))),
            counted: Mutex::new(None),
        }
    }

    pub fn take_layout(&self) -> Layout {
        std::mem::replace(&mut *lock(&self.layout), Layout::new(1))
    }

    fn number(&self, name: &str) -> PyResult<Value> {
        let row = designs::keys()
            .flat_map(|key| key.rows())
            .find(|row| row.name == name);
        let default = row.and_then(|row| row.default).map(|(value, _)| value);
        let value = self.settings.find(name).or(default);
        value.ok_or_else(|| {
            bad(format!(
                "there is no key {name:?}; the layer declares its keys"
            ))
        })
    }
}

#[pymethods]
impl Memory {
    /// Lines of data, by number from 0.
    #[getter]
    fn lines(&self) -> u64 {
        lock(&self.layout).data_lines()
    }

    /// The layer below.
    #[getter]
    fn below(&self) -> Below {
        Below
    }

    /// The value of one of the machine's keys: a number, a flag or a word.
    fn key(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        Ok(match self.number(name)? {
            Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any().unbind(),
            Value::Word(word) => word.into_pyobject(py)?.into_any().unbind(),
            Value::Int(number) => number.into_pyobject(py)?.into_any().unbind(),
            Value::Time(time) => time.ns().into_pyobject(py)?.into_any().unbind(),
            Value::Energy(energy) => energy.nj().into_pyobject(py)?.into_any().unbind(),
        })
    }

    /// Lines of the medium for a table, by a name.
    fn table(&self, name: &str, lines: u64) -> Table {
        Table(lock(&self.layout).reserve(intern(name), lines.max(1)))
    }

    /// The cache of the keys ``NAME.bytes`` and ``NAME.ways``.
    #[pyo3(signature = (name, unit="metadata", least_used=false))]
    fn cache(&self, name: &str, unit: &str, least_used: bool) -> PyResult<Cache> {
        let key = cache_named(name)?;
        let unit = Unit::ALL.into_iter().find(|one| one.name() == unit);
        let unit = unit.ok_or_else(|| bad("unit: give \"metadata\" or \"counters\""))?;
        let policy = match least_used {
            true => Replacement::Lrcu,
            false => Replacement::Lru,
        };
        let cache = MetadataCache::new(key, unit, Queue::Data, &self.settings);
        Ok(Cache(Mutex::new(cache.replacing(policy))))
    }

    /// A table from lines to places, read through a cache of those keys; with a count of references for each place.
    #[pyo3(signature = (cache, counted=true, least_used=false))]
    fn mapping(&self, cache: &str, counted: bool, least_used: bool) -> PyResult<MappingTable> {
        let cache = self.cache(cache, "metadata", least_used)?.0;
        let cache = cache.into_inner().unwrap_or_else(|e| e.into_inner());
        *lock(&self.counted) = Some(counted);
        let mut layout = lock(&self.layout);
        Ok(MappingTable(Mutex::new((
            Amt::new(counted, cache, &mut layout),
            Paged::default(),
        ))))
    }

    /// All places, of which none is used.
    fn places(&self) -> Places {
        let lines = lock(&self.layout).data_lines();
        Places(Mutex::new(Allocator::new(lines, &self.settings)))
    }

    /// ESD's fingerprint table on chip, of the keys ``esd.efit_*``.
    fn fingerprints(&self) -> Fingerprints {
        Fingerprints(Mutex::new(efit::Efit::new(&self.settings)))
    }

    /// What encrypts: AES-128 in counter mode.
    fn pads(&self) -> PadMaker {
        PadMaker(Pads::new(&self.settings))
    }
}

/// The check bits of a line, which come with it, as a number of 64 bits.
#[pyfunction]
pub fn check_bits(data: &[u8]) -> PyResult<u64> {
    Ok(ecc::check_word(Matrix::TruncatedHamming, &line(data)?))
}

/// Lines of the medium with a name.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Table(pub Region);

#[pymethods]
impl Table {
    /// The place of one of its lines.
    fn line(&self, index: u64) -> PyResult<u64> {
        let there = index < self.0.lines;
        let place = there.then(|| self.0.line(index).0);
        place.ok_or_else(|| bad(format!("{}: line {index} of {}", self.0.name, self.0.lines)))
    }

    /// Its first place.
    #[getter]
    fn first(&self) -> u64 {
        self.0.first.0
    }
}

/// A line that was looked up in a cache; good until the next look-up.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Lookup {
    found: metadata_cache::Lookup,
    place: Place,
}

#[pymethods]
impl Lookup {
    /// When the line is in the cache.
    #[getter]
    fn at(&self) -> Step {
        Step(self.found.at)
    }

    /// Whether it was there already.
    #[getter]
    fn hit(&self) -> bool {
        self.found.hit
    }
}

/// A write-back cache on chip of lines of a table.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Cache(Mutex<MetadataCache>);

impl Cache {
    fn ask<T>(
        &self,
        plan: &Plan,
        act: impl FnOnce(&mut MetadataCache, &mut plan::Plan) -> T,
    ) -> PyResult<T> {
        plan.ask(|plan| act(&mut lock(&self.0), plan))
    }
}

#[pymethods]
impl Cache {
    /// Looks up the line at a place; on a miss it is fetched.
    fn get(&self, place: u64, after: &Step, plan: &Plan) -> PyResult<Lookup> {
        let place = Place(place);
        let found = self.ask(plan, |cache, plan| cache.get(place, after.0, plan))?;
        Ok(Lookup { found, place })
    }

    /// The bytes of a line that was just looked up.
    fn line<'py>(&self, py: Python<'py>, cached: &Lookup) -> Bound<'py, PyBytes> {
        PyBytes::new(py, lock(&self.0).line(cached.found))
    }

    /// Changes bytes of a line that was just looked up; they may leave the chip after ``ripe``.
    fn set(
        &self,
        cached: &Lookup,
        at: usize,
        data: &[u8],
        ripe: &Step,
        plan: &Plan,
    ) -> PyResult<()> {
        if data.is_empty() || at + data.len() > 64 {
            return Err(bad(format!("{} bytes at {at} of a line of 64", data.len())));
        }
        self.ask(plan, |cache, plan| {
            cache.set_bytes(cached.found, at, data, ripe.0, plan)
        })
    }

    /// When all changes of a line that was just looked up may leave the chip.
    fn ripe(&self, cached: &Lookup) -> Step {
        Step(lock(&self.0).ripe_at(cached.place))
    }

    /// Writes the line at a place back, if it differs from the medium's.
    fn persist(&self, place: u64, after: &Step, plan: &Plan) -> PyResult<Stored> {
        self.ask(plan, |cache, plan| {
            Stored(cache.persist(Place(place), after.0, plan))
        })
    }

    /// Writes all lines back.
    fn flush(&self, plan: &Plan) -> PyResult<()> {
        self.ask(plan, MetadataCache::flush)
    }

    /// Look-ups that hit, and all.
    #[getter]
    fn hits(&self) -> ShareOf {
        part(lock(&self.0).hits())
    }

    /// Counts look-ups anew.
    fn forget(&self) {
        lock(&self.0).forget_figures();
    }
}

/// The entry of a line in a mapping table.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Entry(amt::AmtEntry);

#[pymethods]
impl Entry {
    /// Where the line lies, if anywhere.
    #[getter]
    fn place(&self) -> Option<u64> {
        self.0.place.map(|place| place.0)
    }

    /// When the entry is known.
    #[getter]
    fn at(&self) -> Step {
        Step(self.0.cached.at)
    }
}

/// A table from lines to places, in the medium and behind a cache, with a count of references for each place.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct MappingTable(Mutex<(Amt, Paged<u32>)>);

impl MappingTable {
    fn ask<T>(&self, plan: &Plan, act: impl FnOnce(&mut Amt, &mut plan::Plan) -> T) -> PyResult<T> {
        plan.ask(|plan| act(&mut lock(&self.0).0, plan))
    }
}

#[pymethods]
impl MappingTable {
    /// Reads a line from where it lies.
    #[pyo3(signature = (line, after, plan, is_log=false))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        line: u64,
        after: &Step,
        plan: &Plan,
        is_log: bool,
    ) -> PyResult<Timed<'py>> {
        let class = if is_log { Class::Log } else { Class::Data };
        let got = plan.with(|lent| {
            let below = lent.below.as_mut();
            let below = below.ok_or_else(|| bad("a mapping table is a mapping's"))?;
            let amt = &mut lock(&self.0).0;
            Ok(amt.read(below, Logical(line), class, after.0, &mut lent.plan))
        })?;
        Ok(timed(py, got))
    }

    /// Looks a line up, for a write that will change its entry.
    fn find(&self, line: u64, after: &Step, plan: &Plan) -> PyResult<Entry> {
        self.ask(plan, |amt, plan| {
            Entry(amt.find(Logical(line), after.0, plan))
        })
    }

    /// Looks an entry up again that a request has counted already; it has no place now.
    fn give_up(&self, entry: &Entry, after: &Step, plan: &Plan) -> PyResult<Entry> {
        self.ask(plan, |amt, plan| {
            let table = amt.table_line(entry.0.line);
            let mut plan = plan.because(Cause::Mapping);
            let cached = amt.cache.revisit(table, after.0, &mut plan);
            let (line, place) = (entry.0.line, None);
            Entry(amt::AmtEntry {
                line,
                place,
                cached,
            })
        })
    }

    /// The entry's line lies at a place from ``decided`` on; the entry may leave the chip after ``ripe``.
    fn set(
        &self,
        entry: &Entry,
        place: u64,
        decided: &Step,
        ripe: &Step,
        plan: &Plan,
    ) -> PyResult<()> {
        let when = When {
            decided: decided.0,
            ripe: ripe.0,
        };
        self.ask(plan, |amt, plan| {
            amt.set(&entry.0, Place(place), when, plan)
        })
    }

    /// One more line refers to a place, or the first one; whether the count is full now, and stays so.
    #[pyo3(signature = (place, decided, ripe, plan, first=false))]
    fn refer(
        &self,
        place: u64,
        decided: &Step,
        ripe: &Step,
        plan: &Plan,
        first: bool,
    ) -> PyResult<bool> {
        self.ask(plan, |amt, plan| {
            let count = amt.count(Place(place), decided.0, plan);
            let more = match first {
                true => References::ONE,
                false => count.refer.one_more(),
            };
            if more == count.refer {
                return false;
            }
            amt.set_count(count, more, ripe.0, plan);
            more.is_full()
        })
    }

    /// One line less refers to a place: how many still do, or ``None`` where the count was full or lost.
    fn unrefer(
        &self,
        place: u64,
        decided: &Step,
        ripe: &Step,
        plan: &Plan,
    ) -> PyResult<Option<u8>> {
        self.ask(plan, |amt, plan| {
            let count = amt.count(Place(place), decided.0, plan);
            let Left::Some(less) = count.refer.one_less() else {
                return None;
            };
            amt.set_count(count, less, ripe.0, plan);
            Some(less.byte())
        })
    }

    /// A write, and after it the entry of its line where that must persist with it.
    fn persist(
        &self,
        entry: &Entry,
        stored: &Stored,
        atomic: bool,
        plan: &Plan,
    ) -> PyResult<Stored> {
        let (line, order) = (entry.0.line, order(atomic));
        self.ask(plan, |amt, plan| {
            Stored(amt.persist(line, stored.0, order, plan))
        })
    }

    /// Writes back the entries of the lines around one, and what the layer below keeps of where they lie.
    fn persist_around(&self, line: u64, after: &Step, plan: &Plan) -> PyResult<Stored> {
        plan.with(|lent| {
            let below = lent.below.as_mut();
            let below = below.ok_or_else(|| bad("a mapping table is a mapping's"))?;
            let amt = &mut lock(&self.0).0;
            let line = Logical(line);
            Ok(Stored(amt.persist_span(
                below,
                line,
                after.0,
                &mut lent.plan,
            )))
        })
    }

    /// Reads the whole table after a cut, takes the places that it names, and puts their counts right.
    fn recover(&self, places: &Places, plan: &Plan) -> PyResult<()> {
        plan.ask(|plan| {
            let (amt, lines_at) = &mut *lock(&self.0);
            let mut places = lock(&places.0);
            amt.scan(plan, |_, place| {
                places.take(place);
                *lines_at.at(place.0) += 1;
            });
            amt.recount(lines_at, plan);
        })
    }

    /// Writes all entries back.
    fn flush(&self, plan: &Plan) -> PyResult<()> {
        self.ask(plan, |amt, plan| {
            amt.cache.flush(&mut plan.because(Cause::Mapping))
        })
    }

    /// Lines that have a place.
    #[getter]
    fn mapped(&self) -> u64 {
        lock(&self.0).0.mapped()
    }

    /// Its own figures: how often its cache hit, and its bytes.
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let amt = &lock(&self.0).0;
        let (bytes, figures) = (amt.bytes_per_line(), PyDict::new(py));
        figures.set_item("amt_hit_rate", part(amt.cache.hits()))?;
        figures.set_item("metadata_bytes", bytes * amt.mapped() as f64)?;
        figures.set_item("metadata_bytes_per_line", bytes)?;
        Ok(figures)
    }

    /// Counts look-ups anew.
    fn forget(&self) {
        lock(&self.0).0.cache.forget_figures();
    }
}

/// Which places are free.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Places(Mutex<Allocator>);

#[pymethods]
impl Places {
    /// A free place for a line, its own if that is free, and the step before which it must not be written; ``None`` if
    /// the medium is full.
    fn allocate(&self, home: u64, plan: &Plan) -> PyResult<Option<(u64, Step)>> {
        let got = plan.ask(|plan| lock(&self.0).allocate(Place(home), plan))?;
        Ok(got.map(|(place, unmapped)| (place.0, Step(unmapped))))
    }

    /// A line has left a place to which ``left`` others still refer, which may be written again once ``unmapped`` is
    /// over; whether it is free now.
    fn leave(&self, place: u64, left: u64, unmapped: &Step, plan: &Plan) -> PyResult<bool> {
        plan.ask(|plan| {
            let (mut places, place) = (lock(&self.0), Place(place));
            match left {
                0 => places.free(place, unmapped.0, plan),
                _ => places.let_go(place, unmapped.0, plan),
            }
            left == 0
        })
    }

    /// A place is in use, as a recovery finds.
    fn take(&self, place: u64) {
        lock(&self.0).take(Place(place));
    }

    /// Places in use.
    #[getter]
    fn in_use(&self) -> u64 {
        lock(&self.0).in_use()
    }
}

/// An entry of the fingerprint table.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Similar(efit::Similar);

#[pymethods]
impl Similar {
    /// Where a line with these check bits lies.
    #[getter]
    fn place(&self) -> u64 {
        self.0.place.0
    }

    /// When the entry exists.
    #[getter]
    fn at(&self) -> Step {
        Step(self.0.at)
    }

    /// How often the line was referred to of late, 0 to 255.
    #[getter]
    fn refer(&self) -> u8 {
        self.0.refer
    }
}

/// ESD's fingerprint table: check bits to a place that had such a line.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct Fingerprints(Mutex<efit::Efit>);

#[pymethods]
impl Fingerprints {
    /// Counts a look-up; whether the table was refreshed by it.
    fn tick(&self) -> bool {
        lock(&self.0).tick()
    }

    /// The entry with these check bits, or the next one after another.
    #[pyo3(signature = (check, after=None))]
    fn find(&self, check: u64, after: Option<&Similar>) -> Option<Similar> {
        lock(&self.0)
            .find(check, after.map(|one| one.0))
            .map(Similar)
    }

    /// One more line refers to the entry's place.
    fn refer(&self, similar: &Similar) {
        lock(&self.0).refer(similar.0);
    }

    /// Enters a line; whether another had to leave.
    fn insert(&self, check: u64, place: u64, at: &Step) -> bool {
        lock(&self.0).insert(check, Place(place), at.0)
    }

    /// The entry speaks of another place from now on.
    fn replace(&self, similar: &Similar, place: u64, at: &Step) {
        lock(&self.0).replace(similar.0, Place(place), at.0);
    }

    /// Nobody may refer to a place any more.
    fn forget(&self, place: u64) {
        lock(&self.0).forget(Place(place));
    }
}

/// AES-128 in counter mode over (place, counter); the time that it takes is the unit ``"aes"``.
#[pyclass(frozen, module = "sardonyx._core")]
pub struct PadMaker(Pads);

#[pymethods]
impl PadMaker {
    /// A line under the pad of a place and a counter, or from under it.
    fn crypt<'py>(
        &self,
        py: Python<'py>,
        place: u64,
        counter: u64,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let under = self.0.crypt(Place(place), counter, &line(data)?);
        Ok(PyBytes::new(py, &under))
    }
}
