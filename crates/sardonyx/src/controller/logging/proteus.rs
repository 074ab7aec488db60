//! Proteus's log: undo entries wait in the controller's log pending queue (LPQ), which outlives a power cut, and are
//! dropped when their transaction commits. Only a full queue writes entries, the oldest first.
//! Source: Proteus (MICRO 2017), the abstract and what is public of its Sec. 4: entries of 32 bytes of data in a line,
//! the order of entries, the queue, its overflow, its flash clear. Left out: the instructions `log-load` and
//! `log-flush`, log registers and the lookup table of logged blocks, for which the caches' log bit stands (ATOM's):
//! whole lines are logged, two entries each.
//!
//! *Assumed*, because nothing public says it: the queue's length is that of the controller, not a core's; entries of
//! a transaction become durable in their order; a store does not wait for its entry, but the line's write to memory
//! does; written entries are invalidated by the registers, which name a transaction until it commits.
//!
//! What a power cut finds: registers (which transaction, its buckets, its number) and the queue, both dumped on reserve
//! power. Recovery reads entries until one is not of that number, and puts lines back, newest first.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::buckets::FoundRegisters;
use super::owners::{EntryCounts, Owners};
use super::pending::{
    self, Dumped, ENTRY_DROPPED, ENTRY_SPILLED, EntryPlaces, HalfLine, Outliving, PER_LINE, Queued,
};
use super::undo::{self, HELD_BACK, LOGGED_AGAIN};
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::controller::{
    Class, Figures, Layer, Storey, Top, Unfinished, Write, knows_what_is_below, stands_on_below,
};
use crate::line::{LINE_BYTES, Line, Logical};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};
use crate::stats::Cause;

keys! {
    QUEUE: u64 = int("proteus.queue", (2, 1 << 16), 256),
        Assumed("nothing public has a number; eight lines for each of 16 transactions"),
        "Entries, of half a line each, that wait in the log pending queue"
        in Between("64", "1024", "a quarter of the default and four times: 4 to 64 KiB on reserve power")
        under |by| by.short.then_some(if by.limits { 64 } else { 6 });
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

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "proteus",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[&pending::SHARED_FIGURES, pending::FIGURES],
            cut: "registers and the log pending queue are dumped on reserve power; old lines of transactions under \
                  way are put back",
            tries: &[pending::MECHANISMS, &pending::SHARED_MECHANISMS],
            limits: pending::LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| {
            Box::new(Proteus::new(settings, below, layout, |entries| entries))
        },
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "proteus",
        source: "Proteus, MICRO 2017",
        line: "a hardware undo log that waits on chip and is dropped at commit, over data in counter mode",
        stack: "proteus/identity+sca",
    }],
};

/// The log manager, whose queue all transactions share.
pub struct Proteus<P = EntryPlaces> {
    below: Top,
    owners: Owners<P>,
    lines: u64,
    /// Entries that wait, the oldest first, and the other slots of the queue, each with the step after which it is free.
    queue: VecDeque<Queued>,
    room: VecDeque<(u64, Step)>,
    /// The step from which on a line may be written, because its entries outlive a cut.
    locks: FxHashMap<Logical, Step>,
    counts: EntryCounts,
}

impl<P: Outliving> Proteus<P> {
    /// A log over `below`, whose entries outlive a cut by what `pending` makes of the log's own way.
    pub fn new(
        settings: &Settings,
        below: Top,
        layout: &mut Layout,
        pending: impl FnOnce(EntryPlaces) -> P,
    ) -> Proteus<P> {
        let queue = settings.get(&QUEUE);
        Proteus {
            below,
            lines: layout.data_lines(),
            owners: Owners::new(settings, layout, (queue, PER_LINE), pending),
            queue: VecDeque::new(),
            room: (0..queue).map(|slot| (slot, Step::PAST)).collect(),
            locks: FxHashMap::default(),
            counts: EntryCounts::default(),
        }
    }

    /// Makes room in the queue for one entry: a slot, and the step after which it is free.
    fn make_room(&mut self, plan: &mut Plan) -> (u64, Step) {
        if let Some(free) = self.room.pop_front() {
            return free;
        }
        let oldest = self.queue.pop_front().expect("the queue is full");
        plan.exercise(&ENTRY_SPILLED);
        self.counts.spilled += 1;
        let mut log = plan.because(Cause::Log);
        let stored = self.owners.pending.leave(&oldest, &mut log);
        (oldest.slot, stored.accepted)
    }
}

/// The old lines of the transaction that `found` names, newest first.
fn newest_first<P: Outliving>(
    owners: &Owners<P>,
    found: &FoundRegisters,
    dumped: &Dumped,
    plan: &mut Plan,
) -> Vec<(Logical, At<Line>)> {
    let old = owners.old_lines(found, PER_LINE, dumped, plan).into_iter();
    old.rev().map(|(_, line, old)| (line, old)).collect()
}

impl<P: Outliving> Storey for Proteus<P> {
    stands_on_below!();

    fn recover(&mut self, plan: &mut Plan) {
        self.owners.recover(plan);
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        self.owners
            .write_left(self.lines, &mut self.below, newest_first, plan)
    }

    fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        self.owners.unfinished(PER_LINE, plan)
    }

    fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        self.owners.begin(core, transaction, plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        let Some(slot) = self.owners.of_core(core) else {
            return;
        };
        plan.lock(line);
        for entry in HalfLine::halves(line, 0, old.value) {
            let Some(index) = self.owners.reserve(slot, 1, plan) else {
                return;
            };
            let room = self.make_room(plan);
            let queued = (self.owners).put(slot, index, &entry, old.at, room, plan);
            self.queue.push_back(queued);
            self.counts.most = self.counts.most.max(self.queue.len() as u64);
        }
        let owner = self.owners.owner(slot);
        owner.logged.push(line);
        if self.locks.insert(line, owner.durable).is_some() {
            plan.exercise(&LOGGED_AGAIN);
        }
        self.counts.lines += 1;
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        let Some(slot) = self.owners.of_core(core) else {
            return Stored::at(Step::PAST);
        };
        let ended = self.owners.end(slot);
        for line in &ended.logged {
            self.locks.remove(line);
        }
        let (number, durable) = (ended.number, ended.durable);
        if ended.buckets.is_empty() {
            return Stored::at(durable);
        }
        let done = self.owners.clear(slot, ended, durable, plan);
        self.queue.retain(|entry| {
            let dropped = entry.number == number;
            if dropped {
                plan.exercise(&ENTRY_DROPPED);
                self.counts.dropped += 1;
                self.room.push_back((entry.slot, done));
            }
            !dropped
        });
        Stored::at(done)
    }

    fn forget_figures(&mut self) {
        self.counts.forget();
        self.owners.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        let places = self.queue.len() + self.room.len();
        let bytes = places * LINE_BYTES;
        self.owners.figures(&self.counts, bytes, out);
    }
}

impl<P: Outliving> Layer for Proteus<P> {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let mut gate = write.gate;
        if let Some(durable) = self.locks.get(&write.at) {
            if !plan.is_past(*durable) {
                plan.exercise(&HELD_BACK);
            }
            gate = plan.both(gate, *durable);
        }
        self.below.write(Write { gate, ..write }, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(a, after, plan)
    }
}
