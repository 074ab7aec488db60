//! What a design is: a stack of layers, `LOGGING/MAPPING+POLICY@INTEGRITY`; logging and integrity are left out where
//! there is none. Here are all layers, those of the files and those registered while the program runs, and the stacks
//! made of them.

use std::sync::{PoisonError, RwLock};

use super::encryption::pad::NEAR_KEY;
use super::encryption::{self, ENABLED, none};
use super::layers::{
    About, Counters, Design, Guarantee, Integrity, Logging, Mapping, Policy, PowerFail,
};
use super::near::Near;
use super::planted::{self, Plant};
use super::{Controller, integrity, logging, mapping};
use crate::mechanisms::{self, Mechanism};
use crate::medium::layout::Layout;
use crate::medium::near::{self, NearForm, NearTables, Writes};
use crate::medium::params::{self, Geometry, Unit};
use crate::medium::parts;
use crate::names::did_you_mean;
use crate::plan::Plan;
use crate::plan::start_gap::StartGap;
use crate::settings::{AnyKey, CacheKey, Settings};

/// The kinds of layers: the type, the module of its files, the plural, and the function that lists all of a kind.
macro_rules! kinds {
    ($($Kind:ident $room:ident $plural:literal $all:ident;)*) => {
        /// A layer of any kind.
        #[derive(Clone, Copy)]
        pub enum AnyLayer {
            $(#[doc = concat!("One of the ", $plural, ".")] $Kind(&'static $Kind),)*
        }

        impl AnyLayer {
            /// The plural of its kind, as in `mappings`.
            pub fn kind(self) -> &'static str {
                match self {
                    $(AnyLayer::$Kind(_) => $plural,)*
                }
            }

            /// What the layer declares about itself.
            pub fn about(self) -> &'static About {
                match self {
                    $(AnyLayer::$Kind(layer) => &layer.about,)*
                }
            }
        }

        /// The plural of each kind.
        pub const KINDS: [&str; [$($plural),*].len()] = [$($plural),*];

        /// All designs; those about a mapping come first, because designs differ most in their mappings, and those
        /// registered last.
        pub fn all() -> impl Iterator<Item = &'static Design> + Clone {
            let mut all: Vec<(&str, &Design)> = Vec::new();
            $(all.extend($room::FILES.iter().flat_map(|file| file.designs).map(|one| ($plural, one)));)*
            all.sort_by_key(|(kind, _)| *kind != "mappings");
            let own = NAMED.read().unwrap_or_else(PoisonError::into_inner);
            let built_in = all.into_iter().map(|(_, design)| design);
            built_in.chain(own.clone())
        }

        /// The layers that the files of this crate have, those of one kind together.
        pub fn built_in() -> impl Iterator<Item = AnyLayer> {
            std::iter::empty()
                $(.chain($room::FILES.iter().flat_map(|file| file.layers).map(AnyLayer::$Kind)))*
        }

        $(#[doc = concat!("All ", $plural, ".")]
        pub fn $all() -> impl Iterator<Item = &'static $Kind> {
            layers().filter_map(|layer| match layer {
                AnyLayer::$Kind(layer) => Some(layer),
                _ => None,
            })
        })*
    };
}

kinds! {
    Policy encryption "policies" policies;
    Mapping mapping "mappings" mappings;
    Logging logging "loggings" loggings;
    Integrity integrity "integrities" integrities;
}

static REGISTERED: RwLock<Vec<AnyLayer>> = RwLock::new(Vec::new());
static NAMED: RwLock<Vec<&Design>> = RwLock::new(Vec::new());

/// Registers a design whose layers are registered or built in.
pub fn name(design: &'static Design) {
    let mut named = NAMED.write().unwrap_or_else(PoisonError::into_inner);
    named.push(design);
}

/// Registers a layer, with its keys, that no file of this crate has.
pub fn register(layer: AnyLayer) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.push(layer);
}

/// The layers that have been registered.
pub fn registered() -> impl Iterator<Item = AnyLayer> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.clone().into_iter()
}

/// All layers: those of this crate's files and those registered.
pub fn layers() -> impl Iterator<Item = AnyLayer> {
    built_in().chain(registered())
}

fn abouts() -> impl Iterator<Item = &'static About> {
    layers().map(AnyLayer::about)
}

/// The keys of all layers; a key that layers share occurs as often as they list it.
pub fn keys() -> impl Iterator<Item = &'static dyn AnyKey> {
    abouts().flat_map(|about| about.keys).copied()
}

/// The caches among these keys.
pub fn caches() -> impl Iterator<Item = &'static CacheKey> {
    keys().filter_map(|key| key.cache())
}

/// The error that no such design exists, or that it cannot stand under the settings.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{} \"{name}\"{}: {remedy}", if under.is_empty() { "there is no design" } else { "the design" }, under)]
pub struct UnknownDesign {
    /// The settings under which the design cannot stand, if it exists.
    pub under: String,
    /// The name that was asked for.
    pub name: String,
    /// The names of the existing designs, as a remedy.
    pub remedy: String,
}

/// The layers of a design.
#[derive(Clone, Copy)]
pub struct Stack {
    /// The logging, on top.
    pub logging: &'static Logging,
    /// The mapping, below the logging.
    pub mapping: &'static Mapping,
    /// The encryption policy, below the mapping.
    pub policy: &'static Policy,
    /// The integrity, on the medium.
    pub integrity: &'static Integrity,
    /// What a cache before the medium does with writes; it passes all on where there is no cache.
    pub before: Writes,
    /// Whether the machine counts on a near medium after a power cut, and whether that medium has no counters to lose.
    pub near_survives: bool,
    /// Whether the near medium's lines lie there in clear.
    pub near_is_plain: bool,
    /// What is wrong on purpose, if anything is.
    pub planted: &'static dyn Plant,
}

impl Stack {
    /// The layers of the design called `name`, or of `LOGGING/MAPPING+POLICY@INTEGRITY`.
    ///
    /// # Errors
    /// There is no such design or layer.
    pub fn named(name: &str) -> Result<Stack, UnknownDesign> {
        let layers = || {
            let (name, planted) = planted::split(name)?;
            let (named, asked) = at(name);
            let design = all().find(|design| design.name == named);
            let (stack, own) = at(design.map_or(named, |design| design.stack));
            let integrity = asked.or(own).unwrap_or(integrity::DEFAULT);
            let (logging, rest) = stack.split_once('/').unwrap_or((logging::DEFAULT, stack));
            let (mapping, policy) = rest.split_once('+')?;
            Some(Stack {
                logging: loggings().find(|known| known.about.name == logging)?,
                mapping: mappings().find(|known| known.about.name == mapping)?,
                policy: policies().find(|known| known.about.name == policy)?,
                integrity: integrities().find(|known| known.about.name == integrity)?,
                before: Writes::Through,
                near_survives: false,
                near_is_plain: true,
                planted,
            })
        };
        layers().ok_or_else(|| unknown(name))
    }

    /// The layers of a design, as [`Stack::named`] gives them, if they can stand under `settings`.
    ///
    /// # Errors
    /// There is no such design or layer, or two of its layers do not fit.
    pub fn under(name: &str, settings: &Settings) -> Result<Stack, UnknownDesign> {
        let mut stack = Stack::named(name)?;
        if settings.get(&near::FORM) == NearForm::Cache {
            stack.before = settings.get(&near::WRITES);
        }
        stack.near_survives = near::counted_on(settings);
        stack.near_is_plain = settings.get(&near::DESIGN).0 == "no-encryption";
        let mut layout = Layout::new(1);
        if settings.get(&ENABLED) {
            (stack.policy.build)(settings, &mut layout);
        }
        if let Some(what) = stack.mapping.beside {
            layout.keep_beside(what);
        }
        let tables = settings.get(&near::TABLES);
        if tables != NearTables::None && stack.integrity.about.name != integrity::DEFAULT {
            return Err(UnknownDesign {
                under: " cannot stand with near.tables".to_owned(),
                name: name.into(),
                remedy:
                    "an integrity knows lines of the persistent medium alone: leave near.tables out"
                        .to_owned(),
            });
        }
        let policy = stack.policy.about.name;
        match integrity::fits(stack.integrity, policy, &layout, settings) {
            Ok(()) => Ok(stack),
            Err((under, remedy)) => Err(UnknownDesign {
                under: format!(" cannot stand with {under}"),
                name: name.into(),
                remedy,
            }),
        }
    }

    /// The layers from the top down.
    pub fn layers(&self) -> [AnyLayer; 4] {
        [
            AnyLayer::Logging(self.logging),
            AnyLayer::Mapping(self.mapping),
            AnyLayer::Policy(self.policy),
            AnyLayer::Integrity(self.integrity),
        ]
    }

    /// Builds a fresh controller over a fresh medium.
    pub fn build(&self, settings: &Settings, layout: &mut Layout) -> Controller {
        layout.lie_as(settings);
        layout.extend_data((self.logging.lines)(settings));
        let tables = settings.get(&near::TABLES);
        layout.reserve_near(matches!(tables, NearTables::Counters | NearTables::All));
        let below = match settings.get(&ENABLED) {
            true => (self.policy.build)(settings, layout),
            false => none::build(),
        };
        let below = self.planted.policy(below);
        layout.reserve_near(matches!(tables, NearTables::Mappings | NearTables::All));
        let mapping = (self.mapping.build)(settings, below, layout);
        let mapping = self.planted.mapping(mapping);
        layout.reserve_near(tables == NearTables::All);
        let top = (self.logging.build)(settings, mapping, layout);
        let top = self.planted.logging(top);
        layout.reserve_near(false);
        let guard = (self.integrity.build)(settings, layout);
        let guard = guard.map(|right| self.planted.guard(right, layout));
        let levelling = StartGap::from_settings(settings, layout);
        let near = near::settings(settings).map(|own| self.near(&own, settings, layout));
        Controller::new(top, guard, levelling).with_near(near)
    }

    /// What the integrity does on reserve power, in a layout in which it has been built; `None` without integrity.
    pub fn power_fail(&self, settings: &Settings, layout: &Layout) -> Option<Box<dyn PowerFail>> {
        let right = self.integrity.power_fail?(settings, layout);
        Some(self.planted.power_fail(right, layout))
    }

    /// The near medium of these `settings`, whose own are `own`, with its layers.
    fn near(&self, own: &Settings, settings: &Settings, far: &Layout) -> Near {
        let design = settings.get(&near::DESIGN).0;
        let stack = Stack::named(design).expect("a design that a near medium can have");
        let lines = Geometry::from_settings(own).lines();
        let mut own = own.clone();
        own.set(&NEAR_KEY, true);
        let controller = stack.build(&own, &mut Layout::new(lines));
        // A log's own lines follow the programs', and are no lines of programs.
        let far_lines = far.data_lines() - (self.logging.lines)(settings);
        Near::new(settings, controller, lines, far_lines, self.keeps_log())
    }

    /// Whether the hardware keeps a log, so that programs need none.
    pub fn keeps_log(&self) -> bool {
        self.logging.keeps_log
    }

    /// The promise that the design makes for a power cut.
    pub fn guarantee(&self) -> Guarantee {
        let own = (self.logging.guarantee)((self.mapping.guarantee)(self.policy.guarantee));
        match self.before {
            // Lines near are as safe as those of their own design.
            _ if self.near_survives && self.near_is_plain => own,
            _ if self.near_survives => Guarantee::Nothing,
            Writes::Through => own,
            Writes::Back if self.keeps_log() => own,
            Writes::Back => own.on_demand(),
            Writes::Stop => Guarantee::Nothing,
        }
    }

    /// Whether lines lie in the medium under pads.
    pub fn encrypts(&self, settings: &Settings) -> bool {
        self.policy.counters != Counters::None && settings.get(&ENABLED)
    }

    /// The bytes of a word, if words of a line that do not change may keep their ciphertext.
    pub fn keeps(&self, settings: &Settings) -> Option<usize> {
        let kept = self.policy.keeps.filter(|_| self.encrypts(settings));
        kept.map(|bytes| settings.get(bytes) as usize)
    }

    /// The mechanisms of the stack's layers that not every stack has.
    pub fn tries(&self) -> impl Iterator<Item = &'static Mechanism> {
        let own = self.layers().into_iter();
        own.flat_map(|layer| layer.about().tries.iter().copied().flatten().copied())
    }

    /// Whether the parameter named `key` matters to the design. A key that a layer declares, or of a unit that a layer
    /// names, matters only to stacks with such a layer.
    pub fn uses(&self, key: &str) -> bool {
        let of_unit = (key.strip_prefix("units.")).and_then(|key| key.split_once('.'));
        let names = |about: &About| {
            let mut declared = about.keys.iter().flat_map(|key| key.rows());
            let unit = |unit: &Unit| of_unit.is_some_and(|(name, _)| name == unit.name());
            declared.any(|row| row.name == key) || about.units.iter().any(unit)
        };
        self.layers().into_iter().map(AnyLayer::about).any(names) || !abouts().any(names)
    }
}

/// The mechanisms of machine and explorer, of parts of a machine, and of all layers.
pub fn mechanisms() -> Vec<&'static Mechanism> {
    let layers = abouts().flat_map(|about| about.tries.iter().copied().flatten());
    let mut all: Vec<&Mechanism> = Vec::new();
    let parts = parts::all().flat_map(|part| part.tries);
    let machine = mechanisms::MECHANISMS.iter().chain(params::MECHANISMS);
    for mechanism in machine.chain(parts).chain(layers) {
        if !all.contains(mechanism) {
            all.push(mechanism);
        }
    }
    all
}

/// Builds a fresh controller over a fresh medium.
///
/// # Errors
/// No design has that name.
pub fn build(
    name: &str,
    settings: &Settings,
    layout: &mut Layout,
) -> Result<Controller, UnknownDesign> {
    Ok(Stack::under(name, settings)?.build(settings, layout))
}

/// Builds a controller over a medium that already holds bytes, and knows nothing but those. `layout` is a fresh one of
/// the same size, so that every table lies where it lay.
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

/// The promise that the design called `name` makes for a power cut.
///
/// # Errors
/// No design has that name.
pub fn guarantee(name: &str) -> Result<Guarantee, UnknownDesign> {
    Ok(Stack::named(name)?.guarantee())
}

fn at(name: &str) -> (&str, Option<&str>) {
    let split = name.split_once('@');
    split.map_or((name, None), |(named, integrity)| (named, Some(integrity)))
}

fn unknown(name: &str) -> UnknownDesign {
    let remedy = if let Some((design, fault)) = name.split_once('!') {
        match planted::unknown(fault) {
            None => return unknown(design),
            Some(remedy) => remedy,
        }
    } else if name.contains(['+', '/', '@']) {
        let mut kinds: Vec<&str> = Vec::new();
        let mut said = String::new();
        for layer in layers() {
            let (kind, name) = (layer.kind(), layer.about().name);
            said += &match kinds.contains(&kind) {
                true => format!(", {name}"),
                false => format!("; the {kind} are {name}"),
            };
            kinds.push(kind);
        }
        format!("it would be LOGGING/MAPPING+POLICY@INTEGRITY, or MAPPING+POLICY{said}")
    } else {
        let names: Vec<&str> = all().map(|design| design.name).collect();
        let meant = did_you_mean(name, &names);
        let names = names.join(", ");
        format!("{meant}the designs are {names}, or MAPPING+POLICY as in esd+sca")
    };
    UnknownDesign {
        under: String::new(),
        name: name.into(),
        remedy,
    }
}
