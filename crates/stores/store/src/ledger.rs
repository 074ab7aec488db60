//! The work of operations in the array: its steps, and their sums by purpose as exact integers. Energies are sums times
//! [`Energies`], so an energy changes when a parameter does, and a count never.

use std::ops::AddAssign;

use serde::Serialize;

use crate::parameters::{Bracket, Energies, Parameters};
use crate::store::Cost;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    Free,
    /// Comparing a new block against all that are stored.
    Search,
    Store,
    /// The address translation table, on every operation's behalf.
    Translate,
    /// Finding a block by its physical address and reading it.
    Read,
    /// Finding a block by its physical address and emptying its rows.
    Erase,
}

impl Purpose {
    pub const ALL: [(Purpose, &str); 6] = [
        (Purpose::Free, "free"),
        (Purpose::Search, "search"),
        (Purpose::Store, "store"),
        (Purpose::Translate, "translate"),
        (Purpose::Read, "read"),
        (Purpose::Erase, "erase"),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The match line is precharged and the masked-on bits are compared with the key.
    Compare,
    Read,
    Write,
}

/// One step, or several equal steps in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerStep {
    pub purpose: Purpose,
    pub action: Action,
    pub rows: u64,
    pub bits: u32,
    pub times: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowWork {
    pub cycles: u64,
    pub active_rows: u128,
    pub compared_bits: u128,
    pub read_bits: u128,
    pub written_bits: u128,
}

impl RowWork {
    /// Femtojoules, with energies at the given place of their brackets. Reading a bit costs as much as comparing one.
    /// *assumed*
    pub fn energy_fj(&self, energies: &Energies, place: fn(Bracket) -> f64) -> f64 {
        let sensed = (self.compared_bits + self.read_bits) as f64;
        sensed * place(energies.compared_bit_fj)
            + self.active_rows as f64 * place(energies.match_line_fj)
            + self.written_bits as f64 * place(energies.written_bit_fj)
    }
}

impl AddAssign for RowWork {
    fn add_assign(&mut self, other: RowWork) {
        self.cycles += other.cycles;
        self.active_rows += other.active_rows;
        self.compared_bits += other.compared_bits;
        self.read_bits += other.read_bits;
        self.written_bits += other.written_bits;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostLedger([RowWork; Purpose::ALL.len()]);

impl CostLedger {
    pub fn of(&self, purpose: Purpose) -> &RowWork {
        &self.0[purpose as usize]
    }

    pub fn total(&self) -> RowWork {
        let mut sum = RowWork::default();
        self.0.iter().for_each(|&work| sum += work);
        sum
    }
}

impl CostLedger {
    /// The cost of all work, one operation after the other, with energies in the middle of their brackets.
    pub fn cost(&self, p: &Parameters) -> Cost {
        let total = self.total();
        Cost {
            cycles: total.cycles,
            time_ns: total.cycles as f64 / p.clock_ghz,
            energy_nj: total.energy_fj(&p.energies, Bracket::middle) / 1e6,
        }
    }

    pub fn energy_by(&self, p: &Parameters) -> Vec<(&'static str, f64)> {
        let of = |purpose| self.of(purpose).energy_fj(&p.energies, Bracket::middle) / 1e6;
        let all = Purpose::ALL.iter();
        all.map(|&(purpose, name)| (name, of(purpose))).collect()
    }
}

impl AddAssign<&CostLedger> for CostLedger {
    fn add_assign(&mut self, other: &CostLedger) {
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }
}

/// The steps of one operation in their order, and their sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    steps: Vec<LedgerStep>,
    ledger: CostLedger,
}

impl Log {
    pub fn clear(&mut self) {
        self.steps.clear();
        self.ledger = CostLedger::default();
    }

    pub fn step(&mut self, purpose: Purpose, action: Action, rows: u64, bits: u32, times: u64) {
        if times == 0 {
            return;
        }
        let work = &mut self.ledger.0[purpose as usize];
        let each = u128::from(rows) * u128::from(times);
        let all = each * u128::from(bits);
        match action {
            Action::Compare => {
                work.active_rows += each;
                work.compared_bits += all;
            }
            Action::Read => work.read_bits += all,
            Action::Write => work.written_bits += all,
        }
        let step = LedgerStep {
            purpose,
            action,
            rows,
            bits,
            times,
        };
        match self.steps.last_mut() {
            Some(last) if LedgerStep { times, ..*last } == step => last.times += times,
            _ => self.steps.push(step),
        }
    }

    pub fn cycles(&mut self, purpose: Purpose, cycles: u64) {
        self.ledger.0[purpose as usize].cycles += cycles;
    }

    pub fn ledger(&self) -> &CostLedger {
        &self.ledger
    }
}
