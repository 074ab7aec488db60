//! The guards between all layers and the medium, which refuse lines that are not what was last written. Left out: the
//! layers above, which need not know of a guard ([`crate::plan::guard`]).

mod bmt;
mod counter_tree;
mod guarded;
mod keyed;
mod levels;
mod macs;
mod root;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sgx;
mod tree;
mod versions;

pub use macs::{MAC_PLACE, MacPlace, REGION as MACS, VERIFY, Verify};
pub use versions::{FIRST_VERSION, LEAVES, Leaves, MINOR_BITS};

use super::layers::{Integrity, files};
use crate::medium::layout::Layout;
use crate::settings::Settings;

/// The integrity of a stack that names none.
pub const DEFAULT: &str = none::NAME;

files! { Integrity: none mac merkle bonsai supermem osiris triad anubis plp sgx asit phoenix star scue bmf }

/// Checks that an integrity can stand below the layers that `layout` was reserved for. If it cannot, the error names
/// the setting and the remedy.
///
/// # Errors
/// It cannot.
pub fn fits(
    integrity: &Integrity,
    policy: &str,
    layout: &Layout,
    settings: &Settings,
) -> Result<(), (&'static str, String)> {
    let has = |name: &str| {
        let mut rows = integrity.about.keys.iter().flat_map(|key| key.rows());
        rows.any(|row| row.name == name)
    };
    if settings.get(&MAC_PLACE) == MacPlace::Beside && integrity.about.name != DEFAULT {
        let under = "integrity.mac_place=beside";
        let region = "integrity.mac_place=region";
        if !has(MAC_PLACE.name()) {
            let name = integrity.about.name;
            let remedy =
                format!("{name} needs the MACs in a region; take another scheme, or {region}");
            return Err((under, remedy));
        }
        if let Some(what) = layout.beside() {
            let remedy = format!("what lies beside a line is {what}; take {region}");
            return Err((under, remedy));
        }
    }
    let counters = layout.counters();
    if counters.is_some_and(|counters| counters.groups_lines) && !integrity.settles_groups {
        let name = integrity.about.name;
        let remedy = format!(
            "{policy} writes many lines in one group, and {name} would write a line of MACs there for each; take \
             bonsai, osiris, plp or phoenix, or fca"
        );
        return Err(("counters that lines share", remedy));
    }
    // Without freshness there is no tree that could stand over anything.
    if settings.get(&LEAVES) == Leaves::OwnVersions || !integrity.promises.replay {
        return Ok(());
    }
    let under = "integrity.leaves=counters";
    let own = "integrity.leaves=own-versions";
    if !has(LEAVES.name()) {
        let name = integrity.about.name;
        let remedy = format!(
            "{name} has a tree over something else; take bonsai, bonsai-lazy, bonsai-lazy-sound, supermem, triad or \
             plp, or {own}"
        );
        return Err((under, remedy));
    }
    let why = match counters {
        Some(counters) if counters.persist => return Ok(()),
        Some(_) => {
            "does not persist each counter with its line, and no tree can tell a line whose counter is lost from a forged one"
        }
        None => "has no counters in lines of their own",
    };
    Err((
        under,
        format!("{policy} {why}; take fca or split, or {own}"),
    ))
}
