//! When an operation is fetched: the reorder window, MSHRs, the store queue and fences, as far as the
//! answers so far tell.

use super::{Head, Miss, Need, Player};
use crate::cpu::{Below, OpKind};
use crate::units::Time;

impl Player {
    /// Whether a miss can go to memory now; if not, says why the head waits.
    pub(super) fn may_miss(&mut self, below: &impl Below, fetch: u64, need: Need) -> bool {
        self.need = need;
        self.settle();
        if self.head != Head::Ready(fetch) {
            return false;
        }
        if !below.takes() {
            self.head = Head::Stalled(fetch);
            return false;
        }
        while self.releases.front().is_some_and(|&free| free <= fetch) {
            self.releases.pop_front();
        }
        true
    }

    pub(super) fn answered(&mut self) {
        if self.head == Head::Blocked {
            self.settle();
        }
    }

    /// Finds out when the head is fetched, if the answers so far tell.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.head = Head::Blocked;
        let Some(op) = self.batch.ops().get(self.next) else {
            if self.at == 0 || self.pass_window(self.at - 1) {
                self.head = Head::End;
                let reach = self.at.saturating_sub(1) * self.slot + self.fetch_lag;
                self.fetched = self.fetched.max(reach);
            }
            return;
        };
        let kind = op.kind;
        if !self.pass_window(self.at) {
            return;
        }
        let mut fetch = self.at * self.slot + self.fetch_lag;
        match kind {
            OpKind::Depend if self.loads_out > 0 => return,
            OpKind::Depend => fetch = fetch.max(self.loaded),
            OpKind::Fence if self.unaccepted + self.stores_out > 0 => return,
            OpKind::Fence => fetch = fetch.max(self.persistent),
            _ => {}
        }
        if self.need == Need::StoreQueue && self.stores_out >= self.store_queue {
            return;
        }
        if self.need != Need::Nothing {
            let free = self.releases.partition_point(|&free| free <= fetch);
            if self.misses_out + self.releases.len() - free >= self.mshrs {
                // Answers come in the order of their times, so none can be before the first known.
                let Some(&first) = self.releases.get(free) else {
                    return;
                };
                fetch = first;
            }
        }
        self.head = Head::Ready(fetch);
    }

    /// Lets the window reach up to instruction `at`: everything `window` before it must have retired.
    #[inline]
    pub(super) fn pass_window(&mut self, at: u64) -> bool {
        while let Some(miss) = self.misses.front() {
            if miss.at + self.window > at {
                break;
            }
            let Some(back) = miss.back else {
                return false;
            };
            self.retire_lag = self.retire_lag.max(self.lag_of(miss, back));
            self.misses.pop_front();
            self.first += 1;
        }
        let reach = self.retire_lag.saturating_sub(self.window * self.slot);
        if reach > self.fetch_lag {
            self.waits.load += reach - self.fetch_lag;
            self.fetch_lag = reach;
        }
        true
    }

    pub(super) fn lag_of(&self, miss: &Miss, back: u64) -> u64 {
        (miss.fetched + self.width * self.slot).max(back) - miss.at * self.slot
    }

    pub(super) fn not_before(&mut self, tick: u64) {
        let lag = tick.saturating_sub(self.at * self.slot);
        self.waits.load += lag.saturating_sub(self.fetch_lag);
        self.fetch_lag = self.fetch_lag.max(lag);
    }

    #[inline]
    pub(super) fn time(&self, ticks: u64) -> Time {
        Time::from_ps(ticks.div_ceil(self.width))
    }
}
