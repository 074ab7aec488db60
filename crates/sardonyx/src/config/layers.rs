//! Settings laid over each other (preset, file, `--set`), the last one winning, and the machine
//! that they make: every value is checked against its key's range, then all against each other.
//! An assumption belongs to a value: whoever sets the value anew drops it, or states it anew.

use std::collections::BTreeMap;

use sardonyx_base::sizes;

use crate::line::LINE_BYTES;
use crate::medium::near;
use crate::medium::params::{
    COMMANDS, COMMANDS_OF, CachesParams, CommandsOf, CoreParams, EngineParams, INGRESS,
    MAX_INGRESS, STARVATION, Scheduler,
};
use crate::settings::{Allowed, MAX_ENERGY_NJ, MAX_LATENCY_PS, Origin, Row, Settings, Value};
use crate::units::{Energy, Time};

use super::error::{ConfigError, KeyPlace, Result};
use super::foreign::{self, Foreign};
use super::keys;
use super::names::Form;
use super::presets::{self, Preset};
use super::ranges::{self, WrittenValue};
use super::read::{self, Document, NEAR_EXTENDS, Raw, Setting};
use super::{Assumed, Machine, Range, check, write};

const SET: &str = "--set";
/// The machine of a near medium of which nothing is named but what differs.
const NEAR_DEFAULT: &str = "ddr4-2400";
/// The read and write entries of `esd`.
const LEAST_INGRESS: u64 = 64;
/// Presets extend each other in a chain of this length, at most.
const MAX_DEPTH: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Layers {
    file: String,
    name: String,
    source: String,
    /// The machine whose medium is the near one, if one is named.
    near: Option<(String, KeyPlace)>,
    settings: BTreeMap<&'static str, Setting>,
    assumed: BTreeMap<&'static str, (String, Option<WrittenValue>, KeyPlace)>,
}

impl Layers {
    pub(super) fn of_preset(preset: &Preset) -> Result<Layers> {
        Layers::of_document(read::document(preset.text, preset.name)?, preset.name, 0)
    }

    pub(super) fn of_text(text: &str, file: &str) -> Result<Layers> {
        Layers::of_document(read::document(text, file)?, file, 0)
    }

    pub(super) fn of_file(text: &str, file: &str) -> Result<Layers> {
        match foreign::read(text, file) {
            None => Layers::of_text(text, file),
            Some(read) => Layers::of_foreign(read?, file),
        }
    }

    fn of_foreign(read: Foreign, file: &str) -> Result<Layers> {
        let base = presets::find(read.base).expect("a preset");
        let mut layers = Layers::of_preset(base)?;
        let simulator = read.simulator;
        layers.source = format!(
            "{file}, of {simulator}; what it leaves out from {}",
            read.base
        );
        layers.name = stem(file);
        layers.file = file.to_owned();
        let whole = KeyPlace {
            file: file.into(),
            line: None,
        };
        layers.near = read.near.map(|base| (base.to_owned(), whole));
        for (name, value, place) in read.keys {
            let (key, form) = read::find(&name, &place)?;
            layers.assumed.remove(key.name);
            let raw = Raw::Bare(value);
            let setting = Setting { raw, form, place };
            layers.settings.insert(key.name, setting);
        }
        foreign::tell(file, &read.notes);
        Ok(layers)
    }

    fn of_document(document: Document, file: &str, depth: usize) -> Result<Layers> {
        let mut layers = match &document.extends {
            Some((base, place)) => Layers::of_base(base, place, depth)?,
            None => Layers::default(),
        };
        layers.source = document.source.unwrap_or_else(|| match &document.extends {
            Some((base, _)) => format!("{file}, extending {base} ({})", layers.source),
            None => file.to_owned(),
        });
        layers.name = document.name.unwrap_or_else(|| stem(file));
        layers.file = file.to_owned();
        layers.near = document.near.or(layers.near);
        for (key, setting) in document.settings {
            layers.assumed.remove(key.name);
            layers.settings.insert(key.name, setting);
        }
        for (key, why, range, place) in document.assumed {
            if !layers.settings.contains_key(key.name) && key.default.is_none() {
                return Err(ConfigError::key(
                    &place,
                    key.name,
                    "is marked as assumed but has no value",
                    "give it a value or remove the mark",
                ));
            }
            layers.assumed.insert(key.name, (why, range, place));
        }
        Ok(layers)
    }

    fn of_base(base: &str, place: &KeyPlace, depth: usize) -> Result<Layers> {
        let fail =
            |problem: &str, remedy: &str| Err(ConfigError::key(place, "extends", problem, remedy));
        let Some(preset) = presets::find(base) else {
            let problem = format!("\"{base}\" is not a preset");
            return fail(&problem, &presets::remedy(base));
        };
        if depth >= MAX_DEPTH {
            let remedy = "extend a preset nearer the root";
            return fail("the chain of presets is too long", remedy);
        }
        let document = read::document(preset.text, preset.name)?;
        Layers::of_document(document, preset.name, depth + 1)
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.put(SET, name, value)
    }

    /// Sets a value that no user has asked for: the crash explorer's plan does.
    pub(super) fn plan(&mut self, name: &str, value: &str) -> Result<()> {
        self.put("the plan's", name, value)
    }

    fn put(&mut self, whose: &str, name: &str, value: &str) -> Result<()> {
        let place = KeyPlace {
            file: format!("{whose} {name}={value}").into(),
            line: None,
        };
        if name == NEAR_EXTENDS {
            self.near = Some((value.trim().to_owned(), place));
            return Ok(());
        }
        let (key, form) = read::find(name, &place)?;
        self.assumed.remove(key.name);
        let raw = Raw::Bare(value.trim().to_owned());
        self.settings.insert(key.name, Setting { raw, form, place });
        Ok(())
    }

    pub(super) fn build(mut self) -> Result<Machine> {
        let near = self.near_machine()?;
        let mut settings = Settings::default();
        for key in keys::all().filter(|key| !near::is_of_medium(key.name)) {
            let value = match (self.settings.get(key.name), key.default) {
                (Some(setting), _) => checked(key, setting, &settings)?,
                (None, Some((default, _))) => default,
                (None, None) if key.name == INGRESS => continue, // derived from the queues, below
                // A threshold of a scheduler that has none.
                (None, None) if key.name == STARVATION && !has_starvation(&settings) => continue,
                (None, None) => return Err(self.missing(key)),
            };
            settings.put(key.name, value);
        }
        if !has_starvation(&settings) {
            settings.remove(STARVATION);
        }
        for key in keys::all() {
            let own = near::is_of_medium(key.name).then(|| &key.name[near::PREFIX.len()..]);
            let of_near = near.as_ref().map(|near| &near.settings).zip(own);
            if let Some(value) = of_near.and_then(|(settings, own)| settings.find(own)) {
                settings.put(key.name, value);
            }
        }
        if settings.find(INGRESS).is_none() {
            settings.put(INGRESS, Value::Int(ingress(queue_entries(&settings))));
        }
        for key in keys::all()
            .filter(|key| !key.matters(&settings))
            .collect::<Vec<_>>()
        {
            self.not_asked_for(key, &settings)?;
            if let Some((default, _)) = key.default {
                settings.put(key.name, default); // it does nothing; two machines that differ in nothing else are equal
            }
        }
        let own = keys::all().filter(|key| !near::is_of_medium(key.name));
        let assumed = own.filter_map(|key| self.doubted(key, &settings));
        let mut assumed = assumed.collect::<Result<Vec<_>, _>>()?;
        if let Some(near) = near {
            let of_near = near
                .assumed
                .iter()
                .filter(|one| near::can_have(&one.parameter) && near.matters(&one.parameter));
            assumed.extend(of_near.map(|one| Assumed {
                parameter: format!("{}{}", near::PREFIX, one.parameter),
                ..one.clone()
            }));
        }
        let machine = Machine {
            assumed,
            engine: EngineParams::from_settings(&settings),
            core: CoreParams::from_settings(&settings),
            cores: settings.get(&keys::CORES),
            caches: CachesParams::from_settings(&settings),
            settings,
            name: self.name.clone(),
            source: self.source.clone(),
        };
        check::consistent(&machine, &self)?;
        Ok(machine)
    }

    /// The machine whose medium is the near one, with what is said of it here; `None` where there is none. A near medium
    /// is a cache unless the form is given.
    fn near_machine(&mut self) -> Result<Option<Machine>> {
        let form = near::FORM.name();
        let named = self.near.take().filter(|(name, _)| name != "none");
        if let (Some((_, place)), None) = (&named, self.settings.get(form)) {
            let setting = Setting {
                raw: Raw::Bare("cache".to_owned()),
                form: Form::Own,
                place: place.clone(),
            };
            self.settings.insert(form, setting);
        }
        let none = |setting: &Setting| matches!(&setting.raw, Raw::Text(word) | Raw::Bare(word) if word == "none");
        let Some(setting) = self.settings.get(form).filter(|setting| !none(setting)) else {
            return Ok(None);
        };
        let (name, place) = named.unwrap_or((NEAR_DEFAULT.to_owned(), setting.place.clone()));
        let mut layers = match presets::find(&name) {
            Some(preset) => Layers::of_preset(preset)?,
            None => Layers::of_file(&presets::read_file(&name)?, &name)?,
        };
        if layers.near.is_some() {
            let problem = format!("\"{name}\" has a near medium itself");
            let remedy = "name a machine of one medium, such as ddr4-2400";
            return Err(ConfigError::key(&place, NEAR_EXTENDS, problem, remedy));
        }
        let own = |key: &'static str| near::is_of_medium(key).then(|| &key[near::PREFIX.len()..]);
        for (key, setting) in &self.settings {
            if let Some(own) = own(key) {
                layers.assumed.remove(own);
                layers.settings.insert(own, setting.clone());
            }
        }
        for (key, assumed) in &self.assumed {
            if let Some(own) = own(key) {
                layers.assumed.insert(own, assumed.clone());
            }
        }
        let prefixed = |error: ConfigError| ConfigError {
            key: error.key.map(|key| format!("{}{key}", near::PREFIX)),
            ..error
        };
        layers.build().map(Some).map_err(prefixed)
    }

    /// Refuses a `key` that does nothing if a user has set it: by `--set`, or in a file of his own to another value
    /// than it has anyway. Presets and plans may set such keys, and `--set` may switch off a part that a file describes
    /// further.
    fn not_asked_for(&self, key: &'static Row, settings: &Settings) -> Result<()> {
        let (Some(setting), Some(needs)) = (self.settings.get(key.name), key.needs) else {
            return Ok(());
        };
        let is_set = |setting: &Setting| setting.place.file.starts_with(SET);
        let switched_off = || {
            let mut switches = needs
                .switches
                .iter()
                .filter_map(|name| self.settings.get(name));
            switches.any(is_set)
        };
        let own = setting.place.line.is_some() && presets::find(&setting.place.file).is_none();
        let differs = || {
            key.default
                .is_some_and(|(value, _)| settings.find(key.name) != Some(value))
        };
        match is_set(setting) || own && differs() && !switched_off() {
            true => Err(ConfigError::key(
                &setting.place,
                key.name,
                format!("does nothing unless {}", needs.what),
                format!("set {} as well, or leave it out", needs.switches[0]),
            )),
            false => Ok(()),
        }
    }

    fn doubted(&self, key: &'static Row, settings: &Settings) -> Option<Result<Assumed>> {
        // What does nothing is as if nobody had said anything of it.
        let idle = key.default.is_some() && !key.matters(settings);
        let is_set = self.settings.contains_key(key.name) && !idle;
        let stated = self.assumed.get(key.name).filter(|_| !idle);
        let default = match (is_set, key.default) {
            (false, Some((_, Origin::Assumed(why)))) => Some(why),
            _ => None,
        };
        let value = settings.find(key.name)?;
        if key.name == INGRESS && !is_set {
            return Some(Ok(derived_ingress(queue_entries(settings))));
        }
        let (why, range) = match (stated, default) {
            (Some((why, Some(range), place)), _) => {
                match ranges::of_file(key, value, range, place, settings) {
                    Ok(range) => (why.as_str(), Some(range)),
                    Err(error) => return Some(Err(error)),
                }
            }
            (Some((why, None, _)), _) => (why.as_str(), ranges::declared(key, value, settings)),
            (None, default) => (default?, ranges::declared(key, value, settings)),
        };
        Some(Ok(Assumed {
            parameter: key.name.to_owned(),
            value: write::literal(value),
            why: why.to_owned(),
            range,
        }))
    }

    /// Reports a fault of the values of `keys` together, at the key that the user wrote: the first one set by `--set`
    /// or by the file itself, else the first one.
    pub(super) fn fault(
        &self,
        keys: &[&str],
        problem: String,
        remedy: impl Into<String>,
    ) -> ConfigError {
        let settings = || {
            keys.iter()
                .filter_map(|key| Some((*key, self.settings.get(*key)?)))
        };
        let set = settings().find(|(_, setting)| setting.place.line.is_none());
        let own = || settings().find(|(_, setting)| *setting.place.file == *self.file);
        match set.or_else(own).or_else(|| settings().next()) {
            Some((key, setting)) => ConfigError::key(&setting.place, key, problem, remedy),
            None => ConfigError::file(&self.file, problem, remedy),
        }
    }

    fn missing(&self, key: &Row) -> ConfigError {
        let all = keys::all()
            .filter(|key| key.default.is_none() && key.name != INGRESS)
            .filter(|key| !self.settings.contains_key(key.name))
            .count();
        let others = match all - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        ConfigError {
            key: Some(key.name.to_owned()),
            ..ConfigError::file(
                &self.file,
                format!("is missing{others}"),
                "add it, or begin the file with extends = \"esd\" and restate what differs",
            )
        }
    }
}

fn stem(file: &str) -> String {
    let stem = std::path::Path::new(file).file_stem();
    stem.unwrap_or(file.as_ref()).to_string_lossy().into_owned()
}

/// The reads and data writes that the queues of all channels hold together, with those of commands.
fn queue_entries(settings: &Settings) -> u64 {
    let count = |key: &str| settings.named::<u64>(&format!("medium.{key}"));
    let (ranks, banks) = (count("geometry.ranks"), count("geometry.banks"));
    let commands = settings.get(&COMMANDS)
        * match settings.get(&COMMANDS_OF) {
            CommandsOf::Bank => ranks * banks,
            CommandsOf::Rank => ranks,
        };
    count("geometry.channels") * (count("queues.reads") + count("queues.writes") + commands)
}

/// At least the entries of `esd`: smaller queues stop requests themselves.
fn ingress(queued: u64) -> u64 {
    queued.clamp(LEAST_INGRESS, MAX_INGRESS)
}

fn derived_ingress(queued: u64) -> Assumed {
    let entries = ingress(queued);
    Assumed {
        parameter: INGRESS.to_owned(),
        value: entries.to_string(),
        why: "no source; as many as the queues hold together".to_owned(),
        range: Some(Range::Between {
            low: (entries / 4).max(1).to_string(),
            high: (entries * 4).min(MAX_INGRESS).to_string(),
            whole: true,
            why: format!("a quarter and four times; the queues of the medium hold {queued}"),
        }),
    }
}

fn has_starvation(settings: &Settings) -> bool {
    matches!(
        settings.named::<Scheduler>("medium.queues.scheduler"),
        Scheduler::FrFcfsCap { .. }
    )
}

/// Computes the value that `setting` gives `key`, within the key's range. If the key needs the memory's clock, `before`
/// has it.
fn checked(key: &Row, setting: &Setting, before: &Settings) -> Result<Value> {
    value(key, setting, before).map_err(|problem| {
        let name = setting.form.name(key);
        let remedy = format!("allowed: {}", key.kind.range());
        ConfigError::key(&setting.place, &name, problem, remedy)
    })
}

pub(super) fn value(key: &Row, setting: &Setting, before: &Settings) -> Result<Value, String> {
    let raw = &setting.raw;
    let fault_if = |bad: bool, fault: &str| match bad {
        true => Err(format!("{raw} {fault}")),
        false => Ok(()),
    };
    let not = |wanted: &str| format!("{raw} is not {wanted}");
    let whole = |wanted: &str| {
        let n = integer(raw, of_bytes(key, setting)).ok_or_else(|| not(wanted))?;
        fault_if(n < 0, "is negative").map(|()| n)
    };
    let real = |wanted: &str| {
        let n = number(raw).ok_or_else(|| not(wanted))?;
        fault_if(!n.is_finite(), "is not finite")?;
        fault_if(n < 0.0, "is negative").map(|()| n)
    };
    Ok(match key.kind {
        Allowed::Bool => match raw {
            Raw::Bool(flag) => Value::Bool(*flag),
            Raw::Bare(text) if text == "true" => Value::Bool(true),
            Raw::Bare(text) if text == "false" => Value::Bool(false),
            _ => return Err(not("true or false")),
        },
        Allowed::Word(words) => match raw {
            Raw::Text(text) | Raw::Bare(text) => {
                let known = words.iter().find(|word| *word == text);
                Value::Word(known.ok_or_else(|| format!("\"{text}\" is not one of its values"))?)
            }
            _ => return Err(not("a string")),
        },
        Allowed::Text { known, .. } => match raw {
            Raw::Text(text) | Raw::Bare(text) => Value::Word(
                known(text).ok_or_else(|| format!("\"{text}\" is not one of its values"))?,
            ),
            _ => return Err(not("a string")),
        },
        Allowed::Int { min, max } => {
            let mut n = whole("an integer")?;
            if setting.form == Form::Capacity {
                n /= bytes_of_a_row(before);
                fault_if(n == 0, "is less than a row of every bank")?;
            }
            fault_if(n < min.into() || n > max.into(), "is out of range")?;
            Value::Int(n as u64)
        }
        Allowed::PowerOfTwo { min, max } => {
            let n = whole("an integer")?;
            fault_if(n < min.into() || n > max.into(), "is out of range")?;
            fault_if(!(n as u64).is_power_of_two(), "is not a power of two")?;
            Value::Int(n as u64)
        }
        Allowed::Cycles { min } => {
            let clock: Time = before.named("medium.timing.clock_ns");
            let cycles = if setting.form == Form::Ns {
                let ns = real("a number of nanoseconds")?;
                fault_if(ns > MAX_LATENCY_PS as f64 / 1e3, "ns is more than 1 s")?;
                i128::from(Time::from_ns(ns).ps().div_ceil(clock.ps()))
            } else {
                whole("a whole number of cycles")?
            };
            fault_if(cycles < min.into(), "is too short")?;
            let too_many = format!("cycles of {clock} are more than 1 s");
            fault_if(cycles > i128::from(MAX_LATENCY_PS / clock.ps()), &too_many)?;
            Value::Int(cycles as u64)
        }
        Allowed::Ns { min_ps, max_ps } => {
            let ns = real("a number of nanoseconds")?;
            let outside = ns > max_ps as f64 / 1e3 || Time::from_ns(ns).ps() < min_ps;
            fault_if(outside, "is out of range")?;
            Value::Time(Time::from_ns(ns))
        }
        Allowed::Nj => {
            let nj = real("a number of nanojoules")?;
            fault_if(nj > MAX_ENERGY_NJ as f64, "is out of range")?;
            Value::Energy(Energy::from_nj(nj))
        }
    })
}

fn of_bytes(key: &Row, setting: &Setting) -> bool {
    setting.form == Form::Capacity || key.name.ends_with("bytes")
}

/// The bytes of one row in every bank of the medium.
fn bytes_of_a_row(before: &Settings) -> i128 {
    let parts = ["channels", "ranks", "banks", "columns"];
    let sizes = parts.map(|part| before.named::<u64>(&format!("medium.geometry.{part}")));
    LINE_BYTES as i128 * sizes.map(i128::from).iter().product::<i128>()
}

/// Converts an integer, of bytes also with a unit, as in 4K. One that does not fit is as good as the largest.
fn integer(raw: &Raw, of_bytes: bool) -> Option<i128> {
    let (digits, radix) = match raw {
        Raw::Integer(digits, radix) => (digits.clone(), *radix),
        Raw::Text(text) | Raw::Bare(text) if of_bytes && text.ends_with(char::is_alphabetic) => {
            return sizes::parse(text).map(i128::from);
        }
        Raw::Bare(text) => (text.replace('_', ""), 10),
        _ => return None,
    };
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
    if unsigned.is_empty() || !unsigned.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let huge = match digits.starts_with('-') {
        true => i128::MIN,
        false => i128::MAX,
    };
    Some(i128::from_str_radix(&digits, radix).unwrap_or(huge))
}

fn number(raw: &Raw) -> Option<f64> {
    match raw {
        Raw::Float(text) => text.parse().ok(),
        Raw::Bare(text) => text.replace('_', "").parse().ok(),
        Raw::Integer(..) => integer(raw, false).map(|n| n as f64),
        _ => None,
    }
}
