//! Sardonyx as a memory behind other simulators: the border to C. `include/sardonyx.h` is made of this file and
//! checked against it; `docs/hosts/simulators.md` is for whoever uses it. Thin: what a host may ask is
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
mod problem;
mod settings;

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use handles::{guarded, with};
use memory::Hosting;
use problem::{Problem, problem};
use sardonyx::machine::CoreFigures;
use sardonyx::units::Time;

/// The handle of a memory: a number that no other memory of the process has or has had; 0 is no memory.
pub type sardonyx_memory = u64;

/// Changes when a program that was compiled with an older header must not use the library.
pub const SARDONYX_ABI: u32 = 1;
/// The result of a call that has failed: sardonyx_error() says why.
pub const SARDONYX_FAILED: i64 = -1;
/// A time that has not come.
pub const SARDONYX_NEVER: u64 = u64::MAX;
/// As a presented_ps: now.
pub const SARDONYX_NOW: u64 = u64::MAX;

/// A read, and the answer to it.
pub const SARDONYX_READ: u32 = 0;
/// A write, and the answer to it.
pub const SARDONYX_WRITE: u32 = 1;
/// A write-back of the encryption counters of the 512 bytes around the address.
pub const SARDONYX_WRITE_COUNTERS: u32 = 2;
/// The answer to a write-back of counters.
pub const SARDONYX_COUNTERS: u32 = 2;
/// The second answer to a write: it is in the array.
pub const SARDONYX_IN_ARRAY: u32 = 3;
/// The answer to a flush.
pub const SARDONYX_FLUSHED: u32 = 4;
/// The answer to a fence.
pub const SARDONYX_FENCED: u32 = 5;

/// Flag of a write: the next fence of its source waits for it.
pub const SARDONYX_PERSIST: u32 = 1;
/// Flag of a write: it persists together with its encryption counter, or not at all; and as SARDONYX_PERSIST.
pub const SARDONYX_COUNTER_ATOMIC: u32 = 2;
/// Flag of a write: a second answer, SARDONYX_IN_ARRAY, has all three times.
pub const SARDONYX_TELL_ARRAY: u32 = 4;

/// As a view of sardonyx_note: where the host's requests come to the adapter, and its answers leave it.
pub const SARDONYX_PORT: u32 = 1;
/// As a view of sardonyx_note: the part of the host that waits for the answer.
pub const SARDONYX_APPLICATION: u32 = 2;
/// As an event of sardonyx_note: the request was sent.
pub const SARDONYX_ASKED: u32 = 0;
/// As an event of sardonyx_note: its answer has come.
pub const SARDONYX_DONE: u32 = 1;

/// A request.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sardonyx_request {
    /// The address of its first byte.
    pub address: u64,
    /// The host's own name for the request.
    pub tag: u64,
    /// When the host presented it, in picoseconds: latencies count from here. SARDONYX_NOW: now.
    pub presented_ps: u64,
    /// The bytes of a write; null: as host.contents says.
    pub bytes: *const u8,
    /// The number of bytes, all in one line of 64.
    pub size: u32,
    /// The number of the source, from 0 on.
    pub source: u32,
    /// SARDONYX_READ, SARDONYX_WRITE or SARDONYX_WRITE_COUNTERS.
    pub kind: u32,
    /// SARDONYX_PERSIST and the other flags of writes.
    pub flags: u32,
}

/// An answer. Times are picoseconds since the beginning; SARDONYX_NEVER where there is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sardonyx_answer {
    /// The request's tag.
    pub tag: u64,
    /// When the host presented the request.
    pub presented_ps: u64,
    /// When the controller took the request.
    pub admitted_ps: u64,
    /// When it was in the persistence domain, so that it survives a power cut.
    pub accepted_ps: u64,
    /// When it was in the array; for a duplicate, when its mapping was updated.
    pub array_ps: u64,
    /// When it was answered.
    pub answered_ps: u64,
    /// The request's source.
    pub source: u32,
    /// SARDONYX_READ, SARDONYX_WRITE, SARDONYX_COUNTERS, SARDONYX_IN_ARRAY, SARDONYX_FLUSHED or SARDONYX_FENCED.
    pub what: u32,
    /// The request's size.
    pub size: u32,
    /// For a read: 1 if its line had been written before.
    pub written: u32,
    /// The bytes of a read.
    pub bytes: [u8; 64],
}

/// The SARDONYX_ABI of the library.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_abi() -> u32 {
    SARDONYX_ABI
}

/// Returns why the calling thread's last failed call failed; valid until its next failed call. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_error() -> *const c_char {
    handles::last_error()
}

/// Creates a memory of a design (`esd`, or `LOGGING/MAPPING+POLICY@INTEGRITY`) on a machine (a preset's name,
/// or a file), with `count` settings of the form KEY=VALUE: the machine's keys, and host.* (docs/hosts/simulators.md).
/// Returns its handle, or 0 after an error.
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

/// Destroys a memory. Returns 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_destroy(memory: sardonyx_memory) -> i64 {
    guarded(SARDONYX_FAILED, || {
        handles::leave(memory)?.flush_log()?;
        Ok(0)
    })
}

/// Returns 1 if a request would be taken now, 0 if not, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_accepts(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        Ok(hosting.accepts()?.into())
    })
}

/// Sends a request; everything up to its presented_ps happens first. Returns 1 if it was taken, 0 if memory
/// takes none now (send it again later), or SARDONYX_FAILED. Each request that was taken is answered once.
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

/// Flushes a line: answered when all its earlier writes are in the persistence domain; the next fence of the
/// source waits for that. A host's cache that holds the line dirty must write it first. Returns 0, or
/// SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_flush(
    memory: sardonyx_memory,
    address: u64,
    source: u32,
    tag: u64,
) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.goes_on()?;
        hosting.host.flush(address, source, tag)?;
        Ok(0)
    })
}

/// A fence: answered when everything that the source has sent to persist, or flushed, is in the persistence
/// domain. Returns 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_fence(memory: sardonyx_memory, source: u32, tag: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.goes_on()?;
        hosting.host.fence(source, tag)?;
        Ok(0)
    })
}

/// Announces a request for the address, so that this computer fetches ahead what it needs. No effect on
/// results. Returns 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_hint(memory: sardonyx_memory, source: u32, address: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.hint(source, address);
        Ok(0)
    })
}

/// Moves time to `ps`, which is not before the present: everything up to and at that time happens. Returns the
/// number of answers that wait, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_advance_to(memory: sardonyx_memory, ps: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.advance_to(Time::from_ps(ps))?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Moves time up to `ps`, which may be SARDONYX_NEVER, and no further than the first event that the host must
/// know of: an answer, or that memory takes requests again. Returns the number of answers that wait, or
/// SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_advance_until(memory: sardonyx_memory, ps: u64) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.advance_until(Time::from_ps(ps))?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Moves time to the beginning of the memory's next cycle. Returns the number of answers that wait, or
/// SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_tick(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.tick()?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Says that the host asks for nothing before something happens, when nothing happens on its own: queued writes
/// then go. With `last` the host never asks again. Returns 1 if anything is left to happen, 0 if not, or
/// SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_idle(memory: sardonyx_memory, last: i32) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        Ok(hosting.host.idle(last != 0)?.into())
    })
}

/// Ends the input: everything happens until nothing is left to happen. Returns the number of answers that wait,
/// or SARDONYX_FAILED, also if a request was lost.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_finish(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.finish()?;
        Ok(hosting.host.answers() as i64)
    })
}

/// Writes host.log to its file as far as it goes, for a host that never destroys its memory. Returns 0, or
/// SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_flush_log(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.flush_log()?;
        Ok(0)
    })
}

/// Takes the next answers, at most `room`, in the order in which they came. Returns their number, or
/// SARDONYX_FAILED.
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

/// Returns the present time in picoseconds; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_now(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.now().ps())
}

/// Returns the time at which memory next does something on its own, so that a host may skip to it;
/// SARDONYX_NEVER if it does nothing until it is asked, or if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_next_event(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.next_event().ps())
}

/// Returns the length of a cycle of the medium's clock in picoseconds; SARDONYX_NEVER if there is no such
/// memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_cycle(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.cycle().ps())
}

/// Returns the machine's capacity in bytes; SARDONYX_NEVER if there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_capacity(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.capacity())
}

/// Returns the room of the controller's ingress, where requests wait for its queues; SARDONYX_NEVER if there is
/// no such memory. A design's own accesses need room too: sardonyx_accepts alone says whether one is taken.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_ingress(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| {
        hosting.host.machine().engine.ingress as u64
    })
}

/// Returns the number of requests that were taken and are not in the array, or read, yet; SARDONYX_NEVER if
/// there is no such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_in_flight(memory: sardonyx_memory) -> u64 {
    number(memory, |hosting| hosting.host.in_flight() as u64)
}

/// Reads what was last written at an address, in no time and at no cost, as a debugger does. Returns 0, or
/// SARDONYX_FAILED.
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

/// Writes at an address, in no time and at no cost, as a loader does before the first request, or a debugger.
/// Returns 0, or SARDONYX_FAILED.
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

/// Cuts the power now: the array stays, with what `platform` (adr, eadr or none; null: adr) drains into it;
/// `seed` decides how lines tear. Requests in flight will not be answered. Needs host.power_cut=yes. Returns 0,
/// or SARDONYX_FAILED.
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

/// Restores the power: a fresh controller recovers from what is left, and the clock begins anew. `kept` and
/// `lost` get the numbers of lines, of those that the host had written, that hold what it wrote last and that
/// do not; either may be null. Returns 0, or SARDONYX_FAILED.
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

/// Says what a core of the host has done so far, for the figures that count instructions: their number, when
/// the last had retired, and how many fences and flushes brought no traffic. Returns 0, or SARDONYX_FAILED.
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

/// Notes in host.log, for `sardonyx check-host`, that a request of `bytes` bytes with this tag was sent, or
/// that its answer has come (`event`), at the port or the application (`view`), at `ps` of the host's clock.
/// Without host.log nothing is written. Returns 0, or SARDONYX_FAILED.
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

/// Sets all figures to zero; state stays. Returns 0, or SARDONYX_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn sardonyx_forget_figures(memory: sardonyx_memory) -> i64 {
    with(memory, SARDONYX_FAILED, |hosting| {
        hosting.host.forget_figures();
        Ok(0)
    })
}

/// Returns the figures so far, as JSON (docs/reference/metrics.md); the text is valid until the next call of this
/// function for the memory. Null after an error.
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
