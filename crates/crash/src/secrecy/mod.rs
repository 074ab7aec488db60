//! The oracle of secrecy. A pad is what lies in the medium XOR the content that was asked for, so it follows from the
//! bytes, whatever a design says of its counters. Two contents under one pad give each other away to whoever has both.
//! Secrecy is checked apart from recoverability: a design that recovers may still use a pad twice.
//!
//! A pad counts as used when its ciphertext has reached the array; encryptions that were merged in a queue, wasted or
//! dropped do not count. Words of eight bytes count singly; pieces of four count by their number (`chance`). A design may
//! say that parts of a line keep their ciphertext while they do not change: an observer then knows which did not, and that
//! is not a violation; one pad with two contents is one. [`crate::pads`] finds pads that recur, `exposed` what lies in
//! clear, and `repeat` what another key, place, counter or content would change.

pub(crate) mod exposed;
pub(crate) mod repeat;
pub(crate) mod widths;

use std::cell::RefCell;

use crate::history::History;
use crate::violation::Violation;

pub use crate::probes::Looked;
pub use widths::Widths;

/// Finds what a run gives away without any cut, its lines that hold another's content, and what its log fails to undo.
/// `widths` gets the most changes of a word in each region that an integrity writes.
pub fn within(history: &History, looked: &Looked, widths: &RefCell<Widths>) -> Vec<Violation> {
    let mut found = Vec::new();
    if history.life == 1 {
        found.extend(repeat::contents(history, looked));
        found.extend(repeat::twins(history));
        found.extend(repeat::undone(history));
        found.extend(repeat::shared(history, looked));
        found.extend(repeat::churned(history, looked));
        found.extend(repeat::endured(history, looked));
        found.extend(repeat::versions(history));
        found.extend(repeat::spliced(history));
        found.extend(widths::of_macs(history, widths));
    }
    if !history.is_encrypted() {
        return found;
    }
    found.extend(history.pads.within());
    found.extend(exposed::in_clear(history));
    if history.life == 1 {
        found.extend(repeat::with_less(history, &looked.masked));
    }
    found
}
