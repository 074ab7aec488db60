//! Finding a key by its name, and the nearest names for one that is not known.
//! A timing `tRCD` is also known as `tRCD_ns`; both are one key.
//! Left out: what the keys are, which `keys` lists.

use super::keys::all;
use crate::names::nearest;
use crate::settings::{Allowed, Row};

/// The key of that name, and whether the name is its form in nanoseconds.
pub(super) fn find(name: &str) -> Option<(&'static Row, bool)> {
    all().find_map(|key| {
        if key.name == name {
            return Some((key, false));
        }
        let cycles = matches!(key.kind, Allowed::Cycles { .. });
        let in_ns = cycles && name.strip_suffix("_ns") == Some(key.name);
        in_ns.then_some((key, true))
    })
}

pub(super) fn first_of(name: &str) -> Option<&'static str> {
    let section = format!("{name}.");
    let names = all().map(|key| key.name);
    names.into_iter().find(|key| key.starts_with(&section))
}

/// Up to three known keys near `name`, the nearest first. They are near in spelling, or `name` is their last part
/// without its sections.
pub(super) fn nearest_keys(name: &str) -> Vec<&'static str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let mut near = nearest(name, all().map(|key| key.name));
    for known in all().filter(|key| key.split().1 == last) {
        if !near.contains(&known.name) {
            near.push(known.name);
        }
    }
    near.truncate(3);
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_section_is_found_by_the_last_part() {
        assert_eq!(nearest_keys("efit_bytes"), ["esd.efit_bytes"]);
        assert_eq!(nearest_keys("esd.efit_byte")[0], "esd.efit_bytes");
    }
}
