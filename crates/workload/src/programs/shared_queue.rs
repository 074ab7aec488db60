//! The queue of [`super::queue`], which all cores use: each transaction takes its one lock.

use super::{ProgramFile, queue};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "shared-queue",
    line: "puts an item into a ring that all cores use or takes one out",
    least_bytes: 0,
    build: queue::build,
};
