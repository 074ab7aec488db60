//! Latencies against the same numbers, sorted.

use proptest::prelude::*;
use sardonyx::latency::Latencies;
use sardonyx::units::Time;

fn of(latencies: &[u64]) -> Latencies {
    let mut all = Latencies::new();
    for &ps in latencies {
        all.record(Time::from_ps(ps));
    }
    all
}

proptest! {
    #![proptest_config(sardonyx_property::cases(256))]

    #[test]
    fn percentiles_mean_and_maximum_are_those_of_the_sorted_list(
        mut list in prop::collection::vec(prop_oneof![0..5_000u64, 0..100_000_000u64], 1..3000)
    ) {
        let all = of(&list);
        list.sort_unstable();
        prop_assert_eq!(all.count(), list.len() as u64);
        let sum: u64 = list.iter().sum();
        prop_assert_eq!(all.mean_ns(), Some(sum as f64 / list.len() as f64 / 1000.0));
        prop_assert_eq!(all.max().map(Time::ps), list.last().copied());
        let got = [all.p50(), all.p95(), all.p99(), all.p999()];
        for (per_mille, got) in [500, 950, 990, 999].into_iter().zip(got) {
            let exact = list[(list.len() * per_mille).div_ceil(1000) - 1];
            let got = got.unwrap().ps();
            prop_assert!(got >= exact && got <= exact + exact / 1000, "{} {}", got, exact);
        }
    }

    #[test]
    fn the_distribution_grows_to_one(
        list in prop::collection::vec(0..10_000_000u64, 1..3000), points in 0..400usize
    ) {
        let all = of(&list);
        let cdf = all.cdf(points);
        prop_assert!(!cdf.is_empty() && cdf.len() <= points.clamp(2, 200));
        prop_assert_eq!(cdf.last().unwrap().1, 1.0);
        prop_assert_eq!(cdf.last().unwrap().0, all.max().unwrap().ns());
        prop_assert!(cdf.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
        for (ns, share) in cdf {
            let below = list.iter().filter(|&&ps| ps as f64 / 1000.0 <= ns).count();
            prop_assert_eq!(share, below as f64 / list.len() as f64);
        }
    }
}

#[test]
fn nothing_recorded_has_no_latency() {
    let mut all = of(&[1, 2, 3]);
    all.reset();
    assert_eq!(
        (all.count(), all.mean_ns(), all.max(), all.p50()),
        (0, None, None, None)
    );
    assert!(all.cdf(100).is_empty());
    all.record(Time::from_ps(5));
    assert_eq!((all.mean_ns(), all.sum_ps()), (Some(0.005), 5));
}

#[test]
fn absurd_latencies_are_kept_exactly_where_it_matters() {
    let all = of(&[1 << 60, 1 << 61]);
    assert_eq!(all.max(), Some(Time::from_ps(1 << 61)));
    assert_eq!(all.sum_ps(), 3 << 60);
    assert_eq!(all.p99(), all.max());
}

/// At these lengths a fraction such as 0.999 times the length is a hair above a whole number.
#[test]
fn a_percentile_of_a_round_number_of_latencies_is_not_its_neighbour() {
    for len in (20..=3000).step_by(20) {
        let list: Vec<u64> = (1..=len).map(|rank| rank * 1_000_000).collect();
        let all = of(&list);
        let got = [all.p50(), all.p95(), all.p99(), all.p999()];
        for (per_mille, got) in [500, 950, 990, 999].into_iter().zip(got) {
            let exact = (len * per_mille).div_ceil(1000) * 1_000_000;
            let got = got.unwrap().ps();
            assert!(
                got >= exact && got <= exact + exact / 1000,
                "{per_mille} of {len}"
            );
        }
    }
}
