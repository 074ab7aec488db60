//! A queue that is safe before it is secure: a write waits on chip, on reserve power, under a pad and a MAC of that queue
//! alone, and is acknowledged there. Encryption, deduplication and trees of memory come after that.
//! Source: Han, Tuck and Awad, "Dolos: Improving the Performance of Persistent Applications in ADR-Supported Secure
//! Memory", MICRO 2021; its abstract was read. Programs keep their own logs.
//!
//! *Assumed*, because nothing public says it:
//! * A line of the queue takes a pad that was made before, and one MAC (`units.mac`), whatever memory's integrity is.
//! * It leaves when the write below it is accepted there, with all that belongs to it.
//!
//! What a power cut finds: lines of the queue, and a tag for each, dumped on reserve power. Recovery writes them through
//! all layers, in the order in which they came, but for those that drained caches have written since.
//! Left out: its three ways to make the queue's MACs; that a read finds its line there (it finds it on its way below).

use std::collections::{BTreeSet, VecDeque};

use super::LOG_REGION;
use super::pending::{FIRST_NUMBER, QUEUE_BYTES, SEALED, numbers};
use super::undo;
use crate::controller::encryption::ENABLED;
use crate::controller::encryption::pad::Pads;
use crate::controller::layers::{About, Design, File, Limit, Logging};
use crate::controller::{
    Class, Figures, Layer, Persist, Storey, Top, Write, knows_what_is_below, stands_on_below,
};
use crate::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};
use crate::stats::Cause;

keys! {
    QUEUE: u64 = int("dolos.queue", (1, 1 << 16), 16),
        Assumed("the abstract has no number; as many as the write pending queues of its time"),
        "Lines that wait on chip, acknowledged, for encryption and integrity"
        in Between("4", "64", "a quarter and four times: 256 bytes to 4 KiB on reserve power")
        under |by| by.short.then_some(2);
}

mechanisms! {
    WAITED = "writes acknowledged before memory's encryption", least 30;
}

static KEYS: [&dyn AnyKey; 3] = [&QUEUE, &FIRST_NUMBER, &SEALED];

const LIMITS: &[Limit] = &[
    numbers("numbers of waiting lines that pads are made of"),
    Limit::unreached(
        "the last number of a waiting line",
        64,
        "it takes 2^64 writes",
    ),
];

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "dolos",
            keys: &KEYS,
            units: &[Unit::Aes, Unit::Mac],
            figures: &[&[&QUEUE_BYTES]],
            cut: "lines that wait are dumped on reserve power, and written through all layers by a recovery",
            tries: &[MECHANISMS, &[&undo::UNDONE]],
            limits: LIMITS,
        },
        keeps_log: false,
        lines: |_| 0,
        build: |settings, below, layout| {
            Box::new(Dolos::new(settings, below, layout, |slots| slots))
        },
        guarantee: |below| below,
        vectors: |_, _| None,
    }],
    designs: &[Design {
        name: "dolos",
        source: "Dolos, MICRO 2021",
        line: "a write is acknowledged in a small secure queue, and encrypted and hashed for memory after that",
        stack: "dolos/identity+fca@bonsai-lazy-sound",
    }],
};

/// A line that waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitingLine {
    /// The line.
    pub line: Logical,
    /// Its number among all that have waited.
    pub number: u64,
}

/// How waiting lines outlive a cut.
pub trait WaitingSlots: Send {
    /// Has `slot` hold a line, sealed, after `ripe`. It outlives a cut after the returned step.
    fn keep(
        &mut self,
        slot: u64,
        waiting: WaitingLine,
        content: At<&Line>,
        ripe: Step,
        plan: &mut Plan,
    ) -> Step;

    /// Has `slot` hold nothing after `ripe`.
    fn free(&mut self, slot: u64, number: u64, ripe: Step, plan: &mut Plan) -> Step;

    /// The lines that a cut has left, oldest first, each with its slot.
    fn found(&self, plan: &mut Plan) -> Vec<(u64, WaitingLine, At<Line>)>;

    /// Has `slot` hold nothing in memory after `gate`: by one word, so that a torn tag is as before, or empty.
    fn forget(&self, slot: u64, gate: Step, plan: &mut Plan) -> Step;

    /// The greatest number that the slots tell of.
    fn last(&self, plan: &mut Plan) -> Option<u64>;
}

/// Slots whose lines reserve power dumps: each has its line, and a tag that says which it is.
pub struct DumpedSlots {
    pads: Option<Pads>,
    lines: Region,
    tags: Region,
}

impl DumpedSlots {
    fn new(settings: &Settings, layout: &mut Layout) -> DumpedSlots {
        let slots = settings.get(&QUEUE);
        let sealed = settings.get(&ENABLED) && settings.get(&SEALED);
        DumpedSlots {
            pads: sealed.then(|| Pads::new(settings)),
            lines: layout.reserve(LOG_REGION, slots),
            tags: layout.reserve("waiting-tags", slots),
        }
    }

    /// The line of a tag and its number; no line in an empty slot.
    fn tag(&self, slot: u64, plan: &mut Plan) -> Option<(Option<Logical>, u64)> {
        let tag = plan.scan(self.tags.line(slot))?;
        let word = |index: usize| u64::from_le_bytes(tag.as_chunks().0[index]);
        Some((word(0).checked_sub(1).map(Logical), word(1)))
    }
}

fn tag_of(line: Option<Logical>, number: u64) -> Line {
    let mut tag = ZERO_LINE;
    let held = line.map_or(0, |line| line.0 + 1);
    tag[..8].copy_from_slice(&held.to_le_bytes());
    tag[8..16].copy_from_slice(&number.to_le_bytes());
    tag
}

impl WaitingSlots for DumpedSlots {
    fn keep(
        &mut self,
        slot: u64,
        waiting: WaitingLine,
        content: At<&Line>,
        ripe: Step,
        plan: &mut Plan,
    ) -> Step {
        let place = self.lines.line(slot);
        let sealed = match &self.pads {
            Some(pads) => {
                // Its pad was made before the line came.
                plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
                pads.crypt(place, waiting.number, content.value)
            }
            None => *content.value,
        };
        if !plan.is_observed() {
            return ripe;
        }
        let from = plan.upcoming();
        let held = plan.registers(place, &sealed, ripe, &[]);
        plan.logged(from, content.value);
        let tag = tag_of(Some(waiting.line), waiting.number);
        plan.registers(self.tags.line(slot), &tag, held, &[])
    }

    fn free(&mut self, slot: u64, number: u64, ripe: Step, plan: &mut Plan) -> Step {
        let tag = tag_of(None, number);
        plan.registers(self.tags.line(slot), &tag, ripe, &[])
    }

    fn found(&self, plan: &mut Plan) -> Vec<(u64, WaitingLine, At<Line>)> {
        let mut found = Vec::new();
        for slot in 0..self.tags.lines {
            let Some((Some(line), number)) = self.tag(slot, plan) else {
                continue;
            };
            let place = self.lines.line(slot);
            let read = plan.read(place, Step::PAST);
            let (mut content, mut at) = (read.value.unwrap_or(ZERO_LINE), read.at);
            if let Some(pads) = &self.pads {
                content = pads.crypt(place, number, &content);
                let pad = pads.unstored(Step::PAST, &mut plan.because(Cause::Encryption));
                at = plan.both(at, pad);
            }
            found.push((slot, WaitingLine { line, number }, At::new(content, at)));
        }
        found.sort_by_key(|(_, waiting, _)| waiting.number);
        found
    }

    fn forget(&self, slot: u64, gate: Step, plan: &mut Plan) -> Step {
        let (place, none) = (self.tags.line(slot), At::past(&ZERO_LINE));
        plan.write_words(place, none, 1, None, gate, Queue::Data)
            .accepted
    }

    fn last(&self, plan: &mut Plan) -> Option<u64> {
        let numbers = (0..self.tags.lines).filter_map(|slot| Some(self.tag(slot, plan)?.1));
        numbers.max()
    }
}

/// The queue.
pub struct Dolos<S = DumpedSlots> {
    below: Top,
    slots: S,
    lines: u64,
    /// Slots in the order in which they become free, each with the step after which it is.
    room: VecDeque<(u64, Step)>,
    next: u64,
    /// Lines that are written between recovery and [`Storey::undo`], which are newer than those that waited.
    drained: Option<BTreeSet<Logical>>,
}

impl<S: WaitingSlots> Dolos<S> {
    /// A queue over `below`, whose lines outlive a cut by what `slots` makes of its own way.
    pub fn new(
        settings: &Settings,
        below: Top,
        layout: &mut Layout,
        slots: impl FnOnce(DumpedSlots) -> S,
    ) -> Dolos<S> {
        let own = DumpedSlots::new(settings, layout);
        Dolos {
            below,
            slots: slots(own),
            lines: layout.data_lines(),
            room: (0..settings.get(&QUEUE))
                .map(|slot| (slot, Step::PAST))
                .collect(),
            next: settings.get(&FIRST_NUMBER),
            drained: None,
        }
    }
}

impl<S: WaitingSlots> Storey for Dolos<S> {
    stands_on_below!();

    fn recover(&mut self, plan: &mut Plan) {
        if let Some(last) = self.slots.last(plan) {
            self.next = self.next.max(last.saturating_add(1)); // whoever wrote the tag
        }
        self.drained = Some(BTreeSet::new());
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        let mut plan = plan.because(Cause::Log);
        let newer = self.drained.take().unwrap_or_default();
        let found = self.slots.found(&mut plan);
        let (mut restored, mut accepted) = (Vec::new(), Step::PAST);
        let left = found.iter().filter(|(_, waiting, _)| {
            waiting.line.0 < self.lines && !newer.contains(&waiting.line)
        });
        for (_, waiting, content) in left {
            plan.exercise(&undo::UNDONE);
            let (line, order) = (waiting.line, Persist::CounterAtomic);
            plan.handled(line, &content.value, Class::Data, order);
            let write = Write {
                order,
                ..Write::new(line, At::new(&content.value, content.at))
            };
            let stored = self.below.write(write, &mut plan);
            accepted = plan.both(accepted, stored.accepted);
            restored.push(line);
        }
        // The oldest first, or the next recovery would write it over a newer one.
        for (slot, ..) in &found {
            accepted = self.slots.forget(*slot, accepted, &mut plan);
        }
        for (_, free) in &mut self.room {
            *free = accepted;
        }
        restored
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&QUEUE_BYTES, (self.room.len() * LINE_BYTES) as f64);
    }
}

impl<S: WaitingSlots> Layer for Dolos<S> {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        if let Some(drained) = &mut self.drained {
            drained.insert(write.at);
            return self.below.write(write, plan);
        }
        plan.exercise(&WAITED);
        let (slot, free) = self.room.pop_front().expect("a queue has room for a line");
        let waiting = WaitingLine {
            line: write.at,
            number: self.next,
        };
        self.next += 1;
        let exists = plan.both(write.data.at, write.gate);
        let ripe = plan.both(exists, free);
        let sealed = plan.because(Cause::Integrity).unit(Unit::Mac, ripe);
        let content = At::new(write.data.value, write.data.at);
        let kept = {
            let log = &mut plan.because(Cause::Log);
            self.slots.keep(slot, waiting, content, sealed, log)
        };
        let gate = plan.both(write.gate, kept);
        let stored = self.below.write(Write { gate, ..write }, plan);
        let free = self.slots.free(slot, waiting.number, stored.accepted, plan);
        self.room.push_back((slot, free));
        Stored {
            accepted: kept,
            ..stored
        }
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(a, after, plan)
    }
}
