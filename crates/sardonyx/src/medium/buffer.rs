//! A buffer on the memory module, before cells that are read and written in blocks larger than a line, as Intel
//! Optane's (Yang et al., FAST 2020, Sec. 2 and 5.1): reads bring whole blocks, writes gather in blocks. The module's
//! reserve power drains it, so what it has taken is durable.
//!
//! Left out: the cache of the table that says where the module keeps a block, and the moves that level wear.

use crate::settings::{Allowed, Needs, Origin, Row, Settings, Value, keys, words};
use crate::units::Time;

/// The choice of the block that has to leave a full buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victim {
    /// Each block is as likely.
    #[default]
    Random,
    /// The block that was used longest ago leaves.
    Oldest,
}

words!(Victim { "random" => Random, "oldest" => Oldest });

const BLOCKS: &str = "medium.buffer.blocks";
const BUFFERED: Needs = Needs {
    met: |settings| matches!(settings.find(BLOCKS), Some(Value::Int(1..))),
    switches: &[BLOCKS],
    what: "medium.buffer.blocks is more than 0",
};

keys! {
    VICTIM: Victim = word("medium.buffer.victim", "random"),
        Assumed("no text says; measured write amplification grows by and by (FAST 2020, Fig. 9), where the \
                 oldest would make it jump"),
        "Which block has to leave a full buffer of the memory module" needs BUFFERED;
}

const fn row(name: &'static str, value: Value, allowed: Allowed, meaning: &'static str) -> Row {
    let none = Origin::Source("a machine without a buffer says nothing of one");
    Row {
        default: Some((value, none)),
        ..Row::required(name, allowed, meaning)
    }
}

const fn nanoseconds(name: &'static str, meaning: &'static str) -> Row {
    row(
        name,
        Value::Time(Time::ZERO),
        crate::settings::latency(),
        meaning,
    )
    .needing(BUFFERED)
}

/// The parameters of a module's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferParams {
    /// The number of blocks in the buffer.
    pub blocks: usize,
    /// Lines of a block, the unit in which the cells are read and written.
    pub lines: u64,
    /// Blocks that are fetched at once, at most.
    pub fetches: usize,
    /// The time from a read's command to its data if the buffer has them.
    pub hit: Time,
    /// The additional time of a read that the cells have to answer.
    pub read: Time,
    /// The time from reading one block in the cells to the next access of them.
    pub read_interval: Time,
    /// The time from writing one block in the cells to the next access of them.
    pub write_interval: Time,
    /// The time from taking one line to be written to the next.
    pub accept: Time,
    /// The choice of the block that leaves.
    pub victim: Victim,
}

impl BufferParams {
    /// The parameters of a buffer.
    pub const ROWS: &'static [Row] = &[
        row(
            BLOCKS,
            Value::Int(0),
            Allowed::Int { min: 0, max: 4096 },
            "Blocks that a memory module's buffer holds; 0: it has none, and its banks answer",
        ),
        row(
            "medium.buffer.lines",
            Value::Int(4),
            Allowed::PowerOfTwo { min: 1, max: 64 },
            "Lines of a block, by which the cells behind the buffer are read and written",
        )
        .needing(BUFFERED),
        row(
            "medium.buffer.fetches",
            Value::Int(64),
            Allowed::Int { min: 1, max: 4096 },
            "Blocks that a memory module reads or is about to read, at most",
        )
        .needing(BUFFERED),
        nanoseconds(
            "medium.buffer.hit_ns",
            "Read of a line that the buffer has: from its command to its data",
        ),
        nanoseconds(
            "medium.buffer.read_ns",
            "Read of a line that it has not: how much longer that takes",
        ),
        nanoseconds(
            "medium.buffer.read_interval_ns",
            "From a block's read in the cells to their next access",
        ),
        nanoseconds(
            "medium.buffer.write_interval_ns",
            "From a block's write in the cells to their next access, whole or in part",
        ),
        nanoseconds(
            "medium.buffer.accept_ns",
            "From one line that the buffer takes to be written to the next",
        ),
    ];

    /// The parameters in `settings`; `None` if there is no buffer.
    pub fn from_settings(settings: &Settings) -> Option<BufferParams> {
        let int = |name: &str, none: u64| match settings.find(name) {
            Some(Value::Int(value)) => value,
            _ => none,
        };
        let time = |name: &str| match settings.find(name) {
            Some(Value::Time(time)) => time,
            _ => Time::ZERO,
        };
        let buffer = BufferParams {
            blocks: int(BLOCKS, 0) as usize,
            lines: int("medium.buffer.lines", 4),
            fetches: int("medium.buffer.fetches", 64) as usize,
            hit: time("medium.buffer.hit_ns"),
            read: time("medium.buffer.read_ns"),
            read_interval: time("medium.buffer.read_interval_ns"),
            write_interval: time("medium.buffer.write_interval_ns"),
            accept: time("medium.buffer.accept_ns"),
            victim: settings.get(&VICTIM),
        };
        (buffer.blocks > 0).then_some(buffer)
    }
}
