//! SipHash-2-4 of some short parts, hashed as one piece: the hasher of `siphasher` takes each part by itself, which
//! costs it more than the bytes do. The results are the same.

use siphasher::sip::SipHasher24 as Whole;

/// Bytes of all parts, at most: a place, a version, a line and what lies beside it.
const MOST: usize = 96;

/// Parts, and the key that they are hashed under.
pub struct SipHasher24 {
    whole: Whole,
    bytes: [u8; MOST],
    len: usize,
}

impl SipHasher24 {
    /// No part yet.
    #[inline]
    pub fn new_with_key(key: &[u8; 16]) -> SipHasher24 {
        SipHasher24 {
            whole: Whole::new_with_key(key),
            bytes: [0; MOST],
            len: 0,
        }
    }

    /// One more part.
    #[inline]
    pub fn write(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    /// The hash of all parts.
    #[inline]
    pub fn finish(&self) -> u64 {
        self.whole.hash(&self.bytes[..self.len])
    }
}
