//! The medium: what it is made of ([`params`]), the bytes it holds and how it wears.

pub mod params;
