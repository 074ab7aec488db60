//! Latencies of one kind of request: exact mean and maximum, percentiles to three digits.
//!
//! Memory is fixed, however many are recorded and however long they are.

use hdrhistogram::Histogram;

use crate::units::Time;

/// The longest latency that percentiles tell from longer ones: 2^50 ps, nineteen minutes.
const LONGEST: u64 = 1 << 50;

const POINTS: usize = 200;

/// A distribution of latencies.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u128,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// An empty record.
    pub fn new() -> Latencies {
        Latencies {
            histogram: Histogram::new_with_max(LONGEST, 3).expect("constant bounds are valid"),
            sum: 0,
            max: 0,
        }
    }

    /// Records the latency of one request.
    #[inline]
    pub fn record(&mut self, latency: Time) {
        self.histogram.saturating_record(latency.ps());
        self.sum += u128::from(latency.ps());
        self.max = self.max.max(latency.ps());
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The sum of all, in picoseconds.
    pub fn sum_ps(&self) -> u128 {
        self.sum
    }

    /// The mean of all in nanoseconds, from the exact sum; `None` if there are none.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64 / 1000.0)
    }

    /// The latency that so many in a thousand do not exceed, at most 0.1 % too high; `None` without latencies. The rank
    /// is half of one below the wanted one, so that the histogram's fractions cannot round to its neighbour.
    fn per_mille(&self, per_mille: u64) -> Option<Time> {
        let rank = (self.count() * per_mille).div_ceil(1000) as f64;
        let quantile = (rank - 0.5) / self.count() as f64;
        (self.count() > 0).then(|| self.within(self.histogram.value_at_quantile(quantile)))
    }

    /// The median.
    pub fn p50(&self) -> Option<Time> {
        self.per_mille(500)
    }

    /// The 95th percentile.
    pub fn p95(&self) -> Option<Time> {
        self.per_mille(950)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Option<Time> {
        self.per_mille(990)
    }

    /// The 99.9th percentile.
    pub fn p999(&self) -> Option<Time> {
        self.per_mille(999)
    }

    /// The longest, exactly; `None` if there are none.
    pub fn max(&self) -> Option<Time> {
        (self.count() > 0).then(|| Time::from_ps(self.max))
    }

    /// The distribution as (nanoseconds, share of latencies not above it), both growing, the last share
    /// 1; at most `points` (2 to 200) points, about equally far apart in share.
    pub fn cdf(&self, points: usize) -> Vec<(f64, f64)> {
        let points = points.clamp(2, POINTS) as u128;
        let total = u128::from(self.count());
        let (mut cdf, mut seen, mut next) = (Vec::new(), 0u128, 1u128);
        for step in self.histogram.iter_recorded() {
            seen += u128::from(step.count_since_last_iteration());
            if seen * points >= next * total {
                let latency = self.within(step.value_iterated_to());
                cdf.push((latency.ns(), seen as f64 / total as f64));
                next = seen * points / total + 1;
            }
        }
        cdf
    }

    /// Adds all latencies of `other`.
    pub fn add(&mut self, other: &Latencies) {
        let added = self.histogram.add(&other.histogram);
        added.expect("all have the same bounds");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Forgets all latencies, as at the end of a warm-up.
    pub fn reset(&mut self) {
        self.histogram.reset();
        self.sum = 0;
        self.max = 0;
    }

    /// The upper end of a bucket, which may lie above the longest latency in it or, for latencies beyond the
    /// histogram's range, below it.
    fn within(&self, ps: u64) -> Time {
        let last = self.histogram.highest_equivalent(LONGEST);
        Time::from_ps(if ps >= last {
            self.max
        } else {
            ps.min(self.max)
        })
    }
}
