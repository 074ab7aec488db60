//! What a near medium has done in a run.

use super::energies::{Done, Parts};
use super::outcome::Finished;
use crate::engine::Service;
use crate::figures::{Amount, Figures};
use crate::line::{LINE_BYTES, Tier};
use crate::stats::Direction;
use crate::units::Time;

crate::figures::figures! { "The near medium";
    READS: Count Less "near_reads", "all reads of the near medium: lines, and tags that come with them";
    WRITES: Count Less "near_writes", "all writes to the near medium";
    BANDWIDTH: GigabytesPerSecond More "near_gb_per_s",
        "bytes of all lines that the near medium has read and written, by `simulated_ns`";
    READ_TOTAL: Nanoseconds Less "near_read_total_ns", "mean time of the near medium's reads, queue included";
    WRITE_TOTAL: Nanoseconds Less "near_write_total_ns", "mean time of the near medium's writes, queue included";
    ROW_HIT_RATE: Ratio More "near_row_hit_rate", "share of the near medium's accesses that found their row open";
    ENERGY: Nanojoules Less "near_energy_nj", "of `energy_nj`, the near medium's";
}

/// Adds what the near medium has done, if there is one. Returns its energies.
pub(super) fn put(sim: &Finished, simulated: Time, out: &mut Figures) -> Parts {
    let Some(medium) = &sim.machine.engine.near else {
        return Parts::default();
    };
    let (memory, end) = (&sim.port.memory, sim.port.last_answer);
    let total = memory.ledger().grand_total();
    let done = Done {
        medium,
        service: [Direction::Read, Direction::Write]
            .map(|kind| memory.service_of(Tier::Near, kind)),
        active: memory.active(Tier::Near, end),
    };
    let moved = (total.near_reads + total.near_writes) * LINE_BYTES as u64;
    let mean = |service: &Service| Amount::share(service.total.ns(), service.accesses as f64);
    let [reads, writes] = &done.service;
    let hits = (reads.row_hits + writes.row_hits) as f64;
    let parts = Parts::of(&done, simulated);
    out.put(&READS, total.near_reads);
    out.put(&WRITES, total.near_writes);
    out.put(&BANDWIDTH, Amount::share(moved as f64, simulated.ns()));
    out.put(&READ_TOTAL, mean(reads));
    out.put(&WRITE_TOTAL, mean(writes));
    let accesses = (reads.accesses + writes.accesses) as f64;
    out.put(&ROW_HIT_RATE, Amount::share(hits, accesses));
    out.put(&ENERGY, parts.whole());
    parts
}
