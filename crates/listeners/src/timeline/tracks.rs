//! Tracks with slices, counters and arrows, and how they are written as Chrome's trace events, which Perfetto reads.
//!
//! Chrome's format has threads in processes: a track is a thread, and a group of tracks is a process. Slices of a thread
//! nest, so slices that overlap lie on several threads of one name. Perfetto counts in nanoseconds, so times are rounded
//! down; what is exact stands beside.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::Named;
use sardonyx::medium::params::Unit;
use sardonyx::units::Time;

/// The subject of a track. Tracks are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    Core(u32),
    /// The link: down if true, up if false.
    Link(bool),
    Unit(usize),
    /// Whether of the near medium, and which.
    Channel(bool, u32, TrackPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TrackPart {
    Waiting,
    Depth(Queue),
    Queue(Queue),
    Forwarded,
    Module,
    Rank(u32),
    Bank(u32, u32),
    Bus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Queue {
    Reads,
    Writes,
    Counters,
}

impl Queue {
    fn name(self) -> &'static str {
        match self {
            Queue::Reads => "read queue",
            Queue::Writes => "write queue",
            Queue::Counters => "counter write queue",
        }
    }
}

impl Track {
    fn group(self) -> Option<String> {
        match self {
            Track::Core(_) | Track::Link(_) => None,
            Track::Unit(_) => Some("units".to_owned()),
            Track::Channel(false, channel, _) => Some(format!("channel {channel}")),
            Track::Channel(true, channel, _) => Some(format!("near channel {channel}")),
        }
    }

    fn name(self) -> String {
        match self {
            Track::Core(core) => format!("core {core}: requests"),
            Track::Link(true) => "link to the memory".to_owned(),
            Track::Link(false) => "link to the processor".to_owned(),
            Track::Unit(unit) => Unit::ALL[unit].name().to_owned(),
            Track::Channel(_, _, part) => match part {
                TrackPart::Waiting => "waiting for a slot".to_owned(),
                TrackPart::Depth(queue) => format!("{} depth", queue.name()),
                TrackPart::Queue(queue) => queue.name().to_owned(),
                TrackPart::Forwarded => "answered from a queued write".to_owned(),
                TrackPart::Module => "memory module".to_owned(),
                TrackPart::Rank(rank) => format!("rank {rank}: refresh"),
                TrackPart::Bank(rank, bank) => format!("rank {rank} bank {bank}"),
                TrackPart::Bus => "data bus".to_owned(),
            },
        }
    }

    fn category(self) -> &'static str {
        match self {
            Track::Core(_) => "request",
            Track::Link(_) => "link",
            Track::Unit(_) => "unit",
            Track::Channel(_, _, part) => match part {
                TrackPart::Waiting => "slot",
                TrackPart::Depth(_) | TrackPart::Queue(_) | TrackPart::Forwarded => "queue",
                TrackPart::Module => "module",
                TrackPart::Rank(_) | TrackPart::Bank(..) => "bank",
                TrackPart::Bus => "bus",
            },
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Said {
    Number(u64),
    Time(Time),
    Text(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub begin: Time,
    pub end: Time,
    pub name: String,
    pub notes: Vec<(&'static str, Said)>,
    /// The step that breaks ties: of two slices at one instant the one with the lesser step comes first.
    pub step: u64,
    pub parts: Vec<Slice>,
}

#[derive(Default)]
pub(super) struct Tracks {
    slices: Vec<(Track, Slice)>,
    arrows: Vec<(usize, usize)>,
    counters: BTreeMap<Track, Vec<(Time, i64)>>,
}

impl Tracks {
    pub fn add(&mut self, track: Track, slice: Slice) -> usize {
        self.slices.push((track, slice));
        self.slices.len() - 1
    }

    pub fn arrow(&mut self, from: usize, to: usize) {
        self.arrows.push((from, to));
    }

    pub fn count(&mut self, track: Track, values: Vec<(Time, i64)>) {
        self.counters.insert(track, values);
    }

    pub fn track_of(&self, number: usize) -> Track {
        self.slices[number].0
    }

    pub fn slice_mut(&mut self, number: usize) -> &mut Slice {
        &mut self.slices[number].1
    }

    pub fn write(&self, named: &Named, to: &mut impl Write) -> io::Result<()> {
        let mut events = Events {
            base: u64::from(named.number) + 1,
            next: 0,
            first: true,
            to,
        };
        let lanes = self.lanes();
        let threads = self.describe(&named.name, &lanes, &mut events)?;
        let mut order: Vec<usize> = (0..self.slices.len()).collect();
        order.sort_by_key(|number| {
            // At one instant requests come first, and slices that take no time before others, because an arrow from one
            // to the other has to begin before it ends.
            let (track, slice) = &self.slices[*number];
            let is_request = matches!(track, Track::Core(_));
            (
                slice.begin,
                !is_request,
                slice.begin < slice.end,
                slice.step,
            )
        });
        let mut turns = vec![0; self.slices.len()];
        for (turn, number) in order.iter().enumerate() {
            turns[*number] = turn;
        }
        let mut ends = vec![vec![]; self.slices.len()];
        for (arrow, &(from, to)) in self.arrows.iter().enumerate() {
            // Of an interrupted write, the write itself is drawn last, and it began before its pauses.
            let is_forward = turns[from] <= turns[to];
            let (first, last) = if is_forward { (from, to) } else { (to, from) };
            ends[first].push(("s", arrow));
            ends[last].push(("f", arrow));
        }
        for number in order {
            let (track, slice) = &self.slices[number];
            let thread = threads[track][lanes[number]];
            events.slice(thread, track.category(), slice)?;
            for (phase, arrow) in &ends[number] {
                events.arrow(thread, slice.begin, phase, *arrow)?;
            }
            for part in &slice.parts {
                events.slice(thread, "latency", part)?;
            }
        }
        for (track, values) in &self.counters {
            for (at, value) in values {
                events.count(threads[track][0], &track.name(), *at, *value)?;
            }
        }
        Ok(())
    }

    /// Gives each track its threads, one a lane, in the processes of their groups.
    fn describe<W: Write>(
        &self,
        run: &str,
        lanes: &[usize],
        events: &mut Events<W>,
    ) -> io::Result<BTreeMap<Track, Vec<Thread>>> {
        let mut wanted: BTreeMap<Track, usize> = BTreeMap::new();
        for (number, (track, _)) in self.slices.iter().enumerate() {
            let count = wanted.entry(*track).or_default();
            *count = (*count).max(lanes[number] + 1);
        }
        wanted.extend(self.counters.keys().map(|track| (*track, 1)));
        let mut processes: BTreeMap<Option<String>, u64> = BTreeMap::new();
        let mut threads = BTreeMap::new();
        for (track, lanes) in wanted {
            let group = track.group();
            let process = match processes.get(&group) {
                Some(process) => *process,
                None => {
                    let name = group
                        .iter()
                        .fold(run.to_owned(), |run, group| format!("{run}: {group}"));
                    let process = events.process(&name)?;
                    processes.insert(group, process);
                    process
                }
            };
            let of = match self.counters.contains_key(&track) {
                true => vec![(process, process)],
                false => (0..lanes)
                    .map(|_| events.thread(process, &track.name()))
                    .collect::<io::Result<_>>()?,
            };
            threads.insert(track, of);
        }
        Ok(threads)
    }

    /// Gives each slice the first free lane of its track.
    fn lanes(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.slices.len()).collect();
        order.sort_by_key(|number| {
            let (track, slice) = &self.slices[*number];
            (*track, slice.begin, slice.end, slice.step, *number)
        });
        let mut lanes = vec![0; self.slices.len()];
        let (mut of, mut free): (Option<Track>, Vec<Time>) = (None, Vec::new());
        for number in order {
            let (track, slice) = &self.slices[number];
            if of != Some(*track) {
                (of, free) = (Some(*track), Vec::new());
            }
            let lane = free.iter().position(|free| *free <= slice.begin);
            let lane = lane.unwrap_or_else(|| {
                free.push(Time::ZERO);
                free.len() - 1
            });
            free[lane] = slice.end;
            lanes[number] = lane;
        }
        lanes
    }
}

/// A process and a thread of it.
type Thread = (u64, u64);

/// The events of one run. Its processes, threads and arrows have numbers above `base`, so that several runs in one file
/// have different ones.
struct Events<'w, W: Write> {
    base: u64,
    next: u64,
    first: bool,
    to: &'w mut W,
}

impl<W: Write> Events<'_, W> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.to.write_all(b",\n")?;
        }
        Ok(serde_json::to_writer(&mut *self.to, event)?)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        (self.base << 20) + self.next
    }

    /// Names a process or a thread, and puts it behind those that were named before.
    fn describe(&mut self, kind: &str, (pid, tid): Thread, name: &str) -> io::Result<()> {
        let arguments = [("name", json!(name)), ("sort_index", json!(self.next))];
        for (what, value) in arguments {
            let event = format!("{kind}_{what}");
            self.put(
                &json!({"ph": "M", "name": event, "pid": pid, "tid": tid, "args": {(what): value}}),
            )?;
        }
        Ok(())
    }

    fn process(&mut self, name: &str) -> io::Result<u64> {
        let process = self.number();
        self.describe("process", (process, process), name)?;
        Ok(process)
    }

    fn thread(&mut self, process: u64, name: &str) -> io::Result<Thread> {
        let thread = (process, self.number());
        self.describe("thread", thread, name)?;
        Ok(thread)
    }

    fn slice(&mut self, (pid, tid): Thread, category: &str, slice: &Slice) -> io::Result<()> {
        let (ts, end) = (ns(slice.begin), ns(slice.end));
        let args: Map<String, Value> = slice.notes.iter().map(argument).collect();
        self.put(&json!({
            "ph": "X", "cat": category, "name": slice.name, "pid": pid, "tid": tid, "args": args,
            "ts": us(ts), "dur": us(end - ts),
        }))
    }

    /// Begins (`s`) or ends (`f`) an arrow at the newest slice of a thread.
    fn arrow(&mut self, (pid, tid): Thread, at: Time, phase: &str, arrow: usize) -> io::Result<()> {
        let id = (self.base << 32) + arrow as u64;
        self.put(&json!({
            "ph": phase, "bp": "e", "cat": "step", "name": "then", "id": id, "pid": pid, "tid": tid,
            "ts": us(ns(at)),
        }))
    }

    fn count(&mut self, (pid, _): Thread, name: &str, at: Time, value: i64) -> io::Result<()> {
        self.put(&json!({
            "ph": "C", "name": name, "pid": pid, "ts": us(ns(at)), "args": {"accesses": value},
        }))
    }
}

fn argument((name, said): &(&'static str, Said)) -> (String, Value) {
    let value = match said {
        Said::Number(number) => json!(number),
        Said::Time(time) => json!(time.ns()),
        Said::Text(text) => json!(text),
    };
    ((*name).to_owned(), value)
}

fn ns(time: Time) -> u64 {
    time.ps() / 1000
}

/// Chrome's times are in microseconds.
fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}
