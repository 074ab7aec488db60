//! The lines of a circular log that count: what is appended, what may be given up, and what recovery makes of what a
//! cut has left. Left out: when lines of data go to memory, which decides what may be given up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::ring::{Kind, Outlasting, RingEntry};
use super::undo::{ENTRIES, REGISTER_BYTES, TRANSACTIONS_MOST};
use crate::figures::{Figure, Figures, figures};
use crate::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::plan::{At, Plan, Step};
use crate::stats::Cause;

mechanisms! {
    PLACE_AGAIN = "lines of the log written again", least 30;
}

figures! { "Circular log";
    APPENDED: Count Less "log_lines", "lines appended to the log";
    LINES_MOST: Count Less "log_lines_most", "lines of the log that counted at one time, at most";
    FORCED: Count Less "log_forced_back", "lines of data that walks over the caches, or a log without room, forced back";
}

/// Figures of other logs that such a log has too.
pub static SHARED_FIGURES: [&Figure; 3] = [&ENTRIES, &TRANSACTIONS_MOST, &REGISTER_BYTES];

/// What such a log counts.
#[derive(Default)]
pub struct RingCounts {
    /// Old lines that were logged.
    pub entries: u64,
    /// Lines of the log that were appended.
    pub appended: u64,
    /// Lines of the log that counted at one time, at most.
    pub most: u64,
    /// Lines of data that were forced back.
    pub forced: u64,
    /// Transactions under way at one time, at most.
    pub most_transactions: u64,
}

impl RingCounts {
    /// Adds the figures.
    pub fn figures(&self, out: &mut Figures) {
        out.put(&ENTRIES, self.entries as f64);
        out.put(&APPENDED, self.appended as f64);
        out.put(&LINES_MOST, self.most as f64);
        out.put(&FORCED, self.forced as f64);
        out.put(&TRANSACTIONS_MOST, self.most_transactions as f64);
        out.put(&REGISTER_BYTES, (2 * LINE_BYTES) as f64);
    }
}

/// A line of data that the log knows.
#[derive(Default)]
pub struct KnownLine {
    entries: u64,
    /// The content that memory does not have, and the step before which it must not.
    pub dirty: Option<At<Line>>,
    /// Whether a walk has found it dirty.
    pub is_marked: bool,
    /// The step after which memory has what was sent there, with its counter.
    pub safe: Step,
}

/// A transaction under way, which needs its entries.
pub struct RunningTransaction {
    /// Its core.
    pub core: u32,
    /// Its number since the last cut.
    pub number: u64,
    /// The lines that it has logged.
    pub lines: Vec<Logical>,
}

struct LogLine {
    transaction: u64,
    about: Option<Logical>,
}

/// The lines that count, and the lines of data that they are about.
pub struct Window<R> {
    /// Whoever has entries outlast a cut.
    pub ring: R,
    /// The number of the next line of the log.
    head: u64,
    log: VecDeque<LogLine>,
    /// The step after which all entries so far outlast a cut.
    pub durable: Step,
    /// The step after which the place of the next entry may be written.
    pub free: Step,
    /// The lines of data.
    pub known: BTreeMap<Logical, KnownLine>,
    /// Transactions under way.
    pub running: Vec<RunningTransaction>,
    /// What was counted.
    pub counts: RingCounts,
}

impl<R: Outlasting> Window<R> {
    /// Nothing counts yet.
    pub fn new(ring: R) -> Window<R> {
        Window {
            head: ring.first(),
            ring,
            log: VecDeque::new(),
            durable: Step::PAST,
            free: Step::PAST,
            known: BTreeMap::new(),
            running: Vec::new(),
            counts: RingCounts::default(),
        }
    }

    /// Whether so many further lines have room.
    pub fn has_room(&self, lines: usize) -> bool {
        (self.log.len() + lines) as u64 <= self.ring.room()
    }

    /// Appends `entries`, whose words exist after `at`, not before `gate`.
    pub fn append(&mut self, entries: &[RingEntry], at: Step, gate: Step, plan: &mut Plan) {
        let mut plan = plan.because(Cause::Log);
        let gate = plan.both(gate, self.free);
        for entry in entries {
            if self.head >= self.ring.first() + self.ring.room() {
                plan.exercise(&PLACE_AGAIN);
            }
            let accepted = (self.ring).put(self.head, At::new(entry, at), gate, &mut plan);
            // Recovery comes to an entry only over all before it.
            self.durable = plan.both(self.durable, accepted);
            self.head += 1;
            let about = (entry.kind != Kind::Commit).then_some(entry.line);
            if let Some(line) = about {
                self.known.entry(line).or_default().entries += 1;
            }
            self.log.push_back(LogLine {
                transaction: entry.transaction,
                about,
            });
        }
        let counts = &mut self.counts;
        counts.appended += entries.len() as u64;
        counts.most = counts.most.max(self.log.len() as u64);
    }

    /// Gives up the oldest entries that nobody needs: their transactions are over, and memory has their lines.
    pub fn give_up(&mut self, plan: &mut Plan) {
        let (before, mut ripe) = (self.log.len(), plan.both(self.free, self.durable));
        while let Some(oldest) = self.log.front() {
            let is_its = |one: &RunningTransaction| one.number == oldest.transaction;
            if self.running.iter().any(is_its) {
                break;
            }
            if let Some(line) = oldest.about {
                let known = self.known.get_mut(&line).expect("the log knows it");
                if known.dirty.is_some() {
                    break;
                }
                ripe = plan.both(ripe, known.safe);
                known.entries -= 1;
                if known.entries == 0 {
                    self.known.remove(&line);
                }
            }
            self.log.pop_front();
        }
        if self.log.len() < before {
            self.free = ripe;
            self.dump_tail(plan);
        }
    }

    /// Has the registers say where the log's tail is.
    pub fn dump_tail(&mut self, plan: &mut Plan) {
        let tail = self.head - self.log.len() as u64;
        self.free = self.ring.move_tail(tail, self.free, plan);
    }

    /// Gives up all entries in an orderly end, by which memory has all lines; no transaction goes on after it.
    pub fn close(&mut self, plan: &mut Plan) {
        let mut gate = plan.both(self.free, self.durable);
        for known in std::mem::take(&mut self.known).into_values() {
            gate = plan.both(gate, known.safe);
        }
        self.log.clear();
        self.restart(gate, plan);
    }

    /// Learns where the log begins.
    pub fn recover(&mut self, plan: &mut Plan) {
        self.head = self.ring.found_tail(plan);
    }

    /// The contents that recovery writes, but for new ones of lines that are `newer` already, and the step after which
    /// they are known. A later log begins where `restart` has it begin.
    pub fn left(
        &mut self,
        newer: &BTreeSet<Logical>,
        plan: &mut Plan,
    ) -> (BTreeMap<Logical, Line>, Step) {
        let (tail, mut found, mut known) = (self.head, Vec::new(), Step::PAST);
        while let Some(entry) = self.ring.found(tail + found.len() as u64, plan) {
            known = plan.both(known, entry.at);
            found.push(entry.value);
            if found.len() as u64 == self.ring.room() {
                break;
            }
        }
        self.head = self.ring.next_after(tail, tail + found.len() as u64);
        let writes = |kind| self.ring.writes_again(kind);
        let (mut left, olds) = replay(&found, writes);
        left.retain(|line, _| !newer.contains(line));
        left.extend(olds);
        (left, known)
    }

    /// Begins anew after a recovery, whose writes are accepted after `gate`.
    pub fn restart(&mut self, gate: Step, plan: &mut Plan) {
        self.free = self.ring.restart(self.head, gate, plan);
    }
}

/// The newest contents of lines that committed transactions have changed, and the old ones of those that others have,
/// from all entries in order.
fn replay(
    found: &[RingEntry],
    writes: impl Fn(Kind) -> bool,
) -> (BTreeMap<Logical, Line>, BTreeMap<Logical, Line>) {
    let commits = found.iter().filter(|entry| entry.kind == Kind::Commit);
    let committed: BTreeSet<u64> = commits.map(|entry| entry.transaction).collect();
    let (mut left, mut olds, mut old_of) = (BTreeMap::new(), BTreeMap::new(), FxHashMap::default());
    let mut content = None;
    for entry in found {
        let (line, of) = (entry.line, (entry.transaction, entry.line));
        let base = match entry.kind {
            Kind::New => old_of.get(&of).copied(),
            _ => Some(ZERO_LINE),
        };
        entry.put_into(content.get_or_insert(base.unwrap_or(ZERO_LINE)));
        if !entry.is_last {
            continue;
        }
        let this = content.take().expect("it was just there");
        let is_over = entry.kind == Kind::Alone || committed.contains(&entry.transaction);
        match (entry.kind, is_over) {
            (Kind::Old, over) => {
                old_of.insert(of, this);
                if over {
                    // Memory has what the transaction made of it, or an entry that follows does.
                    left.remove(&line);
                } else if writes(Kind::Old) {
                    olds.entry(line).or_insert(this);
                }
            }
            // If its old content was given up, memory has it.
            (Kind::New | Kind::Alone, true) if writes(entry.kind) && base.is_some() => {
                left.insert(line, this);
            }
            _ => {}
        }
    }
    (left, olds)
}
