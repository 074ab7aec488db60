//! DeWrite: full deduplication by CRC-32, every match compared, and a guess whether a line is a
//! duplicate, so that lines guessed new are encrypted at once. Source: DeWrite (MICRO 2018), as ESD
//! Sec. II tells it.
//! Left out: keeping counters in unused table halves; they have the region that all designs have.

use super::full_dedup::{Fingerprint, layers};
use super::index::{Digest, Index};
use super::references::References;
use super::tables::Tables;
use crate::controller::Figures;
use crate::controller::layers::{Design, File, Mapping};
use crate::figures::{Figure, figures};
use crate::line::{LINE_BYTES, Line};
use crate::mechanisms::{Mechanism, mechanisms};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::Plan;
use crate::settings::{AnyKey, Settings, keys};

keys! {
    HISTORY: u32 = int("dewrite.history", (1, 64), 3),
        Source("DeWrite (MICRO 2018)"), "Writes whose outcomes the predictor remembers";
}

keys! {
    FINGERPRINT_CACHE = cache("dewrite.fingerprint_cache.", LINE_BYTES, 524_288),
        Assumed("ESD does not state the rivals' caches: as ESD's own"),
        "Cache of the hash table", "Its ways"
        in Between("262144", "1048576", "half and twice ESD's own; the rivals' entries are larger than ESD's");
    MAPPING_CACHE = cache("dewrite.mapping_cache.", LINE_BYTES, 524_288),
        Assumed("ESD does not state the rivals' caches: as ESD's own"),
        "Cache of mapping, inverse and free map", "Its ways"
        in Between("262144", "1048576", "half and twice ESD's own; the rivals' entries are larger than ESD's");
}

figures! { "Deduplication";
    T1: Count More "prediction_t1", "DeWrite guessed duplicate, and was right";
    F2: Count Less "prediction_f2", "DeWrite guessed duplicate, and was wrong";
    T3: Count More "prediction_t3", "DeWrite guessed no duplicate, and was right";
    F4: Count Less "prediction_f4", "DeWrite guessed no duplicate, and was wrong";
}

// Its counts are full for one duplicate, and its buckets have six entries: no plan comes to what is beyond either.
mechanisms! {
    GUESSED_DUPLICATE = "duplicates guessed", least 30;
    GUESSED_WRONGLY = "new lines guessed duplicates", least 30;
    GUESSED_NEW = "new lines guessed", least 30;
    MISSED = "duplicates guessed new", least 30;
}

/// The layers and designs of this file.
pub static FILE: File<Mapping> = File {
    layers: &layers::<ByCrc32>("dewrite", "dewrite-sound"),
    designs: &[
        Design {
            name: "dewrite",
            source: "DeWrite (MICRO 2018)",
            line: "full deduplication by CRC-32 and comparison, encrypting ahead on a guess",
            stack: "dewrite+per-line",
        },
        Design {
            name: "dewrite-sound",
            source: "DeWrite (MICRO 2018), made to survive a power cut",
            line: "dewrite that persists mappings with their lines and makes its index anew",
            stack: "dewrite-sound+fca",
        },
    ],
};

const CRC_BYTES: usize = 4;
/// Bytes of metadata for each line, as DeWrite states them: 16 bytes and 3 bits.
const BYTES_PER_LINE: f64 = 16.375;

/// A predictor that takes the majority of the last writes' outcomes as its guess.
struct Predictor {
    /// The number of remembered outcomes, 64 at most.
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

struct ByCrc32 {
    predictor: Predictor,
    /// Counts of guesses and outcomes, as ESD Fig. 4 numbers them: T1, F2, T3, F4.
    guesses: [u64; 4],
}

impl Fingerprint for ByCrc32 {
    const KEYS: &'static [&'static dyn AnyKey] = &[&HISTORY, &FINGERPRINT_CACHE, &MAPPING_CACHE];
    const FIGURES: &'static [&'static Figure] = FIGURES;
    const MECHANISMS: &'static [&'static Mechanism] = MECHANISMS;
    const UNIT: Unit = Unit::Crc32;
    const GUESSES: bool = true;

    fn build(settings: &Settings, sound: bool, layout: &mut Layout) -> (ByCrc32, Tables) {
        // Six entries fit a bucket; four in the mean leave room.
        let buckets = layout.data_lines().div_ceil(4);
        let cache = &FINGERPRINT_CACHE;
        let index = Index::new(CRC_BYTES, buckets, true, cache, settings, layout);
        let tables = Tables::new(index, &MAPPING_CACHE, true, sound, settings, layout);
        let predictor = Predictor {
            history: settings.get(&HISTORY),
            outcomes: 0,
        };
        let guesses = [0; 4];
        (ByCrc32 { predictor, guesses }, tables)
    }

    fn digest(&self, data: &Line) -> Digest {
        Digest::new(&crc32fast::hash(data).to_le_bytes())
    }

    fn may_share(&self, count: References) -> bool {
        !count.is_full()
    }

    fn guesses_new(&self) -> bool {
        !self.predictor.guess()
    }

    fn learn(&mut self, guessed_new: bool, duplicate: bool, plan: &mut Plan) {
        self.predictor.learn(duplicate);
        let case = match (guessed_new, duplicate) {
            (false, true) => 0,
            (false, false) => 1,
            (true, false) => 2,
            (true, true) => 3,
        };
        self.guesses[case] += 1;
        plan.exercise(MECHANISMS[case]);
    }

    fn bytes_per_line(&self, _tables: &Tables) -> f64 {
        BYTES_PER_LINE
    }

    fn forget_figures(&mut self) {
        self.guesses = [0; 4];
    }

    fn figures(&self, out: &mut Figures) {
        let [t1, f2, t3, f4] = self.guesses.map(|count| count as f64);
        out.put(&T1, t1);
        out.put(&F2, f2);
        out.put(&T3, t3);
        out.put(&F4, f4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the vote against a list of the outcomes, at every length that the configuration allows.
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
