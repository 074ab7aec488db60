//! Placeholder until the codes land: the names of the matrices.

/// Which SECDED (72,64) code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// Truncated (127,120) Hamming plus parity.
    TruncatedHamming,
    /// Hsiao, as OpenTitan has it.
    HsiaoOpenTitan,
    /// Hsiao 1970, figure 6.
    Hsiao1970,
}
