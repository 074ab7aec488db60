//! Tracks with slices, counters and arrows, and how they are written as Perfetto's packets.
//!
//! Slices that overlap lie on several tracks of one name, which Perfetto shows as one of several rows. Times are
//! nanoseconds there, so they are rounded down; what is exact stands beside.

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message;

use super::Named;
use crate::perfetto_messages::{
    CounterDescriptor, Data, DebugAnnotation, EXPLICIT, ProcessDescriptor, SEQUENCE_BEGINS, Trace,
    TracePacket, TrackDescriptor, TrackEvent, TrackValue, Type,
};
use sardonyx::medium::params::Unit;
use sardonyx::units::Time;

/// The subject of a track. Tracks are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    Core(u32),
    /// The link: down if true, up if false.
    Link(bool),
    Unit(usize),
    Channel(u32, TrackPart),
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
    fn group(self) -> Option<(u32, String)> {
        match self {
            Track::Core(_) | Track::Link(_) => None,
            Track::Unit(_) => Some((0, "units".to_owned())),
            Track::Channel(channel, _) => Some((channel + 1, format!("channel {channel}"))),
        }
    }

    fn name(self) -> String {
        match self {
            Track::Core(core) => format!("core {core}: requests"),
            Track::Link(true) => "link to the memory".to_owned(),
            Track::Link(false) => "link to the processor".to_owned(),
            Track::Unit(unit) => Unit::ALL[unit].name().to_owned(),
            Track::Channel(_, part) => match part {
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
            Track::Channel(_, part) => match part {
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

impl Slice {
    fn begins(&self, category: &str, track: u64) -> TrackEvent {
        TrackEvent {
            debug_annotations: self.notes.iter().map(annotation).collect(),
            categories: vec![category.to_owned()],
            name: Some(self.name.clone()),
            ..event(Type::SliceBegin, track)
        }
    }
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

    pub fn write(self, named: &Named, to: &mut impl Write) -> io::Result<()> {
        let mut packets = Packets {
            sequence: named.number + 1,
            base: (u64::from(named.number) + 1) << 40,
            next: 0,
            first: true,
            to,
        };
        let process = packets.process(&named.name)?;
        let lanes = self.lanes();
        let uuids = self.describe(process, &lanes, &mut packets)?;
        let (mut out, mut into) = (
            vec![vec![]; self.slices.len()],
            vec![vec![]; self.slices.len()],
        );
        for (flow, (from, target)) in self.arrows.iter().enumerate() {
            out[*from].push(packets.base + flow as u64);
            into[*target].push(packets.base + flow as u64);
        }
        for ((at, ..), what) in self.changes(&uuids) {
            let event = match what {
                TrackChange::Counts { track, value } => TrackEvent {
                    counter_value: Some(value),
                    ..event(Type::Counter, track)
                },
                TrackChange::Begins { number, part } => {
                    let (track, slice) = &self.slices[number];
                    let uuid = uuids[track][lanes[number]];
                    match part {
                        Some(part) => slice.parts[part].begins("latency", uuid),
                        None => TrackEvent {
                            flow_ids: std::mem::take(&mut out[number]),
                            terminating_flow_ids: std::mem::take(&mut into[number]),
                            ..slice.begins(track.category(), uuid)
                        },
                    }
                }
                TrackChange::Ends { number } => {
                    let track = &self.slices[number].0;
                    event(Type::SliceEnd, uuids[track][lanes[number]])
                }
            };
            packets.put(Some(at), Data::TrackEvent(event))?;
        }
        Ok(())
    }

    fn describe<W: Write>(
        &self,
        process: u64,
        lanes: &[usize],
        packets: &mut Packets<W>,
    ) -> io::Result<BTreeMap<Track, Vec<u64>>> {
        let mut wanted: BTreeMap<Track, usize> = BTreeMap::new();
        for (number, (track, _)) in self.slices.iter().enumerate() {
            let count = wanted.entry(*track).or_default();
            *count = (*count).max(lanes[number] + 1);
        }
        wanted.extend(self.counters.keys().map(|track| (*track, 1)));
        let mut groups: BTreeMap<u32, u64> = BTreeMap::new();
        let mut uuids = BTreeMap::new();
        for (rank, (track, lanes)) in wanted.into_iter().enumerate() {
            let parent = match track.group() {
                None => process,
                Some((number, name)) => match groups.get(&number) {
                    Some(group) => *group,
                    None => {
                        let group = packets.track(process, &name, rank, false)?;
                        groups.insert(number, group);
                        group
                    }
                },
            };
            let counter = self.counters.contains_key(&track);
            let lane = |_| packets.track(parent, &track.name(), rank, counter);
            let of = (0..lanes).map(lane).collect::<io::Result<_>>()?;
            uuids.insert(track, of);
        }
        Ok(uuids)
    }

    /// All changes in the order of time. Ties are broken by the order of the slices.
    fn changes(&self, uuids: &BTreeMap<Track, Vec<u64>>) -> Vec<TimedChange> {
        let mut changes = Vec::new();
        for (number, (_, slice)) in self.slices.iter().enumerate() {
            put(&mut changes, slice, number, None);
            for (part, of) in slice.parts.iter().enumerate() {
                put(&mut changes, of, number, Some(part));
            }
        }
        for (track, values) in &self.counters {
            let track = uuids[track][0];
            let counts = values.iter().map(|&(at, value)| {
                let change = TrackChange::Counts { track, value };
                ((at, BEGINS, 0), change)
            });
            changes.extend(counts);
        }
        changes.sort_by_key(|(when, _)| *when);
        changes
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

/// At one instant slices end first, then come slices that take no time, and then others begin.
const ENDS: u8 = 0;
const PASSES: u8 = 1;
const BEGINS: u8 = 2;

/// A change on a track: a counter gets a value, or a slice or a part of one begins or ends.
enum TrackChange {
    Counts { track: u64, value: i64 },
    Begins { number: usize, part: Option<usize> },
    Ends { number: usize },
}

type TimedChange = ((Time, u8, u64), TrackChange);

/// Adds the events of a slice, or of a part of it. A slice begins before its parts and ends after them.
fn put(events: &mut Vec<TimedChange>, slice: &Slice, number: usize, part: Option<usize>) {
    let (begins, ends) = match slice.begin == slice.end {
        true => (PASSES, PASSES),
        false => (BEGINS, ENDS),
    };
    let last = match slice.parts.is_empty() {
        true => slice.step,
        false => u64::MAX,
    };
    events.push((
        (slice.begin, begins, slice.step),
        TrackChange::Begins { number, part },
    ));
    events.push(((slice.end, ends, last), TrackChange::Ends { number }));
}

fn event(of: Type, track: u64) -> TrackEvent {
    TrackEvent {
        r#type: Some(of as i32),
        track_uuid: Some(track),
        ..TrackEvent::default()
    }
}

fn annotation((name, said): &(&'static str, Said)) -> DebugAnnotation {
    let value = match said {
        Said::Number(number) => TrackValue::Uint(*number),
        Said::Time(time) => TrackValue::Double(time.ns()),
        Said::Text(text) => TrackValue::Text((*text).to_owned()),
    };
    DebugAnnotation {
        name: Some((*name).to_owned()),
        value: Some(value),
    }
}

/// The packets of one process. Its numbers begin at `base`, so that several processes in one file have different ones.
struct Packets<'w, W: Write> {
    sequence: u32,
    base: u64,
    next: u64,
    first: bool,
    to: &'w mut W,
}

impl<W: Write> Packets<'_, W> {
    fn put(&mut self, at: Option<Time>, data: Data) -> io::Result<()> {
        let packet = TracePacket {
            timestamp: at.map(|at| at.ps() / 1000),
            trusted_packet_sequence_id: Some(self.sequence),
            sequence_flags: std::mem::take(&mut self.first).then_some(SEQUENCE_BEGINS),
            data: Some(data),
        };
        let trace = Trace {
            packet: vec![packet],
        };
        self.to.write_all(&trace.encode_to_vec())
    }

    fn uuid(&mut self) -> u64 {
        self.next += 1;
        self.base + self.next
    }

    fn process(&mut self, name: &str) -> io::Result<u64> {
        let uuid = self.uuid();
        let track = TrackDescriptor {
            uuid: Some(uuid),
            process: Some(ProcessDescriptor {
                pid: Some(self.sequence as i32),
                process_name: Some(name.to_owned()),
            }),
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        };
        self.put(None, Data::TrackDescriptor(track))?;
        Ok(uuid)
    }

    fn track(&mut self, parent: u64, name: &str, rank: usize, counter: bool) -> io::Result<u64> {
        let uuid = self.uuid();
        let counter = counter.then(|| CounterDescriptor {
            unit_name: Some("accesses".to_owned()),
        });
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: Some(parent),
            child_ordering: counter.is_none().then_some(EXPLICIT),
            sibling_order_rank: Some(rank as i32),
            counter,
            process: None,
        };
        self.put(None, Data::TrackDescriptor(track))?;
        Ok(uuid)
    }
}
