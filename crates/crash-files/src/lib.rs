//! Crash tests of programs that write files: what a power cut may leave of what they wrote, and whether their own
//! recovery copes.
//!
//! [`recording`] runs a program and writes down its [`operations`] on the files below a folder; [`model`] turns them into
//! effects and says when each is sure, as a [`file_system`] has it; [`image_choice`] chooses what a cut leaves of them, what
//! the recovery [`reads`] first,
//! and [`tree`] makes the folder of it with its [`content`], in a [`folder_copy`] of each worker; [`search`] runs the
//! recovery there, as a [`question`] asks; [`report`] tells the [findings](search::findings), by the [`places`] of operations, and what is [`untested`].
//! [`membership`] says whether the model leaves what a real file system left.
//! `docs/crash/files.md` tells the whole.

pub mod content;
pub mod file_system;
pub mod folder_copy;
pub mod image_choice;
pub mod image_order;
pub mod membership;
pub mod model;
pub mod operations;
pub mod places;
pub mod question;
pub mod reads;
pub mod recording;
pub mod report;
pub mod search;
pub mod tree;
pub mod untested;
