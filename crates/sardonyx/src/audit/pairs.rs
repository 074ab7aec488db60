//! What two commands of a channel demand of each other. Nothing here depends on what lies between
//! them, so each equation can be read on its own.

use super::Rule;
use crate::medium::params::Timing;

/// What a command does to a bank (or a rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Opens it.
    Activate,
    /// Reads from the open row.
    Read,
    /// Writes to the open row.
    Write,
    /// Closes it.
    Precharge,
    /// Closes what is open in the rank; each open bank has a [`What::Precharge`] besides.
    PrechargeAll,
    /// Refreshes the rank.
    Refresh,
}

/// A command as seen by one bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub what: What,
    pub index: usize,
    pub cycle: u64,
    pub rank: u32,
    pub bank: u32,
}

/// A distance that no equation below exceeds: all terms together, whatever their sign, doubled for
/// those that appear twice.
pub(super) fn horizon(t: &Timing) -> u64 {
    let column = t.tRCD + t.tCL + t.tCWD + t.tCCD + t.tWTR + t.tRTP + t.tRTRS + t.tWR + t.tWP;
    let row = t.tRP + t.tRAS + t.tRRD + t.tFAW + t.tRFC;
    column + row + 2 * t.tBURST
}

/// How long after `event` its bank may be precharged, explicitly or by itself.
fn to_precharge(t: &Timing, event: What) -> Option<(Rule, u64)> {
    match event {
        What::Activate => Some((Rule::ActivateToPrecharge, t.tRAS)),
        What::Read => {
            let distance = (t.tBURST + t.tRTP).saturating_sub(t.tCCD);
            Some((Rule::ReadToPrecharge, distance))
        }
        What::Write => {
            let distance = t.tCWD + t.tBURST + t.tWP + t.tWR;
            Some((Rule::WriteToPrecharge, distance))
        }
        What::Precharge | What::PrechargeAll | What::Refresh => None,
    }
}

/// When the data of a column command are on the bus.
fn data(t: &Timing, event: &Event) -> (u64, u64) {
    let wait = if event.what == What::Read {
        t.tCL
    } else {
        t.tCWD
    };
    (event.cycle + wait, event.cycle + wait + t.tBURST)
}

/// Tells `demand` each rule on the distance from `a` to the later `b`, with the least distance.
pub(super) fn demands(t: &Timing, a: &Event, b: &Event, demand: &mut dyn FnMut(Rule, u64)) {
    use What::{Activate, Precharge, Read, Refresh, Write};
    let same_rank = a.rank == b.rank;
    let same_bank = same_rank && a.bank == b.bank;
    let gap = if same_rank { 0 } else { t.tRTRS };
    let transfer = t.tBURST.max(t.tCCD);

    match (a.what, b.what) {
        (Refresh, _) if same_rank => demand(Rule::AfterRefresh, t.tRFC),

        (Activate, Read | Write) if same_bank => demand(Rule::ActivateToColumn, t.tRCD),
        (Precharge, Activate) if same_bank => demand(Rule::PrechargeToActivate, t.tRP),
        (Precharge, Refresh) if same_rank => demand(Rule::PrechargeToRefresh, t.tRP),
        (Activate, Activate) if same_rank => demand(Rule::ActivateToActivate, t.tRRD),

        (Read, Read) => demand(Rule::ReadToRead, transfer + gap),
        (Write, Write) if same_bank => demand(Rule::WriteToWriteSameBank, transfer + t.tWP),
        (Write, Write) => demand(Rule::WriteToWrite, transfer + gap),
        (Read, Write) => {
            let turn = (t.tCL + t.tBURST + t.tRTRS).saturating_sub(t.tCWD);
            demand(Rule::ReadToWrite, turn);
        }
        (Write, Read) if same_bank => {
            let array = t.tCWD + t.tBURST + t.tWTR + t.tWP;
            demand(Rule::WriteToReadSameBank, array);
        }
        (Write, Read) if same_rank => demand(Rule::WriteToRead, t.tCWD + t.tBURST + t.tWTR),
        _ => {}
    }

    if same_bank
        && b.what == Precharge
        && let Some((rule, distance)) = to_precharge(t, a.what)
    {
        demand(rule, distance);
    }

    // A bank that closed itself did so when its precharge was legal, and needs tRP from then. The
    // same holds of an explicit precharge, by the rules before and after it, so there is no need
    // to know which of the two it was.
    let opened = same_bank && b.what == Activate || same_rank && b.what == Refresh;
    if opened && let Some((_, distance)) = to_precharge(t, a.what) {
        demand(Rule::AutoPrecharge, distance + t.tRP);
    }

    if matches!(a.what, Read | Write) && matches!(b.what, Read | Write) {
        let ((a_start, a_end), (b_start, b_end)) = (data(t, a), data(t, b));
        if b_end + gap > a_start {
            // Not wholly before: then wholly after, which so many cycles more would bring about.
            let distance = (b.cycle - a.cycle + a_end + gap).saturating_sub(b_start);
            demand(Rule::Bus, distance);
        }
    }
}
