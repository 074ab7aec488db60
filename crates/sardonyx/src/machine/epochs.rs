//! Figures over time: what a run did in each of equal parts of simulated time.
//!
//! The length of a run is not known beforehand. Epochs are short at first, and when there are [`MOST`] every two
//! neighbours become one; so memory is bounded, and all but the shortest runs have at least half as many. A latency
//! belongs to the epoch of its answer. The memory's counts are read with the first answer after an epoch's end.

use crate::controller::mapping::figures::DUPLICATE_WRITES;
use crate::figures::{Amount, Figure};
use crate::line::LINE_BYTES;
use crate::memory::Memory;
use crate::stats::Direction;
use crate::units::{Energy, Time};

/// The number of epochs, at most.
pub const MOST: usize = 128;
/// The first epochs take 2^20 picoseconds, a microsecond.
const FIRST: u32 = 20;
/// Latencies are told apart to a sixteenth of their power of two.
const FINE: u32 = 4;
const BUCKETS: usize = 48 << FINE;

#[derive(Clone, Default)]
struct Answered {
    count: u64,
    sum: u64,
    /// The number of latencies in each [`bucket`]; empty without answers.
    buckets: Vec<u32>,
}

fn bucket(ps: u64) -> usize {
    let above = (ps | 1 << FINE).ilog2() - FINE;
    let within = ps >> above;
    (((u64::from(above) << FINE) + within) as usize).min(BUCKETS - 1)
}

fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let above = (bucket >> FINE).saturating_sub(1);
    let within = bucket - (above << FINE);
    ((within + 1) << above) - 1
}

impl Answered {
    #[inline]
    fn record(&mut self, latency: Time) {
        if self.buckets.is_empty() {
            self.buckets.resize(BUCKETS, 0);
        }
        self.count += 1;
        self.sum += latency.ps();
        self.buckets[bucket(latency.ps())] += 1;
    }

    fn add(&mut self, other: Answered) {
        self.count += other.count;
        self.sum += other.sum;
        if self.buckets.is_empty() {
            self.buckets = other.buckets;
        } else {
            let buckets = self.buckets.iter_mut().zip(other.buckets);
            buckets.for_each(|(own, other)| *own += other);
        }
    }

    fn mean(&self) -> Amount {
        Amount::share(self.sum as f64 / 1000.0, self.count as f64)
    }

    /// The latency that 99 of 100 do not exceed, at most a sixteenth too high.
    fn p99(&self) -> Amount {
        let rank = (self.count * 99).div_ceil(100);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank && rank > 0
        });
        found.map(|bucket| Time::from_ps(upper(bucket))).into()
    }
}

#[derive(Clone, Default)]
pub(super) struct EpochCounts {
    accesses: u64,
    row_hits: u64,
    queued: [Time; 2],
    medium: [u64; 2],
    energy: Energy,
    duplicates: u64,
    /// Shares that a layer counts, such as look-ups that hit.
    shares: Vec<(&'static Figure, [u64; 2])>,
}

impl EpochCounts {
    pub fn from_memory(memory: &Memory) -> EpochCounts {
        let service = [Direction::Read, Direction::Write].map(|kind| memory.service(kind));
        let total = memory.ledger().grand_total();
        let figures = memory.figures();
        let shares = figures.iter().filter_map(|(figure, amount)| match amount {
            Amount::Part { part, of } => Some((figure, [part, of])),
            _ => None,
        });
        EpochCounts {
            accesses: service[0].accesses + service[1].accesses,
            row_hits: service[0].row_hits + service[1].row_hits,
            queued: service.map(|service| service.queued),
            medium: [total.medium_reads, total.medium_writes],
            energy: total.energy,
            duplicates: figures.of(&DUPLICATE_WRITES).number().unwrap_or(0.0) as u64,
            shares: shares.collect(),
        }
    }

    fn since(&self, before: &EpochCounts) -> EpochCounts {
        let less = |own: u64, other: u64| own.saturating_sub(other);
        let pair = |own: [u64; 2], other: [u64; 2]| [0, 1].map(|i| less(own[i], other[i]));
        let share = |(at, (figure, own)): (usize, &(&'static Figure, [u64; 2]))| {
            let other = before.shares.get(at).map_or([0; 2], |(_, other)| *other);
            (*figure, pair(*own, other))
        };
        EpochCounts {
            accesses: less(self.accesses, before.accesses),
            row_hits: less(self.row_hits, before.row_hits),
            queued: [0, 1].map(|i| self.queued[i].since(before.queued[i])),
            medium: pair(self.medium, before.medium),
            energy: Energy::from_fj(less(self.energy.fj(), before.energy.fj())),
            duplicates: less(self.duplicates, before.duplicates),
            shares: self.shares.iter().enumerate().map(share).collect(),
        }
    }

    fn add(&mut self, other: EpochCounts) {
        self.accesses += other.accesses;
        self.row_hits += other.row_hits;
        for i in 0..2 {
            self.queued[i] += other.queued[i];
            self.medium[i] += other.medium[i];
        }
        self.energy += other.energy;
        self.duplicates += other.duplicates;
        if self.shares.is_empty() {
            self.shares = other.shares;
        } else {
            for ((_, own), (_, other)) in self.shares.iter_mut().zip(other.shares) {
                own[0] += other[0];
                own[1] += other[1];
            }
        }
    }
}

#[derive(Clone, Default)]
struct Epoch {
    answered: [Answered; 2],
    counts: EpochCounts,
}

impl Epoch {
    fn add(&mut self, other: Epoch) {
        let answered = self.answered.iter_mut().zip(other.answered);
        answered.for_each(|(own, other)| own.add(other));
        self.counts.add(other.counts);
    }
}

pub(super) struct Epochs {
    begun: Time,
    shift: u32,
    epochs: Vec<Epoch>,
    /// The counts when the present epoch began, and the time at which it ends.
    before: EpochCounts,
    due: Time,
    present: usize,
}

/// Figures over time, a column each.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// When the first epoch begins.
    pub begin: Time,
    /// The length of each epoch. The last one may end early.
    pub width: Time,
    /// Names with units, and values.
    pub columns: Vec<(String, Vec<Amount>)>,
}

impl Epochs {
    pub fn new(begun: Time) -> Epochs {
        Epochs {
            begun,
            shift: FIRST,
            epochs: Vec::new(),
            before: EpochCounts::default(),
            due: begun + Time::from_ps(1 << FIRST),
            present: 0,
        }
    }

    #[inline]
    pub fn record(&mut self, kind: Direction, at: Time, latency: Time) {
        let mut epoch = (at.since(self.begun).ps() >> self.shift) as usize;
        while epoch >= MOST {
            self.widen();
            epoch /= 2;
        }
        if epoch >= self.epochs.len() {
            self.epochs.resize_with(epoch + 1, Epoch::default);
        }
        self.epochs[epoch].answered[kind as usize].record(latency);
    }

    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    pub fn count(&mut self, now: Time, counts: EpochCounts) {
        let spent = counts.since(&self.before);
        self.before = counts;
        self.epoch(self.present).counts.add(spent);
        let mut present = (now.since(self.begun).ps() >> self.shift) as usize;
        while present >= MOST {
            self.widen();
            present /= 2;
        }
        self.present = present;
        self.due = self.begun + Time::from_ps((present as u64 + 1) << self.shift);
    }

    fn epoch(&mut self, number: usize) -> &mut Epoch {
        if number >= self.epochs.len() {
            self.epochs.resize_with(number + 1, Epoch::default);
        }
        &mut self.epochs[number]
    }

    #[cold]
    fn widen(&mut self) {
        self.shift += 1;
        self.present /= 2;
        let mut whole = std::mem::take(&mut self.epochs).into_iter();
        while let Some(mut epoch) = whole.next() {
            if let Some(next) = whole.next() {
                epoch.add(next);
            }
            self.epochs.push(epoch);
        }
    }

    pub fn series(&self, end: Time, counts: &EpochCounts) -> Series {
        let mut epochs = self.epochs.clone();
        epochs.resize_with(epochs.len().max(self.present + 1), Epoch::default);
        epochs[self.present].counts.add(counts.since(&self.before));
        let width = Time::from_ps(1 << self.shift);
        let mut columns: Vec<(String, Vec<Amount>)> = Vec::new();
        let mut put = |name: &str, of: &dyn Fn(usize, &Epoch) -> Amount| {
            let values = epochs.iter().enumerate().map(|(at, epoch)| of(at, epoch));
            columns.push((name.to_owned(), values.collect()));
        };
        let lasts = |at: usize| {
            let begin = self.begun + width * at as u64;
            width.ps().min(end.since(begin).ps()).max(1) as f64 / 1000.0
        };
        for (name, kind) in [("read", 0), ("write", 1)] {
            let of = |epoch: &Epoch| epoch.answered[kind].clone();
            put(&format!("{name}s"), &|_, e| of(e).count.into());
            put(&format!("mean_{name}_latency_ns"), &|_, e| of(e).mean());
            put(&format!("p99_{name}_latency_ns"), &|_, e| of(e).p99());
            put(&format!("{name}_queue"), &|at, e| {
                Amount::share(e.counts.queued[kind].ns(), lasts(at))
            });
            put(&format!("medium_{name}s"), &|_, e| {
                e.counts.medium[kind].into()
            });
        }
        put("request_gb_per_s", &|at, e| {
            let lines = e.answered[0].count + e.answered[1].count;
            Amount::share((lines * LINE_BYTES as u64) as f64, lasts(at))
        });
        put("medium_gb_per_s", &|at, e| {
            let lines = e.counts.medium[0] + e.counts.medium[1];
            Amount::share((lines * LINE_BYTES as u64) as f64, lasts(at))
        });
        put("energy_nj", &|_, e| e.counts.energy.into());
        put("row_hit_rate", &|_, e| {
            Amount::share(e.counts.row_hits as f64, e.counts.accesses as f64)
        });
        put("write_reduction", &|_, e| {
            Amount::share(e.counts.duplicates as f64, e.answered[1].count as f64)
        });
        for (at, (figure, _)) in counts.shares.iter().enumerate() {
            put(figure.name, &|_, e| match e.counts.shares.get(at) {
                Some((_, [part, of])) => Amount::share(*part as f64, *of as f64),
                None => Amount::Absent,
            });
        }
        Series {
            begin: self.begun,
            width,
            columns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_what_falls_into_them() {
        let mut last = 0;
        for ps in (0..5000).chain([1 << 30, (1 << 40) + 12345]) {
            let found = bucket(ps);
            assert!(found >= last && upper(found) >= ps, "{ps}");
            assert!(
                upper(found) as f64 <= ps as f64 * (1.0 + 1.0 / 16.0),
                "{ps}"
            );
            assert_eq!(bucket(upper(found)), found);
            last = found;
        }
    }

    #[test]
    fn neighbours_become_one_and_nothing_is_lost() {
        let mut epochs = Epochs::new(Time::from_ps(77));
        let mut sum = 0;
        for number in 0..10_000u64 {
            let (at, latency) = (number * number * 1000, number % 700);
            epochs.record(
                Direction::Read,
                Time::from_ps(77 + at),
                Time::from_ps(latency),
            );
            sum += latency;
            let counts = EpochCounts {
                accesses: number + 1,
                ..EpochCounts::default()
            };
            if epochs.is_due(Time::from_ps(77 + at)) {
                epochs.count(Time::from_ps(77 + at), counts);
            }
        }
        let counts = EpochCounts {
            accesses: 10_000,
            ..EpochCounts::default()
        };
        let end = Time::from_ps(77 + 9_999 * 9_999 * 1000);
        let series = epochs.series(end, &counts);
        assert!((MOST / 2..=MOST).contains(&epochs.epochs.len()));
        let reads = &series.columns[0].1;
        let reads: f64 = reads.iter().filter_map(|count| count.number()).sum();
        assert_eq!(reads, 10_000.0);
        let own: u64 = epochs
            .epochs
            .iter()
            .map(|epoch| epoch.answered[0].sum)
            .sum();
        assert_eq!(own, sum);
        let mut epochs = epochs.epochs.iter().map(|epoch| epoch.counts.accesses);
        let counted: u64 = epochs.by_ref().sum();
        assert!((9_000..=10_000).contains(&counted), "{counted}");
    }
}
