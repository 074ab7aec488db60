//! The probability that chance shows as much as was seen, which is what lets pieces of four bytes count. One piece that
//! recurs proves nothing, because among some ten thousand pads one recurs by chance; many that recur do prove
//! something.
//!
//! The bound is Chernoff's: of `n` trials that are each true with probability at most `p`, whatever came before, `k` or
//! more are true with probability at most `e^(k - m) (m / k)^k`, where `m = p n > 0` and `k > m`. Left out: what the
//! trials are.

pub const PIECE_BYTES: usize = 4;

/// A result whose probability has a smaller binary logarithm is not taken for chance.
pub const ALARM: f64 = -64.0;

#[derive(Clone, Debug)]
pub struct Chance {
    /// Chance makes a trial come true with at most this probability.
    probability: f64,
    trials: u64,
    seen: u64,
    /// The index and the story of the first trial that came true.
    first: Option<(usize, String)>,
}

impl Chance {
    /// Begins with no trial, for pieces of four bytes: two are equal by chance with probability 2^-32.
    pub fn of_pieces() -> Chance {
        Chance::with_probability(1.0 / (1u64 << (8 * PIECE_BYTES)) as f64)
    }

    /// Begins with no trial; each comes true by chance with at most this probability.
    pub fn with_probability(probability: f64) -> Chance {
        Chance {
            probability,
            trials: 0,
            seen: 0,
            first: None,
        }
    }

    pub fn tried(&mut self, trials: u64) {
        self.trials += trials;
    }

    /// Notes that a trial has come true, at `index` of the items that are compared; `what` says how.
    pub fn saw(&mut self, index: usize, what: impl FnOnce() -> String) {
        self.seen += 1;
        self.first.get_or_insert_with(|| (index, what()));
    }

    /// The first trial that came true, with its story, if the number of them is no accident.
    pub fn told(&self) -> Option<(usize, String)> {
        let (index, what) = self.first.as_ref()?;
        let power = power(self.probability * self.trials as f64, self.seen as f64);
        (power <= ALARM).then(|| {
            let (seen, trials) = (self.seen, self.trials);
            let told = format!(
                "{what}; {seen} of {trials} such pieces, by chance with a probability below 2^{power:.0}"
            );
            (*index, told)
        })
    }
}

/// The binary logarithm of Chernoff's bound for `seen` where `expected` are; 0 if that is no surprise.
fn power(expected: f64, seen: f64) -> f64 {
    if seen <= expected {
        return 0.0;
    }
    let natural = seen - expected + seen * (expected / seen).ln();
    (natural * std::f64::consts::LOG2_E).max(-1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(trials: u32, probability: f64, seen: u32) -> f64 {
        let mut term = (1.0 - probability).powi(trials as i32);
        let mut below = 0.0;
        for k in 0..seen {
            below += term;
            term *= f64::from(trials - k) / f64::from(k + 1) * probability / (1.0 - probability);
        }
        1.0 - below
    }

    #[test]
    fn the_bound_lies_above_the_probability_and_not_far() {
        for (trials, probability) in [(100, 0.01), (200, 0.05), (30, 0.3)] {
            for seen in 1..12 {
                let (bound, is) = (
                    power(f64::from(trials) * probability, f64::from(seen)),
                    tail(trials, probability, seen),
                );
                assert!(is <= bound.exp2() + 1e-12, "{trials} {probability} {seen}");
                assert!(is < 1e-9 || bound.exp2() < is * 30.0 || bound == 0.0);
            }
        }
    }

    #[test]
    fn one_piece_that_returns_is_chance_and_many_are_not() {
        let mut pieces = Chance::of_pieces();
        pieces.tried(1 << 20);
        assert_eq!(pieces.told(), None);
        let mut seen = 0;
        while pieces.told().is_none() {
            pieces.saw(seen, || "this".to_owned());
            seen += 1;
        }
        // There are 2^-12 expected, and (e m / k)^k passes 2^-64 between four and six.
        assert!((4..7).contains(&seen), "{seen}");
        assert_eq!(pieces.told().unwrap().0, 0, "the first is told");
    }
}
