//! A check of groups against QEMU, for tests: with `SARDONYX_RECORDER_CHECK` in its environment, one-threaded code of
//! grouped accesses also has a callback for each of them. It compares the place, the size and the kind of the access
//! with the group's, the order and the number of the accesses, and whether the caches know of each store. The first
//! that differs ends the recording. The trace has a note of how many were checked.

use std::cell::Cell;
use std::ffi::{c_uint, c_void};

use super::access::size;
use super::api::{Block, MemInfo, NO_REGISTERS, api};
use super::plan::CallbackRequest;
use super::state::PluginState;
use super::threads::threaded;
use super::translate::on_access;
use super::{with, word};
use crate::group::{AccessGroup, Member};

pub const VARIABLE: &str = "SARDONYX_RECORDER_CHECK";

#[derive(Default)]
pub struct CheckCounts {
    accesses: u64,
    spared: u64,
    /// The number of runs of blocks, and of those that were left early.
    blocks: u64,
    left_early: u64,
}

impl CheckCounts {
    pub fn note(&self) -> String {
        format!(
            "checked {} accesses in {} runs of blocks, {} of them without a callback; {} blocks were left early",
            self.accesses, self.blocks, self.spared, self.left_early
        )
    }
}

/// A block: the number of its grouped accesses, and of those that have been seen in this run.
struct Expected {
    address: u64,
    accesses: usize,
    seen: Cell<usize>,
}

struct ExpectedPart {
    block: &'static Expected,
    member: Member,
    before: usize,
    /// The number of its group, if the group's place is kept, and the distance from there.
    group: Option<(usize, u64)>,
    leads: bool,
}

pub fn ask(block: Block, groups: &[AccessGroup]) {
    let mut parts = Vec::new();
    for (ordinal, group) in groups.iter().enumerate() {
        let kept = !group.is_plain();
        for (at, member) in group.members.iter().enumerate() {
            let from = member.access.distance.wrapping_sub(group.low);
            parts.push((*member, kept.then_some((ordinal, from)), at == 0));
        }
    }
    parts.sort_by_key(|part| part.0.insn);
    let each = |member: &Member| usize::from(member.loads) + usize::from(member.stores);
    let expected: &'static Expected = Box::leak(Box::new(Expected {
        address: (api().block_address)(block),
        accesses: parts.iter().map(|part| each(&part.0)).sum(),
        seen: Cell::new(0),
    }));
    let kept = std::ptr::from_ref(expected).cast_mut().cast();
    (api().on_block)(block, at_block, NO_REGISTERS, kept);
    let mut before = 0;
    for (member, group, leads) in parts {
        let part = Box::leak(Box::new(ExpectedPart {
            block: expected,
            member,
            before,
            group,
            leads,
        }));
        before += each(&member);
        let request = CallbackRequest {
            load: Some(at_access::<false>),
            store: Some(at_access::<true>),
            data: std::ptr::from_mut(part).cast(),
        };
        on_access((api().insn)(block, member.insn), request);
    }
}

extern "C" fn at_block(_: c_uint, data: *mut c_void) {
    // SAFETY: `ask` passes a value that lives on; only one thread uses it.
    let block = unsafe { &*data.cast::<Expected>() };
    with(|state| {
        if let Some(checked) = &mut state.checked {
            let seen = block.seen.get();
            checked.blocks += 1;
            checked.left_early += u64::from(seen != 0 && seen != block.accesses);
        }
    });
    block.seen.set(0);
}

extern "C" fn at_access<const STORE: bool>(
    _: c_uint,
    info: MemInfo,
    address: u64,
    data: *mut c_void,
) {
    // SAFETY: `ask` passes a value that lives on; only one thread uses it.
    let part = unsafe { &*data.cast::<ExpectedPart>() };
    if threaded() {
        return;
    }
    with(
        |state| match wrong(state, part, (size(info), STORE), address) {
            None => {
                part.block.seen.set(part.block.seen.get() + 1);
                if let Some(checked) = &mut state.checked {
                    checked.accesses += 1;
                    checked.spared += u64::from(!part.leads);
                }
            }
            Some(problem) => {
                eprintln!(
                    "sardonyx-recorder: instruction {} of the block at {:#x}: {problem} ({:?})",
                    part.member.insn, part.block.address, part.member
                );
                std::process::abort();
            }
        },
    );
}

fn wrong(
    state: &mut PluginState,
    part: &ExpectedPart,
    (size, store): (u64, bool),
    address: u64,
) -> Option<String> {
    let (member, seen) = (&part.member, part.block.seen.get());
    let Some(number) = seen.checked_sub(part.before) else {
        return Some(format!("access {seen} of the block, not {}", part.before));
    };
    let both = member.loads && member.stores;
    let due = match number {
        0 => !member.loads,
        1 if both => true,
        _ => return Some(format!("its access {number}, which is too many")),
    };
    if (size, store) != (u64::from(member.access.size), due) {
        return Some(format!("{size} bytes (store: {store})"));
    }
    // The leader's own load comes before its look.
    if let Some((ordinal, distance)) = part.group.filter(|_| !(part.leads && both && number == 0)) {
        let low = word::low_of(ordinal);
        let due = low.wrapping_add(distance);
        if address != due {
            return Some(format!("at {address:#x}, not {due:#x}"));
        }
    }
    for byte in [address, address + size - 1] {
        let line = state.line_at(byte);
        if store && !state.knows_store(line) {
            return Some(format!(
                "the caches know nothing of the store at {address:#x}"
            ));
        }
    }
    None
}
