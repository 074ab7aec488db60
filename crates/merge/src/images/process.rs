//! Live processes: the anonymous pages of their private mappings, which are what KSM can merge, read from
//! `/proc/PID/mem`. `pagemap` says which pages are there, so that reading makes none.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::{ContentPool, Data, ImageError, NamedRange, PageExtent, Snapshot, pool};
use crate::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
const ENTRIES: usize = 1 << 16;
/// The error of reading an address that is not mapped.
const EIO: i32 = 5;
// Bits of `pagemap`: Documentation/admin-guide/mm/pagemap.rst.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
const FRAME: u64 = (1 << 55) - 1;
// Bits of `kpageflags`: include/uapi/linux/kernel-page-flags.h.
const KSM: u64 = 1 << 21;
const HUGE: u64 = 1 << 22;
const ZERO_PAGE: u64 = 1 << 24;

/// Facts about a process besides the bytes of its anonymous pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ProcessPages {
    pub anonymous: u64,
    pub shared_already: u64,
    /// Anonymous pages that are part of a huge page.
    pub huge: u64,
    pub zero_page: u64,
    /// Anonymous pages that other processes map as well since a fork: one frame already, unmerged.
    pub forked: u64,
    /// Pages in swap, which were not read.
    pub swapped: u64,
    /// Anonymous pages in mappings that the process has offered for merging.
    pub offered: u64,
    pub merged: u64,
    pub kernel: Vec<(String, i64)>,
    /// Set if frames could be looked at, so that huge, merged and zero pages are known.
    pub frames_known: bool,
    /// Huge pages, each by its address over 2 MiB; ascending.
    #[serde(skip)]
    pub huge_at: Vec<u64>,
}

pub const HUGE_PAGES: u64 = 512;
const BATCH: usize = 64;

/// Which mappings are read: those whose name contains one of `named`, if there is any; only those offered for merging.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub named: &'a [String],
    pub offered: bool,
}

struct ProcessMapping {
    pages: Range<u64>,
    name: String,
}

/// A live process. Its folder in `/proc` is held open: another process that gets the same number
/// later is not taken for it.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    folder: File,
}

impl Process {
    pub fn open(pid: u32) -> Result<Process, ImageError> {
        let folder = File::open(format!("/proc/{pid}")).map_err(|_| {
            ImageError(format!(
                "--pid {pid}: there is no such process; `ps` lists them"
            ))
        })?;
        Ok(Process { pid, folder })
    }

    pub fn name(&self) -> String {
        let command = fs::read_to_string(self.path("comm")).unwrap_or_default();
        format!("pid {} ({})", self.pid, command.trim())
    }

    fn path(&self, file: &str) -> String {
        format!("/proc/self/fd/{}/{file}", self.folder.as_raw_fd())
    }

    fn file(&self, name: &str) -> Result<File, ImageError> {
        File::open(self.path(name)).map_err(|error| self.bad(name, &error))
    }

    fn text(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.path(name))
    }

    fn has_ended(&self) -> bool {
        // Documentation/filesystems/proc.rst: the state follows the command, which is in brackets.
        let stat = fs::read(self.path("stat")).unwrap_or_default();
        let after = stat.iter().rposition(|byte| *byte == b')');
        after.is_none_or(|at| matches!(stat.get(at + 2), None | Some(b'Z' | b'X')))
    }

    fn bad(&self, file: &str, error: &io::Error) -> ImageError {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "you may not read its memory; run as its owner with ptrace allowed, or as root"
            }
            _ => "is it a process with memory of its own?",
        };
        let pid = self.pid;
        ImageError(format!(
            "--pid {pid}: /proc/{pid}/{file}: {error}: {remedy}"
        ))
    }

    pub fn without_pages(&self, wanted: &Wanted<'_>) -> ImageError {
        let pid = self.pid;
        let problem = match self.text("maps") {
            Ok(maps) if maps.is_empty() => {
                "it has no memory of its own: it is a kernel thread".to_owned()
            }
            _ if wanted.offered => {
                "it has offered no pages in memory for merging: madvise(MADV_MERGEABLE) or prctl(PR_SET_MEMORY_MERGE)".to_owned()
            }
            _ if wanted.named.is_empty() => "it has no anonymous pages in memory".to_owned(),
            _ => format!(
                "it has no anonymous pages in memory in the mappings asked for; `/proc/{pid}/maps` lists them"
            ),
        };
        ImageError(format!("--pid {pid}: {problem}"))
    }
}

/// The private mappings that are wanted.
fn mappings(
    process: &Process,
    wanted: &Wanted<'_>,
    offered: &[Range<u64>],
) -> Result<Vec<ProcessMapping>, ImageError> {
    let maps = process.text("maps");
    let maps = maps.map_err(|error| process.bad("maps", &error))?;
    let mut found = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (Some(range), Some(access)) = (fields.next(), fields.next()) else {
            continue;
        };
        let name = fields.skip(3).collect::<Vec<_>>().join(" ");
        let kernels = ["[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]"];
        if !access.starts_with('r') || !access.ends_with('p') || kernels.contains(&&*name) {
            continue;
        }
        let name = if name.is_empty() {
            "[anonymous]".to_owned()
        } else {
            name
        };
        let parse = |text: &str| u64::from_str_radix(text, 16).ok().map(|at| at / PAGE);
        let ends = range
            .split_once('-')
            .and_then(|(a, b)| Some((parse(a)?, parse(b)?)));
        let named = wanted.named;
        let chosen = named.is_empty() || named.iter().any(|part| name.contains(part));
        if let (Some((first, end)), true) = (ends, chosen)
            && (!wanted.offered || offered.iter().any(|range| range.contains(&first)))
        {
            found.push(ProcessMapping {
                pages: first..end,
                name,
            });
        }
    }
    Ok(found)
}

fn offered(process: &Process) -> Vec<Range<u64>> {
    let smaps = process.text("smaps").unwrap_or_default();
    let (mut found, mut current) = (Vec::new(), 0..0);
    for line in smaps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-')
            && let (Ok(start), Ok(end)) =
                (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        {
            current = start / PAGE..end / PAGE;
        } else if first == "VmFlags:" && line.split_whitespace().any(|flag| flag == "mg") {
            found.push(current.clone());
        }
    }
    found
}

fn kernel_says(process: &Process) -> Vec<(String, i64)> {
    let stat = process.text("ksm_stat").unwrap_or_default();
    let pairs = stat.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((
            name.trim_end_matches(':').to_owned(),
            value.trim().parse().ok()?,
        ))
    });
    pairs.collect()
}

impl Process {
    /// Reads the anonymous pages in the mappings that are wanted, and adds each to `pool` as soon as it is read. `None` if the process has exited.
    pub fn snapshot(
        &self,
        wanted: &Wanted<'_>,
        pool: &mut ContentPool,
    ) -> Result<Option<(Snapshot, ProcessPages)>, ImageError> {
        let read = read(self, wanted, pool);
        // Pages of a process that exited meanwhile are incomplete, or an error.
        match self.has_ended() {
            true => Ok(None),
            false => read.map(Some),
        }
    }
}

struct Reading<'p> {
    process: &'p Process,
    pool: &'p mut ContentPool,
    memory: File,
    flags: Option<File>,
    offered: Vec<Range<u64>>,
    about: ProcessPages,
    extents: Vec<PageExtent>,
    contents: Vec<u32>,
    missing: u64,
    /// Pages in a row to be read, each with the kernel's flags of its frame and whether no other process maps it.
    batch: Vec<(u64, u64, bool)>,
    bytes: Vec<u8>,
}

fn read(
    process: &Process,
    wanted: &Wanted<'_>,
    pool: &mut ContentPool,
) -> Result<(Snapshot, ProcessPages), ImageError> {
    let offered = offered(process);
    let mappings = mappings(process, wanted, &offered)?;
    if mappings.is_empty() {
        return Ok((Snapshot::empty(), ProcessPages::default()));
    }
    let pagemap = process.file("pagemap")?;
    let mut reading = Reading {
        memory: process.file("mem")?,
        flags: File::open("/proc/kpageflags").ok(),
        offered,
        process,
        pool,
        about: ProcessPages::default(),
        extents: Vec::new(),
        contents: Vec::new(),
        missing: 0,
        batch: Vec::with_capacity(BATCH),
        bytes: vec![0; BATCH * PAGE_BYTES],
    };
    let mut entries = vec![0; ENTRIES * 8];
    for mapping in &mappings {
        let mut at = mapping.pages.start;
        while at < mapping.pages.end {
            let count = ENTRIES.min((mapping.pages.end - at) as usize);
            let read = pagemap.read_at(&mut entries[..count * 8], at * 8);
            let read = read.map_err(|error| process.bad("pagemap", &error))?;
            for (page, entry) in (at..).zip(entries[..read].as_chunks::<8>().0) {
                reading.look(page, u64::from_ne_bytes(*entry))?;
            }
            if read == 0 {
                break;
            }
            at += count as u64;
        }
    }
    reading.take_batch()?;
    let mut about = reading.about;
    about.kernel = kernel_says(process);
    about.huge_at.sort_unstable();
    about.huge_at.dedup();
    let names = mappings.into_iter().map(|mapping| NamedRange {
        first: mapping.pages.start,
        end: mapping.pages.end,
        name: mapping.name,
    });
    let snapshot = Snapshot {
        data: Data::Contents(reading.contents),
        extents: reading.extents,
        names: names.collect(),
        missing: reading.missing,
        holes: 0,
    };
    Ok((snapshot, about))
}

impl Reading<'_> {
    fn look(&mut self, page: u64, entry: u64) -> Result<(), ImageError> {
        if entry & PRESENT == 0 {
            self.about.swapped += u64::from(entry & SWAPPED != 0);
            return Ok(());
        }
        if entry & OF_FILE != 0 {
            self.about.shared_already += 1;
            return Ok(());
        }
        let flags = flags_of(self.flags.as_ref(), entry & FRAME);
        self.about.frames_known |= flags.is_some();
        let flags = flags.unwrap_or(0);
        if flags & ZERO_PAGE != 0 {
            self.about.zero_page += 1;
            return Ok(());
        }
        let follows = self.batch.last().is_none_or(|last| last.0 + 1 == page);
        if !follows || self.batch.len() == BATCH {
            self.take_batch()?;
        }
        self.batch.push((page, flags, entry & EXCLUSIVE != 0));
        Ok(())
    }

    fn take_batch(&mut self) -> Result<(), ImageError> {
        let Some(first) = self.batch.first().map(|first| first.0) else {
            return Ok(());
        };
        let count = self.batch.len();
        let bytes = &mut self.bytes[..count * PAGE_BYTES];
        let whole = self.memory.read_exact_at(bytes, first * PAGE).is_ok();
        let room = self.contents.try_reserve(count);
        room.map_err(pool::memory_ended)?;
        for index in 0..count {
            let (page, flags, exclusive) = self.batch[index];
            let bytes = &mut self.bytes[index * PAGE_BYTES..(index + 1) * PAGE_BYTES];
            if !whole {
                match self.memory.read_exact_at(bytes, page * PAGE) {
                    Ok(()) => {}
                    // Another program has unmapped it meanwhile, alone or with all others.
                    Err(error)
                        if error.raw_os_error() == Some(EIO)
                            || error.kind() == io::ErrorKind::UnexpectedEof =>
                    {
                        self.missing += 1;
                        continue;
                    }
                    Err(error) => return Err(self.process.bad("mem", &error)),
                }
            }
            let bytes = self.bytes[index * PAGE_BYTES..].first_chunk();
            let content = self.pool.intern(bytes.expect("a page's bytes"))?;
            self.count(page, flags, exclusive);
            let offset = (self.contents.len() * PAGE_BYTES) as u64;
            self.contents.push(content);
            match self.extents.last_mut() {
                Some(last) if last.first + u64::from(last.pages) == page => last.pages += 1,
                _ => self.extents.push(PageExtent {
                    first: page,
                    pages: 1,
                    offset,
                }),
            }
        }
        self.batch.clear();
        Ok(())
    }

    fn count(&mut self, page: u64, flags: u64, exclusive: bool) {
        let about = &mut self.about;
        about.anonymous += 1;
        about.forked += u64::from(!exclusive && flags & KSM == 0);
        about.merged += u64::from(flags & KSM != 0);
        let after = self.offered.partition_point(|range| range.end <= page);
        let offered = self.offered.get(after);
        about.offered += u64::from(offered.is_some_and(|range| range.contains(&page)));
        if flags & HUGE != 0 {
            about.huge += 1;
            let at = page / HUGE_PAGES;
            if about.huge_at.last() != Some(&at) {
                about.huge_at.push(at);
            }
        }
    }
}

/// The kernel's flags of a frame; `None` without the right to see frames.
fn flags_of(flags: Option<&File>, frame: u64) -> Option<u64> {
    if frame == 0 {
        return None;
    }
    let mut bytes = [0; 8];
    flags?.read_exact_at(&mut bytes, frame * 8).ok()?;
    Some(u64::from_ne_bytes(bytes))
}
