//! What two commands of a channel demand of each other. Nothing here depends on what lies between
//! them, so each equation can be read on its own.

use super::Rule;
use sardonyx::medium::params::{BankGroups, Timing};
use sardonyx::plan::command::{Command, CommandKind};

/// A distance that no equation below exceeds: all terms together, whatever their sign, doubled for
/// those that appear twice.
pub(super) fn horizon(t: &Timing, groups: &BankGroups) -> u64 {
    let same_bank = groups.tRFCsb + groups.tREFSBRD;
    let long = groups.tCCD[0] + groups.tCCD[1] + groups.tRRD + groups.tWTR + same_bank;
    let column = t.tRCD + t.tCL + t.tCWD + t.tCCD + t.tWTR + t.tRTP + t.tRTRS + t.tWR + t.tWP;
    let row = t.tRP + t.tRAS + t.tRRD + t.tFAW + t.tRFC;
    column + row + long + 2 * t.tBURST
}

/// How long the bank stays closed to a precharge after `event`, if the array write takes `array` cycles.
fn to_precharge(t: &Timing, event: CommandKind, array: u64) -> Option<(Rule, u64)> {
    match event {
        CommandKind::Activate { .. } => Some((Rule::ActivateToPrecharge, t.tRAS)),
        CommandKind::Read { .. } => {
            let distance = (t.tBURST + t.tRTP).saturating_sub(t.tCCD);
            Some((Rule::ReadToPrecharge, distance))
        }
        CommandKind::Write { .. } => {
            let distance = t.tCWD + t.tBURST + array + t.tWR;
            Some((Rule::WriteToPrecharge, distance))
        }
        CommandKind::Resume => Some((Rule::WriteToPrecharge, array + t.tWR)),
        _ => None,
    }
}

/// The cycles from which and until which a column command's data are on the bus; other commands have none.
fn data(t: &Timing, command: &Command) -> Option<(u64, u64)> {
    let wait = match command.kind {
        CommandKind::Read { .. } => t.tCL,
        CommandKind::Write { .. } => t.tCWD,
        _ => return None,
    };
    let start = command.cycle + wait;
    Some((start, start + t.tBURST))
}

/// Tells `demand` each rule on the distance from `a`, which writes the array for `array` cycles if it writes it at
/// all, to the later `b`, with the least distance.
pub(super) fn demands(
    (t, groups): (&Timing, &BankGroups),
    a: &Command,
    array: u64,
    b: &Command,
    demand: &mut dyn FnMut(Rule, u64),
) {
    use CommandKind::{Activate, Precharge, Read, Refresh, Resume, Write};
    let same_rank = a.rank == b.rank;
    let same_bank = same_rank && a.bank == b.bank;
    let gap = if same_rank { 0 } else { t.tRTRS };
    let same_group =
        same_rank && u64::from(a.bank) % groups.count == u64::from(b.bank) % groups.count;
    let long = |wait: u64, short: u64| if same_group { wait } else { short };
    let [reads, writes] = groups.tCCD.map(|wait| t.tBURST.max(long(wait, t.tCCD)));
    let turn = long(groups.tWTR, t.tWTR);

    // Whether the command is for a bank that the refresh is for: the rank's, or one of each group.
    let refreshed = |refresh: &Command, command: &Command| {
        let set = |one: &Command| u64::from(one.bank) / groups.count;
        same_rank && (groups.tRFCsb == 0 || set(refresh) == set(command))
    };

    match (a.kind, b.kind) {
        (Refresh, _) if refreshed(a, b) && groups.tRFCsb > 0 => {
            demand(Rule::AfterRefresh, groups.tRFCsb);
        }
        (Refresh, _) if refreshed(a, b) => demand(Rule::AfterRefresh, t.tRFC),
        (Refresh, Refresh) if same_rank => demand(Rule::RefreshToRefresh, groups.tRFCsb),
        (Refresh, Activate { .. }) if same_rank => {
            demand(Rule::RefreshToActivate, groups.tREFSBRD);
        }
        (Activate { .. }, Refresh) if same_rank && groups.tRFCsb > 0 => {
            demand(Rule::ActivateToRefresh, t.tRRD);
        }

        (Activate { .. }, Read { .. } | Write { .. }) if same_bank => {
            demand(Rule::ActivateToColumn, t.tRCD)
        }
        (Precharge, Activate { .. }) if same_bank => demand(Rule::PrechargeToActivate, t.tRP),
        (Precharge, Refresh) if refreshed(b, a) => demand(Rule::PrechargeToRefresh, t.tRP),
        (Activate { .. }, Activate { .. }) if same_rank => {
            demand(Rule::ActivateToActivate, long(groups.tRRD, t.tRRD));
        }

        (Read { .. }, Read { .. }) => demand(Rule::ReadToRead, reads + gap),
        (Write { .. }, Write { .. }) if same_bank => {
            demand(Rule::WriteToWriteSameBank, writes + array)
        }
        (Write { .. }, Write { .. }) => demand(Rule::WriteToWrite, writes + gap),
        (Read { .. }, Write { .. }) => {
            let wait = (t.tCL + t.tBURST + t.tRTRS).saturating_sub(t.tCWD);
            demand(Rule::ReadToWrite, wait);
        }
        (Write { .. }, Read { .. }) if same_bank => {
            demand(Rule::WriteToReadSameBank, t.tCWD + t.tBURST + turn + array);
        }
        (Resume, Read { .. }) if same_bank => demand(Rule::WriteToReadSameBank, array + turn),
        (Resume, Write { .. }) if same_bank => demand(Rule::WriteToWriteSameBank, array),
        (Write { .. }, Read { .. }) if same_rank => {
            demand(Rule::WriteToRead, t.tCWD + t.tBURST + turn)
        }
        _ => {}
    }

    if same_bank
        && matches!(b.kind, Precharge | Resume)
        && let Some((rule, distance)) = to_precharge(t, a.kind, array)
    {
        demand(rule, distance);
    }

    // A bank that closed itself did so when its precharge was legal, and needs tRP from then. The
    // same holds of an explicit precharge, by the rules before and after it, so there is no need
    // to know which of the two it was.
    let opened =
        same_bank && matches!(b.kind, Activate { .. }) || b.kind == Refresh && refreshed(b, a);
    if opened && let Some((_, distance)) = to_precharge(t, a.kind, array) {
        demand(Rule::AutoPrecharge, distance + t.tRP);
    }

    if let (Some((a_start, a_end)), Some((b_start, b_end))) = (data(t, a), data(t, b))
        && b_end + gap > a_start
    {
        // Not wholly before: then wholly after, which so many cycles more would bring about.
        let distance = (b.cycle - a.cycle + a_end + gap).saturating_sub(b_start);
        demand(Rule::Bus, distance);
    }
}
