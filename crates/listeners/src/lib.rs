//! Listeners that write a run down: a timeline for Perfetto, a table of all requests. They are told of a run through
//! `plan::observe` and change nothing in it; a run without listeners pays nothing.

pub mod commands;
mod media;
pub mod requests;
pub mod timeline;
