//! Undo and redo in one circular log, so that a commit forces no line of data to memory ("steal but no force"): lines
//! are forced back in time, by walks over the caches, before the log comes round to their entries.
//! Source: FWB (HPCA 2018), the abstract and a public summary: undo and redo for each change, the log that comes round,
//! two walks with a bit for each line, recovery that redoes what has committed and undoes the rest. Left out: the log
//! buffer's window (here a line's write waits for its entries), and aborts.
//!
//! The controller sees lines where the paper's caches see stores. *Assumed*, or other than the paper:
//! * Whole lines are logged, not words: a word cannot be put into a line whose counter a cut has lost.
//! * The program's flush brings a line's new content, which is logged at once; then the line waits here as it would in
//!   the last-level cache, until a walk, its eviction, or a read that would have evicted it. So a flush waits for the log only.
//! * Walks come after so many lines of the log, not after a time: the paper's period is a full speed log's.
//! * Counters of lines that are forced back are written with them.
//! * Where a transaction's own entries fill the log the run ends; the paper does not say.
//!
//! What a power cut finds: the number of the log's tail, dumped on reserve power. Recovery reads entries from there on
//! until one is missing, writes new lines of committed transactions, and old lines of others.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::morlog::LogForm;
use super::pending::{FIRST_NUMBER, SEALED};
use super::ring::{self, Kind, Outlasting, Ring, RingEntry, WHOLE, differing};
use super::undo::{HELD_BACK, LOGGED_AGAIN, UNDONE};
use super::window::{self, PLACE_AGAIN, RingCounts, RunningTransaction, SHARED_FIGURES, Window};
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::controller::{
    Class, Figures, Layer, Persist, Storey, Top, Write, knows_what_is_below, stands_on_below,
};
use crate::exhausted::Exhausted;
use crate::line::{Line, Logical, SPAN, ZERO_LINE};
use crate::mechanisms::{Mechanism, mechanisms};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};
use crate::stats::Cause;

keys! {
    LINES: u64 = int("fwb.log_lines", (16, 1 << 24), 8192),
        Assumed("the abstract has no number; 512 KiB"),
        "Lines of the circular log"
        in Between("2048", "65536", "128 KiB to 4 MiB")
        under |by| Some(if by.long_transactions || by.limits { 4096 } else if by.short { 256 } else { 512 });
    WALKS: u64 = int("fwb.walks", (1, 1 << 10), 4),
        Assumed("the paper's period follows from the log's length; two walks have to be done before it comes round"),
        "Walks over the caches while the log comes round once; each forces the lines that it finds dirty twice"
        in Between("3", "16", "from the fewest that force in time to one for each sixteenth of the log");
}

/// The keys of such a log.
pub static KEYS: [&dyn AnyKey; 4] = [&LINES, &WALKS, &FIRST_NUMBER, &SEALED];

const LOG_FULL: Exhausted = Exhausted {
    problem: "transactions under way fill the circular log",
    remedy: "set fwb.log_lines higher, or make shorter transactions",
    key: Some(LINES.name()),
};

mechanisms! {
    FORCED_BACK = "lines forced back", least 30;
    STOLEN = "lines written before their commit", least 30;
}

/// Mechanisms of other logs that such a log has too.
pub static SHARED_MECHANISMS: [&Mechanism; 4] = [&PLACE_AGAIN, &LOGGED_AGAIN, &HELD_BACK, &UNDONE];

/// The effect of a power cut on such a log.
pub const CUT: &str = "the number of the log's tail is dumped on reserve power; new lines of committed transactions are \
                       written again, old lines of others are put back";

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "fwb",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[&SHARED_FIGURES, window::FIGURES],
            cut: CUT,
            tries: &[MECHANISMS, &SHARED_MECHANISMS],
            limits: ring::LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| {
            Box::new(Fwb::new(settings, LogForm::Eager, below, layout, |ring| {
                ring
            }))
        },
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "fwb",
        source: "FWB, HPCA 2018",
        line: "a circular hardware log of old and new lines; a commit forces nothing, over data in counter mode",
        stack: "fwb/identity+sca",
    }],
};

/// A line of a transaction under way.
struct ChangedLine {
    transaction: u64,
    old: Line,
    /// The step after which its old content outlives a cut.
    undo: Step,
    /// Whether what the transaction has made of it is logged.
    is_logged: bool,
}

/// The log controller.
pub struct Fwb<R = Ring> {
    below: Top,
    window: Window<R>,
    form: LogForm,
    lines: u64,
    /// Lines of the log between two walks, and the number of lines by the next one.
    walk_after: u64,
    next_walk: u64,
    next: u64,
    changed: FxHashMap<Logical, ChangedLine>,
    /// Lines that reserve power has drained since the recovery, if that is not over: they are newer than the log.
    drained: Option<BTreeSet<Logical>>,
}

impl<R: Outlasting> Fwb<R> {
    /// A log over `below`, whose entries outlive a cut by what `outlasting` makes of the log's own way.
    pub fn new(
        settings: &Settings,
        form: LogForm,
        below: Top,
        layout: &mut Layout,
        outlasting: impl FnOnce(Ring) -> R,
    ) -> Fwb<R> {
        let (lines, room) = (layout.data_lines(), settings.get(&LINES));
        let walk_after = (room / settings.get(&WALKS)).max(1);
        Fwb {
            below,
            window: Window::new(outlasting(Ring::new(settings, room, layout))),
            form,
            lines,
            walk_after,
            next_walk: walk_after,
            next: 1,
            changed: FxHashMap::default(),
            drained: None,
        }
    }

    /// Appends those words of `content` that are in `mask`, not before `gate`.
    fn append(
        &mut self,
        about: (Kind, u64),
        line: Logical,
        (content, mask): (At<&Line>, u8),
        gate: Step,
        plan: &mut Plan,
    ) {
        let entries = RingEntry::of_words(about, line, content.value, mask);
        if !self.window.has_room(entries.len()) {
            self.walk(true, plan);
            if !self.window.has_room(entries.len()) {
                return plan.fail(LOG_FULL);
            }
        }
        self.window.append(&entries, content.at, gate, plan);
    }

    /// Sends the newest content of `line` to memory, if that is here only. Its counter is another matter.
    fn send(&mut self, line: Logical, plan: &mut Plan) -> Option<Stored> {
        let known = self.window.known.get_mut(&line)?;
        let At { value, at } = known.dirty.take()?;
        known.is_marked = false;
        if self.changed.contains_key(&line) {
            plan.exercise(&STOLEN);
        }
        if !plan.is_past(at) {
            plan.exercise(&HELD_BACK);
        }
        plan.handled_again(line, &value, Class::Data, Persist::Relaxed);
        let write = Write {
            gate: at,
            ..Write::new(line, At::new(&value, at))
        };
        let stored = self.below.write(write, plan);
        known.safe = plan.both(known.safe, stored.accepted);
        Some(stored)
    }

    /// Writes the counters of `lines` back, which are in order and have been sent.
    fn persist_counters(&mut self, lines: &[Logical], plan: &mut Plan) {
        for lines in lines.chunk_by(|one, next| one.0 / SPAN == next.0 / SPAN) {
            let stored = (self.below).persist_metadata(lines[0], Step::PAST, plan);
            for line in lines {
                if let Some(known) = self.window.known.get_mut(line) {
                    known.safe = plan.both(known.safe, stored.accepted);
                }
            }
        }
    }

    /// Walks over the lines that memory does not have: forces `all` of them back, or those that a walk has found before.
    fn walk(&mut self, all: bool, plan: &mut Plan) {
        self.next_walk = self.window.counts.appended + self.walk_after;
        let mut due = Vec::new();
        for (line, known) in &mut self.window.known {
            if known.dirty.is_none() {
                continue;
            }
            match all || known.is_marked {
                true => due.push(*line),
                false => known.is_marked = true,
            }
        }
        for line in &due {
            plan.exercise(&FORCED_BACK);
            self.window.counts.forced += 1;
            match self.window.ring.forces() {
                true => drop(self.send(*line, plan)),
                false => self.window.known.get_mut(line).expect("it is due").dirty = None,
            }
        }
        self.persist_counters(&due, plan);
        self.window.give_up(plan);
    }

    fn walk_if_due(&mut self, plan: &mut Plan) {
        if self.window.counts.appended >= self.next_walk {
            self.walk(false, plan);
        }
    }

    /// Takes a write of a line of a transaction under way.
    fn write_changed(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let (line, exists) = (write.at, plan.both(write.data.at, write.gate));
        let changed = self.changed.get_mut(&line).expect("it is under way");
        let (transaction, mut ready) = (changed.transaction, plan.both(exists, changed.undo));
        changed.is_logged = self.form == LogForm::Eager;
        if self.form == LogForm::Eager {
            let content = At::new(write.data.value, exists);
            let about = (Kind::New, transaction);
            self.append(about, line, (content, WHOLE), Step::PAST, plan);
            ready = plan.both(ready, self.window.durable);
        }
        let known = self.window.known.entry(line).or_default();
        known.dirty = Some(At::new(*write.data.value, ready));
        if write.flushed {
            // What is not logged yet is not needed before the commit.
            let accepted = if self.form == LogForm::Eager {
                ready
            } else {
                exists
            };
            return Stored::at(accepted);
        }
        let stored = self.send(line, plan).expect("it is dirty");
        self.persist_counters(&[line], plan);
        stored
    }

    /// Takes a write by nobody's transaction of a line that the log knows, so that recovery must know of it too.
    fn write_alone(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let (line, exists) = (write.at, plan.both(write.data.at, write.gate));
        let content = At::new(write.data.value, exists);
        self.append((Kind::Alone, 0), line, (content, WHOLE), Step::PAST, plan);
        let gate = plan.both(write.gate, self.window.durable);
        let stored = self.below.write(Write { gate, ..write }, plan);
        let known = self.window.known.entry(line).or_default();
        (known.dirty, known.is_marked) = (None, false);
        known.safe = plan.both(known.safe, stored.accepted);
        self.persist_counters(&[line], plan);
        stored
    }

    /// Logs, for the commit of `transaction`, the content of `line` that is here only. Returns the step after which it
    /// outlives a cut, if it is not logged because memory has it.
    fn end_line(&mut self, transaction: u64, line: Logical, plan: &mut Plan) -> Step {
        let changed = self.changed.remove(&line).expect("it is under way");
        let known = self.window.known.get(&line);
        let safe = known.map_or(Step::PAST, |known| known.safe);
        let Some(dirty) = known.and_then(|known| known.dirty) else {
            return if self.form == LogForm::Eager {
                Step::PAST
            } else {
                safe
            };
        };
        if !changed.is_logged {
            let mask = match self.form.is_encoded() {
                true => differing(&dirty.value, &changed.old),
                false => WHOLE,
            };
            let about = (Kind::New, transaction);
            let content = At::new(&dirty.value, dirty.at);
            self.append(about, line, (content, mask), Step::PAST, plan);
            let known = self.window.known.get_mut(&line);
            if let Some(dirty) = known.and_then(|known| known.dirty.as_mut()) {
                dirty.at = plan.both(dirty.at, self.window.durable);
            }
        }
        Step::PAST
    }
}

impl<R: Outlasting> Storey for Fwb<R> {
    stands_on_below!();

    fn flush(&mut self, plan: &mut Plan) {
        self.walk(true, plan);
        self.window.close(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.window.recover(plan);
        self.drained = Some(BTreeSet::new());
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        let mut plan = plan.because(Cause::Log);
        let newer = self.drained.take().unwrap_or_default();
        let (left, known) = self.window.left(&newer, &mut plan);
        let (mut restored, mut accepted) = (Vec::new(), Step::PAST);
        for (line, data) in left.into_iter().filter(|(line, _)| line.0 < self.lines) {
            plan.handled(line, &data, Class::Data, Persist::CounterAtomic);
            let write = Write {
                order: Persist::CounterAtomic,
                ..Write::new(line, At::new(&data, known))
            };
            let stored = self.below.write(write, &mut plan);
            accepted = plan.both(accepted, stored.accepted);
            restored.push(line);
        }
        self.window.restart(accepted, &mut plan);
        restored
    }

    fn begin(&mut self, core: u32, _: u64, plan: &mut Plan) {
        let (number, lines) = (self.next, Vec::new());
        self.next += 1;
        let (running, counts) = (&mut self.window.running, &mut self.window.counts);
        running.push(RunningTransaction {
            core,
            number,
            lines,
        });
        counts.most_transactions = counts.most_transactions.max(running.len() as u64);
        self.window.dump_tail(plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        let mut running = self.window.running.iter_mut();
        let Some(this) = running.find(|one| one.core == core) else {
            return;
        };
        if self.changed.contains_key(&line) {
            return plan.exercise(&LOGGED_AGAIN);
        }
        this.lines.push(line);
        let transaction = this.number;
        plan.lock(line);
        self.append(
            (Kind::Old, transaction),
            line,
            (old, WHOLE),
            Step::PAST,
            plan,
        );
        let undo = self.window.ring.unlock(&[line], self.window.durable, plan);
        let changed = ChangedLine {
            transaction,
            old: *old.value,
            undo,
            is_logged: false,
        };
        self.changed.insert(line, changed);
        self.window.counts.entries += 1;
        self.walk_if_due(plan);
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        let running = &mut self.window.running;
        let Some(this) = running.iter_mut().find(|one| one.core == core) else {
            return Stored::at(Step::PAST);
        };
        let (transaction, lines) = (this.number, std::mem::take(&mut this.lines));
        let mut gate = Step::PAST;
        for line in &lines {
            let safe = self.end_line(transaction, *line, plan);
            gate = plan.both(gate, safe);
        }
        if !lines.is_empty() {
            let (about, nothing) = ((Kind::Commit, transaction), At::past(&ZERO_LINE));
            self.append(about, Logical(0), (nothing, 0), gate, plan);
        }
        (self.window.running).retain(|one| one.number != transaction);
        let done = plan.both(gate, self.window.durable);
        self.walk_if_due(plan);
        Stored::at(done)
    }

    fn forget_figures(&mut self) {
        self.next_walk -= self.window.counts.appended;
        self.window.counts = RingCounts::default();
    }

    fn figures(&self, out: &mut Figures) {
        self.window.counts.figures(out);
    }
}

impl<R: Outlasting> Layer for Fwb<R> {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        // The caches have it no more, so they would have written it.
        if self.send(a, plan).is_some() {
            self.persist_counters(&[a], plan);
        }
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let stored = match self.changed.contains_key(&write.at) {
            true => self.write_changed(write, plan),
            false if self.window.known.contains_key(&write.at) => self.write_alone(write, plan),
            false => {
                if let Some(drained) = &mut self.drained {
                    drained.insert(write.at);
                }
                // Entries that are given up count until the registers say so.
                let gate = plan.both(write.gate, self.window.free);
                return self.below.write(Write { gate, ..write }, plan);
            }
        };
        self.walk_if_due(plan);
        stored
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let first = a.0 / SPAN * SPAN;
        let mut span = (first..first + SPAN).map(Logical);
        if span.any(|line| self.changed.contains_key(&line)) {
            return Stored::at(after); // counters go with lines that are sent
        }
        self.below.persist_metadata(a, after, plan)
    }
}
