//! Machines: what a simulation runs on, read from TOML and checked before anything runs. A key is
//! declared where it is used (`settings`); [`keys`] lists them, and reading, checking, writing and the
//! flat map for reports all follow from that.
//! Left out: which designs exist (`controller` names them) and anything that runs.

mod check;
mod error;
mod foreign;
mod keys;
mod layers;
mod names;
mod presets;
mod ranges;
mod read;
mod reference;
mod write;

use crate::controller::encryption::counter_mode::{COUNTER_CACHE, COUNTER_CACHE_PER_CORE};
use crate::medium::near;
use crate::medium::params::{CachesParams, CoreParams, EngineParams, Unit, UnitParams};
use crate::settings::{Setting, Settings};

pub use error::{ConfigError, Result};
pub use keys::all as keys;
pub use presets::{Preset, all as presets};
pub use ranges::declared;

pub use reference::reference;
pub use write::document;

/// A value that no source gives, so that a report can mark what depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The key, as in `units.aes.energy_nj`.
    pub parameter: String,
    /// Its value as the machine file would write it.
    pub value: String,
    /// The reason for this value.
    pub why: String,
    /// The values that it may plausibly have instead; `None` where the machine's file does not say.
    pub range: Option<Range>,
}

/// The values that an assumed parameter may plausibly have instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// Anything between two values, as a machine's file would write them, and the value itself.
    Between {
        /// The least.
        low: String,
        /// The most.
        high: String,
        /// Whether only whole numbers are allowed.
        whole: bool,
        /// Why these limits, with the source where there is one.
        why: String,
    },
    /// The key's other words, as `--set` takes them.
    Others(Vec<String>),
    /// No other value can change a figure of a comparison, for this reason.
    Inert(String),
}

/// A validated machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The preset's or the file's name.
    pub name: String,
    /// Where its values come from.
    pub source: String,
    /// The medium, its queues and the on-chip units.
    pub engine: EngineParams,
    /// One core.
    pub core: CoreParams,
    /// How many cores.
    pub cores: usize,
    /// The caches above the controller, for what is simulated from the core down.
    pub caches: CachesParams,
    /// The value of every key; the fields above are made from them, and the controller's layers read them.
    pub settings: Settings,
    /// The values that no source gives, in the order of the keys.
    pub assumed: Vec<Assumed>,
}

impl Machine {
    /// The machine of a preset's name or of a file's path, with `key=value` overrides applied.
    ///
    /// # Errors
    /// [`ConfigError`] names the file, the line, the key, what is wrong with it and the remedy.
    pub fn load<K, V>(name_or_path: &str, overrides: &[(K, V)]) -> Result<Machine>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        Machine::load_planned(name_or_path, &[], overrides)
    }

    /// Loads a machine as [`Machine::load`] does, over the settings of a plan. Those may be of keys that do nothing.
    ///
    /// # Errors
    /// As [`Machine::load`].
    pub fn load_planned<K, V>(
        name_or_path: &str,
        planned: &[(String, String)],
        overrides: &[(K, V)],
    ) -> Result<Machine>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut layers = match presets::find(name_or_path) {
            Some(preset) => layers::Layers::of_preset(preset)?,
            None => {
                let text = presets::read_file(name_or_path)?;
                layers::Layers::of_file(&text, name_or_path)?
            }
        };
        for (key, value) in planned {
            layers.plan(key, value)?;
        }
        for (key, value) in overrides {
            layers.set(key.as_ref(), value.as_ref())?;
        }
        layers.build()
    }

    /// Whether the parameter `key` does anything on this machine; `false` for an unknown name.
    pub fn acts(&self, key: &str) -> bool {
        names::find(key).is_some_and(|(row, _)| row.matters(&self.settings))
    }

    /// The machine that `text` describes; `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Machine::load`].
    pub fn parse(text: &str, file: &str) -> Result<Machine> {
        layers::Layers::of_text(text, file)?.build()
    }

    /// The effective configuration, every key of it; [`Machine::parse`] gives the same machine back.
    pub fn to_toml(&self) -> String {
        write::toml(self)
    }

    /// Every key with its effective value: `{"cores": 1, "esd.efit_bytes": 524288, ...}`.
    pub fn parameters(&self) -> serde_json::Map<String, serde_json::Value> {
        write::parameters(self)
    }

    /// This machine with `cores` cores. Caches whose size is given for each core grow with the number, and so do units
    /// of which there is one a core.
    #[must_use]
    pub fn with_cores(&self, cores: usize) -> Machine {
        let mut machine = self.clone();
        machine.cores = cores;
        let settings = &mut machine.settings;
        settings.set(&keys::CORES, cores);
        let counters = (
            COUNTER_CACHE.bytes.row.name,
            COUNTER_CACHE_PER_CORE.row.name,
        );
        for (bytes, per_core) in [("caches.llc.bytes", "caches.llc.per_core"), counters] {
            if settings.named(per_core) {
                let one: u64 = settings.named(bytes);
                settings.put(bytes, (one * cores as u64).value());
                settings.put(per_core, false.value());
            }
        }
        machine.caches = CachesParams::from_settings(settings);
        for unit in Unit::ALL {
            let number = UnitParams::from_settings(unit, settings).number;
            machine.engine.units[unit as usize].number = number;
        }
        machine
    }

    /// Whether the parameter `key` does anything with the other parameters as they are, whatever runs.
    pub fn matters(&self, key: &str) -> bool {
        let row = keys::all().find(|row| row.name == key);
        row.is_none_or(|row| row.matters(&self.settings))
    }

    /// Lines that a near medium beside the persistent one adds to memory; 0 without one.
    pub fn near_lines(&self) -> u64 {
        let near = self.engine.near.as_ref();
        let near = near.filter(|_| self.settings.get(&near::FORM) == near::NearForm::Beside);
        near.map_or(0, |medium| {
            near::used(&self.settings, medium.geometry.lines())
        })
    }

    /// Bytes that the medium holds.
    pub fn capacity_bytes(&self) -> u64 {
        self.engine.medium.geometry.lines() * crate::line::LINE_BYTES as u64
    }
}

/// For fuzzing: bytes that pass as a machine must survive a round trip; none may panic.
///
/// # Panics
/// When an accepted machine does not come back from its own [`Machine::to_toml`].
pub fn fuzz_entry(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(machine) = Machine::parse(&text, "fuzz.toml") {
        let again = Machine::parse(&machine.to_toml(), "again.toml");
        assert_eq!(
            again.as_ref(),
            Ok(&machine),
            "an accepted machine must survive a round trip"
        );
    }
}
