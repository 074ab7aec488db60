//! Bank state as data: for every bank and command the earliest cycle at which it may issue. The
//! rules are NVMain's (RD→PRE is the DDR formula tBURST + tRTP − tCCD; a PCM array write of tWP
//! follows the data in its bank only). `docs/timing.md` lists them; the auditor re-checks them.

use super::channel::NEVER;
use super::log::CommandKind;
use crate::medium::params::{MAX_BANKS, MediumParams, Timing};

pub(crate) const PRE: usize = 0;
pub(crate) const ACT: usize = 1;
pub(crate) const READ: usize = 2;
pub(crate) const WRITE: usize = 3;

/// Banks that a channel may have in all its ranks: a set of them is a `u64`, and arrays of this
/// length need no check of an index taken modulo it.
pub(crate) const MOST: usize = MAX_BANKS;

#[derive(Clone, Copy)]
struct Bank {
    /// Earliest cycle of each command, as far as this bank alone is concerned.
    next: [u64; 4],
    /// The open row, or the one being opened.
    row: Option<u64>,
    /// Row hits since it was opened.
    hits: u32,
}

#[derive(Clone, Copy)]
struct Rank {
    /// The last four activates, plus one; 0 for none yet.
    activates: [u64; 4],
    turn: usize,
    refresh_due: u64,
}

/// All banks of a channel.
pub(crate) struct Banks {
    timing: Timing,
    banks: Box<[Bank; MOST]>,
    ranks: Box<[Rank; MOST]>,
    /// Earliest cycle of each rank's each command, for the rank's and the channel's sake.
    limits: Box<[[u64; 4]; MOST]>,
    /// The banks whose access needs this command next, and the earliest cycle for each of them.
    wanting: [u64; 4],
    earliest: Box<[u64; MOST]>,
    count: usize,
    rank_count: usize,
    per_rank: usize,
    rank_shift: u32,
    refreshing: u64,
    bus_used: u64,
}

impl Banks {
    pub fn new(params: &MediumParams) -> Banks {
        let (ranks, per_rank) = (params.geometry.ranks, params.geometry.banks as usize);
        let timing = params.timing.clone();
        let first = match timing.tREFI {
            0 => NEVER,
            interval => interval,
        };
        let rank = Rank {
            activates: [0; 4],
            turn: 0,
            refresh_due: first,
        };
        let bank = Bank {
            next: [0; 4],
            row: None,
            hits: 0,
        };
        Banks {
            timing,
            banks: Box::new([bank; MOST]),
            ranks: Box::new([rank; MOST]),
            limits: Box::new([[0; 4]; MOST]),
            wanting: [0; 4],
            earliest: Box::new([NEVER; MOST]),
            count: ranks as usize * per_rank,
            rank_count: ranks as usize,
            per_rank,
            rank_shift: per_rank.trailing_zeros(),
            refreshing: 0,
            bus_used: 0,
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

    /// Row hits of the bank since its row was opened.
    #[inline]
    pub fn hits(&self, bank: usize) -> u32 {
        self.bank(bank).hits
    }

    /// Banks whose rank is waiting to be refreshed.
    #[inline]
    pub fn refreshing(&self) -> u64 {
        self.refreshing
    }

    /// The bank's access needs `command` next.
    #[inline]
    pub fn want(&mut self, bank: usize, command: usize) {
        let limits = &self.limits[(bank >> self.rank_shift) % MOST];
        self.earliest[bank % MOST] = self.bank(bank).next[command % 4].max(limits[command % 4]);
        self.wanting[command % 4] |= 1 << bank;
    }

    /// The limits of `command` have grown: for those who want it too.
    #[inline]
    fn limits_grew(&mut self, command: usize) {
        let mut banks = self.wanting[command % 4];
        while banks != 0 {
            let bank = banks.trailing_zeros() as usize;
            banks &= banks - 1;
            let limit = self.limits[(bank >> self.rank_shift) % MOST][command % 4];
            let earliest = &mut self.earliest[bank % MOST];
            *earliest = limit.max(*earliest);
        }
    }

    /// A bank that may get what it wants at `cycle`, the first from `turn` on, and what that is.
    #[inline]
    pub fn legal(&self, cycle: u64, busy: u64, turn: u32) -> Option<(usize, usize)> {
        if cycle < self.bus_used {
            return None; // a command has gone out in this cycle
        }
        let mut busy = busy.rotate_right(turn);
        while busy != 0 {
            let bank = (busy.trailing_zeros() + turn) as usize % MOST;
            if self.earliest[bank] <= cycle {
                let wants = |command: &usize| self.wanting[*command] >> bank & 1 == 1;
                return Some((
                    bank,
                    [PRE, ACT, READ].into_iter().find(wants).unwrap_or(WRITE),
                ));
            }
            busy &= busy - 1;
        }
        None
    }

    /// The earliest cycle at which any of the `busy` banks may get what it wants.
    #[inline]
    pub fn next_command(&self, mut busy: u64) -> u64 {
        let mut next = NEVER;
        while busy != 0 {
            next = next.min(self.earliest[busy.trailing_zeros() as usize]);
            busy &= busy - 1;
        }
        next
    }

    /// The bank's row will be `row`.
    #[inline]
    pub fn aim(&mut self, bank: usize, row: u64) {
        let bank = self.bank_mut(bank);
        if bank.row == Some(row) {
            bank.hits += 1;
        } else {
            (bank.row, bank.hits) = (Some(row), 0);
        }
    }

    pub fn precharge(&mut self, bank: usize, cycle: u64) {
        self.bus_used = cycle + 1;
        self.wanting[PRE] &= !(1 << bank);
        let closed = cycle + self.timing.tRP;
        let next = &mut self.bank_mut(bank).next;
        next[ACT] = next[ACT].max(closed);
    }

    pub fn activate(&mut self, bank: usize, cycle: u64) {
        self.bus_used = cycle + 1;
        let timing = &self.timing;
        let next = &mut self.banks[bank % MOST].next;
        next[READ] = next[READ].max(cycle + timing.tRCD);
        next[WRITE] = next[WRITE].max(cycle + timing.tRCD);
        next[PRE] = next[PRE].max(cycle + timing.tRAS);
        let rank = &mut self.ranks[(bank >> self.rank_shift) % MOST];
        rank.activates[rank.turn % 4] = cycle + 1;
        rank.turn = (rank.turn + 1) % 4;
        let mut next = cycle + timing.tRRD;
        if let Some(fourth) = rank.activates[rank.turn % 4].checked_sub(1) {
            next = next.max(fourth + timing.tFAW);
        }
        self.limits[(bank >> self.rank_shift) % MOST][ACT] = next;
        self.wanting[ACT] &= !(1 << bank);
        self.limits_grew(ACT);
    }

    /// A column command; gives the cycle in which the access is done.
    pub fn access(&mut self, bank: usize, command: usize, cycle: u64, closes: bool) -> u64 {
        self.bus_used = cycle + 1;
        let t = &self.timing;
        let column = t.tBURST.max(t.tCCD);
        let rank = bank >> self.rank_shift;
        let same = &mut self.banks[bank % MOST].next;
        // What other ranks of the channel, and this one, may do next.
        let (reads, writes, far_reads, far_writes, done);
        if command == READ {
            reads = column;
            writes = (t.tCL + t.tBURST + t.tRTRS).saturating_sub(t.tCWD);
            far_reads = column + t.tRTRS;
            far_writes = writes;
            same[PRE] = same[PRE].max(cycle + (t.tBURST + t.tRTP).saturating_sub(t.tCCD));
            done = t.tCL + t.tBURST;
        } else {
            reads = t.tCWD + t.tBURST + t.tWTR;
            writes = column;
            far_reads = (t.tCWD + t.tBURST + t.tRTRS).saturating_sub(t.tCL);
            far_writes = column + t.tRTRS;
            same[READ] = same[READ].max(cycle + reads + t.tWP);
            same[WRITE] = same[WRITE].max(cycle + column + t.tWP);
            same[PRE] = same[PRE].max(cycle + t.tCWD + t.tBURST + t.tWP + t.tWR);
            done = t.tCWD + column + t.tWP;
        }
        if closes {
            same[ACT] = same[ACT].max(same[PRE] + t.tRP);
            self.bank_mut(bank).row = None;
        }
        let limits = &mut self.limits[..self.rank_count.min(MOST)];
        for (index, next) in limits.iter_mut().enumerate() {
            let (read, write) = match index == rank {
                true => (reads, writes),
                false => (far_reads, far_writes),
            };
            next[READ] = next[READ].max(cycle + read.max(1));
            next[WRITE] = next[WRITE].max(cycle + write.max(1));
        }
        self.wanting[command % 4] &= !(1 << bank);
        self.limits_grew(READ);
        self.limits_grew(WRITE);
        cycle + done + self.timing.off_chip
    }

    /// Whether the medium is refreshed at all.
    #[inline]
    pub fn refreshes(&self) -> bool {
        self.timing.tREFI != 0
    }

    /// The next command that a refresh needs, if it may go at `cycle` or might have gone before.
    pub fn refresh(&mut self, cycle: u64, busy: u64) -> Option<(usize, u64, CommandKind)> {
        let mut first: Option<(u64, usize, CommandKind)> = None;
        for index in 0..self.rank_count {
            if self.ranks[index].refresh_due > cycle {
                continue;
            }
            let banks = index * self.per_rank..(index + 1) * self.per_rank;
            let mask = mask(&banks);
            self.refreshing |= mask;
            if busy & mask != 0 {
                continue;
            }
            let due = self.ranks[index].refresh_due.max(self.bus_used);
            let banks = &self.banks[banks];
            let open = banks.iter().filter(|bank| bank.row.is_some());
            let precharge = open.map(|bank| bank.next[PRE]).max();
            let (at, kind) = match precharge {
                Some(at) => (at.max(due), CommandKind::PrechargeAll),
                None => {
                    let closed = banks.iter().map(|bank| bank.next[ACT]).max();
                    (closed.unwrap_or(0).max(due), CommandKind::Refresh)
                }
            };
            // The earliest goes: ranks that are behind are made up for side by side.
            if at <= cycle && first.is_none_or(|first| at < first.0) {
                first = Some((at, index, kind));
            }
        }
        let (at, index, kind) = first?;
        let banks = index * self.per_rank..(index + 1) * self.per_rank;
        let mask = mask(&banks);
        self.bus_used = at + 1;
        let free = match kind {
            CommandKind::PrechargeAll => self.timing.tRP,
            _ => self.timing.tRFC,
        };
        for bank in &mut self.banks[banks] {
            bank.row = None;
            bank.next[ACT] = bank.next[ACT].max(at + free);
        }
        if kind == CommandKind::Refresh {
            self.refreshing &= !mask;
            self.ranks[index].refresh_due += self.timing.tREFI;
        }
        Some((index, at, kind))
    }

    /// The next cycle in which a refresh needs looking at.
    #[inline]
    pub fn next_refresh(&self, busy: u64) -> u64 {
        match self.timing.tREFI {
            0 => NEVER,
            _ => self.next_refresh_due(busy),
        }
    }

    fn next_refresh_due(&self, busy: u64) -> u64 {
        let mut next = NEVER;
        for (index, rank) in self.ranks[..self.rank_count].iter().enumerate() {
            let banks = index * self.per_rank..(index + 1) * self.per_rank;
            if busy & mask(&banks) != 0 && rank.refresh_due <= self.bus_used {
                continue; // its banks' commands come first and wake the channel
            }
            let ready = self.banks[banks].iter().map(|bank| match bank.row {
                Some(_) => bank.next[PRE],
                None => bank.next[ACT],
            });
            next = next.min(rank.refresh_due.max(ready.max().unwrap_or(0)));
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
