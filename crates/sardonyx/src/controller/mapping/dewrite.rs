//! DeWrite: a cheap hash, every match compared, and a guess whether a line is a duplicate, so that
//! lines guessed new are encrypted at once. Source: DeWrite (MICRO 2018), as ESD Sec. II tells it.
//! Left out: keeping counters in unused table halves; they have the region everybody's have.

use super::amt::SATURATED;
use super::dedup_sha1::{Counts, figures, find, read};
use super::index::{Digest, Index};
use super::tables::Tables;
use crate::controller::params::DewriteParams;
use crate::controller::{Class, Encryption, Figures, Layer, Persist};
use crate::line::{Line, Logical, Place};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Step, Stored};
use crate::stats::Cause;

/// Bytes of a CRC-32.
const CRC_BYTES: usize = 4;
/// Bytes of metadata a line, as DeWrite gives them: 16 bytes and 3 bits.
const BYTES_PER_LINE: f64 = 16.375;

/// The outcomes of the last writes, and a majority vote on the next.
struct Predictor {
    /// How many are remembered, 64 at most.
    history: u32,
    outcomes: u64,
}

impl Predictor {
    fn guess(&self) -> bool {
        self.outcomes.count_ones() * 2 > self.history
    }

    fn learn(&mut self, duplicate: bool) {
        let mask = u64::MAX >> (u64::BITS - self.history);
        self.outcomes = (self.outcomes << 1 | u64::from(duplicate)) & mask;
    }
}

/// The mapping over an encryption.
pub struct Dewrite {
    predictor: Predictor,
    tables: Tables,
    counts: Counts,
    /// Guesses and outcomes, as ESD Fig. 4 numbers them: T1, F2, T3, F4.
    guesses: [u64; 4],
    below: Encryption,
}

impl Dewrite {
    /// Over `below`; the tables get regions of their own.
    pub fn new(params: &DewriteParams, below: Encryption, layout: &mut Layout) -> Dewrite {
        // Six entries fit a bucket; four in the mean leave room.
        let buckets = layout.data_lines().div_ceil(4);
        let index = Index::new(CRC_BYTES, buckets, params.fingerprint_cache, layout).moving();
        Dewrite {
            predictor: Predictor {
                history: params.history,
                outcomes: 0,
            },
            tables: Tables::new(index, params.mapping_cache, true, layout),
            counts: Counts::default(),
            guesses: [0; 4],
            below,
        }
    }

    /// The same, made to survive a power cut: a write is accepted when its line, its counter and then
    /// its mapping are; after a cut the other tables are made anew from the mappings.
    pub fn sound(params: &DewriteParams, below: Encryption, layout: &mut Layout) -> Dewrite {
        let mut dewrite = Dewrite::new(params, below, layout);
        dewrite.tables.sound = true;
        dewrite
    }
}

fn digest_of(data: &Line) -> Digest {
    Digest::new(&crc32fast::hash(data).to_le_bytes(), CRC_BYTES)
}

impl Layer for Dewrite {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        read((&mut self.tables, &mut self.below), a, class, after, plan)
    }

    fn write(
        &mut self,
        a: Logical,
        data: At<&Line>,
        gate: Step,
        class: Class,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        let order = self.tables.demand(order);
        let tables = &mut self.tables;
        let (old, got) = tables.amt.find(&mut tables.cache, a, data.at, plan);
        let (mut digest, mut known, mut ready) = (None, data.at, data.at);
        if class == Class::Data {
            let guess = self.predictor.guess();
            let hash = digest_of(data.value);
            let hashed = plan.because(Cause::Fingerprint).unit(Unit::Crc32, data.at);
            let parts = (tables, &mut self.below, &mut self.counts);
            // A full count means a fresh copy, so such an entry is no match.
            let accept = |found: &super::index::Match| found.count != SATURATED;
            let found = find(parts, (hash, hashed), data.value, true, accept, plan);
            (digest, known) = (Some(hash), found.at);
            let duplicate = found.value.is_some();
            self.predictor.learn(duplicate);
            let case = match (guess, duplicate) {
                (true, true) => 0,
                (true, false) => 1,
                (false, false) => 2,
                (false, true) => 3,
            };
            self.guesses[case] += 1;
            if let Some(found) = found.value {
                if !guess {
                    self.below.waste(Place(a.0), data.at, plan);
                }
                let steps = (known, plan.both(known, gate));
                let shared = self.tables.share((a, got), old, &found, steps, plan);
                return self.tables.demanded(a, shared, order, plan);
            }
            ready = if guess { known } else { data.at };
        }
        let (place, unmapped, old, got) = self.tables.allocate(a, (old, got), known, plan);
        let gate = plan.both(gate, unmapped);
        let gate = plan.both(gate, known);
        let data = At::new(data.value, ready);
        let kept = self.below.write(place, data, gate, class, order, plan);
        let spots = (old, place);
        let steps = (known, kept);
        let stored = self.tables.keep((a, got), spots, digest, steps, plan);
        self.tables.demanded(a, stored, order, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.tables.persist(a, after, &mut self.below, plan)
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.tables.flush(plan);
        self.below.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        if self.tables.sound {
            self.below.recover(plan);
            return self.tables.rebuild(&mut self.below, digest_of, plan);
        }
        self.tables.recover(plan);
        self.below.recover(plan);
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        let place = self.tables.amt.touch_ahead(&self.tables.cache, a, plan);
        self.below.hint(place, plan);
    }

    fn forget_figures(&mut self) {
        self.counts = Counts::default();
        self.guesses = [0; 4];
        self.tables.forget_figures();
        self.below.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        figures(&self.tables, &self.counts, out);
        let names = [
            "prediction_t1",
            "prediction_f2",
            "prediction_t3",
            "prediction_f4",
        ];
        out.extend(
            names
                .into_iter()
                .zip(self.guesses.map(|count| count as f64)),
        );
        let bytes = self.tables.amt.mapped() as f64 * BYTES_PER_LINE;
        out.push(("metadata_bytes", bytes));
        out.push(("metadata_bytes_per_line", BYTES_PER_LINE));
        let in_use = self.tables.bytes_in_use();
        out.push(("metadata_bytes_in_use", in_use as f64));
        self.below.figures(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of the outcomes, at every length that the configuration allows.
    #[test]
    fn the_majority_of_the_remembered_outcomes_is_the_guess() {
        for history in 1..=64 {
            let mut predictor = Predictor {
                history,
                outcomes: 0,
            };
            let mut all = vec![false; history as usize]; // nothing has been a duplicate before
            let mut random = 1u64;
            for i in 0..400u64 {
                let last = &all[all.len() - history as usize..];
                let duplicates = last.iter().filter(|duplicate| **duplicate).count();
                assert_eq!(predictor.guess(), duplicates * 2 > last.len());
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let duplicate = random >> 62 <= i / 100; // a quarter of them at first, then all
                predictor.learn(duplicate);
                all.push(duplicate);
            }
            assert!(predictor.guess());
        }
    }
}
