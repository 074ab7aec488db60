//! Silo's log: undo and redo entries stay in a log buffer on chip, on reserve power, and are data: what a transaction
//! has written updates memory in place from there while the program goes on, and then the log is dropped. Entries are
//! written only where the buffer overflows, or at a cut.
//! Source: Silo (HPCA 2023), the abstract: logs on chip during a transaction, updates in place after its commit,
//! flushing at a crash. Left out: the on-PM buffer's coalescing.
//!
//! *Assumed*, because nothing public says it, or because lines lie under counters here:
//! * An entry is a line and not a word, because a word cannot be put back into a line whose counter a cut has lost. The
//!   length of the buffer, of each core, is in such entries.
//! * The update in place is the write that the program's flush asks for: it and the write-back of counters are
//!   acknowledged once the line's new content is in the buffer, so no commit waits for memory. Silo's programs do not
//!   flush, and its controller sends the same lines after the commit.
//! * On overflow the oldest entry of the core's transaction leaves: its old line is written to the log, and its commit
//!   waits until the line's new content is in memory.
//! * A transaction's entries leave together, in the order of commits, when all its lines are in memory.
//!
//! What a power cut finds: registers and buffers, dumped on reserve power. Recovery writes the new lines of committed
//! transactions again, in the order of commits, and then puts back the old lines of others, newest first.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::buckets::{FoundRegisters, dumped};
use super::owners::{EntryCounts, Owners};
use super::pending::{
    self, Dumped, ENTRY_DROPPED, ENTRY_SPILLED, EntryPlaces, HalfLine, Outliving, PER_LINE, Queued,
};
use super::undo::{self, HELD_BACK, LOGGED_AGAIN, TRANSACTIONS};
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::controller::{
    Class, Figures, Layer, Storey, Top, Unfinished, Write, knows_what_is_below, stands_on_below,
};
use crate::line::{LINE_BYTES, Line, Logical, SPAN};
use crate::mechanisms::mechanisms;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};
use crate::stats::Cause;

/// Half lines of an entry: the old line's, then the new one's.
const HALVES: u64 = 2 * PER_LINE;

keys! {
    BUFFER: u64 = int("silo.entries", (1, 4096), 20),
        Assumed("the abstract has no number, and an entry is a line here"),
        "Lines in the log buffer of each core, each with its old and its new content"
        in Between("8", "64", "1 to 8 KiB of lines for each core")
        under |by| by.short.then_some(if by.limits { 16 } else { 2 });
}

static KEYS: [&dyn AnyKey; 9] = [
    &BUFFER,
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
    ACKNOWLEDGED = "writes acknowledged by a log", least 30;
}

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "silo",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[&pending::SHARED_FIGURES, pending::FIGURES],
            cut: "registers and log buffers are dumped on reserve power; new lines of committed transactions are \
                  written again, old lines of others are put back",
            tries: &[pending::MECHANISMS, &pending::SHARED_MECHANISMS, MECHANISMS],
            limits: pending::LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| {
            Box::new(Silo::new(settings, below, layout, |entries| entries))
        },
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "silo",
        source: "Silo, HPCA 2023",
        line: "a hardware log on chip whose new lines update memory in place, over data in counter mode",
        stack: "silo/identity+sca",
    }],
};

/// A line of a transaction under way.
struct LoggedLine {
    /// The registers of the transaction, and the number of its first half line.
    owner: usize,
    index: u64,
    /// The old line's halves in the buffer, until they leave.
    on_chip: Option<[Queued; PER_LINE as usize]>,
    /// The step after which its old content outlives a cut, and that after which its newest content in memory does.
    held: Step,
    safe: Step,
}

/// The log controller.
pub struct Silo<P = EntryPlaces> {
    below: Top,
    owners: Owners<P>,
    lines: u64,
    /// Free entries of each core's buffer, each with the step from which on it is.
    room: Vec<VecDeque<(u64, Step)>>,
    logged: FxHashMap<Logical, LoggedLine>,
    /// Lines of the transaction of each registers whose entries have left.
    left: Vec<usize>,
    /// Commits so far, and the step after which the lines of all of them are in memory.
    committed: u64,
    cleared: Step,
    counts: EntryCounts,
}

impl<P: Outliving> Silo<P> {
    /// A log over `below`, whose entries outlive a cut by what `pending` makes of the log's own way.
    pub fn new(
        settings: &Settings,
        below: Top,
        layout: &mut Layout,
        pending: impl FnOnce(EntryPlaces) -> P,
    ) -> Silo<P> {
        let (cores, each) = (settings.get(&TRANSACTIONS), settings.get(&BUFFER));
        let buffer = |core| (core * each..(core + 1) * each).map(|entry| (entry, Step::PAST));
        Silo {
            below,
            lines: layout.data_lines(),
            owners: Owners::new(settings, layout, (cores * each * HALVES, HALVES), pending),
            room: (0..cores).map(|core| buffer(core).collect()).collect(),
            logged: FxHashMap::default(),
            left: vec![0; cores as usize],
            committed: 0,
            cleared: Step::PAST,
            counts: EntryCounts::default(),
        }
    }

    /// Makes room in the buffer of `core`, whose transaction has the registers `owner`: an entry, and the step after
    /// which it is free.
    fn make_room(&mut self, core: u32, owner: usize, plan: &mut Plan) -> (u64, Step) {
        let cores = self.room.len();
        if let Some(free) = self.room[core as usize % cores].pop_front() {
            return free;
        }
        let line = self.owners.owner(owner).logged[self.left[owner]];
        self.left[owner] += 1;
        let oldest = self.logged.get_mut(&line).expect("it is under way");
        let halves = oldest.on_chip.take().expect("the oldest leaves first");
        let (mut log, mut free) = (plan.because(Cause::Log), Step::PAST);
        for half in &halves {
            log.exercise(&ENTRY_SPILLED);
            let stored = self.owners.pending.leave(half, &mut log);
            free = log.both(free, stored.accepted);
        }
        self.counts.spilled += PER_LINE;
        self.counts.waiting -= PER_LINE;
        (halves[0].slot / HALVES, free)
    }

    /// Puts the new content of `line` into its entry, if that is on chip. Returns the step after which it outlives a
    /// cut with its transaction.
    fn redo(&mut self, line: Logical, new: At<&Line>, plan: &mut Plan) -> Option<Step> {
        let logged = self.logged.get(&line)?;
        let first = logged.on_chip.as_ref()?[0].slot + PER_LINE;
        for (half, entry) in (0..).zip(HalfLine::halves(line, 1, new.value)) {
            let (index, room) = (logged.index + PER_LINE + half, (first + half, logged.held));
            (self.owners).put(logged.owner, index, &entry, new.at, room, plan);
        }
        Some(self.owners.owner(logged.owner).durable)
    }
}

/// The lines that recovery writes for the transaction that `found` names, in order.
fn left_by<P: Outliving>(
    owners: &Owners<P>,
    found: &FoundRegisters,
    dumped: &Dumped,
    plan: &mut Plan,
) -> Vec<(Logical, At<Line>)> {
    let old = owners.old_lines(found, HALVES, dumped, plan).into_iter();
    match found.headers {
        0 => old.rev().map(|(_, line, old)| (line, old)).collect(),
        _ => old
            .filter_map(|(index, ..)| owners.line(found, index + PER_LINE, dumped, plan))
            .collect(),
    }
}

impl<P: Outliving> Storey for Silo<P> {
    stands_on_below!();

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
        if self.logged.contains_key(&line) {
            return plan.exercise(&LOGGED_AGAIN);
        }
        let Some(index) = self.owners.reserve(owner, HALVES, plan) else {
            return;
        };
        let (entry, room) = self.make_room(core, owner, plan);
        plan.lock(line);
        // What a cut has left in these slots is needed until its recovery is done.
        let room = plan.both(room, self.owners.buckets.ready);
        let first = entry * HALVES;
        let void = (self.owners.pending).void(first + PER_LINE..first + HALVES, room, plan);
        let [one, other] = HalfLine::halves(line, 0, old.value);
        let halves = [(0, one), (1, other)].map(|(half, entry)| {
            let room = (first + half, void);
            (self.owners).put(owner, index + half, &entry, old.at, room, plan)
        });
        let this = self.owners.owner(owner);
        this.logged.push(line);
        let logged = LoggedLine {
            owner,
            index,
            on_chip: Some(halves),
            held: this.durable,
            safe: Step::PAST,
        };
        self.logged.insert(line, logged);
        self.counts.lines += 1;
        self.counts.waiting += PER_LINE;
        self.counts.most = self.counts.most.max(self.counts.waiting);
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        let Some(slot) = self.owners.of_core(core) else {
            return Stored::at(Step::PAST);
        };
        let ended = self.owners.end(slot);
        self.left[slot] = 0;
        let (mut ripe, mut safe, mut entries) = (ended.durable, self.cleared, Vec::new());
        for line in &ended.logged {
            let logged = self.logged.remove(line).expect("it is under way");
            safe = plan.both(safe, logged.safe);
            match logged.on_chip {
                Some(halves) => entries.push(halves[0].slot / HALVES),
                // Recovery must not write an older commit over it.
                None => {
                    ripe = plan.both(ripe, logged.safe);
                    ripe = plan.both(ripe, self.cleared);
                }
            }
        }
        if ended.buckets.is_empty() {
            return Stored::at(ripe);
        }
        self.committed += 1;
        let (transaction, number) = (ended.transaction, ended.number);
        let committed = dumped(transaction, self.committed, &ended.buckets, number);
        let place = self.owners.registers.place(slot);
        let done = plan.registers(place, &committed, ripe, &[]);
        let ripe = plan.both(done, safe);
        self.cleared = self.owners.clear(slot, ended, ripe, plan);
        let cores = self.room.len();
        for entry in entries {
            for _ in 0..PER_LINE {
                plan.exercise(&ENTRY_DROPPED);
            }
            self.counts.dropped += PER_LINE;
            self.counts.waiting -= PER_LINE;
            self.room[core as usize % cores].push_back((entry, self.cleared));
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

impl<P: Outliving> Layer for Silo<P> {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let Some(logged) = self.logged.get_mut(&write.at) else {
            // Recovery writes what commits left, and what a cut found, until their registers are cleared.
            let cleared = plan.both(self.cleared, self.owners.buckets.ready);
            let gate = plan.both(write.gate, cleared);
            return self.below.write(Write { gate, ..write }, plan);
        };
        if !plan.is_past(logged.held) {
            plan.exercise(&HELD_BACK);
        }
        let gate = plan.both(write.gate, logged.held);
        let stored = self.below.write(Write { gate, ..write }, plan);
        logged.safe = plan.both(logged.safe, stored.accepted);
        let exists = plan.both(write.data.at, write.gate);
        let Some(kept) = self.redo(write.at, At::new(write.data.value, exists), plan) else {
            return stored;
        };
        plan.exercise(&ACKNOWLEDGED);
        Stored {
            accepted: kept,
            ..stored
        }
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let stored = self.below.persist_metadata(a, after, plan);
        let first = a.0 / SPAN * SPAN;
        let (mut any, mut all) = (false, true);
        for line in (first..first + SPAN).map(Logical) {
            if let Some(logged) = self.logged.get_mut(&line) {
                logged.safe = plan.both(logged.safe, stored.accepted);
                (any, all) = (true, all && logged.on_chip.is_some());
            }
        }
        match any && all {
            true => Stored {
                accepted: after,
                ..stored
            },
            false => stored,
        }
    }
}
