//! Locks in volatile memory, by which cores share lines. Whoever waits gets one in the order of asking.
//! Left out: the lines that locks lie in, and the time of handing one over, which is the last level's.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

#[derive(Default)]
pub(super) struct Locks(FxHashMap<u64, Lock>);

struct Lock {
    holder: usize,
    waiting: VecDeque<usize>,
}

impl Locks {
    /// Takes `lock` for `core` if it is free, and returns whether it was. If it was not, the core waits.
    pub fn take(&mut self, core: usize, lock: u64) -> bool {
        let lock = self.0.entry(lock).or_insert_with(|| Lock {
            holder: core,
            waiting: VecDeque::new(),
        });
        if lock.holder != core && !lock.waiting.contains(&core) {
            lock.waiting.push_back(core);
        }
        lock.holder == core
    }

    /// Releases the lock of `core`, and returns the core that has it now.
    ///
    /// # Panics
    /// If `core` does not have it.
    pub fn give_up(&mut self, core: usize, lock: u64) -> Option<usize> {
        let held = self.0.get_mut(&lock);
        let held = held.filter(|held| held.holder == core);
        let held = held.expect("only who has a lock gives it up");
        match held.waiting.pop_front() {
            Some(next) => {
                held.holder = next;
                Some(next)
            }
            None => {
                self.0.remove(&lock);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_to_who_has_waited_longest() {
        let mut locks = Locks::default();
        assert!(locks.take(0, 7) && locks.take(0, 7));
        assert!(!locks.take(2, 7) && !locks.take(1, 7) && !locks.take(2, 7));
        assert!(locks.take(1, 8));
        assert_eq!(locks.give_up(0, 7), Some(2));
        assert!(locks.take(2, 7));
        assert_eq!(locks.give_up(2, 7), Some(1));
        assert_eq!(locks.give_up(1, 7), None);
        assert!(locks.take(0, 7));
    }
}
