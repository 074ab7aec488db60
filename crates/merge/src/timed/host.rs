//! The host of the virtual machines: what each core works on, a query or the kernel's thread that merges, and what a
//! trap does. A piece of work ends when its loads have come, so that times by purpose are exact.

use super::frames::Frames;
use super::jobs::{Jobs, ModuleCosts, ModuleJob};
use super::queries::{Queries, QueryDraw};
use super::scan::Scan;
use super::thread::{CoreActivity, Costs, Guests, Piece, Thread, thread_ops};
use crate::PageFrame;
use sardonyx::line::{LINE_BYTES, Virtual};
use sardonyx::machine::{Batch, DIRECT, OpKind, PAGE_LINES};
use sardonyx::units::Time;

struct Vms<'v>(&'v [Queries]);

impl Guests for Vms<'_> {
    fn is_busy(&self, core: usize, at: Time) -> bool {
        self.0.get(core).is_some_and(|vm| vm.is_busy(at))
    }

    fn woken(&self, core: usize, now: Time) -> Option<Time> {
        self.0.get(core).and_then(|vm| vm.woken(now))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub pages_in_window: u64,
    pub merging_lines: u64,
    pub intervals: Vec<Time>,
    pub tables: Vec<Time>,
    pub copies: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct HostCore {
    doing: CoreActivity,
    since: Time,
    pub time: [Time; CoreActivity::COUNT],
}

pub struct Host<'i> {
    pub costs: Costs,
    window: (Time, Time),
    pub vms: Vec<Queries>,
    pub cores: Vec<HostCore>,
    pub scan: Option<Scan<'i>>,
    pub frames: Frames,
    pub thread: Thread,
    pub jobs: Option<Jobs>,
    pub figures: Figures,
    over: bool,
    #[cfg(test)]
    pub stores: Vec<(usize, Virtual, u8, Vec<u8>)>,
}

impl<'i> Host<'i> {
    /// The host at time 0. The scheduler draws from `seed`.
    pub fn new(
        costs: Costs,
        window: (Time, Time),
        vms: Vec<Queries>,
        frames: Frames,
        scan: Option<Scan<'i>>,
        modules: Option<ModuleCosts>,
        seed: u64,
    ) -> Host<'i> {
        let cores = vms.len() + usize::from(costs.own_core);
        let offloads = modules.as_ref().is_some_and(|modules| modules.offloads);
        let costs = costs.offloading(offloads);
        let lanes = modules.as_ref().map_or(1, |modules| modules.count);
        let idle = HostCore {
            doing: CoreActivity::Idle,
            since: Time::ZERO,
            time: [Time::ZERO; CoreActivity::COUNT],
        };
        Host {
            thread: Thread::new(&costs, lanes, cores, QueryDraw::new(seed, 3)),
            jobs: modules.map(Jobs::new),
            cores: vec![idle; cores],
            costs,
            window,
            vms,
            scan,
            frames,
            figures: Figures::default(),
            over: false,
            #[cfg(test)]
            stores: Vec::new(),
        }
    }

    /// Decides what a core does next that has executed all its work. False at the end.
    pub fn turn(&mut self, core: usize, now: Time, batch: &mut Batch) -> bool {
        self.charge(core, now);
        if self.over {
            return false;
        }
        if core < self.vms.len() || self.costs.own_core {
            let part = self.thread_turn(core, now, batch);
            if let Some(part) = part {
                self.cores[core].doing = part;
                return true;
            }
        }
        if core < self.vms.len() && self.vms[core].work(now, batch) {
            self.cores[core].doing = CoreActivity::Query;
            return true;
        }
        let idle = |vm: &Queries| !vm.is_busy(now) && vm.next_arrival().is_none();
        if now >= self.window.1 && self.vms.iter().all(idle) {
            self.over = true;
            return false;
        }
        let next = self.vms.get(core).and_then(Queries::next_arrival);
        let until = next.map_or(now + self.costs.idle, |next| {
            next.min(now + self.costs.idle)
        });
        let cycles = until.since(now).ps() * self.costs.width / self.costs.clock.ps();
        batch.compute((cycles as u32).max(1));
        batch.push(OpKind::Depend, Virtual(0));
        self.cores[core].doing = CoreActivity::Idle;
        true
    }

    fn charge(&mut self, core: usize, now: Time) {
        let of = &mut self.cores[core];
        let took = now.since(of.since);
        if (self.window.0..self.window.1).contains(&of.since) {
            of.time[of.doing as usize] += took;
        }
        of.since = now;
        match of.doing {
            CoreActivity::Idle => {}
            CoreActivity::Query => self.vms[core].executed(took, now),
            _ => {
                if let Some(vm) = self.vms.get_mut(core) {
                    vm.interrupted(took);
                }
            }
        }
    }

    fn thread_turn(&mut self, core: usize, now: Time, batch: &mut Batch) -> Option<CoreActivity> {
        let in_window = (self.window.0..self.window.1).contains(&now);
        let scan = self.scan.as_mut()?;
        if !self.thread.has(core, now, &self.costs, &Vms(&self.vms)) {
            return None;
        }
        if !self.cores[core].doing.is_thread() {
            batch.compute(self.costs.switch);
            batch.push(OpKind::Depend, Virtual(0));
            return Some(CoreActivity::Other);
        }
        loop {
            let number = self.thread.ready_lane(now)?;
            let lane = &mut self.thread.lanes[number];
            if lane.polls {
                return Some(self.look_at_module(number, now, batch));
            }
            if let Some(piece) = lane.script.pop_front() {
                return Some(self.give(number, piece, now, batch));
            }
            if self.thread.scanned < self.costs.pages_to_scan {
                lane.script
                    .extend(scan.next_page(&mut self.frames, &self.costs));
                self.thread.scanned += 1;
                self.figures.pages_in_window += u64::from(in_window);
                continue;
            }
            lane.idle = true;
            if self.thread.lanes.iter().all(|lane| lane.idle) {
                let took = self.thread.sleep(now, self.costs.sleep);
                if in_window {
                    self.figures.intervals.push(took);
                }
                return None;
            }
        }
    }

    fn give(&mut self, lane: usize, piece: Piece, now: Time, batch: &mut Batch) -> CoreActivity {
        let part = piece.part();
        self.figures.merging_lines += piece.lines();
        let Piece::Table { calls, filling } = piece else {
            thread_ops(&self.costs, &piece, batch);
            return part;
        };
        let jobs = self.jobs.as_mut().expect("who fills a table has modules");
        batch.compute(calls * (jobs.costs.call + jobs.costs.entry));
        for (_, node, _) in &filling.pairs {
            batch.load(Virtual(DIRECT | node), 0, 64);
        }
        batch.push(OpKind::Depend, Virtual(0));
        let module = jobs.module_of(lane);
        let pairs = filling.pairs.into_iter();
        let job = ModuleJob {
            pairs: pairs.map(|(pair, _, lines)| (pair, lines)).collect(),
            keys: filling.keys,
        };
        jobs.give(module, job);
        // Modules come after the cores among the agents.
        let agent = self.cores.len() + module;
        batch.push(OpKind::Doorbell, Virtual(agent as u64));
        let lane = &mut self.thread.lanes[lane];
        (lane.polls, lane.wake) = (true, now + jobs.costs.poll);
        part
    }

    fn look_at_module(&mut self, lane: usize, now: Time, batch: &mut Batch) -> CoreActivity {
        let jobs = self.jobs.as_ref().expect("a lane waits for a module");
        batch.compute(jobs.costs.call.max(1));
        batch.push(OpKind::Depend, Virtual(0));
        let done = jobs.is_done(jobs.module_of(lane), now);
        let lane = &mut self.thread.lanes[lane];
        lane.polls = !done;
        lane.wake = if done { now } else { now + jobs.costs.poll };
        CoreActivity::Other
    }

    /// Handles a store that has trapped: its page gets a frame of its own, into which the core copies.
    pub fn fault(&mut self, core: usize, line: Virtual, batch: &mut Batch) {
        let number = line.0 / PAGE_LINES;
        let page = self.frames.page(core, number);
        let scan = self.scan.as_mut().expect("only merging protects pages");
        scan.merging.unshare(page);
        let (old, new) = self.frames.unshare(core, number);
        self.figures.copies += 1;
        batch.compute(self.costs.fault);
        let bytes = *scan.merging.live().bytes(PageFrame::Own(page));
        for (at, bytes) in (0..).zip(bytes.as_chunks::<LINE_BYTES>().0) {
            let from = Virtual(DIRECT | (old * PAGE_LINES + at));
            batch.load(from, 0, 64);
            let bytes = batch.keep(bytes);
            let to = Virtual(DIRECT | (new * PAGE_LINES + at));
            batch.push(OpKind::StoreLine { bytes }, to);
        }
    }

    pub fn stored(&mut self, core: usize, line: Virtual, from: u8, bytes: &[u8]) {
        if line.0 & DIRECT != 0 {
            return; // a copy, whose bytes are there already
        }
        #[cfg(test)]
        self.stores.push((core, line, from, bytes.to_vec()));
        let page = self.frames.page(core, line.0 / PAGE_LINES);
        if let Some(scan) = &mut self.scan {
            let at = (line.0 % PAGE_LINES) as usize * LINE_BYTES + usize::from(from);
            scan.merging.live().store(page, at, bytes);
        }
    }

    pub fn is_over(&self) -> bool {
        self.over
    }
}
