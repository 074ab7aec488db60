//! Lines that change again and again in a medium without room to spare.

use std::collections::BTreeMap;

use sardonyx_base::random::mix;

use super::life::UntimedLife;
use super::{Crowded, content};
use crate::history::History;
use sardonyx::controller::Write;
use sardonyx::controller::layers::Guarantee;
use sardonyx::controller::mapping::places::least_lines;
use sardonyx::line::{Line, Logical, Persist};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::near;
use sardonyx::plan::At;
use sardonyx::settings::{Pressure, Value};
use sardonyx_workload::twin_of;

/// The number of lines of a full medium, and how often they change in a life and in all.
const CROWD: u64 = 96;
const CHANGES: u64 = 400;
const LIVES: u64 = 4;

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Orderly,
    /// With a power cut.
    Cut,
    /// With a power cut that drains the caches.
    Drained,
}

impl History {
    /// Has lines change again and again, half of them to what others hold or to its twins, which have the same
    /// fingerprints, over some lives. The medium has exactly one place for each line, fingerprints are short, and counts
    /// are soon full. Lives end in order; then all of them with a cut, after which a recovery has to find again what the
    /// caches knew, or that those are drained.
    pub fn churned(&self, drains_caches: bool) -> Option<Crowded> {
        if !self.finds_duplicates() {
            return None;
        }
        // Logic that is not called here gives the lines that a cut leaves their MACs, and a near cache keeps lines that
        // nobody flushes.
        let may_cut = self.stack.integrity.power_fail.is_none()
            && self.guarantee != Guarantee::Nothing
            && near::settings(&self.machine.settings).is_none();
        let cut = match drains_caches {
            true => End::Drained,
            false => End::Cut,
        };
        let mut ends = std::iter::once(End::Orderly).chain(may_cut.then_some(cut));
        ends.find_map(|end| self.churned_until(end))
    }

    fn churned_until(&self, end: End) -> Option<Crowded> {
        let mut settings = self.with_room();
        let pressure = Pressure {
            collisions: true,
            limits: true,
            ..Pressure::default()
        };
        for (name, value) in self.pressed(&pressure) {
            settings.put(name, Value::Int(value));
        }
        let lines = least_lines(CROWD, &settings);
        let build = || self.stack.build(&settings, &mut Layout::new(lines));
        let mut held: BTreeMap<Logical, Line> = BTreeMap::new();
        let mut life = UntimedLife::recovered(build(), Image::sparse());
        for round in 0..LIVES {
            for change in round * CHANGES..(round + 1) * CHANGES {
                let dice = mix(change ^ mix(self.seed));
                let line = match change {
                    0..CROWD => change,
                    _ => dice % CROWD,
                };
                let shared = dice >> 32 & 1 == 1;
                let number = if shared { dice >> 40 & 7 } else { 8 + change };
                let twin = if shared { dice >> 43 & 1 } else { 0 };
                let (line, data) = (Logical(line), twin_of(content(0, number), twin as usize));
                held.insert(line, data);
                let order = match end {
                    End::Orderly => Persist::Relaxed,
                    End::Cut | End::Drained => Persist::CounterAtomic,
                };
                life.handle(Write {
                    order,
                    ..Write::new(line, At::past(&data))
                });
                if let Err(why) = life.fits() {
                    return Some(Crowded::Full(why));
                }
            }
            match end {
                End::Orderly => {
                    life.flush();
                    life.untimed.settle();
                    life = life.then(build());
                }
                End::Cut => life = life.cut(build()),
                End::Drained => {
                    life = UntimedLife::recovered(build(), life.untimed.drained(|_| true));
                }
            }
            if let Some(wrong) = life.misread(&held) {
                return Some(Crowded::Misread(wrong));
            }
            if end == End::Orderly {
                life.untimed.forget();
                life = life.then(build());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sardonyx::config::Machine;
    use sardonyx_workload::ProgramSpec;

    /// Counts that a recovery trusts are in a cache: a cut loses them, unless it drains the cache.
    #[test]
    fn a_cut_that_drains_caches_takes_no_counts() {
        let spec = ProgramSpec {
            name: "queue".into(),
            item_bytes: 64,
            footprint: 4096,
            transactions: 2,
            seed: 1,
            ..ProgramSpec::default()
        };
        let machine = Machine::load::<&str, &str>("sca", &[]).expect("a machine");
        let history = History::record(&machine, "dedup-sha1", &[spec], 1).expect("a run");
        assert!(matches!(history.churned(false), Some(Crowded::Misread(_))));
        assert!(history.churned(true).is_none());
    }
}
