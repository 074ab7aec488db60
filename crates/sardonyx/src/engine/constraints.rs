//! Bank state as data: for every bank and command the earliest cycle at which it may issue. The
//! rules are NVMain's (RD→PRE is the DDR formula tBURST + tRTP − tCCD; a PCM array write of tWP
//! follows the data in its bank only). `docs/timing.md` lists them; the auditor re-checks them.

use super::channel::NEVER;
use super::log::CommandKind;
use crate::medium::params::{MediumParams, Timing};

pub(crate) const PRE: usize = 0;
pub(crate) const ACT: usize = 1;
pub(crate) const READ: usize = 2;
pub(crate) const WRITE: usize = 3;

#[derive(Clone)]
struct Bank {
    /// Earliest cycle of each command, as far as this bank alone is concerned.
    next: [u64; 4],
    /// The open row, or the one being opened.
    row: Option<u64>,
    /// Row hits since it was opened.
    hits: u32,
}

struct Rank {
    /// Earliest cycle of each command for the rank's and the channel's sake.
    next: [u64; 4],
    /// The last four activates, plus one; 0 for none yet.
    activates: [u64; 4],
    turn: usize,
    refresh_due: u64,
}

/// All banks of a channel.
pub(crate) struct Banks {
    timing: Timing,
    banks: Vec<Bank>,
    ranks: Vec<Rank>,
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
        let rank = |_| Rank {
            next: [0; 4],
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
            banks: vec![bank; ranks as usize * per_rank],
            ranks: (0..ranks).map(rank).collect(),
            per_rank,
            rank_shift: per_rank.trailing_zeros(),
            refreshing: 0,
            bus_used: 0,
        }
    }

    pub fn count(&self) -> usize {
        self.banks.len()
    }

    pub fn per_rank(&self) -> usize {
        self.per_rank
    }

    #[inline]
    pub fn open_row(&self, bank: usize) -> Option<u64> {
        self.banks[bank].row
    }

    /// Row hits of the bank since its row was opened.
    #[inline]
    pub fn hits(&self, bank: usize) -> u32 {
        self.banks[bank].hits
    }

    /// Banks whose rank is waiting to be refreshed.
    #[inline]
    pub fn refreshing(&self) -> u64 {
        self.refreshing
    }

    /// A command has gone out in every cycle up to this one at the latest.
    #[inline]
    pub fn bus_is_free(&self, cycle: u64) -> bool {
        cycle >= self.bus_used
    }

    /// The earliest cycle at which `command` may issue to `bank`.
    #[inline]
    pub fn earliest(&self, bank: usize, command: usize) -> u64 {
        let rank = &self.ranks[bank >> self.rank_shift];
        self.banks[bank].next[command].max(rank.next[command])
    }

    /// The bank's row will be `row`.
    #[inline]
    pub fn aim(&mut self, bank: usize, row: u64) {
        let bank = &mut self.banks[bank];
        if bank.row == Some(row) {
            bank.hits += 1;
        } else {
            (bank.row, bank.hits) = (Some(row), 0);
        }
    }

    pub fn precharge(&mut self, bank: usize, cycle: u64) {
        self.bus_used = cycle + 1;
        let next = &mut self.banks[bank].next;
        next[ACT] = next[ACT].max(cycle + self.timing.tRP);
    }

    pub fn activate(&mut self, bank: usize, cycle: u64) {
        self.bus_used = cycle + 1;
        let timing = &self.timing;
        let next = &mut self.banks[bank].next;
        next[READ] = next[READ].max(cycle + timing.tRCD);
        next[WRITE] = next[WRITE].max(cycle + timing.tRCD);
        next[PRE] = next[PRE].max(cycle + timing.tRAS);
        let rank = &mut self.ranks[bank >> self.rank_shift];
        rank.activates[rank.turn] = cycle + 1;
        rank.turn = (rank.turn + 1) % 4;
        rank.next[ACT] = cycle + timing.tRRD;
        if let Some(fourth) = rank.activates[rank.turn].checked_sub(1) {
            rank.next[ACT] = rank.next[ACT].max(fourth + timing.tFAW);
        }
    }

    /// A column command; gives the cycle in which the access is done.
    pub fn access(&mut self, bank: usize, command: usize, cycle: u64, closes: bool) -> u64 {
        self.bus_used = cycle + 1;
        let t = &self.timing;
        let column = t.tBURST.max(t.tCCD);
        let rank = bank >> self.rank_shift;
        let same = &mut self.banks[bank].next;
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
            self.banks[bank].row = None;
        }
        for (index, other) in self.ranks.iter_mut().enumerate() {
            let (read, write) = match index == rank {
                true => (reads, writes),
                false => (far_reads, far_writes),
            };
            other.next[READ] = other.next[READ].max(cycle + read.max(1));
            other.next[WRITE] = other.next[WRITE].max(cycle + write.max(1));
        }
        cycle + done + self.timing.off_chip
    }

    /// The next command that a refresh needs, if it may go at `cycle` or might have gone before.
    #[inline]
    pub fn refresh(&mut self, cycle: u64, busy: u64) -> Option<(usize, u64, CommandKind)> {
        match self.timing.tREFI {
            0 => None,
            _ => self.refresh_due(cycle, busy),
        }
    }

    fn refresh_due(&mut self, cycle: u64, busy: u64) -> Option<(usize, u64, CommandKind)> {
        let mut first: Option<(u64, usize, CommandKind)> = None;
        for index in 0..self.ranks.len() {
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
        for (index, rank) in self.ranks.iter().enumerate() {
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
