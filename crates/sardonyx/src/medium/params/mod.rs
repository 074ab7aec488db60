//! The machine's parameters: geometry, timing by JEDEC names, queues and energy of one channel of the
//! medium; the on-chip units; the processor's side. Each line says what the key takes and means.
//!
//! Timing is in memory-clock cycles, as the parts' own files give it; `config` turns nanoseconds into
//! cycles (rounding up) and validates. Sources are given with each preset.

mod bank_groups;
mod caches;
mod cpu;
mod energy;
mod geometry;
mod pages;
mod queues;
mod think;
mod timing;
mod trace;
mod units;

pub use bank_groups::BankGroups;
pub use caches::{CacheLevel, CachesParams};
pub use cpu::CoreParams;
pub use energy::{AccessEnergy, RankEnergy};
pub use geometry::{Geometry, MAX_BANKS};
pub use pages::{
    COPIES_SKEW, CRASH_CACHED, CRASH_FIRST, CRASH_SHORT, CRASH_SPARE, PROGRAMS_FIRST, PROGRAMS_SKEW,
};
pub use queues::{
    FORWARD, GROUP_MERGING, GroupMerging, JOINED_EVICTION, MECHANISMS, MERGE, PagePolicy, Queues,
    REMERGING, STARVATION, Scheduler,
};
pub use think::{THINK_BYTES, THINK_INSTRUCTIONS, THINK_LOADS, Think};
pub use timing::{Cycles, Timing};
pub use trace::{ADDRESSES, ARRIVALS, Addresses, Moments};
pub use units::{Unit, UnitParams};

use super::buffer::BufferParams;
use super::cells::CellParams;
use super::link::LinkParams;
use super::mapping::{AddressMapping, MAPPING};
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
