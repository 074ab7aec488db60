//! What is said of a design in the end: violations and findings, what a verdict rests on, the shortest run that fails, its
//! history in words, and the report.

pub(crate) mod attacks;
pub(crate) mod coverage;
pub(crate) mod explanation;
pub(crate) mod findings;
pub(crate) mod passes;
pub(crate) mod report;
pub(crate) mod shrink;
pub(crate) mod violation;
