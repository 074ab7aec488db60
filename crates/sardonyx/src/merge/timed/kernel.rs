//! The system under the virtual machines: which core works on what, the kernel's thread that merges, the page
//! tables. Merging happens at once, when the thread comes to a page; what it has read is then read again in
//! time, piece by piece. A piece ends when its loads have come, so that times by purpose are exact.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::live::{Event, Live};
use super::module::Job;
use super::queries::{Draw, Queries};
use super::thread::{Costs, Guests, Piece, Thread, thread_ops};
use crate::line::{LINE_BYTES, Virtual};
use crate::machine::{Batch, DIRECT, Mapped, OpKind, PAGE_LINES};
use crate::merge::ksm::{Ksm, Maps, Search};
use crate::merge::{Frame, Page};
use crate::units::Time;

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Part {
    /// It waits for queries.
    Idle,
    /// A query.
    Query,
    /// The kernel's thread compares pages.
    Compare,
    /// It hashes one.
    Hash,
    /// It does something else.
    Other,
}

/// How many parts there are.
pub const PARTS: usize = 5;

impl Part {
    fn is_thread(self) -> bool {
        matches!(self, Part::Compare | Part::Hash | Part::Other)
    }
}

/// A merging algorithm on live pages, whoever compares.
pub trait Merging<'i>: Send {
    /// Scans a page; whether it counts among `pages_to_scan`.
    fn step(&mut self, page: Page) -> bool;
    /// A pass begins.
    fn begin_pass(&mut self);
    /// A processor is about to write a page that does not map its own frame: it gets one, with the same bytes.
    fn unshare(&mut self, page: Page);
    /// The frame behind a page, none if it maps the zero page.
    fn frame(&self, page: Page) -> Option<Frame>;
    /// The pages.
    fn live(&mut self) -> &mut Live<'i>;
    /// Calls of PageForge's functions so far.
    fn calls(&self) -> u64;
}

impl<'i, S: Search + Send> Merging<'i> for Ksm<Live<'i>, S> {
    fn step(&mut self, page: Page) -> bool {
        let before = Ksm::counters(self).pages_scanned;
        Ksm::step(self, page);
        Ksm::counters(self).pages_scanned > before
    }

    fn begin_pass(&mut self) {
        Ksm::begin_pass(self);
    }

    fn unshare(&mut self, page: Page) {
        match (self.maps(page), Ksm::frame(self, page)) {
            (Maps::Merged, Some(frame)) => self.contents.copy(page, frame),
            (Maps::Zero, _) => self.contents.copy_zero(page),
            other => unreachable!("page {page} is {other:?}"),
        }
        self.write(page);
    }

    fn frame(&self, page: Page) -> Option<Frame> {
        Ksm::frame(self, page)
    }

    fn live(&mut self) -> &mut Live<'i> {
        &mut self.contents
    }

    fn calls(&self) -> u64 {
        self.search.work().map_or(0, |work| work.calls)
    }
}

/// The virtual machines as the scheduler sees them.
struct Vms<'v>(&'v [Queries]);

impl Guests for Vms<'_> {
    fn is_busy(&self, core: usize, at: Time) -> bool {
        self.0.get(core).is_some_and(|vm| vm.is_busy(at))
    }

    fn woken(&self, core: usize, now: Time) -> Option<Time> {
        self.0.get(core).and_then(|vm| vm.woken(now))
    }
}

/// Where frames lie in memory.
#[derive(Debug)]
struct Frames {
    /// Of each page's own.
    own: Vec<u64>,
    /// Of each merged one.
    merged: FxHashMap<u32, u64>,
    zero: Option<u64>,
    /// The next that nobody has had. None is given twice, so that nothing that is still on its way can reach
    /// somebody else's page.
    next: u64,
    /// Where the kernel's own tables begin.
    kernel: u64,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Pages that the thread has come to.
    pub pages: u64,
    /// Of them, those in the window.
    pub pages_in_window: u64,
    /// Lines of pages that the thread or a module has asked for.
    pub merging_lines: u64,
    /// Intervals that are over, and how long they took with their sleep.
    pub intervals: Vec<Time>,
    /// How long the module took for each filling of the Scan Table.
    pub tables: Vec<Time>,
    /// Comparisons in trees, and lines of each page that they read.
    pub comparisons: [u64; 2],
    /// Pages merged.
    pub merges: u64,
    /// Stores to merged pages.
    pub copies: u64,
    /// Which page was merged into which frame, in order.
    pub order: Vec<(Page, u64)>,
}

/// What one core does and has done.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    doing: Part,
    since: Time,
    /// Time by part, in the window.
    pub time: [Time; PARTS],
}

/// The system.
pub struct Kernel<'i> {
    costs: Costs,
    tick: Time,
    /// Counting begins, and arrivals end.
    window: (Time, Time),
    tables: Vec<Arc<Mapped>>,
    /// Each machine's first page.
    firsts: Vec<Page>,
    /// The virtual machines, each on the core of its number.
    pub vms: Vec<Queries>,
    /// All cores.
    pub cores: Vec<Core>,
    /// What merges, if anything does.
    pub merging: Option<Box<dyn Merging<'i> + 'i>>,
    frames: Frames,
    thread: Thread,
    cursor: Page,
    calls: u64,
    /// The first module's number among the agents.
    pub modules_at: usize,
    /// What each module is to do.
    pub jobs: Vec<Option<Job>>,
    /// When each was done with it.
    pub finished: Vec<Option<Time>>,
    /// What is counted.
    pub figures: Figures,
    /// The present, about.
    pub now: Time,
    over: bool,
    /// All stores, in order.
    #[cfg(test)]
    pub stores: Vec<(usize, Virtual, u8, Vec<u8>)>,
}

/// What a kernel is made of.
pub struct Parts<'i> {
    /// What the thread's work costs.
    pub costs: Costs,
    /// How long an idle core idles at once.
    pub tick: Time,
    /// Counting begins, and arrivals end.
    pub window: (Time, Time),
    /// Each machine's page table.
    pub tables: Vec<Arc<Mapped>>,
    /// Each machine's first page.
    pub firsts: Vec<Page>,
    /// The machines' queries.
    pub vms: Vec<Queries>,
    /// What merges.
    pub merging: Option<Box<dyn Merging<'i> + 'i>>,
    /// Pages of all machines.
    pub pages: Page,
    /// Where the pass stands.
    pub cursor: Page,
    /// The frame at which the kernel's own tables begin.
    pub kernel: u64,
    /// What the scheduler draws from.
    pub seed: u64,
}

impl<'i> Kernel<'i> {
    /// At time 0. Pages that are merged already share the frame of the first.
    pub fn new(parts: Parts<'i>) -> Kernel<'i> {
        let cores = parts.vms.len() + usize::from(parts.costs.own_core);
        let mut kernel = Kernel {
            thread: Thread::new(&parts.costs, cores, Draw::new(parts.seed, 3)),
            frames: Frames {
                own: (0..u64::from(parts.pages)).collect(),
                merged: FxHashMap::default(),
                zero: None,
                next: u64::from(parts.pages),
                kernel: parts.kernel,
            },
            jobs: (0..parts.costs.modules).map(|_| None).collect(),
            finished: vec![None; parts.costs.modules],
            costs: parts.costs,
            tick: parts.tick,
            window: parts.window,
            tables: parts.tables,
            firsts: parts.firsts,
            vms: parts.vms,
            cores: vec![
                Core {
                    doing: Part::Idle,
                    since: Time::ZERO,
                    time: [Time::ZERO; PARTS],
                };
                cores
            ],
            merging: parts.merging,
            cursor: parts.cursor,
            calls: 0,
            modules_at: cores,
            figures: Figures::default(),
            now: Time::ZERO,
            over: false,
            #[cfg(test)]
            stores: Vec::new(),
        };
        for page in 0..parts.pages {
            let Some(merging) = &kernel.merging else {
                break;
            };
            match merging.frame(page) {
                Some(Frame::Own(_)) => {}
                Some(Frame::Merged(frozen)) => kernel.share(page, Some(frozen)),
                None => kernel.share(page, None),
            }
        }
        if let Some(merging) = &mut kernel.merging {
            merging.live().log = Some(Vec::new());
            kernel.calls = merging.calls();
        }
        kernel
    }

    /// Which machine a page belongs to.
    fn machine_of(&self, page: Page) -> usize {
        self.firsts.partition_point(|first| *first <= page) - 1
    }

    /// The page maps a merged frame, or the zero page.
    fn share(&mut self, page: Page, frozen: Option<u32>) {
        let own = self.frames.own[page as usize];
        let frame = match frozen {
            Some(frozen) => *self.frames.merged.entry(frozen).or_insert(own),
            None => *self.frames.zero.get_or_insert(own),
        };
        let machine = self.machine_of(page);
        let number = u64::from(page - self.firsts[machine]);
        self.tables[machine].redirect(number, frame, true);
    }

    /// Where a frame lies; one that is just being made is still `page`'s own.
    fn place(&self, frame: Frame, page: Page) -> u64 {
        match frame {
            Frame::Own(page) => self.frames.own[page as usize],
            Frame::Merged(frozen) => {
                let merged = self.frames.merged.get(&frozen);
                *merged.unwrap_or(&self.frames.own[page as usize])
            }
        }
    }

    /// The line of a node of the kernel's trees.
    fn node(&self, frame: Frame) -> u64 {
        let number = match frame {
            Frame::Own(page) => u64::from(page) * 2,
            Frame::Merged(frozen) => u64::from(frozen) * 2 + 1,
        };
        self.frames.kernel * PAGE_LINES + number
    }

    /// A core has executed all that it was given: what it does next. False at the end.
    pub fn turn(&mut self, core: usize, now: Time, batch: &mut Batch) -> bool {
        self.now = self.now.max(now);
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
            self.cores[core].doing = Part::Query;
            return true;
        }
        let idle = |vm: &Queries| !vm.is_busy(now) && vm.next_arrival().is_none();
        if now >= self.window.1 && self.vms.iter().all(idle) {
            self.over = true;
            return false;
        }
        let next = self.vms.get(core).and_then(Queries::next_arrival);
        let until = next.map_or(now + self.tick, |next| next.min(now + self.tick));
        let cycles = until.since(now).ps() * self.costs.width / self.costs.clock.ps();
        batch.compute((cycles as u32).max(1));
        batch.push(OpKind::Depend, Virtual(0));
        self.cores[core].doing = Part::Idle;
        true
    }

    /// Books what the core has just done.
    fn charge(&mut self, core: usize, now: Time) {
        let of = &mut self.cores[core];
        let took = now.since(of.since);
        if (self.window.0..self.window.1).contains(&of.since) {
            of.time[of.doing as usize] += took;
        }
        of.since = now;
        match of.doing {
            Part::Idle => {}
            Part::Query => self.vms[core].executed(took, now),
            _ => {
                if let Some(vm) = self.vms.get_mut(core) {
                    vm.interrupted(took);
                }
            }
        }
    }

    /// What the kernel's thread does on that core now, if anything.
    fn thread_turn(&mut self, core: usize, now: Time, batch: &mut Batch) -> Option<Part> {
        self.merging.as_ref()?;
        let Kernel { vms, thread, .. } = self;
        if !thread.has(core, now, &self.costs, &Vms(vms)) {
            return None;
        }
        if !self.cores[core].doing.is_thread() {
            batch.compute(self.costs.switch);
            batch.push(OpKind::Depend, Virtual(0));
            return Some(Part::Other);
        }
        loop {
            let lane = self.thread.ready_lane(now)?;
            if self.thread.lanes[lane].polls {
                return Some(self.look_at_module(lane, now, batch));
            }
            if let Some(piece) = self.thread.lanes[lane].script.pop_front() {
                return Some(self.give(lane, piece, now, batch));
            }
            if self.thread.scanned < self.costs.pages_to_scan {
                self.next_page(lane);
                let counts = (self.window.0..self.window.1).contains(&now);
                self.figures.pages_in_window += u64::from(counts);
                continue;
            }
            self.thread.lanes[lane].idle = true;
            if self.thread.lanes.iter().all(|lane| lane.idle) {
                let took = self.thread.sleep(now, self.costs.sleep);
                if now >= self.window.0 && now < self.window.1 {
                    self.figures.intervals.push(took);
                }
                return None;
            }
        }
    }

    /// Gives a piece to a core.
    fn give(&mut self, lane: usize, piece: Piece, now: Time, batch: &mut Batch) -> Part {
        let part = piece.part();
        self.figures.merging_lines += piece.lines();
        match piece {
            Piece::Table { calls, job } => {
                batch.compute(calls * (self.costs.call + self.costs.entry));
                for (_, node, _) in &job.pairs {
                    let line = Virtual(DIRECT | node);
                    batch.load(line, 0, 64);
                }
                batch.push(OpKind::Depend, Virtual(0));
                let module = lane % self.jobs.len();
                let job = Job {
                    pairs: job
                        .pairs
                        .into_iter()
                        .map(|(pair, _, lines)| (pair, lines))
                        .collect(),
                    keys: job.keys,
                };
                (self.jobs[module], self.finished[module]) = (Some(job), None);
                let agent = (self.modules_at + module) as u64;
                batch.push(OpKind::Doorbell, Virtual(agent));
                let lane = &mut self.thread.lanes[lane];
                (lane.polls, lane.wake) = (true, now + self.costs.poll);
            }
            piece => thread_ops(&self.costs, &piece, batch),
        }
        part
    }

    /// The system looks whether the Scan Table has been processed.
    fn look_at_module(&mut self, lane: usize, now: Time, batch: &mut Batch) -> Part {
        batch.compute(self.costs.call.max(1));
        batch.push(OpKind::Depend, Virtual(0));
        let module = lane % self.jobs.len();
        let done = self.finished[module].is_some_and(|at| at <= now);
        let lane = &mut self.thread.lanes[lane];
        lane.polls = !done;
        lane.wake = if done { now } else { now + self.costs.poll };
        Part::Other
    }

    /// Scans the next page at once, and has a lane do in time what that takes.
    fn next_page(&mut self, lane: usize) {
        let pages = self.frames.own.len() as Page;
        let merging = self.merging.as_mut().expect("something merges");
        let mut page = self.cursor;
        for _ in 0..pages {
            page = self.cursor;
            if page == 0 {
                merging.begin_pass();
            }
            self.cursor = (page + 1) % pages;
            if merging.step(page) {
                break;
            }
        }
        self.thread.scanned += 1;
        self.figures.pages += 1;
        let log = merging.live().log.as_mut().expect("it is kept");
        let events = std::mem::take(log);
        let script = self.script(page, &events);
        self.thread.lanes[lane].script.extend(script);
        let merging = self.merging.as_mut().expect("something merges");
        let log = merging.live().log.as_mut().expect("it is kept");
        *log = events;
        log.clear();
    }

    /// What has happened to a page, piece by piece; what was merged shares its frame from now on.
    fn script(&mut self, page: Page, events: &[Event]) -> Vec<Piece> {
        let mut script = vec![Piece::Node {
            line: self.node(Frame::Own(page)),
            instructions: self.costs.visit,
        }];
        for event in events {
            match *event {
                Event::Compare(a, b, lines) | Event::Final(a, b, lines) => {
                    self.figures.comparisons[0] += 1;
                    self.figures.comparisons[1] += u64::from(lines);
                    script.push(Piece::Node {
                        line: self.node(b),
                        instructions: self.costs.node,
                    });
                    script.push(Piece::Compare {
                        a: self.place(a, page),
                        b: self.place(b, page),
                        lines,
                    });
                }
                Event::Hash(page) => script.push(Piece::Hash {
                    frame: self.frames.own[page as usize],
                    lines: self.costs.hashed_lines,
                }),
                Event::Merged(page, frozen) => {
                    self.share(page, Some(frozen));
                    let frame = self.frames.merged[&frozen];
                    self.figures.order.push((page, frame));
                    self.figures.merges += 1;
                    script.push(Piece::Compute(self.costs.merge));
                }
                Event::Zeroed(page) => {
                    self.share(page, None);
                    self.figures.merges += 1;
                    script.push(Piece::Compute(self.costs.merge));
                }
                Event::Hardware(calls) => {
                    script.push(Piece::Table {
                        calls: (calls - self.calls) as u32,
                        job: Default::default(),
                    });
                    self.calls = calls;
                }
                Event::Pair(a, b, lines) => {
                    self.figures.comparisons[0] += 1;
                    self.figures.comparisons[1] += u64::from(lines);
                    let pair = (self.place(a, page), self.place(b, page));
                    let node = self.node(b);
                    if let Some(Piece::Table { job, .. }) = script.last_mut() {
                        job.pairs.push((pair, node, lines));
                    }
                }
                Event::KeyLine(frame, line) => {
                    let place = self.place(frame, page);
                    if let Some(Piece::Table { job, .. }) = script.last_mut() {
                        job.keys.push(place * PAGE_LINES + u64::from(line));
                    }
                }
            }
        }
        script
    }

    /// A store of a core has trapped: its page gets a frame of its own, into which the core copies.
    pub fn fault(&mut self, core: usize, line: Virtual, batch: &mut Batch) {
        let number = line.0 / PAGE_LINES;
        let page = self.firsts[core] + number as Page;
        let (old, _) = self.tables[core].entry(number);
        let merging = self.merging.as_mut().expect("only merging protects pages");
        merging.unshare(page);
        let new = self.frames.next;
        self.frames.next += 1;
        self.frames.own[page as usize] = new;
        self.tables[core].redirect(number, new, false);
        self.figures.copies += 1;
        batch.compute(self.costs.fault);
        let bytes = *merging.live().bytes(Frame::Own(page));
        for (at, bytes) in (0..).zip(bytes.as_chunks::<LINE_BYTES>().0) {
            let from = Virtual(DIRECT | (old * PAGE_LINES + at));
            batch.load(from, 0, 64);
            let bytes = batch.keep(bytes);
            let to = Virtual(DIRECT | (new * PAGE_LINES + at));
            batch.push(OpKind::StoreLine { bytes }, to);
        }
    }

    /// A core has stored something.
    pub fn stored(&mut self, core: usize, line: Virtual, from: u8, bytes: &[u8]) {
        if line.0 & DIRECT != 0 {
            return; // a copy, whose bytes are there already
        }
        #[cfg(test)]
        self.stores.push((core, line, from, bytes.to_vec()));
        let page = self.firsts[core] + (line.0 / PAGE_LINES) as Page;
        if let Some(merging) = &mut self.merging {
            let at = (line.0 % PAGE_LINES) as usize * LINE_BYTES + usize::from(from);
            merging.live().store(page, at, bytes);
        }
    }

    /// Whether all is done.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// A core's cycle.
    pub fn cycle(&self) -> Time {
        self.costs.clock
    }

    /// Cycles between two looks at the Scan Table.
    pub fn poll_cycles(&self) -> u64 {
        self.costs.poll.ps() / self.costs.clock.ps()
    }

    /// How often the thread has moved.
    pub fn moves(&self) -> u64 {
        self.thread.moves
    }

    /// Where a machine's page lies, and whether it is write-protected.
    #[cfg(test)]
    pub fn entry(&self, machine: usize, page: u64) -> (u64, bool) {
        self.tables[machine].entry(page)
    }
}
