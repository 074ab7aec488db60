//! Estimates the savings of deduplication: distinct chunks of a tree, a file, a device, a stream or a trace of digests,
//! counted in memory that is known beforehand ([`plan`]), by several ways of cutting at once. docs/store/estimate.md
//! explains the figures.
//!
//! [`costs`] asks the designs for the cost of storing it. Left out: how it is shown.
#![forbid(unsafe_code)]

mod cost;
mod cutting;
mod distinct;
mod request;
mod state;
mod traces;
mod tree;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use cost::{DesignCost, costs};
use cutting::{BUFFER, ByContent, Compression, Fixed};
pub use distinct::References;
use distinct::{Allotment, Distinct};
pub use request::Request;
pub use traces::Format;
use tree::{DirectoryTree, TreeFile};

/// A run saves its progress this often, so that a run that ends can be continued.
const KEEP_EVERY: Duration = Duration::from_secs(60);
const NAMED: usize = 10;
/// Memory besides the tables: buffers, a directory's names.
const BESIDE: u64 = 16 << 20;

/// What to read, and how to count it.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    /// A directory, a file, a device, or `-` for standard input.
    pub path: String,
    /// The format, if it is a trace of digests.
    pub trace: Option<Format>,
    /// Bytes of fixed blocks, ascending; each a multiple of the first.
    pub blocks: Vec<u32>,
    /// Average bytes of chunks by content.
    pub content_defined: Option<u32>,
    /// The level of zstd at which each distinct chunk is compressed too, from 1 to 22.
    pub compress: Option<i32>,
    /// The most memory in bytes.
    pub memory: u64,
    /// The file that keeps what has been found so far, and from which the estimate goes on.
    pub state: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub struct TablePlan {
    pub bytes: Option<u64>,
    pub files: u64,
    pub memory_bytes: u64,
    pub exact: bool,
    #[serde(skip)]
    tables: Vec<Allotment>,
}

#[derive(Debug, Serialize)]
pub struct Estimate {
    /// The bytes that were read; for a trace, those of its writes.
    pub bytes: u64,
    pub files: u64,
    pub memory_bytes: u64,
    pub unreadable: u64,
    pub unreadable_named: Vec<String>,
    /// Bytes of holes in files, by whole blocks of the smallest size: no store keeps them; not among `bytes`.
    pub hole_bytes: u64,
    pub reads: u64,
    pub cuttings: Vec<Cutting>,
}

#[derive(Debug, Serialize)]
pub struct Cutting {
    /// `fixed`, `content-defined` or, of a trace, `recorded`.
    pub kind: &'static str,
    /// Bytes of a block; for chunks by content, the intended average; `None` for a trace.
    pub chunk_bytes: Option<u32>,
    pub chunks: u64,
    /// Always exact.
    pub bytes: u64,
    /// The number of chunks of zeros; 0 for a trace, which does not tell.
    pub zero_chunks: u64,
    pub unique_chunks: u64,
    pub unique_bytes: u64,
    /// `bytes / unique_bytes`; `None` if there are no chunks.
    pub ratio: Option<f64>,
    #[serde(flatten)]
    pub compressed: Option<Compressed>,
    /// One distinct content in this many is counted, and the figures are scaled; with 1 they are exact.
    pub followed_one_in: u64,
    pub references: Vec<References>,
}

/// Bytes if each chunk is compressed by itself, or kept as it is where that is shorter.
#[derive(Debug, PartialEq, Serialize)]
pub struct Compressed {
    /// Of every chunk, duplicates among them.
    pub compressed_bytes: u64,
    /// Of distinct chunks: after deduplication and compression.
    pub unique_compressed_bytes: u64,
    /// `bytes / unique_compressed_bytes`; `None` if there are no chunks.
    pub ratio_compressed: Option<f64>,
}

#[derive(Debug, thiserror::Error)]
pub enum EstimateError {
    /// The question makes no sense, or the input is not of the stated kind.
    #[error("{0}")]
    Bad(String),
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// The caller has cancelled it; what was found was saved.
    #[error("interrupted; the same command goes on from {0}")]
    Kept(String),
    /// The caller has cancelled it; nothing was saved.
    #[error("interrupted; name a file by --state to be able to go on")]
    Lost,
}

type EstimateResult<T> = Result<T, EstimateError>;

fn bad<T>(message: impl Into<String>) -> EstimateResult<T> {
    Err(EstimateError::Bad(message.into()))
}

impl Question {
    fn check(&self) -> EstimateResult<()> {
        let streams = self.path == "-";
        if self.state.is_some() && (streams || self.trace.is_some()) {
            return bad("--state: only a tree, a file or a device can be gone on with");
        }
        let smallest = self.blocks.first().copied().unwrap_or(0);
        for &size in &self.blocks {
            if size < 512 || size as usize > BUFFER || !size.is_power_of_two() {
                return bad(format!("--block {size}: give powers of two from 512 to 1M"));
            }
        }
        if !self.blocks.is_sorted_by(|one, next| one < next) {
            return bad("--block: give each size once, the smallest first");
        }
        if let Some(average) = self.content_defined
            && !(1024..=1 << 20).contains(&average)
        {
            return bad(format!("--content-defined {average}: give 1K to 1M"));
        }
        if let Some(level) = self.compress
            && !(1..=22).contains(&level)
        {
            return bad(format!("--compress {level}: give a level of zstd, 1 to 22"));
        }
        if smallest == 0 && self.content_defined.is_none() {
            return bad("--block: give at least one size");
        }
        if self.memory < 2 * BESIDE {
            return bad(format!(
                "--memory {}: give at least {}",
                self.memory,
                2 * BESIDE
            ));
        }
        Ok(())
    }

    /// Tables in the order of the cuttings, each as large as its contents need or the memory allows.
    fn plan(&self, bytes: Option<u64>, files: u64, links: u64) -> TablePlan {
        let needs = |least: u64| bytes.map_or(u64::MAX >> 8, |bytes| bytes / least + files);
        let mut wanted: Vec<u64> = match self.trace {
            Some(format) => vec![needs(format.shortest())],
            None => self
                .blocks
                .iter()
                .map(|&size| needs(u64::from(size)))
                .collect(),
        };
        if let (Some(average), None) = (self.content_defined, self.trace) {
            wanted.push(needs(u64::from(average / 4)));
        }
        let beside = BESIDE + links * tree::LINK;
        let tables = Allotment::share(
            &wanted,
            self.memory.saturating_sub(beside),
            self.compress.is_some(),
        );
        TablePlan {
            bytes,
            files,
            memory_bytes: beside + tables.iter().map(Allotment::bytes).sum::<u64>(),
            exact: tables
                .iter()
                .zip(&wanted)
                .all(|(table, &wanted)| table.limit() as u64 >= wanted),
            tables,
        }
    }
}

/// Reads only names and sizes, and tells how much memory the rest will take.
pub fn plan(question: &Question) -> EstimateResult<TablePlan> {
    question.check()?;
    if question.path == "-" {
        return Ok(question.plan(None, 1, 0));
    }
    let size = tree::size(Path::new(&question.path))?;
    if let (Some(_), None) = (question.trace, size.single) {
        return bad(format!(
            "{}: is a directory; a trace is a file",
            question.path
        ));
    }
    Ok(question.plan(size.bytes, size.files, size.links))
}

/// Reads everything. `tell` is told the bytes done and in all (0 if unknown), and answers whether to continue.
pub fn estimate(question: &Question, tell: &dyn Fn(u64, u64) -> bool) -> EstimateResult<Estimate> {
    let plan = plan(question)?;
    let mut tables: Vec<Distinct> = plan.tables.iter().map(Distinct::new).collect();
    let total = plan.bytes.unwrap_or(0);
    if let Some(format) = question.trace {
        let name = &question.path;
        let input = open_input(name)?;
        let counted = traces::count(name, input, format, &mut tables[0], &|done| {
            tell(done, total)
        })?;
        let cuttings = vec![Cutting::new("recorded", None, &tables[0])];
        return Ok(Estimate {
            bytes: cuttings[0].bytes,
            files: counted.files,
            memory_bytes: plan.memory_bytes,
            unreadable: 0,
            unreadable_named: Vec::new(),
            hole_bytes: 0,
            reads: counted.reads,
            cuttings,
        });
    }
    let mut work = EstimateWork::new(question, tables)?;
    if question.path == "-" {
        let mut input = open_input("-")?;
        work.input(&mut input, None, &mut |work| {
            proceed(tell(work.place.offset, 0))
        })
        .map_err(|error| error.named("standard input"))
        .map(|()| work.place.files += 1)
    } else {
        work.tree(question, total, tell)
    }?;
    let kinds = question.blocks.iter().map(|&size| ("fixed", size));
    let kinds = kinds.chain(
        question
            .content_defined
            .map(|average| ("content-defined", average)),
    );
    let cuttings: Vec<Cutting> = kinds
        .zip(&work.tables)
        .map(|((kind, size), table)| Cutting::new(kind, Some(size), table))
        .collect();
    Ok(Estimate {
        bytes: cuttings[0].bytes,
        files: work.place.files,
        memory_bytes: plan.memory_bytes,
        unreadable: work.place.unreadable,
        unreadable_named: work.place.unreadable_named,
        hole_bytes: work.place.holes,
        reads: 0,
        cuttings,
    })
}

impl Cutting {
    fn new(kind: &'static str, chunk_bytes: Option<u32>, table: &Distinct) -> Cutting {
        let (unique_chunks, unique_bytes) = table.unique();
        let ratio = |kept: u64| (kept > 0).then(|| table.bytes as f64 / kept as f64);
        Cutting {
            kind,
            chunk_bytes,
            chunks: table.chunks,
            bytes: table.bytes,
            zero_chunks: table.zero_chunks,
            unique_chunks,
            unique_bytes,
            ratio: ratio(unique_bytes),
            compressed: table.compressed().map(|(unique, all)| Compressed {
                compressed_bytes: all,
                unique_compressed_bytes: unique,
                ratio_compressed: ratio(unique),
            }),
            followed_one_in: table.one_in(),
            references: table.references(),
        }
    }
}

fn open_input(name: &str) -> EstimateResult<Box<dyn Read>> {
    Ok(match name {
        "-" => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(name).map_err(|error| EstimateError::Io(name.into(), error))?),
    })
}

/// The parts of the `length` bytes from `from` on that are no holes: all of them where the file system does not tell.
/// It moves the file's position.
fn data_within(file: &File, from: u64, length: usize) -> Vec<Range<usize>> {
    use rustix::fs::{SeekFrom, seek};
    let end = from + length as u64;
    let place = |at: u64| (at.clamp(from, end) - from) as usize;
    let mut parts = Vec::new();
    let mut at = from;
    while at < end {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => at,
        };
        if begin >= end {
            break;
        }
        at = seek(file, SeekFrom::Hole(begin))
            .unwrap_or(end)
            .max(begin + 1);
        parts.push(place(begin)..place(at));
    }
    parts
}

enum Stop {
    Read(io::Error),
    Unwanted,
    Keep(EstimateError),
}

impl Stop {
    fn named(self, name: &str) -> EstimateError {
        match self {
            Stop::Read(error) => EstimateError::Io(name.into(), error),
            Stop::Unwanted => EstimateError::Lost,
            Stop::Keep(error) => error,
        }
    }
}

fn proceed(wanted: bool) -> Result<(), Stop> {
    if wanted { Ok(()) } else { Err(Stop::Unwanted) }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Progress {
    entries: u64,
    files: u64,
    unreadable: u64,
    unreadable_named: Vec<String>,
    /// The file that is being read, its length, and the part that has been read.
    name: String,
    length: u64,
    offset: u64,
    /// Bytes before it.
    bytes: u64,
    #[serde(default)]
    holes: u64,
}

struct EstimateWork {
    fixed: Fixed,
    by_content: Option<ByContent>,
    /// A table for each size of fixed blocks, then one for chunks cut by content.
    tables: Vec<Distinct>,
    compression: Compression,
    place: Progress,
    buffer: Vec<u8>,
}

impl EstimateWork {
    fn new(question: &Question, tables: Vec<Distinct>) -> EstimateResult<EstimateWork> {
        let compression = Compression::new(question.compress);
        Ok(EstimateWork {
            compression: compression.map_err(|error| EstimateError::Io("zstd".into(), error))?,
            fixed: Fixed::new(&question.blocks),
            by_content: question.content_defined.map(ByContent::new),
            tables,
            place: Progress::default(),
            buffer: vec![0; BUFFER],
        })
    }

    /// Reads every file below the path, and continues from the state if there is one.
    fn tree(
        &mut self,
        question: &Question,
        total: u64,
        tell: &dyn Fn(u64, u64) -> bool,
    ) -> EstimateResult<()> {
        let kept = question.state.as_deref();
        if let Some(path) = kept.filter(|path| path.exists()) {
            state::load(path, question, self)?;
        }
        let done = self.place.entries as usize;
        let mut last_kept = Instant::now();
        for found in DirectoryTree::below(Path::new(&question.path)).skip(done) {
            match found {
                Err(reason) => self.unreadable(reason),
                Ok(TreeFile { path, length }) => {
                    let name = path.to_string_lossy().into_owned();
                    self.begin_or_go_on(&name, length, kept)?;
                    let before = self.place.bytes;
                    let ended = self.file_at(&path, &mut |work| {
                        let wanted = tell(before + work.place.offset, total);
                        if let Some(path) = kept
                            && (!wanted || last_kept.elapsed() > KEEP_EVERY)
                        {
                            state::save(path, question, work).map_err(Stop::Keep)?;
                            last_kept = Instant::now();
                        }
                        proceed(wanted)
                    });
                    match (ended, kept) {
                        (Ok(()), _) => self.place.files += 1,
                        (Err(Stop::Read(error)), _) => self.unreadable(format!("{name}: {error}")),
                        (Err(Stop::Unwanted), Some(path)) => {
                            return Err(EstimateError::Kept(path.display().to_string()));
                        }
                        (Err(stop), _) => return Err(stop.named(&name)),
                    }
                }
            }
            self.place.bytes += self.place.offset;
            self.place.offset = 0;
            self.place.entries += 1;
        }
        if let Some(path) = kept.filter(|path| path.exists()) {
            std::fs::remove_file(path)
                .map_err(|error| EstimateError::Io(path.display().to_string(), error))?;
        }
        Ok(())
    }

    /// Notes which file is read; an error if the state was saved in another one.
    fn begin_or_go_on(
        &mut self,
        name: &str,
        length: u64,
        kept: Option<&Path>,
    ) -> EstimateResult<()> {
        if self.place.offset == 0 {
            (self.place.name, self.place.length) = (name.to_owned(), length);
        } else if (self.place.name.as_str(), self.place.length) != (name, length) {
            let kept = kept.unwrap_or(Path::new("--state")).display();
            return bad(format!(
                "{kept}: it was left within {}, of {} bytes, where {name}, of {length}, is now; \
                 what is read has changed, so remove {kept} and begin again",
                self.place.name, self.place.length
            ));
        }
        Ok(())
    }

    fn file_at(
        &mut self,
        path: &Path,
        after: &mut dyn FnMut(&EstimateWork) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut file = File::open(path).map_err(Stop::Read)?;
        file.seek(SeekFrom::Start(self.place.offset))
            .map_err(Stop::Read)?;
        let holes = file.try_clone().map_err(Stop::Read)?;
        self.input(&mut file, Some(&holes), after)
    }

    /// Skips the hole of the file from here on, in whole buffers, so that each buffer begins at a multiple of every
    /// size of block.
    fn skip_hole(&mut self, mut file: &File) -> io::Result<()> {
        let from = self.place.offset;
        let length = file.metadata()?.len();
        let data = match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(from)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) if from < length => length,
            Err(_) => from,
        };
        let whole = (data - from) / BUFFER as u64 * BUFFER as u64;
        let to = from + whole;
        file.seek(SeekFrom::Start(to))?;
        if to > from {
            if let (Some(by_content), Some(table)) = (&mut self.by_content, self.tables.last_mut())
            {
                by_content.end(table, &mut self.compression);
            }
            self.place.holes += to - from;
            self.place.offset = to;
        }
        Ok(())
    }

    /// Cuts and counts to the input's end, and calls `after` at each buffer. `holes` is the file whose holes are
    /// skipped.
    fn input(
        &mut self,
        input: &mut dyn Read,
        holes: Option<&File>,
        after: &mut dyn FnMut(&EstimateWork) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut ended = Ok(());
        while ended.is_ok() {
            if let Some(file) = holes
                && let Err(error) = self.skip_hole(file)
            {
                ended = Err(Stop::Read(error));
                break;
            }
            let read = fill(input, &mut buffer);
            let length = *read.as_ref().unwrap_or(&0);
            let last = length < buffer.len();
            let data = match holes {
                Some(file) => data_within(file, self.place.offset, length),
                None => std::iter::once(0..length).collect(),
            };
            self.part(&buffer[..length], &data, last);
            self.place.offset += length as u64;
            ended = read
                .map(|_| ())
                .map_err(Stop::Read)
                .and_then(|()| after(self));
            if last {
                break;
            }
        }
        self.buffer = buffer;
        ended
    }

    fn part(&mut self, bytes: &[u8], data: &[Range<usize>], last: bool) {
        let compression = &mut self.compression;
        self.place.holes += self.fixed.part(bytes, data, &mut self.tables, compression);
        if let (Some(by_content), Some(table)) = (&mut self.by_content, self.tables.last_mut()) {
            by_content.part(bytes, data, last, table, compression);
        }
    }

    fn unreadable(&mut self, reason: String) {
        self.place.unreadable += 1;
        if self.place.unreadable_named.len() < NAMED {
            self.place.unreadable_named.push(reason);
        }
    }
}

fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
