//! SHA-1 as both stores use it: whole, as the conventional index's key, and cut to some bits for a
//! fingerprint row in the array (which the paper does not have).

use sha1::{Digest, Sha1};

pub const SHA1_BYTES: usize = 20;

/// The SHA-1 of a block, with the processor's instructions where it has them.
pub fn sha1(block: &[u8]) -> [u8; SHA1_BYTES] {
    Sha1::digest(block).into()
}

pub fn fingerprint(block: &[u8], bits: u32) -> u64 {
    let first: [u8; 8] = sha1(block)[..8].try_into().expect("8 of 20");
    u64::from_be_bytes(first) >> (64 - bits)
}
