//! Comparing several numbers at once, for which x86 has an instruction that the compiler does not find.

/// Returns the set of positions, a bit each, whose value is at most `bound`.
#[inline(always)]
pub fn not_above(values: &[f64; 8], bound: f64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_cmple_pd, _mm_movemask_pd, _mm_set_pd, _mm_set1_pd};
        let two = |at: usize| {
            // SAFETY: every x86-64 has SSE2.
            unsafe {
                let two = _mm_set_pd(values[at + 1], values[at]);
                _mm_movemask_pd(_mm_cmple_pd(two, _mm_set1_pd(bound))) << at
            }
        };
        (two(0) | two(2) | two(4) | two(6)) as u64
    }
    #[cfg(not(target_arch = "x86_64"))]
    one_by_one(values, bound)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn one_by_one(values: &[f64; 8], bound: f64) -> u64 {
    let bit = |at: usize| u64::from(values[at] <= bound) << at;
    (0..8).fold(0, |set, at| set | bit(at))
}

#[test]
fn the_set_is_that_of_single_comparisons() {
    for bits in 0..256u64 {
        let values = std::array::from_fn(|at| if bits >> at & 1 == 1 { 2.0 } else { 2.5 });
        assert_eq!(not_above(&values, 2.0), bits);
        assert_eq!(one_by_one(&values, 2.0), bits);
        assert_eq!(not_above(&values, 3.0), 255);
    }
}
