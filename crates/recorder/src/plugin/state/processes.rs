//! Forks: a child records in a ring of its own, in its parent's, or not at all.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::PluginState;
use crate::codec::RecorderEvent;
use crate::plugin::{counters, threads};
use crate::ring::Ring;

const CHILD_RING: u64 = 4 << 20;

impl PluginState {
    /// Begins a child with cold caches and a ring of its own, or without a recording.
    pub fn restart_in_child(&mut self) {
        counters::reset();
        self.caches.clear();
        self.buffers.clear();
        self.late.clear();
        (self.cleared_pages, self.copied_pages) = (0, 0);
        (self.left_out, self.has_forked) = (0, true);
        if threads::shared() {
            self.cleared.clear();
            threads::take_between();
            self.out.restart_shared();
            return;
        }
        let follow = self.options.follow_fork && self.out.on();
        let process = std::process::id();
        let ring = follow.then(|| self.child_ring(process)).flatten();
        self.out.restart(ring);
    }

    pub fn forks(&mut self) {
        if self.options.one_order && self.out.share() {
            self.out.forks(true);
        }
    }

    pub fn forked(&mut self, result: i64) {
        match u32::try_from(result) {
            _ if !threads::shared() => {}
            Ok(process @ 1..) => self.out.tell(&RecorderEvent::Forked(process)),
            Ok(_) => {}
            Err(_) => self.out.forks(false),
        }
    }

    pub fn count_child(&mut self) {
        self.has_forked = true;
        if !self.options.follow_fork && !self.options.one_order {
            self.left_out += 1;
            // It is not known what the child runs, so everything may run.
            self.runs(0, u64::MAX);
        }
    }

    fn child_ring(&self, process: u32) -> Option<Ring> {
        let path = Path::new(&self.options.folder).join(Ring::name(process));
        let ring = Ring::create(&path, CHILD_RING, self.options.reader).ok()?;
        ring.header().writer.store(process, Ordering::Relaxed);
        ring.header().begun.store(1, Ordering::Release);
        Some(ring)
    }
}
