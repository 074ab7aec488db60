// Sardonyx as a memory behind another simulator: docs/hosts/simulators.md is the page about it.
// Made of crates/c/src/lib.rs; do not edit.

#ifndef SARDONYX_H
#define SARDONYX_H

#include <stddef.h>
#include <stdint.h>

// Changes when a program that was compiled with an older header must not use the library.
#define SARDONYX_ABI 1

// The result of a call that has failed: sardonyx_error() says why.
#define SARDONYX_FAILED -1

// A time that has not come.
#define SARDONYX_NEVER UINT64_MAX

// As a presented_ps: now.
#define SARDONYX_NOW UINT64_MAX

// A read, and the answer to it.
#define SARDONYX_READ 0

// A write, and the answer to it.
#define SARDONYX_WRITE 1

// A write-back of the encryption counters of the 512 bytes around the address.
#define SARDONYX_WRITE_COUNTERS 2

// The answer to a write-back of counters.
#define SARDONYX_COUNTERS 2

// The second answer to a write: it is in the array.
#define SARDONYX_IN_ARRAY 3

// The answer to a flush.
#define SARDONYX_FLUSHED 4

// The answer to a fence.
#define SARDONYX_FENCED 5

// Flag of a write: the next fence of its source waits for it.
#define SARDONYX_PERSIST 1

// Flag of a write: it persists together with its encryption counter, or not at all; and as SARDONYX_PERSIST.
#define SARDONYX_COUNTER_ATOMIC 2

// Flag of a write: a second answer, SARDONYX_IN_ARRAY, has all three times.
#define SARDONYX_TELL_ARRAY 4

// As a view of sardonyx_note: where the host's requests come to the adapter, and its answers leave it.
#define SARDONYX_PORT 1

// As a view of sardonyx_note: the part of the host that waits for the answer.
#define SARDONYX_APPLICATION 2

// As an event of sardonyx_note: the request was sent.
#define SARDONYX_ASKED 0

// As an event of sardonyx_note: its answer has come.
#define SARDONYX_DONE 1

// The handle of a memory: a number that no other memory of the process has or has had; 0 is no memory.
typedef uint64_t sardonyx_memory;

// A request.
typedef struct sardonyx_request {
  // The address of its first byte.
  uint64_t address;
  // The host's own name for the request.
  uint64_t tag;
  // When the host presented it, in picoseconds: latencies count from here. SARDONYX_NOW: now.
  uint64_t presented_ps;
  // The bytes of a write; null: as host.contents says.
  const uint8_t *bytes;
  // The number of bytes, all in one line of 64.
  uint32_t size;
  // The number of the source, from 0 on.
  uint32_t source;
  // SARDONYX_READ, SARDONYX_WRITE or SARDONYX_WRITE_COUNTERS.
  uint32_t kind;
  // SARDONYX_PERSIST and the other flags of writes.
  uint32_t flags;
} sardonyx_request;

// An answer. Times are picoseconds since the beginning; SARDONYX_NEVER where there is none.
typedef struct sardonyx_answer {
  // The request's tag.
  uint64_t tag;
  // When the host presented the request.
  uint64_t presented_ps;
  // When the controller took the request.
  uint64_t admitted_ps;
  // When it was in the persistence domain, so that it survives a power cut.
  uint64_t accepted_ps;
  // When it was in the array; for a duplicate, when its mapping was updated.
  uint64_t array_ps;
  // When it was answered.
  uint64_t answered_ps;
  // The request's source.
  uint32_t source;
  // SARDONYX_READ, SARDONYX_WRITE, SARDONYX_COUNTERS, SARDONYX_IN_ARRAY, SARDONYX_FLUSHED or SARDONYX_FENCED.
  uint32_t what;
  // The request's size.
  uint32_t size;
  // For a read: 1 if its line had been written before.
  uint32_t written;
  // The bytes of a read.
  uint8_t bytes[64];
} sardonyx_answer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The SARDONYX_ABI of the library.
uint32_t sardonyx_abi(void);

// Returns why the calling thread's last failed call failed; valid until its next failed call. Never null.
const char *sardonyx_error(void);

// Creates a memory of a design (`esd`, or `LOGGING/MAPPING+POLICY@INTEGRITY`) on a machine (a preset's name,
// or a file), with `count` settings of the form KEY=VALUE: the machine's keys, and host.* (docs/hosts/simulators.md).
// Returns its handle, or 0 after an error.
//
// # Safety
// The strings end in zero, and there are `count` settings.
sardonyx_memory sardonyx_create(const char *machine,
                                const char *design,
                                const char *const *settings,
                                size_t count);

// Destroys a memory. Returns 0, or SARDONYX_FAILED.
int64_t sardonyx_destroy(sardonyx_memory memory);

// Returns 1 if a request would be taken now, 0 if not, or SARDONYX_FAILED.
int64_t sardonyx_accepts(sardonyx_memory memory);

// Sends a request; everything up to its presented_ps happens first. Returns 1 if it was taken, 0 if memory
// takes none now (send it again later), or SARDONYX_FAILED. Each request that was taken is answered once.
//
// # Safety
// `request` points to one, whose bytes, if not null, are `size`.
int64_t sardonyx_send(sardonyx_memory memory,
                      const struct sardonyx_request *request);

// Flushes a line: answered when all its earlier writes are in the persistence domain; the next fence of the
// source waits for that. A host's cache that holds the line dirty must write it first. Returns 0, or
// SARDONYX_FAILED.
int64_t sardonyx_flush(sardonyx_memory memory,
                       uint64_t address,
                       uint32_t source,
                       uint64_t tag);

// A fence: answered when everything that the source has sent to persist, or flushed, is in the persistence
// domain. Returns 0, or SARDONYX_FAILED.
int64_t sardonyx_fence(sardonyx_memory memory,
                       uint32_t source,
                       uint64_t tag);

// Announces a request for the address, so that this computer fetches ahead what it needs. No effect on
// results. Returns 0, or SARDONYX_FAILED.
int64_t sardonyx_hint(sardonyx_memory memory,
                      uint32_t source,
                      uint64_t address);

// Moves time to `ps`, which is not before the present: everything up to and at that time happens. Returns the
// number of answers that wait, or SARDONYX_FAILED.
int64_t sardonyx_advance_to(sardonyx_memory memory,
                            uint64_t ps);

// Moves time up to `ps`, which may be SARDONYX_NEVER, and no further than the first event that the host must
// know of: an answer, or that memory takes requests again. Returns the number of answers that wait, or
// SARDONYX_FAILED.
int64_t sardonyx_advance_until(sardonyx_memory memory,
                               uint64_t ps);

// Moves time to the beginning of the memory's next cycle. Returns the number of answers that wait, or
// SARDONYX_FAILED.
int64_t sardonyx_tick(sardonyx_memory memory);

// Says that the host asks for nothing before something happens, when nothing happens on its own: queued writes
// then go. With `last` the host never asks again. Returns 1 if anything is left to happen, 0 if not, or
// SARDONYX_FAILED.
int64_t sardonyx_idle(sardonyx_memory memory,
                      int32_t last);

// Ends the input: everything happens until nothing is left to happen. Returns the number of answers that wait,
// or SARDONYX_FAILED, also if a request was lost.
int64_t sardonyx_finish(sardonyx_memory memory);

// Writes host.log to its file as far as it goes, for a host that never destroys its memory. Returns 0, or
// SARDONYX_FAILED.
int64_t sardonyx_flush_log(sardonyx_memory memory);

// Takes the next answers, at most `room`, in the order in which they came. Returns their number, or
// SARDONYX_FAILED.
//
// # Safety
// At `answers` is room for so many.
int64_t sardonyx_answers(sardonyx_memory memory, struct sardonyx_answer *answers, size_t room);

// Returns the present time in picoseconds; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_now(sardonyx_memory memory);

// Returns the time at which memory next does something on its own, so that a host may skip to it;
// SARDONYX_NEVER if it does nothing until it is asked, or if there is no such memory.
uint64_t sardonyx_next_event(sardonyx_memory memory);

// Returns the length of a cycle of the medium's clock in picoseconds; SARDONYX_NEVER if there is no such
// memory.
uint64_t sardonyx_cycle(sardonyx_memory memory);

// Returns the machine's capacity in bytes; SARDONYX_NEVER if there is no such memory.
uint64_t sardonyx_capacity(sardonyx_memory memory);

// Returns the room of the controller's ingress, where requests wait for its queues; SARDONYX_NEVER if there is
// no such memory. A design's own accesses need room too: sardonyx_accepts alone says whether one is taken.
uint64_t sardonyx_ingress(sardonyx_memory memory);

// Returns the number of requests that were taken and are not in the array, or read, yet; SARDONYX_NEVER if
// there is no such memory.
uint64_t sardonyx_in_flight(sardonyx_memory memory);

// Reads what was last written at an address, in no time and at no cost, as a debugger does. Returns 0, or
// SARDONYX_FAILED.
//
// # Safety
// At `bytes` is room for `size`.
int64_t sardonyx_functional_read(sardonyx_memory memory,
                                 uint32_t source,
                                 uint64_t address,
                                 uint8_t *bytes,
                                 size_t size);

// Writes at an address, in no time and at no cost, as a loader does before the first request, or a debugger.
// Returns 0, or SARDONYX_FAILED.
//
// # Safety
// At `bytes` are `size`.
int64_t sardonyx_functional_write(sardonyx_memory memory,
                                  uint32_t source,
                                  uint64_t address,
                                  const uint8_t *bytes,
                                  size_t size);

// Cuts the power now: the array stays, with what `platform` (adr, eadr or none; null: adr) drains into it;
// `seed` decides how lines tear. Requests in flight will not be answered. Needs host.power_cut=yes. Returns 0,
// or SARDONYX_FAILED.
//
// # Safety
// `platform` ends in zero, or is null.
int64_t sardonyx_power_cut(sardonyx_memory memory,
                           const char *platform,
                           uint64_t seed);

// Restores the power: a fresh controller recovers from what is left, and the clock begins anew. `kept` and
// `lost` get the numbers of lines, of those that the host had written, that hold what it wrote last and that
// do not; either may be null. Returns 0, or SARDONYX_FAILED.
//
// # Safety
// `kept` and `lost` point to numbers, or are null.
int64_t sardonyx_recover(sardonyx_memory memory,
                         uint64_t *kept,
                         uint64_t *lost);

// Says what a core of the host has done so far, for the figures that count instructions: their number, when
// the last had retired, and how many fences and flushes brought no traffic. Returns 0, or SARDONYX_FAILED.
int64_t sardonyx_core_has(sardonyx_memory memory,
                          uint32_t source,
                          uint64_t instructions,
                          uint64_t retired_ps,
                          uint64_t skipped);

// Notes in host.log, for `sardonyx check-host`, that a request of `bytes` bytes with this tag was sent, or
// that its answer has come (`event`), at the port or the application (`view`), at `ps` of the host's clock.
// Without host.log nothing is written. Returns 0, or SARDONYX_FAILED.
int64_t sardonyx_note(sardonyx_memory memory,
                      uint32_t view,
                      uint32_t event,
                      uint64_t tag,
                      uint64_t ps,
                      uint32_t bytes);

// Sets all figures to zero; state stays. Returns 0, or SARDONYX_FAILED.
int64_t sardonyx_forget_figures(sardonyx_memory memory);

// Returns the figures so far, as JSON (docs/reference/metrics.md); the text is valid until the next call of this
// function for the memory. Null after an error.
const char *sardonyx_figures(sardonyx_memory memory);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SARDONYX_H */
