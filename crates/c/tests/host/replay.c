/* A small host: one core that plays a trace against a memory of Sardonyx's, as `sardonyx compare` does. The core
 * is the one of docs/inside/core-model.md: a reorder window, fetch and retirement at so many instructions a cycle, so
 * many misses in flight. It shows that the library's calls suffice for the same figures, to the last digit.
 *
 * replay TRACE MACHINE DESIGN [KEY=VALUE]...   prints the figures as JSON; TRACE is flat (see `struct record`).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sardonyx.h"

/* The head of the file: the core, what a gap takes (slots / of), and how many records follow. */
struct head {
    uint64_t width, window, mshrs, clock_ps, cache_ps, slots, of, records, last_gap, skipped, counts_cycles;
};

struct record {
    uint64_t gap, line, write;
    uint8_t data[64];
};

struct miss {
    uint64_t at, fetched, back;
    int known;
};

/* Misses by number, modulo the table's size: there are never more than the window has instructions. */
static struct miss *misses;
static uint64_t *releases;
static size_t released;
static struct head head;
static uint64_t mask, first, upcoming, retire_lag, window, out, at, gap, fetch_lag, fetched, written, rest;
static uint64_t next_record, head_tick;
static enum { READY, BLOCKED, END } state = BLOCKED;
static struct record *records;

#define MAX(a, b) ((a) > (b) ? (a) : (b))

static void fail(const char *what) {
    fprintf(stderr, "replay: %s: %s\n", what, sardonyx_error());
    exit(1);
}

static uint64_t pace(uint64_t gap) {
    __uint128_t all = (__uint128_t)gap * head.slots + rest;
    rest = (uint64_t)(all % head.of);
    return (uint64_t)(all / head.of);
}

static uint64_t lag_of(const struct miss *miss, uint64_t back) {
    return MAX(miss->fetched + head.width * head.clock_ps, back) - miss->at * head.clock_ps;
}

/* Lets the window reach up to instruction `to`; 0 while that hangs on an answer. */
static int pass(uint64_t to) {
    while (first < upcoming && misses[first & mask].at + window <= to) {
        const struct miss *miss = &misses[first & mask];
        if (!miss->known)
            return 0;
        retire_lag = MAX(retire_lag, lag_of(miss, miss->back));
        first++;
    }
    uint64_t ticks = window * head.clock_ps;
    fetch_lag = MAX(fetch_lag, retire_lag > ticks ? retire_lag - ticks : 0);
    return 1;
}

static size_t free_at(uint64_t tick) {
    size_t count = 0;
    while (count < released && releases[count] <= tick)
        count++;
    return count;
}

/* Finds out when the head is fetched, if the answers so far tell. */
static void settle(void) {
    state = BLOCKED;
    if (gap > 0) {
        if (!pass(at - 1))
            return;
        fetched = (at - 1) * head.clock_ps + fetch_lag;
    }
    if (next_record == head.records) {
        state = END;
        return;
    }
    if (!pass(at))
        return;
    head_tick = at * head.clock_ps + fetch_lag;
    if (!records[next_record].write) {
        size_t free = free_at(head_tick);
        if (out + released - free >= head.mshrs) {
            if (free == released)
                return;
            head_tick = releases[free];
        }
    }
    state = READY;
}

static void go_on(void) {
    gap = pace(next_record < head.records ? records[next_record].gap : head.last_gap);
    at += gap;
    settle();
}

/* Memory has taken the head at `now`. */
static void taken(uint64_t now) {
    uint64_t fetch = head_tick;
    if (now > (fetch + head.width - 1) / head.width)
        fetch = now * head.width;
    fetch_lag = fetch - at * head.clock_ps;
    if (records[next_record].write) {
        written = fetch;
    } else {
        size_t free = free_at(fetch);
        memmove(releases, releases + free, (released - free) * sizeof *releases);
        released -= free;
        out++;
        misses[upcoming++ & mask] = (struct miss){at, fetch, 0, 0};
        fetched = fetch;
        at++;
    }
    next_record++;
    go_on();
}

static void answered(uint64_t number, uint64_t ps) {
    uint64_t back = ps * head.width + head.cache_ps * head.width;
    misses[number & mask].back = back;
    misses[number & mask].known = 1;
    size_t place = free_at(back);
    memmove(releases + place + 1, releases + place, (released - place) * sizeof *releases);
    releases[place] = back;
    released++;
    out--;
    if (state == BLOCKED)
        settle();
}

static uint64_t retired(void) {
    uint64_t ticks = written;
    if (at > 0) {
        uint64_t lag = retire_lag;
        for (uint64_t i = first; i < upcoming; i++)
            lag = MAX(lag, lag_of(&misses[i & mask], misses[i & mask].known ? misses[i & mask].back : 0));
        ticks = MAX(ticks, MAX((at - 1) * head.clock_ps + lag, fetched + head.width * head.clock_ps));
    }
    return (ticks + head.width - 1) / head.width;
}

static void take_answers(sardonyx_memory memory) {
    sardonyx_answer answers[16];
    int64_t count;
    do {
        count = sardonyx_answers(memory, answers, 16);
        if (count < 0)
            fail("answers");
        for (int64_t i = 0; i < count; i++)
            if (answers[i].what == SARDONYX_READ)
                answered(answers[i].tag, answers[i].answered_ps);
    } while (count == 16);
}

static void play(sardonyx_memory memory) {
    go_on();
    for (;;) {
        int64_t waiting = 0;
        if (state == READY) {
            const struct record *record = &records[next_record];
            if (next_record + 12 < head.records)
                sardonyx_hint(memory, 0, records[next_record + 12].line * 64);
            sardonyx_request request = {
                .address = record->line * 64,
                .tag = upcoming,
                .presented_ps = (head_tick + head.width - 1) / head.width,
                .bytes = record->write ? record->data : NULL,
                .size = 64,
                .kind = record->write ? SARDONYX_WRITE : SARDONYX_READ,
            };
            int64_t sent = sardonyx_send(memory, &request);
            if (sent < 0)
                fail("send");
            if (sent) {
                taken(sardonyx_now(memory));
                take_answers(memory);
                continue;
            }
        }
        if (sardonyx_next_event(memory) != SARDONYX_NEVER) {
            waiting = sardonyx_advance_until(memory, SARDONYX_NEVER);
        } else {
            waiting = sardonyx_idle(memory, state == END && out == 0);
            if (waiting == 0)
                break;
        }
        if (waiting < 0)
            fail("advance");
        if (waiting > 0)
            take_answers(memory);
    }
}

int main(int count, char **words) {
    if (count < 4)
        return 2;
    FILE *file = fopen(words[1], "rb");
    if (!file || fread(&head, sizeof head, 1, file) != 1)
        return 2;
    records = calloc(head.records + 1, sizeof *records);
    if (fread(records, sizeof *records, head.records, file) != head.records)
        return 2;
    fclose(file);
    window = MAX(head.window, head.width);
    uint64_t room = 1;
    while (room < window + 2)
        room *= 2;
    mask = room - 1;
    misses = calloc(room, sizeof *misses);
    releases = calloc(head.mshrs + window + 2, sizeof *releases);
    if (sardonyx_abi() != SARDONYX_ABI)
        return 2;
    sardonyx_memory memory =
        sardonyx_create(words[2], words[3], (const char *const *)words + 4, (size_t)count - 4);
    if (!memory)
        fail("create");
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    play(memory);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (sardonyx_finish(memory) < 0 || sardonyx_in_flight(memory) != 0)
        fail("finish");
    if (sardonyx_core_has(memory, 0, at, retired(), head.skipped) < 0)
        fail("core_has");
    const char *figures = sardonyx_figures(memory);
    if (!figures)
        fail("figures");
    puts(figures);
    double took = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
    fprintf(stderr, "%.0f requests/s\n", (double)head.records / took);
    return sardonyx_destroy(memory) == 0 ? 0 : 1;
}
