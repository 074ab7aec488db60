#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sardonyx.h>

static int64_t ok(int64_t result) {
    if (result == SARDONYX_FAILED) {
        fprintf(stderr, "%s\n", sardonyx_error());
        exit(2);
    }
    return result;
}

static void take(sardonyx_memory memory) { /* prints each answer that waits */
    static const char *const what[] = {"read", "write", "counters", "in the array", "flush", "fence"};
    sardonyx_answer answer;
    while (ok(sardonyx_answers(memory, &answer, 1)) == 1)
        printf("%-12s %" PRIu64 ": %" PRIu64 " ps, first byte %d\n", what[answer.what], answer.tag,
               answer.what == SARDONYX_IN_ARRAY ? answer.array_ps : answer.answered_ps, answer.bytes[0]);
}

static void send(sardonyx_memory memory, sardonyx_request request) {
    while (!ok(sardonyx_send(memory, &request))) { /* the memory is full: go to where it next does something */
        ok(sardonyx_advance_until(memory, SARDONYX_NEVER));
        take(memory);
    }
}

int main(void) {
    const char *settings[] = {"host.power_cut=yes"};
    sardonyx_memory memory = sardonyx_create("esd", "esd-sound", settings, 1);
    if (!memory)
        ok(SARDONYX_FAILED);
    uint8_t line[64];
    memset(line, 7, sizeof line);
    for (uint64_t tag = 1; tag <= 2; tag++) /* two equal lines: the second stores nothing */
        send(memory, (sardonyx_request){.address = tag * 4096, .tag = tag, .presented_ps = SARDONYX_NOW,
                                        .bytes = line, .size = 64, .kind = SARDONYX_WRITE,
                                        .flags = SARDONYX_PERSIST | SARDONYX_TELL_ARRAY});
    ok(sardonyx_fence(memory, 0, 3));
    send(memory, (sardonyx_request){.address = 4100, .tag = 4, .presented_ps = SARDONYX_NOW, .size = 4,
                                    .kind = SARDONYX_READ});
    ok(sardonyx_finish(memory));
    take(memory);

    uint64_t kept, lost;
    ok(sardonyx_power_cut(memory, "adr", 1));
    ok(sardonyx_recover(memory, &kept, &lost));
    printf("after a power cut %" PRIu64 " lines are there and %" PRIu64 " are not\n", kept, lost);
    return ok(sardonyx_destroy(memory)) != 0;
}
