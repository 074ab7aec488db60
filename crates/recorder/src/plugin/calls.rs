//! System calls that threads are in, and how far the heap goes.

use std::collections::HashMap;

use crate::frames::Place;

/// What a system call takes out of the address space: pages with where they lay, and parts of mapped files as address, length
/// and line.
#[derive(Default)]
pub struct Vacated {
    pub pages: Vec<(u64, Place)>,
    /// The first page, and the one after the last, whether they had been touched or not.
    pub range: (u64, u64),
    pub files: Vec<(u64, u64, u64)>,
}

/// What is known of the system calls that have not returned.
#[derive(Default)]
pub struct Calls {
    /// Arguments of the call that each thread is in.
    arguments: HashMap<u32, [u64; 6]>,
    /// What that call takes out.
    vacated: HashMap<u32, Vec<Vacated>>,
}

impl Calls {
    /// A thread enters a call.
    pub fn enter(&mut self, vcpu: u32, arguments: [u64; 6]) {
        self.arguments.insert(vcpu, arguments);
    }

    /// The thread's call takes this out.
    pub fn vacates(&mut self, vcpu: u32, vacated: Vec<Vacated>) {
        if !vacated.is_empty() {
            self.vacated.insert(vcpu, vacated);
        }
    }

    /// The thread is back: its arguments, if it was seen to enter, and what the call took out.
    pub fn leave(&mut self, vcpu: u32) -> Option<([u64; 6], Vec<Vacated>)> {
        let arguments = self.arguments.remove(&vcpu)?;
        Some((arguments, self.vacated.remove(&vcpu).unwrap_or_default()))
    }
}

/// The heap of `brk`.
#[derive(Default)]
pub struct Heap {
    end: u64,
    /// The most that the end ever was.
    top: u64,
}

impl Heap {
    /// Where it ends; 0 before that is known.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The most that the end ever was.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// It ends there from now on.
    pub fn ends(&mut self, end: u64) {
        self.end = end;
    }

    /// It grew to there.
    pub fn grew(&mut self, end: u64) {
        self.end = end;
        self.top = self.top.max(end);
    }
}
