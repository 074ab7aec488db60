//! Which callbacks a block of one-threaded code gets.

use std::ffi::{c_uint, c_void};

use super::access;
use super::api::{OnAccess, READS_AND_WRITES, STORES};
use super::grouped;
use super::lists::Lists;
use super::word::{GROUPS, Parts, Word};
use crate::flow::Use;
use crate::group::{self, Group, Member};

/// A callback to ask for at an instruction.
pub struct Request {
    pub callback: OnAccess,
    pub sides: c_uint,
    pub data: *mut c_void,
}

/// See [`plan`].
pub type Plan = (Vec<Option<Request>>, Vec<Group>);

fn parts(ordinal: usize, group: &Group, open: u32) -> Parts {
    let stored = || group.members.iter().filter(|m| m.stores);
    let from = |m: &Member| m.access.distance.wrapping_sub(group.low) as u8;
    let first = stored().map(from).min();
    Parts {
        last: (group.span - 1) as u8,
        stored: first.zip(stored().map(|m| from(m) + m.access.size - 1).max()),
        first: from(&group.members[0]),
        ordinal: ordinal as u8,
        open,
    }
}

/// The callback of each instruction of a block, if it has one, and the block's groups. With `apart`, loads and stores of one instruction are looked
/// up apart.
pub fn plan(lists: &mut Lists, block: &[Use], apart: bool) -> Plan {
    let groups = match group::groups(block, apart) {
        groups if groups.len() <= GROUPS => groups,
        _ => Vec::new(),
    };
    match requests(lists, block.len(), &groups) {
        Some(requests) => (requests, groups),
        None => (
            (0..block.len()).map(|_| Some(plain())).collect(),
            Vec::new(),
        ),
    }
}

fn requests(lists: &mut Lists, insns: usize, groups: &[Group]) -> Option<Vec<Option<Request>>> {
    let mut grouped = vec![false; insns];
    for member in groups.iter().flat_map(|group| &group.members) {
        grouped[member.insn] = true;
    }
    let mut led: Vec<(usize, Word)> = Vec::new();
    let mut rest = groups.iter().enumerate().peekable();
    let mut requests = Vec::new();
    for (insn, grouped) in grouped.into_iter().enumerate() {
        let open: Vec<Word> = led
            .iter()
            .filter(|(last, _)| insn <= *last)
            .map(|(_, group)| *group)
            .collect();
        let number = lists.number(&open)?;
        let alone = |(callback, sides): (OnAccess, c_uint)| Request {
            callback,
            sides,
            data: std::ptr::without_provenance_mut(number as usize),
        };
        let here = rest.next_if(|(_, group)| group.members[0].insn == insn);
        requests.push(match here {
            None if grouped => None,
            None => Some(alone((access::alone, READS_AND_WRITES))),
            Some((ordinal, group)) => {
                let first = group.members[0];
                if group.members.len() == 1 && first.access.parts() == 1 {
                    Some(alone(access::one(first)))
                } else {
                    let word = Word::new(parts(ordinal, group, number));
                    if let Some(last) = group.last_store() {
                        led.push((last, word));
                    }
                    let (callback, sides): (OnAccess, c_uint) = match first {
                        Member { access, .. } if access.parts() > 1 => {
                            (grouped::at_first_part, READS_AND_WRITES)
                        }
                        Member {
                            loads: true,
                            stores: true,
                            ..
                        } => (grouped::at_first_store, STORES),
                        _ => (grouped::at_first, READS_AND_WRITES),
                    };
                    Some(Request {
                        callback,
                        sides,
                        data: word.data(),
                    })
                }
            }
        });
    }
    Some(requests)
}

/// The callback of whatever QEMU says.
fn plain() -> Request {
    Request {
        callback: access::alone,
        sides: READS_AND_WRITES,
        data: std::ptr::null_mut(),
    }
}
