//! The results on a design: the coverage of a verdict, the shortest run that fails, and the report.

pub(crate) mod attacks;
pub(crate) mod coverage;
pub(crate) mod passes;
pub(crate) mod report;
pub(crate) mod shrink;
pub(crate) mod told;
