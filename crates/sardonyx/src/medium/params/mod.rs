//! The machine's parameters: geometry, timing by JEDEC names, queues and energy of one channel of the
//! medium; the on-chip units; the processor's side. Each line says what the key takes and means.
//!
//! Timing is in memory-clock cycles, as the parts' own files give it; `config` turns nanoseconds into
//! cycles (rounding up) and validates. Sources are given with each preset.

mod active;
mod bank_groups;
mod caches;
mod cpu;
pub mod drain;
mod energy;
mod geometry;
mod pages;
mod past;
mod queues;
mod refreshes;
mod think;
mod timing;
mod trace;
mod units;

pub use active::{
    ACTIVATE_CYCLES, ACTIVE, ActiveParams, BETWEEN_STACKS, BURSTS, COLUMN_CYCLES, DATA_CLOCK,
    PRECHARGE_CYCLES, RANK_BUSES, REOPENS, RISING_EDGES, SECOND_ACTIVATE, STACKS,
};
pub use bank_groups::{BankGroups, WRITES_TURN};
pub use caches::{CacheLevel, CachesParams};
pub use cpu::CoreParams;
pub use energy::{AccessEnergy, RankEnergy};
pub use geometry::{Geometry, MAX_BANKS};
pub use pages::{
    COPIES_SKEW, CRASH_CACHED, CRASH_ENDURED, CRASH_FIRST, CRASH_SHORT, CRASH_SPARE,
    PROGRAMS_FIRST, PROGRAMS_SKEW,
};
pub use past::{PAST, Past, WRITTEN};
pub use queues::{
    COMMANDS, COMMANDS_OF, CommandQueueParams, CommandsOf, FORWARD, GROUP_MERGING, GroupMerging,
    JOINED_EVICTION, MECHANISMS, MERGE, PASSING, PagePolicy, Queues, REMERGING, ROW_BUS,
    STARVATION, Scheduler,
};
pub use refreshes::{Refreshes, SINGLY, TURNS, Turns};
pub use think::{THINK_BYTES, THINK_INSTRUCTIONS, THINK_LOADS, Think};
pub use timing::{Cycles, Timing};
pub use trace::{ADDRESSES, ARRIVALS, Addresses, Moments};
pub use units::{Unit, UnitParams};

use super::buffer::BufferParams;
use super::cells::CellParams;
use super::link::LinkParams;
use super::mapping::{AddressMapping, MAPPING};
use super::near;
use super::pausing::PausingParams;
use crate::settings::{Allowed, Row, Settings, rows};

const fn int(min: u64, max: u64) -> Allowed {
    Allowed::Int { min, max }
}

const fn power_of_two(max: u64) -> Allowed {
    Allowed::PowerOfTwo { min: 1, max }
}

const fn cycles(min: u64) -> Allowed {
    Allowed::Cycles { min }
}

/// The parameters of the medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumParams {
    /// The numbers of channels, ranks, banks, rows and lines.
    pub geometry: Geometry,
    /// The distances between commands.
    pub timing: Timing,
    /// The distances between commands to one bank group.
    pub groups: BankGroups,
    /// The banks that are refreshed together, and when.
    pub refreshes: Refreshes,
    /// The division of a line's number into fields.
    pub mapping: AddressMapping,
    /// The sizes of the queues in which requests wait, and their watermarks.
    pub queues: Queues,
    /// The merging of groups of writes with queued writes.
    pub group_merging: GroupMerging,
    /// Whether requests are admitted while an access waits for a slot of a full queue.
    pub passing: bool,
    /// The queues of commands of its banks or ranks.
    pub command_queues: CommandQueueParams,
    /// Its queues, if accesses become active.
    pub active: Option<ActiveParams>,
    /// Whether commands of rows have a bus beside that of columns.
    pub row_bus: bool,
    /// Whether a queued write that another one was merged with takes a third.
    pub remerging: bool,
    /// The buffer that replaces the banks, if the memory module has one.
    pub buffer: Option<BufferParams>,
    /// The programming of cells, if it differs from write to write.
    pub cells: Option<CellParams>,
    /// The interruption of array writes by reads, if there is any.
    pub pausing: Option<PausingParams>,
    /// The energy of an access.
    pub energy: AccessEnergy,
    /// The energy of ranks in addition to accesses.
    pub ranks: RankEnergy,
    /// The number of writes that a cell survives, for lifetimes.
    pub endurance: u64,
}

impl MediumParams {
    /// Parameters that are in no section of their own.
    pub const ROWS: &'static [Row] =
        rows! { "medium."; "endurance" int(1, 1 << 60), "Writes that a cell survives"; };

    /// The parameters in `settings`.
    pub fn from_settings(settings: &Settings) -> MediumParams {
        let mut queues = Queues::from_settings(settings);
        if let Scheduler::FrFcfsCap { starvation } = &mut queues.scheduler {
            *starvation = settings.named(STARVATION);
        }
        let (mut timing, cells) = (
            Timing::from_settings(settings),
            CellParams::from_settings(settings),
        );
        timing.tRCD *= cells.map_or(1, |cells| cells.sensings);
        let energy = AccessEnergy::from_settings(settings);
        let groups = BankGroups::from_settings(settings);
        MediumParams {
            geometry: Geometry::from_settings(settings),
            mapping: settings.get(&MAPPING).in_groups(groups.count),
            groups,
            refreshes: Refreshes::from_settings(settings),
            timing,
            queues,
            group_merging: settings.get(&GROUP_MERGING),
            passing: settings.get(&PASSING),
            command_queues: CommandQueueParams::from_settings(settings),
            active: ActiveParams::from_settings(settings),
            row_bus: settings.get(&ROW_BUS),
            remerging: settings.get(&REMERGING),
            buffer: BufferParams::from_settings(settings),
            cells,
            pausing: PausingParams::from_settings(settings),
            ranks: RankEnergy::from_settings(settings, energy.write),
            energy,
            endurance: settings.named("medium.endurance"),
        }
    }

    /// Whether its channels act in single cycles, whatever their banks do.
    pub(crate) fn is_special(&self) -> bool {
        self.buffer.is_some() || self.command_queues.entries > 0 || self.active.is_some()
    }
}

/// The key of [`EngineParams::ingress`]. Where nobody sets it, it follows from the queues.
pub const INGRESS: &str = "engine.ingress";
/// The most requests of an ingress.
pub const MAX_INGRESS: u64 = 1 << 20;

/// The parameters of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineParams {
    /// The medium.
    pub medium: MediumParams,
    /// The near medium, if there is one.
    pub near: Option<Box<MediumParams>>,
    /// Requests that may be between admission and acceptance (writes) or answer (reads).
    pub ingress: usize,
    /// The on-chip units, indexed by [`Unit`].
    pub units: [UnitParams; Unit::ALL.len()],
    /// The link between the processor and the memory, if there is one.
    pub link: Option<LinkParams>,
}

impl EngineParams {
    /// Parameters that are neither the medium's nor a unit's.
    pub const ROWS: &'static [Row] = rows! { "engine.";
        "ingress" int(1, MAX_INGRESS), "Requests between admission and acceptance or answer";
    };

    /// The parameters in `settings`.
    pub fn from_settings(settings: &Settings) -> EngineParams {
        EngineParams {
            medium: MediumParams::from_settings(settings),
            near: near::settings(settings).map(|near| Box::new(MediumParams::from_settings(&near))),
            ingress: settings.named(INGRESS),
            units: Unit::ALL.map(|unit| UnitParams::from_settings(unit, settings)),
            link: LinkParams::from_settings(settings),
        }
    }
}
