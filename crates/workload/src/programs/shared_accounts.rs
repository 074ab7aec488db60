//! Accounts that all cores use; a transaction moves an amount from one to another, and has the locks of both.
//! Invariant: the amounts add up to what setup put there, and what else an account holds follows from its
//! amount and from how often it was changed.

use super::{Heap, LINE, Program, ProgramFile, fault, to_bytes, words};
use crate::random::{Random, mix};
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "shared-accounts",
    line: "moves an amount between two accounts that all cores use",
    least_bytes: 0,
    build: |spec, heap| {
        let accounts = (spec.footprint / spec.item_bytes).max(2);
        let heap = Heap::new(heap, accounts * spec.item_bytes);
        let program = Accounts {
            spec,
            heap,
            accounts,
        };
        (heap, Box::new(program))
    },
};

const FIRST: u64 = 1_000_000;

struct Accounts {
    spec: ProgramSpec,
    heap: Heap,
    accounts: u64,
}

impl Accounts {
    fn place(&self, account: u64) -> u64 {
        self.heap.start + account * self.spec.item_bytes
    }

    fn transfer(&self, number: u64) -> (u64, u64, u64) {
        let mut random = Random::new(self.spec.seed, number);
        let from = random.below(self.accounts);
        let to = (from + 1 + random.below(self.accounts - 1)) % self.accounts;
        (from, random.below(1000), to)
    }

    /// The content of `account` with that amount after so many changes: both numbers, then words that follow from them.
    fn content(&self, account: u64, amount: u64, changes: u64) -> Vec<u8> {
        let word = |index| match index {
            0 => amount,
            1 => changes,
            _ => mix(account ^ mix(amount ^ mix(changes ^ mix(index)))),
        };
        let all: Vec<u64> = (0..self.spec.item_bytes / 8).map(word).collect();
        to_bytes(&all)
    }

    fn change(&self, memory: &mut dyn Bytes, account: u64, by: u64) {
        let at = self.place(account);
        let (amount, changes) = (memory.load_u64(at), memory.load_u64(at + 8));
        memory.depend();
        let amount = amount.wrapping_add(by);
        memory.store(at, &self.content(account, amount, changes + 1));
    }
}

impl Program for Accounts {
    fn setup(&self, memory: &mut dyn Bytes) {
        for account in 0..self.accounts {
            memory.store(self.place(account), &self.content(account, FIRST, 0));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        let (from, amount, to) = self.transfer(number);
        self.change(memory, from, amount.wrapping_neg());
        self.change(memory, to, amount);
    }

    fn locks(&self, number: u64) -> Vec<u64> {
        let (from, _, to) = self.transfer(number);
        vec![from.min(to), from.max(to)]
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let mut all = 0u64;
        for account in 0..self.accounts {
            let at = self.place(account);
            let mut found = vec![0; self.spec.item_bytes as usize];
            memory.load(at, &mut found);
            let [amount, changes] = words(&found);
            let should = self.content(account, amount, changes);
            if let Some(byte) = found.iter().zip(&should).position(|(a, b)| a != b) {
                let at = at + byte as u64;
                return fault(at, format!("account {account} is torn"));
            }
            all = all.wrapping_add(amount);
        }
        match all == FIRST.wrapping_mul(self.accounts) {
            true => Ok(()),
            false => fault(
                self.heap.start & !(LINE - 1),
                format!("the accounts hold {all} together"),
            ),
        }
    }
}
