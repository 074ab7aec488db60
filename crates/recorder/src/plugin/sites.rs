//! The place in the program of each record: the instruction, and the calls that led there.
//!
//! A shadow of each thread's stack is kept from the accesses themselves: a call stores its return address, and the
//! address of that store says which frames are still alive, also after a `longjmp`. The caller's site is looked up only
//! for a record.

use std::collections::HashMap;

struct CallFrame {
    pc: u64,
    stack: u64,
    /// The call's site plus 1, once a record needed it.
    site: u32,
}

#[derive(Default)]
pub struct Sites {
    threads: Vec<Vec<CallFrame>>,
    numbers: HashMap<(u32, u64), u32>,
    /// The number of the first site; an earlier program of this process had those before.
    first: u32,
}

impl Sites {
    pub fn from(first: u32) -> Sites {
        Sites {
            first,
            ..Sites::default()
        }
    }

    pub fn next(&self) -> u32 {
        self.first + self.numbers.len() as u32
    }

    fn frames(&mut self, vcpu: u32) -> &mut Vec<CallFrame> {
        let at = vcpu as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Vec::new);
        }
        &mut self.threads[at]
    }

    /// Drops frames at `stack` or below, whose return addresses have been used or overwritten.
    fn unwind(frames: &mut Vec<CallFrame>, stack: u64) {
        while frames.last().is_some_and(|frame| frame.stack <= stack) {
            frames.pop();
        }
    }

    /// Notes that a call at `pc` has put its return address at `stack`.
    pub fn call(&mut self, vcpu: u32, pc: u64, stack: u64) {
        let frames = self.frames(vcpu);
        Sites::unwind(frames, stack);
        frames.push(CallFrame { pc, stack, site: 0 });
    }

    pub fn returned(&mut self, vcpu: u32, stack: u64) {
        Sites::unwind(self.frames(vcpu), stack);
    }

    /// The number of a part of a line that an instruction's site loads, from its first byte on: a site below that of
    /// the instruction, at an address without code. `tell` is called with it if it is new.
    pub fn part(
        &mut self,
        site: u32,
        (first, length): (u8, u8),
        tell: impl FnOnce(u32, u64),
    ) -> u32 {
        let at = u64::from(first) * 64 + u64::from(length) - 1;
        let next = self.next();
        *self.numbers.entry((site + 1, at)).or_insert_with(|| {
            tell(site + 1, at);
            next
        })
    }

    /// The number of the site of `pc`; `tell` is called with each that is new, with its parent plus 1 and its address.
    pub fn number(&mut self, vcpu: u32, pc: u64, mut tell: impl FnMut(u32, u64)) -> u32 {
        self.frames(vcpu);
        let Sites {
            threads,
            numbers,
            first,
        } = self;
        let mut of = |parent: u32, pc: u64| {
            let next = *first + numbers.len() as u32;
            *numbers.entry((parent, pc)).or_insert_with(|| {
                tell(parent, pc);
                next
            })
        };
        let frames = &mut threads[vcpu as usize];
        let known = frames.iter().rposition(|frame| frame.site != 0);
        let mut parent = known.map_or(0, |at| frames[at].site);
        for frame in &mut frames[known.map_or(0, |at| at + 1)..] {
            frame.site = of(parent, frame.pc) + 1;
            parent = frame.site;
        }
        of(parent, pc)
    }
}
