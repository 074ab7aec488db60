//! Workloads: an IOzone-like stream with a set share of duplicates, the files of a real directory tree, a recorded
//! block trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fastcdc::v2020::StreamCDC;
use sardonyx_base::random::mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::block_trace::BlockTrace;
use crate::operation::{Content, Operation, WorkloadError, failed};
use crate::synthetic::Made;

/// Where blocks come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workload {
    #[schemars(title = "Stream")]
    /// Generated, as IOzone does with its share of duplicates: logical blocks in order, each once unless
    /// they are fewer than what is written. Shares are met exactly.
    Stream(Stream),
    #[schemars(title = "Tree")]
    /// The files below a directory, or one file.
    Tree(Tree),
    #[schemars(title = "BlockTrace")]
    /// A recorded block trace: FIU's with digests, MSR's, fio's, MQSim's or blkparse's without.
    Trace(BlockTrace),
}

/// Every file below a directory, or one file, in order of names. The last block of a file is filled up with
/// zeros.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The directory or file.
    pub path: PathBuf,
}

/// A generated stream. Shares are met exactly, evenly spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Bytes written.
    pub bytes: u64,
    /// Bytes of logical blocks that are written, again and again; 0 for as many as `bytes`.
    #[serde(default)]
    pub span: u64,
    /// Share of writes whose content was written before.
    #[serde(default = "three_tenths")]
    pub duplicates: f64,
    /// Share of operations that read a block written before.
    #[serde(default)]
    pub reads: f64,
    /// The seed that chooses the duplicates and the reads.
    #[serde(default)]
    pub seed: u64,
    /// Whether each write is encrypted under a pad of its own before it comes.
    #[serde(default)]
    pub encrypted: bool,
}

/// The share of the paper's figure in words (Sec. IV).
fn three_tenths() -> f64 {
    0.3
}

impl Workload {
    pub fn has_bytes(&self) -> bool {
        matches!(self, Workload::Tree(_))
    }

    /// Checks the workload.
    ///
    /// # Errors
    /// A share outside its range, a path that is not there, blocks that do not suit a trace.
    pub fn check(&self, block_bytes: u32) -> Result<(), WorkloadError> {
        let bad = |problem: String| Err(WorkloadError::Bad(problem));
        match self {
            Workload::Stream(stream) => {
                if !(0.0..=1.0).contains(&stream.duplicates) {
                    return bad(format!("duplicates = {}: give 0 to 1", stream.duplicates));
                }
                if !(0.0..1.0).contains(&stream.reads) {
                    return bad(format!(
                        "reads = {}: give 0 to less than 1; something has to be written",
                        stream.reads
                    ));
                }
                if stream.bytes < u64::from(block_bytes) {
                    return bad(format!(
                        "bytes = {}: give at least a block of {block_bytes}",
                        stream.bytes
                    ));
                }
                if stream.span > 0 && stream.span < u64::from(block_bytes) {
                    return bad(format!(
                        "span = {}: give 0, or at least a block of {block_bytes}",
                        stream.span
                    ));
                }
            }
            Workload::Tree(Tree { path }) => {
                path.symlink_metadata().map_err(|e| failed(path, e))?;
            }
            Workload::Trace(trace) => trace.check(block_bytes)?,
        }
        Ok(())
    }

    /// The number of operations; 0 if unknown.
    pub fn operations(&self, block_bytes: u32) -> u64 {
        match self {
            Workload::Stream(stream) => {
                let writes = stream.bytes / u64::from(block_bytes);
                writes + (writes as f64 * stream.reads / (1.0 - stream.reads)) as u64
            }
            _ => 0,
        }
    }

    /// The most bytes that may be written: for a tree an upper bound, for a trace one by its length.
    pub fn bytes_at_most(&self, block_bytes: u32) -> Result<u64, WorkloadError> {
        Ok(match self {
            Workload::Stream(stream) => stream.bytes,
            Workload::Tree(Tree { path }) => {
                let mut bytes = 0;
                for file in files(path) {
                    let file = file?;
                    let length = file.metadata().map_err(|e| failed(&file, e))?.len();
                    bytes += length.next_multiple_of(u64::from(block_bytes));
                }
                bytes
            }
            Workload::Trace(trace) => trace.bytes_at_most(block_bytes)?,
        })
    }

    /// Runs every operation, in order.
    ///
    /// # Errors
    /// The first of the workload's or of `each`.
    pub fn run<E: From<WorkloadError>>(
        &self,
        block_bytes: u32,
        each: &mut dyn FnMut(Operation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Workload::Stream(stream) => stream.run(block_bytes, each),
            Workload::Tree(Tree { path }) => run_tree(path, block_bytes, each),
            Workload::Trace(trace) => trace.run(block_bytes, each),
        }
    }
}

impl Workload {
    /// Writes the files of a tree as chunks cut by content (FastCDC, 2020), of this many bytes on average; a chunk's
    /// number is its address. Other workloads have no chunks.
    ///
    /// # Errors
    /// The first of the file system's or of `each`.
    pub fn run_chunks<E: From<WorkloadError>>(
        &self,
        average: u32,
        each: &mut dyn FnMut(Operation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Workload::Tree(Tree { path }) = self else {
            return Ok(());
        };
        let average = average as usize;
        let mut lba = 0;
        for file in files(path) {
            let file = file?;
            let bytes = File::open(&file).map_err(|e| failed(&file, e))?;
            for chunk in StreamCDC::new(bytes, average / 4, average, average * 4) {
                let chunk = chunk.map_err(|e| failed(&file, e.into()))?;
                each(Operation::Write(lba, Content::Bytes(&chunk.data)))?;
                lba += 1;
            }
        }
        Ok(())
    }
}

impl Stream {
    fn run<E>(
        &self,
        block_bytes: u32,
        each: &mut dyn FnMut(Operation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let writes = self.bytes / u64::from(block_bytes);
        let span = match self.span / u64::from(block_bytes) {
            0 => writes,
            blocks => blocks,
        };
        let reads_a_write = self.reads / (1.0 - self.reads);
        let (mut unique, mut duplicates, mut reads) = (0_u64, 0_u64, 0_u64);
        for number in 0..writes {
            let due = ((number + 1) as f64 * self.duplicates) as u64;
            let content = if duplicates < due && unique > 0 {
                duplicates += 1;
                mix(self.seed ^ mix(number)) % unique
            } else {
                unique += 1;
                unique - 1
            };
            let made = Made {
                content: u128::from(self.seed) << 64 | u128::from(content),
                pad: if self.encrypted { number + 1 } else { 0 },
            };
            each(Operation::Write(number % span, Content::Made(made)))?;
            let due = ((number + 1) as f64 * reads_a_write) as u64;
            while reads < due {
                reads += 1;
                let lba = mix(self.seed.wrapping_add(1) ^ mix(reads)) % (number + 1).min(span);
                each(Operation::Read(lba))?;
            }
        }
        Ok(())
    }
}

/// The files of a tree, in order of names; links are not followed.
fn files(path: &Path) -> impl Iterator<Item = Result<PathBuf, WorkloadError>> {
    let walk = WalkDir::new(path).sort_by_file_name();
    walk.into_iter().filter_map(|entry| match entry {
        Ok(entry) if entry.file_type().is_file() => Some(Ok(entry.into_path())),
        Ok(_) => None,
        Err(error) => Some(Err(WorkloadError::Bad(error.to_string()))),
    })
}

fn run_tree<E: From<WorkloadError>>(
    path: &Path,
    block_bytes: u32,
    each: &mut dyn FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut block = vec![0; block_bytes as usize];
    let mut lba = 0;
    for file in files(path) {
        let file = file?;
        let mut bytes = File::open(&file).map_err(|e| failed(&file, e))?;
        loop {
            let length = fill(&mut bytes, &mut block).map_err(|e| failed(&file, e))?;
            if length == 0 {
                break;
            }
            block[length..].fill(0);
            each(Operation::Write(lba, Content::Bytes(&block)))?;
            lba += 1;
        }
    }
    Ok(())
}

/// Reads as many bytes as there are, up to a block.
fn fill(from: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < block.len() {
        match from.read(&mut block[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
