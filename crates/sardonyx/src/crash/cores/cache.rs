//! A core's cache, which has no geometry: what it fetches, writes back and drops.

use rand::Rng;

use super::{Cached, Cores, Flight};
use crate::controller::{Class, Persist, Write};
use crate::crash::view::noise;
use crate::engine::journal;
use crate::line::{Line, Logical};
use crate::plan::{At, Step, Stored};
use crate::stats::Kind;
use crate::units::Time;

impl Cores<'_> {
    /// The line in the core's cache, read from memory if it was not there.
    pub(super) fn fetch(&mut self, core: usize, line: Logical) -> Cached {
        if let Some(cached) = self.cores[core].cache.get(&line.0) {
            return *cached;
        }
        let mut value = None;
        let class = self.class(core, line);
        self.admit(core, Kind::Read, |controller, plan| {
            let read = controller.read(line, class, Step::PAST, plan);
            value = read.value;
            Stored::at(read.at)
        });
        let cached = Cached {
            line: value.unwrap_or_else(|| noise(line.0)),
            dirty: false,
            persist: Persist::Relaxed,
        };
        let core = &mut self.cores[core];
        core.cache.insert(line.0, cached);
        core.order.push(line.0);
        cached
    }

    pub(super) fn store(&mut self, core: usize, line: Logical, data: Line, atomic: bool) {
        let owner = &mut self.cores[core];
        let persist = match owner.cache.get(&line.0) {
            _ if atomic => Persist::CounterAtomic,
            Some(cached) => cached.persist,
            None => {
                owner.order.push(line.0);
                Persist::Relaxed
            }
        };
        let cached = Cached {
            line: data,
            dirty: true,
            persist,
        };
        owner.cache.insert(line.0, cached);
        let now = Time::from_ps(self.now);
        let stored = journal::Stored {
            line,
            data,
            persist,
        };
        let journal = self.engine.journal().expect("one is kept");
        journal.store(now, stored);
    }

    /// `clwb`: what is on its way to memory of this line, the next fence waits for.
    pub(super) fn flush(&mut self, core: usize, line: Logical) {
        self.write_back(core, line, true);
        let owner = &mut self.cores[core];
        for flight in self.flights.values_mut() {
            if flight.line == Some(line) && flight.core == core && !flight.waited {
                flight.waited = true;
                owner.outstanding += 1;
            }
        }
    }

    /// Writes a dirty line to memory, and keeps it.
    fn write_back(&mut self, core: usize, line: Logical, waited: bool) {
        let class = self.class(core, line);
        let Some(cached) = self.cores[core].cache.get_mut(&line.0) else {
            return;
        };
        if !std::mem::take(&mut cached.dirty) {
            return;
        }
        let persist = std::mem::take(&mut cached.persist);
        let data = cached.line;
        self.depart(core, Some(line), waited);
        self.admit(core, Kind::Write, |controller, plan| {
            plan.handled(line, &data, class, persist);
            let write = Write {
                class,
                order: persist,
                core: core as u32,
                ..Write::new(line, At::past(&data))
            };
            controller.write(write, plan)
        });
    }

    pub(super) fn counter_write_back(&mut self, core: usize, line: Logical) {
        self.depart(core, None, true);
        self.admit(core, Kind::Write, |controller, plan| {
            controller.persist_metadata(line, Step::PAST, plan)
        });
    }

    /// The next admitted write request is this one.
    fn depart(&mut self, core: usize, line: Option<Logical>, waited: bool) {
        self.tag += 1;
        self.cores[core].outstanding += u32::from(waited);
        let flight = Flight { core, line, waited };
        self.flights.insert(self.tag, flight);
    }

    pub(super) fn evict(&mut self, core: usize) {
        let lines = self.cores[core].order.len() as u32;
        if lines == 0 {
            return;
        }
        let index = (self.random.next_u32() % lines) as usize;
        let line = Logical(self.cores[core].order[index]);
        self.write_back(core, line, false);
        self.drop_line(core, line);
    }

    pub(super) fn drop_line(&mut self, core: usize, line: Logical) {
        let core = &mut self.cores[core];
        core.cache.remove(&line.0);
        core.order.retain(|known| *known != line.0);
    }

    fn class(&self, core: usize, line: Logical) -> Class {
        match self.cores[core].source.log_lines().contains(&line.0) {
            true => Class::Log,
            false => Class::Data,
        }
    }
}
