//! The few messages of Perfetto's trace format that a timeline needs: packets with descriptors of tracks and events on
//! them, as `protos/perfetto/trace` of Perfetto numbers their fields. A trace is packets one after the other, so files
//! that follow each other are a trace too.

use prost::{Message, Oneof};

/// A trace of one packet; a file is many.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// The packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Who wrote it.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// [`SEQUENCE_BEGINS`] in a sequence's first packet.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Something happens on a track, or there is one.
    #[prost(oneof = "Data", tags = "11, 60")]
    pub data: Option<Data>,
}

/// What a packet has.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// Something happens.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// There is a track.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// Nothing said before holds: `SEQ_INCREMENTAL_STATE_CLEARED`.
pub const SEQUENCE_BEGINS: u32 = 1;

/// What happens on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// What is said of it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// A slice begins or ends, or a counter changes.
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// A kind of slice, by which they can be selected.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Its name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// A counter's value.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Arrows that leave it.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Type {
    /// None.
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
    /// The name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// The value.
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

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name; siblings of one name are shown as one track of several rows.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is the track of a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// The track that it belongs to.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// How its children are ordered: [`EXPLICIT`].
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// Children are ordered by their ranks.
pub const EXPLICIT: i32 = 3;

/// A process: here a run.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A counter.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// What it counts.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}
