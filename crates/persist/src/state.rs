//! What is persistent when: the rules of the architecture (Intel SDM, CLWB, CLFLUSHOPT, CLFLUSH, SFENCE), applied to a recording.
//!
//! A line's contents persist in the order of its stores, so that what may persist of it at a cut is a prefix of them: at least the
//! *floor*, which a flush and a fence of one thread after it have made sure of, at most all. Between lines there is no order but
//! that. Stores past the caches wait for their thread's fence, clflush for nothing.
//!
//! A file on a disk is the same with other units (POSIX msync, fsync; block devices write a sector whole or not at all): the page cache may
//! write a page back at any moment, so that a sector is what it was at some moment since it was last sure; a system call that
//! waits makes sure. It is recorded as flushes and a fence, and the processor's own do nothing.

use rustc_hash::FxHashMap;

use crate::recording::{Act, NOWHERE, Recording};

/// What reserve power saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// What has left the caches.
    Adr,
    /// The caches too.
    Eadr,
    /// A file on a disk that writes a page of 4096 bytes whole or not at all; pages are written back at any time and in any order.
    Pages,
    /// The same, on a disk that does so for sectors of 512 bytes: sectors of a page may be of different moments.
    Sectors,
}

impl Platform {
    /// By its name on the command line.
    pub fn named(name: &str) -> Option<Platform> {
        match name {
            "adr" => Some(Platform::Adr),
            "eadr" => Some(Platform::Eadr),
            "pages" => Some(Platform::Pages),
            "sectors" => Some(Platform::Sectors),
            _ => None,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Platform::Adr => "adr",
            Platform::Eadr => "eadr",
            Platform::Pages => "pages",
            Platform::Sectors => "sectors",
        }
    }

    /// What persists whole or not at all.
    pub fn of_unit(self) -> &'static str {
        match self {
            Platform::Adr | Platform::Eadr => "line",
            Platform::Pages => "page",
            Platform::Sectors => "sector",
        }
    }

    /// Bytes that persist together.
    pub fn unit(self) -> u32 {
        match self {
            Platform::Adr | Platform::Eadr => 64,
            Platform::Pages => 4096,
            Platform::Sectors => 512,
        }
    }

    /// The file lies on a disk, behind the page cache: flushes and fences do nothing, msync and fsync do.
    pub fn is_disk(self) -> bool {
        matches!(self, Platform::Pages | Platform::Sectors)
    }
}

/// The floor of a line rose.
#[derive(Clone, Copy, Debug)]
pub struct Rise {
    /// The line.
    pub slot: u32,
    /// Its floor before.
    pub from: u32,
    /// Its floor since.
    pub to: u32,
}

/// A position at which the power may fail: before an event.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The event that it is before; the number of events at the end.
    pub event: u32,
    /// How many rises came before.
    pub rises: u32,
    /// What kind of moment it is: the fence's place, and where what is pending was stored. A hash.
    pub signature: u32,
    /// Lines that may be one or the other.
    pub pending: u32,
}

/// Lines pending, and their versions, while a recording is replayed.
#[derive(Debug)]
pub struct State {
    /// What is sure of each line.
    pub floor: Vec<u32>,
    /// What the line holds in the caches.
    pub current: Vec<u32>,
    /// The event of its last change.
    pub changed: Vec<u32>,
    /// Lines whose floor is not what the caches hold, in no order.
    pub pending: Vec<u32>,
    at: Vec<u32>,
    /// Pending lines in the order of their last stores: each line's older and younger neighbour, and the youngest.
    older: Vec<u32>,
    younger: Vec<u32>,
    youngest: u32,
    waiting: FxHashMap<u16, Vec<(u32, u32)>>,
    stored: bool,
    rises: u32,
}

const OUT: u32 = u32::MAX;

impl State {
    fn new(lines: usize) -> State {
        State {
            floor: vec![0; lines],
            current: vec![0; lines],
            changed: vec![0; lines],
            pending: Vec::new(),
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

    /// Takes a line out of the order of stores.
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

/// What a replay meets.
pub trait Visit {
    /// A position at which the power may fail: before this event, after so many rises.
    fn cut(&mut self, event: u32, rises: u32, state: &State);
    /// More is sure.
    fn rise(&mut self, _: Rise) {}
    /// Nothing more is wanted.
    fn ended(&self) -> bool {
        false
    }
}

/// The moment's kind, so that moments of one kind are known.
fn signature(recording: &Recording, state: &State, event: usize) -> u32 {
    let site = match event < recording.events.len() {
        true => recording.events.site(event),
        false => NOWHERE,
    };
    let mix = |a: u64, b: u64| (a ^ b).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let mut sum = mix(u64::from(site), 1);
    for slot in recent(state) {
        let (s, changed) = (slot as usize, state.changed[slot as usize] as usize);
        let what = match recording.events.site(changed) {
            NOWHERE => u64::from(state.current[s] - state.floor[s]) << 32,
            // Where the store is, and what called it; not how deep a recursion was.
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

/// Lines that were stored to lately are tried one by one; the rest is what nobody flushes.
const RECENT: usize = 16;
/// How many events make old.
const OLD: u32 = 4096;

/// Pending lines of which the last store is not long ago, the latest first.
pub fn recent(state: &State) -> Vec<u32> {
    let changed = |slot: u32| state.changed[slot as usize];
    let latest = state.latest().next().map_or(0, changed);
    let recent = state.latest().take(RECENT);
    recent
        .take_while(|&slot| latest - changed(slot) < OLD)
        .collect()
}

/// Replays the recording and calls at each cut.
pub fn replay(recording: &Recording, platform: Platform, visit: &mut impl Visit) {
    let mut state = State::new(recording.lines.len());
    let mut rises = 0;
    let mut cut = |state: &mut State, event: usize, visit: &mut dyn FnMut(u32, u32, &State)| {
        if !std::mem::take(&mut state.stored) && state.rises == rises {
            return; // the images are those of the cut before
        }
        rises = state.rises;
        visit(event as u32, rises, state);
    };
    for (number, event) in recording.walk().enumerate() {
        if visit.ended() {
            return;
        }
        match (platform, event.act) {
            (Platform::Eadr, Act::Store { slot, version, .. }) => {
                if state.current[slot as usize] != version {
                    cut(&mut state, number, &mut |e, r, s| visit.cut(e, r, s));
                    state.store(slot, version, number as u32);
                    state.rise(slot, version, &mut |rise| visit.rise(rise));
                }
            }
            (Platform::Eadr, _) | (_, Act::FlushClean | Act::Foreign) => {}
            (
                _,
                Act::Store {
                    slot,
                    version,
                    past,
                },
            ) => {
                state.store(slot, version, number as u32);
                if recording.assumed.contains(&event.site) {
                    state.rise(slot, version, &mut |rise| visit.rise(rise));
                } else if past {
                    let waiting = state.waiting.entry(event.thread).or_default();
                    waiting.push((slot, version));
                }
            }
            (
                _,
                Act::Flush {
                    slot,
                    ordered: true,
                },
            ) => {
                let version = state.current[slot as usize];
                if version > state.floor[slot as usize] {
                    cut(&mut state, number, &mut |e, r, s| visit.cut(e, r, s));
                    state.rise(slot, version, &mut |rise| visit.rise(rise));
                }
            }
            (_, Act::Flush { slot, .. }) => {
                let version = state.current[slot as usize];
                let waiting = state.waiting.entry(event.thread).or_default();
                waiting.push((slot, version));
            }
            (_, Act::Fence) => {
                let waiting = state.waiting.get_mut(&event.thread);
                let waiting = waiting.map(std::mem::take).unwrap_or_default();
                let rises = |&(slot, version): &(u32, u32)| version > state.floor[slot as usize];
                if state.stored || waiting.iter().any(rises) {
                    cut(&mut state, number, &mut |e, r, s| visit.cut(e, r, s));
                }
                for (slot, version) in waiting {
                    state.rise(slot, version, &mut |rise| visit.rise(rise));
                }
            }
        }
    }
    cut(&mut state, recording.events.len(), &mut |e, r, s| {
        visit.cut(e, r, s)
    });
}

/// All cuts and all rises of a recording.
#[derive(Debug, Default)]
pub struct Course {
    /// Positions at which the power may fail, in the order of events.
    pub cuts: Vec<Cut>,
    /// Every rise of a line's floor, in the order of events.
    pub rises: Vec<Rise>,
}

/// A course that is being made.
struct Making<'a> {
    recording: &'a Recording,
    course: Course,
}

impl Visit for Making<'_> {
    fn cut(&mut self, event: u32, rises: u32, state: &State) {
        self.course.cuts.push(Cut {
            event,
            rises,
            signature: signature(self.recording, state, event as usize),
            pending: state.pending.len() as u32,
        });
    }

    fn rise(&mut self, rise: Rise) {
        self.course.rises.push(rise);
    }
}

impl Course {
    /// Replays a recording and keeps its cuts and rises.
    pub fn of(recording: &Recording, platform: Platform) -> Course {
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
