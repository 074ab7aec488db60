//! The device for nbdkit, which speaks the protocol: `nbdkit libsardonyx_nbd.so dir=DIR ..`, as
//! `sardonyx store serve` starts it. Without `--foreground` it works as a daemon. Parameters: `dir`, `design`, `size`, `block`; `counters`, a file
//! that gets a line of JSON some times a second and one at the end; `trace`, a new file for requests with digests; `life`, a pipe that ends when the
//! server is to. (Told to end by a signal, nbdkit waits until its last client has left.)
//!
//! nbdkit has a thread for each connection, so a client that says nothing, or never reads, holds up nobody else. The device
//! serves one thread at a time. Thus a flush on one connection covers all requests that were answered before it. A long
//! request gives way to others after each [`TURN`].

mod written;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nbdkit::{Error, ExtentHandle, ExtentType, Flags, FuaFlags, Result, Server, ThreadModel};
use parking_lot::{Mutex, MutexGuard};
use sardonyx_device::{Device, DeviceError, RequestKind, Volume, Wanted};
use serde_json::{Value, json};

use crate::written::{DIGESTED, Written};

const TELL_EVERY: Duration = Duration::from_millis(250);
/// The time a reader of the counters has for the last line.
const END_AFTER: Duration = Duration::from_secs(2);
/// The number of live blocks that the design is told before the first request, so that a small device counts from the
/// beginning; with more, it is told between requests.
const AT_ONCE: u64 = 1 << 15;
const BETWEEN: u32 = 32;

/// The bytes that a request is served before it is another's turn. It is a multiple of every block, so that no block is
/// split, and takes some 4 ms on `recam` and 30 ms on `conventional`.
const TURN: u64 = 1 << 18;

/// The number of pieces of room that are given back to the disk before it is the requests' turn again.
const RUNS: usize = 16;

/// The plugin's arguments and its device, which nbdkit's calls have no place for.
static STATE: Mutex<ServerState> = Mutex::new(ServerState {
    directory: None,
    wanted: Wanted {
        design: None,
        size_bytes: None,
        block_bytes: None,
    },
    counters: None,
    trace_to: None,
    trace: None,
    life: None,
    volume: None,
    device: None,
    telling: None,
});

struct ServerState {
    directory: Option<PathBuf>,
    wanted: Wanted,
    counters: Option<CounterPipe>,
    trace_to: Option<String>,
    trace: Option<Written>,
    life: Option<File>,
    /// Opened before nbdkit leaves its terminal, so that errors are seen; it has no threads.
    volume: Option<Volume>,
    /// Made of the volume after that, because a design may have threads.
    device: Option<Device>,
    telling: Option<(Sender<()>, JoinHandle<()>)>,
}

fn state() -> MutexGuard<'static, ServerState> {
    STATE.lock()
}

fn open(device: Option<&mut Device>) -> Result<&mut Device> {
    device.ok_or_else(|| bad("the device is not open"))
}

/// Serves a request in turns, each with its bytes counted from `offset`. With `FUA` they are on the disk at the end.
/// Reads and writes are traced, by their letter.
fn served(
    kind: RequestKind,
    Bytes { offset, length }: Bytes,
    flags: Flags,
    mut serve: impl FnMut(&mut Device, u64, Range<usize>) -> sardonyx_device::Result<()>,
) -> Result<()> {
    let mut time = Duration::ZERO;
    let mut outcome = Ok(());
    let (mut at, end) = (offset, offset + length);
    while at < end && outcome.is_ok() {
        let turn = at..end.min((at / TURN + 1) * TURN);
        let mut state = state();
        let ServerState { device, trace, .. } = &mut *state;
        let device = open(device.as_mut())?;
        let began = Instant::now();
        let within = (turn.start - offset) as usize..(turn.end - offset) as usize;
        outcome = serve(device, turn.start, within);
        time += began.elapsed();
        if let (Some(trace), Some(letter), Ok(())) = (trace, kind.letter(), &outcome) {
            trace.request(device, letter, turn.start, turn.end - turn.start);
        }
        at = turn.end;
        MutexGuard::unlock_fair(state);
    }
    let mut state = state();
    let device = open(state.device.as_mut())?;
    let began = Instant::now();
    if outcome.is_ok() && (flags.contains(Flags::FUA) || kind == RequestKind::Flush) {
        outcome = device.flush();
    }
    device.ended(kind, length, time + began.elapsed());
    outcome.map_err(told)
}

/// The part of the device that a request is about.
struct Bytes {
    offset: u64,
    length: u64,
}

impl Bytes {
    fn new(offset: u64, length: usize) -> Bytes {
        let length = length as u64;
        Bytes { offset, length }
    }
}

fn told(error: DeviceError) -> Error {
    let number = if error.is_full() {
        libc::ENOSPC
    } else {
        libc::EIO
    };
    Error::new(number, error.to_string())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(libc::EINVAL, message.into())
}

/// A pipe of counters. Its reader may be gone or slow: lines are then left out.
struct CounterPipe {
    file: File,
    /// The rest of a line that the pipe has not taken yet.
    rest: Vec<u8>,
}

impl CounterPipe {
    fn tell(&mut self, line: &Value) {
        if self.push() {
            self.rest = format!("{line}\n").into_bytes();
            self.push();
        }
    }

    fn push(&mut self) -> bool {
        while !self.rest.is_empty() {
            match self.file.write(&self.rest) {
                Ok(written) => _ = self.rest.drain(..written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => self.rest.clear(),
            }
        }
        true
    }

    /// Writes the last line, which is worth a short wait.
    fn end(&mut self, line: &Value) {
        let began = Instant::now();
        while !self.push() && began.elapsed() < END_AFTER {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.tell(line);
        while !self.push() && began.elapsed() < END_AFTER {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl ServerState {
    fn line(&self, what: &str, more: Value) -> Option<Value> {
        let device = self.device.as_ref()?;
        Some(json!({"what": what, "counters": device.counters(), "more": more}))
    }

    fn tell(&mut self, what: &str, more: Value) {
        let line = self.line(what, more);
        if let (Some(line), Some(counters)) = (line, &mut self.counters) {
            counters.tell(&line);
        }
    }

    fn end(&mut self) {
        let ended = self.device.as_mut().map_or(Ok(()), Device::end);
        let failed = ended.err().map(|error| error.to_string());
        let untraced = self.trace.as_mut().and_then(|trace| {
            trace.end();
            trace.failed.take().map(|error| error.to_string())
        });
        let line = self.line(
            "end",
            json!({ "not_flushed": failed, "not_traced": untraced }),
        );
        self.device = None;
        if let (Some(line), Some(counters)) = (line, &mut self.counters) {
            counters.end(&line);
        }
    }
}

struct Connection;

impl Server for Connection {
    fn name() -> &'static str {
        "sardonyx"
    }

    fn config(key: &str, value: &str) -> Result<()> {
        let mut state = state();
        let number = || {
            value
                .parse()
                .map_err(|_| bad(format!("{key}={value}: is not a number")))
        };
        match key {
            "dir" => state.directory = Some(value.into()),
            "design" => {
                let design = serde_json::from_value(Value::from(value));
                let design = design.map_err(|error| bad(format!("--design {value}: {error}")))?;
                state.wanted.design = Some(design);
            }
            "size" => state.wanted.size_bytes = Some(number()?),
            "block" => {
                let block = number()?.try_into();
                state.wanted.block_bytes = Some(block.map_err(|_| bad("block: is too large"))?);
            }
            "counters" => {
                // The pipe is opened again here, so that its mode is not shared with the other processes that have it.
                let mut options = OpenOptions::new();
                let file = options
                    .write(true)
                    .custom_flags(libc::O_NONBLOCK)
                    .open(value);
                let file = file.map_err(|error| bad(format!("{key}={value}: {error}")))?;
                let rest = Vec::new();
                state.counters = Some(CounterPipe { file, rest });
            }
            "trace" => state.trace_to = Some(value.to_owned()),
            "life" => {
                let file = File::open(value);
                state.life = Some(file.map_err(|error| bad(format!("{key}={value}: {error}")))?);
            }
            _ => return Err(bad(format!("{key}: there is no such parameter"))),
        }
        Ok(())
    }

    fn get_ready() -> Result<()> {
        let mut state = state();
        let directory = state
            .directory
            .clone()
            .ok_or_else(|| bad("dir: give one"))?;
        let untraceable = |block: u32| {
            bad(format!(
                "--trace: a trace has a digest for each {DIGESTED} bytes, and this device has blocks of {block}; \
                 leave it out, or make a device with --block 4K"
            ))
        };
        let other = |block: &u32| state.trace_to.is_some() && *block != DIGESTED;
        if let Some(block) = state.wanted.block_bytes.filter(other) {
            return Err(untraceable(block));
        }
        let volume = Volume::open(&directory, state.wanted).map_err(told)?;
        if let Some(block) = Some(volume.shape().block_bytes).filter(other) {
            return Err(untraceable(block));
        }
        state.volume = Some(volume);
        if let Some(path) = state.trace_to.take() {
            let trace = Written::to(&path);
            state.trace = Some(trace.map_err(|error| bad(format!("--trace {path}: {error}")))?);
        }
        Ok(())
    }

    fn after_fork() -> Result<()> {
        let mut state = state();
        let volume = state
            .volume
            .take()
            .ok_or_else(|| bad("the volume is not open"))?;
        let mut device = Device::new(volume).map_err(told)?;
        let at_once = device.live_blocks() <= AT_ONCE;
        while at_once && !device.tell_design(BETWEEN).map_err(told)? {}
        state.device = Some(device);
        state.tell("ready", json!({"process": std::process::id()}));
        if !at_once {
            std::thread::spawn(tell_design);
        }
        let (stop, stopped) = channel();
        state.telling = Some((stop, std::thread::spawn(move || tell_on(&stopped))));
        std::thread::spawn(give_back);
        if let Some(life) = state.life.take() {
            std::thread::spawn(move || live(life));
        }
        Ok(())
    }

    fn unload() {
        let telling = state().telling.take();
        if let Some((stop, thread)) = telling {
            let _ = stop.send(());
            let _ = thread.join();
        }
        state().end();
    }

    fn thread_model() -> Result<ThreadModel> {
        Ok(ThreadModel::SerializeRequests)
    }

    fn open(_readonly: bool) -> Result<Box<dyn Server>> {
        Ok(Box::new(Connection))
    }

    fn get_size(&self) -> Result<i64> {
        Ok(open(state().device.as_mut())?.shape().size_bytes as i64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let bytes = Bytes::new(offset, buf.len());
        let flags = Flags::empty();
        served(RequestKind::Read, bytes, flags, |device, at, within| {
            device.read(at, &mut buf[within])
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64, flags: Flags) -> Result<()> {
        let bytes = Bytes::new(offset, buf.len());
        served(RequestKind::Write, bytes, flags, |device, at, within| {
            device.write(at, &buf[within])
        })
    }

    fn zero(&self, count: u32, offset: u64, flags: Flags) -> Result<()> {
        let may_trim = flags.contains(Flags::MAY_TRIM);
        if flags.contains(Flags::FAST_ZERO) && !may_trim {
            // Zeros that keep their room are written like any other content.
            return Err(Error::new(libc::EOPNOTSUPP, "no faster than a write"));
        }
        let bytes = Bytes::new(offset, count as usize);
        served(RequestKind::Zero, bytes, flags, |device, at, within| {
            device.zero(at, within.len() as u64, may_trim)
        })
    }

    fn trim(&self, count: u32, offset: u64, flags: Flags) -> Result<()> {
        let bytes = Bytes::new(offset, count as usize);
        served(RequestKind::Trim, bytes, flags, |device, at, within| {
            device.trim(at, within.len() as u64)
        })
    }

    fn flush(&self) -> Result<()> {
        let nothing = Bytes::new(0, 0);
        served(
            RequestKind::Flush,
            nothing,
            Flags::empty(),
            |_, _, _| Ok(()),
        )
    }

    fn extents(
        &self,
        count: u32,
        offset: u64,
        _flags: Flags,
        extents: &mut ExtentHandle,
    ) -> Result<()> {
        let mut state = state();
        let device = open(state.device.as_mut())?;
        let block = u64::from(device.shape().block_bytes);
        // One run, and a client that wants more asks again. nbdkit sends each run by itself, and up to 1.32 aborts if
        // the client has hung up before the last one.
        if let Some(extent) = device.extents(offset, count.into()).next() {
            let kind = match extent.has_content {
                true => ExtentType::Allocated,
                false => ExtentType::HoleZero,
            };
            extents.add(
                u64::from(extent.first) * block,
                u64::from(extent.blocks) * block,
                kind,
            )?;
        }
        Ok(())
    }

    /// Zeros that may become holes only change tables.
    fn can_fast_zero(&self) -> Result<bool> {
        Ok(true)
    }

    fn can_fua(&self) -> Result<FuaFlags> {
        Ok(FuaFlags::Native)
    }

    fn can_multi_conn(&self) -> Result<bool> {
        Ok(true)
    }
}

/// Writes lines of counters until the server stops.
fn tell_on(stopped: &Receiver<()>) {
    while stopped.recv_timeout(TELL_EVERY) == Err(RecvTimeoutError::Timeout) {
        state().tell("counters", Value::Null);
    }
}

/// Tells the design the blocks on the disk, a few between requests.
fn tell_design() {
    loop {
        let began = Instant::now();
        match state()
            .device
            .as_mut()
            .map(|device| device.tell_design(BETWEEN))
        {
            Some(Ok(false)) => {}
            None | Some(Ok(true)) => return,
            Some(Err(error)) => {
                eprintln!("nbdkit: the design counts nothing: {error}");
                return;
            }
        }
        std::thread::sleep(began.elapsed() / 2); // requests wait for the same lock
    }
}

/// Gives free room back to the disk. Requests are served meanwhile; half of the time is theirs alone.
fn give_back() {
    loop {
        let Some(room) = (state().device.as_mut()).map(|device| device.spare_room(RUNS)) else {
            return; // the server has ended
        };
        let Some(room) = room else {
            std::thread::sleep(TELL_EVERY);
            continue;
        };
        let began = Instant::now();
        let done = room.give_back();
        std::thread::sleep(began.elapsed());
        if let Some(device) = &mut state().device {
            device.given_back(room, done);
        }
    }
}

/// Waits until the process that started the server ends or wants it to end. No request is answered after that.
fn live(mut life: File) {
    let _ = std::io::copy(&mut life, &mut std::io::sink());
    let mut state = state();
    state.end();
    std::process::exit(0);
}

mod entry {
    use super::Connection;

    nbdkit::plugin!(Connection {
        after_fork,
        can_fast_zero,
        can_fua,
        can_multi_conn,
        config,
        extents,
        flush,
        get_ready,
        thread_model,
        trim,
        unload,
        write_at,
        zero
    });
}
