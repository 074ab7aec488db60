//! The kernel's thread: when it sleeps, on which core it is, and what it executes for a page, in pieces.

use std::collections::VecDeque;

use super::queries::QueryDraw;
use super::settings::{self as keys, ScanAccess, ThreadPlacement, Where};
use crate::Checksum;
use crate::ksm::settings as ksm;
use sardonyx::config::Machine;
use sardonyx::line::Virtual;
use sardonyx::machine::{Batch, DIRECT, OpKind, PAGE_LINES};
use sardonyx::settings::Settings;
use sardonyx::units::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CoreActivity {
    Idle,
    Query,
    Compare,
    Hash,
    Other,
}

impl CoreActivity {
    pub const COUNT: usize = CoreActivity::Other as usize + 1;

    pub fn is_thread(self) -> bool {
        matches!(
            self,
            CoreActivity::Compare | CoreActivity::Hash | CoreActivity::Other
        )
    }
}

#[derive(Clone, Debug)]
pub struct Costs {
    pub clock: Time,
    pub width: u64,
    /// Instructions for getting a core, comparing and hashing a line, a page, a node, a merge, and a fault.
    pub switch: u32,
    compare_line: u32,
    hash_line: u32,
    pub visit: u32,
    pub node: u32,
    pub merge: u32,
    pub fault: u32,
    pub hashed_lines: u8,
    uncacheable: bool,
    /// Set if a module makes the thread's comparisons and checksums.
    pub offloads: bool,
    /// The longest time that a core with nothing to do idles.
    pub idle: Time,
    /// Set if the thread has an in-order core to itself.
    pub own_core: bool,
    pub sleep: Time,
    pub pages_to_scan: u64,
    placement: ThreadPlacement,
    slice: Time,
    tick: Time,
    /// The time for which the thread keeps a core before a query preempts it; `None` if none does.
    preempted_after: Option<Time>,
}

impl Costs {
    /// The same, with a module that makes the thread's comparisons and checksums, or without one.
    pub fn offloading(self, offloads: bool) -> Costs {
        Costs { offloads, ..self }
    }

    pub fn from_settings(machine: &Machine, settings: &Settings) -> Costs {
        let clock = machine.core.clock;
        let width = machine.core.width.max(1);
        let us = |key| Time::from_ps(settings.get(key) * 1_000_000);
        Costs {
            clock,
            width,
            switch: settings.get(&keys::SWITCH),
            compare_line: settings.get(&keys::COMPARE_LINE),
            hash_line: settings.get(&keys::HASH_LINE),
            visit: settings.get(&keys::VISIT),
            node: settings.get(&keys::NODE),
            merge: settings.get(&keys::MERGE),
            fault: settings.get(&keys::FAULT),
            hashed_lines: match settings.get(&ksm::CHECKSUM) {
                Checksum::Jhash2Kilobyte => 16,
                _ => 64,
            },
            idle: Time::from_ps(settings.get(&keys::TICK_NS) * 1_000),
            uncacheable: settings.get(&keys::ACCESS) == ScanAccess::Uncacheable,
            offloads: false,
            own_core: settings.get(&keys::KSM_CORE) == Where::InOrder,
            sleep: Time::from_ps(settings.get(&ksm::SLEEP_MILLISECS) * 1_000_000_000),
            pages_to_scan: settings.get(&ksm::PAGES_TO_SCAN),
            placement: settings.get(&keys::PLACEMENT),
            slice: us(&keys::SLICE_US),
            tick: us(&keys::TICK_US),
            preempted_after: settings
                .get(&keys::PREEMPTED)
                .then(|| us(&keys::PREEMPTED_AFTER_US)),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// The comparisons in order: two frames, the line of the tree's node, and the number of lines.
    pub pairs: Vec<((u64, u64), u64, u8)>,
    pub keys: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Compute(u32),
    Node { line: u64, instructions: u32 },
    Compare { a: u64, b: u64, lines: u8 },
    Hash { frame: u64, lines: u8 },
    Table { calls: u32, filling: Filling },
}

impl Piece {
    pub fn lines(&self) -> u64 {
        match self {
            Piece::Compare { lines, .. } => 2 * u64::from(*lines),
            Piece::Hash { lines, .. } => u64::from(*lines),
            Piece::Compute(_) | Piece::Node { .. } | Piece::Table { .. } => 0,
        }
    }

    /// The activity under which the piece's time is booked.
    pub fn part(&self) -> CoreActivity {
        match self {
            Piece::Compare { .. } => CoreActivity::Compare,
            Piece::Hash { .. } => CoreActivity::Hash,
            _ => CoreActivity::Other,
        }
    }
}

pub fn thread_ops(costs: &Costs, piece: &Piece, batch: &mut Batch) {
    let load = |batch: &mut Batch, line: u64, past: bool| {
        let line = Virtual(DIRECT | line);
        if past {
            batch.push(OpKind::LoadPast, line);
        } else {
            batch.load(line, 0, 8);
        }
        if costs.own_core {
            batch.push(OpKind::Depend, Virtual(0)); // in order
        }
    };
    match *piece {
        Piece::Compute(instructions) => batch.compute(instructions.max(1)),
        Piece::Node { line, instructions } => {
            load(batch, line, false);
            batch.push(OpKind::Depend, Virtual(0));
            batch.compute(instructions);
        }
        Piece::Compare { a, b, lines } => {
            for line in 0..u64::from(lines) {
                load(batch, a * PAGE_LINES + line, costs.uncacheable);
                load(batch, b * PAGE_LINES + line, costs.uncacheable);
                batch.compute(costs.compare_line.saturating_sub(2));
            }
        }
        Piece::Hash { frame, lines } => {
            for line in 0..u64::from(lines) {
                load(batch, frame * PAGE_LINES + line, costs.uncacheable);
                batch.compute(costs.hash_line.saturating_sub(1));
            }
        }
        Piece::Table { .. } => unreachable!("the host fills the table"),
    }
    batch.push(OpKind::Depend, Virtual(0));
}

/// The work on one page; with several modules several pages are worked on at once.
#[derive(Debug, Default)]
pub struct Lane {
    pub script: VecDeque<Piece>,
    pub wake: Time,
    /// Set if the module is at work, so that the thread polls at `wake`.
    pub polls: bool,
    pub idle: bool,
}

pub trait Guests {
    /// Whether a core's guest has something to do at a time that is not later than the present.
    fn is_busy(&self, core: usize, at: Time) -> bool;
    /// The time at which a core's idle guest was woken by the query that it has not begun.
    fn woken(&self, core: usize, now: Time) -> Option<Time>;
}

#[derive(Debug)]
pub struct Thread {
    asleep: Option<Time>,
    core: usize,
    cores: usize,
    since: Time,
    began: Time,
    pub scanned: u64,
    pub lanes: Vec<Lane>,
    pub moves: u64,
    draw: QueryDraw,
}

impl Thread {
    pub fn new(costs: &Costs, lanes: usize, cores: usize, draw: QueryDraw) -> Thread {
        Thread {
            asleep: Some(Time::ZERO),
            core: if costs.own_core { cores - 1 } else { 0 },
            cores,
            since: Time::ZERO,
            began: Time::ZERO,
            scanned: 0,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            moves: 0,
            draw,
        }
    }

    pub fn has(&mut self, core: usize, now: Time, costs: &Costs, guests: &impl Guests) -> bool {
        if let Some(until) = self.asleep {
            if now < until {
                return false;
            }
            self.asleep = None;
            self.go(now, costs, guests);
        }
        if self.core != core || self.ready_lane(now).is_none() {
            return false;
        }
        if !costs.own_core && self.must_leave(now, costs, guests) {
            self.go(now, costs, guests);
        }
        self.core == core
    }

    /// The scheduler gives the core to its guest at a tick when the slice is used up, or at once when the guest wakes.
    fn must_leave(&self, now: Time, costs: &Costs, guests: &impl Guests) -> bool {
        let tick = Time::from_ps(now.ps() - now.ps() % costs.tick.ps());
        if tick >= self.since + costs.slice && guests.is_busy(self.core, tick) {
            return true;
        }
        let after = costs.preempted_after.map(|after| self.since + after);
        let woken = guests.woken(self.core, now);
        after
            .zip(woken)
            .is_some_and(|(after, woken)| woken >= after)
    }

    fn go(&mut self, now: Time, costs: &Costs, guests: &impl Guests) {
        self.since = now;
        if costs.own_core {
            return;
        }
        let before = self.core;
        let next = (before + 1) % self.cores;
        self.core = match costs.placement {
            ThreadPlacement::Idle => {
                let all = (0..self.cores).map(|at| (before + at) % self.cores);
                let mut idle = all.filter(|core| !guests.is_busy(*core, now));
                idle.next().unwrap_or(next)
            }
            ThreadPlacement::Next => next,
            ThreadPlacement::Drawn => self.draw.below(self.cores as u64) as usize,
        };
        self.moves += u64::from(self.core != before);
    }

    pub fn ready_lane(&self, now: Time) -> Option<usize> {
        let ready = |lane: &Lane| !lane.idle && lane.wake <= now;
        self.lanes.iter().position(ready)
    }

    pub fn sleep(&mut self, now: Time, sleep: Time) -> Time {
        let took = now.since(self.began);
        self.began = now;
        self.asleep = Some(now + sleep);
        self.scanned = 0;
        for lane in &mut self.lanes {
            (lane.idle, lane.wake) = (false, Time::ZERO);
        }
        took
    }
}
