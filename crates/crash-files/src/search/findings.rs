//! What a search found.

use std::ops::Range;

use rustc_hash::FxHashSet;
use sardonyx_crash_test::verdict::Doubt;

use crate::file_system::FileSystem;
use crate::image_choice::OperationPart;
use crate::model::Model;
use crate::operations::Inode;
use crate::places::CallSite;
use crate::recording::RecordedRun;
use crate::search::reduce::Reduced;

#[derive(Debug)]
pub struct Cause {
    pub reduced: Reduced,
    /// Places and classes, by which other images of the cause are known.
    pub(crate) early: FxHashSet<OperationPart>,
    pub(crate) late: FxHashSet<OperationPart>,
    pub violations: u64,
    pub seconds: f64,
}

#[derive(Debug, Default)]
pub struct Found {
    pub causes: Vec<Cause>,
    pub images: u64,
    pub cuts: FxHashSet<u32>,
    pub violations: u64,
    /// The number of images up to the first violation.
    pub first_violation: Option<u64>,
    pub unreduced: u64,
    /// The number of images that failed in one run and not in another.
    pub flaky: u64,
    pub left_out: u64,
    /// The number of refusals like that of the untouched folder, before anything was promised.
    pub refused: u64,
    /// The number of passes over all cuts that came to their end.
    pub passes: usize,
    pub finished: bool,
    pub recoveries: u64,
    pub seconds: f64,
    /// The seconds of the recovery without a cut.
    pub alone: f64,
    /// The first cut at which the recovery copes with what is sure.
    pub start: Option<u32>,
    /// The bytes of files that the recovery read in runs that were followed.
    pub(crate) reads: Vec<(Inode, Vec<Range<u64>>)>,
    pub doubts: Vec<Doubt>,
    pub rests_on: Vec<String>,
    pub notes: Vec<String>,
}

pub struct Explored {
    pub recording: RecordedRun,
    pub model: Model,
    pub platform: FileSystem,
    pub places: Vec<CallSite>,
    pub found: Found,
    /// The end of the program's standard error.
    pub said: String,
    /// The runs in which one call failed, each with that call.
    pub errors: Vec<(String, Explored)>,
}
