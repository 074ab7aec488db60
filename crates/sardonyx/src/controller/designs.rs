//! What a design is: a stack of layers, `LOGGING/MAPPING+POLICY` with the logging left out where there
//! is none. Each layer is a value in its own file, which says all that anybody needs to know of it;
//! `mapping`, `encryption` and `logging` list the files. A design is a name for such a stack.
//! Left out: what a layer does, which its file says.

use super::encryption::{self, ENABLED, none};
use super::mapping::amt::Entries;
use super::{Controller, Encryption, Top, logging, mapping};
use crate::mechanisms::Mechanism;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::names::did_you_mean;
use crate::plan::Plan;
use crate::settings::{AnyKey, CacheKey, Settings};

/// A named stack of layers.
#[derive(Debug)]
pub struct Design {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it is.
    pub line: &'static str,
    /// `LOGGING/MAPPING+POLICY`.
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
    mappings.chain(policies).chain(loggings).flatten()
}

/// All loggings.
pub fn loggings() -> impl Iterator<Item = &'static Logging> + Clone {
    logging::FILES.iter().flat_map(|file| file.layers)
}

/// All mappings.
pub fn mappings() -> impl Iterator<Item = &'static Mapping> + Clone {
    mapping::FILES.iter().flat_map(|file| file.layers)
}

/// All policies.
pub fn policies() -> impl Iterator<Item = &'static Policy> + Clone {
    encryption::FILES.iter().flat_map(|file| file.layers)
}

fn abouts() -> impl Iterator<Item = &'static About> {
    let mappings = mappings().map(|layer| &layer.about);
    let policies = policies().map(|layer| &layer.about);
    policies
        .chain(mappings)
        .chain(loggings().map(|layer| &layer.about))
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
    /// On the medium.
    pub policy: &'static Policy,
}

impl Stack {
    /// That of a design, or of a `LOGGING/MAPPING+POLICY`.
    ///
    /// # Errors
    /// There is no such design or layer.
    pub fn named(name: &str) -> Result<Stack, UnknownDesign> {
        let design = all().find(|design| design.name == name);
        let layers = || {
            let stack = design.map_or(name, |design| design.stack);
            let (logging, rest) = stack.split_once('/').unwrap_or((logging::DEFAULT, stack));
            let (mapping, policy) = rest.split_once('+')?;
            Some(Stack {
                logging: loggings().find(|known| known.about.name == logging)?,
                mapping: mappings().find(|known| known.about.name == mapping)?,
                policy: policies().find(|known| known.about.name == policy)?,
            })
        };
        layers().ok_or_else(|| unknown(name))
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
        Controller::new((self.logging.build)(settings, mapping, layout))
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
        let own = [&self.logging.about, &self.mapping.about, &self.policy.about];
        own.into_iter().flat_map(|about| about.tries).copied()
    }

    /// Whether the parameter named `key` matters to it: one that a layer declares, or of a unit that a
    /// layer names, matters only to stacks with such a layer.
    pub fn uses(&self, key: &str) -> bool {
        let names = |about: &About| {
            let declared = || about.keys.iter().flat_map(|key| key.rows());
            let unit = |unit: &Unit| key.starts_with(&format!("units.{}.", unit.name()));
            declared().any(|row| row.name == key) || about.units.iter().any(unit)
        };
        let own = [&self.logging.about, &self.mapping.about, &self.policy.about];
        own.into_iter().any(names) || !abouts().any(names)
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
    let remedy = if name.contains(['+', '/']) {
        let mappings: Vec<_> = mappings().map(|known| known.about.name).collect();
        let policies: Vec<_> = policies().map(|known| known.about.name).collect();
        let loggings: Vec<_> = loggings().map(|known| known.about.name).collect();
        format!(
            "it would be LOGGING/MAPPING+POLICY, or MAPPING+POLICY; the mappings are {}, the policies \
             {}, the loggings {}",
            mappings.join(", "),
            policies.join(", "),
            loggings.join(", "),
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
