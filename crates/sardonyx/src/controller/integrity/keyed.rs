//! SipHash-2-4 of some short parts, hashed as one piece: the hasher of `siphasher` takes each part by itself, which
//! costs it more than the bytes do. The results are the same.

use siphasher::sip::SipHasher24 as Whole;

/// Bytes of all parts, at most: a place, a version, a line and the bytes beside it.
const MOST: usize = 96;

/// A SipHash-2-4 hasher: its parts and their key.
pub struct SipHasher24 {
    whole: Whole,
    bytes: [u8; MOST],
    len: usize,
}

impl SipHasher24 {
    /// Begins a hash without any part.
    #[inline]
    pub fn new_with_key(key: &[u8; 16]) -> SipHasher24 {
        SipHasher24 {
            whole: Whole::new_with_key(key),
            bytes: [0; MOST],
            len: 0,
        }
    }

    /// Adds a part.
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
