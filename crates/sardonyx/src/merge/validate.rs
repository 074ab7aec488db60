//! The KSM of the kernel that is running, driven over seeded random mixes and compared with the model pass by
//! pass: eleven counters and the page frames. The pages belong to a few processes, some of which exit between two
//! passes; others lose pages, which come back when they are written. Needs root, and that nobody else uses KSM meanwhile. The knobs are restored however it ends, short of
//! SIGKILL, which `sardonyx merge validate` has a guard against.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::images::{ImageError, Memory, mixes};
use super::ksm::settings::{self, Knobs, Preset};
use super::ksm::{Counters, Ksm, Maps, Software};
use super::{Bytes, PAGE_BYTES, Page};

/// The kernel's directory.
pub const KSM: &str = "/sys/kernel/mm/ksm";
/// Knobs that are set here, or that setting another one changes, in the order in which they are restored.
const KNOBS: [&str; 7] = [
    "advisor_mode",
    "max_page_sharing",
    "use_zero_pages",
    "smart_scan",
    "stable_node_chains_prune_millisecs",
    "pages_to_scan",
    "sleep_millisecs",
];
/// A pass takes well below a second here; a thread that does not answer in this time is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the thread sleeps unless it is woken.
const LONG_MS: u64 = 10_000_000;

type Result<T> = std::result::Result<T, ImageError>;

fn error(problem: impl std::fmt::Display) -> ImageError {
    ImageError(problem.to_string())
}

fn read(name: &str) -> Result<String> {
    let path = format!("{KSM}/{name}");
    let text = fs::read_to_string(&path).map_err(|problem| error(format!("{path}: {problem}")))?;
    Ok(text.trim().to_owned())
}

fn number(name: &str) -> Result<i64> {
    let text = read(name)?;
    text.parse()
        .map_err(|_| error(format!("{KSM}/{name}: {text}: is no number")))
}

fn write(name: &str, value: impl std::fmt::Display) -> Result<()> {
    let path = format!("{KSM}/{name}");
    fs::write(&path, value.to_string()).map_err(|problem| {
        let remedy = match problem.kind() {
            io::ErrorKind::PermissionDenied => "; run as root",
            _ => "",
        };
        error(format!("{path}: {problem}{remedy}"))
    })
}

/// Gives the knobs back.
struct Restore {
    knobs: Vec<(&'static str, String)>,
    run: String,
}

impl Restore {
    fn new() -> Result<Restore> {
        let mut knobs = Vec::new();
        for name in KNOBS {
            if fs::exists(format!("{KSM}/{name}")).unwrap_or(false) {
                knobs.push((name, chosen(&read(name)?)));
            }
        }
        Ok(Restore {
            knobs,
            run: read("run")?,
        })
    }
}

/// Of a knob that shows all words with the chosen one in brackets, that one.
fn chosen(text: &str) -> String {
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(text, |(word, _)| word).to_owned()
}

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = write("run", 2);
        for (name, value) in &self.knobs {
            let _ = write(name, value);
        }
        let _ = write("run", &self.run);
    }
}

/// An error unless KSM is there, may be driven, and is used by nobody.
///
/// # Errors
/// With the remedy.
pub fn available() -> Result<()> {
    if !fs::exists(KSM).unwrap_or(false) {
        return Err(error(format!(
            "{KSM}: there is none: this kernel was built without CONFIG_KSM, or sysfs is not mounted; use another kernel"
        )));
    }
    let run = read("run")?;
    write("run", &run)?;
    let shared = number("pages_shared")? + number("pages_sharing")?;
    if run != "0" || shared > 0 {
        return Err(error(format!(
            "{KSM}: KSM is in use (run {run}, {shared} pages merged); stop its users, then `echo 2 > {KSM}/run; echo 0 > {KSM}/run`"
        )));
    }
    let processes = fs::read_dir("/proc").map_err(error)?;
    for process in processes.flatten() {
        let smaps = fs::read_to_string(process.path().join("smaps")).unwrap_or_default();
        let mergeable = |line: &str| {
            line.starts_with("VmFlags:") && line.split_whitespace().any(|flag| flag == "mg")
        };
        if smaps.lines().any(mergeable) {
            let pid = process.file_name();
            return Err(error(format!(
                "process {} has memory that KSM would merge meanwhile; end it (QEMU: mem-merge=off)",
                pid.display()
            )));
        }
    }
    Ok(())
}

/// What a process runs that holds pages: it maps as many as its argument says, then writes the pages that it is
/// told, each a number and its bytes, and answers the number [`FLUSH`] with the address of the first. Pages that it
/// shall lose come as [`LOSE`] or [`REMAP`], the first one and how many.
const HOLDER: &str = "
import ctypes, mmap, sys
held = mmap.mmap(-1, int(sys.argv[1]) * 4096, mmap.MAP_PRIVATE)
held.madvise(mmap.MADV_NOHUGEPAGE)
first = ctypes.addressof(ctypes.c_char.from_buffer(held))
again = ctypes.CDLL(None, use_errno=True).mmap
again.restype, again.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
def number():
    return int.from_bytes(sys.stdin.buffer.read(4), sys.byteorder)
while told := sys.stdin.buffer.read(4):
    page = int.from_bytes(told, sys.byteorder)
    if page < 0xfffffffd:
        held.seek(page * 4096)
        held.write(sys.stdin.buffer.read(4096))
    elif page == 0xfffffffd:
        page, pages = number(), number()
        held.madvise(mmap.MADV_DONTNEED, page * 4096, pages * 4096)
    elif page == 0xfffffffe:
        page, pages = number(), number()
        # private, anonymous, fixed: the old mapping goes and a new one is there
        assert again(first + page * 4096, pages * 4096, 3, 0x32, -1, 0) == first + page * 4096
        held.madvise(mmap.MADV_NOHUGEPAGE)
    else:
        held.madvise(mmap.MADV_MERGEABLE)
        print(first, flush=True)
";
/// In place of a page's number: all that was told is to be written now, and may be merged.
const FLUSH: u32 = u32::MAX;
/// Another mapping takes the place of these pages.
const REMAP: u32 = u32::MAX - 1;
/// These pages are given back.
const LOSE: u32 = u32::MAX - 2;

/// A process that holds pages. It exits when it is dropped.
struct Holder {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    address: u64,
    pages: Range<Page>,
}

impl Holder {
    /// Begins to hold `pages`, and is the last that KSM scans.
    fn new(pages: Range<Page>, bytes: &[Bytes]) -> Result<Holder> {
        let python = std::env::current_exe().map_err(error)?;
        let mut process = Command::new(python)
            .args(["-c", HOLDER, &pages.len().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(error)?;
        let from = process.stdout.take().expect("it is piped");
        let mut holder = Holder {
            to: process.stdin.take(),
            from: BufReader::new(from),
            process,
            address: 0,
            pages: pages.clone(),
        };
        for page in pages {
            holder.write(page, &bytes[page as usize])?;
        }
        holder.flush()?;
        Ok(holder)
    }

    fn tell(&mut self, bytes: &[u8]) -> Result<()> {
        let to = self.to.as_mut().expect("it lives");
        to.write_all(bytes).map_err(error)
    }

    fn write(&mut self, page: Page, bytes: &Bytes) -> Result<()> {
        self.tell(&(page - self.pages.start).to_ne_bytes())?;
        self.tell(bytes)
    }

    /// Loses these pages, which are its own.
    fn lose(&mut self, how: u32, pages: Range<Page>) -> Result<()> {
        let count = pages.len() as u32;
        [how, pages.start - self.pages.start, count]
            .iter()
            .try_for_each(|number| self.tell(&number.to_ne_bytes()))
    }

    /// Waits until all is written.
    fn flush(&mut self) -> Result<()> {
        self.tell(&FLUSH.to_ne_bytes())?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(error)?;
        let address = line.trim().parse();
        self.address = address.map_err(|_| error("a process that holds pages has died"))?;
        Ok(())
    }

    /// Items that the kernel keeps for it.
    fn items(&self) -> Result<u64> {
        let path = format!("/proc/{}/ksm_stat", self.process.id());
        let stat =
            fs::read_to_string(&path).map_err(|problem| error(format!("{path}: {problem}")))?;
        let mut lines = stat.lines();
        let items = lines.find_map(|line| line.strip_prefix("ksm_rmap_items "));
        let items = items.and_then(|items| items.trim().parse().ok());
        items.ok_or_else(|| {
            error(format!(
                "{path}: has no ksm_rmap_items; the model is of Linux 6.18"
            ))
        })
    }

    /// Frames behind its pages; 0 where there is none.
    fn frames(&self) -> Result<Vec<u64>> {
        let path = format!("/proc/{}/pagemap", self.process.id());
        let pagemap = File::open(&path).map_err(error)?;
        let mut entries = vec![0; self.pages.len() * 8];
        let offset = self.address / PAGE_BYTES as u64 * 8;
        pagemap.read_exact_at(&mut entries, offset).map_err(error)?;
        let entries = entries.as_chunks::<8>().0.iter();
        let frames = entries.map(|entry| u64::from_ne_bytes(*entry) & ((1 << 55) - 1));
        let frames: Vec<u64> = frames.collect();
        if frames.iter().all(|&frame| frame == 0) && !frames.is_empty() {
            return Err(error(format!("{path} shows no frames; run as root")));
        }
        Ok(frames)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.process.wait();
    }
}

/// A random mix: knobs, which process has which pages and exits before which pass, and before each pass which
/// pages are written with what.
struct RandomMix {
    pages: usize,
    passes: usize,
    processes: Vec<(Range<Page>, Option<usize>)>,
    sets: Vec<(&'static str, &'static str, String)>,
    /// Processes lose pages.
    loses: bool,
    rng: ChaCha8Rng,
    pool: u64,
    fresh: u64,
}

impl RandomMix {
    fn new(seed: u64, number: u64) -> RandomMix {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let mut pick = |words: &[&str]| words[rng.random_range(0..words.len())].to_owned();
        let sets = vec![
            ("smart_scan", "ksm.smart_scan", pick(&["0", "1"])),
            ("use_zero_pages", "ksm.use_zero_pages", pick(&["0", "1"])),
            (
                "max_page_sharing",
                "ksm.max_page_sharing",
                pick(&["2", "3", "5", "16", "256"]),
            ),
        ];
        let pages = rng.random_range(64..3000);
        let passes = rng.random_range(4..26);
        let mut cuts: Vec<usize> = (0..rng.random_range(0..4))
            .map(|_| rng.random_range(1..pages))
            .collect();
        cuts.extend([0, pages]);
        cuts.sort_unstable();
        cuts.dedup();
        let stays = rng.random_range(1..cuts.len());
        let ranges = (1..).zip(cuts.windows(2));
        let processes = ranges.map(|(number, cut)| {
            let exits = number != stays && rng.random_bool(0.7);
            let before = exits.then(|| rng.random_range(2..=passes));
            (cut[0] as Page..cut[1] as Page, before)
        });
        RandomMix {
            processes: processes.collect(),
            pages,
            passes,
            pool: rng.random_range(1..pages as u64),
            fresh: 10_000_000 + number * 1_000_000,
            sets,
            loses: rng.random_bool(0.6),
            rng,
        }
    }

    fn content(&mut self) -> u64 {
        match self.rng.random_range(0..10) {
            0 => 0,
            1..=2 => {
                self.fresh += 1;
                self.fresh
            }
            3..=4 => 1 + self.rng.random_range(0..self.pool.div_ceil(20)),
            _ => 1 + self.rng.random_range(0..self.pool),
        }
    }

    /// The first contents.
    fn start(&mut self) -> Vec<Bytes> {
        let mut pages = vec![[0; PAGE_BYTES]; self.pages];
        for page in &mut pages {
            mixes::fill(self.content(), page);
        }
        pages
    }

    /// Pages that are lost before a pass, and how; within one process each.
    fn losses(&mut self) -> Vec<(u32, Range<Page>)> {
        if !self.loses || self.rng.random_bool(0.5) {
            return Vec::new();
        }
        let one = |_| {
            let first = self.rng.random_range(0..self.pages) as Page;
            let most = self.pages.div_ceil(12) as Page;
            let count = self.rng.random_range(1..=most);
            let how = [LOSE, REMAP][self.rng.random_range(0..2)];
            let mut processes = self.processes.iter().map(|(pages, _)| pages);
            let of = processes.find(|pages| pages.contains(&first));
            let of = of.expect("processes have all pages");
            // The first page stays, so that a process always shows a frame.
            let start = first.max(of.start + 1);
            (how, start..(first + count).min(of.end).max(start))
        };
        let lost = (0..3).map(one).filter(|(_, pages)| !pages.is_empty());
        lost.collect()
    }

    /// What is written before a pass: some pages anew, one word of others, others as they were.
    fn writes(&mut self, now: &[Bytes]) -> Vec<(Page, Bytes)> {
        let rate = [0, 0, 1, 4, 30][self.rng.random_range(0..5)];
        let count = self.pages * rate / 100;
        let stretch = self
            .rng
            .random_bool(0.5)
            .then(|| self.rng.random_range(0..self.pages));
        let mut writes = Vec::new();
        for index in 0..count {
            let page = match stretch {
                Some(first) => (first + index) % self.pages,
                None => self.rng.random_range(0..self.pages),
            };
            let mut bytes = now[page];
            match self.rng.random_range(0..3) {
                0 => {} // changes nothing, and breaks a merged mapping all the same
                1 => bytes[self.rng.random_range(0..PAGE_BYTES)] ^= 1,
                _ => mixes::fill(self.content(), &mut bytes),
            }
            writes.push((page as Page, bytes));
        }
        writes
    }
}

/// The kernel's counters that stand in sysfs; those that only grow are counted from `start`.
fn counters(start: &Counters, holders: &[Holder]) -> Result<Counters> {
    let count = |name| number(name).map(|value| value as u64);
    let [shared, sharing, unshared, volatile] = [
        count("pages_shared")?,
        count("pages_sharing")?,
        count("pages_unshared")?,
        count("pages_volatile")?,
    ];
    Ok(Counters {
        pages_shared: shared,
        pages_sharing: sharing,
        pages_unshared: unshared,
        pages_volatile: volatile,
        pages_skipped: count("pages_skipped")? - start.pages_skipped,
        pages_scanned: count("pages_scanned")? - start.pages_scanned,
        ksm_zero_pages: count("ksm_zero_pages")?,
        stable_node_chains: count("stable_node_chains")?,
        stable_node_dups: count("stable_node_dups")?,
        general_profit: number("general_profit")?,
        rmap_items: holders.iter().map(Holder::items).sum::<Result<u64>>()?,
    })
}

/// Wakes the thread for pass `pass` and waits for its end.
fn one_pass(pass: usize, sleep_ms: u64, tell: &mut dyn FnMut(u64, u64) -> bool) -> Result<bool> {
    let before = number("full_scans")?;
    if pass == 1 {
        write("run", 1)?;
    } else {
        // Writing another value ends the sleep.
        write("sleep_millisecs", sleep_ms + pass as u64 % 2)?;
    }
    let began = Instant::now();
    while number("full_scans")? == before {
        if !tell(0, 0) {
            return Ok(false);
        }
        if began.elapsed() > PATIENCE {
            return Err(error(format!(
                "{KSM}: no pass in {} s; is the thread ksmd stopped?",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(true)
}

/// Frames behind the pages of all processes.
fn frames(holders: &[Holder]) -> Result<u64> {
    let mut all = HashSet::new();
    for holder in holders {
        all.extend(holder.frames()?);
    }
    all.remove(&0);
    Ok(all.len() as u64)
}

/// Processor time of the kernel's thread, if it can be seen.
fn thread_ns() -> Option<u64> {
    let processes = fs::read_dir("/proc").ok()?;
    let thread = processes.flatten().find(|process| {
        fs::read_to_string(process.path().join("comm")).is_ok_and(|comm| comm.trim() == "ksmd")
    })?;
    let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
    stat.split_whitespace().next()?.parse().ok()
}

/// What the kernel and the model have said of a mix.
struct Compared {
    row: Value,
    values: u64,
    wrong: Vec<Value>,
}

/// Stops the kernel's thread and takes all merged pages apart.
fn stop() -> Result<()> {
    write("run", 2)?;
    write("run", 0)
}

/// The processes' pages are written as the mix says, some processes exit, and the model hears of both.
fn change(
    mix: &mut RandomMix,
    pass: usize,
    holders: Vec<Holder>,
    model: &mut Ksm<Memory, Software>,
) -> Result<Vec<Holder>> {
    let writes = match pass {
        1 => Vec::new(),
        _ => mix.writes(&model.contents.own),
    };
    let losses = match pass {
        1 => Vec::new(),
        _ => mix.losses(),
    };
    let exits = |holder: &Holder| {
        let mut processes = mix.processes.iter();
        processes.any(|(pages, before)| *before == Some(pass) && *pages == holder.pages)
    };
    let (gone, mut left): (Vec<Holder>, Vec<Holder>) = holders.into_iter().partition(exits);
    let gone = gone.into_iter().map(|holder| holder.pages.clone());
    let gone: Vec<Range<Page>> = gone.collect();
    for (how, pages) in losses {
        let mut holders = left.iter_mut();
        if let Some(holder) = holders.find(|holder| holder.pages.contains(&pages.start)) {
            holder.lose(how, pages.clone())?;
            pages.for_each(|page| model.unmap(page));
        }
    }
    for (page, bytes) in writes {
        let mut holders = left.iter_mut();
        if let Some(holder) = holders.find(|holder| holder.pages.contains(&page)) {
            holder.write(page, &bytes)?;
            if model.maps(page) == Maps::Nothing {
                model.map(page);
            }
            model.write(page);
            model.contents.own[page as usize] = bytes;
        }
    }
    left.iter_mut().try_for_each(Holder::flush)?;
    model.exit(&gone);
    Ok(left)
}

/// Drives the kernel and the model over mix number `index`. `None` if `tell` ended it.
fn compare(
    seed: u64,
    index: u64,
    tell: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Compared>> {
    let mut mix = RandomMix::new(seed, index);
    stop()?;
    // A thread that sleeps is woken by a value that it has not seen, and finds that it shall not run.
    let sleep_ms = LONG_MS + 2 * index;
    write("sleep_millisecs", sleep_ms + 1)?;
    let mut settings = Preset::Linux6.settings();
    for (knob, key, value) in &mix.sets {
        write(knob, value)?;
        settings::set(&mut settings, &settings::rows(), key, value).map_err(ImageError)?;
    }
    let start = Counters {
        pages_skipped: number("pages_skipped")? as u64,
        pages_scanned: number("pages_scanned")? as u64,
        ..Counters::default()
    };
    let first = mix.start();
    let ranges = mix.processes.iter().map(|(pages, _)| pages.clone());
    let holders = ranges.map(|pages| Holder::new(pages, &first));
    let mut holders = holders.collect::<Result<Vec<Holder>>>()?;
    let knobs = Knobs::of(&settings);
    let search = Software::new(knobs.checksum);
    let mut model = Ksm::new(Memory::new(first), search, knobs, mix.pages);
    (0..mix.pages as Page).for_each(|page| model.map(page));
    let cpu = thread_ns();
    let (mut values, mut wrong) = (0, Vec::new());
    for pass in 1..=mix.passes {
        holders = change(&mut mix, pass, holders, &mut model)?;
        if !one_pass(pass, sleep_ms, tell)? {
            return Ok(None);
        }
        model.pass(&mut |_| true);
        let of_kernel = json!({
            "counters": counters(&start, &holders)?,
            "frames": frames(&holders)?,
        });
        let of_model = json!({"counters": model.counters(), "frames": model.frames()});
        values += 12;
        if of_kernel != of_model {
            wrong.push(json!({
                "mix": index, "pass": pass, "kernel": of_kernel, "model": of_model,
            }));
        }
    }
    let cpu = thread_ns().zip(cpu);
    let cpu = cpu.map(|(after, before)| after.saturating_sub(before));
    let scanned = model.counters().pages_scanned;
    let a_page = |ns: u64| ns as f64 / scanned.max(1) as f64;
    let row = json!({
        "mix": index,
        "pages": mix.pages,
        "passes": mix.passes,
        "processes": mix.processes.len(),
        "loses_pages": mix.loses,
        "exit_before_pass": mix.processes.iter().map(|(_, before)| before).collect::<Vec<_>>(),
        "set": mix.sets.iter().map(|(_, key, value)| [*key, value]).collect::<Vec<_>>(),
        "pages_scanned": scanned,
        "ksmd_ns_a_page": cpu.map(a_page),
        "model_ns_a_page": a_page(model.cpu_ns()),
    });
    stop()?;
    Ok(Some(Compared { row, values, wrong }))
}

/// Drives the kernel and the model over `count` mixes. `None` if `tell` ended it.
///
/// # Errors
/// If KSM is not there, is in use, or may not be driven.
pub fn validate(
    seed: u64,
    count: u64,
    tell: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Value>> {
    available()?;
    let _restore = Restore::new()?;
    if fs::exists(format!("{KSM}/advisor_mode")).unwrap_or(false) {
        write("advisor_mode", "none")?;
    }
    write("pages_to_scan", 4_000_000_000u64)?;
    write("stable_node_chains_prune_millisecs", 0)?;
    let (mut rows, mut values, mut wrong) = (Vec::new(), 0, Vec::new());
    for index in 0..count {
        let Some(compared) = compare(seed, index, &mut |_, _| tell(index, count))? else {
            return Ok(None);
        };
        rows.push(compared.row);
        values += compared.values;
        wrong.extend(compared.wrong);
    }
    Ok(Some(json!({
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "seed": seed,
        "values": values,
        "mismatches": wrong,
        "mixes": rows,
    })))
}
