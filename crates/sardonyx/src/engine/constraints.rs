//! Bank state as data: for every bank and command the earliest cycle at which it may issue. The
//! rules are NVMain's (RD→PRE is the DDR formula tBURST + tRTP − tCCD; a PCM array write of tWP
//! follows the data in its bank only). `docs/inside/timing.md` lists them; the auditor re-checks them.

use sardonyx_base::lanes::not_above;
use std::ops::Range;

use super::activates::ManyActivates;
use super::activity::Activity;
use super::channel::NEVER;
use crate::medium::params::{BankGroups, MAX_BANKS, MediumParams, Refreshes, Timing, Turns};
use crate::plan::command::CommandKind;

pub(crate) const PRE: usize = 0;
pub(crate) const ACT: usize = 1;
pub(crate) const READ: usize = 2;
pub(crate) const WRITE: usize = 3;

/// Banks of a channel, all ranks together, at most. A set of banks is a `u64`. An index modulo this number needs no
/// bounds check in an array of this length.
pub(crate) const MOST: usize = MAX_BANKS;

/// Periods of refreshes that are made up for one by one before the others are skipped: the first of a channel's ranks
/// may wait for each other.
const SETTLING: u64 = 4;

#[derive(Clone, Copy, Default)]
struct Bank {
    next: [u64; 4],
    row: Option<u64>,
    hits: u32,
}

#[derive(Clone, Copy)]
struct Rank {
    /// The cycles of the last four activates, plus one; 0 for none yet.
    activates: [u64; 4],
    turn: usize,
    /// The cycle from which on another set of the rank's banks may be refreshed.
    refreshed: u64,
}

/// Cycles after a column command from which on other commands may go.
#[derive(Clone, Copy)]
struct AfterColumn {
    /// Limits for the next read and write in the same bank group, in its rank's other groups, and in the channel's
    /// other ranks.
    own: [u64; 2],
    near: [u64; 2],
    far: [u64; 2],
    /// Limits for the next precharge, read and write of the same bank.
    same: [u64; 3],
    /// From here on the access is done: a read's data have left the chip, a write's are in the array.
    done: u64,
}

impl AfterColumn {
    fn read(t: &Timing, groups: &BankGroups) -> AfterColumn {
        let column = t.tBURST.max(t.tCCD);
        let own = t.tBURST.max(groups.tCCD[0]);
        // A write sends its data tCWD after its command, by when those of the read have left the bus and it is turned.
        let far = (t.tCL + t.tBURST + t.tRTRS).saturating_sub(t.tCWD).max(1);
        let writes = match groups.tRTW {
            0 => far,
            turn => turn,
        };
        AfterColumn {
            own: [own.max(1), writes],
            near: [column.max(1), writes],
            far: [(column + t.tRTRS).max(1), far],
            same: [(t.tBURST + t.tRTP).saturating_sub(t.tCCD), 0, 0],
            done: t.tCL + t.tBURST + t.off_chip,
        }
    }

    fn write(t: &Timing, groups: &BankGroups) -> AfterColumn {
        let column = t.tBURST.max(t.tCCD);
        let own = t.tBURST.max(groups.tCCD[1]);
        let own_reads = t.tCWD + t.tBURST + groups.tWTR;
        let reads = t.tCWD + t.tBURST + t.tWTR;
        // Another rank has no write-to-read turn of its own array; only the bus must be free when its data come.
        let turn = if groups.writes_turn { t.tRTRS } else { 0 };
        let far_reads = (t.tCWD + t.tBURST + t.tRTRS).saturating_sub(t.tCL);
        AfterColumn {
            own: [own_reads.max(1), own.max(1)],
            near: [reads.max(1), column.max(1)],
            far: [far_reads.max(1), (column + turn).max(1)],
            same: [
                t.tCWD + t.tBURST + t.tWP + t.tWR,
                own_reads + t.tWP,
                own + t.tWP,
            ],
            done: t.tCWD + column + t.tWP + t.off_chip,
        }
    }
}

/// The timing of column commands: of a burst, where each of a line's has one.
fn of_burst(params: &MediumParams) -> (Timing, BankGroups, [AfterColumn; 2]) {
    let (mut timing, mut groups) = (params.timing.clone(), params.groups.clone());
    let bursts = params.active.map_or(1, |active| active.bursts);
    let per_line = [&mut timing.tBURST, &mut timing.tCCD];
    for cycles in per_line.into_iter().chain(&mut groups.tCCD) {
        *cycles /= bursts;
    }
    let groups = groups.within(&timing);
    let mut columns = [
        AfterColumn::read(&timing, &groups),
        AfterColumn::write(&timing, &groups),
    ];
    if params.active.is_some_and(|active| active.rank_buses) {
        for column in &mut columns {
            column.far = [0; 2];
        }
    }
    (timing, groups, columns)
}

/// Banks that are compared without a branch between them, and the largest number of such strides.
const STRIDE: usize = 8;
const STRIDES: usize = MOST / STRIDE;

/// Cycles of many banks are compared as floating-point numbers, which are exact up to 2^53, because every host computes
/// the minimum and the maximum of several of them at once.
type Cycles = [f64; STRIDE];

const IDLE: f64 = (1u64 << 62) as f64;

/// Converts a cycle. Hosts have an instruction for signed integers only.
#[inline]
fn number(cycle: u64) -> f64 {
    cycle as i64 as f64
}

#[inline]
fn sooner(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline]
fn later(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

#[inline]
fn least(at: &Cycles) -> f64 {
    let [a, b, c, d, e, f, g, h] = *at;
    let [a, b, c, d] = [sooner(a, e), sooner(b, f), sooner(c, g), sooner(d, h)];
    sooner(sooner(a, c), sooner(b, d))
}

pub(crate) struct Banks {
    timing: Timing,
    groups: BankGroups,
    refreshes: Refreshes,
    /// The group of each bank, counted through all ranks. Without bank groups it is the bank's rank.
    group_of: [u8; MOST],
    group_count: usize,
    group_shift: u32,
    columns: [AfterColumn; 2],
    banks: [Bank; MOST],
    ranks: [Rank; MOST],
    /// The earliest cycle of each command of each group (index group * 4 + command) as far as the group, the rank and
    /// the channel are concerned.
    limits: [f64; MOST * 4],
    /// The index of the limit that applies to each bank's next command.
    limit_of: [[u8; STRIDE]; STRIDES],
    /// The earliest cycle of each bank's next command, [`IDLE`] for an idle bank, and the least of all these.
    earliest: [Cycles; STRIDES],
    first: f64,
    strides: usize,
    count: usize,
    per_rank: usize,
    rank_shift: u32,
    /// The number of banks that are refreshed together, the number of such sets, and when each set is due.
    per_set: usize,
    sets: usize,
    refresh_due: [u64; MOST],
    /// Banks that wait for a refresh, and those that one keeps closed until a cycle.
    refreshing: u64,
    refreshed: (u64, u64),
    /// Whether a refresh waits for those that fell due before it, and the cycles by which it may go later than an
    /// activate, whose command takes longer.
    refreshes_queue: bool,
    after_activate: u64,
    /// 1 if refreshes go in odd cycles.
    rising: u64,
    /// The cycles of the command bus that a refresh takes, and each precharge for it.
    of_rows: u64,
    opening: u64,
    bus_used: u64,
    /// If the ranks have a window of 32 activates.
    many: Option<Box<ManyActivates>>,
    /// If an open row takes another current than closed ones.
    activity: Option<Box<Activity>>,
}

impl Banks {
    pub fn new(params: &MediumParams) -> Banks {
        let (ranks, per_rank) = (params.geometry.ranks, params.geometry.banks as usize);
        let (timing, groups, columns) = of_burst(params);
        let of_rank = groups.count as usize;
        let group = |bank: usize| bank / per_rank * of_rank + bank % per_rank % of_rank;
        let refreshes = params.refreshes.clone();
        let per_set = refreshes.together(params.geometry.banks, &groups) as usize;
        let sets = ranks as usize * per_rank / per_set;
        // Sets take turns, those of all ranks or of each rank, the last of them at the first tREFI.
        let turns = match refreshes.turns {
            Turns::InTurn => sets as u64,
            Turns::Together => (per_rank / per_set) as u64,
        };
        let due = |set: usize| match timing.tREFI {
            0 => NEVER,
            interval => interval * (set as u64 % turns + 1) / turns,
        };
        let refresh_due = std::array::from_fn(due);
        let rank = Rank {
            activates: [0; 4],
            turn: 0,
            refreshed: 0,
        };
        Banks {
            banks: [Bank::default(); MOST],
            ranks: [rank; MOST],
            columns,
            group_of: std::array::from_fn(|bank| group(bank) as u8),
            group_count: ranks as usize * of_rank,
            group_shift: of_rank.trailing_zeros(),
            limits: [0.0; MOST * 4],
            limit_of: [[0; STRIDE]; STRIDES],
            earliest: [[IDLE; STRIDE]; STRIDES],
            first: IDLE,
            strides: (ranks as usize * per_rank).div_ceil(STRIDE),
            count: ranks as usize * per_rank,
            per_rank,
            rank_shift: per_rank.trailing_zeros(),
            per_set,
            sets,
            refreshes,
            refresh_due,
            refreshing: 0,
            refreshed: (0, 0),
            refreshes_queue: params.active.is_some(),
            of_rows: params.active.map_or(1, |active| active.bus_cycles[1]),
            rising: params
                .active
                .map_or(0, |active| u64::from(active.rising_edges)),
            after_activate: params.active.map_or(0, |active| {
                let [activate, precharge, _] = active.bus_cycles;
                activate.saturating_sub(precharge)
            }),
            opening: 0,
            bus_used: 0,
            many: ManyActivates::of(groups.t32AW, ranks),
            activity: (params.ranks.active != params.ranks.standby)
                .then(|| Box::new(Activity::new())),
            timing,
            groups,
        }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn bank(&self, bank: usize) -> &Bank {
        &self.banks[bank % MOST]
    }

    #[inline]
    fn bank_mut(&mut self, bank: usize) -> &mut Bank {
        &mut self.banks[bank % MOST]
    }

    pub fn per_rank(&self) -> usize {
        self.per_rank
    }

    #[inline]
    pub fn open_row(&self, bank: usize) -> Option<u64> {
        self.bank(bank).row
    }

    #[inline]
    pub fn hits(&self, bank: usize) -> u32 {
        self.bank(bank).hits
    }

    #[inline]
    pub fn refreshing(&self) -> u64 {
        self.refreshing
    }

    #[inline]
    pub fn closed_by_refreshes(&self, cycle: u64) -> u64 {
        let (closed, until) = self.refreshed;
        let closed = if cycle < until { closed } else { 0 };
        self.refreshing | closed
    }

    /// The earliest cycle at which the bank may have `command`.
    pub fn ready(&self, bank: usize, command: usize) -> u64 {
        let limit = usize::from(self.group_of[bank % MOST]) % MOST * 4 + command % 4;
        self.bank(bank).next[command % 4].max(self.limits[limit] as u64)
    }

    /// Forgets the row of a bank that has been precharged for no access in particular.
    pub fn close(&mut self, bank: usize) {
        self.bank_mut(bank).row = None;
    }

    /// Notes that the bank's access needs `command` next.
    #[inline]
    pub fn want(&mut self, bank: usize, command: usize) {
        let limit = usize::from(self.group_of[bank % MOST]) % MOST * 4 + command % 4;
        let own = number(self.bank(bank).next[command % 4]);
        let earliest = later(own, self.limits[limit]);
        self.limit_of.as_flattened_mut()[bank % MOST] = limit as u8;
        self.earliest.as_flattened_mut()[bank % MOST] = earliest;
        self.first = sooner(earliest, self.first);
        self.opening |= u64::from(command == ACT) << (bank % MOST);
    }

    /// Raises the banks' next commands to limits that have grown, and updates the first of these commands.
    #[inline(always)]
    fn apply_limits(&mut self) {
        self.first = IDLE;
        for stride in 0..self.strides {
            let earliest = &mut self.earliest[stride % STRIDES];
            for (earliest, limit) in earliest.iter_mut().zip(&self.limit_of[stride % STRIDES]) {
                *earliest = later(self.limits[*limit as usize], *earliest);
            }
            self.first = sooner(least(earliest), self.first);
        }
    }

    #[inline]
    fn update_first(&mut self) {
        self.first = least(&self.earliest[0]);
        for stride in 1..self.strides {
            self.first = sooner(least(&self.earliest[stride % STRIDES]), self.first);
        }
    }

    /// The first bank from `turn` on whose next command may go at `cycle`, and that command.
    #[inline]
    pub fn legal(&self, cycle: u64, turn: u32) -> Option<(usize, usize)> {
        let now = number(cycle);
        if now < self.first || cycle < self.bus_used {
            return None; // too early, or a command has gone out in this cycle
        }
        let mut legal = not_above(&self.earliest[0], now);
        for stride in 1..self.strides {
            legal |= not_above(&self.earliest[stride % STRIDES], now) << (stride * STRIDE);
        }
        let bank = (legal.rotate_right(turn).trailing_zeros() + turn) as usize % MOST;
        let command = self.limit_of.as_flattened()[bank] as usize % 4;
        Some((bank, command))
    }

    #[inline]
    pub fn next_command(&self) -> u64 {
        self.first as i64 as u64 // the host converts to signed integers only
    }

    #[inline]
    pub fn aim(&mut self, bank: usize, row: u64) {
        let bank = self.bank_mut(bank);
        if bank.row == Some(row) {
            bank.hits += 1;
        } else {
            (bank.row, bank.hits) = (Some(row), 0);
        }
    }

    /// Closes the bank's row. Its access then needs another row opened.
    #[inline(always)]
    pub fn precharge(&mut self, bank: usize, cycle: u64) {
        self.bus_used = cycle + 1;
        let closed = cycle + self.timing.tRP;
        self.closes(bank, cycle);
        let next = &mut self.bank_mut(bank).next;
        next[ACT] = next[ACT].max(closed);
        self.want(bank, ACT);
        match self.groups.tPPD {
            0 => self.update_first(),
            _ => self.precharges_wait(bank, cycle),
        }
    }

    /// Keeps the other banks of `bank`'s rank from being precharged for tPPD.
    #[cold]
    fn precharges_wait(&mut self, bank: usize, cycle: u64) {
        let first = bank / self.per_rank * self.per_rank;
        let next = cycle + self.groups.tPPD;
        for bank in first..first + self.per_rank {
            let own = &mut self.bank_mut(bank).next[PRE];
            *own = next.max(*own);
            let limit = usize::from(self.group_of[bank % MOST]) % MOST * 4 + PRE;
            self.limits[limit] = number(next);
        }
        self.apply_limits();
    }

    #[inline(always)]
    pub fn activate(&mut self, bank: usize, cycle: u64, column: usize) {
        self.bus_used = cycle + 1;
        if let Some(activity) = &mut self.activity {
            activity.opens(bank >> self.rank_shift, cycle);
        }
        let timing = &self.timing;
        let next = &mut self.banks[bank % MOST].next;
        next[READ] = next[READ].max(cycle + timing.tRCD);
        next[WRITE] = next[WRITE].max(cycle + self.groups.tRCDWR);
        // There is no tRC: tRAS and then tRP make it.
        next[PRE] = next[PRE].max(cycle + timing.tRAS);
        let rank = (bank >> self.rank_shift) % MOST;
        let activates = &mut self.ranks[rank];
        activates.activates[activates.turn % 4] = cycle + 1;
        activates.turn = (activates.turn + 1) % 4;
        let mut next = cycle + timing.tRRD;
        // tFAW: a fifth activate waits until the window since the first of the last four is over.
        if let Some(fourth) = activates.activates[activates.turn % 4].checked_sub(1) {
            next = next.max(fourth + timing.tFAW);
        }
        if let Some(many) = &mut self.many {
            next = next.max(many.next(rank, cycle));
        }
        match self.group_shift {
            0 => self.limits[rank * 4 + ACT] = number(next),
            _ => self.limit_activates(bank, number(next), number(cycle + self.groups.tRRD)),
        }
        self.want(bank, column);
        // The new activate limits concern only other banks that are about to be opened.
        match self.opening & !(1 << bank) {
            0 => self.update_first(),
            _ => self.apply_limits(),
        }
        self.opening &= !(1 << bank);
    }

    /// Keeps the bank from being activated again before `until`.
    pub fn keep_closed(&mut self, bank: usize, until: u64) {
        let next = &mut self.bank_mut(bank).next[ACT];
        *next = until.max(*next);
    }

    /// Keeps the banks of `bank`'s rank from being activated before `rank`, and those of its group before `group`.
    fn limit_activates(&mut self, bank: usize, rank: f64, group: f64) {
        let own = usize::from(self.group_of[bank % MOST]);
        let first = own >> self.group_shift << self.group_shift;
        for index in first..first + (1 << self.group_shift) {
            let next = if index == own {
                later(rank, group)
            } else {
                rank
            };
            let limit = &mut self.limits[index % MOST * 4 + ACT];
            *limit = later(next, *limit);
        }
    }

    pub fn next(&self, bank: usize) -> [u64; 4] {
        self.bank(bank).next
    }

    /// The cycles from a column write to its array write, and those of the array write.
    pub fn array(&self) -> (u64, u64) {
        let t = &self.timing;
        (t.tCWD + t.tBURST, t.tWP)
    }

    /// The cycles before which the bank may not be precharged, read and written after a column write at `cycle`.
    pub fn held_by_write(&self, cycle: u64) -> [u64; 3] {
        self.columns[1].same.map(|wait| cycle + wait)
    }

    /// The cycles before which the bank may not be precharged, read and written after an array write that lasts until
    /// `end`.
    pub fn held_by_array(&self, end: u64) -> [u64; 3] {
        [end + self.timing.tWR, end + self.groups.tWTR, end]
    }

    /// Cycles from the end of an array write until the write is done: the rest of its column slot (NVMain counts the
    /// whole slot before the array), and the way off the chip.
    pub fn after_array(&self) -> u64 {
        let t = &self.timing;
        t.tCCD.saturating_sub(t.tBURST) + t.off_chip
    }

    /// Replaces what the bank's array write allows. Without a write the bank's commands might go at `before`, and now
    /// its precharge, read and write may not go earlier than `held`. The bank closes itself if `closed`.
    #[cold]
    pub fn hold(&mut self, bank: usize, before: [u64; 4], held: [u64; 3], closed: bool) {
        let closing = self.timing.tRP;
        let next = &mut self.bank_mut(bank).next;
        next[PRE] = before[PRE].max(held[0]);
        next[READ] = before[READ].max(held[1]);
        next[WRITE] = before[WRITE].max(held[2]);
        if closed {
            next[ACT] = before[ACT].max(next[PRE] + closing);
        }
    }

    /// Applies the bank's own limits again to the command that its access needs next.
    #[cold]
    pub fn want_again(&mut self, bank: usize) {
        let command = self.limit_of.as_flattened()[bank % MOST] as usize % 4;
        self.want(bank, command);
    }

    pub fn bus_is_free(&self, cycle: u64) -> bool {
        cycle >= self.bus_used
    }

    /// The cycle from which on the command bus is free.
    pub fn bus_free(&self) -> u64 {
        self.bus_used
    }

    /// Takes the command bus for a command that concerns an array only.
    pub fn send(&mut self, cycle: u64) {
        self.bus_used = cycle + 1;
    }

    #[cold]
    pub fn array_write(&mut self, cycles: u64) {
        self.timing.tWP = cycles;
        let far = self.columns[1].far;
        self.columns[1] = AfterColumn {
            far,
            ..AfterColumn::write(&self.timing, &self.groups)
        };
    }

    #[inline(always)]
    pub fn access(&mut self, bank: usize, command: usize, cycle: u64, closes: bool) -> u64 {
        self.bus_used = cycle + 1;
        let AfterColumn {
            own,
            near,
            far,
            same,
            done,
        } = self.columns[usize::from(command == WRITE)];
        let group = usize::from(self.group_of[bank % MOST]);
        let (shift, rank) = (self.group_shift, group >> self.group_shift);
        let next = &mut self.banks[bank % MOST].next;
        next[PRE] = next[PRE].max(cycle + same[0]);
        next[READ] = next[READ].max(cycle + same[1]);
        next[WRITE] = next[WRITE].max(cycle + same[2]);
        if closes {
            let closed = next[PRE];
            next[ACT] = next[ACT].max(closed + self.timing.tRP);
            self.bank_mut(bank).row = None;
            self.closes(bank, closed);
        }
        let limits = self.limits.chunks_exact_mut(4);
        for (index, next) in limits.take(self.group_count).enumerate() {
            let [reads, writes] = match index {
                _ if index == group => own,
                _ if index >> shift == rank => near,
                _ => far,
            };
            next[READ] = later(number(cycle + reads), next[READ]);
            next[WRITE] = later(number(cycle + writes), next[WRITE]);
        }
        self.earliest.as_flattened_mut()[bank % MOST] = IDLE;
        self.apply_limits();
        cycle + done
    }

    #[inline]
    pub fn refreshes(&self) -> bool {
        self.timing.tREFI != 0
    }

    /// The next command that a refresh needs, if it may go at `cycle` or might have gone before: its banks, the cycle
    /// and the kind of command.
    pub fn refresh(&mut self, cycle: u64, busy: u64) -> Option<(Range<usize>, u64, CommandKind)> {
        let mut first: Option<(u64, usize, CommandKind, Range<usize>)> = None;
        let head = match self.refreshes_queue {
            true => (0..self.sets).min_by_key(|set| self.refresh_due[set % MOST]),
            false => None,
        };
        for set in 0..self.sets {
            let due = self.refresh_due[set % MOST];
            if due > cycle {
                continue;
            }
            let mask = mask(&self.set(set));
            self.refreshing |= mask;
            if busy & mask != 0 || head.is_some_and(|head| head != set) {
                continue;
            }
            // A refresh that is made up for cannot go before a command that has gone out since.
            let due = due.max(self.bus_used);
            let of_set = self.set(set);
            let (at, kind, banks) = match self.to_close(of_set.clone(), due) {
                Some(closing) => closing,
                None => {
                    let banks = &self.banks[of_set.clone()];
                    let closed = banks.iter().map(|bank| bank.next[ACT]).max();
                    let beside = match self.refreshes.tRFCsb {
                        0 => 0,
                        _ => self.beside(self.set(set).start),
                    };
                    let closed = closed.unwrap_or(0) + self.after_activate;
                    let at = closed.max(beside).max(due) | self.rising;
                    (at, CommandKind::Refresh, of_set)
                }
            };
            // The earliest goes first: several sets may be behind.
            if at <= cycle && first.as_ref().is_none_or(|first| at < first.0) {
                first = Some((at, set, kind, banks));
            }
        }
        let (at, set, kind, banks) = first?;
        self.bus_used = at + self.of_rows;
        let free = match kind {
            CommandKind::Refresh => self.refreshes.length(&self.timing),
            _ => self.timing.tRP,
        };
        for bank in banks.clone() {
            if self.bank_mut(bank).row.take().is_some() {
                self.closes(bank, at);
            }
            let next = &mut self.bank_mut(bank).next;
            next[ACT] = next[ACT].max(at + free);
        }
        if kind != CommandKind::Refresh && self.groups.tPPD > 0 {
            self.precharges_wait(banks.start, at);
        }
        if kind == CommandKind::Refresh {
            let (closed, until) = self.refreshed;
            let others = if until > at { closed } else { 0 };
            self.refreshed = (others | mask(&banks), until.max(at + free));
            self.refreshing &= !mask(&banks);
            self.refresh_due[set % MOST] += self.timing.tREFI;
            if self.refreshes.tRFCsb > 0 {
                self.refreshed_beside(banks.start, at);
            }
        }
        Some((banks, at, kind))
    }

    /// When a command closes rows of these banks that are to be refreshed, `due` or later, and which.
    fn to_close(&self, banks: Range<usize>, due: u64) -> Option<(u64, CommandKind, Range<usize>)> {
        let open = banks.clone().filter(|bank| self.banks[*bank].row.is_some());
        let at = |bank: usize| self.banks[bank].next[PRE].max(due);
        if !self.refreshes.closes_singly {
            return Some((open.map(at).max()?, CommandKind::PrechargeAll, banks));
        }
        let groups = self.groups.count as usize;
        let bank = open.min_by_key(|bank| (at(*bank), bank % groups, *bank))?;
        Some((at(bank), CommandKind::Precharge, bank..bank + 1))
    }

    #[inline]
    fn closes(&mut self, bank: usize, cycle: u64) {
        if let Some(activity) = &mut self.activity {
            activity.closes(bank >> self.rank_shift, cycle);
        }
    }

    /// Cycles before `cycle` in which ranks had open rows, summed, where that is counted.
    pub fn active(&self, cycle: u64) -> u64 {
        let activity = self.activity.as_ref();
        activity.map_or(0, |activity| activity.until(cycle))
    }

    pub fn forget_active(&mut self, cycle: u64) {
        if let Some(activity) = &mut self.activity {
            activity.forget(cycle);
        }
    }

    pub fn refresh_period(&self) -> u64 {
        self.timing.tREFI
    }

    /// The cycle until which refreshes have to be made up for one by one, if so many are due at `cycle` that most of
    /// them can be [skipped](Self::skip_periods).
    pub fn long_idle(&self, cycle: u64) -> Option<u64> {
        let periods = SETTLING * self.timing.tREFI;
        if cycle < self.refresh_due[0] + 2 * periods {
            return None; // what nearly every call finds
        }
        let last = self.refresh_due[..self.sets].iter().max()?;
        let settled = last + periods;
        (settled + periods < cycle).then_some(settled)
    }

    /// What refreshes have left behind, relative to when the next are due. If it is the same a period later, it is the
    /// same after every period in which there is no other command. `None` if not all that were due at `cycle` could go:
    /// an array write may take longer than many periods.
    pub fn left_by_refreshes(&self, cycle: u64) -> Option<impl PartialEq + use<>> {
        if self.refresh_due[..self.sets]
            .iter()
            .any(|due| *due <= cycle)
        {
            return None;
        }
        let mut left = [0; MOST + 1];
        let relative = |time: u64, set: usize| time.wrapping_sub(self.refresh_due[set % MOST]);
        for set in 0..self.sets {
            for bank in self.set(set) {
                left[bank % MOST] = relative(self.banks[bank].next[ACT], set);
            }
        }
        left[MOST] = relative(self.bus_used, 0);
        Some(left)
    }

    /// Passes over all periods of refreshes before `cycle` but the last, as if their commands had gone out.
    pub fn skip_periods(&mut self, cycle: u64) {
        let last = self.refresh_due[..self.sets].iter().max();
        let periods = cycle.saturating_sub(*last.unwrap_or(&cycle)) / self.timing.tREFI;
        let time = periods.saturating_sub(1) * self.timing.tREFI;
        for set in 0..self.sets {
            self.refresh_due[set % MOST] += time;
            for bank in &mut self.banks[set * self.per_set..(set + 1) * self.per_set] {
                bank.next[ACT] += time;
            }
        }
        if self.refreshes.tRFCsb > 0 {
            for rank in &mut self.ranks {
                rank.refreshed += time;
            }
        }
        self.bus_used += time;
        self.refreshed.1 += time;
    }

    fn set(&self, set: usize) -> Range<usize> {
        set * self.per_set..(set + 1) * self.per_set
    }

    /// The cycle from which on some banks of `bank`'s rank may be refreshed as far as its other banks are concerned. A
    /// refresh keeps the distance of an activate from them, and refreshes of a rank's sets have theirs.
    #[cold]
    fn beside(&self, bank: usize) -> u64 {
        let rank = bank >> self.rank_shift;
        let groups = rank << self.group_shift..(rank + 1) << self.group_shift;
        let limits = groups.map(|group| self.limits[group % MOST * 4 + ACT]);
        let activates = limits.fold(0.0, later) as i64 as u64;
        activates.max(self.ranks[rank % MOST].refreshed)
    }

    #[cold]
    fn refreshed_beside(&mut self, bank: usize, at: u64) {
        let rank = bank >> self.rank_shift;
        self.ranks[rank % MOST].refreshed = at + self.refreshes.apart();
        let others = number(at + self.refreshes.tREFSBRD);
        for group in rank << self.group_shift..(rank + 1) << self.group_shift {
            let limit = &mut self.limits[group % MOST * 4 + ACT];
            *limit = later(others, *limit);
        }
        self.apply_limits();
    }

    #[inline]
    pub fn next_refresh(&self, busy: u64) -> u64 {
        match self.timing.tREFI {
            0 => NEVER,
            _ => self.next_refresh_due(busy),
        }
    }

    fn next_refresh_due(&self, busy: u64) -> u64 {
        let mut next = NEVER;
        for (set, &due) in self.refresh_due[..self.sets].iter().enumerate() {
            let banks = self.set(set);
            if busy & mask(&banks) != 0 && due <= self.bus_used {
                continue; // the commands of its banks go first; their cycles are events anyway
            }
            let ready = self.banks[banks.clone()].iter().map(|bank| match bank.row {
                Some(_) => bank.next[PRE],
                None => bank.next[ACT],
            });
            let mut ready = ready.max().unwrap_or(0);
            if self.refreshes.tRFCsb > 0 {
                ready = ready.max(self.beside(banks.start));
            }
            next = next.min(due.max(ready));
        }
        next
    }
}

fn mask(banks: &std::ops::Range<usize>) -> u64 {
    let ones = match banks.len() {
        64 => u64::MAX,
        len => (1 << len) - 1,
    };
    ones << banks.start
}
