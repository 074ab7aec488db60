//! Finding a key by its name, and the nearest names for one that is not known.
//! A timing `tRCD` is also known as `tRCD_ns`; both are one key.
//! Left out: what the keys are, which `keys` lists.

use super::keys::all;
use crate::names::nearest;
use crate::settings::{Kind, Row};

/// The key of that name, and whether the name is its form in nanoseconds.
pub(super) fn find(name: &str) -> Option<(&'static Row, bool)> {
    all().find_map(|key| {
        if key.name == name {
            return Some((key, false));
        }
        let in_ns = matches!(key.kind, Kind::Cycles { .. })
            && name
                .strip_suffix("_ns")
                .is_some_and(|stem| stem == key.name);
        in_ns.then_some((key, true))
    })
}

/// Whether keys are grouped under `name`.
pub(super) fn is_section(name: &str) -> bool {
    first_of(name).is_some()
}

/// The first key of the section `name`.
pub(super) fn first_of(name: &str) -> Option<&'static str> {
    let inside = |key: &&'static Row| {
        key.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    all().find(inside).map(|key| key.name)
}

/// Up to three known keys near `name`, the nearest first: near as spelt, or as the last part of a
/// name whose sections were forgotten.
pub(super) fn nearest_keys(name: &str) -> Vec<&'static str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let mut near = nearest(name, all().map(|key| key.name));
    let tails = all()
        .filter(|key| key.split().1 == last)
        .map(|key| key.name);
    for known in tails {
        if !near.contains(&known) {
            near.push(known);
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
