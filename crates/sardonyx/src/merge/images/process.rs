//! Live processes: the anonymous pages of their private mappings, which are what KSM can merge, read from
//! `/proc/PID/mem`. `pagemap` says which pages are there, so that reading makes none.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::{Data, Extent, ImageError, Named, Snapshot};
use crate::merge::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
/// Entries of `pagemap` read at once.
const ENTRIES: usize = 1 << 16;
// Of `pagemap`: Documentation/admin-guide/mm/pagemap.rst.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
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

fn bad(pid: u32, error: &io::Error, what: &str) -> ImageError {
    let gone = !fs::exists(format!("/proc/{pid}")).unwrap_or(true);
    let remedy = match error.kind() {
        _ if gone && what.ends_with("/maps") => "there is no such process; `ps` lists them",
        _ if gone => "the process has exited meanwhile; its pages are gone",
        io::ErrorKind::PermissionDenied => {
            "you may not read its memory; run as its owner with ptrace allowed, or as root"
        }
        _ => "is it a process with memory of its own?",
    };
    ImageError(format!("--pid {pid}: {what}: {error}: {remedy}"))
}

/// The private mappings whose name contains one of `wanted`; all of them if there is none.
fn mappings(pid: u32, wanted: &[String]) -> Result<Vec<Mapping>, ImageError> {
    let path = format!("/proc/{pid}/maps");
    let maps = fs::read_to_string(&path).map_err(|error| bad(pid, &error, &path))?;
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
fn offered(pid: u32) -> Vec<Range<u64>> {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
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
fn kernel_says(pid: u32) -> Vec<(String, i64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/ksm_stat")).unwrap_or_default();
    let pairs = stat.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((
            name.trim_end_matches(':').to_owned(),
            value.trim().parse().ok()?,
        ))
    });
    pairs.collect()
}

/// The process's anonymous pages now. `wanted`: only mappings whose name contains one of these.
///
/// # Errors
/// If there is no such process, it exits meanwhile, or its memory may not be read.
pub fn snapshot(pid: u32, wanted: &[String]) -> Result<(Snapshot, ProcessPages), ImageError> {
    let open = |name: &str| {
        let path = format!("/proc/{pid}/{name}");
        File::open(&path).map_err(|error| bad(pid, &error, &path))
    };
    let mappings = mappings(pid, wanted)?;
    let (memory, pagemap) = (open("mem")?, open("pagemap")?);
    let flags = File::open("/proc/kpageflags").ok();
    let offered = offered(pid);
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
            let read = read.map_err(|error| bad(pid, &error, "pagemap"))?;
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
                    Err(error) if error.raw_os_error() == Some(5) => {
                        bytes.truncate(start); // unmapped meanwhile
                        missing += 1;
                        continue;
                    }
                    Err(error) => return Err(bad(pid, &error, "mem")),
                }
                about.anonymous += 1;
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
    about.kernel = kernel_says(pid);
    if extents.is_empty() {
        let which = if wanted.is_empty() {
            ""
        } else {
            " in the mappings asked for"
        };
        return Err(ImageError(format!(
            "--pid {pid}: it has no anonymous pages in memory{which}; `/proc/{pid}/maps` lists its mappings"
        )));
    }
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
