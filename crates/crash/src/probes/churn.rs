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

impl History {
    /// Has lines change again and again, half of them to what others hold or to its twins, which have the same
    /// fingerprints, over some lives. The medium has exactly one place for each line, fingerprints are short, and counts
    /// are soon full. Lives end in order; then all of them with a cut, after which a recovery has to find again what the
    /// caches knew.
    pub fn churned(&self) -> Option<Crowded> {
        if !self.finds_duplicates() {
            return None;
        }
        // Logic that is not called here gives the lines that a cut leaves their MACs, and a near cache keeps lines that
        // nobody flushes.
        let may_cut = self.stack.integrity.power_fail.is_none()
            && self.guarantee != Guarantee::Nothing
            && near::settings(&self.machine.settings).is_none();
        let ends = [true, false]
            .into_iter()
            .filter(|orderly| *orderly || may_cut);
        ends.into_iter()
            .find_map(|orderly| self.churned_until(orderly))
    }

    fn churned_until(&self, orderly: bool) -> Option<Crowded> {
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
                let order = if orderly {
                    Persist::Relaxed
                } else {
                    Persist::CounterAtomic
                };
                life.handle(Write {
                    order,
                    ..Write::new(line, At::past(&data))
                });
                if let Err(why) = life.fits() {
                    return Some(Crowded::Full(why));
                }
            }
            if orderly {
                life.flush();
                life.untimed.settle();
                life = life.then(build());
            } else {
                life = life.cut(build());
            }
            if let Some(wrong) = life.misread(&held) {
                return Some(Crowded::Misread(wrong));
            }
            if orderly {
                life.untimed.forget();
                life = life.then(build());
            }
        }
        None
    }
}
