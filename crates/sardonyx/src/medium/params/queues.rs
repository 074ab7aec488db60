//! The queues of a channel: their sizes, when they drain, which request goes next and which writes merge.

use super::active::ACTIVE;
use super::int;
use crate::mechanisms::mechanisms;
use crate::medium::near;
use crate::settings::{Allowed, Needs, Setting, Settings, Value, Word, keys, section, words};

/// The choice of the queued request that goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// First ready (row hit), first come, as in Ramulator 2.
    FrFcfs,
    /// The same, but after `starvation` row hits in a bank the oldest request goes.
    FrFcfsCap {
        /// Row hits of one bank in succession before an older conflict must go; NVMain's and DRAMsim3's value is 4.
        starvation: u32,
    },
    /// Requests go strictly in order of arrival.
    Fcfs,
}

/// The state of a row after its column command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePolicy {
    /// The row stays open until another one is needed.
    Open,
    /// The row is precharged unless another queued request hits it; with queues of commands always.
    Closed,
}

words!(PagePolicy { "open" => Open, "closed" => Closed });

/// Converts the word only: the number of row hits is a key of its own.
impl Setting for Scheduler {
    fn from_value(value: Value) -> Scheduler {
        match value {
            Value::Word("fcfs") => Scheduler::Fcfs,
            Value::Word("fr-fcfs-cap") => Scheduler::FrFcfsCap { starvation: 1 },
            _ => Scheduler::FrFcfs,
        }
    }

    fn value(self) -> Value {
        Value::Word(match self {
            Scheduler::FrFcfs => "fr-fcfs",
            Scheduler::FrFcfsCap { .. } => "fr-fcfs-cap",
            Scheduler::Fcfs => "fcfs",
        })
    }
}

impl Word for Scheduler {
    const WORDS: &'static [&'static str] = &["fr-fcfs", "fr-fcfs-cap", "fcfs"];
}

/// The key of the number in [`Scheduler::FrFcfsCap`].
pub const STARVATION: &str = "medium.queues.starvation";

section! {
    /// The queues of a channel.
    Queues "medium.queues.";
    [reads: usize] "reads" int(1, 4_096), "Read entries of a channel";
    [writes: usize] "writes" int(1, 4_096), "Data write entries of a channel";
    [counter_writes: usize] "counter_writes" int(0, 4_096),
        "Counter write entries; 0 lets counters share the data write queue";
    [high_watermark: usize] "high_watermark" int(1, 4_096),
        "Ready writes at which a drain begins; at most writes";
    [low_watermark: usize] "low_watermark" int(0, 4_095),
        "Ready writes at which a drain ends; below high_watermark";
    [idle_writes: bool] "idle_writes" Allowed::Bool, "Writes also go whenever no read is queued";
    [forwarding: bool] "forwarding" Allowed::Bool,
        "A read of a queued write's line is answered from the queue";
    [forwarding_cycles: u64] "forwarding_cycles" int(1, 1_000_000),
        "Memory cycles to find a queued write's line and copy it";
    [coalescing: bool] "coalescing" Allowed::Bool,
        "A write to a queued write's line replaces its bytes";
    [refill_in_drain: bool] "refill_in_drain" Allowed::Bool,
        "New writes are accepted while the write queue drains";
    [scheduler: Scheduler] "scheduler" Allowed::Word(Scheduler::WORDS),
        "First ready, first come, without or with a cap of row hits; or strictly in order of arrival";
    "starvation" int(1, 1_000_000),
        "Row hits of a bank before an older conflict must go; fr-fcfs-cap only";
    [page: PagePolicy] "page" Allowed::Word(PagePolicy::WORDS),
        "Whether a row stays open after its column command";
}

mechanisms! {
    // A cache before the medium is asked itself for what has left the processor unflushed.
    JOINED_EVICTION = "joined evictions", least 30, by &Queues::SHORT,
        under |settings| !near::flushes_below(settings);
    MERGE = "merges in queues", least 30, by &Queues::SHORT;
    FORWARD = "forwarded reads", least 30, by &Queues::SHORT;
}

impl Queues {
    /// Settings of a crash run whose write queues have room for four lines and drain early.
    pub const SHORT: [(&str, u64); 4] = [
        ("medium.queues.writes", 4),
        ("medium.queues.counter_writes", 4),
        ("medium.queues.high_watermark", 3),
        ("medium.queues.low_watermark", 1),
    ];
}

/// The merging of writes that are accepted together with queued writes of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMerging {
    /// All members are merged or none, and no other write is merged with a member.
    All,
    /// Each member is merged by itself, as any other write. The others take slots, all at one instant.
    Member,
}

words!(GroupMerging { "all" => All, "member" => Member });

/// Whose a queue of commands is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandsOf {
    /// Of a bank.
    Bank,
    /// Of a rank, for all of its banks.
    Rank,
}

words!(CommandsOf { "bank" => Bank, "rank" => Rank });

/// The queues of commands to which accesses move from those of their channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandQueueParams {
    /// The entries of each; 0 if there are none.
    pub entries: usize,
    /// Whose they are.
    pub of: CommandsOf,
}

impl CommandQueueParams {
    pub(super) fn from_settings(settings: &Settings) -> CommandQueueParams {
        CommandQueueParams {
            entries: settings.get(&COMMANDS) as usize,
            of: settings.get(&COMMANDS_OF),
        }
    }
}

const HAS_COMMANDS: Needs = Needs {
    met: |settings| settings.get(&COMMANDS) > 0,
    switches: &["medium.queues.commands"],
    what: "medium.queues.commands is more than 0",
};

const HAS_ROW_BUS: Needs = Needs {
    met: |settings| settings.get(&COMMANDS) > 0 || settings.get(&ACTIVE),
    switches: &["medium.queues.commands", "medium.queues.active"],
    what: "medium.queues.commands is more than 0 or medium.queues.active is true",
};

keys! {
    GROUP_MERGING: GroupMerging = word("medium.queues.group_merging", "all"),
        Assumed("SCA: pairing restricts coalescing (Sec. 1), and an entry has one ready bit (Sec. 5.2.2)"),
        "With coalescing, writes that are accepted together (a line and its counter) are merged all or none, or \
         each member by itself";
    COMMANDS: u64 = int("medium.queues.commands", (0, 4_096), 0),
        Source("accesses wait in the channel's queues; DRAMsim3 has 8 commands for each bank"),
        "Entries of banks' own queues of commands, to which reads move, and writes while they drain; 0: there are \
         none. A drain takes the writes that are ready when it begins, and begins as well with more than \
         low_watermark while no command is queued";
    COMMANDS_OF: CommandsOf = word("medium.queues.commands_of", "bank"),
        Source("DRAMsim3: PER_BANK, or PER_RANK"),
        "Whether each bank has a queue of commands, or each rank" needs HAS_COMMANDS;
    ROW_BUS: bool = flag("medium.queues.row_bus", false),
        Source("one bus of commands; HBM has one for rows and one for columns, in DRAMsim3 hbm_dual_cmd"),
        "With queues of commands or active accesses, whether one of a row and one of a column may go in a cycle" needs HAS_ROW_BUS;
    PASSING: bool = flag("medium.queues.passing", false),
        Source("readers of traces in DRAMsim3 and Ramulator 2 send a request after the one before it"),
        "Whether requests are admitted while an access waits for a slot of a full queue, as in a host that asks a \
         controller for room for reads and for writes apart";
    REMERGING: bool = flag("medium.queues.remerging", false),
        Assumed("no paper says"),
        "With coalescing, a queued write takes a third write of its line and more, not only a second";
}
