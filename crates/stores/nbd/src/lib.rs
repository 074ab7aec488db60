//! The device for nbdkit, which speaks the protocol: `nbdkit libsardonyx_nbd.so dir=DIR ..`, as
//! `sardonyx store serve` starts it. Without `--foreground` it works as a daemon. Parameters: `dir`, `design`, `size`, `block`; `counters`, a file
//! that gets a line of JSON some times a second and one at the end; `trace`, a new file for requests with digests; `life`, a pipe that ends when the
//! server is to. (Told to end by a signal, nbdkit waits until its last client has left.)
//!
//! Requests are served one after the other, so that a flush on one connection covers them all.

mod written;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nbdkit::{Error, ExtentHandle, ExtentType, Flags, FuaFlags, Result, Server, ThreadModel};
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
    STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Serves a request; the device's errors become the client's.
fn served<T>(serve: impl FnOnce(&mut Device) -> sardonyx_device::Result<T>) -> Result<T> {
    let mut state = state();
    let device = state
        .device
        .as_mut()
        .ok_or_else(|| bad("the device is not open"))?;
    serve(device).map_err(told)
}

fn answered<T>(
    asked: RequestKind,
    serve: impl FnOnce(&mut Device) -> sardonyx_device::Result<T>,
) -> Result<T> {
    served(|device| device.timed(asked, serve))
}

fn noted(way: char, offset: u64, bytes: u64) {
    let state = &mut *state();
    if let (Some(trace), Some(device)) = (&mut state.trace, &state.device) {
        trace.request(device, way, offset, bytes);
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
        Ok(ThreadModel::SerializeAllRequests)
    }

    fn open(_readonly: bool) -> Result<Box<dyn Server>> {
        Ok(Box::new(Connection))
    }

    fn get_size(&self) -> Result<i64> {
        served(|device| Ok(device.shape().size_bytes as i64))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        answered(RequestKind::Read, |device| device.read(offset, buf))?;
        noted('R', offset, buf.len() as u64);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64, flags: Flags) -> Result<()> {
        answered(RequestKind::Write, |device| {
            device.write(offset, buf)?;
            flush_if(device, flags)
        })?;
        noted('W', offset, buf.len() as u64);
        Ok(())
    }

    fn zero(&self, count: u32, offset: u64, flags: Flags) -> Result<()> {
        answered(RequestKind::Discard, |device| {
            device.zero(offset, count.into(), flags.contains(Flags::MAY_TRIM))?;
            flush_if(device, flags)
        })
    }

    fn trim(&self, count: u32, offset: u64, flags: Flags) -> Result<()> {
        answered(RequestKind::Discard, |device| {
            device.trim(offset, count.into())?;
            flush_if(device, flags)
        })
    }

    fn flush(&self) -> Result<()> {
        answered(RequestKind::Flush, Device::flush)
    }

    fn extents(
        &self,
        count: u32,
        offset: u64,
        _flags: Flags,
        extents: &mut ExtentHandle,
    ) -> Result<()> {
        let found: Vec<_> = served(|device| Ok(device.extents(offset, count.into()).collect()))?;
        let block = served(|device| Ok(u64::from(device.shape().block_bytes)))?;
        for extent in found {
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

    fn can_fua(&self) -> Result<FuaFlags> {
        Ok(FuaFlags::Native)
    }

    fn can_multi_conn(&self) -> Result<bool> {
        Ok(true)
    }
}

fn flush_if(device: &mut Device, flags: Flags) -> sardonyx_device::Result<()> {
    if flags.contains(Flags::FUA) {
        device.flush()
    } else {
        Ok(())
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
