//! What QEMU is asked to call for each block that it translates.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use super::api::{ADD_U64, Block, Id, Insn, NO_REGISTERS, READS_AND_WRITES, READS_REGISTERS};
use super::plan::{self, Plan};
use super::state::State;
use super::threads::threaded;
use super::{access, counters, verify, with};
use crate::flow::{Flow, Use};
use crate::insn::{self, Kind, Turn};
use crate::options::Level;

pub extern "C" fn vcpu_begins(_: Id, vcpu: c_uint) {
    counters::begin(vcpu);
}

extern "C" fn count(vcpu: c_uint, instructions: *mut c_void) {
    counters::add(vcpu, instructions as u64);
}

pub extern "C" fn block(_: Id, block: Block) {
    with(|state| {
        let api = state.api;
        let insns = (api.insns)(block);
        if threaded() {
            (api.on_block)(block, count, NO_REGISTERS, insns as *mut c_void);
        } else {
            (api.count_block)(block, ADD_U64, counters::first().cast(), insns as u64);
        }
        if state.code.is_handler((api.block_address)(block)) {
            (api.on_block)(block, access::at_handler, READS_REGISTERS, null_mut());
        }
        let plain = match (state.options.level, threaded()) {
            (Level::Cpu, _) => access::at_core,
            (Level::Memory, false) => access::alone,
            (Level::Memory, true) => access::among_others,
        };
        let plan =
            (state.options.level == Level::Memory && !threaded()).then(|| planned(state, block));
        for i in 0..insns {
            let insn = (api.insn)(block, i);
            let decoded = insn::decode(bytes(state, insn), (api.insn_address)(insn));
            let kind = decoded.as_ref().map_or(Kind::Plain, insn::kind);
            let pc = (api.insn_address)(insn);
            let turn = decoded.as_ref().map_or(Turn::None, insn::turn);
            let locked = decoded.as_ref().is_some_and(insn::locked);
            let word = pc | if locked { access::LOCKED } else { 0 };
            let word = std::ptr::without_provenance_mut(word as usize);
            match (kind, decoded) {
                (Kind::Fence, _) => (api.on_insn)(insn, access::at_fence, NO_REGISTERS, word),
                (Kind::Mark, _) => {
                    (api.on_insn)(insn, access::at_mark, READS_REGISTERS, null_mut());
                }
                (Kind::Flush(code), Some(instruction)) => {
                    let kept = state.code.flush(code, instruction, pc);
                    let kept = std::ptr::from_ref(kept).cast_mut().cast();
                    (api.on_insn)(insn, access::at_flush, READS_REGISTERS, kept);
                }
                _ => {}
            }
            if let Some((plan, _)) = &plan
                && kind != Kind::NonTemporal
            {
                if let Some(one) = &plan[i] {
                    (api.on_access)(insn, one.callback, NO_REGISTERS, one.sides, one.data);
                }
                continue;
            }
            let sites = state.options.level == Level::Cpu && state.out.sites.is_some();
            let on_access = match (kind, sites, turn) {
                (Kind::NonTemporal, false, _) => access::past_caches,
                (Kind::NonTemporal, true, _) => access::past_caches_site,
                (_, true, Turn::Call) => access::at_call,
                (_, true, Turn::Return) => access::at_return,
                (_, true, Turn::None) => access::at_core_site,
                (_, false, _) => plain,
            };
            (api.on_access)(insn, on_access, NO_REGISTERS, READS_AND_WRITES, word);
        }
        if let (Some((_, groups)), Some(_)) = (&plan, &state.checked) {
            verify::ask(api, block, groups);
        }
    });
}

/// The instruction's bytes, which QEMU keeps until the block's callback returns.
fn bytes(state: &State, insn: Insn) -> &'static [u8] {
    let api = state.api;
    // SAFETY: QEMU says where they are and how many; nobody here keeps them longer.
    unsafe { std::slice::from_raw_parts((api.insn_data)(insn), (api.insn_size)(insn)) }
}

/// The callbacks of a block of one-threaded code.
fn planned(state: &mut State, block: Block) -> Plan {
    let api = state.api;
    let mut flow = Flow::default();
    let uses: Vec<Use> = (0..(api.insns)(block))
        .map(|i| {
            let insn = (api.insn)(block, i);
            flow.next(bytes(state, insn), (api.insn_address)(insn))
        })
        .collect();
    plan::plan(&mut state.code.lists, &uses, state.options.read_data)
}
