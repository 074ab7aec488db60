//! Translated code that callbacks know: flush instructions, signal handlers, and the blocks that ran.

use std::collections::{HashMap, HashSet};

use iced_x86::Instruction;

use super::PluginState;
use crate::codec::RecorderEvent;
use crate::options::Level;
use crate::plugin::guest::Area;
use crate::plugin::lists::GroupLists;

#[derive(Default)]
pub struct Code {
    /// The first addresses of signal handlers, at which the kernel has just written a frame.
    pub handlers: HashSet<u64>,
    /// Flush instructions with their operations' codes, which QEMU's translations point to.
    flushes: HashMap<(Instruction, u64), &'static Flush>,
    pub lists: GroupLists,
}

/// A flush instruction, or one whose accesses have no callback: its operation's code, and its address.
pub struct Flush {
    pub code: u8,
    pub instruction: Instruction,
    pub pc: u64,
}

impl Code {
    /// The flush instruction, which lives as long as QEMU.
    pub fn flush(&mut self, code: u8, instruction: Instruction, pc: u64) -> &'static Flush {
        let known = self.flushes.entry((instruction, pc));
        known.or_insert_with(|| {
            Box::leak(Box::new(Flush {
                code,
                instruction,
                pc,
            }))
        })
    }
}

impl PluginState {
    pub fn runs(&mut self, start: u64, end: u64) {
        if self.level != Level::Cpu || self.out.sites.is_none() {
            return;
        }
        let known = self.ran.entry(start).or_default();
        if *known < end {
            *known = end;
            self.out.tell(&RecorderEvent::Ran { start, end });
        }
    }

    pub fn has_run(&self, start: u64, end: u64) -> bool {
        self.ran.range(start..end.max(start)).next().is_some()
    }

    /// Sends the file of the code in `start..end`, which is about to be unmapped, while it is known.
    pub fn unmaps_code(&mut self, start: u64, end: u64, areas: &[Area]) {
        let mut rest = self.ran.split_off(&start);
        self.ran.append(&mut rest.split_off(&end));
        self.tell_modules(areas);
    }

    pub(super) fn tell_modules(&mut self, areas: &[Area]) {
        for area in areas {
            if area.path.starts_with('/') {
                self.out.tell(&RecorderEvent::Module {
                    start: area.start,
                    end: area.end,
                    offset: area.offset,
                    path: area.path.clone().into_bytes(),
                });
            }
        }
    }
}
