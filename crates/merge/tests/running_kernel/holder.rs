//! Processes that hold the pages of a mix, and write, lose and fork them on command.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::kernel::{PATIENCE, Result, error};
use sardonyx_merge::{PAGE_BYTES, Page, PageBytes};

/// The program of a process that holds pages: it maps as many as its argument says, then writes the pages that it is
/// told, each a number and its bytes, and answers the number [`FLUSH`] with its own number and the address of the
/// first. Pages to lose come as [`LOSE`] or [`REMAP`], the first one and their number; [`FORK`] comes with the length
/// of an abstract socket's name and the name, where the child gets its commands.
const HOLDER: &str = "
import ctypes, mmap, os, signal, socket, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
told, answers = sys.stdin.buffer, sys.stdout.buffer
held = mmap.mmap(-1, int(sys.argv[1]) * 4096, mmap.MAP_PRIVATE)
held.madvise(mmap.MADV_NOHUGEPAGE)
first = ctypes.addressof(ctypes.c_char.from_buffer(held))
again = ctypes.CDLL(None, use_errno=True).mmap
again.restype, again.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
def number():
    return int.from_bytes(told.read(4), sys.byteorder)
while four := told.read(4):
    page = int.from_bytes(four, sys.byteorder)
    if page < 0xfffffffc:
        held.seek(page * 4096)
        held.write(told.read(4096))
    elif page == 0xfffffffc:
        name = told.read(number()).decode()
        if os.fork() == 0:
            told.close()
            answers.close()
            parent = socket.socket(socket.AF_UNIX)
            parent.connect('\\0' + name)
            told, answers = parent.makefile('rb'), parent.makefile('wb')
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
        answers.write(f'{os.getpid()} {first}\\n'.encode())
        answers.flush()
# The sockets are closed by the kernel, after it has given the memory back, and not by Python, before.
os._exit(0)
";
/// Stands in place of a page's number: all writes so far are to be done now, and may be merged.
const FLUSH: u32 = u32::MAX;
pub(super) const REMAP: u32 = u32::MAX - 1;
pub(super) const LOSE: u32 = u32::MAX - 2;
pub(super) const FORK: u32 = u32::MAX - 3;

enum PageOrigin {
    Spawned(Child),
    /// A child that gets its commands through this socket.
    Forked(UnixStream),
}

/// A process that holds pages. It exits when it is dropped.
pub(super) struct Holder {
    origin: PageOrigin,
    number: u32,
    to: Option<Box<dyn Write>>,
    from: BufReader<Box<dyn Read>>,
    address: u64,
    pub(super) pages: Range<Page>,
}

impl Holder {
    /// Begins to hold `pages`, as the last that KSM scans.
    pub(super) fn new(pages: Range<Page>, bytes: &[PageBytes]) -> Result<Holder> {
        let mut process = Command::new("python3")
            .args(["-c", HOLDER, &pages.len().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(error)?;
        let from = process.stdout.take().expect("it is piped");
        let to = process.stdin.take().expect("it is piped");
        let mut holder = Holder {
            to: Some(Box::new(to)),
            from: BufReader::new(Box::new(from)),
            origin: PageOrigin::Spawned(process),
            number: 0,
            address: 0,
            pages: pages.clone(),
        };
        for page in pages {
            holder.write(page, &bytes[page as usize])?;
        }
        holder.flush()?;
        Ok(holder)
    }

    pub(super) fn fork(&mut self, pages: Range<Page>) -> Result<Holder> {
        let name = format!("sardonyx-{}-{}", std::process::id(), pages.start);
        let address = SocketAddr::from_abstract_name(&name).map_err(error)?;
        let listener = UnixListener::bind_addr(&address).map_err(error)?;
        self.tell(&FORK.to_ne_bytes())?;
        self.tell(&(name.len() as u32).to_ne_bytes())?;
        self.tell(name.as_bytes())?;
        // Commands go through a pipe, so the parent must have done all of them before it forks.
        self.flush()?;
        listener.set_nonblocking(true).map_err(error)?;
        let began = Instant::now();
        let child = loop {
            match listener.accept() {
                Ok((child, _)) => break child,
                Err(_) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(500));
                }
                Err(problem) => return Err(error(format!("a forked process: {problem}"))),
            }
        };
        child.set_nonblocking(false).map_err(error)?;
        let mut holder = Holder {
            to: Some(Box::new(child.try_clone().map_err(error)?)),
            from: BufReader::new(Box::new(child.try_clone().map_err(error)?)),
            origin: PageOrigin::Forked(child),
            number: 0,
            address: 0,
            pages,
        };
        holder.flush()?;
        Ok(holder)
    }

    fn tell(&mut self, bytes: &[u8]) -> Result<()> {
        let to = self.to.as_mut().expect("it lives");
        to.write_all(bytes).map_err(error)
    }

    pub(super) fn write(&mut self, page: Page, bytes: &PageBytes) -> Result<()> {
        self.tell(&(page - self.pages.start).to_ne_bytes())?;
        self.tell(bytes)
    }

    pub(super) fn lose(&mut self, how: u32, pages: Range<Page>) -> Result<()> {
        let count = pages.len() as u32;
        [how, pages.start - self.pages.start, count]
            .iter()
            .try_for_each(|number| self.tell(&number.to_ne_bytes()))
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.tell(&FLUSH.to_ne_bytes())?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(error)?;
        let answer = line.trim().split_once(' ');
        let answer =
            answer.and_then(|(number, first)| Some((number.parse().ok()?, first.parse().ok()?)));
        let dead = || error("a process that holds pages has died");
        (self.number, self.address) = answer.ok_or_else(dead)?;
        Ok(())
    }

    pub(super) fn items(&self) -> Result<u64> {
        let path = format!("/proc/{}/ksm_stat", self.number);
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

    /// The frames behind its pages; 0 for a page without one.
    pub(super) fn frames(&self) -> Result<Vec<u64>> {
        let path = format!("/proc/{}/pagemap", self.number);
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
        match &mut self.origin {
            PageOrigin::Spawned(process) => {
                let _ = process.wait();
            }
            PageOrigin::Forked(socket) => {
                let _ = socket.shutdown(Shutdown::Write);
                // A process gives its memory back before it closes its files, so the end of the pipe tells that it has.
                let _ = self.from.read_to_end(&mut Vec::new());
            }
        }
    }
}
