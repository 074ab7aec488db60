//! Sardonyx as a memory behind other simulators: the border to C. `include/sardonyx.h` is made of this file and
//! checked against it; `docs/hosts.md` is for whoever uses it. Thin: what a host may ask is
//! `sardonyx::machine::hosted`. Every call that can fail returns a value that says so, and keeps the words for
//! `sardonyx_error`.
//!
//! Unsafe is what reads a host's pointers: strings that end in zero, requests, rooms for answers and bytes. A
//! null pointer is an error; that any other points where it says is the host's to see to.
#![allow(non_camel_case_types)]

mod contents;
mod handles;
mod log;
mod memory;
mod settings;

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use handles::{Problem, guarded, problem, with};
use memory::Hosting;
use sardonyx::machine::CoreFigures;
use sardonyx::units::Time;

/// A memory: a number that no other memory of the process has or had; 0 is none.
pub type sardonyx_memory = u64;

/// Changes when a program that was compiled with an older header must not use the library.
pub const SARDONYX_ABI: u32 = 1;
/// What a call returns that has failed: sardonyx_error() says why.
pub const SARDONYX_FAILED: i64 = -1;
/// A time that has not come.
pub const SARDONYX_NEVER: u64 = u64::MAX;
/// As presented_ps: now.
pub const SARDONYX_NOW: u64 = u64::MAX;

/// A read; the answer to one.
pub const SARDONYX_READ: u32 = 0;
/// A write; the answer to one.
pub const SARDONYX_WRITE: u32 = 1;
/// A write-back of the encryption counters of the 512 bytes around the address.
pub const SARDONYX_WRITE_COUNTERS: u32 = 2;
/// The answer to a write-back of counters.
pub const SARDONYX_COUNTERS: u32 = 2;
/// A write that was answered before is in the array.
pub const SARDONYX_IN_ARRAY: u32 = 3;
/// The answer to a flush.
pub const SARDONYX_FLUSHED: u32 = 4;
/// The answer to a fence.
pub const SARDONYX_FENCED: u32 = 5;

/// Flag of a write: the next fence of its source waits for it.
pub const SARDONYX_PERSIST: u32 = 1;
/// Flag of a write: it is persistent with its encryption counter, or not at all; and as SARDONYX_PERSIST.
pub const SARDONYX_COUNTER_ATOMIC: u32 = 2;
/// Flag of a write: SARDONYX_IN_ARRAY follows when it is, with all three times.
pub const SARDONYX_TELL_ARRAY: u32 = 4;

/// As a view of sardonyx_note: where the host's requests come to the adapter, and its answers leave it.
pub const SARDONYX_PORT: u32 = 1;
/// As a view of sardonyx_note: whoever in the host waits for the answer.
pub const SARDONYX_APPLICATION: u32 = 2;
/// As an event of sardonyx_note: the request was sent there.
pub const SARDONYX_ASKED: u32 = 0;
/// As an event of sardonyx_note: its answer has come there.
pub const SARDONYX_DONE: u32 = 1;

/// A request.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sardonyx_request {
    /// Its first byte.
    pub address: u64,
    /// The host's own name for it.
    pub tag: u64,
    /// When the host had it, in picoseconds: latencies count from here. SARDONYX_NOW: now.
    pub presented_ps: u64,
    /// What a write writes; null: what host.contents says.
    pub bytes: *const u8,
    /// How many bytes, of one line of 64.
    pub size: u32,
    /// Who asks, from 0 on.
    pub source: u32,
    /// SARDONYX_READ, SARDONYX_WRITE or SARDONYX_WRITE_COUNTERS.
    pub kind: u32,
    /// SARDONYX_PERSIST and the other flags of writes.
    pub flags: u32,
}

/// An answer. Times are picoseconds since the begin, SARDONYX_NEVER where there is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sardonyx_answer {
    /// The request's.
    pub tag: u64,
    /// When the host had it.
    pub presented_ps: u64,
    /// When the controller took it.
    pub admitted_ps: u64,
    /// When it was in the persistence domain: a power cut leaves it.
    pub accepted_ps: u64,
    /// When it was in the array; of a duplicate, when its mapping was updated.
    pub array_ps: u64,
    /// When it was answered.
    pub answered_ps: u64,
    /// Who asked.
    pub source: u32,
    /// SARDONYX_READ, SARDONYX_WRITE, SARDONYX_COUNTERS, SARDONYX_IN_ARRAY, SARDONYX_FLUSHED or SARDONYX_FENCED.
    pub what: u32,
    /// Bytes of the request.
    pub size: u32,
    /// 1 if the line of a read had been written before.
    pub written: u32,
    /// What a read has read.
    pub bytes: [u8; 64],
}

/// The SARDONYX_ABI of the library.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_abi() -> u32 {
    SARDONYX_ABI
}

/// Why the calling thread's last failed call has failed; until its next one. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_error() -> *const c_char {
    handles::last_error()
}

/// A memory of a design (`esd`, or `LOGGING/MAPPING+POLICY@INTEGRITY`) on a machine (a preset's name, or a
/// file), with `count` settings of the form KEY=VALUE: the machine's keys, and host.* (docs/hosts.md). 0 if
/// it cannot be had.
///
/// # Safety
/// The strings end in zero, and there are `count` settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_create(
    machine: *const c_char,
    design: *const c_char,
    settings: *const *const c_char,
    count: usize,
) -> sardonyx_memory {
    guarded(0, || {
        // SAFETY: the caller's promise; null is looked for.
        let (machine, design) = unsafe { (text(machine, "machine")?, text(design, "design")?) };
        let mut pairs = Vec::new();
        for index in 0..count {
            if settings.is_null() {
                return problem("settings is null");
            }
            // SAFETY: the caller's promise, `index` being below `count`.
            pairs.push(unsafe { text(*settings.add(index), "a setting")? });
        }
        handles::enter(Hosting::new(machine, design, &pairs)?)
    })
}

/// Ends a memory. 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_destroy(memory: sardonyx_memory) -> i64 {
    guarded(SARDONYX_FAILED, || {
        handles::leave(memory)?.flush_log()?;
        Ok(0)
    })
}

/// 1 if a request is taken now, 0 if not; SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_accepts(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        Ok(hosting.host.accepts()?.into())
    })
}

/// Sends a request. 1 if it was taken, 0 if memory takes none now (send it again later); SARDONYX_FAILED. What
/// happens up to its presented_ps happens first. Each request that was taken is answered once.
///
/// # Safety
/// `request` points to one, whose bytes, if not null, are `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_send(
    memory: sardonyx_memory,
    request: *const sardonyx_request,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        // SAFETY: the caller's promise; null is looked for.
        let Some(request) = (unsafe { request.as_ref() }) else {
            return problem("request is null");
        };
        let given = request.kind == SARDONYX_WRITE && !request.bytes.is_null();
        // A request has no more than a line; one that asks for more is an error before more are read.
        let size = (request.size as usize).min(65);
        if given && size > 64 {
            return problem(format!(
                "{} bytes: a request has 1 to 64 of one line",
                request.size
            ));
        }
        // SAFETY: the caller's promise, and it is not null.
        let bytes = given.then(|| unsafe { slice::from_raw_parts(request.bytes, size) });
        Ok(hosting.send(request, bytes)?.into())
    })
}

/// Will be answered when all writes of the line that were sent before are in the persistence domain, and the
/// next fence of the source waits for it. A cache of the host's that has the line dirty writes it first. 0, or
/// SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_flush(
    memory: sardonyx_memory,
    address: u64,
    source: u32,
    tag: u64,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.flush(address, source, tag)?;
        Ok(0)
    })
}

/// Will be answered when all that the source has sent to persist, and flushed, is in the persistence domain. 0,
/// or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_fence(memory: sardonyx_memory, source: u32, tag: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.fence(source, tag)?;
        Ok(0)
    })
}

/// A request for the address will come: what this computer needs for it is fetched ahead. No effect on results.
/// 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_hint(memory: sardonyx_memory, source: u32, address: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.hint(source, address);
        Ok(0)
    })
}

/// Moves time on to `ps`, which is not before the present: all that happens until then, and at it, happens. How
/// many answers wait; SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_advance_to(memory: sardonyx_memory, ps: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.advance_to(Time::from_ps(ps))?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Moves time on up to `ps`, which may be SARDONYX_NEVER, and no further than the first event that the host must
/// know of: an answer, or that memory takes requests again. How many answers wait; SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_advance_until(memory: sardonyx_memory, ps: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.advance_until(Time::from_ps(ps))?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Moves time on to the begin of the memory's next cycle. How many answers wait; SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_tick(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.tick()?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Nothing happens by itself, and the host asks for nothing before something does: queued writes go. With `last`
/// it never asks again. 1 if anything is left to happen, 0 if not; SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_idle(memory: sardonyx_memory, last: i32) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        Ok(hosting.host.idle(last != 0)?.into())
    })
}

/// The end of the input: everything happens until nothing is left to happen. How many answers wait;
/// SARDONYX_FAILED, also if a request was lost.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_finish(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.finish()?;
        hosting.flush_log()?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Takes the next answers, `room` at most, in the order in which they came. How many; SARDONYX_FAILED.
///
/// # Safety
/// At `answers` is room for so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_answers(
    memory: sardonyx_memory,
    answers: *mut sardonyx_answer,
    room: usize,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        if answers.is_null() {
            return problem("answers is null");
        }
        let mut count = 0;
        while count < room
            && !(count > 0 && hosting.is_unlogged())
            && let Some(told) = hosting.answer()?
        {
            // SAFETY: the caller's promise, `count` being below `room`.
            unsafe { ptr::write(answers.add(count), told.into()) };
            count += 1;
        }
        Ok(count as i64)
    })
}

/// The present in picoseconds; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_now(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.now().ps())
}

/// When memory next does something by itself, so that a host may skip to it; SARDONYX_NEVER if it does nothing
/// until it is asked, or if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_next_event(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.next_event().ps())
}

/// A cycle of the medium's clock in picoseconds; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_cycle(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.cycle().ps())
}

/// The machine's bytes; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_capacity(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.capacity())
}

/// Requests that the controller has at a time; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_ingress(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| {
        hosting.host.machine().engine.ingress as u64
    })
}

/// Requests that were taken and are not in the array, or read, yet; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_in_flight(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.in_flight() as u64)
}

/// Reads what was written last at an address, at no time and no cost: a debugger's look. 0, or SARDONYX_FAILED.
///
/// # Safety
/// At `bytes` is room for `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_functional_read(
    memory: sardonyx_memory,
    source: u32,
    address: u64,
    bytes: *mut u8,
    size: usize,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        if bytes.is_null() || size > hosting.host.capacity() as usize {
            return problem("bytes is null, or there are more of them than the machine has");
        }
        // SAFETY: the caller's promise; there is no room that nobody has written, as u8 has no padding.
        let bytes = unsafe { slice::from_raw_parts_mut(bytes, size) };
        hosting.host.peek(source, address, bytes)?;
        Ok(0)
    })
}

/// Writes at an address, at no time and no cost: a loader's, before the first request; or a debugger's. 0, or
/// SARDONYX_FAILED.
///
/// # Safety
/// At `bytes` are `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_functional_write(
    memory: sardonyx_memory,
    source: u32,
    address: u64,
    bytes: *const u8,
    size: usize,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        if bytes.is_null() || size > hosting.host.capacity() as usize {
            return problem("bytes is null, or there are more of them than the machine has");
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts(bytes, size) };
        hosting.host.poke(source, address, bytes)?;
        Ok(0)
    })
}

/// The power goes, now: what is left is what `platform` (adr, eadr or none; null: adr) drains, and lines that are
/// torn are torn as `seed` says. Requests in flight will not be answered. Needs host.power_cut=yes. 0, or
/// SARDONYX_FAILED.
///
/// # Safety
/// `platform` ends in zero, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_power_cut(
    memory: sardonyx_memory,
    platform: *const c_char,
    seed: u64,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        let platform = match platform.is_null() {
            true => "adr",
            // SAFETY: the caller's promise.
            false => unsafe { text(platform, "platform")? },
        };
        hosting.cut(platform, seed)?;
        Ok(0)
    })
}

/// The power is back: a fresh controller recovers from what is left, and the clock begins anew. Of the lines that
/// the host had written, how many hold what it wrote last, and how many do not; either may be null. 0, or
/// SARDONYX_FAILED.
///
/// # Safety
/// `kept` and `lost` point to numbers, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sardonyx_recover(
    memory: sardonyx_memory,
    kept: *mut u64,
    lost: *mut u64,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        let counts = hosting.recover()?;
        for (place, count) in [(kept, counts.0), (lost, counts.1)] {
            if !place.is_null() {
                // SAFETY: the caller's promise.
                unsafe { ptr::write(place, count) };
            }
        }
        Ok(0)
    })
}

/// What a core of the host's has done so far, for the figures that count instructions: how many, when the last
/// had retired, and how many fences and flushes brought no traffic. 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_core_has(
    memory: sardonyx_memory,
    source: u32,
    instructions: u64,
    retired_ps: u64,
    skipped: u64,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        let figures = CoreFigures {
            instructions: Some(instructions),
            retired: Time::from_ps(retired_ps),
            skipped,
            executed: None,
        };
        hosting.host.core_has(source, figures)?;
        Ok(0)
    })
}

/// Has host.log say that a request of `bytes` bytes and this tag was sent, or its answer has come (`event`), at the
/// port or at the application (`view`), at `ps` of the host's clock: for `sardonyx check-host`. Without host.log
/// nothing is written. 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_note(
    memory: sardonyx_memory,
    view: u32,
    event: u32,
    tag: u64,
    ps: u64,
    bytes: u32,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        if let Some(log) = &mut hosting.log {
            log.noted(view, event, tag, ps, bytes)?;
        }
        Ok(0)
    })
}

/// Counts from zero again; state stays. 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_forget_figures(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.forget_figures();
        Ok(0)
    })
}

/// The figures so far, as JSON (docs/metrics.md); the text is the memory's until the next call of this function
/// for it. Null if they cannot be had.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_figures(memory: sardonyx_memory) -> *const c_char {
    with(memory, ptr::null(), |hosting| {
        hosting.text = std::ffi::CString::new(hosting.figures()?)?;
        Ok(hosting.text.as_ptr())
    })
}

fn number(memory: sardonyx_memory, of: impl FnOnce(&mut Hosting) -> u64) -> u64 {
    with(memory, SARDONYX_NEVER, |hosting| Ok(of(hosting)))
}

/// # Safety
/// `string` ends in zero, or is null.
unsafe fn text<'s>(string: *const c_char, what: &str) -> Result<&'s str, Problem> {
    if string.is_null() {
        return problem(format!("{what} is null"));
    }
    // SAFETY: the caller's promise, and it is not null.
    let string = unsafe { CStr::from_ptr(string) };
    let text = string.to_str();
    text.map_err(|_| Problem(format!("{what} is not UTF-8")))
}
