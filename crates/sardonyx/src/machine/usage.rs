//! How much of a machine was in use, and where its medium was worn.

use crate::config::Machine;
use crate::figures::Amount;
use crate::line::Tier;
use crate::medium::image::{ImagePart, Worn};
use crate::medium::params::Unit;
use crate::memory::Memory;
use crate::stats::Direction;
use crate::units::Time;

const PARTS: usize = 64;

/// The use of a machine's parts over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// The share of time for which each bank had an access that was selected and not done, channel after channel and
    /// rank after rank; empty behind a module's buffer.
    pub banks: Vec<Amount>,
    /// The share of time for which each channel's data bus carried data.
    pub buses: Vec<Amount>,
    /// The mean share of slots taken, of all read queues and of all write queues.
    pub queues: [Amount; 2],
    /// Each kind of unit that was used: its name, its uses, and the share of time in which it could not begin another
    /// use; absent for units that can begin any number at once.
    pub units: Vec<(&'static str, u64, Amount)>,
    /// The number of lines for each range of write counts.
    pub worn: Vec<Worn>,
    /// Parts of the medium with equal numbers of lines: the name of the region in which each begins, and its writes.
    pub map: Vec<(&'static str, ImagePart)>,
}

impl Usage {
    pub(super) fn measure(machine: &Machine, memory: &Memory, took: Time) -> Usage {
        let medium = &machine.engine.medium;
        let share = |busy: u64| Amount::share(busy as f64, took.ps() as f64);
        let banks = memory.banks(Tier::Far);
        let channels = medium.geometry.channels;
        let of_a_channel = (banks.len() as u64 / channels).max(1) as usize;
        let burst = medium.timing.tBURST * medium.timing.clock.ps();
        let own_buses = medium.active.is_some_and(|active| active.rank_buses);
        let burst = burst / if own_buses { medium.geometry.ranks } else { 1 };
        let bus = |banks: &[crate::engine::BankUse]| {
            share(banks.iter().map(|bank| bank.accesses).sum::<u64>() * burst)
        };
        let slots = [
            medium.queues.reads,
            medium.queues.writes + medium.queues.counter_writes,
        ];
        let queues = [Direction::Read, Direction::Write].map(|kind| {
            let queued = memory.service(kind).queued.ps() as f64;
            let all = slots[kind as usize] as f64 * channels as f64 * took.ps() as f64;
            Amount::share(queued, all)
        });
        let units = Unit::ALL.into_iter().zip(memory.unit_uses());
        let units = units.filter(|(_, uses)| *uses > 0).map(|(unit, uses)| {
            let params = &machine.engine.units[unit as usize];
            let busy = match params.interval {
                Time::ZERO => Amount::Absent,
                interval => share(uses * interval.ps() / params.number.max(1) as u64),
            };
            (unit.name(), uses, busy)
        });
        let image = memory.image();
        let parts = image.parts(PARTS).into_iter();
        Usage {
            banks: banks.iter().map(|bank| share(bank.busy.ps())).collect(),
            buses: banks.chunks(of_a_channel).map(bus).collect(),
            queues,
            units: units.collect(),
            worn: image.worn(),
            map: parts
                .map(|part| (memory.region_of(part.first), part))
                .collect(),
        }
    }
}
