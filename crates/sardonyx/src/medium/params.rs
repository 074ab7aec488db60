//! The machine's parameters: geometry, timing by JEDEC names, queues and energy of one channel of the
//! medium; the on-chip units; the processor's side. Each line says what the key takes and means.
//!
//! Timing is in memory-clock cycles, as the parts' own files give it; `config` turns nanoseconds into
//! cycles (rounding up) and validates. Sources are given with each preset.

use super::buffer::BufferParams;
use super::cells::CellParams;
use super::link::LinkParams;
use super::mapping::{AddressMapping, MAPPING};
use super::pausing::PausingParams;
use crate::line::LINE_BYTES;
use crate::mechanisms::mechanisms;
use crate::settings::{
    Allowed, AnyKey, Doubt, Needs, Origin, Row, Setting, Settings, Value, Word, clock, keys,
    latency, rows, section, words,
};
use crate::units::{Energy, Time};

/// Memory-clock cycles.
pub type Cycles = u64;

/// Most banks (ranks times banks) a channel may have: the scheduler keeps them in one bit mask.
pub const MAX_BANKS: usize = 64;

const fn int(min: u64, max: u64) -> Allowed {
    Allowed::Int { min, max }
}

const fn power_of_two(max: u64) -> Allowed {
    Allowed::PowerOfTwo { min: 1, max }
}

const fn cycles(min: u64) -> Allowed {
    Allowed::Cycles { min }
}

section! {
    /// How many of everything; [`AddressMapping`] says how an address is cut up.
    Geometry "medium.geometry.";
    [channels: u64] "channels" int(1, 64), "Channels; a number that is not a power of two needs the channel below the row in `medium.mapping`";
    [ranks: u64] "ranks" power_of_two(64), "Ranks in a channel";
    [banks: u64] "banks" power_of_two(64), "Banks in a rank; ranks x banks at most 64";
    [rows: u64] "rows" int(1, 1 << 36), "Rows in a bank";
    [columns: u64] "columns" power_of_two(65_536), "64-byte lines in a row";
}

impl Geometry {
    /// What a crash run sets so that its medium has as many lines as its programs, or a few more.
    pub const FULL: [(&str, u64); 5] = [
        ("medium.geometry.channels", 1),
        ("medium.geometry.ranks", 1),
        ("medium.geometry.banks", 1),
        ("medium.geometry.columns", 64),
        ("pages.crash_spare", 0),
    ];

    /// Lines that the medium holds.
    pub fn lines(&self) -> u64 {
        self.channels * self.ranks * self.banks * self.rows * self.columns
    }
}

section! {
    /// Timing constraints in memory-clock cycles, by their JEDEC names.
    #[allow(non_snake_case)]
    Timing "medium.timing.";
    [clock: Time] "clock_ns" clock(), "Length of a memory-clock cycle";
    [tRCD: Cycles] "tRCD" cycles(0), "Activate to column command";
    [tCL: Cycles] "tCL" cycles(0), "Column read to first data";
    [tCWD: Cycles] "tCWD" cycles(0), "Column write to first data";
    [tRP: Cycles] "tRP" cycles(0), "Precharge to activate";
    [tRAS: Cycles] "tRAS" cycles(0), "Activate to precharge";
    [tBURST: Cycles] "tBURST" cycles(1), "Data transfer of a line";
    [tCCD: Cycles] "tCCD" cycles(1), "Column command to column command";
    [tRRD: Cycles] "tRRD" cycles(0), "Activate to activate, other bank of the rank";
    [tFAW: Cycles] "tFAW" cycles(0), "Window of at most four activates of a rank; 0 for none";
    [tWTR: Cycles] "tWTR" cycles(0), "End of write data to column read";
    [tRTP: Cycles] "tRTP" cycles(0), "Column read to precharge, less tBURST - tCCD";
    [tRTRS: Cycles] "tRTRS" cycles(0), "Data-bus bubble, read to write or rank to rank";
    [tWR: Cycles] "tWR" cycles(0), "End of write data (and array write) to precharge";
    [tWP: Cycles] "tWP" cycles(0), "Array write of a PCM bank; 0 for DRAM";
    [tRFC: Cycles] "tRFC" cycles(0), "Length of a refresh";
    [tREFI: Cycles] "tREFI" cycles(0), "Time between refreshes of a rank; 0 for none";
    [off_chip: Cycles] "off_chip" cycles(0), "Added to every completion (links, pins)";
}

const GROUPED: Needs = Needs {
    met: |settings| settings.named::<u64>(BankGroups::COUNT) > 1,
    switches: &[BankGroups::COUNT],
    what: "medium.geometry.groups is more than 1",
};

/// Timings between commands to one bank group, where a rank has several; a bank's group is its number modulo theirs.
#[allow(non_snake_case)]
#[derive(Clone, Debug, PartialEq)]
pub struct BankGroups {
    /// Groups of a rank.
    pub count: u64,
    /// Column command to column command, by a read and by a write, as [`Timing::tCCD`].
    pub tCCD: [Cycles; 2],
    /// Activate to activate, as [`Timing::tRRD`].
    pub tRRD: Cycles,
    /// End of write data to column read, as [`Timing::tWTR`].
    pub tWTR: Cycles,
    /// Length of a refresh of one bank of each group (DDR5's REFsb); 0: all banks of a rank are refreshed at once.
    pub tRFCsb: Cycles,
    /// From such a refresh to an activate of the rank's other banks.
    pub tREFSBRD: Cycles,
}

impl BankGroups {
    /// Banks of a rank that are refreshed together, of so many `banks`: they have successive numbers.
    #[must_use]
    pub fn refreshed_together(&self, banks: u64) -> u64 {
        match self.tRFCsb {
            0 => banks,
            _ => self.count,
        }
    }

    const COUNT: &'static str = "medium.geometry.groups";
    const NONE: Origin = Origin::Source("no bank groups");

    const fn long(name: &'static str, meaning: &'static str) -> Row {
        let kind = cycles(0);
        Row {
            default: Some((Value::Int(0), BankGroups::NONE)),
            ..Row::required(name, kind, meaning).needing(GROUPED)
        }
    }

    /// Their parameters.
    pub const ROWS: &'static [Row] = &[
        Row {
            default: Some((Value::Int(1), BankGroups::NONE)),
            ..Row::required(BankGroups::COUNT, power_of_two(16), "Bank groups of a rank")
        },
        BankGroups::long(
            "medium.timing.tCCD_L",
            "tCCD within a bank group; 0 for tCCD",
        ),
        BankGroups::long(
            "medium.timing.tCCD_L_WR",
            "The same from write to write; 0 for tCCD_L",
        ),
        BankGroups::long(
            "medium.timing.tRRD_L",
            "tRRD within a bank group; 0 for tRRD",
        ),
        BankGroups::long(
            "medium.timing.tWTR_L",
            "tWTR within a bank group; 0 for tWTR",
        ),
        BankGroups::long(
            "medium.timing.tRFCsb",
            "Length of a refresh of one bank of each group; 0: all banks of a rank at once, for tRFC",
        ),
        BankGroups::long(
            "medium.timing.tREFSBRD",
            "From such a refresh to an activate of the rank's other banks",
        ),
    ];

    fn from_settings(settings: &Settings) -> BankGroups {
        let long = |name| settings.named(name);
        BankGroups {
            count: settings.named(BankGroups::COUNT),
            tCCD: ["medium.timing.tCCD_L", "medium.timing.tCCD_L_WR"].map(long),
            tRRD: long("medium.timing.tRRD_L"),
            tWTR: long("medium.timing.tWTR_L"),
            tRFCsb: long("medium.timing.tRFCsb"),
            tREFSBRD: long("medium.timing.tREFSBRD"),
        }
    }

    /// The timings within a group, where 0 stands for that between groups.
    #[must_use]
    pub fn within(&self, between: &Timing) -> BankGroups {
        let or = |long, short| if long == 0 { short } else { long };
        let reads = or(self.tCCD[0], between.tCCD);
        BankGroups {
            count: self.count,
            tCCD: [reads, or(self.tCCD[1], reads)],
            tRRD: or(self.tRRD, between.tRRD),
            tWTR: or(self.tWTR, between.tWTR),
            ..*self
        }
    }
}

/// Which of the queued requests goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// First ready (row hit), first come; after `starvation` row hits in a bank the oldest goes.
    FrFcfs {
        /// Row hits of one bank in a row before an older conflict must go; NVMain's is 4.
        starvation: u32,
    },
    /// Strictly in order of arrival.
    Fcfs,
}

/// What becomes of a row after its column command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePolicy {
    /// It stays open until another row is needed.
    Open,
    /// It is precharged unless another queued request hits it.
    Closed,
}

words!(PagePolicy { "open" => Open, "closed" => Closed });

/// The number of row hits is a key of its own.
impl Setting for Scheduler {
    fn from_value(value: Value) -> Scheduler {
        match value {
            Value::Word("fcfs") => Scheduler::Fcfs,
            _ => Scheduler::FrFcfs { starvation: 1 },
        }
    }

    fn value(self) -> Value {
        Value::Word(match self {
            Scheduler::FrFcfs { .. } => "fr-fcfs",
            Scheduler::Fcfs => "fcfs",
        })
    }
}

impl Word for Scheduler {
    const WORDS: &'static [&'static str] = &["fr-fcfs", "fcfs"];
}

/// The key of [`Scheduler::FrFcfs`]'s number.
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
        "First ready, first come; or strictly in order of arrival";
    "starvation" int(1, 1_000_000),
        "Row hits of a bank before an older conflict must go; fr-fcfs only";
    [page: PagePolicy] "page" Allowed::Word(PagePolicy::WORDS),
        "Whether a row stays open after its column command";
}

mechanisms! {
    JOINED_EVICTION = "joined evictions", least 30, by &Queues::SHORT;
    MERGE = "merges in queues", least 30, by &Queues::SHORT;
    FORWARD = "forwarded reads", least 30, by &Queues::SHORT;
}

impl Queues {
    /// What a crash run sets so that the write queues have room for four lines and drain early.
    pub const SHORT: [(&str, u64); 4] = [
        ("medium.queues.writes", 4),
        ("medium.queues.counter_writes", 4),
        ("medium.queues.high_watermark", 3),
        ("medium.queues.low_watermark", 1),
    ];
}

/// How writes that are accepted together may be merged with queued writes of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMerging {
    /// All members or none; and no other write is merged with a member.
    All,
    /// Each member by itself, as any other write; the others take slots, all at one instant.
    Member,
}

words!(GroupMerging { "all" => All, "member" => Member });

keys! {
    GROUP_MERGING: GroupMerging = word("medium.queues.group_merging", "all"),
        Assumed("SCA: pairing restricts coalescing (Sec. 1), and an entry has one ready bit (Sec. 5.2.2)"),
        "With coalescing, writes that are accepted together (a line and its counter) are merged all or none, or \
         each member by itself";
    REMERGING: bool = flag("medium.queues.remerging", false),
        Assumed("no paper says"),
        "With coalescing, a queued write takes a third write of its line and more, not only a second";
}

section! {
    /// Energy of one line's access.
    AccessEnergy "medium.energy.";
    [read: Energy] "read_nj" Allowed::Nj, "Reading a line that is not in the row buffer";
    [row_hit_read: Energy] "row_hit_read_nj" Allowed::Nj,
        "Reading a line that is in the row buffer";
    [write: Energy] "write_nj" Allowed::Nj, "Writing a line";
}

/// Energy that parts take besides reading and writing, as the currents of their data sheets have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankEnergy {
    /// Writing a line of an open row.
    pub row_hit_write: Energy,
    /// Refreshing a rank once.
    pub refresh: Energy,
    /// A rank that does nothing, a microsecond.
    pub standby: Energy,
}

impl RankEnergy {
    const NONE: Origin = Origin::Source("not counted, as in the machines of the papers");

    const fn none(name: &'static str, meaning: &'static str) -> Row {
        Row {
            default: Some((Value::Energy(Energy::ZERO), RankEnergy::NONE)),
            ..Row::required(name, Allowed::Nj, meaning)
        }
    }

    /// Their parameters.
    pub const ROWS: &'static [Row] = &[
        RankEnergy::none(
            "medium.energy.row_hit_write_nj",
            "Writing a line of an open row; 0 is `write_nj`",
        ),
        RankEnergy::none("medium.energy.refresh_nj", "Refreshing a rank once"),
        RankEnergy::none(
            "medium.energy.standby_nj_per_us",
            "A rank that does nothing, each microsecond: its milliwatts",
        ),
    ];

    fn from_settings(settings: &Settings, write: Energy) -> RankEnergy {
        let get = |name| settings.named::<Energy>(name);
        let row_hit_write = get("medium.energy.row_hit_write_nj");
        RankEnergy {
            row_hit_write: match row_hit_write {
                Energy::ZERO => write,
                known => known,
            },
            refresh: get("medium.energy.refresh_nj"),
            standby: get("medium.energy.standby_nj_per_us"),
        }
    }
}

/// Everything about the medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumParams {
    /// How many channels, ranks, banks, rows and lines there are.
    pub geometry: Geometry,
    /// When commands may follow each other.
    pub timing: Timing,
    /// When they may within a bank group.
    pub groups: BankGroups,
    /// How a line's number is cut up.
    pub mapping: AddressMapping,
    /// Sizes of the queues in which requests wait, and when they drain.
    pub queues: Queues,
    /// How groups of writes are merged with queued ones.
    pub group_merging: GroupMerging,
    /// A queued write that another was merged with takes a third.
    pub remerging: bool,
    /// What answers in the place of banks, if the memory module has a buffer.
    pub buffer: Option<BufferParams>,
    /// What a write does to its cells, if that differs from write to write.
    pub cells: Option<CellParams>,
    /// Which array writes a read interrupts, if any.
    pub pausing: Option<PausingParams>,
    /// Energy of an access, by what it does.
    pub energy: AccessEnergy,
    /// Energy of ranks beside that.
    pub ranks: RankEnergy,
    /// Writes a cell survives, for lifetimes.
    pub endurance: u64,
}

impl MediumParams {
    /// What is of no section of its own.
    pub const ROWS: &'static [Row] =
        rows! { "medium."; "endurance" int(1, 1 << 60), "Writes that a cell survives"; };

    /// As `settings` say.
    pub fn from_settings(settings: &Settings) -> MediumParams {
        let mut queues = Queues::from_settings(settings);
        if let Scheduler::FrFcfs { starvation } = &mut queues.scheduler {
            *starvation = settings.named(STARVATION);
        }
        let (mut timing, cells) = (
            Timing::from_settings(settings),
            CellParams::from_settings(settings),
        );
        timing.tRCD *= cells.map_or(1, |cells| cells.sensings);
        let energy = AccessEnergy::from_settings(settings);
        MediumParams {
            geometry: Geometry::from_settings(settings),
            mapping: settings.get(&MAPPING),
            groups: BankGroups::from_settings(settings),
            timing,
            queues,
            group_merging: settings.get(&GROUP_MERGING),
            remerging: settings.get(&REMERGING),
            buffer: BufferParams::from_settings(settings),
            cells,
            pausing: PausingParams::from_settings(settings),
            ranks: RankEnergy::from_settings(settings, energy.write),
            energy,
            endurance: settings.named("medium.endurance"),
        }
    }
}

macro_rules! units {
    ($($(#[$doc:meta])* $unit:ident $name:literal $what:literal, $number:expr $(, $cost:expr)?;)*) => {
        /// The on-chip units of the controller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Unit {
            $(#[doc = $what] $(#[$doc])* $unit,)*
        }

        impl Unit {
            /// All units, in the order of their discriminants.
            pub const ALL: [Unit; 8] = [$(Unit::$unit),*];

            /// The name used in configuration and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Unit::$unit => $name,)*
                }
            }
        }

        impl UnitParams {
            /// The parameters of all units.
            pub const ROWS: &'static [Row] = &[$(
                Row {
                    $(default: Some($cost[0].0), doubt: Some($cost[0].1),)?
                    ..Row::required(
                    concat!("units.", $name, ".latency_ns"),
                    latency(),
                    concat!($what, ": from start to result"),
                )},
                Row {
                    $(default: Some($cost[1].0), doubt: Some($cost[1].1),)?
                    ..Row::required(
                    concat!("units.", $name, ".interval_ns"),
                    latency(),
                    concat!($what, ": from one start to the next; 0 is any number at once"),
                )},
                Row {
                    $(default: Some($cost[2].0), doubt: Some($cost[2].1),)?
                    ..Row::required(
                    concat!("units.", $name, ".energy_nj"),
                    Allowed::Nj,
                    concat!($what, ": energy of one use"),
                )},
                Row {
                    default: Some($number.0),
                    doubt: $number.1,
                    ..Row::required(
                        concat!("units.", $name, ".number"),
                        int(0, 4_096),
                        concat!($what, ": units side by side; 0 is one a core"),
                    )
                },
            )*];
        }
    };
}

/// How many units there are, who says so, and what else it may be.
type SourcedNumber = ((Value, Origin), Option<Doubt>);

/// One unit, whose interval says how much it does.
const ONE: SourcedNumber = (
    (Value::Int(1), Origin::Source("its interval speaks for it")),
    None,
);
/// A unit a core: what computes a line's hash.
const A_CORE: SourcedNumber = (
    (
        Value::Int(0),
        Origin::Assumed(
            "one a core: ESD Sec. IV-E has the core compute hashes, and Fig. 17 leaves no room for a queue",
        ),
    ),
    Some(Doubt::Between(
        "0",
        "1",
        "one a core, or one for all: ESD Sec. III-C's cascade blocking may mean a single unit",
    )),
);

/// What a use of one costs that no machine has to say: latency, interval, energy.
type Cost = [((Value, Origin), Doubt); 3];

/// The unit of integrity: no machine's paper has one.
const MAC: Cost = [
    (
        (
            Value::Time(Time::from_ps(10_000)),
            Origin::Assumed(
                "no paper of these machines has one; 40 cycles at 4 GHz, as work on secure memory often takes",
            ),
        ),
        Doubt::Between(
            "2.5",
            "80",
            "a short universal hash, to a keyed SHA-1 of 80 stages",
        ),
    ),
    (
        (
            Value::Time(Time::from_ps(2_500)),
            Origin::Assumed("a pipeline of four stages; no source"),
        ),
        Doubt::Between("0", "10", "any number at once, and no pipeline"),
    ),
    (
        (
            Value::Energy(Energy::from_fj(1_500_000)),
            Origin::Assumed("no source; as CRC-32's 1.5 nJ, and below AES's"),
        ),
        Doubt::Between(
            "0.1",
            "36",
            "exclusive-ors of 512 bits at 0.2 pJ, and SHA-1's",
        ),
    ),
];

units! {
    Aes "aes" "AES-128 of a line's pad", ONE;
    Sha1 "sha1" "SHA-1 of a line", A_CORE;
    Crc32 "crc32" "CRC-32 of a line", A_CORE;
    Compare "compare" "Comparison of two lines", ONE;
    /// (ESD's EFIT, the rivals' fingerprint caches).
    Fingerprints "fingerprints" "Look-up of a fingerprint on chip", ONE;
    Metadata "metadata" "Look-up in a metadata cache", ONE;
    Counters "counters" "Look-up in the counter cache", ONE;
    Mac "mac" "Keyed hash of a line (integrity)", ONE, MAC;
}

/// On-chip units of a kind: how long a use takes, how often one may begin, what it costs, how many
/// there are; a use goes to the unit that is free first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitParams {
    /// Time from a use's start to its result.
    pub latency: Time,
    /// Time from one start to the next; 0 is any number at once.
    pub interval: Time,
    /// Energy of one use.
    pub energy: Energy,
    /// How many units work side by side.
    pub number: usize,
}

impl UnitParams {
    /// Those of `unit`, as `settings` say; their `cores` if it is one a core.
    pub fn from_settings(unit: Unit, settings: &Settings) -> UnitParams {
        let name = unit.name();
        let number = match settings.named(&format!("units.{name}.number")) {
            0 => settings.named("cores"),
            number => number,
        };
        UnitParams {
            number,
            latency: settings.named(&format!("units.{name}.latency_ns")),
            interval: settings.named(&format!("units.{name}.interval_ns")),
            energy: settings.named(&format!("units.{name}.energy_nj")),
        }
    }
}

/// What the engine needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineParams {
    /// The medium.
    pub medium: MediumParams,
    /// Requests that may be between admission and acceptance (a write) or answer (a read).
    pub ingress: usize,
    /// The on-chip units, indexed by [`Unit`].
    pub units: [UnitParams; Unit::ALL.len()],
    /// What lies between the processor and all of these, if anything does.
    pub link: Option<LinkParams>,
}

impl EngineParams {
    /// What is neither the medium's nor a unit's.
    pub const ROWS: &'static [Row] = rows! { "engine.";
        "ingress" int(1, 1 << 20), "Requests between admission and acceptance or answer";
    };

    /// As `settings` say.
    pub fn from_settings(settings: &Settings) -> EngineParams {
        EngineParams {
            medium: MediumParams::from_settings(settings),
            ingress: settings.named("engine.ingress"),
            units: Unit::ALL.map(|unit| UnitParams::from_settings(unit, settings)),
            link: LinkParams::from_settings(settings),
        }
    }
}

/// Where the addresses of a trace lie, or of a host that has its own cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// As traced where they are physical, else at first touch.
    #[default]
    ByTrace,
    /// At their own numbers, which have to be below the machine's capacity.
    AsTraced,
    /// Pages in the next free frame when they are first touched.
    FirstTouch,
    /// Pages in any frame, as on a host that has been up for long.
    Scattered,
    /// At their own numbers modulo the capacity.
    Wrapped,
}

words!(Addresses {
    "by-trace" => ByTrace,
    "as-traced" => AsTraced,
    "first-touch" => FirstTouch,
    "scattered" => Scattered,
    "wrapped" => Wrapped,
});

impl Addresses {
    const KIND: Allowed = Allowed::Text {
        known: |text| (Addresses::WORDS.iter().copied()).find(|word| *word == text),
        range: "by-trace, as-traced, first-touch, scattered or wrapped",
        tried: &["scattered"],
    };

    /// What is meant for addresses that are `physical` or virtual: never [`Addresses::ByTrace`].
    #[must_use]
    pub fn of(self, physical: bool) -> Addresses {
        match (self, physical) {
            (Addresses::ByTrace, true) => Addresses::AsTraced,
            (Addresses::ByTrace, false) => Addresses::FirstTouch,
            (given, _) => given,
        }
    }
}

/// What the moments of a trace are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moments {
    /// What the trace says.
    #[default]
    ByTrace,
    /// Arrivals at memory.
    Open,
    /// Gaps of a core.
    Closed,
}

words!(Moments { "by-trace" => ByTrace, "open" => Open, "closed" => Closed });

keys! {
    ADDRESSES: Addresses = text("addresses", Addresses::KIND, "by-trace"),
        Assumed("no paper says where an operating system lays pages"),
        "Where addresses of a trace or a host lie; by-trace is as-traced for physical ones, else first-touch";
    ARRIVALS: Moments = word("arrivals", "by-trace"),
        Source("a trace says whether its moments are stamps of a memory bus"),
        "Whether a trace's cycles are arrivals (open) or gaps of a core (closed)";
    COPIES_SKEW: u64 = int("pages.copies_skew", (0, 1 << 20), 37),
        Assumed("odd, so that copies that run in step do not all meet in one bank"),
        "Pages by which a copy's first page lies further into its share of memory than the copy before's"
        in Between("0", "74", "no skew, and twice the default");
    PROGRAMS_FIRST: u64 = int("pages.programs_first", (0, 1 << 20), 126),
        Assumed("found by search: on machine sca with 1 to 8 cores no two logs, nor a log and its counters, \
                 share a bank"),
        "Pages of memory before the first program's"
        in Between("0", "252", "none, and twice the default");
    CRASH_FIRST: u64 = int("pages.crash_first", (0, 1 << 32), 0),
        Source("for the crash explorer"),
        "Pages of memory before the first program's in a run of `crash`, whose medium is then as large as that takes";
    CRASH_SPARE: u64 = int("pages.crash_spare", (0, 100), 100),
        Source("for the crash explorer"),
        "Lines of the medium beyond those of the programs in a run of `crash`, in percent of these, beside a row";
    CRASH_SHORT: u64 = int("pages.crash_short", (0, 1 << 20), 0),
        Source("for the crash explorer"),
        "In a run of `crash`, places of the medium or buckets of a hardware log that lack, plus 1: at 1 it gets \
         full; from 2 on the run ends because it is full; 0 for room enough";
    CRASH_CACHED: u64 = int("pages.crash_cached", (0, 1 << 20), 0),
        Source("for the crash explorer"),
        "Lines that the processor's caches hold for each core in a run of `crash`; 0 for what its seed draws";
    PROGRAMS_SKEW: u64 = int("pages.programs_skew", (0, 1 << 20), 110),
        Assumed("found with pages.programs_first"),
        "Pages by which a program lies further into its share of memory than the core's before"
        in Between("0", "220", "no skew, and twice the default");
}

section! {
    /// The processor's side: how a trace's gaps become time (`cpu`).
    CoreParams "core.";
    [clock: Time] "clock_ns" clock(), "Length of a core cycle";
    [width: u64] "width" int(1, 64), "Instructions fetched and retired a cycle";
    [window: u64] "window" int(1, 65_536), "Reorder-buffer entries";
    [mshrs: usize] "mshrs" int(1, 4_096),
        "Read misses in flight; with caches simulated, misses of loads and stores";
    [store_queue: usize] "store_queue" int(1, 4_096),
        "With caches simulated: stores that wait for their line";
    [cache_latency: Time] "cache_latency_ns" latency(),
        "Caches on the way to memory, added to a read that missed them all";
}

const THINKS: Needs = Needs {
    met: |settings| settings.get(&THINK_LOADS) > 0,
    switches: &["think.loads"],
    what: "think.loads is more than 0",
};

keys! {
    THINK_INSTRUCTIONS: u32 = int("think.instructions", (0, 1 << 24), 0),
        Source("programs are nothing but transactions unless a machine says otherwise"),
        "Programs: instructions between two transactions";
    THINK_LOADS: u32 = int("think.loads", (0, 1 << 16), 0),
        Source("programs are nothing but transactions unless a machine says otherwise"),
        "Programs: loads of private lines between two transactions, each waiting for the one before";
    THINK_BYTES: u64 = int("think.bytes", (64, 1 << 34), 16_777_216),
        Source("of no effect without think.loads; beyond the caches of every machine"),
        "Programs: private lines of a core that think.loads draws from, in bytes" needs THINKS;
}

/// What a program does between two transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Think {
    /// Instructions that touch no memory.
    pub instructions: u32,
    /// Loads of private lines, each waiting for the one before.
    pub loads: u32,
    /// Private lines; none without loads.
    pub lines: u64,
}

impl Think {
    /// Its parameters.
    pub const KEYS: [&'static dyn AnyKey; 3] = [&THINK_INSTRUCTIONS, &THINK_LOADS, &THINK_BYTES];

    /// As `settings` say.
    pub fn from_settings(settings: &Settings) -> Think {
        let loads = settings.get(&THINK_LOADS);
        Think {
            instructions: settings.get(&THINK_INSTRUCTIONS),
            loads,
            lines: match loads {
                0 => 0,
                _ => settings.get(&THINK_BYTES) / LINE_BYTES as u64,
            },
        }
    }
}

/// One level of the processor's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheLevel {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: usize,
    /// From asking this level to its answer.
    pub latency: Time,
}

/// The processor's caches, for what is simulated from the core down (`cpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachesParams {
    /// Private data cache of each core.
    pub l1: CacheLevel,
    /// Private second level of each core; 0 bytes for none.
    pub l2: CacheLevel,
    /// Shared last level.
    pub llc: CacheLevel,
}

impl CachesParams {
    /// Their parameters.
    pub const ROWS: &'static [Row] = rows! { "caches.";
        "l1.bytes" int(64, 1 << 32), "Data cache of each core";
        "l1.ways" int(1, 64), "Its ways";
        "l1.latency_ns" latency(), "Its answer; a miss asks the next level then";
        "l2.bytes" int(0, 1 << 32), "Second cache of each core; 0 for none";
        "l2.ways" int(1, 64), "Its ways";
        "l2.latency_ns" latency(), "Its answer, asked after L1";
        "llc.bytes" int(64, 1 << 32),
            "Last-level cache, shared by all cores; it holds what any of them has";
        "llc.ways" int(1, 64), "Its ways";
        "llc.latency_ns" latency(), "Its answer, asked after the private levels";
        "llc.per_core" Allowed::Bool, "Its bytes are for each core: N cores share N times as much";
    };

    /// As `settings` say.
    pub fn from_settings(settings: &Settings) -> CachesParams {
        let level = |name| CacheLevel {
            bytes: settings.named(&format!("caches.{name}.bytes")),
            ways: settings.named(&format!("caches.{name}.ways")),
            latency: settings.named(&format!("caches.{name}.latency_ns")),
        };
        CachesParams {
            l1: level("l1"),
            l2: level("l2"),
            llc: level("llc"),
        }
    }
}
