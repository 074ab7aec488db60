//! The search for images that fail, on the engine of crash tests: [`explore`] runs and records the program, [`begin`] runs
//! the recovery without a cut and finds the first cut, [`look`] tries images, and [`reduce`] finds what decides.

pub(crate) mod begin;
pub mod explore;
pub mod findings;
pub(crate) mod look;
pub mod reduce;
