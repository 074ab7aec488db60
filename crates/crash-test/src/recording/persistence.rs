//! The rules of persistence of the architecture (Intel SDM, CLWB, CLFLUSHOPT, CLFLUSH, SFENCE), applied to a recording.
//!
//! A line's contents persist in the order of its stores, so a cut leaves the result of its first n stores: n is at
//! least the *floor*, up to which a flush and then a fence of one thread have made sure, and at most all stores.
//! Nothing else orders two lines. Stores past the caches wait for their thread's fence, clflush for nothing.
//!
//! A file on a disk follows the same rules with other units (POSIX msync, fsync; block devices write a sector whole or
//! not at all): the page cache may write a page back at any moment, so a sector is as it was at some moment since it
//! was last made sure; a system call that waits makes sure. Such a call is recorded as flushes and a fence, and the
//! processor's own flushes and fences do nothing.

use std::iter::Peekable;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use crate::recording::platform::Platform;
use crate::recording::{Act, NOWHERE, Recording};

#[derive(Clone, Copy, Debug)]
pub struct Rise {
    pub slot: u32,
    pub from: u32,
    pub to: u32,
}

/// A position at which the power may fail, before an event.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The event that it comes before; the number of events stands for the end.
    pub event: u32,
    pub rises: u32,
    /// A hash of the kind of moment: the fence's place, and the places of the stores that are pending.
    pub signature: u32,
    /// The number of lines whose content is not certain.
    pub pending: u32,
    /// The number of bytes that had been printed.
    pub acked: u32,
}

/// Pending lines and the versions of all lines, while a recording is replayed.
#[derive(Debug)]
pub struct PendingState {
    pub floor: Vec<u32>,
    pub current: Vec<u32>,
    pub changed: Vec<u32>,
    /// Lines whose floor is not the version in the caches, in no order.
    pub pending: Vec<u32>,
    /// Those of them that were stored to lately, the last one first.
    pub recent: Vec<u32>,
    at: Vec<u32>,
    /// Links of the pending lines in the order of their last stores: each line's older and younger neighbour, and the
    /// youngest.
    older: Vec<u32>,
    younger: Vec<u32>,
    youngest: u32,
    waiting: FxHashMap<u16, Vec<(u32, u32)>>,
    stored: bool,
    rises: u32,
}

const OUT: u32 = u32::MAX;
/// At most this many recently stored lines are tried one by one; the others are those that nobody flushes.
const RECENT: usize = 16;
const OLD: u32 = 4096;

impl PendingState {
    fn new(lines: usize) -> PendingState {
        PendingState {
            floor: vec![0; lines],
            current: vec![0; lines],
            changed: vec![0; lines],
            pending: Vec::new(),
            recent: Vec::new(),
            at: vec![OUT; lines],
            older: vec![OUT; lines],
            younger: vec![OUT; lines],
            youngest: OUT,
            waiting: FxHashMap::default(),
            stored: false,
            rises: 0,
        }
    }

    fn store(&mut self, slot: u32, version: u32, event: u32) {
        let s = slot as usize;
        if self.current[s] == version {
            return;
        }
        self.current[s] = version;
        self.changed[s] = event;
        self.stored = true;
        if self.at[s] == OUT {
            self.at[s] = self.pending.len() as u32;
            self.pending.push(slot);
        } else {
            self.take_out(slot);
        }
        let before = std::mem::replace(&mut self.youngest, slot);
        (self.older[s], self.younger[s]) = (before, OUT);
        if before != OUT {
            self.younger[before as usize] = slot;
        }
    }

    fn take_out(&mut self, slot: u32) {
        let (older, younger) = (self.older[slot as usize], self.younger[slot as usize]);
        match younger {
            OUT => self.youngest = older,
            younger => self.older[younger as usize] = older,
        }
        if older != OUT {
            self.younger[older as usize] = younger;
        }
    }

    /// Pending lines, the one that was stored to last first.
    fn latest(&self) -> impl Iterator<Item = u32> + '_ {
        let first = (self.youngest != OUT).then_some(self.youngest);
        std::iter::successors(first, |&slot| {
            Some(self.older[slot as usize]).filter(|&older| older != OUT)
        })
    }

    fn look_back(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        recent.clear();
        let changed = |slot: u32| self.changed[slot as usize];
        let last = self.latest().next().map_or(0, changed);
        let near = |&slot: &u32| last - changed(slot) < OLD;
        recent.extend(self.latest().take(RECENT).take_while(near));
        self.recent = recent;
    }

    fn rise(&mut self, slot: u32, to: u32, told: &mut impl FnMut(Rise)) {
        let s = slot as usize;
        let from = self.floor[s];
        if to <= from {
            return;
        }
        self.floor[s] = to;
        self.rises += 1;
        told(Rise { slot, from, to });
        if to == self.current[s] && self.at[s] != OUT {
            self.take_out(slot);
            let at = std::mem::replace(&mut self.at[s], OUT);
            self.pending.swap_remove(at as usize);
            if let Some(&moved) = self.pending.get(at as usize) {
                self.at[moved as usize] = at;
            }
        }
    }
}

pub trait Visit {
    /// The power may fail before this event, after so many rises. The answer says whether to go on.
    fn cut(&mut self, event: u32, rises: u32, state: &PendingState) -> ControlFlow<()>;
    /// A line's floor rises at this event.
    fn rise(&mut self, _: u32, _: Rise) {}
}

/// A number for the moment's kind, by which moments of one kind are known.
fn signature(recording: &Recording, state: &PendingState, event: usize) -> u32 {
    let site = match event < recording.events.len() {
        true => recording.events.site(event),
        false => NOWHERE,
    };
    let mix = |a: u64, b: u64| (a ^ b).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let mut sum = mix(u64::from(site), 1);
    for &slot in &state.recent {
        let (s, changed) = (slot as usize, state.changed[slot as usize] as usize);
        let what = match recording.events.site(changed) {
            NOWHERE => u64::from(state.current[s] - state.floor[s]) << 32,
            // The store's site and its caller count, and not the depth of a recursion.
            site => {
                let site = recording.sites.get(site as usize);
                let caller =
                    site.and_then(|s| recording.sites.get(s.parent.wrapping_sub(1) as usize));
                mix(site.map_or(0, |s| s.pc), caller.map_or(0, |s| s.pc))
            }
        };
        sum = sum.wrapping_add(mix(what, 2));
    }
    (sum ^ sum >> 32) as u32
}

pub fn replay(recording: &Recording, platform: Platform, visit: &mut impl Visit) {
    let saves_caches = matches!(platform, Platform::Eadr);
    let mut replay = Replay {
        state: PendingState::new(recording.lines.len()),
        rises: 0,
        ended: false,
        promises: recording.promises.iter().copied().peekable(),
        visit,
    };
    let events = recording.events.walk(recording.lines.len());
    for (number, event) in events.enumerate() {
        if replay.ended {
            return;
        }
        if recording.promises.binary_search(&(number as u32)).is_ok() {
            replay.cut(number);
        }
        match event.act {
            Act::FlushClean | Act::Foreign => {}
            // Reserve power writes the caches back, so a store is persistent as soon as it is in one.
            Act::Store { slot, version, .. } if saves_caches => {
                if replay.state.current[slot as usize] != version {
                    replay.cut(number);
                    replay.state.store(slot, version, number as u32);
                    replay.rise(slot, version, number);
                }
            }
            _ if saves_caches => {}
            Act::Store {
                slot,
                version,
                past,
            } => {
                replay.state.store(slot, version, number as u32);
                if recording.assumed.contains(&event.site) {
                    replay.rise(slot, version, number);
                } else if past {
                    replay.wait(event.thread, slot, version);
                }
            }
            // No later store of the thread overtakes a CLFLUSH (Intel SDM), so it needs no fence.
            Act::Flush {
                slot,
                ordered: true,
            } => {
                let version = replay.state.current[slot as usize];
                if version > replay.state.floor[slot as usize] {
                    replay.cut(number);
                    replay.rise(slot, version, number);
                }
            }
            // A CLWB only starts a write-back, whose end is known at the thread's next fence.
            Act::Flush { slot, .. } => {
                replay.wait(event.thread, slot, replay.state.current[slot as usize]);
            }
            Act::Fence => replay.fence(event.thread, number),
        }
    }
    replay.cut(recording.events.len());
}

struct Replay<'v, V, P: Iterator<Item = u32>> {
    state: PendingState,
    rises: u32,
    ended: bool,
    promises: Peekable<P>,
    visit: &'v mut V,
}

impl<V: Visit, P: Iterator<Item = u32>> Replay<'_, V, P> {
    fn cut(&mut self, event: usize) {
        // At an acknowledgement the images may be those of the cut before, but more was acknowledged.
        let promised = self.promises.next_if(|&at| at as usize <= event).is_some();
        let state = &mut self.state;
        if self.ended {
            return;
        }
        if !std::mem::take(&mut state.stored) && state.rises == self.rises && !promised {
            return; // the images are those of the cut before
        }
        self.rises = state.rises;
        state.look_back();
        self.ended = self.visit.cut(event as u32, self.rises, state).is_break();
    }

    fn rise(&mut self, slot: u32, version: u32, event: usize) {
        let visit = &mut *self.visit;
        (self.state).rise(slot, version, &mut |rise| visit.rise(event as u32, rise));
    }

    /// Makes the version sure at the thread's next fence.
    fn wait(&mut self, thread: u16, slot: u32, version: u32) {
        let waiting = self.state.waiting.entry(thread).or_default();
        waiting.push((slot, version));
    }

    fn fence(&mut self, thread: u16, event: usize) {
        let waiting = self.state.waiting.get_mut(&thread);
        let waiting = waiting.map(std::mem::take).unwrap_or_default();
        let rises = |&(slot, version): &(u32, u32)| version > self.state.floor[slot as usize];
        // A fence that makes nothing sure leaves the images of the cut before it.
        if self.state.stored || waiting.iter().any(rises) {
            self.cut(event);
        }
        for (slot, version) in waiting {
            self.rise(slot, version, event);
        }
    }
}

#[derive(Debug, Default)]
pub struct Course {
    pub cuts: Vec<Cut>,
    pub rises: Vec<Rise>,
}

struct Making<'a> {
    recording: &'a Recording,
    course: Course,
}

impl Visit for Making<'_> {
    fn cut(&mut self, event: u32, rises: u32, state: &PendingState) -> ControlFlow<()> {
        self.course.cuts.push(Cut {
            event,
            rises,
            signature: signature(self.recording, state, event as usize),
            pending: state.pending.len() as u32,
            acked: self.recording.acked(self.recording.row(event)) as u32,
        });
        ControlFlow::Continue(())
    }

    fn rise(&mut self, _: u32, rise: Rise) {
        self.course.rises.push(rise);
    }
}

impl Course {
    pub fn from_recording(recording: &Recording, platform: Platform) -> Course {
        let mut making = Making {
            recording,
            course: Course::default(),
        };
        replay(recording, platform, &mut making);
        let mut course = making.course;
        course.cuts.shrink_to_fit();
        course.rises.shrink_to_fit();
        course
    }
}
