//! The energy of a run in parts.

use super::outcome::time;
use crate::engine::Service;
use crate::figures::{Amount, Figures};
use crate::medium::params::MediumParams;
use crate::units::{Energy, Time};

/// Adds the energy that accesses and units have `booked`, with that of refreshes and of ranks that stand by: for how
/// long the run lasted, and for how long ranks had open rows, summed.
pub(super) fn put(
    out: &mut Figures,
    medium: &MediumParams,
    booked: Energy,
    service: &[Service; 2],
    [simulated, active]: [Time; 2],
) {
    let ranks = (medium.geometry.channels * medium.geometry.ranks) as f64;
    let refresh = match medium.timing.tREFI {
        0 => 0.0,
        cycles => simulated.ns() / (cycles as f64 * medium.timing.clock.ns()),
    };
    let refresh = refresh * ranks * medium.ranks.refresh.nj();
    // Writes may keep rows open after the last answer.
    let (all, active) = (
        simulated.ns() * ranks,
        active.ns().min(simulated.ns() * ranks),
    );
    let standby = (all - active) * 1e-3 * medium.ranks.standby.nj()
        + active * 1e-3 * medium.ranks.active.nj();
    let opening = |miss: Energy, hit: Energy, service: &Service| {
        let misses = service.accesses - service.row_hits;
        misses as f64 * (miss.nj() - hit.nj()).max(0.0)
    };
    let [reads, writes] = service;
    let energy = &medium.energy;
    let opened = [
        opening(energy.read, energy.row_hit_read, reads),
        opening(energy.write, medium.ranks.row_hit_write, writes),
    ];
    let accesses = reads.energy.nj() + writes.energy.nj();
    let whole = booked.nj() + refresh + standby;
    out.put(&time::ENERGY, whole);
    out.put(&time::POWER, Amount::share(whole * 1e3, simulated.ns()));
    out.put(&time::READING, reads.energy.nj() - opened[0]);
    out.put(&time::WRITING, writes.energy.nj() - opened[1]);
    out.put(&time::OPENING, opened[0] + opened[1]);
    out.put(&time::REFRESHING, refresh);
    out.put(&time::STANDING, standby);
    out.put(&time::UNITS, booked.nj() - accesses);
}
