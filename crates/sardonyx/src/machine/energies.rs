//! The energy of a run in parts.

use super::outcome::time;
use crate::engine::Service;
use crate::figures::{Amount, Figures};
use crate::medium::params::MediumParams;
use crate::units::{Energy, Time};

/// What a medium has done in a run.
pub(super) struct Done<'m> {
    pub medium: &'m MediumParams,
    pub service: [Service; 2],
    /// For how long its ranks had open rows, summed.
    pub active: Time,
}

/// The energies of one medium in parts, in nanojoules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    /// The first three of them together.
    accesses: f64,
    reading: f64,
    writing: f64,
    opening: f64,
    refreshing: f64,
    standing: f64,
}

impl Parts {
    /// The parts of a medium in a run of that length.
    pub fn of(done: &Done, simulated: Time) -> Parts {
        let medium = done.medium;
        let ranks = (medium.geometry.channels * medium.geometry.ranks) as f64;
        let refresh = match medium.timing.tREFI {
            0 => 0.0,
            cycles => simulated.ns() / (cycles as f64 * medium.timing.clock.ns()),
        };
        // Writes may keep rows open after the last answer.
        let (all, active) = (
            simulated.ns() * ranks,
            done.active.ns().min(simulated.ns() * ranks),
        );
        let opening = |miss: Energy, hit: Energy, service: &Service| {
            let misses = service.accesses - service.row_hits;
            misses as f64 * (miss.nj() - hit.nj()).max(0.0)
        };
        let [reads, writes] = &done.service;
        let energy = &medium.energy;
        let opened = [
            opening(energy.read, energy.row_hit_read, reads),
            opening(energy.write, medium.ranks.row_hit_write, writes),
        ];
        Parts {
            accesses: reads.energy.nj() + writes.energy.nj(),
            reading: reads.energy.nj() - opened[0],
            writing: writes.energy.nj() - opened[1],
            opening: opened[0] + opened[1],
            refreshing: refresh * ranks * medium.ranks.refresh.nj(),
            standing: (all - active) * 1e-3 * medium.ranks.standby.nj()
                + active * 1e-3 * medium.ranks.active.nj(),
        }
    }

    /// All of it.
    pub fn whole(&self) -> f64 {
        self.accesses + self.refreshing + self.standing
    }
}

/// Adds the energy of a run in parts, those of all media together: what accesses and units have `booked`, refreshes and
/// ranks that stand by.
pub(super) fn put(out: &mut Figures, media: &[Parts], booked: Energy, simulated: Time) {
    let sum = |of: fn(&Parts) -> f64| media.iter().map(of).sum::<f64>();
    let (refresh, standby) = (sum(|parts| parts.refreshing), sum(|parts| parts.standing));
    let whole = booked.nj() + refresh + standby;
    out.put(&time::ENERGY, whole);
    out.put(&time::POWER, Amount::share(whole * 1e3, simulated.ns()));
    out.put(&time::READING, sum(|parts| parts.reading));
    out.put(&time::WRITING, sum(|parts| parts.writing));
    out.put(&time::OPENING, sum(|parts| parts.opening));
    out.put(&time::REFRESHING, refresh);
    out.put(&time::STANDING, standby);
    out.put(&time::UNITS, booked.nj() - sum(|parts| parts.accesses));
}
