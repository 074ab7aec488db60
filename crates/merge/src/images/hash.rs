//! The hashes that the kernel has used for a page's checksum.

use twox_hash::XxHash64;

use crate::{Checksum, PAGE_BYTES, PageBytes};

pub fn checksum(bytes: &PageBytes, kind: Checksum) -> u32 {
    match kind {
        Checksum::XxHash64 => XxHash64::oneshot(0, bytes) as u32,
        Checksum::Jhash2 => jhash2(bytes, 17),
        Checksum::Jhash2Kilobyte => jhash2(&bytes[..PAGE_BYTES / 4], 17),
    }
}

/// Bob Jenkins's hash of 32-bit words (lookup3's `hashword`, 2006), with the kernel's start value.
fn jhash2(bytes: &[u8], seed: u32) -> u32 {
    let words = bytes.as_chunks::<4>().0;
    let start = 0xdead_beef_u32
        .wrapping_add((words.len() as u32) << 2)
        .wrapping_add(seed);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = words;
    while let [x, y, z, more @ ..] = rest
        && !more.is_empty()
    {
        a = a.wrapping_add(u32::from_le_bytes(*x));
        b = b.wrapping_add(u32::from_le_bytes(*y));
        c = c.wrapping_add(u32::from_le_bytes(*z));
        (a, b, c) = mix(a, b, c);
        rest = more;
    }
    let word = |index: usize| rest.get(index).map_or(0, |word| u32::from_le_bytes(*word));
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(0));
    b = b.wrapping_add(word(1));
    c = c.wrapping_add(word(2));
    finish(a, b, c)
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jhash2_is_lookup3s_hashword() {
        // These are lookup3.c's own vectors: no bytes, and 30 bytes, whose last two count only for the length.
        assert_eq!(jhash2(&[], 0), 0xdead_beef);
        let mut padded = [0; 32];
        padded[..30].copy_from_slice(b"Four score and seven years ago");
        assert_eq!(jhash2(&padded, 0u32.wrapping_sub(2)), 0x1777_0551);
    }

    #[test]
    fn xxhash64_is_the_published_one() {
        // These are from xxHash's specification: the empty input and "abc", seed 0.
        assert_eq!(XxHash64::oneshot(0, b""), 0xef46_db37_51d8_e999);
        assert_eq!(XxHash64::oneshot(0, b"abc"), 0x44bc_2cf5_ad77_0999);
    }
}
