//! A mapping of the tests' own, small and right: equal lines share a place, found by check bits on chip and compared, as
//! ESD does it; in the form in which mappings persist with their lines, and in the one in which they persist on demand.
//! It uses the library's tables and places, and decides itself what waits for what. A fault is one [`Slip`].

use std::collections::BTreeMap;

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Guarantee, Mapping};
use sardonyx::controller::mapping::amt::{Amt, AmtEntry, When, placement};
use sardonyx::controller::mapping::efit::Efit;
use sardonyx::controller::mapping::esd::AMT_CACHE;
use sardonyx::controller::mapping::places::{Allocator, Paged};
use sardonyx::controller::mapping::references::{Left, References};
use sardonyx::controller::metadata_cache::MetadataCache;
use sardonyx::controller::{Class, Encryption, Layer, Persist, Storey, Write};
use sardonyx::ecc::{self, Matrix};
use sardonyx::exhausted::Exhausted;
use sardonyx::line::{Line, Logical, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::Unit;
use sardonyx::plan::{At, Fetched, Plan, Queue, Step, Stored};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What the mapping does wrong.
    Slip {
        Nothing, ComparisonSkipped, ComparesHalf, SharedFreedEarly, CheckKeepsFreed, CountsTrusted,
        PlacesForgotten, MappingBeforeLine, MappingNotAwaited, DuplicateNotPersisted, PlaceNotAwaited,
        LetGoForgotten, OwnPlaceUngated, SpanOneLine, SpanCountersOfHome, DuplicateUngated,
        FullWritesOver, FullGivesShared, FreedOnce, DuplicateNotCounted, FlushForgotten, RecountOf4Bits,
        CountOf4Bits, UnwrittenShown, KeptBeyondWrite, KeptUncompared, KeptOfWrite,
    }
}

struct Own {
    slip: Slip,
    sound: bool,
    checks: Efit,
    table: Amt,
    places: Allocator,
    lines_at: Paged<u32>,
    freed: Paged<bool>,
    /// The lines that were compared, by place, in the form that keeps them on chip, as FSDedup does.
    kept: Option<BTreeMap<u64, At<Line>>>,
    below: Encryption,
}

/// The forms of the mapping: entries persist on demand, or with their lines; with their lines, and compared lines stay.
const ON_DEMAND: usize = 0;
const SOUND: usize = 1;
const KEEPING: usize = 2;

impl Own {
    fn new(
        (slip, form): (Slip, usize),
        settings: &Settings,
        below: Encryption,
        layout: &mut Layout,
    ) -> Own {
        let cache = MetadataCache::new(&AMT_CACHE, Unit::Metadata, Queue::Data, settings);
        Own {
            slip,
            sound: form != ON_DEMAND,
            checks: Efit::new(settings),
            table: Amt::new(true, cache, layout),
            places: Allocator::new(layout.data_lines(), settings),
            lines_at: Paged::default(),
            freed: Paged::default(),
            kept: (form == KEEPING).then(BTreeMap::new),
            below,
        }
    }

    fn order(&self, asked: Persist) -> Persist {
        if self.sound {
            Persist::CounterAtomic
        } else {
            asked
        }
    }

    /// The place that has the content, if one is known to, and the step after which that is known.
    fn search(&mut self, data: At<&Line>, check: u64, plan: &mut Plan) -> At<Option<Place>> {
        let known = plan.unit(Unit::Fingerprints, data.at);
        let Some(similar) = self.checks.find(check, None) else {
            return At::new(None, known);
        };
        let after = plan.both(known, similar.at);
        let tag = similar.place.0;
        let kept = self.kept.as_ref().and_then(|kept| kept.get(&tag)).copied();
        let stored = match kept {
            Some(line) => At::new(Some(line.value), plan.both(after, line.at)),
            None => self.below.read(similar.place, Class::Data, after, plan),
        };
        if let (Some(kept), Some(mut line)) = (&mut self.kept, stored.value) {
            if self.slip == Slip::KeptOfWrite {
                line = *data.value;
            }
            kept.insert(tag, At::new(line, stored.at));
        }
        let equal = match self.slip {
            Slip::KeptUncompared if kept.is_some() => true,
            Slip::ComparisonSkipped => true,
            Slip::ComparesHalf => stored
                .value
                .is_some_and(|line| line[..32] == data.value[..32]),
            _ => stored.value.as_ref() == Some(data.value),
        };
        At::new(equal.then_some(similar.place), stored.at)
    }

    /// Maps the line of `entry` to `place`, which was written for it if it is `fresh`.
    fn remap(
        &mut self,
        (entry, place, fresh): (AmtEntry, Place, bool),
        (when, order): (When, Persist),
        plan: &mut Plan,
    ) -> Stored {
        let ripe = plan.both(entry.cached.at, when.ripe);
        let persisted = match self.slip {
            Slip::DuplicateNotPersisted if !fresh => Persist::Relaxed,
            _ => order,
        };
        if entry.place == Some(place) && !fresh {
            return self
                .table
                .persist(entry.line, Stored::at(ripe), persisted, plan);
        }
        let leaves = match self.slip {
            Slip::MappingBeforeLine => entry.cached.at,
            _ => ripe,
        };
        self.table.set(
            &entry,
            place,
            When {
                ripe: leaves,
                ..when
            },
            plan,
        );
        let count = self.table.count(place, when.decided, plan);
        let lines = if fresh {
            References::ONE
        } else {
            count.refer.one_more()
        };
        let skipped = match self.slip {
            Slip::DuplicateNotCounted => !fresh,
            Slip::CountOf4Bits => lines.byte() > 15,
            _ => false,
        };
        if !skipped {
            self.table.set_count(count, lines, ripe, plan);
        }
        let stored = self
            .table
            .persist(entry.line, Stored::at(leaves), persisted, plan);
        if let Some(old) = entry.place {
            self.leave(old, when.decided, stored.accepted, plan);
        }
        match self.slip {
            Slip::MappingNotAwaited => Stored::at(ripe),
            _ => stored,
        }
    }

    /// One line less refers to `place`, once `unmapped` is finished.
    fn leave(&mut self, place: Place, after: Step, unmapped: Step, plan: &mut Plan) {
        let count = self.table.count(place, after, plan);
        let Left::Some(less) = count.refer.one_less() else {
            return;
        };
        self.table.set_count(count, less, unmapped, plan);
        let unmapped = match self.slip {
            Slip::PlaceNotAwaited => Step::PAST,
            _ => unmapped,
        };
        let last = match self.slip {
            Slip::SharedFreedEarly => References::ONE,
            _ => References::NONE,
        };
        if less > last {
            if self.slip != Slip::LetGoForgotten {
                self.places.let_go(place, unmapped, plan);
            }
            return;
        }
        if self.slip != Slip::CheckKeepsFreed {
            self.checks.forget(place);
        }
        if self.slip == Slip::FreedOnce && std::mem::replace(self.freed.at(place.0), true) {
            return;
        }
        self.places.free(place, unmapped, plan);
    }

    /// A place for the line of `entry`, which gives its old one up first where no place is free.
    fn allocate(&mut self, entry: &mut AmtEntry, known: Step, plan: &mut Plan) -> (Place, Step) {
        let home = Place(entry.line.0);
        let mut free = self.places.allocate(home, plan);
        if free.is_none() && self.slip == Slip::FullWritesOver {
            free = Some((home, Step::PAST));
        }
        if let (None, Some(old)) = (free, entry.place) {
            if self.slip == Slip::FullGivesShared {
                self.places.free(old, Step::PAST, plan);
            }
            self.leave(old, known, known, plan);
            free = self.places.allocate(home, plan);
            let table = self.table.table_line(entry.line);
            entry.cached = self.table.cache.revisit(table, known, plan);
            entry.place = None;
        }
        let (place, unmapped) = free.unwrap_or_else(|| {
            plan.fail(Exhausted::medium_full("give the machine more rows"));
            (home, Step::PAST)
        });
        let ungated = self.slip == Slip::OwnPlaceUngated && place == home;
        (place, if ungated { Step::PAST } else { unmapped })
    }
}

impl Storey for Own {
    fn below(&self) -> Option<&dyn Storey> {
        Some(&*self.below)
    }

    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        Some(&mut *self.below)
    }

    fn flush(&mut self, plan: &mut Plan) {
        if self.slip != Slip::FlushForgotten {
            self.table.cache.flush(plan);
        }
    }

    fn recover(&mut self, plan: &mut Plan) {
        let (slip, places, lines_at) = (self.slip, &mut self.places, &mut self.lines_at);
        self.table.scan(plan, |_, place| {
            if slip != Slip::PlacesForgotten {
                places.take(place);
            }
            let lines = lines_at.at(place.0);
            if slip != Slip::RecountOf4Bits || *lines < 15 {
                *lines += 1;
            }
        });
        if slip != Slip::CountsTrusted {
            self.table.recount(&self.lines_at, plan);
        }
    }
}

impl Layer for Own {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        if self.slip == Slip::UnwrittenShown {
            let entry = self.table.find(a, after, plan);
            let place = entry.place.unwrap_or(Place(a.0));
            return self.below.read(place, class, entry.cached.at, plan);
        }
        self.table.read(&mut self.below, a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let (line, data, order) = (write.at, write.data, self.order(write.order));
        let mut entry = self.table.find(line, data.at, plan);
        let check = ecc::check_word(Matrix::TruncatedHamming, data.value);
        let found = match write.class {
            Class::Data => self.search(data, check, plan),
            Class::Log => At::new(None, data.at),
        };
        let decided = found.at;
        if let Some(place) = found.value {
            let ripe = match self.slip {
                Slip::DuplicateUngated => decided,
                _ => plan.both(decided, write.gate),
            };
            let when = When { decided, ripe };
            return self.remap((entry, place, false), (when, order), plan);
        }
        let (place, unmapped) = self.allocate(&mut entry, decided, plan);
        let below = Write {
            data: At::new(data.value, decided),
            gate: plan.both(write.gate, unmapped),
            order,
            ..write.to(place)
        };
        let kept = self.below.write(below, plan);
        if let (Some(lines), true) = (&mut self.kept, self.slip != Slip::KeptBeyondWrite) {
            lines.remove(&place.0);
        }
        if write.class == Class::Data && self.checks.find(check, None).is_none() {
            self.checks.insert(check, place, decided);
        }
        let ripe = kept.accepted;
        let mapped = self.remap((entry, place, true), (When { decided, ripe }, order), plan);
        Stored {
            accepted: mapped.accepted,
            done: plan.both(kept.done, mapped.done),
        }
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        match self.slip {
            Slip::SpanOneLine => {
                let entry = self.table.find(a, after, plan);
                let table = self.table.table_line(a);
                let map = self.table.cache.persist(table, entry.cached.at, plan);
                let at = entry.place.unwrap_or(Place(a.0));
                let kept = self.below.persist_metadata(at, map.accepted, plan);
                Stored {
                    done: plan.both(map.done, kept.done),
                    ..kept
                }
            }
            Slip::SpanCountersOfHome => {
                let table = self.table.table_line(a);
                let map = self.table.cache.persist(table, after, plan);
                self.below.persist_metadata(Place(a.0), map.accepted, plan)
            }
            _ => self.table.persist_span(&mut self.below, a, after, plan),
        }
    }
}

fn layer<const SLIP: usize, const FORM: usize>(name: &'static str) -> AnyLayer {
    let like = designs::mappings().find(|known| known.about.name == "esd-sound");
    let like = like.expect("the mapping that it is like");
    AnyLayer::Mapping(Box::leak(Box::new(Mapping {
        about: About { name, ..like.about },
        build: |settings, below, layout| {
            Box::new(Own::new((Slip::ALL[SLIP], FORM), settings, below, layout))
        },
        guarantee: match FORM {
            ON_DEMAND => Guarantee::on_demand,
            _ => |below| below,
        },
        placement: |_, layout| placement(true, layout),
        shows: &[],
        zeros_apart: false,
        beside: None,
    })))
}

/// The mapping whose entries persist with their lines, with the slip of that number.
pub fn sound<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP, SOUND>(name),
        right: layer::<{ Slip::Nothing as usize }, SOUND>("own-dedup-sound"),
    }
}

pub fn on_demand<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP, ON_DEMAND>(name),
        right: layer::<{ Slip::Nothing as usize }, ON_DEMAND>("own-dedup"),
    }
}

/// The mapping that keeps compared lines on chip.
pub fn keeping<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP, KEEPING>(name),
        right: layer::<{ Slip::Nothing as usize }, KEEPING>("own-dedup-keeping"),
    }
}
