//! Crash tests of programs that write files: what a power cut may leave of what they wrote, and whether their own
//! recovery copes.
//!
//! [`recording`] runs a program and writes down its [`operations`] on the files below a folder; [`model`] turns them into
//! effects and says when each is sure; [`images`] chooses what a cut leaves of them; [`search`] runs the recovery on it, as
//! a [`question`] asks; [`report`] names the operations, by line of code.
//! `docs/crash/files.md` tells the whole.

pub mod content;
pub mod images;
pub mod model;
pub mod operations;
pub mod question;
pub mod recording;
pub mod report;
pub mod search;
pub mod tree;
