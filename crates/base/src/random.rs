//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): numbers that follow from a number alone, the same whoever asks.

/// The increment of the state: 2^64 divided by the golden ratio, made odd.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function: mixes all bits of `z`, one to one. Zero stays zero.
#[inline]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first number of the stream with seed `z`. Unlike [`mix`], it has no fixed point at zero.
#[inline]
pub const fn splitmix64(z: u64) -> u64 {
    mix(z.wrapping_add(GAMMA))
}

/// A stream of numbers; its state is its seed.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    #[inline]
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.draw() as u128 * end as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_0_and_of_1234567_begin_as_elsewhere() {
        let mut stream = SplitMix64(0);
        assert_eq!(
            [stream.draw(), stream.draw()],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        assert_eq!(splitmix64(1_234_567), 6_457_827_717_110_365_317);
    }
}
