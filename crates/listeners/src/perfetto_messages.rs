//! The few messages of Perfetto's trace format that a timeline needs: packets with descriptors of tracks and events on
//! them, as `protos/perfetto/trace` of Perfetto numbers their fields. A trace is packets one after the other, so files
//! that follow each other are a trace too.

use prost::{Message, Oneof};

/// A trace of one packet. A file is several of them in a row.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// The packets of the trace.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet of the trace file.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// The packet's time in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The number of the writer that this packet comes from.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// [`SEQUENCE_BEGINS`] in a sequence's first packet.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// The payload: an event on a track, or the description of a track.
    #[prost(oneof = "Data", tags = "11, 60")]
    pub data: Option<Data>,
}

/// The payload of a packet.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// An event on a track.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// The description of a track.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// Drops all state of the sequence: `SEQ_INCREMENTAL_STATE_CLEARED`.
pub const SEQUENCE_BEGINS: u32 = 1;

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Names and values that the viewer shows with the event.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// The event's [`Type`].
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The number of the event's track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// The event's kind, by which the viewer can filter.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// The event's name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// The counter's new value.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Numbers of the arrows that leave this event.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Numbers of the arrows that end at this event.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Type {
    /// No type was given.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// A slice ends.
    SliceEnd = 2,
    /// A counter has a new value.
    Counter = 4,
}

/// A name and a value.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// The annotation's name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// The annotation's value.
    #[prost(oneof = "TrackValue", tags = "3, 5, 6")]
    pub value: Option<TrackValue>,
}

/// An annotation's value.
#[derive(Clone, PartialEq, Oneof)]
pub enum TrackValue {
    /// A whole number.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// Any number.
    #[prost(double, tag = "5")]
    Double(f64),
    /// A text.
    #[prost(string, tag = "6")]
    Text(String),
}

/// The description of a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// The track's number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// The track's name. The viewer shows siblings with equal names as one track of several rows.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Makes the track that of a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// The number of the parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Makes the track a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// How children of this track are ordered, for example [`EXPLICIT`].
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// The track's position among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// Orders children by their ranks.
pub const EXPLICIT: i32 = 3;

/// A process, which here stands for a run.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// The process's number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// The process's name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// The description of a counter.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// The name of the counter's unit.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}
