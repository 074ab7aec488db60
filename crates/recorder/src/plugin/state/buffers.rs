//! Write-combining buffers: stores past the caches, and the fences and flushes that empty them.

use super::PluginState;
use crate::codec::{RecorderEvent, op};
use crate::maps::FILES;
use crate::options::Level;
use crate::plugin::{counters, threads};

/// The number of lines that one thread can be writing past the caches at a time (Intel's processors have ten or twelve
/// buffers).
const BUFFERS: usize = 10;

pub(super) struct Buffer {
    pub thread: u16,
    pub line: u64,
    bytes: u64,
    pub site: Option<u32>,
    /// The line's bytes after that store, at level `cpu`.
    pub held: Option<[u8; 64]>,
}

impl PluginState {
    /// Stores past the caches: as a rule a whole line, sooner or later.
    pub fn past_caches(&mut self, vcpu: u32, address: u64, size: u64) {
        let thread = counters::number(vcpu);
        self.settle(vcpu);
        for byte in address..address + size {
            let (line, bit) = (self.place(vcpu, byte, true), 1 << (byte % 64));
            let known = |b: &Buffer| b.line == line && b.thread == thread;
            let at = self
                .buffers
                .iter()
                .position(known)
                .unwrap_or_else(|| self.new_buffer(thread, line));
            if line >= FILES && self.out.now.is_some() {
                self.buffers[at].site = self.out.site();
            }
            self.buffers[at].bytes |= bit;
            if self.level == Level::Cpu && (byte == address + size - 1 || byte % 64 == 63) {
                self.buffers[at].held = self.out.bytes(line);
            }
            if self.buffers[at].bytes == u64::MAX {
                self.empty_buffers(|b| known(b));
            }
        }
    }

    fn new_buffer(&mut self, thread: u16, line: u64) -> usize {
        if self.level == Level::Memory && self.caches.flush(line, true) {
            self.out.write(op::EVICT, line);
        }
        if self.buffers.iter().filter(|b| b.thread == thread).count() == BUFFERS {
            let mut oldest = true;
            self.empty_buffers(|b| b.thread == thread && std::mem::take(&mut oldest));
        }
        self.buffers.push(Buffer {
            thread,
            line,
            bytes: 0,
            site: None,
            held: None,
        });
        self.buffers.len() - 1
    }

    pub(super) fn empty_buffers(&mut self, mut which: impl FnMut(&Buffer) -> bool) {
        let out = &mut self.out;
        self.buffers.retain(|buffer| {
            let go = which(buffer);
            if go {
                out.write_past(buffer.line, buffer.site, None);
            }
            !go
        });
    }

    pub fn fence(&mut self, vcpu: u32) {
        self.settle(vcpu);
        let thread = counters::number(vcpu);
        self.empty_buffers(|buffer| buffer.thread == thread);
        self.out.fence();
    }

    pub fn flush(&mut self, vcpu: u32, code: u8, address: u64) {
        self.settle(vcpu);
        let line = self.place(vcpu, address, false);
        self.empty_buffers(|buffer| buffer.line == line);
        if threads::threaded() || threads::shared() {
            self.out.catch_up(line);
        }
        self.out.record(code, line, None);
        if self.level == Level::Memory && self.caches.flush(line, code != op::CLWB) {
            if threads::threaded() {
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            }
            self.out.write(op::WRITE_BACK, line);
        }
    }

    /// Flushes and fences what was stored to these ranges, each a first line and a number of lines, because a system
    /// call has made it persistent.
    pub fn synced(&mut self, vcpu: u32, ranges: impl IntoIterator<Item = (u64, u64)>) {
        if self.level != Level::Cpu {
            return;
        }
        let thread = counters::number(vcpu);
        self.out.thread = thread;
        // The buffers are emptied before the recorder, which knows all processes' stores, finds out which lines are
        // sure.
        self.empty_buffers(|buffer| buffer.thread == thread);
        let ranges: Vec<(u64, u64)> = ranges.into_iter().collect();
        if !ranges.is_empty() {
            let site = self.out.site().map_or(0, |site| site + 1);
            self.out.tell(&RecorderEvent::Synced {
                thread,
                site,
                ranges,
            });
        }
    }
}
