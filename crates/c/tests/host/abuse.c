/* Random sequences of calls with bad arguments, sizes, handles and from several threads: each has to give a value,
 * and an error its words. abuse SEQUENCES SEED. Prints how many calls failed and how many did not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx.h"

enum { LIVE = 8 };

static uint64_t mixed(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t odd(uint64_t *state) {
    static const uint64_t few[] = {0, 1, 63, 64, 65, 4096, 1u << 20, (uint64_t)1 << 33, UINT64_MAX, UINT64_MAX - 63,
                                   INT64_MAX, (uint64_t)1 << 63, 17999999999999999u, 18000000000000001u};
    uint64_t draw = mixed(state);
    return draw % 3 ? few[draw / 3 % (sizeof few / sizeof *few)] : mixed(state) >> draw % 64;
}

static const char *word(uint64_t *state) {
    static const char *const words[] = {
        "esd", "baseline", "fca", "", "nothing", "hw-log/amt+sca", "\xff\xfe", "/", "eadr", "none", "adr",
        "host.sources=2", "host.sources=0", "host.sources=99999999999", "host.power_cut=yes", "host.log=/nowhere/log",
        "host.log=/dev/full", "host.log=/dev/null", "host.keep=no", "host.keep=maybe",
        "host.contents=drawn:3", "host.contents=drawn:0", "host.contents=trace:nowhere", "addresses=wrapped",
        "addresses=first-touch", "host.writes_answered=array", "host.warmup=3", "host.nothing=1", "novalue",
        "engine.ingress=1", "engine.ingress=0", "medium.geometry.rows=16", "=", "host.seed=1", "host.unwritten=noise"};
    const size_t count = sizeof words / sizeof *words;
    uint64_t draw = mixed(state);
    return draw % 16 ? words[draw / 16 % count] : NULL;
}

static uint64_t failed, done;

static void check(int64_t result) {
    if (result < 0) {
        failed++;
        if (!*sardonyx_error()) {
            puts("an error without words");
            exit(1);
        }
    } else {
        done++;
    }
}

static void one_call(sardonyx_memory memory, uint64_t *state) {
    static const char *const platforms[] = {"adr", "eadr", "none", "other", NULL};
    uint8_t bytes[256];
    memset(bytes, (int)(mixed(state) % 3), sizeof bytes);
    uint64_t draw = mixed(state) % 40, near = mixed(state) % 4096, kept, lost;
    sardonyx_answer answers[4];
    switch (draw) {
    case 0: check(sardonyx_accepts(memory)); break;
    case 1: check(sardonyx_flush(memory, mixed(state) % 2 ? near : odd(state), (uint32_t)(mixed(state) % 3), 1)); break;
    case 2: check(sardonyx_fence(memory, mixed(state) % 2 ? 0 : (uint32_t)odd(state), 2)); break;
    case 3: check(sardonyx_hint(memory, (uint32_t)odd(state), odd(state))); break;
    case 4: check(sardonyx_advance_to(memory, odd(state) % ((uint64_t)1 << mixed(state) % 64))); break;
    case 5: check(sardonyx_advance_until(memory, odd(state))); break;
    case 6: check(sardonyx_tick(memory)); break;
    case 7: check(sardonyx_idle(memory, (int32_t)(mixed(state) % 2))); break;
    case 8: check(mixed(state) % 8 ? 0 : sardonyx_finish(memory)); break;
    case 9: check(sardonyx_answers(memory, mixed(state) % 8 ? answers : NULL, mixed(state) % 5)); break;
    case 10: check(sardonyx_now(memory) == SARDONYX_NEVER ? -1 : 0); break;
    case 11: (void)sardonyx_next_event(memory); break;
    case 12: check(sardonyx_capacity(memory) == SARDONYX_NEVER ? -1 : 0); break;
    case 13: check(sardonyx_functional_read(memory, 0, mixed(state) % 2 ? near : odd(state),
                                            mixed(state) % 8 ? bytes : NULL, mixed(state) % 256)); break;
    case 14: check(sardonyx_functional_write(memory, 0, mixed(state) % 2 ? near : odd(state),
                                             mixed(state) % 8 ? bytes : NULL, mixed(state) % 256)); break;
    case 15: check(mixed(state) % 4 ? 0 : sardonyx_power_cut(memory, platforms[mixed(state) % 5], odd(state))); break;
    case 16: check(sardonyx_recover(memory, mixed(state) % 2 ? &kept : NULL, &lost)); break;
    case 17: check(sardonyx_core_has(memory, (uint32_t)(mixed(state) % 3), odd(state), odd(state), odd(state))); break;
    case 18: check(sardonyx_forget_figures(memory)); break;
    case 19: check(sardonyx_figures(memory) ? 0 : -1); break;
    case 20: check(sardonyx_send(memory, NULL)); break;
    case 22: check(sardonyx_note(memory, (uint32_t)(mixed(state) % 4), (uint32_t)(mixed(state) % 3), odd(state), odd(state),
                                 (uint32_t)odd(state))); break;
    case 21: check(mixed(state) % 16 ? 0 : sardonyx_destroy(memory)); break;
    default: {
        uint64_t size = mixed(state) % 4 ? 64 : mixed(state) % 8 ? mixed(state) % 70 : odd(state);
        sardonyx_request request = {
            .address = mixed(state) % 8 ? near & ~(uint64_t)63 : odd(state),
            .tag = mixed(state),
            .presented_ps = mixed(state) % 8 ? SARDONYX_NOW : odd(state),
            .bytes = mixed(state) % 4 ? bytes : NULL,
            .size = (uint32_t)size,
            .source = mixed(state) % 8 ? 0 : (uint32_t)odd(state),
            .kind = (uint32_t)(mixed(state) % 8 ? mixed(state) % 3 : odd(state)),
            .flags = (uint32_t)(mixed(state) % 4 ? 0 : mixed(state) % 2 ? mixed(state) % 8 : odd(state)),
        };
        check(sardonyx_send(memory, &request));
    }
    }
}

static void *other(void *argument) {
    uint64_t *state = argument, handle = state[1];
    for (int i = 0; i < 100; i++) {
        (void)sardonyx_tick(handle);
        (void)sardonyx_accepts(handle);
    }
    return NULL;
}

int main(int count, char **words) {
    uint64_t sequences = count > 1 ? strtoull(words[1], NULL, 10) : 100;
    uint64_t state = count > 2 ? strtoull(words[2], NULL, 10) : 1;
    sardonyx_memory memories[LIVE] = {0};
    for (uint64_t sequence = 0; sequence < sequences; sequence++) {
        sardonyx_memory *memory = &memories[mixed(&state) % LIVE];
        if (mixed(&state) % 16 == 0) {
            int there = *memory != 0;
            if (sardonyx_destroy(*memory) != SARDONYX_FAILED && !there)
                return 1;
            if (sardonyx_destroy(*memory) != SARDONYX_FAILED || sardonyx_accepts(*memory) != SARDONYX_FAILED)
                return 1;
            *memory = 0;
        }
        if (!*memory) {
            const char *settings[4] = {word(&state), word(&state), word(&state), word(&state)};
            const char *machine = mixed(&state) % 8 ? "esd" : word(&state);
            const char *design = mixed(&state) % 8 ? mixed(&state) % 2 ? "esd" : "fca" : word(&state);
            *memory = sardonyx_create(machine, design, mixed(&state) % 32 ? settings : NULL, mixed(&state) % 3);
            check(*memory ? 0 : -1);
        }
        for (uint64_t calls = mixed(&state) % 64; calls > 0; calls--)
            one_call(mixed(&state) % 32 ? *memory : odd(&state), &state);
        if (sequence % 64 == 0) {
            uint64_t argument[2] = {state, *memory};
            pthread_t thread;
            if (pthread_create(&thread, NULL, other, argument))
                return 1;
            for (int i = 0; i < 100; i++)
                one_call(*memory, &state);
            pthread_join(thread, NULL);
        }
    }
    printf("%llu failed, %llu done\n", (unsigned long long)failed, (unsigned long long)done);
    return 0;
}
