//! Finding a key by its name, and the nearest names for one that is not known.
//! A timing `tRCD` is also known as `tRCD_ns`, and the rows of a bank as the capacity of the medium: both are one key.
//! Left out: what the keys are, which `keys` lists.

use super::keys::all;
use crate::medium::near::{PREFIX, is_of_medium};
use crate::names::nearest;
use crate::settings::{Allowed, Row};

/// What a value is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The key's own unit.
    Own,
    /// A timing in nanoseconds.
    Ns,
    /// The rows of a bank as bytes of the whole medium, so that they follow from the rest of the geometry.
    Capacity,
}

/// The key that also takes a capacity, and its name then.
pub(super) const ROWS: &str = "medium.geometry.rows";
pub(super) const CAPACITY: &str = "medium.geometry.capacity_bytes";

impl Form {
    /// The name under which a key takes values of this form.
    pub(super) fn name(self, key: &Row) -> String {
        match self {
            Form::Own => key.name.to_owned(),
            Form::Ns => format!("{}_ns", key.name),
            Form::Capacity => CAPACITY.to_owned(),
        }
    }
}

/// The key of that name, and the form of its values under it.
pub(super) fn find(name: &str) -> Option<(&'static Row, Form)> {
    all().find_map(|key| {
        if key.name == name {
            return Some((key, Form::Own));
        }
        if key.name == ROWS && name == CAPACITY {
            return Some((key, Form::Capacity));
        }
        let cycles = matches!(key.kind, Allowed::Cycles { .. });
        let in_ns = cycles && name.strip_suffix("_ns") == Some(key.name);
        in_ns.then_some((key, Form::Ns))
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
    // The near medium's keys are named like the others behind their prefix.
    let asked = name.starts_with(PREFIX);
    let known = || all().filter(move |key| asked || !is_of_medium(key.name));
    let mut near = nearest(name, known().map(|key| key.name));
    for known in known().filter(|key| key.split().1 == last) {
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
