//! When an operation is fetched: the reorder window, MSHRs, the store queue and fences, as far as the
//! answers so far tell.

use super::{Need, Player, PlayerHead};
use crate::machine::ops::OpKind;
use crate::machine::port::Port;
use crate::units::Time;

impl Player<'_> {
    /// Whether a miss can go to memory now. If it cannot, notes why the head waits.
    pub(super) fn may_miss(&mut self, port: &Port, fetch: u64, need: Need) -> bool {
        self.need = need;
        self.settle();
        if self.head != PlayerHead::Ready(fetch) {
            return false;
        }
        if !port.takes() {
            self.head = PlayerHead::Stalled(fetch);
            return false;
        }
        self.mshrs.forget(fetch);
        true
    }

    pub(super) fn unblock(&mut self) {
        if self.head == PlayerHead::Blocked {
            self.settle();
        }
    }

    /// Computes when the head is fetched, if the answers so far tell.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.head = PlayerHead::Blocked;
        let Some(op) = self.batch.ops().get(self.next) else {
            if self.at == 0 || self.pass_window(self.at - 1) {
                self.head = PlayerHead::End;
                let reach = self.at.saturating_sub(1) * self.window.slot + self.fetch_lag;
                self.fetched = self.fetched.max(reach);
            }
            return;
        };
        let kind = op.kind;
        if self.need == Need::Lock || !self.pass_window(self.at) {
            return;
        }
        let mut fetch = self.at * self.window.slot + self.fetch_lag;
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
            match self.mshrs.free(fetch) {
                Some(free) => fetch = free,
                None => return,
            }
        }
        self.head = PlayerHead::Ready(fetch);
    }

    /// Lets the window reach up to instruction `at`; false while that depends on an answer.
    #[inline]
    pub(super) fn pass_window(&mut self, at: u64) -> bool {
        let Some(reach) = self.window.pass(at) else {
            return false;
        };
        if reach > self.fetch_lag {
            self.waits.load += reach - self.fetch_lag;
            self.fetch_lag = reach;
        }
        true
    }

    pub(super) fn not_before(&mut self, tick: u64) {
        let lag = tick.saturating_sub(self.at * self.window.slot);
        self.waits.load += lag.saturating_sub(self.fetch_lag);
        self.fetch_lag = self.fetch_lag.max(lag);
    }

    #[inline]
    pub(super) fn time(&self, ticks: u64) -> Time {
        self.window.time(ticks)
    }
}
