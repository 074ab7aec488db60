//! Updates out of place: the controller packs the words that transactions change into slices of a region of their own
//! and finds them by a table; a collector brings the newest words home, each line once.
//! Source: HOOP (ISCA 2020), the abstract and a public summary of its figures and tables: slices of eight words, a data
//! buffer for each core, the mapping table, reads of slices and home side by side, the collector's period, recovery
//! from the slices of committed transactions. Left out: the buffer of lines that were just brought home, recovery on
//! several cores.
//!
//! The controller sees lines where the paper's caches see stores. *Assumed*, or other than the paper:
//! * The words that a transaction has changed are those in which its line differs from what memory holds.
//! * The collector looks at the clock when a transaction commits; it also works where the region or the table has no
//!   room. It reads each slice once, and writes lines with their counters, in one event where a line has words at home.
//! * A line that is out of place and is written by nobody's transaction is a transaction of its own.
//! * A commit waits for writes of lines by nobody's transaction too, over which recovery puts words.
//!
//! What a power cut finds: the number of the oldest slice that counts, dumped on reserve power. Recovery reads slices
//! from there on until one is missing, and puts the words of committed transactions into their lines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::newest::{
    self, Changed, Counting, Known, Lies, Newest, OutOfPlaceCounts, Running, committed,
};
use super::pending::{FIRST_NUMBER, SEALED};
use super::round::{put_word, word};
use super::slices::{self, HomedWord, Slice, Slices, WORDS};
use super::undo::{LOGGED_AGAIN, UNDONE};
use crate::controller::layers::{About, Design, File, Guarantee, Logging};
use crate::controller::{
    Class, Layer, Persist, Storey, Top, Write, knows_what_is_below, stands_on_below,
};
use crate::exhausted::Exhausted;
use crate::figures::Figures;
use crate::line::{Line, Logical, SPAN, ZERO_LINE};
use crate::mechanisms::{Mechanism, mechanisms};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};
use crate::stats::Cause;
use crate::units::Time;

keys! {
    SLICES: u64 = int("hoop.slices", (8, 1 << 24), 16_384),
        Source("HOOP, Fig. 5: one block of 2 MB"),
        "Slices of the region, of 128 bytes each"
        in Between("4096", "65536", "a quarter of a block to four blocks")
        under |by| Some(if by.long_transactions || by.limits { 2048 } else if by.short { 128 } else { 256 });
    TABLE: u64 = int("hoop.table", (8, 1 << 24), 131_072),
        Source("HOOP, Fig. 13: 2 MB, of 16 bytes a line"),
        "Lines that the mapping table has room for"
        in Between("32768", "262144", "0.5 to 4 MB, as in the paper's figure")
        under |by| (by.short && !by.long_transactions && !by.limits).then_some(96);
    BUFFER: u64 = int("hoop.buffer", (1, 64), 8),
        Source("HOOP, Fig. 2: 1 KB a core"),
        "Slices that a core's data buffer has room for"
        in Between("4", "16", "half of the default and twice")
        under |by| by.short.then_some(1);
    PERIOD: u64 = int("hoop.collect_us", (1, 1 << 30), 10_000),
        Source("HOOP, Sec. IV-F and Fig. 10: 10 ms"),
        "Microseconds after which the collector works"
        in Between("2000", "14000", "as in the paper's figure")
        under |by| by.short.then_some(if by.stride > Some(2) { 2 } else { 10_000 });
}

static KEYS: [&dyn AnyKey; 6] = [&SLICES, &TABLE, &BUFFER, &PERIOD, &FIRST_NUMBER, &SEALED];

const REGION_FULL: Exhausted = Exhausted {
    problem: "transactions under way fill the region of updates out of place",
    remedy: "set hoop.slices higher, or make shorter transactions",
    key: Some(SLICES.name()),
};

const TABLE_FULL: Exhausted = Exhausted {
    problem: "transactions under way fill the table of lines out of place",
    remedy: "set hoop.table higher, or make shorter transactions",
    key: Some(TABLE.name()),
};

mechanisms! {
    COLLECTED = "lines collected", least 30;
    COLLECTED_AT_ONCE = "collections for want of room", least 1;
    SHARED_SLICE = "slices of several lines", least 30;
    READ_OUT_OF_PLACE = "lines read out of place", least 30;
    SLICE_AGAIN = "places of slices written again", least 30;
}

static SHARED_MECHANISMS: [&Mechanism; 2] = [&LOGGED_AGAIN, &UNDONE];

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "hoop",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[&newest::SHARED_FIGURES, newest::FIGURES],
            cut: "the number of the oldest slice that counts is dumped on reserve power; words of committed transactions \
                  are put into their lines",
            tries: &[MECHANISMS, &SHARED_MECHANISMS],
            limits: slices::LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| Box::new(Hoop::new(settings, below, layout)),
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "hoop",
        source: "HOOP, ISCA 2020",
        line: "words of transactions packed out of place and collected later, over data in counter mode",
        stack: "hoop/identity+sca",
    }],
};

/// The indirection in the controller.
pub struct Hoop {
    below: Top,
    slices: Slices,
    lines: u64,
    table: u64,
    buffer: usize,
    period: Time,
    collected: Time,
    /// The number of the next slice, and those before it that count.
    head: u64,
    log: VecDeque<Counting>,
    known: BTreeMap<Logical, Known>,
    changed: FxHashMap<Logical, Changed>,
    running: Vec<Running>,
    next: u64,
    /// The step after which all slices so far outlive a cut, that after which the next one's place may be written, and
    /// that after which memory has all lines that came by themselves.
    durable: Step,
    free: Step,
    home: Step,
    /// Lines that reserve power has drained since the recovery, if that is not over: they are newer than the slices.
    drained: Option<BTreeSet<Logical>>,
    counts: OutOfPlaceCounts,
}

impl Hoop {
    fn new(settings: &Settings, below: Top, layout: &mut Layout) -> Hoop {
        let lines = layout.data_lines();
        let slices = Slices::new(settings, settings.get(&SLICES), layout);
        Hoop {
            below,
            lines,
            table: settings.get(&TABLE),
            buffer: settings.get(&BUFFER) as usize * WORDS,
            period: Time::from_ps(settings.get(&PERIOD) * 1_000_000),
            collected: Time::ZERO,
            head: slices.round().first,
            slices,
            log: VecDeque::new(),
            known: BTreeMap::new(),
            changed: FxHashMap::default(),
            running: Vec::new(),
            next: 1,
            durable: Step::PAST,
            free: Step::PAST,
            home: Step::PAST,
            drained: None,
            counts: OutOfPlaceCounts::default(),
        }
    }

    /// What committed transactions, or those before the log, have made of `line`. If nobody knows, all its words change.
    fn committed(&self, line: Logical, plan: &Plan) -> Option<Newest> {
        let out = self.known.get(&line).and_then(|known| known.out);
        out.or_else(|| {
            let content = self.below.peek(line, plan)?;
            let lies = [Lies::Home; WORDS];
            Some(Newest { content, lies })
        })
    }

    fn newest(&self, line: Logical) -> Option<Newest> {
        let changed = self.changed.get(&line).and_then(|changed| changed.newest);
        changed.or_else(|| self.known.get(&line)?.out)
    }

    fn running(&mut self, core: u32) -> Option<&mut Running> {
        self.running.iter_mut().find(|one| one.core == core)
    }

    /// Puts the words of `line` that `data` changes into the data buffer of `core`, which has a transaction under way.
    fn buffer(&mut self, core: u32, line: Logical, data: At<&Line>, plan: &mut Plan) {
        let before = self.changed.get(&line).and_then(|changed| changed.newest);
        let mut newest = before.unwrap_or(Newest {
            content: data.value.map(|byte| !byte),
            lies: [Lies::Home; WORDS],
        });
        for index in 0..WORDS {
            let value = word(data.value, index);
            if value == word(&newest.content, index) {
                continue;
            }
            put_word(&mut newest.content, index, value);
            let is_here = matches!(newest.lies[index], Lies::Buffer(_));
            newest.lies[index] = Lies::Buffer(value);
            self.change(core, line, newest);
            let this = self.running(core).expect("it is under way");
            this.exist = plan.both(this.exist, data.at);
            let homed = HomedWord { line, index, value };
            let is_it = |one: &&mut HomedWord| one.line == line && one.index == index;
            match this.buffer.iter_mut().find(is_it).filter(|_| is_here) {
                Some(there) => *there = homed,
                None => this.buffer.push(homed),
            }
            let is_full = this.buffer.len() >= self.buffer;
            if is_full {
                self.pack(core, false, plan);
                newest = self.changed[&line].newest.expect("it was just there");
            }
        }
        self.change(core, line, newest);
    }

    fn change(&mut self, core: u32, line: Logical, newest: Newest) {
        let newest = Some(newest);
        self.changed.insert(line, Changed { core, newest });
    }

    /// Packs the data buffer of `core` into slices, of which the last ends its transaction if that `is_over`.
    fn pack(&mut self, core: u32, is_over: bool, plan: &mut Plan) {
        let this = self.running(core).expect("it is under way");
        let (number, exist) = (this.number, this.exist);
        let words = std::mem::take(&mut this.buffer);
        // A transaction that ends, and has slices but no further words, says so in one without any.
        let ends = is_over && words.is_empty() && this.has_slices;
        this.has_slices |= !words.is_empty();
        let none: &[HomedWord] = &[];
        let chunks = words.chunks(WORDS).chain(ends.then_some(none));
        let chunks: Vec<&[HomedWord]> = chunks.collect();
        for (index, words) in chunks.iter().enumerate() {
            let slice = Slice {
                transaction: number,
                is_last: is_over && index + 1 == chunks.len(),
                words: words.iter().copied().collect(),
            };
            self.append(&slice, exist, plan);
        }
    }

    fn append(&mut self, slice: &Slice, exist: Step, plan: &mut Plan) {
        let (room, table) = (self.slices.room(), self.table);
        if self.log.len() as u64 >= room || self.known.len() as u64 + WORDS as u64 > table {
            plan.exercise(&COLLECTED_AT_ONCE);
            self.collect(plan);
        }
        if self.log.len() as u64 >= room {
            return plan.fail(REGION_FULL);
        }
        if self.known.len() as u64 + WORDS as u64 > table {
            return plan.fail(TABLE_FULL);
        }
        let number = self.head;
        self.head += 1;
        if number >= self.slices.round().first + room {
            plan.exercise(&SLICE_AGAIN);
        }
        let (slice_at, mut of_log) = (At::new(slice, exist), plan.because(Cause::Log));
        let accepted = self.slices.put(number, slice_at, self.free, &mut of_log);
        drop(of_log);
        // Recovery comes to a slice only over all before it.
        self.durable = plan.both(self.durable, accepted);
        let mut lines: SmallVec<[Logical; WORDS]> =
            slice.words.iter().map(|one| one.line).collect();
        lines.sort_unstable();
        lines.dedup();
        if lines.len() > 1 {
            plan.exercise(&SHARED_SLICE);
        }
        for line in &lines {
            self.known.entry(*line).or_default().slices += 1;
        }
        for (slot, one) in slice.words.iter().enumerate() {
            let changed = self.changed.get_mut(&one.line).expect("it is under way");
            let newest = changed.newest.as_mut().expect("it has words");
            newest.lies[one.index] = Lies::Slice(number, slot);
        }
        let transaction = slice.transaction;
        self.log.push_back(Counting { transaction, lines });
        self.counts.written += 1;
        self.counts.words += slice.words.len() as u64;
        self.counts.most = self.counts.most.max(self.log.len() as u64);
    }

    /// Reads a line that is out of place, at least in part. Slices in `held` have been read.
    fn gather(
        &mut self,
        line: Logical,
        newest: &Newest,
        (class, after): (Class, Step),
        held: &mut BTreeMap<u64, At<Slice>>,
        plan: &mut Plan,
    ) -> At<Line> {
        let (mut content, mut at) = (ZERO_LINE, after);
        if newest.lies.contains(&Lies::Home) {
            let home = self.below.read(line, class, after, plan);
            content = home.value.unwrap_or(ZERO_LINE);
            at = plan.both(at, home.at);
        }
        for (index, lies) in newest.lies.iter().enumerate() {
            match *lies {
                Lies::Home => {}
                Lies::Buffer(value) => put_word(&mut content, index, value),
                Lies::Slice(number, slot) => {
                    if let std::collections::btree_map::Entry::Vacant(vacant) = held.entry(number) {
                        let mut log = plan.because(Cause::Log);
                        let Some(slice) = self.slices.read(number, after, &mut log) else {
                            continue; // what is not there is refused by a guard, or nobody promises it
                        };
                        vacant.insert(slice);
                    }
                    let slice = &held[&number];
                    at = plan.both(at, slice.at);
                    if let Some(one) = slice.value.words.get(slot) {
                        put_word(&mut content, index, one.value);
                    }
                }
            }
        }
        At::new(content, at)
    }

    /// Brings home what committed transactions have left out of place, and gives up slices that nobody needs then.
    fn collect(&mut self, plan: &mut Plan) {
        self.collected = plan.now();
        self.counts.collections += 1;
        let mut held = BTreeMap::new();
        let out = self
            .known
            .iter()
            .filter_map(|(line, known)| Some((*line, known.out?)));
        let out: Vec<(Logical, Newest)> = out.collect();
        let mut whole = Vec::new();
        for (line, newest) in out {
            plan.exercise(&COLLECTED);
            let how = (Class::Data, Step::PAST);
            let content = self.gather(line, &newest, how, &mut held, plan);
            // Recovery puts words over a line of which some are home, so a cut must not part that from its counter.
            let order = match newest.lies.contains(&Lies::Home) {
                true => Persist::CounterAtomic,
                false => Persist::Relaxed,
            };
            whole.extend((order == Persist::Relaxed).then_some(line));
            plan.handled_again(line, &content.value, Class::Data, order);
            let write = Write {
                gate: self.durable,
                order,
                ..Write::new(line, At::new(&content.value, content.at))
            };
            let stored = self.below.write(write, plan);
            let known = self.known.get_mut(&line).expect("it is out of place");
            known.out = None;
            let changed = self.changed.get_mut(&line);
            if let Some(changing) = changed.and_then(|changed| changed.newest.as_mut()) {
                for (now, then) in changing.lies.iter_mut().zip(&newest.lies) {
                    if now == then {
                        *now = Lies::Home;
                    }
                }
            }
            known.safe = plan.both(known.safe, stored.accepted);
            self.counts.home += 1;
        }
        for lines in whole.chunk_by(|one, next| one.0 / SPAN == next.0 / SPAN) {
            let stored = (self.below).persist_metadata(lines[0], Step::PAST, plan);
            for line in lines {
                let known = self.known.get_mut(line).expect("it was out of place");
                known.safe = plan.both(known.safe, stored.accepted);
            }
        }
        self.give_up(plan);
    }

    fn give_up(&mut self, plan: &mut Plan) {
        let (before, mut ripe) = (self.log.len(), plan.both(self.free, self.durable));
        while let Some(oldest) = self.log.front() {
            let is_its = |one: &Running| one.number == oldest.transaction;
            if self.running.iter().any(is_its) {
                break;
            }
            for line in &oldest.lines {
                let known = self.known.get_mut(line).expect("a slice names it");
                ripe = plan.both(ripe, known.safe);
                known.slices -= 1;
                if known.slices == 0 {
                    self.known.remove(line);
                }
            }
            self.log.pop_front();
        }
        if self.log.len() < before {
            self.free = ripe;
            self.dump_tail(plan);
        }
    }

    fn dump_tail(&mut self, plan: &mut Plan) {
        let tail = self.head - self.log.len() as u64;
        self.free = self.slices.round().move_tail(tail, self.free, plan);
    }

    /// Ends the transaction of `core`, whose words outlive a cut after the returned step.
    fn end(&mut self, core: u32, plan: &mut Plan) -> Step {
        let home = self.home;
        let Some(this) = self.running(core) else {
            return Step::PAST;
        };
        this.exist = plan.both(this.exist, home);
        self.pack(core, true, plan);
        let at = self.running.iter().position(|one| one.core == core);
        let this = self.running.swap_remove(at.expect("it is under way"));
        for line in &this.lines {
            let changed = self.changed.remove(line).expect("it is under way");
            let out = changed.newest.filter(Newest::is_out);
            if out.is_some() {
                self.known.entry(*line).or_default().out = out;
            }
        }
        let durable = if this.has_slices {
            self.durable
        } else {
            Step::PAST
        };
        self.slices.round().unlock(&this.lines, durable, plan)
    }

    fn is_time(&self, plan: &Plan) -> bool {
        plan.now() >= self.collected + self.period
    }
}

impl Storey for Hoop {
    stands_on_below!();

    fn flush(&mut self, plan: &mut Plan) {
        while let Some(core) = self.running.first().map(|one| one.core) {
            self.end(core, plan);
        }
        self.collect(plan);
        let mut gate = plan.both(self.free, self.durable);
        for known in std::mem::take(&mut self.known).into_values() {
            gate = plan.both(gate, known.safe);
        }
        self.log.clear();
        self.free = self.slices.round().restart(self.head, gate, plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.head = self.slices.round().found_tail(plan);
        self.drained = Some(BTreeSet::new());
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        let mut plan = plan.because(Cause::Log);
        let newer = self.drained.take().unwrap_or_default();
        let (tail, mut found, mut known) = (self.head, Vec::new(), Step::PAST);
        while (found.len() as u64) < self.slices.room()
            && let Some(slice) =
                (self.slices).read(tail + found.len() as u64, Step::PAST, &mut plan)
        {
            known = plan.both(known, slice.at);
            found.push(slice.value);
        }
        // Numbers go on a whole round further, so that no slice behind a gap is taken for a new one.
        self.head = tail + self.slices.room();
        let (mut restored, mut accepted) = (Vec::new(), Step::PAST);
        for (line, words) in committed(&found) {
            if line.0 >= self.lines || newer.contains(&line) {
                continue;
            }
            let home = self.below.read(line, Class::Data, Step::PAST, &mut plan);
            let mut content = home.value.unwrap_or(ZERO_LINE);
            for (index, value) in words {
                put_word(&mut content, index, value);
            }
            plan.handled(line, &content, Class::Data, Persist::CounterAtomic);
            let at = plan.both(known, home.at);
            let write = Write {
                order: Persist::CounterAtomic,
                ..Write::new(line, At::new(&content, at))
            };
            let stored = self.below.write(write, &mut plan);
            accepted = plan.both(accepted, stored.accepted);
            restored.push(line);
        }
        self.free = self.slices.round().restart(self.head, accepted, &mut plan);
        restored
    }

    fn begin(&mut self, core: u32, _: u64, plan: &mut Plan) {
        self.running.push(Running::new(core, self.next));
        self.next += 1;
        let under_way = self.running.len() as u64;
        self.counts.most_transactions = self.counts.most_transactions.max(under_way);
        self.dump_tail(plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, _: At<&Line>, plan: &mut Plan) {
        if self.changed.contains_key(&line) {
            return plan.exercise(&LOGGED_AGAIN);
        }
        if self.running(core).is_none() {
            return;
        }
        plan.lock(line);
        let newest = self.committed(line, plan);
        self.changed.insert(line, Changed { core, newest });
        // Words that stay home are read there after a cut.
        let home = self.below.persist_metadata(line, Step::PAST, plan);
        self.home = plan.both(self.home, home.accepted);
        let this = self.running(core).expect("it is under way");
        this.lines.push(line);
        self.counts.entries += 1;
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        let done = self.end(core, plan);
        if self.is_time(plan) {
            self.collect(plan);
        }
        Stored::at(done)
    }

    fn forget_figures(&mut self) {
        self.counts = OutOfPlaceCounts::default();
    }

    fn figures(&self, out: &mut Figures) {
        self.counts.figures(self.table, self.buffer, out);
    }
}

impl Layer for Hoop {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let Some(newest) = self.newest(a).filter(Newest::is_out) else {
            return self.below.read(a, class, after, plan);
        };
        plan.exercise(&READ_OUT_OF_PLACE);
        let mut held = BTreeMap::new();
        let content = self.gather(a, &newest, (class, after), &mut held, plan);
        self.counts.read += held.len() as u64;
        At::new(Some(content.value), content.at)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let (line, exists) = (write.at, plan.both(write.data.at, write.gate));
        let data = At::new(write.data.value, exists);
        if let Some(core) = self.changed.get(&line).map(|changed| changed.core) {
            // What it has changed is not needed before the commit.
            self.buffer(core, line, data, plan);
            return Stored::at(exists);
        }
        if self.known.contains_key(&line) {
            // No core has this number, and nobody else comes between.
            let core = u32::MAX;
            self.running.push(Running::new(core, self.next));
            self.next += 1;
            self.running(core).expect("it is there").lines.push(line);
            let newest = self.committed(line, plan);
            self.changed.insert(line, Changed { core, newest });
            self.buffer(core, line, data, plan);
            self.end(core, plan);
            return Stored::at(plan.both(exists, self.durable));
        }
        if let Some(drained) = &mut self.drained {
            drained.insert(line);
        }
        // A slice that is given up counts until the registers say so.
        let gate = plan.both(write.gate, self.free);
        let stored = self.below.write(Write { gate, ..write }, plan);
        self.home = plan.both(self.home, stored.accepted);
        stored
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(a, after, plan)
    }

    fn peek(&self, a: Logical, plan: &Plan) -> Option<Line> {
        let newest = self.newest(a).map(|newest| newest.content);
        newest.or_else(|| self.below.peek(a, plan))
    }
}
