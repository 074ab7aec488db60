// Sardonyx as a memory behind another simulator: docs/hosts.md is the page about it.
// Made of crates/c/src/lib.rs; do not edit.

#ifndef SARDONYX_H
#define SARDONYX_H

#include <stddef.h>
#include <stdint.h>

// Changes when a program that was compiled with an older header must not use the library.
#define SARDONYX_ABI 1

// What a call returns that has failed: sardonyx_error() says why.
#define SARDONYX_FAILED -1

// A time that has not come.
#define SARDONYX_NEVER UINT64_MAX

// As presented_ps: now.
#define SARDONYX_NOW UINT64_MAX

// A read; the answer to one.
#define SARDONYX_READ 0

// A write; the answer to one.
#define SARDONYX_WRITE 1

// A write-back of the encryption counters of the 512 bytes around the address.
#define SARDONYX_WRITE_COUNTERS 2

// The answer to a write-back of counters.
#define SARDONYX_COUNTERS 2

// A write that was answered before is in the array.
#define SARDONYX_IN_ARRAY 3

// The answer to a flush.
#define SARDONYX_FLUSHED 4

// The answer to a fence.
#define SARDONYX_FENCED 5

// Flag of a write: the next fence of its source waits for it.
#define SARDONYX_PERSIST 1

// Flag of a write: it is persistent with its encryption counter, or not at all; and as SARDONYX_PERSIST.
#define SARDONYX_COUNTER_ATOMIC 2

// Flag of a write: SARDONYX_IN_ARRAY follows when it is, with all three times.
#define SARDONYX_TELL_ARRAY 4

// As a view of sardonyx_note: where the host's requests come to the adapter, and its answers leave it.
#define SARDONYX_PORT 1

// As a view of sardonyx_note: whoever in the host waits for the answer.
#define SARDONYX_APPLICATION 2

// As an event of sardonyx_note: the request was sent there.
#define SARDONYX_ASKED 0

// As an event of sardonyx_note: its answer has come there.
#define SARDONYX_DONE 1

// A memory: a number that no other memory of the process has or had; 0 is none.
typedef uint64_t sardonyx_memory;

// A request.
typedef struct sardonyx_request {
  // Its first byte.
  uint64_t address;
  // The host's own name for it.
  uint64_t tag;
  // When the host had it, in picoseconds: latencies count from here. SARDONYX_NOW: now.
  uint64_t presented_ps;
  // What a write writes; null: what host.contents says.
  const uint8_t *bytes;
  // How many bytes, of one line of 64.
  uint32_t size;
  // Who asks, from 0 on.
  uint32_t source;
  // SARDONYX_READ, SARDONYX_WRITE or SARDONYX_WRITE_COUNTERS.
  uint32_t kind;
  // SARDONYX_PERSIST and the other flags of writes.
  uint32_t flags;
} sardonyx_request;

// An answer. Times are picoseconds since the begin, SARDONYX_NEVER where there is none.
typedef struct sardonyx_answer {
  // The request's.
  uint64_t tag;
  // When the host had it.
  uint64_t presented_ps;
  // When the controller took it.
  uint64_t admitted_ps;
  // When it was in the persistence domain: a power cut leaves it.
  uint64_t accepted_ps;
  // When it was in the array; of a duplicate, when its mapping was updated.
  uint64_t array_ps;
  // When it was answered.
  uint64_t answered_ps;
  // Who asked.
  uint32_t source;
  // SARDONYX_READ, SARDONYX_WRITE, SARDONYX_COUNTERS, SARDONYX_IN_ARRAY, SARDONYX_FLUSHED or SARDONYX_FENCED.
  uint32_t what;
  // Bytes of the request.
  uint32_t size;
  // 1 if the line of a read had been written before.
  uint32_t written;
  // What a read has read.
  uint8_t bytes[64];
} sardonyx_answer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The SARDONYX_ABI of the library.
uint32_t sardonyx_abi(void);

// Why the calling thread's last failed call has failed; until its next one. Never null.
const char *sardonyx_error(void);

// A memory of a design (`esd`, or `LOGGING/MAPPING+POLICY@INTEGRITY`) on a machine (a preset's name, or a
// file), with `count` settings of the form KEY=VALUE: the machine's keys, and host.* (docs/hosts.md). 0 if
// it cannot be had.
//
// # Safety
// The strings end in zero, and there are `count` settings.
sardonyx_memory sardonyx_create(const char *machine,
                                const char *design,
                                const char *const *settings,
                                size_t count);

// Ends a memory. 0, or SARDONYX_FAILED.
int64_t sardonyx_destroy(sardonyx_memory memory);

// 1 if a request is taken now, 0 if not; SARDONYX_FAILED.
int64_t sardonyx_accepts(sardonyx_memory memory);

// Sends a request. 1 if it was taken, 0 if memory takes none now (send it again later); SARDONYX_FAILED. What
// happens up to its presented_ps happens first. Each request that was taken is answered once.
//
// # Safety
// `request` points to one, whose bytes, if not null, are `size`.
int64_t sardonyx_send(sardonyx_memory memory,
                      const struct sardonyx_request *request);

// Will be answered when all writes of the line that were sent before are in the persistence domain, and the
// next fence of the source waits for it. A cache of the host's that has the line dirty writes it first. 0, or
// SARDONYX_FAILED.
int64_t sardonyx_flush(sardonyx_memory memory,
                       uint64_t address,
                       uint32_t source,
                       uint64_t tag);

// Will be answered when all that the source has sent to persist, and flushed, is in the persistence domain. 0,
// or SARDONYX_FAILED.
int64_t sardonyx_fence(sardonyx_memory memory,
                       uint32_t source,
                       uint64_t tag);

// A request for the address will come: what this computer needs for it is fetched ahead. No effect on results.
// 0, or SARDONYX_FAILED.
int64_t sardonyx_hint(sardonyx_memory memory,
                      uint32_t source,
                      uint64_t address);

// Moves time on to `ps`, which is not before the present: all that happens until then, and at it, happens. How
// many answers wait; SARDONYX_FAILED.
int64_t sardonyx_advance_to(sardonyx_memory memory,
                            uint64_t ps);

// Moves time on up to `ps`, which may be SARDONYX_NEVER, and no further than the first event that the host must
// know of: an answer, or that memory takes requests again. How many answers wait; SARDONYX_FAILED.
int64_t sardonyx_advance_until(sardonyx_memory memory,
                               uint64_t ps);

// Moves time on to the begin of the memory's next cycle. How many answers wait; SARDONYX_FAILED.
int64_t sardonyx_tick(sardonyx_memory memory);

// Nothing happens by itself, and the host asks for nothing before something does: queued writes go. With `last`
// it never asks again. 1 if anything is left to happen, 0 if not; SARDONYX_FAILED.
int64_t sardonyx_idle(sardonyx_memory memory,
                      int32_t last);

// The end of the input: everything happens until nothing is left to happen. How many answers wait;
// SARDONYX_FAILED, also if a request was lost.
int64_t sardonyx_finish(sardonyx_memory memory);

// Takes the next answers, `room` at most, in the order in which they came. How many; SARDONYX_FAILED.
//
// # Safety
// At `answers` is room for so many.
int64_t sardonyx_answers(sardonyx_memory memory,
                         struct sardonyx_answer *answers,
                         size_t room);

// The present in picoseconds; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_now(sardonyx_memory memory);

// When memory next does something by itself, so that a host may skip to it; SARDONYX_NEVER if it does nothing
// until it is asked, or if there is no such memory.
uint64_t sardonyx_next_event(sardonyx_memory memory);

// A cycle of the medium's clock in picoseconds; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_cycle(sardonyx_memory memory);

// The machine's bytes; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_capacity(sardonyx_memory memory);

// Requests that the controller has at a time; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_ingress(sardonyx_memory memory);

// Requests that were taken and are not in the array, or read, yet; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_in_flight(sardonyx_memory memory);

// Reads what was written last at an address, at no time and no cost: a debugger's look. 0, or SARDONYX_FAILED.
//
// # Safety
// At `bytes` is room for `size`.
int64_t sardonyx_functional_read(sardonyx_memory memory,
                                 uint32_t source,
                                 uint64_t address,
                                 uint8_t *bytes,
                                 size_t size);

// Writes at an address, at no time and no cost: a loader's, before the first request; or a debugger's. 0, or
// SARDONYX_FAILED.
//
// # Safety
// At `bytes` are `size`.
int64_t sardonyx_functional_write(sardonyx_memory memory,
                                  uint32_t source,
                                  uint64_t address,
                                  const uint8_t *bytes,
                                  size_t size);

// The power goes, now: what is left is what `platform` (adr, eadr or none; null: adr) drains, and lines that are
// torn are torn as `seed` says. Requests in flight will not be answered. Needs host.power_cut=yes. 0, or
// SARDONYX_FAILED.
//
// # Safety
// `platform` ends in zero, or is null.
int64_t sardonyx_power_cut(sardonyx_memory memory,
                           const char *platform,
                           uint64_t seed);

// The power is back: a fresh controller recovers from what is left, and the clock begins anew. Of the lines that
// the host had written, how many hold what it wrote last, and how many do not; either may be null. 0, or
// SARDONYX_FAILED.
//
// # Safety
// `kept` and `lost` point to numbers, or are null.
int64_t sardonyx_recover(sardonyx_memory memory,
                         uint64_t *kept,
                         uint64_t *lost);

// What a core of the host's has done so far, for the figures that count instructions: how many, when the last
// had retired, and how many fences and flushes brought no traffic. 0, or SARDONYX_FAILED.
int64_t sardonyx_core_has(sardonyx_memory memory,
                          uint32_t source,
                          uint64_t instructions,
                          uint64_t retired_ps,
                          uint64_t skipped);

// Has host.log say that a request of `bytes` bytes and this tag was sent, or its answer has come (`event`), at the
// port or at the application (`view`), at `ps` of the host's clock: for `sardonyx check-host`. Without host.log
// nothing is written. 0, or SARDONYX_FAILED.
int64_t sardonyx_note(sardonyx_memory memory,
                      uint32_t view,
                      uint32_t event,
                      uint64_t tag,
                      uint64_t ps,
                      uint32_t bytes);

// Counts from zero again; state stays. 0, or SARDONYX_FAILED.
int64_t sardonyx_forget_figures(sardonyx_memory memory);

// The figures so far, as JSON (docs/metrics.md); the text is the memory's until the next call of this function
// for it. Null if they cannot be had.
const char *sardonyx_figures(sardonyx_memory memory);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SARDONYX_H */
