//! The times of requests within the device.

use std::time::Instant;

use hdrhistogram::Histogram;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    Read,
    Write,
    /// To write zeros, or to trim.
    Discard,
    Flush,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    pub count: u64,
    pub median_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub most_us: f64,
}

/// Nanoseconds of an hour; a longer request counts as an hour.
const LONGEST: u64 = 3600 * 1_000_000_000;

/// Times of all kinds of requests, to three digits.
pub struct Latencies([Histogram<u64>; 4]);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(std::array::from_fn(|_| {
            Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that can be had")
        }))
    }
}

impl Latencies {
    pub fn ended(&mut self, asked: RequestKind, began: Instant) {
        let nanoseconds = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0[asked as usize].saturating_record(nanoseconds.max(1));
    }

    pub fn of(&self, asked: RequestKind) -> Quantiles {
        let times = &self.0[asked as usize];
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        Quantiles {
            count: times.len(),
            median_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            most_us: times.max() as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn quantiles_are_of_their_kind_alone() {
        let mut latencies = Latencies::default();
        for milliseconds in 1..=100 {
            let began = Instant::now() - Duration::from_millis(milliseconds);
            latencies.ended(RequestKind::Flush, began);
        }
        let flushes = latencies.of(RequestKind::Flush);
        assert_eq!(flushes.count, 100);
        assert!(
            (50e3..60e3).contains(&flushes.median_us),
            "{}",
            flushes.median_us
        );
        assert!((99e3..110e3).contains(&flushes.p99_us));
        assert!(flushes.p99_us <= flushes.p999_us && flushes.p999_us <= flushes.most_us);
        assert_eq!(latencies.of(RequestKind::Read), Quantiles::default());
    }
}
