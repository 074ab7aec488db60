//! A link between the processor and the memory's controller, as CXL's: two directions, each with a latency and
//! a bandwidth that is said as the time that each kind of message occupies it.
//!
//! The whole controller stands at the memory's end, so what is encrypted or deduplicated crosses the link in
//! clear. Left out: flits that are filled by several messages, retries, credits.

use super::parts::Part;
use crate::mechanisms::mechanisms;
use crate::settings::{Needs, Origin, Row, Setting, Settings, Value, keys, words};
use crate::units::Time;

/// The kind of a message on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Message {
    /// A request to read, without data.
    Read,
    /// A request to write, with its line.
    Write,
    /// A read's answer, with its line.
    Line,
    /// The notice that a write is accepted.
    Done,
}

impl Message {
    /// All messages, in the order of their discriminants.
    pub const ALL: [Message; 4] = [Message::Read, Message::Write, Message::Line, Message::Done];

    /// Whether it goes to the memory.
    pub fn is_down(self) -> bool {
        matches!(self, Message::Read | Message::Write)
    }
}

/// The order of requests that wait for the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedFirst {
    /// Requests to read have a channel of their own, and writes wait for them.
    #[default]
    Reads,
    /// Requests cross in their order.
    Oldest,
}

words!(ServedFirst { "reads" => Reads, "oldest" => Oldest });

const LINKED: Needs = Needs {
    met: |settings| LinkParams::from_settings(settings).is_some(),
    switches: &[
        "link.down_ns",
        "link.up_ns",
        "link.read_ns",
        "link.write_ns",
        "link.line_ns",
        "link.done_ns",
    ],
    what: "a time of link is more than 0",
};

keys! {
    FIRST: ServedFirst = word("link.first", "reads"),
        Assumed("CXL.mem has separate channels for requests and for data; no text says who waits"),
        "Which of the requests that wait for the link goes first" needs LINKED;
}

const fn nanoseconds(name: &'static str, meaning: &'static str) -> Row {
    let none = Origin::Source("a machine without a link says nothing of one");
    Row {
        default: Some((Value::Time(Time::ZERO), none)),
        ..Row::required(name, crate::settings::latency(), meaning)
    }
}

mechanisms! {
    MESSAGE_WAITED = "messages that wait for the link", least 30, by &[("link.write_ns", 100)];
}

/// The crash explorer's knowledge of the link.
pub static PART: Part = Part {
    met: LINKED.met,
    keys: &[&LinkParams::ROWS[3]],
    tries: MECHANISMS,
    limits: &[],
};

/// The parameters of a link. A link that takes no time is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkParams {
    /// The latency to the memory and back, in addition to the messages' own times.
    pub latency: [Time; 2],
    /// How long each kind of message occupies its direction.
    pub message: [Time; Message::ALL.len()],
    /// The order of waiting requests.
    pub first: ServedFirst,
}

impl LinkParams {
    /// The parameters of a link.
    pub const ROWS: &'static [Row] = &[
        nanoseconds(
            "link.down_ns",
            "Latency of the link to the memory; all of `link` 0: there is none",
        ),
        nanoseconds("link.up_ns", "Latency of the link from the memory"),
        nanoseconds(
            "link.read_ns",
            "Time that a request to read occupies the link's way down",
        ),
        nanoseconds(
            "link.write_ns",
            "Time that a write occupies the link's way down",
        )
        .pressed(|by| by.short.then_some(100)),
        nanoseconds(
            "link.line_ns",
            "Time that a read's answer occupies the link's way up",
        ),
        nanoseconds(
            "link.done_ns",
            "Time that a write's answer occupies the link's way up",
        ),
    ];

    /// The parameters in `settings`; `None` if there is no link.
    pub fn from_settings(settings: &Settings) -> Option<LinkParams> {
        let time = |name: &str| match settings.find(name) {
            Some(value) => Time::from_value(value),
            None => Time::ZERO,
        };
        let link = LinkParams {
            latency: [time("link.down_ns"), time("link.up_ns")],
            message: [
                time("link.read_ns"),
                time("link.write_ns"),
                time("link.line_ns"),
                time("link.done_ns"),
            ],
            first: settings.get(&FIRST),
        };
        let none = LinkParams {
            first: link.first,
            ..LinkParams::default()
        };
        (link != none).then_some(link)
    }
}
