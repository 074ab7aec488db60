//! What two commands of a channel demand of each other. Nothing here depends on what lies between
//! them, so each equation can be read on its own.

use super::Rule;
use sardonyx::medium::params::{ActiveParams, BankGroups, MediumParams, Refreshes, Timing};
use sardonyx::plan::command::CommandKind::{Activate, Precharge, Read, Refresh, Resume, Write};
use sardonyx::plan::command::{Command, CommandKind};

/// What a medium's commands keep from each other.
pub(super) struct Distances {
    pub timing: Timing,
    pub groups: BankGroups,
    refreshes: Refreshes,
    active: Option<ActiveParams>,
    /// The banks that are refreshed together.
    pub set: u64,
}

/// The timing of a column command: of a burst, where a line's have one each.
pub(super) fn of_burst(params: &MediumParams) -> (Timing, BankGroups) {
    let (mut timing, mut groups) = (params.timing.clone(), params.groups.clone());
    if let Some(active) = params.active {
        timing.tBURST /= active.bursts;
        timing.tCCD /= active.bursts;
        groups.tCCD = groups.tCCD.map(|cycles| cycles / active.bursts);
    }
    let groups = groups.within(&timing);
    (timing, groups)
}

impl Distances {
    pub fn new(params: &MediumParams) -> Distances {
        let (timing, groups) = of_burst(params);
        Distances {
            timing,
            groups,
            refreshes: params.refreshes.clone(),
            active: params.active,
            set: (params.refreshes).together(params.geometry.banks, &params.groups),
        }
    }
}

/// A distance that no equation below exceeds: all terms together, whatever their sign, doubled for
/// those that appear twice.
pub(super) fn horizon(of: &Distances) -> u64 {
    let (t, groups, refreshes) = (&of.timing, &of.groups, &of.refreshes);
    let same_bank = refreshes.tRFCsb + refreshes.tREFSBRD + refreshes.tRREFD;
    let of_groups = groups.tCCD[0] + groups.tCCD[1] + groups.tRRD + groups.tWTR;
    let active = |active: ActiveParams| active.between_stacks + active.reopens;
    let active = of.active.map_or(0, active);
    let long = of_groups + groups.tRCDWR + groups.tPPD + groups.t32AW + same_bank;
    let long = long + groups.tRTW + active;
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

/// Two commands of a channel, `a` before `b`, whose array write takes `array` cycles if `a` is one.
struct Pair<'c> {
    t: &'c Timing,
    groups: &'c BankGroups,
    of: &'c Distances,
    a: &'c Command,
    b: &'c Command,
    array: u64,
}

impl Pair<'_> {
    fn is_in_rank(&self) -> bool {
        self.a.rank == self.b.rank
    }

    fn is_in_bank(&self) -> bool {
        self.is_in_rank() && self.a.bank == self.b.bank
    }

    /// The wait within a group of banks, or the shorter one between groups.
    fn in_group(&self, wait: u64, short: u64) -> u64 {
        let group = |command: &Command| u64::from(command.bank) % self.groups.count;
        match self.is_in_rank() && group(self.a) == group(self.b) {
            true => wait,
            false => short,
        }
    }

    /// Whether both use one data bus.
    fn shares_bus(&self) -> bool {
        let own = self.of.active.is_some_and(|active| active.rank_buses);
        self.is_in_rank() || !own
    }

    /// The wait of a read for one of another stack of its rank's dies.
    fn between_stacks(&self) -> u64 {
        let Some(active) = self.of.active.filter(|_| self.is_in_rank()) else {
            return 0;
        };
        let stack = |one: &Command| u64::from(one.bank) % self.groups.count % active.stacks;
        if stack(self.a) == stack(self.b) {
            0
        } else {
            active.between_stacks
        }
    }

    /// The cycles in which nobody drives the bus between two ranks.
    fn gap(&self) -> u64 {
        let writes = |command: &Command| matches!(command.kind, Write { .. });
        let turns = self.groups.writes_turn || !writes(self.a) || !writes(self.b);
        if !self.is_in_rank() && turns {
            self.t.tRTRS
        } else {
            0
        }
    }

    /// Whether the command is for a bank that the refresh is for.
    fn refreshes(&self, refresh: &Command, command: &Command) -> bool {
        let set = |one: &Command| u64::from(one.bank) / self.of.set;
        self.is_in_rank() && set(refresh) == set(command)
    }

    /// The rule of a pair with a refresh.
    fn refresh(&self) -> Option<(Rule, u64)> {
        let Pair { t, of, a, b, .. } = self;
        let of_sets = &of.refreshes;
        Some(match (a.kind, b.kind) {
            (Refresh, _) if self.refreshes(a, b) => (Rule::AfterRefresh, of_sets.length(t)),
            (Refresh, Refresh) if self.is_in_rank() => (Rule::RefreshToRefresh, of_sets.apart()),
            (Refresh, Activate { .. }) if self.is_in_rank() => {
                (Rule::RefreshToActivate, of_sets.tREFSBRD)
            }
            (Activate { .. }, Refresh) if self.is_in_rank() && of_sets.tRFCsb > 0 => {
                (Rule::ActivateToRefresh, t.tRRD)
            }
            (Precharge, Refresh) if self.refreshes(b, a) => (Rule::PrechargeToRefresh, t.tRP),
            _ => return None,
        })
    }

    /// The rule of a pair that opens or closes a row.
    fn row(&self) -> Option<(Rule, u64)> {
        let Pair {
            t, groups, a, b, ..
        } = self;
        Some(match (a.kind, b.kind) {
            (Activate { .. }, Read { .. }) if self.is_in_bank() => (Rule::ActivateToColumn, t.tRCD),
            (Activate { .. }, Write { .. }) if self.is_in_bank() => {
                (Rule::ActivateToColumn, groups.tRCDWR)
            }
            (Precharge, Activate { .. }) if self.is_in_bank() => (Rule::PrechargeToActivate, t.tRP),
            (Precharge, Precharge) if self.is_in_rank() && groups.tPPD > 0 => {
                (Rule::PrechargeToPrecharge, groups.tPPD)
            }
            (Activate { .. }, Activate { .. }) if self.is_in_rank() => {
                let reopens = self.of.active.filter(|_| self.is_in_bank());
                let wait = self.in_group(groups.tRRD, t.tRRD);
                let wait = wait.max(reopens.map_or(0, |active| active.reopens));
                (Rule::ActivateToActivate, wait)
            }
            _ => return None,
        })
    }

    /// The rule of two accesses to open rows, or of one and an array write that goes on.
    fn column(&self) -> Option<(Rule, u64)> {
        let Pair {
            t, groups, array, ..
        } = self;
        let column = |wait: u64| t.tBURST.max(self.in_group(wait, t.tCCD));
        let [reads, writes] = groups.tCCD.map(column);
        let turn = self.in_group(groups.tWTR, t.tWTR);
        if !self.shares_bus() {
            return None;
        }
        Some(match (self.a.kind, self.b.kind) {
            (Read { .. }, Read { .. }) => {
                let wait = (reads + self.gap()).max(self.between_stacks());
                (Rule::ReadToRead, wait)
            }
            (Write { .. }, Write { .. }) if self.is_in_bank() => {
                (Rule::WriteToWriteSameBank, writes + array)
            }
            (Write { .. }, Write { .. }) => (Rule::WriteToWrite, writes + self.gap()),
            (Read { .. }, Write { .. }) if self.is_in_rank() && groups.tRTW > 0 => {
                (Rule::ReadToWrite, groups.tRTW)
            }
            (Read { .. }, Write { .. }) => {
                let wait = (t.tCL + t.tBURST + t.tRTRS).saturating_sub(t.tCWD);
                (Rule::ReadToWrite, wait)
            }
            (Write { .. }, Read { .. }) if self.is_in_bank() => {
                let wait = t.tCWD + t.tBURST + turn + array;
                (Rule::WriteToReadSameBank, wait)
            }
            (Resume, Read { .. }) if self.is_in_bank() => (Rule::WriteToReadSameBank, array + turn),
            (Resume, Write { .. }) if self.is_in_bank() => (Rule::WriteToWriteSameBank, *array),
            (Write { .. }, Read { .. }) if self.is_in_rank() => {
                (Rule::WriteToRead, t.tCWD + t.tBURST + turn)
            }
            _ => return None,
        })
    }
}

/// Tells `demand` each rule on the distance from `a`, which writes the array for `array` cycles if it writes it at
/// all, to the later `b`, with the least distance.
pub(super) fn demands(
    of: &Distances,
    a: &Command,
    array: u64,
    b: &Command,
    demand: &mut dyn FnMut(Rule, u64),
) {
    let t = &of.timing;
    let pair = Pair {
        t,
        groups: &of.groups,
        of,
        a,
        b,
        array,
    };
    // Their kinds tell them apart, so at most one of the three has a rule.
    for (rule, distance) in [pair.refresh(), pair.row(), pair.column()]
        .into_iter()
        .flatten()
    {
        demand(rule, distance);
    }

    if pair.is_in_bank()
        && matches!(b.kind, Precharge | Resume)
        && let Some((rule, distance)) = to_precharge(t, a.kind, array)
    {
        demand(rule, distance);
    }

    // A bank that closed itself did so when its precharge was legal, and needs tRP from then. The
    // same holds of an explicit precharge, by the rules before and after it, so there is no need
    // to know which of the two it was.
    let opened = pair.is_in_bank() && matches!(b.kind, Activate { .. })
        || b.kind == Refresh && pair.refreshes(b, a);
    if opened && let Some((_, distance)) = to_precharge(t, a.kind, array) {
        demand(Rule::AutoPrecharge, distance + t.tRP);
    }

    if let (Some((a_start, a_end)), Some((b_start, b_end))) = (data(t, a), data(t, b))
        && b_end + pair.gap() > a_start
        && pair.shares_bus()
    {
        // Not wholly before: then wholly after, which so many cycles more would bring about.
        let distance = (b.cycle - a.cycle + a_end + pair.gap()).saturating_sub(b_start);
        demand(Rule::Bus, distance);
    }
}
