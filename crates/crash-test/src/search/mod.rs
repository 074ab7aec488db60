//! The search for images that fail: which are tried, and how a failure is reduced to what decides it.
//!
//! [`crew`] is the engine, for any kind of image, and [`fewest`] reduces. The rest is about mapped pools: [`explore`]
//! checks what is asked, [`undisturbed`] runs the recovery without a cut, [`rounds`] looks until nothing new is found,
//! [`look`] makes one round of passes over all cuts, [`start`] finds the first cut, [`jobs`] are what workers do, and
//! [`judge`] judges one image.

pub mod crew;
pub mod explore;
pub mod fewest;
pub mod findings;
pub(crate) mod jobs;
pub mod judge;
pub(crate) mod known_causes;
pub(crate) mod look;
pub(crate) mod prefixes;
pub mod reduce;
pub(crate) mod rounds;
pub(crate) mod start;
pub(crate) mod undisturbed;
