//! The callbacks that QEMU is asked for, for each block that it translates.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use super::api::{
    ADD_U64, Block, Id, Insn, LOADS, NO_REGISTERS, OnAccess, OnExec, READS_REGISTERS, STORES, api,
};
use super::plan::{self, CallbackPlan, CallbackRequest};
use super::state::PluginState;
use super::threads::threaded;
use super::{access, counters, guest, verify, with};
use crate::flow::{Flow, Use};
use crate::insn::{self, InstructionKind, Turn};
use crate::options::Level;

const LONGEST: usize = 15;

pub extern "C" fn vcpu_begins(_: Id, vcpu: c_uint) {
    access::find_registers();
    counters::begin(vcpu);
}

extern "C" fn count(vcpu: c_uint, instructions: *mut c_void) {
    counters::add(vcpu, instructions as u64);
}

pub fn on_access(insn: Insn, CallbackRequest { load, store, data }: CallbackRequest) {
    for (callback, side) in [(load, LOADS), (store, STORES)] {
        if let Some(callback) = callback {
            (api().on_access)(insn, callback, NO_REGISTERS, side, data);
        }
    }
}

pub extern "C" fn block(_: Id, block: Block) {
    with(|state| {
        let insns = (api().insns)(block);
        if threaded() {
            (api().on_block)(block, count, NO_REGISTERS, insns as *mut c_void);
        } else {
            (api().count_block)(block, ADD_U64, counters::alone(), insns as u64);
        }
        let start = (api().block_address)(block);
        guest::lies(start, (api().insn_host)((api().insn)(block, 0)));
        if state.code.handlers.contains(&start) {
            (api().on_block)(block, access::at_handler, READS_REGISTERS, null_mut());
        }
        if let Some(last) = insns.checked_sub(1) {
            let last = (api().insn)(block, last);
            state.runs(start, (api().insn_address)(last) + bytes(last).len() as u64);
        }
        let plan =
            (state.options.level == Level::Memory && !threaded()).then(|| planned(state, block));
        let (requests, groups) = plan.unzip();
        let mut requests = requests.unwrap_or_default();
        for i in 0..insns {
            let insn = (api().insn)(block, i);
            let pc = (api().insn_address)(insn);
            let decoded = insn::decode(&bytes(insn), pc);
            let kind = decoded.as_ref().map_or(InstructionKind::Plain, insn::kind);
            let turn = decoded.as_ref().map_or(Turn::None, insn::turn);
            let locked = decoded.as_ref().is_some_and(insn::locked);
            let word = pc | if locked { access::LOCKED } else { 0 };
            let word = std::ptr::without_provenance_mut(word as usize);
            match (kind, decoded) {
                (InstructionKind::Fence, _) => {
                    (api().on_insn)(insn, access::at_fence, NO_REGISTERS, word)
                }
                (InstructionKind::Mark, _) => {
                    (api().on_insn)(insn, access::at_mark, READS_REGISTERS, null_mut());
                }
                (InstructionKind::Flush(_) | InstructionKind::Unseen { .. }, Some(instruction)) => {
                    let (callback, code): (OnExec, _) = match kind {
                        InstructionKind::Flush(code) => (access::at_flush, code),
                        _ => (access::at_unseen, 0),
                    };
                    let kept = state.code.flush(code, instruction, pc);
                    let kept = std::ptr::from_ref(kept).cast_mut().cast();
                    (api().on_insn)(insn, callback, READS_REGISTERS, kept);
                }
                _ => {}
            }
            let request = match requests.get_mut(i) {
                Some(planned) if kind != InstructionKind::NonTemporal => planned.take(),
                _ => Some(unplanned(state, kind, turn, word)),
            };
            if let Some(request) = request {
                on_access(insn, request);
            }
        }
        if let (Some(groups), Some(_)) = (&groups, &state.checked) {
            verify::ask(block, groups);
        }
    });
}

/// Requests callbacks for an instruction at level `cpu`, of threads, or past the caches; `word` says which it is.
fn unplanned(
    state: &PluginState,
    kind: InstructionKind,
    turn: Turn,
    word: *mut c_void,
) -> CallbackRequest {
    let sites = state.options.level == Level::Cpu && state.out.sites.is_some();
    let (mut load, mut store): (OnAccess, OnAccess) = match (state.options.level, threaded()) {
        (Level::Cpu, _) if sites => (access::at_core_site::<false>, access::at_core_site::<true>),
        (Level::Cpu, _) => (access::at_core::<false>, access::at_core::<true>),
        (Level::Memory, false) => (access::alone::<false>, access::alone::<true>),
        (Level::Memory, true) => (access::among_others::<false>, access::among_others::<true>),
    };
    match (kind, turn) {
        (InstructionKind::NonTemporal, _) if sites => store = access::past_caches_site,
        (InstructionKind::NonTemporal, _) => store = access::past_caches,
        (_, Turn::Call) if sites => (load, store) = (access::at_core::<false>, access::at_call),
        (_, Turn::Return) if sites => load = access::at_return,
        _ => {}
    }
    // The only thread's callbacks take a list of groups for the word.
    let alone = state.options.level == Level::Memory && !threaded();
    CallbackRequest {
        load: Some(load),
        store: Some(store),
        data: if alone { null_mut() } else { word },
    }
}

fn bytes(insn: Insn) -> Vec<u8> {
    let mut bytes = vec![0; LONGEST];
    let length = (api().insn_data)(insn, bytes.as_mut_ptr().cast(), LONGEST);
    bytes.truncate(length);
    bytes
}

fn planned(state: &mut PluginState, block: Block) -> CallbackPlan {
    let mut flow = Flow::default();
    let uses: Vec<Use> = (0..(api().insns)(block))
        .map(|i| {
            let insn = (api().insn)(block, i);
            flow.next(&bytes(insn), (api().insn_address)(insn))
        })
        .collect();
    plan::plan(&mut state.code.lists, &uses, state.options.read_data)
}
