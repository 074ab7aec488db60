//! The end of a program: the lines that are still cached, and the last notes.

use super::PluginState;
use crate::codec::{CacheContents, RecorderEvent, op};
use crate::frames::FirstContents;
use crate::options::Level;
use crate::plugin::counters;
use crate::plugin::guest::Area;

impl PluginState {
    #[cold]
    pub(super) fn leave(&mut self) {
        self.out.full = false;
        let dirty = self.caches.all_dirty(|_| true);
        let cached = self.cached(&dirty);
        self.out.leave(cached);
    }

    fn cached(&self, dirty: &[u64]) -> CacheContents {
        CacheContents {
            dirty: dirty.len() as u64,
            gone: (dirty.iter().filter(|line| self.out.is_gone(**line))).count() as u64,
            cleared: self.cleared_pages,
            copied: self.copied_pages,
            frames: self.out.frames.counted(),
        }
    }

    /// Sends stores past the caches, and those that no callback has told yet.
    fn complete(&mut self) {
        self.settle(0);
        self.empty_buffers(|_| true);
        for address in std::mem::take(&mut self.cleared) {
            self.touch(0, address, 4, true);
        }
        for address in std::mem::take(&mut self.late) {
            self.touch(0, address, 1, true);
        }
    }

    /// Keeps the bytes of dirty lines, because the program ends and the caches continue with the next.
    pub fn capture_all(&mut self) {
        self.complete();
        if self.level == Level::Memory {
            self.out.capture(self.caches.all_dirty(|_| true));
        }
    }

    /// Handles the end, or what may be the end; `how` says how it comes about.
    pub fn finish(&mut self, how: &RecorderEvent, areas: &[Area]) {
        if !self.out.on() {
            return;
        }
        self.complete();
        if self.level == Level::Memory {
            let dirty = self.caches.drain();
            let cached = self.cached(&dirty);
            for line in dirty {
                self.out.write(op::FINAL, line);
            }
            self.out.tell(&RecorderEvent::Cached(cached));
        }
        if *how == RecorderEvent::End {
            let shared = self.has_forked || self.options.follow_fork || self.options.one_order;
            let shared = shared.then(|| self.regions_of_the_kernel());
            let found = |at| shared.as_ref().and_then(|regions| regions.find(at));
            (self.out).tell_held(|at| found(at).is_some_and(FirstContents::is_shared));
        }
        for (thread, instructions) in counters::each().enumerate() {
            if self.out.child && instructions == 0 {
                continue; // its parent's
            }
            self.out.tell(&RecorderEvent::Thread {
                thread: thread as u16,
                instructions,
            });
        }
        self.remark(areas);
        self.out.tell(how);
    }

    /// Sends the last notes on the program that ends.
    pub fn remark(&mut self, areas: &[Area]) {
        if self.out.unreadable > 0 {
            let note = format!(
                "{} dirty lines could not be read when they were evicted",
                self.out.unreadable
            );
            self.out.tell(&RecorderEvent::Note(note.into_bytes()));
        }
        if self.left_out > 0 {
            let remedy = match self.level {
                Level::Memory => "--follow-fork records each in a file of its own",
                Level::Cpu => "--pc --follow-fork records them in one order with it",
            };
            let note = format!(
                "{} child processes are not in this trace; {remedy}",
                self.left_out
            );
            self.out.tell(&RecorderEvent::Note(note.into_bytes()));
        }
        if self.out.sites.is_some() {
            self.tell_modules(areas);
        }
        for (_, name) in std::mem::take(&mut self.refused) {
            let note =
                format!("the program asked for {name}, which is not there under QEMU (ENOSYS)");
            self.out.tell(&RecorderEvent::Note(note.into_bytes()));
        }
        if let Some(checked) = &self.checked {
            self.out
                .tell(&RecorderEvent::Note(checked.note().into_bytes()));
        }
    }
}
