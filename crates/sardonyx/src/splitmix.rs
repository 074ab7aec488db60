//! SplitMix64's output function (Steele, Lea and Flood, OOPSLA 2014): numbers that follow from a number
//! alone, the same whoever asks.

/// Mixes all bits of `z`.
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
