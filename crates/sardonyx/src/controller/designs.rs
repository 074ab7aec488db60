//! The designs by name: each a composition of layers, one line each.
//! Source: the papers that the lines name.
//! Left out: what a design does, which its layers say.

use super::encryption::counter_mode::CounterMode;
use super::encryption::none::NoEncryption;
use super::mapping::dedup_sha1::DedupSha1;
use super::mapping::dewrite::Dewrite;
use super::mapping::esd::Esd;
use super::mapping::identity::Identity;
use super::params::ControllerParams;
use super::{Controller, Encryption};
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
    build: fn(&ControllerParams, &mut Layout) -> Controller,
}

#[rustfmt::skip]
static DESIGNS: &[Design] = &[
    Design { name: "baseline", source: "ESD (HPCA 2023), Baseline", line: "counter-mode encryption, no deduplication", build: baseline },
    Design { name: "dedup-sha1", source: "ESD (HPCA 2023), Dedup_SHA1", line: "full deduplication by SHA-1 over an index in the medium", build: dedup_sha1 },
    Design { name: "dewrite", source: "DeWrite (MICRO 2018)", line: "full deduplication by CRC-32 and comparison, encrypting ahead on a guess", build: dewrite },
    Design { name: "esd", source: "ESD (HPCA 2023)", line: "deduplication by the memory's own check bits, looked up on chip only", build: esd },
    Design { name: "no-encryption", source: "SCA (HPCA 2018)", line: "plaintext lines at their own places", build: no_encryption },
];

/// Every design.
pub fn all() -> &'static [Design] {
    DESIGNS
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
pub fn build(
    name: &str,
    params: &ControllerParams,
    layout: &mut Layout,
) -> Result<Controller, UnknownDesign> {
    match DESIGNS.iter().find(|design| design.name == name) {
        Some(design) => Ok((design.build)(params, layout)),
        None => Err(unknown(name)),
    }
}

/// A controller over a medium that already holds bytes: it knows nothing but those. `layout` is a
/// fresh one of the same size, so that every table lies where it lay.
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

fn unknown(name: &str) -> UnknownDesign {
    let names = || DESIGNS.iter().map(|design| design.name);
    let near = crate::config::nearest(name, names());
    let meant = near
        .first()
        .map(|near| format!("did you mean \"{near}\"? "));
    let known = names().collect::<Vec<_>>().join(", ");
    UnknownDesign {
        name: name.into(),
        remedy: format!("{}the designs are {known}", meant.unwrap_or_default()),
    }
}

fn encryption(params: &ControllerParams, layout: &mut Layout) -> Encryption {
    match params.encrypted {
        true => Box::new(CounterMode::new(&params.counter_mode, layout)),
        false => Box::new(NoEncryption),
    }
}

fn baseline(params: &ControllerParams, layout: &mut Layout) -> Controller {
    Box::new(Identity::new(encryption(params, layout)))
}

fn dedup_sha1(params: &ControllerParams, layout: &mut Layout) -> Controller {
    let below = encryption(params, layout);
    Box::new(DedupSha1::new(&params.dedup_sha1, below, layout))
}

fn dewrite(params: &ControllerParams, layout: &mut Layout) -> Controller {
    let below = encryption(params, layout);
    Box::new(Dewrite::new(&params.dewrite, below, layout))
}

fn esd(params: &ControllerParams, layout: &mut Layout) -> Controller {
    let below = encryption(params, layout);
    Box::new(Esd::new(&params.esd, below, layout))
}

fn no_encryption(_: &ControllerParams, _: &mut Layout) -> Controller {
    Box::new(Identity::new(Box::new(NoEncryption)))
}
