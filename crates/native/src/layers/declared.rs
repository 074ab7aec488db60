//! The declaration of a layer in Python, and its registration. Layers of this crate are built by functions without a
//! state, so each layer in Python takes one of a few slots, whose functions have a state.

use std::sync::{Mutex, PoisonError, RwLock};

use pyo3::prelude::*;
use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{
    About, Counters, Design, Entries, Guarantee, Integrity, Mapping, Placement, Policy, Refuses,
};
use sardonyx::controller::mapping::amt;
use sardonyx::controller::{Encryption, Top};
use sardonyx::figures::{Better, Figure, Quantity};
use sardonyx::line::{Line, Logical, Place};
use sardonyx::mechanisms::Mechanism;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::Unit;
use sardonyx::plan::guard::Guard;
use sardonyx::settings::{AnyKey, CacheKey, Key, Origin, Settings};
use serde::Deserialize;

use super::intern;
use super::layer::{OwnGuard, OwnMapping, OwnPolicy};
use crate::{bad, read};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    kind: String,
    name: String,
    source: String,
    line: String,
    stack: String,
    cut: String,
    promise: String,
    like: Option<String>,
    keys: Vec<(String, NumberKind, String)>,
    caches: Vec<(String, u64, String)>,
    figures: Vec<(String, String, String, String)>,
    mechanisms: Vec<(String, u64)>,
    units: Vec<String>,
    counters: String,
    beside: Option<String>,
    zeros_apart: bool,
    refuses: Vec<String>,
    placement: Option<(String, u64)>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NumberKind {
    Flag(bool),
    Count(u64),
}

pub struct Declared {
    pub name: &'static str,
    class: Mutex<Py<PyAny>>,
    pub figures: Vec<&'static Figure>,
    pub mechanisms: &'static [&'static Mechanism],
    promise: Guarantee,
    placement: Option<(&'static str, u64)>,
    /// Whether the entries of its mapping table have counts, once it has been built with one.
    pub counted: Mutex<Option<bool>>,
}

impl Declared {
    pub fn class(&self, py: Python<'_>) -> Py<PyAny> {
        let class = self.class.lock().unwrap_or_else(PoisonError::into_inner);
        class.clone_ref(py)
    }
}

static DECLARED: RwLock<Vec<&'static Declared>> = RwLock::new(Vec::new());

fn declared(slot: usize) -> &'static Declared {
    DECLARED.read().unwrap_or_else(PoisonError::into_inner)[slot]
}

pub fn is_declared(name: &str) -> bool {
    let all = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().any(|known| known.name == name)
}

struct FunctionSlot {
    mapping: fn(&Settings, Encryption, &mut Layout) -> Top,
    policy: fn(&Settings, &mut Layout) -> Encryption,
    guard: fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>,
    promise: fn(Guarantee) -> Guarantee,
    placement: fn(&Settings, &Layout) -> Placement,
}

fn promise<const SLOT: usize>(below: Guarantee) -> Guarantee {
    match declared(SLOT).promise {
        Guarantee::EveryLine => below,
        Guarantee::AfterProgramRecovery => below.on_demand(),
        Guarantee::Nothing => Guarantee::Nothing,
    }
}

fn placement<const SLOT: usize>(_: &Settings, layout: &Layout) -> Placement {
    let own = declared(SLOT);
    let counted = *own.counted.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(counted) = counted {
        return amt::placement(counted, layout);
    }
    let Some((table, per_line)) = own.placement else {
        return Placement::Home;
    };
    match layout.region(table) {
        None => Placement::Home,
        Some(region) => Placement::Table(Entries {
            region: region.clone(),
            per_line,
            places: layout.data_lines(),
            place: place::<SLOT>,
        }),
    }
}

/// The place of a line according to the class, from its line of the table.
fn place<const SLOT: usize>(table: &Line, line: Logical, entry: usize) -> Option<Place> {
    let own = declared(SLOT);
    Python::attach(|py| {
        let class = own.class(py);
        let said = class.call_method1(py, "place", (&table[..], line.0, entry));
        let place = said.and_then(|said| said.extract::<Option<u64>>(py));
        place.unwrap_or_else(|error| {
            super::failed(py, own.name, &error);
            None
        })
    })
    .map(Place)
}

macro_rules! slots {
    ($($slot:literal)*) => {
        [$(FunctionSlot {
            mapping: |settings, below, layout| Box::new(OwnMapping::build(declared($slot), settings, below, layout)),
            policy: |settings, layout| Box::new(OwnPolicy::build(declared($slot), settings, layout)),
            guard: |settings, layout| Some(Box::new(OwnGuard::build(declared($slot), settings, layout))),
            promise: promise::<$slot>,
            placement: placement::<$slot>,
        }),*]
    };
}

const SLOTS: [FunctionSlot; 48] = slots! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
    24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn leak_all<T>(values: Vec<T>) -> &'static [T] {
    Box::leak(values.into_boxed_slice())
}

const OWN: Origin = Origin::Assumed("the design's own");

impl Declaration {
    fn layer(&self, slot: &FunctionSlot, about: About, promise: Guarantee) -> PyResult<AnyLayer> {
        Ok(match self.kind.as_str() {
            "mapping" => AnyLayer::Mapping(leak(Mapping {
                about,
                build: slot.mapping,
                guarantee: slot.promise,
                placement: slot.placement,
                shows: &[],
                zeros_apart: self.zeros_apart,
                beside: self.beside.as_deref().map(intern),
            })),
            "policy" => AnyLayer::Policy(leak(Policy {
                about,
                build: slot.policy,
                guarantee: promise,
                counters: self.counts()?,
                keeps: None,
            })),
            _ => AnyLayer::Integrity(leak(Integrity {
                about,
                build: slot.guard,
                promises: self.refuses(),
                settles_groups: false,
                registers: |_| 0,
                power_fail: None,
            })),
        })
    }

    fn own_keys(&self) -> Vec<&'static dyn AnyKey> {
        let keys = self.keys.iter().map(|(name, default, meaning)| {
            let (name, meaning) = (intern(name), intern(meaning));
            match *default {
                NumberKind::Flag(default) => {
                    leak(Key::<bool>::flag(name, default, OWN, meaning)) as &'static dyn AnyKey
                }
                NumberKind::Count(default) => {
                    leak(Key::<u64>::int(name, (0, 1 << 60), default, OWN, meaning))
                }
            }
        });
        let caches = self.caches.iter().map(|(name, bytes, meaning)| {
            let names = ["bytes", "ways"].map(|end| intern(&format!("{name}.{end}")));
            let meanings = [intern(meaning), "Its ways"];
            leak(CacheKey::new(64, *bytes, OWN, names, meanings)) as &'static dyn AnyKey
        });
        keys.chain(caches).collect()
    }

    fn own_figures(&self) -> PyResult<Vec<&'static Figure>> {
        let figures = self.figures.iter().map(|(name, unit, better, meaning)| {
            let of =
                |words: Vec<&str>| bad(format!("figure {name}: give one of {}", words.join(", ")));
            let unit = Quantity::ALL.into_iter().find(|one| one.name() == unit);
            let better = Better::ALL.into_iter().find(|one| one.name() == better);
            let figure = Figure {
                name: intern(name),
                about: "Designs in Python",
                unit: unit.ok_or_else(|| of(Quantity::ALL.map(Quantity::name).into()))?,
                better: better.ok_or_else(|| of(Better::ALL.map(Better::name).into()))?,
                meaning: intern(meaning),
            };
            Ok(leak(figure))
        });
        figures.collect()
    }

    fn units(&self) -> PyResult<Vec<Unit>> {
        let units = self.units.iter().map(|name| {
            let unit = Unit::ALL.into_iter().find(|one| one.name() == name);
            unit.ok_or_else(|| {
                let names = Unit::ALL.map(Unit::name).join(", ");
                bad(format!(
                    "{}: there is no unit {name:?}; the units are {names}",
                    self.name
                ))
            })
        });
        units.collect()
    }

    fn promised(&self) -> PyResult<Guarantee> {
        let all = [
            Guarantee::EveryLine,
            Guarantee::AfterProgramRecovery,
            Guarantee::Nothing,
        ];
        let found = all.into_iter().find(|one| one.name() == self.promise);
        found.ok_or_else(|| {
            bad(format!(
                "{}: promise = {:?}: give one of {}",
                self.name,
                self.promise,
                all.map(Guarantee::name).join(", ")
            ))
        })
    }

    fn refuses(&self) -> Refuses {
        let has = |what: &str| self.refuses.iter().any(|one| one == what);
        Refuses {
            tamper: has("tamper"),
            splice: has("splice"),
            replay: has("replay"),
            rollback: has("rollback"),
        }
    }

    fn counts(&self) -> PyResult<Counters> {
        match self.counters.as_str() {
            "none" => Ok(Counters::None),
            "per-line" => Ok(Counters::PerLine),
            "global" => Ok(Counters::Global),
            _ => Err(bad(format!(
                "{}: counters = {:?}: give one of none, per-line, global",
                self.name, self.counters
            ))),
        }
    }
}

/// The declaration of a built-in layer, if there is one of that name.
fn like(name: Option<&str>) -> PyResult<Option<&'static About>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let mut all = designs::built_in().map(AnyLayer::about);
    let found = all.find(|about| about.name == name);
    found
        .map(Some)
        .ok_or_else(|| bad(format!("like = {name:?}: there is no layer of that name")))
}

/// Register a class as a layer, and as a design with it. A class of a name that is registered takes the place of the
/// one before, whose keys stay.
#[pyfunction]
pub fn register_layer(class: Py<PyAny>, declaration_json: &str) -> PyResult<()> {
    let said: Declaration = read(declaration_json)?;
    super::forget(&said.name);
    let mut all = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|known| known.name == said.name) {
        *known.class.lock().unwrap_or_else(PoisonError::into_inner) = class;
        return Ok(());
    }
    if designs::layers().any(|layer| layer.about().name == said.name)
        || designs::all().any(|design| design.name == said.name)
    {
        return Err(bad(format!(
            "{}: a design of that name comes with the program; choose another name",
            said.name
        )));
    }
    let number = all.len();
    let Some(slot) = SLOTS.get(number) else {
        return Err(bad(format!(
            "{}: at most {} layers can be registered in one program; start another",
            said.name,
            SLOTS.len()
        )));
    };
    let like = like(said.like.as_deref())?;
    let mut keys = like.map_or(Vec::new(), |about| about.keys.to_vec());
    keys.extend(said.own_keys());
    let mut figures = like.map_or(Vec::new(), |about| about.figures.to_vec());
    figures.push(leak_all(said.own_figures()?));
    let mechanisms = said.mechanisms.iter();
    let mechanisms =
        mechanisms.map(|(name, least)| leak(Mechanism::new(intern(name), *least)) as &_);
    let mut tries = like.map_or(Vec::new(), |about| about.tries.to_vec());
    tries.push(leak_all(mechanisms.collect()));
    let mut units = like.map_or(Vec::new(), |about| about.units.to_vec());
    units.extend(said.units()?);
    let about = About {
        name: intern(&said.name),
        keys: leak_all(keys),
        units: leak_all(units),
        figures: leak_all(figures.clone()),
        cut: intern(&said.cut),
        tries: leak_all(tries.clone()),
        limits: like.map_or(&[], |about| about.limits),
    };
    let own = Declared {
        name: about.name,
        class: Mutex::new(class),
        figures: figures.concat(),
        mechanisms: leak_all(tries.concat()),
        promise: said.promised()?,
        placement: (said.placement.as_ref()).map(|(table, per_line)| (intern(table), *per_line)),
        counted: Mutex::new(None),
    };
    let layer = said.layer(slot, about, own.promise)?;
    let design = Design {
        name: own.name,
        source: intern(&said.source),
        line: intern(&said.line),
        stack: intern(&said.stack),
    };
    all.push(leak(own));
    drop(all);
    designs::register(layer);
    designs::name(leak(design));
    Ok(())
}

/// The cache of the keys `NAME.bytes` and `NAME.ways`, which have a `_` where a design's name may have a hyphen.
///
/// # Errors
/// There is none.
pub fn cache_named(name: &str) -> PyResult<&'static CacheKey> {
    let named = |key: &'static CacheKey| {
        let of = key.bytes.name().strip_suffix("bytes").unwrap_or_default();
        of.trim_end_matches(['.', '_'])
    };
    let asked = name.replace('-', "_");
    designs::caches()
        .find(|key| named(key) == asked)
        .ok_or_else(|| {
            let all = designs::caches().map(named).collect::<Vec<_>>().join(", ");
            bad(format!(
                "there is no cache {asked:?}; declare it in caches, or name one of {all}"
            ))
        })
}
