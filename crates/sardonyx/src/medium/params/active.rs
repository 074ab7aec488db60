//! Queues whose accesses become active with their activate, as in Ramulator 2.1, and the commands of parts that such a
//! controller knows.

use super::timing::Cycles;
use crate::settings::{Needs, Settings, keys};

const IS_ACTIVE: Needs = Needs {
    met: |settings| settings.get(&ACTIVE),
    switches: &["medium.queues.active"],
    what: "medium.queues.active is true",
};

const HAS_STACKS: Needs = Needs {
    met: |settings| settings.get(&STACKS) > 1,
    switches: &["medium.queues.stacks"],
    what: "medium.queues.stacks is more than 1",
};

/// The parameters of a channel whose accesses become active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveParams {
    /// The bursts of a line.
    pub bursts: u64,
    /// The cycles of the command bus that an activate, a precharge and a column command take.
    pub bus_cycles: [Cycles; 3],
    /// The cycles within which the second command of an activate follows; 0 if there is none.
    pub second_activate: Cycles,
    /// The cycles for which the data clock goes on after a burst; 0 if it always does.
    pub data_clock: Cycles,
    /// Whether each rank has a data bus of its own.
    pub rank_buses: bool,
    /// Whether the clock counts both edges, and all commands but precharges go at the rising ones.
    pub rising_edges: bool,
    /// The stacks of dies in a rank.
    pub stacks: u64,
    /// Activate to activate of a bank, where it is more than tRAS and tRP.
    pub reopens: Cycles,
    /// Column read to column read of another stack.
    pub between_stacks: Cycles,
}

impl ActiveParams {
    pub(super) fn from_settings(settings: &Settings) -> Option<ActiveParams> {
        settings.get(&ACTIVE).then(|| ActiveParams {
            bursts: settings.get(&BURSTS),
            bus_cycles: [
                settings.get(&ACTIVATE_CYCLES),
                settings.get(&PRECHARGE_CYCLES),
                settings.get(&COLUMN_CYCLES),
            ],
            second_activate: settings.get(&SECOND_ACTIVATE),
            data_clock: settings.get(&DATA_CLOCK),
            rank_buses: settings.get(&RANK_BUSES),
            rising_edges: settings.get(&RISING_EDGES),
            stacks: settings.get(&STACKS),
            reopens: settings.get(&REOPENS),
            between_stacks: settings.get(&BETWEEN_STACKS),
        })
    }
}

keys! {
    ACTIVE: bool = flag("medium.queues.active", false),
        Source("an access holds its entry until its column command; in Ramulator 2.1 until its activate"),
        "Whether an access whose row is opened for it leaves its queue then and goes before all others. Nobody \
         closes its row, and nothing but active accesses passes a refresh that waits. Otherwise the oldest access \
         goes whose next command may, of the writes in a drain and else of the reads; without a read writes go";
    BURSTS: u64 = int("medium.queues.bursts", (1, 8), 1),
        Source("a line is a burst; in Ramulator 2.1 each 32 bytes of HBM2 are a request"),
        "Bursts of a line, each an entry with commands of its own. tBURST and tCCD are those of a line" needs IS_ACTIVE;
    ACTIVATE_CYCLES: Cycles = int("medium.queues.activate_cycles", (1, 8), 1),
        Source("a cycle; in Ramulator 2.1 two in DDR5 and HBM"),
        "Cycles of its command bus that an activate takes" needs IS_ACTIVE;
    PRECHARGE_CYCLES: Cycles = int("medium.queues.precharge_cycles", (1, 8), 1),
        Source("a cycle; in Ramulator 2.1 two in LPDDR6"),
        "Cycles of its command bus that a precharge takes" needs IS_ACTIVE;
    COLUMN_CYCLES: Cycles = int("medium.queues.column_cycles", (1, 8), 1),
        Source("a cycle; in Ramulator 2.1 two in DDR5"),
        "Cycles of its command bus that a column command takes" needs IS_ACTIVE;
    SECOND_ACTIVATE: Cycles = int("medium.queues.second_activate", (0, 1_000), 0),
        Source("an activate is one command; LPDDR5's has a second within nAAD"),
        "Cycles within which an activate's second command follows, when nothing else goes or at the last; no other \
         activate goes in between. 0: there is none" needs IS_ACTIVE;
    DATA_CLOCK: Cycles = int("medium.queues.data_clock", (0, 1_000), 0),
        Source("the data clock runs always; LPDDR5's stops nWCKPST after a burst"),
        "Cycles for which the data clock goes on after a burst. Later column commands follow one that synchronizes \
         it. 0: it always runs" needs IS_ACTIVE;
    RANK_BUSES: bool = flag("medium.queues.rank_buses", false),
        Source("ranks share their channel's data bus; HBM2's pseudo-channels share its commands only"),
        "Whether each rank has a data bus of its own, as a pseudo-channel has" needs IS_ACTIVE;
    RISING_EDGES: bool = flag("medium.queues.rising_edges", false),
        Source("a cycle is one of the clock; HBM3's files count its halves"),
        "Whether cycles are halves of the clock's, and all commands but precharges go in odd ones" needs IS_ACTIVE;
    STACKS: u64 = int("medium.queues.stacks", (1, 16), 1),
        Source("one; HBM3 of 8 dies and more has several, its stack IDs"),
        "Stacks of dies in a rank: a bank group's number modulo this is its stack" needs IS_ACTIVE;
    REOPENS: Cycles = int("medium.timing.tRC", (0, 100_000), 0),
        Source("tRAS and tRP; HBM3's and LPDDR6's files say more"),
        "Activate to activate of a bank, if it is more than tRAS and tRP" needs IS_ACTIVE;
    BETWEEN_STACKS: Cycles = int("medium.timing.tCCDR", (0, 1_000), 0),
        Source("reads of two stacks keep tCCD; HBM3's files have a time of their own"),
        "Column read to column read of another stack, if it is more than tCCD" needs HAS_STACKS;
}
