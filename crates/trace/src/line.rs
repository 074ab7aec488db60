//! A cache line's bytes, and its number in a recorded program.

/// Bytes in a line, everywhere in Sardonyx.
pub const LINE_BYTES: usize = 64;

/// The 64 bytes of a cache line.
pub type Line = [u8; LINE_BYTES];

/// A line of zeros.
pub const ZERO_LINE: Line = [0; LINE_BYTES];

/// A byte address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteAddr(pub u64);

impl ByteAddr {}

/// A line number in a recorded program's address space (virtual byte address / 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Virtual(pub u64);

impl Virtual {
    /// The first byte of this line.
    pub const fn byte(self) -> ByteAddr {
        ByteAddr(self.0 * LINE_BYTES as u64)
    }
}
