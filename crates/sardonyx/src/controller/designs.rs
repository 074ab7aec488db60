//! The designs by name: each a mapping over an encryption policy, one line each; and any other
//! pair as `MAPPING+POLICY`. Source: the papers that the lines name.
//! Left out: what a design does, which its layers say.

use super::encryption::co_located::CoLocated;
use super::encryption::counter_mode::{Atomicity, CounterMode};
use super::encryption::none::NoEncryption;
use super::mapping::amt::Entries;
use super::mapping::esd::Esd;
use super::mapping::identity::Identity;
use super::mapping::{dedup_sha1, dewrite};
use super::params::{ControllerParams, CounterModeParams, Reclaim};
use super::{Controller, Encryption, Top};
use crate::medium::layout::Layout;
use crate::plan::Plan;

/// A named composition.
#[derive(Debug)]
pub struct Design {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it is.
    pub line: &'static str,
    mapping: &'static str,
    policy: &'static str,
}

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
}

/// A mapping, under its name in `MAPPING+POLICY`.
struct Mapping {
    name: &'static str,
    build: fn(&ControllerParams, Encryption, &mut Layout) -> Top,
    /// What it promises if the policy below promises that.
    guarantee: fn(Guarantee) -> Guarantee,
}

/// An encryption and the policy of when its counters persist.
struct Policy {
    name: &'static str,
    build: fn(&CounterModeParams, &mut Layout) -> Encryption,
    guarantee: Guarantee,
}

#[rustfmt::skip]
static MAPPINGS: &[Mapping] = &[
    Mapping { name: "identity", build: |_, below, _| Box::new(Identity::new(below)), guarantee: |below| below },
    Mapping { name: "dedup-sha1", build: |p, below, layout| Box::new(dedup_sha1::new(&p.dedup_sha1, false, below, layout)), guarantee: on_demand },
    Mapping { name: "dewrite", build: |p, below, layout| Box::new(dewrite::new(&p.dewrite, false, below, layout)), guarantee: on_demand },
    Mapping { name: "dedup-sha1-sound", build: |p, below, layout| Box::new(dedup_sha1::new(&p.dedup_sha1, true, below, layout)), guarantee: |below| below },
    Mapping { name: "dewrite-sound", build: |p, below, layout| Box::new(dewrite::new(&p.dewrite, true, below, layout)), guarantee: |below| below },
    Mapping { name: "esd", build: |p, below, layout| Box::new(Esd::new(&p.esd, below, layout)), guarantee: on_demand },
    Mapping { name: "esd-as-published", build: |p, below, layout| Box::new(Esd::as_published(&p.esd, below, layout)), guarantee: |_| Guarantee::Nothing },
    Mapping { name: "esd-sound", build: |p, below, layout| Box::new(Esd::sound(&p.esd, below, layout)), guarantee: |below| below },
];

#[rustfmt::skip]
static POLICIES: &[Policy] = &[
    Policy { name: "no-encryption", build: |_, _| Box::new(NoEncryption), guarantee: Guarantee::EveryLine },
    Policy { name: "per-line", build: |p, layout| Box::new(CounterMode::per_line(p, layout)), guarantee: Guarantee::AfterProgramRecovery },
    Policy { name: "ideal", build: |p, layout| Box::new(CounterMode::global(p, Atomicity::Free, layout)), guarantee: Guarantee::EveryLine },
    Policy { name: "co-located", build: |p, layout| Box::new(CoLocated::new(p, layout)), guarantee: Guarantee::EveryLine },
    Policy { name: "co-located-cc", build: |p, layout| Box::new(CoLocated::cached(p, layout)), guarantee: Guarantee::EveryLine },
    Policy { name: "fca", build: |p, layout| Box::new(CounterMode::global(p, Atomicity::Every, layout)), guarantee: Guarantee::EveryLine },
    Policy { name: "sca", build: |p, layout| Box::new(CounterMode::global(p, Atomicity::Marked, layout)), guarantee: Guarantee::AfterProgramRecovery },
    Policy { name: "no-atomicity", build: |p, layout| Box::new(CounterMode::global(p, Atomicity::Never, layout)), guarantee: Guarantee::Nothing },
];

#[rustfmt::skip]
static DESIGNS: &[Design] = &[
    Design { name: "baseline", source: "ESD (HPCA 2023), Baseline", line: "counter-mode encryption, no deduplication", mapping: "identity", policy: "per-line" },
    Design { name: "dedup-sha1", source: "ESD (HPCA 2023), Dedup_SHA1", line: "full deduplication by SHA-1 over an index in the medium", mapping: "dedup-sha1", policy: "per-line" },
    Design { name: "dewrite", source: "DeWrite (MICRO 2018)", line: "full deduplication by CRC-32 and comparison, encrypting ahead on a guess", mapping: "dewrite", policy: "per-line" },
    Design { name: "dedup-sha1-sound", source: "ESD (HPCA 2023), Dedup_SHA1, made to survive a power cut", line: "dedup-sha1 that compares, persists mappings with their lines and makes its index anew", mapping: "dedup-sha1-sound", policy: "fca" },
    Design { name: "dewrite-sound", source: "DeWrite (MICRO 2018), made to survive a power cut", line: "dewrite that persists mappings with their lines and makes its index anew", mapping: "dewrite-sound", policy: "fca" },
    Design { name: "esd", source: "ESD (HPCA 2023)", line: "deduplication by the memory's own check bits, looked up on chip only", mapping: "esd-as-published", policy: "per-line" },
    Design { name: "esd-sound", source: "ESD (HPCA 2023), made to survive a power cut", line: "esd whose mappings persist with the lines that they describe", mapping: "esd-sound", policy: "fca" },
    Design { name: "no-encryption", source: "SCA (HPCA 2018)", line: "plaintext lines at their own places", mapping: "identity", policy: "no-encryption" },
    Design { name: "ideal", source: "SCA (HPCA 2018), Ideal", line: "counter mode whose counters survive a power cut at no cost", mapping: "identity", policy: "ideal" },
    Design { name: "co-located", source: "SCA (HPCA 2018), Co-located", line: "each counter beside its line on a 72-bit bus, decrypted after the read", mapping: "identity", policy: "co-located" },
    Design { name: "co-located-cc", source: "SCA (HPCA 2018), Co-located w/ C-Cache", line: "the same with a counter cache, whose miss fetches the line again", mapping: "identity", policy: "co-located-cc" },
    Design { name: "fca", source: "SCA (HPCA 2018), FCA", line: "every write persists with its counter or not at all", mapping: "identity", policy: "fca" },
    Design { name: "sca", source: "SCA (HPCA 2018)", line: "marked writes persist with their counters, the rest on demand", mapping: "identity", policy: "sca" },
    Design { name: "no-atomicity", source: "SCA (HPCA 2018), what a naive system does", line: "counters persist when the counter cache evicts them", mapping: "identity", policy: "no-atomicity" },
];

/// Every named design.
pub fn all() -> &'static [Design] {
    DESIGNS
}

/// What comes of a mapping that persists on demand.
fn on_demand(below: Guarantee) -> Guarantee {
    match below {
        Guarantee::Nothing => Guarantee::Nothing,
        _ => Guarantee::AfterProgramRecovery,
    }
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

/// A fresh controller over a fresh medium.
///
/// # Errors
/// No design has that name.
pub fn build(
    name: &str,
    params: &ControllerParams,
    layout: &mut Layout,
) -> Result<Controller, UnknownDesign> {
    let (mapping, policy) = parts(name)?;
    let below = match params.encrypted {
        true => (policy.build)(&params.counter_mode, layout),
        false => Box::new(NoEncryption),
    };
    Ok(Controller::new((mapping.build)(params, below, layout)))
}

/// A controller over a medium that already holds bytes: it knows nothing but those. `layout` is a
/// fresh one of the same size, so that every table lies where it lay.
///
/// # Errors
/// No design has that name.
pub fn recover(
    name: &str,
    params: &ControllerParams,
    layout: &mut Layout,
    plan: &mut Plan,
) -> Result<Controller, UnknownDesign> {
    let mut controller = build(name, params, layout)?;
    controller.recover(plan);
    Ok(controller)
}

/// What the design promises.
///
/// # Errors
/// No design has that name.
pub fn guarantee(name: &str) -> Result<Guarantee, UnknownDesign> {
    let (mapping, policy) = parts(name)?;
    Ok((mapping.guarantee)(policy.guarantee))
}

/// The mapping and the policy of a name.
///
/// # Errors
/// No design has that name.
pub fn composition(name: &str) -> Result<(&'static str, &'static str), UnknownDesign> {
    let (mapping, policy) = parts(name)?;
    Ok((mapping.name, policy.name))
}

/// How the mapping table of a design lies in `layout`, in which it has been built; `None` if every
/// line lies at its own place, or nobody has said how to read its table from the bytes.
///
/// # Errors
/// No design has that name.
pub fn mapping_table(
    name: &str,
    params: &ControllerParams,
    layout: &Layout,
) -> Result<Option<Entries>, UnknownDesign> {
    let (mapping, _) = parts(name)?;
    let counted = match mapping.name {
        "esd" | "esd-as-published" | "esd-sound" => params.esd.reclaim == Reclaim::Counted,
        "dedup-sha1" | "dedup-sha1-sound" | "dewrite" | "dewrite-sound" => false,
        _ => return Ok(None),
    };
    Ok(Entries::of(counted, layout))
}

fn parts(name: &str) -> Result<(&'static Mapping, &'static Policy), UnknownDesign> {
    let named = DESIGNS.iter().find(|design| design.name == name);
    let pair = named.map(|design| (design.mapping, design.policy));
    let Some((mapping, policy)) = pair.or_else(|| name.split_once('+')) else {
        return Err(unknown(name));
    };
    let mapping = MAPPINGS.iter().find(|known| known.name == mapping);
    let policy = POLICIES.iter().find(|known| known.name == policy);
    mapping.zip(policy).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> UnknownDesign {
    if name.contains('+') {
        let mappings: Vec<&str> = MAPPINGS.iter().map(|known| known.name).collect();
        let policies: Vec<&str> = POLICIES.iter().map(|known| known.name).collect();
        return UnknownDesign {
            name: name.into(),
            remedy: format!(
                "it would be MAPPING+POLICY; the mappings are {}, the policies {}",
                mappings.join(", "),
                policies.join(", ")
            ),
        };
    }
    let names = || DESIGNS.iter().map(|design| design.name);
    let near = crate::names::nearest(name, names());
    let meant = near
        .first()
        .map(|near| format!("did you mean \"{near}\"? "));
    let known = names().collect::<Vec<_>>().join(", ");
    UnknownDesign {
        name: name.into(),
        remedy: format!(
            "{}the designs are {known}, or MAPPING+POLICY as in esd+sca",
            meant.unwrap_or_default()
        ),
    }
}
