//! Damage of many forms, which tells a recovery that checks nothing from one that found nothing wrong: the former copes
//! with everything turned into zeros, into random bytes and into many mixtures of both with what it was.

/// The number of forms. A check is done after the first form that it notices; a recovery that copes with all of them
/// checks no bytes.
pub const FORMS: u32 = 34;
/// This many bytes are changed together: a flag can stay while the data that it vouches for change.
const WORD: usize = 8;

/// Damages bytes that begin at a place, which with the form decides what happens to each word.
pub fn damage(form: u32, place: u64, bytes: &mut [u8]) {
    for (number, word) in bytes.chunks_mut(WORD).enumerate() {
        let drawn = mixed((place + (number * WORD) as u64) ^ u64::from(form) << 56);
        let stays = match form {
            0 | 1 => false,
            _ if form.is_multiple_of(2) => drawn.is_multiple_of(2),
            _ => !drawn.is_multiple_of(16),
        };
        if !stays {
            let new = if form == 0 { 0 } else { mixed(drawn) };
            word.copy_from_slice(&new.to_le_bytes()[..word.len()]);
        }
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check that reads a byte only if a flag is set, and one that compares two words.
    #[test]
    fn even_a_narrow_check_notices_a_form() {
        let notices = |check: fn(&[u8]) -> bool, before: &[u8]| {
            (0..FORMS).any(|form| {
                let mut after = before.to_vec();
                damage(form, 4096, &mut after);
                !check(&after)
            })
        };
        let mut flagged = vec![0; 64];
        flagged[0] = 1;
        flagged[40] = 7;
        assert!(notices(|bytes| bytes[0] != 1 || bytes[40] == 7, &flagged));
        assert!(notices(|bytes| bytes[..8] == bytes[8..16], &[5; 16]));
        assert!(!notices(|_| true, &flagged));
    }

    #[test]
    fn the_last_word_may_be_short() {
        let mut bytes = *b"0123456789a";
        damage(0, 0, &mut bytes);
        assert_eq!(bytes, [0; 11]);
    }
}
