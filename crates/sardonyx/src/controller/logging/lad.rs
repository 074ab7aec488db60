//! Logless atomic durability: what a transaction writes waits in the controller's queue, on reserve power, and goes to
//! memory when the transaction commits. Only where the queue is full a line goes earlier, behind its old content in a
//! log.
//! Source: LAD (MICRO 2019), the abstract: updates gather in the controllers' persistent buffers and are committed
//! together. Left out: the commit in two phases over several controllers, for there is one.
//!
//! *Assumed*, because nothing public says it:
//! * The queue is apart from the write queue, and its length is in lines. The oldest line leaves a full one, with the
//!   old content that the processor's caches hand over before the first store (ATOM's log bit).
//! * A flush is acknowledged, and answered, once its line is in the queue; counters are written back after the lines.
//! * A transaction's lines leave the queue together, in the order of commits, when all are in memory.
//!
//! What a power cut finds: registers and queue, dumped on reserve power. Recovery writes the lines of committed
//! transactions, in the order of commits, and then puts back the old lines of others that were logged, newest first.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::buckets::{FoundRegisters, dumped};
use super::owners::{EntryCounts, Owners};
use super::pending::{
    self, Dumped, ENTRY_DROPPED, ENTRY_SPILLED, EntryPlaces, HalfLine, Outliving, PER_LINE,
};
use super::undo::{self, LOGGED_AGAIN};
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::controller::{
    Class, Figures, Layer, Persist, Storey, Top, Unfinished, Write, knows_what_is_below,
    stands_on_below,
};
use crate::line::{LINE_BYTES, Line, Logical, SPAN};
use crate::mechanisms::{ENDED_FULL, Mechanism, mechanisms};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};

/// Half lines that a line has places for: the old line's, then the new one's.
const HALVES: u64 = 2 * PER_LINE;
/// The entry of a line for which the log had no room, which ends the run.
const NOWHERE: u64 = u64::MAX;

keys! {
    QUEUE: u64 = int("lad.queue", (1, 1 << 16), 64),
        Assumed("the abstract has no number; as many lines as SCA's write queue has"),
        "Lines of transactions under way that wait in the controller"
        in Between("16", "256", "a quarter of the default and four times: 1 to 16 KiB on reserve power")
        under |by| by.short.then_some(if by.limits { 24 } else { 3 });
}

static KEYS: [&dyn AnyKey; 9] = [
    &QUEUE,
    &undo::TRANSACTIONS,
    &undo::RECORDS,
    &undo::BUCKETS,
    &undo::FIRST_BUCKET,
    &undo::REUSE,
    &undo::PLACEMENT,
    &pending::FIRST_NUMBER,
    &pending::SEALED,
];

mechanisms! {
    HELD_LINE = "lines held until a commit", least 30;
    READ_HELD = "held lines read", least 0;
}

static SHARED: [&Mechanism; 5] = [
    &undo::NEXT_BUCKET,
    &undo::BUCKET_AGAIN,
    &LOGGED_AGAIN,
    &undo::UNDONE,
    &ENDED_FULL,
];

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "lad",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[&pending::SHARED_FIGURES, pending::FIGURES],
            cut: "registers and the queue are dumped on reserve power; lines of committed transactions are written, \
                  logged old lines of others are put back; eadr drains lines that no log knows",
            tries: &[pending::MECHANISMS, &SHARED, MECHANISMS],
            limits: pending::LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| {
            Box::new(Lad::new(settings, below, layout, |entries| entries))
        },
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "lad",
        source: "LAD, MICRO 2019",
        line: "no log: a transaction's lines wait in the controller for its commit, over data in counter mode",
        stack: "lad/identity+sca",
    }],
};

/// Where the newest content of a transaction's line is.
enum Newest {
    /// In the processor's caches.
    Above,
    /// In that entry of the queue, after that step.
    Held(u64, Line, Step),
    /// In memory, after its old content is in the log; the second step is that of its last write.
    Left(Step, Step),
}

/// A line of a transaction under way.
struct OfTransaction {
    owner: usize,
    /// The number of its first half line, once it has places.
    index: u64,
    old: At<Line>,
    newest: Newest,
}

/// The controller's queue of lines that wait for a commit.
pub struct Lad<P = EntryPlaces> {
    below: Top,
    owners: Owners<P>,
    lines: u64,
    /// Held lines, the oldest first, and the other entries of the queue, each with the step after which it is free.
    queue: VecDeque<Logical>,
    room: VecDeque<(u64, Step)>,
    changed: FxHashMap<Logical, OfTransaction>,
    /// Commits so far, and the step after which the lines of all of them are in memory.
    committed: u64,
    cleared: Step,
    counts: EntryCounts,
}

/// Writes a line that has come to the controller before. Its counter is another matter.
fn send(below: &mut Top, line: Logical, data: At<&Line>, gate: Step, plan: &mut Plan) -> Stored {
    plan.handled_again(line, data.value, Class::Data, Persist::Relaxed);
    let write = Write {
        gate,
        ..Write::new(line, data)
    };
    below.write(write, plan)
}

impl<P: Outliving> Lad<P> {
    /// A queue over `below`, whose entries outlive a cut by what `pending` makes of the log's own way.
    pub fn new(
        settings: &Settings,
        below: Top,
        layout: &mut Layout,
        pending: impl FnOnce(EntryPlaces) -> P,
    ) -> Lad<P> {
        let queue = settings.get(&QUEUE);
        Lad {
            below,
            lines: layout.data_lines(),
            owners: Owners::new(settings, layout, (queue * PER_LINE, HALVES), pending),
            queue: VecDeque::new(),
            room: (0..queue).map(|entry| (entry, Step::PAST)).collect(),
            changed: FxHashMap::default(),
            committed: 0,
            cleared: Step::PAST,
            counts: EntryCounts::default(),
        }
    }

    /// Lets the oldest held line go to memory, behind its old content in the log. Returns its entry, and the step after
    /// which that is free.
    fn let_go(&mut self, plan: &mut Plan) -> Option<(u64, Step)> {
        let line = self.queue.pop_front()?;
        let of = self.changed.get_mut(&line).expect("it is held");
        let Newest::Held(entry, new, at) = of.newest else {
            unreachable!("the queue has held lines")
        };
        let mut logged = Step::PAST;
        for half in HalfLine::halves(line, 0, &of.old.value) {
            plan.exercise(&ENTRY_SPILLED);
            let index = of.index + half.half;
            let stored = (self.owners).leave(of.owner, index, &half, of.old.at, plan);
            logged = plan.both(logged, stored.accepted);
        }
        self.counts.spilled += PER_LINE;
        let stored = send(&mut self.below, line, At::new(&new, at), logged, plan);
        let counters = self.below.persist_metadata(line, Step::PAST, plan);
        let safe = plan.both(stored.accepted, counters.accepted);
        of.newest = Newest::Left(logged, safe);
        Some((entry, safe))
    }

    /// The queue's entry for `line`, and the step after which that is free; `None` if the log has no room.
    fn entry_of(&mut self, line: Logical, plan: &mut Plan) -> Option<(u64, Step)> {
        let of = self.changed.get(&line)?;
        if let Newest::Held(entry, ..) = of.newest {
            return (entry != NOWHERE).then_some((entry, Step::PAST));
        }
        let index = self.owners.reserve(of.owner, HALVES, plan)?;
        let free = match self.room.pop_front() {
            Some(free) => free,
            None => self.let_go(plan)?,
        };
        self.queue.push_back(line);
        self.counts.most = self.counts.most.max(PER_LINE * self.queue.len() as u64);
        self.changed.get_mut(&line)?.index = index;
        Some(free)
    }

    /// Holds the new content of `line`, which has not left. Returns the step after which it outlives a cut with its
    /// transaction.
    fn hold(&mut self, line: Logical, new: At<&Line>, plan: &mut Plan) -> Step {
        let entry = self.entry_of(line, plan);
        let of = self.changed.get_mut(&line).expect("it is under way");
        let Some((entry, room)) = entry else {
            // The run has failed, and memory may not have the line.
            of.newest = Newest::Held(NOWHERE, *new.value, new.at);
            return new.at;
        };
        for half in HalfLine::halves(line, 1, new.value) {
            let (slot, index) = (
                entry * PER_LINE + half.half,
                of.index + PER_LINE + half.half,
            );
            (self.owners).put(of.owner, index, &half, new.at, (slot, room), plan);
        }
        plan.exercise(&HELD_LINE);
        let durable = self.owners.owner(of.owner).durable;
        of.newest = Newest::Held(entry, *new.value, durable);
        durable
    }
}

/// The lines that recovery writes for the transaction that `found` names, in order.
fn left_by<P: Outliving>(
    owners: &Owners<P>,
    found: &FoundRegisters,
    dumped: &Dumped,
    plan: &mut Plan,
) -> Vec<(Logical, At<Line>)> {
    let mut left = Vec::new();
    let all = found.buckets.len() as u64 * owners.entries.per_bucket;
    for index in (0..all).step_by(HALVES as usize) {
        let old = owners.line(found, index, dumped, plan);
        let new = owners.line(found, index + PER_LINE, dumped, plan);
        match (found.headers, old, new) {
            (_, None, None) => break,
            (0, old, _) => left.extend(old),
            // A line that was let go may be newer in memory than it was here.
            (_, None, new) => left.extend(new),
            _ => {}
        }
    }
    if found.headers == 0 {
        left.reverse();
    }
    left
}

impl<P: Outliving> Storey for Lad<P> {
    stands_on_below!();

    fn flush(&mut self, plan: &mut Plan) {
        while let Some(free) = self.let_go(plan) {
            self.room.push_back(free);
        }
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.owners.recover(plan);
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        self.owners
            .write_left(self.lines, &mut self.below, left_by, plan)
    }

    fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        self.owners.unfinished(HALVES, plan)
    }

    fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        self.owners.begin(core, transaction, plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        let Some(owner) = self.owners.of_core(core) else {
            return;
        };
        if self.changed.contains_key(&line) {
            return plan.exercise(&LOGGED_AGAIN);
        }
        // Memory must not have it before its transaction commits.
        plan.lock(line);
        self.owners.owner(owner).logged.push(line);
        let of = OfTransaction {
            owner,
            index: 0,
            old: At::new(*old.value, old.at),
            newest: Newest::Above,
        };
        self.changed.insert(line, of);
        self.counts.lines += 1;
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        let Some(slot) = self.owners.of_core(core) else {
            return Stored::at(Step::PAST);
        };
        let ended = self.owners.end(slot);
        let (mut ripe, mut held) = (ended.durable, Vec::new());
        for line in &ended.logged {
            let of = self.changed.remove(line).expect("it is under way");
            match of.newest {
                Newest::Above => {}
                Newest::Held(entry, new, at) => held.push((*line, entry, new, at)),
                // Recovery must not write an older commit over it.
                Newest::Left(_, safe) => {
                    ripe = plan.both(ripe, safe);
                    ripe = plan.both(ripe, self.cleared);
                }
            }
        }
        self.queue.retain(|line| self.changed.contains_key(line));
        self.committed += !ended.buckets.is_empty() as u64;
        let (transaction, number) = (ended.transaction, ended.number);
        let committed = match ended.buckets.is_empty() {
            true => dumped(0, 0, &[], number),
            false => dumped(transaction, self.committed, &ended.buckets, number),
        };
        let place = self.owners.registers.place(slot);
        let done = plan.registers(place, &committed, ripe, &ended.logged);
        if ended.buckets.is_empty() {
            return Stored::at(done);
        }
        let mut safe = plan.both(self.cleared, done);
        for (line, _, new, at) in &held {
            let stored = send(&mut self.below, *line, At::new(new, *at), done, plan);
            safe = plan.both(safe, stored.accepted);
        }
        let mut spans: Vec<u64> = held.iter().map(|(line, ..)| line.0 / SPAN).collect();
        spans.sort_unstable();
        spans.dedup();
        for span in spans {
            let line = Logical(span * SPAN);
            let stored = self.below.persist_metadata(line, Step::PAST, plan);
            safe = plan.both(safe, stored.accepted);
        }
        self.cleared = self.owners.clear(slot, ended, safe, plan);
        for (_, entry, ..) in held.into_iter().filter(|(_, entry, ..)| *entry != NOWHERE) {
            for _ in 0..PER_LINE {
                plan.exercise(&ENTRY_DROPPED);
            }
            self.counts.dropped += PER_LINE;
            self.room.push_back((entry, self.cleared));
        }
        Stored::at(done)
    }

    fn forget_figures(&mut self) {
        self.counts.forget();
        self.owners.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        let bytes = self.owners.entries.queue() as usize * LINE_BYTES / 2;
        self.owners.figures(&self.counts, bytes, out);
    }
}

impl<P: Outliving> Layer for Lad<P> {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        if let Some(of) = self.changed.get(&a)
            && let Newest::Held(_, new, at) = of.newest
        {
            plan.exercise(&READ_HELD);
            return At::new(Some(new), plan.both(at, after));
        }
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let Some(of) = self.changed.get_mut(&write.at) else {
            // Recovery writes what commits left, and what a cut found, until their registers are cleared.
            let cleared = plan.both(self.cleared, self.owners.buckets.ready);
            let gate = plan.both(write.gate, cleared);
            return self.below.write(Write { gate, ..write }, plan);
        };
        if let Newest::Left(logged, safe) = &mut of.newest {
            let gate = plan.both(write.gate, *logged);
            let stored = self.below.write(Write { gate, ..write }, plan);
            *safe = plan.both(*safe, stored.accepted);
            return stored;
        }
        let exists = plan.both(write.data.at, write.gate);
        Stored::at(self.hold(write.at, At::new(write.data.value, exists), plan))
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let (first, mut all) = (a.0 / SPAN * SPAN, None);
        for line in (first..first + SPAN).map(Logical) {
            if let Some(of) = self.changed.get(&line) {
                let waits = !matches!(of.newest, Newest::Left(..));
                all = Some(all.unwrap_or(true) && waits);
            }
        }
        if all == Some(true) {
            return Stored::at(after); // the commit will see to it
        }
        let stored = self.below.persist_metadata(a, after, plan);
        for line in (first..first + SPAN).map(Logical) {
            if let Some(of) = self.changed.get_mut(&line)
                && let Newest::Left(_, safe) = &mut of.newest
            {
                *safe = plan.both(*safe, stored.accepted);
            }
        }
        stored
    }
}
