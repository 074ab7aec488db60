//! What a design is: a stack of layers, `LOGGING/MAPPING+POLICY@INTEGRITY`, with the logging and the integrity
//! left out where there is none. Each layer is a value in its own file, which says all that anybody needs to
//! know of it; `mapping`, `encryption`, `logging` and `integrity` list the files. A design is a name for such
//! a stack. Left out: what a layer does, which its file says.

use std::sync::{PoisonError, RwLock};

use super::encryption::{self, ENABLED, none};
use super::mapping::amt::Entries;
use super::{Controller, Encryption, Top, integrity, logging, mapping};
use crate::figures::Figure;
use crate::line::{Line, Place};
use crate::mechanisms::Mechanism;
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::names::did_you_mean;
use crate::plan::Plan;
use crate::plan::guard::Guard;
use crate::settings::{AnyKey, CacheKey, Settings};

/// A named stack of layers.
#[derive(Debug)]
pub struct Design {
    /// Its name on the command line.
    pub name: &'static str,
    /// The paper that it comes from, or who thought of it.
    pub source: &'static str,
    /// What the design does, in a line.
    pub line: &'static str,
    /// `LOGGING/MAPPING+POLICY@INTEGRITY`.
    pub stack: &'static str,
}

/// What a file of layers exports.
pub struct File<L: 'static> {
    /// Its layers.
    pub layers: &'static [L],
    /// The designs that are about them.
    pub designs: &'static [Design],
}

/// Lists the files of a kind of layer: each exports one `FILE`.
macro_rules! files {
    ($layer:ident: $($file:ident)*) => {
        $(pub mod $file;)*

        /// What they export.
        pub static FILES: &[&$crate::controller::designs::File<$layer>] = &[$(&$file::FILE),*];
    };
}
pub(super) use files;

/// What a design promises of the lines that a power cut leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Every line reads as the last write of it that was accepted, or a later one.
    EveryLine,
    /// So does every line that the program's recovery relies on: those that were written
    /// counter-atomically, or flushed and their metadata written back, before a fence.
    AfterProgramRecovery,
    /// Nothing, though programs need the second.
    Nothing,
}

impl Guarantee {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Guarantee::EveryLine => "every line",
            Guarantee::AfterProgramRecovery => "after program recovery",
            Guarantee::Nothing => "nothing",
        }
    }

    /// What comes of it above a layer that persists on demand.
    pub fn on_demand(self) -> Guarantee {
        match self {
            Guarantee::Nothing => Guarantee::Nothing,
            _ => Guarantee::AfterProgramRecovery,
        }
    }
}

/// What every layer says of itself.
pub struct About {
    /// Its name in a stack.
    pub name: &'static str,
    /// The parameters that it declares, or shares with those of its file.
    pub keys: &'static [&'static dyn AnyKey],
    /// The on-chip units that it uses and not every layer of its kind.
    pub units: &'static [Unit],
    /// The figures that it counts: its own, and those that it shares.
    pub figures: &'static [&'static [&'static Figure]],
    /// What a power cut does to what it keeps, and what a recovery rebuilds.
    pub cut: &'static str,
    /// The mechanisms that it has, and not every stack: a run that has not used them proves nothing.
    pub tries: &'static [Mechanism],
}

/// A hardware log of old or new lines, over a mapping.
pub struct Logging {
    /// What every layer says.
    pub about: About,
    /// The lines that it keeps for itself, behind those of the programs.
    pub lines: fn(&Settings) -> u64,
    /// Builds it; a logging that is none gives the mapping back.
    pub build: fn(&Settings, Top, &mut Layout) -> Top,
    /// What it promises over a stack that promises that.
    pub guarantee: fn(Guarantee) -> Guarantee,
}

/// Where logical lines lie, and which of them share a place.
pub struct Mapping {
    /// What every layer says.
    pub about: About,
    /// Builds it.
    pub build: fn(&Settings, Encryption, &mut Layout) -> Top,
    /// What it promises over a policy that promises that.
    pub guarantee: fn(Guarantee) -> Guarantee,
    /// Where its lines lie, for who reads that from the medium's bytes.
    pub placement: fn(&Settings, &Layout) -> Placement,
}

/// What refuses lines of the medium that are not what was last written there.
pub struct Integrity {
    /// What every layer says.
    pub about: About,
    /// Builds it when all other regions of the layout are reserved; an integrity that is none builds nothing.
    pub build: fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>,
}

/// Where the lines of a mapping lie in a layout in which it has been built.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Each at its own place.
    Home,
    /// Where a table in the medium says.
    Table(Entries),
}

/// An encryption, and the policy of when its counters persist.
pub struct Policy {
    /// What every layer says.
    pub about: About,
    /// Builds it.
    pub build: fn(&Settings, &mut Layout) -> Encryption,
    /// What it promises.
    pub guarantee: Guarantee,
    /// Under which counters it encrypts.
    pub counters: Counters,
    /// How they lie in a layout in which it has been built, if they have lines of their own.
    pub counter_lines: fn(&Layout) -> Option<CounterLines>,
}

/// How encryption counters lie in the lines of a region of their own, for who reads them from the medium's
/// bytes: the line of a place's counter is that of its number divided by `per_line`.
#[derive(Clone, Debug)]
pub struct CounterLines {
    /// The region.
    pub region: Region,
    /// Places whose counters one line holds.
    pub per_line: u64,
    /// The 8-byte words of a line, a bit each, that counter number `0..per_line` of it is made of.
    pub words: fn(u64) -> u8,
    /// Counter number `0..per_line` of a line, read from the line's bytes; 0 is never written.
    pub counter: fn(&Line, u64) -> u64,
}

impl CounterLines {
    /// The line that has the counter of `place`, if that is a place of data.
    pub fn line_of(&self, place: Place) -> Option<Place> {
        let index = place.0 / self.per_line;
        (index < self.region.lines).then(|| self.region.line(index))
    }

    /// The counter of `place` in its line.
    pub fn counter_in(&self, line: &Line, place: Place) -> u64 {
        (self.counter)(line, place.0 % self.per_line)
    }

    /// The places whose counters hang on the words `words` of the line at `at`; none if that is not a line
    /// of counters.
    pub fn covered(&self, at: Place, words: u8) -> Vec<Place> {
        if !self.region.contains(at) {
            return Vec::new();
        }
        let first = (at.0 - self.region.first.0) * self.per_line;
        let covered = (0..self.per_line).filter(|number| (self.words)(*number) & words != 0);
        covered.map(|number| Place(first + number)).collect()
    }
}

/// The counters of an encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// It does not encrypt.
    None,
    /// Each line counts its own writes.
    PerLine,
    /// All lines draw from one.
    Global,
}

/// All designs.
pub fn all() -> impl Iterator<Item = &'static Design> + Clone {
    let mappings = mapping::FILES.iter().map(|file| file.designs);
    let policies = encryption::FILES.iter().map(|file| file.designs);
    let loggings = logging::FILES.iter().map(|file| file.designs);
    let integrities = integrity::FILES.iter().map(|file| file.designs);
    let of_files = mappings.chain(policies).chain(loggings).chain(integrities);
    of_files.flatten()
}

/// A layer of any kind.
#[derive(Clone, Copy)]
pub enum AnyLayer {
    /// On top.
    Logging(&'static Logging),
    /// Below it.
    Mapping(&'static Mapping),
    /// Below that.
    Policy(&'static Policy),
    /// On the medium.
    Integrity(&'static Integrity),
}

impl AnyLayer {
    /// What layers of its kind are called.
    pub fn kind(self) -> &'static str {
        match self {
            AnyLayer::Logging(_) => "Loggings",
            AnyLayer::Mapping(_) => "Mappings",
            AnyLayer::Policy(_) => "Policies",
            AnyLayer::Integrity(_) => "Integrity",
        }
    }

    /// What it says of itself.
    pub fn about(self) -> &'static About {
        match self {
            AnyLayer::Logging(layer) => &layer.about,
            AnyLayer::Mapping(layer) => &layer.about,
            AnyLayer::Policy(layer) => &layer.about,
            AnyLayer::Integrity(layer) => &layer.about,
        }
    }
}

/// Layers made known while the program runs.
static REGISTERED: RwLock<Vec<AnyLayer>> = RwLock::new(Vec::new());

/// Makes a layer known that no file of this crate has, and its keys.
pub fn register(layer: AnyLayer) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.push(layer);
}

/// The layers that the files of this crate have, those of one kind together: policies, mappings, loggings,
/// integrities.
pub fn built_in() -> impl Iterator<Item = AnyLayer> {
    let policies = encryption::FILES.iter().flat_map(|file| file.layers);
    let mappings = mapping::FILES.iter().flat_map(|file| file.layers);
    let loggings = logging::FILES.iter().flat_map(|file| file.layers);
    let integrities = integrity::FILES.iter().flat_map(|file| file.layers);
    (policies.map(AnyLayer::Policy))
        .chain(mappings.map(AnyLayer::Mapping))
        .chain(loggings.map(AnyLayer::Logging))
        .chain(integrities.map(AnyLayer::Integrity))
}

/// What has been registered.
pub fn registered() -> impl Iterator<Item = AnyLayer> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.clone().into_iter()
}

/// All layers: those, and what has been registered.
pub fn layers() -> impl Iterator<Item = AnyLayer> {
    built_in().chain(registered())
}

/// Lists the layers of one kind.
macro_rules! of_kind {
    ($($(#[$doc:meta])* $name:ident: $kind:ident)*) => {
        $($(#[$doc])*
        pub fn $name() -> impl Iterator<Item = &'static $kind> {
            layers().filter_map(|layer| match layer {
                AnyLayer::$kind(layer) => Some(layer),
                _ => None,
            })
        })*
    };
}

of_kind! {
    /// All loggings.
    loggings: Logging
    /// All mappings.
    mappings: Mapping
    /// All policies.
    policies: Policy
    /// All integrities.
    integrities: Integrity
}

fn abouts() -> impl Iterator<Item = &'static About> {
    layers().map(AnyLayer::about)
}

/// The keys of all layers; one that layers share comes as often as they list it.
pub fn keys() -> impl Iterator<Item = &'static dyn AnyKey> {
    abouts().flat_map(|about| about.keys).copied()
}

/// The caches among them.
pub fn caches() -> impl Iterator<Item = &'static CacheKey> {
    keys().filter_map(|key| key.cache())
}

/// There is no such design.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no design \"{name}\": {remedy}")]
pub struct UnknownDesign {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub remedy: String,
}

/// The layers of a stack.
#[derive(Clone, Copy)]
pub struct Stack {
    /// On top.
    pub logging: &'static Logging,
    /// Below it.
    pub mapping: &'static Mapping,
    /// Below that.
    pub policy: &'static Policy,
    /// On the medium.
    pub integrity: &'static Integrity,
}

impl Stack {
    /// That of a design, or of a `LOGGING/MAPPING+POLICY@INTEGRITY`.
    ///
    /// # Errors
    /// There is no such design or layer.
    pub fn named(name: &str) -> Result<Stack, UnknownDesign> {
        let layers = || {
            let (stack, integrity) = match name.split_once('@') {
                Some((named, integrity)) => (named, integrity),
                None => (name, integrity::DEFAULT),
            };
            let design = all().find(|design| design.name == stack);
            let stack = design.map_or(stack, |design| design.stack);
            let (logging, rest) = stack.split_once('/').unwrap_or((logging::DEFAULT, stack));
            let (mapping, policy) = rest.split_once('+')?;
            Some(Stack {
                logging: loggings().find(|known| known.about.name == logging)?,
                mapping: mappings().find(|known| known.about.name == mapping)?,
                policy: policies().find(|known| known.about.name == policy)?,
                integrity: integrities().find(|known| known.about.name == integrity)?,
            })
        };
        layers().ok_or_else(|| unknown(name))
    }

    /// Its layers, from the top down.
    pub fn layers(&self) -> [AnyLayer; 4] {
        [
            AnyLayer::Logging(self.logging),
            AnyLayer::Mapping(self.mapping),
            AnyLayer::Policy(self.policy),
            AnyLayer::Integrity(self.integrity),
        ]
    }

    /// A fresh controller over a fresh medium.
    pub fn build(&self, settings: &Settings, layout: &mut Layout) -> Controller {
        layout.lie_as(settings);
        layout.extend_data((self.logging.lines)(settings));
        let below = match settings.get(&ENABLED) {
            true => (self.policy.build)(settings, layout),
            false => none::build(),
        };
        let mapping = (self.mapping.build)(settings, below, layout);
        let top = (self.logging.build)(settings, mapping, layout);
        let guard = (self.integrity.build)(settings, layout);
        Controller::new(top, guard)
    }

    /// Whether its hardware keeps a log, so that programs need none.
    pub fn keeps_log(&self) -> bool {
        self.logging.about.name != logging::DEFAULT
    }

    /// What it promises.
    pub fn guarantee(&self) -> Guarantee {
        (self.logging.guarantee)((self.mapping.guarantee)(self.policy.guarantee))
    }

    /// The mechanisms that its layers have, and not every stack.
    pub fn tries(&self) -> impl Iterator<Item = Mechanism> {
        let own = self.layers().into_iter();
        own.flat_map(|layer| layer.about().tries).copied()
    }

    /// Whether the parameter named `key` matters to it: one that a layer declares, or of a unit that a
    /// layer names, matters only to stacks with such a layer.
    pub fn uses(&self, key: &str) -> bool {
        let names = |about: &About| {
            let declared = || about.keys.iter().flat_map(|key| key.rows());
            let unit = |unit: &Unit| key.starts_with(&format!("units.{}.", unit.name()));
            declared().any(|row| row.name == key) || about.units.iter().any(unit)
        };
        self.layers().into_iter().map(AnyLayer::about).any(names) || !abouts().any(names)
    }
}

/// A fresh controller over a fresh medium.
///
/// # Errors
/// No design has that name.
pub fn build(
    name: &str,
    settings: &Settings,
    layout: &mut Layout,
) -> Result<Controller, UnknownDesign> {
    Ok(Stack::named(name)?.build(settings, layout))
}

/// A controller over a medium that already holds bytes: it knows nothing but those. `layout` is a
/// fresh one of the same size, so that every table lies where it lay.
///
/// # Errors
/// No design has that name.
pub fn recover(
    name: &str,
    settings: &Settings,
    layout: &mut Layout,
    plan: &mut Plan,
) -> Result<Controller, UnknownDesign> {
    let mut controller = build(name, settings, layout)?;
    controller.recover(plan);
    controller.undo(plan);
    Ok(controller)
}

/// What the design promises.
///
/// # Errors
/// No design has that name.
pub fn guarantee(name: &str) -> Result<Guarantee, UnknownDesign> {
    Ok(Stack::named(name)?.guarantee())
}

fn unknown(name: &str) -> UnknownDesign {
    let remedy = if name.contains(['+', '/', '@']) {
        let names = |kind| {
            let of_kind = layers().filter(|layer| layer.kind() == kind);
            let names: Vec<_> = of_kind.map(|layer| layer.about().name).collect();
            names.join(", ")
        };
        format!(
            "it would be LOGGING/MAPPING+POLICY@INTEGRITY, or MAPPING+POLICY; the mappings are {}, the \
             policies {}, the loggings {}, the integrities {}",
            names("Mappings"),
            names("Policies"),
            names("Loggings"),
            names("Integrity"),
        )
    } else {
        let names: Vec<&str> = all().map(|design| design.name).collect();
        let meant = did_you_mean(name, &names);
        let names = names.join(", ");
        format!("{meant}the designs are {names}, or MAPPING+POLICY as in esd+sca")
    };
    UnknownDesign {
        name: name.into(),
        remedy,
    }
}
