//! Plans the callbacks of a block of one-threaded code.

use std::ffi::c_void;

use super::access;
use super::api::OnAccess;
use super::grouped;
use super::lists::GroupLists;
use super::word::{GROUPS, Parts, Word};
use crate::flow::Use;
use crate::group::{self, AccessGroup, Member};

/// The callbacks to request at an instruction: for its loads and for its stores.
#[derive(Clone, Copy)]
pub struct CallbackRequest {
    pub load: Option<OnAccess>,
    pub store: Option<OnAccess>,
    pub data: *mut c_void,
}

pub type CallbackPlan = (Vec<Option<CallbackRequest>>, Vec<AccessGroup>);

fn parts(ordinal: usize, group: &AccessGroup, open: u32) -> Parts {
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

/// The callbacks of each instruction of a block, if it has any, and the block's groups. With `apart`, loads and stores
/// of one instruction are looked up separately.
pub fn plan(lists: &mut GroupLists, block: &[Use], apart: bool) -> CallbackPlan {
    let groups = match group::groups(block, apart) {
        groups if groups.len() <= GROUPS => groups,
        _ => Vec::new(),
    };
    match requests(lists, block.len(), &groups) {
        Some(requests) => (requests, groups),
        None => (vec![Some(plain()); block.len()], Vec::new()),
    }
}

fn requests(
    lists: &mut GroupLists,
    insns: usize,
    groups: &[AccessGroup],
) -> Option<Vec<Option<CallbackRequest>>> {
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
        let data = std::ptr::without_provenance_mut(number as usize);
        let here = rest.next_if(|(_, group)| group.members[0].insn == insn);
        requests.push(match here {
            None if grouped => None,
            None => Some(CallbackRequest { data, ..plain() }),
            Some((ordinal, group)) => {
                let first = group.members[0];
                let (callback, data): (OnAccess, _) = if group.is_plain() {
                    (access::one(first), data)
                } else {
                    let word = Word::new(parts(ordinal, group, number));
                    if let Some(last) = group.last_store() {
                        led.push((last, word));
                    }
                    (grouped::at_first, word.data())
                };
                // An instruction that loads and then stores is looked up at the store.
                Some(CallbackRequest {
                    load: Some(callback).filter(|_| !first.stores),
                    store: Some(callback).filter(|_| first.stores),
                    data,
                })
            }
        });
    }
    Some(requests)
}

fn plain() -> CallbackRequest {
    CallbackRequest {
        load: Some(access::alone::<false>),
        store: Some(access::alone::<true>),
        data: std::ptr::null_mut(),
    }
}
