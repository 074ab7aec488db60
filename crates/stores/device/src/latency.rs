//! The times of requests within the device.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    Read,
    Write,
    Zero,
    Trim,
    Flush,
}

impl RequestKind {
    /// The letter in a trace, which has reads and writes only.
    pub fn letter(self) -> Option<char> {
        match self {
            RequestKind::Read => Some('R'),
            RequestKind::Write => Some('W'),
            RequestKind::Zero | RequestKind::Trim | RequestKind::Flush => None,
        }
    }
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

/// Times of all kinds of requests, to three digits. Zeros and trims are of one kind.
pub struct Latencies([Histogram<u64>; 4]);

fn row(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read => 0,
        RequestKind::Write => 1,
        RequestKind::Zero | RequestKind::Trim => 2,
        RequestKind::Flush => 3,
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(std::array::from_fn(|_| {
            Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that can be had")
        }))
    }
}

impl Latencies {
    pub fn ended(&mut self, kind: RequestKind, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0[row(kind)].saturating_record(nanoseconds.max(1));
    }

    pub fn of(&self, kind: RequestKind) -> Quantiles {
        let times = &self.0[row(kind)];
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
    use super::*;

    #[test]
    fn quantiles_are_of_their_kind_alone() {
        let mut latencies = Latencies::default();
        for milliseconds in 1..=100 {
            latencies.ended(RequestKind::Flush, Duration::from_millis(milliseconds));
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
