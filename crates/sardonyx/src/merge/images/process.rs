//! Live processes: the anonymous pages of their private mappings, which are what KSM can merge, read from
//! `/proc/PID/mem`. `pagemap` says which pages are there, so that reading makes none.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::{Data, Extent, ImageError, Named, Snapshot};
use crate::merge::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
/// Entries of `pagemap` read at once.
const ENTRIES: usize = 1 << 16;
/// What reading an address gives that is not mapped.
const EIO: i32 = 5;
// Of `pagemap`: Documentation/admin-guide/mm/pagemap.rst.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
const FRAME: u64 = (1 << 55) - 1;
// Of `kpageflags`: include/uapi/linux/kernel-page-flags.h.
const KSM: u64 = 1 << 21;
const HUGE: u64 = 1 << 22;
const ZERO_PAGE: u64 = 1 << 24;

/// What is known of a process beside the bytes of its anonymous pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ProcessPages {
    /// Anonymous pages that were read.
    pub anonymous: u64,
    /// Pages of files or of shared memory, which are shared already.
    pub shared_already: u64,
    /// Anonymous pages that are part of a huge page.
    pub huge: u64,
    /// Pages that map the kernel's zero page.
    pub zero_page: u64,
    /// Anonymous pages that other processes map as well since a fork: one frame already, unmerged.
    pub forked: u64,
    /// Pages in swap, which were not read.
    pub swapped: u64,
    /// Anonymous pages in mappings that the process has offered for merging.
    pub offered: u64,
    /// Pages that the kernel has merged so far.
    pub merged: u64,
    /// What `/proc/PID/ksm_stat` says, name by name.
    pub kernel: Vec<(String, i64)>,
    /// Whether frames could be looked at, so that huge, merged and zero pages are known.
    pub frames_known: bool,
}

struct Mapping {
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
    /// # Errors
    /// If there is no such process.
    pub fn open(pid: u32) -> Result<Process, ImageError> {
        let folder = File::open(format!("/proc/{pid}")).map_err(|_| {
            ImageError(format!(
                "--pid {pid}: there is no such process; `ps` lists them"
            ))
        })?;
        Ok(Process { pid, folder })
    }

    /// Number and command.
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

    /// Whether it has exited, waited for by its parent or not.
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

    /// Why a snapshot has no pages.
    pub fn without_pages(&self, wanted: &[String]) -> ImageError {
        let pid = self.pid;
        let problem = match self.text("maps") {
            Ok(maps) if maps.is_empty() => {
                "it has no memory of its own: it is a kernel thread".to_owned()
            }
            _ if wanted.is_empty() => "it has no anonymous pages in memory".to_owned(),
            _ => format!(
                "it has no anonymous pages in memory in the mappings asked for; `/proc/{pid}/maps` lists them"
            ),
        };
        ImageError(format!("--pid {pid}: {problem}"))
    }
}

/// The private mappings whose name contains one of `wanted`; all of them if there is none.
fn mappings(process: &Process, wanted: &[String]) -> Result<Vec<Mapping>, ImageError> {
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
        let chosen = wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
        if let (Some((first, end)), true) = (ends, chosen) {
            found.push(Mapping {
                pages: first..end,
                name,
            });
        }
    }
    Ok(found)
}

/// The mappings that the process has offered for merging.
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

/// `name value` lines of `ksm_stat`.
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
    /// Its anonymous pages now, of mappings whose name contains one of `wanted`; `None` if it has exited.
    ///
    /// # Errors
    /// If its memory may not be read.
    pub fn snapshot(
        &self,
        wanted: &[String],
    ) -> Result<Option<(Snapshot, ProcessPages)>, ImageError> {
        let read = read(self, wanted);
        // What was read of a process that exited meanwhile is a part of it, or an error.
        match self.has_ended() {
            true => Ok(None),
            false => read.map(Some),
        }
    }
}

fn read(process: &Process, wanted: &[String]) -> Result<(Snapshot, ProcessPages), ImageError> {
    let mappings = mappings(process, wanted)?;
    if mappings.is_empty() {
        return Ok((Snapshot::empty(), ProcessPages::default()));
    }
    let (memory, pagemap) = (process.file("mem")?, process.file("pagemap")?);
    let flags = File::open("/proc/kpageflags").ok();
    let offered = offered(process);
    let mut about = ProcessPages::default();
    let (mut extents, mut bytes): (Vec<Extent>, Vec<u8>) = (Vec::new(), Vec::new());
    let (mut names, mut missing) = (Vec::new(), 0);
    for mapping in &mappings {
        let mut at = mapping.pages.start;
        names.push(Named {
            first: mapping.pages.start,
            end: mapping.pages.end,
            name: mapping.name.clone(),
        });
        while at < mapping.pages.end {
            let count = ENTRIES.min((mapping.pages.end - at) as usize);
            let mut entries = vec![0; count * 8];
            let read = pagemap.read_at(&mut entries, at * 8);
            let read = read.map_err(|error| process.bad("pagemap", &error))?;
            for (page, entry) in (at..).zip(entries[..read].as_chunks::<8>().0) {
                let entry = u64::from_ne_bytes(*entry);
                if entry & PRESENT == 0 {
                    about.swapped += u64::from(entry & SWAPPED != 0);
                    continue;
                }
                if entry & OF_FILE != 0 {
                    about.shared_already += 1;
                    continue;
                }
                let flags = flags_of(flags.as_ref(), entry & FRAME);
                about.frames_known |= flags.is_some();
                let flags = flags.unwrap_or(0);
                if flags & ZERO_PAGE != 0 {
                    about.zero_page += 1;
                    continue;
                }
                let start = bytes.len();
                bytes.resize(start + PAGE_BYTES, 0);
                match memory.read_exact_at(&mut bytes[start..], page * PAGE) {
                    Ok(()) => {}
                    // Unmapped meanwhile, alone or with all others by another program.
                    Err(error)
                        if error.raw_os_error() == Some(EIO)
                            || error.kind() == io::ErrorKind::UnexpectedEof =>
                    {
                        bytes.truncate(start);
                        missing += 1;
                        continue;
                    }
                    Err(error) => return Err(process.bad("mem", &error)),
                }
                about.anonymous += 1;
                about.forked += u64::from(entry & EXCLUSIVE == 0 && flags & KSM == 0);
                about.huge += u64::from(flags & HUGE != 0);
                about.merged += u64::from(flags & KSM != 0);
                about.offered += u64::from(offered.iter().any(|range| range.contains(&page)));
                match extents.last_mut() {
                    Some(last) if last.first + u64::from(last.pages) == page => last.pages += 1,
                    _ => extents.push(Extent {
                        first: page,
                        pages: 1,
                        offset: start as u64,
                    }),
                }
            }
            if read == 0 {
                break;
            }
            at += count as u64;
        }
    }
    about.kernel = kernel_says(process);
    let data = Data::Memory(bytes);
    Ok((
        Snapshot {
            data,
            extents,
            names,
            missing,
        },
        about,
    ))
}

/// The kernel's flags of a frame; none without the right to see frames.
fn flags_of(flags: Option<&File>, frame: u64) -> Option<u64> {
    if frame == 0 {
        return None;
    }
    let mut bytes = [0; 8];
    flags?.read_exact_at(&mut bytes, frame * 8).ok()?;
    Some(u64::from_ne_bytes(bytes))
}
