//! The results on a design: violations and findings, the coverage of a verdict, the shortest run that fails, its
//! history in words, and the report.

pub(crate) mod attacks;
pub(crate) mod coverage;
pub(crate) mod explanation;
pub(crate) mod findings;
pub(crate) mod passes;
pub(crate) mod report;
pub(crate) mod shrink;
pub(crate) mod violation;
