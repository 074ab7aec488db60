// Two threads that reserve slots of an array, fill them and count them: `slots FILE run`. A slot is counted when all slots before it are
// filled, which its thread waits for. Status 9 if a slot was counted before the other thread had filled one before it. `slots FILE check`.
#include "pm.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define SLOTS 12
struct slot { uint64_t number, words[6], sum; };
struct array { uint64_t count, pad[7]; struct slot slots[SLOTS]; };

static struct array *array;
static _Atomic uint64_t next, ready[SLOTS * 8];
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static uint64_t filled[SLOTS * 8], counted[SLOTS * 8]; // a line each: when

static uint64_t sum(const struct slot *slot) {
    uint64_t s = slot->number + 1;
    for (int i = 0; i < 6; i++) s = s * 37 + slot->words[i];
    return s;
}

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static void *fill(void *_) {
    for (uint64_t i; (i = next++) < SLOTS;) {
        struct slot *slot = &array->slots[i];
        slot->number = i + 1;
        for (int w = 0; w < 6; w++) slot->words[w] = i * 10 + (uint64_t)w;
        slot->sum = sum(slot);
        flush(slot);
        fence();
        filled[i * 8] = now();
        ready[i * 8] = 1;
        usleep(20000);
        for (uint64_t before = 0; before < i; before++)
            while (!ready[before * 8]) sched_yield();
        counted[i * 8] = now();
        pthread_mutex_lock(&counting);
        if (array->count < i + 1) {
            array->count = i + 1;
            flush(&array->count);
            fence();
        }
        pthread_mutex_unlock(&counting);
    }
    return _;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    array = pool(words[1], sizeof *array, 0, running);
    if (running) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fill, NULL)) return 4;
        fill(NULL);
        if (pthread_join(thread, NULL)) return 4;
        for (int i = 1; i < SLOTS; i++)
            if (counted[i * 8] < filled[(i - 1) * 8]) return 9;
        return 0;
    }
    if (array->count > SLOTS) { puts("no count"); return 12; }
    for (uint64_t i = 0; i < array->count; i++) {
        const struct slot *slot = &array->slots[i];
        if (slot->number != i + 1 || slot->sum != sum(slot)) { printf("slot %lu is wrong\n", i); return 10; }
    }
    return 0;
}
