// Three threads that move money between accounts, each with an undo log of its own that shares a line with another's: `bank FILE run`. Accounts
// are locked by turns with a mutex, a spin lock that a plain store lets go, a ticket lock, and a read-write lock. `bank FILE check` rolls back.
#include "pm.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 3
#define GROUPS 4
#define MOVES 8
struct log { uint64_t valid, group, old[2]; };
struct group { uint64_t money[2], pad[6]; };
struct bank { uint64_t made, pad[7]; struct log logs[4]; struct group groups[GROUPS]; };

static struct bank *bank;
static _Atomic int there;
#define APART __attribute__((aligned(64)))
static APART pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static APART pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static APART _Atomic int spin;
static APART _Atomic uint64_t ticket, served;

static uint64_t lock(uint64_t group) {
    uint64_t mine = 0;
    switch (group) {
    case 0: pthread_mutex_lock(&mutex); break;
    case 1: while (atomic_exchange_explicit(&spin, 1, memory_order_acquire)) sched_yield(); break;
    case 2: mine = ticket++; while (atomic_load_explicit(&served, memory_order_acquire) != mine) sched_yield(); break;
    case 3: pthread_rwlock_wrlock(&rwlock); break;
    }
    return mine;
}

static void unlock(uint64_t group, uint64_t mine) {
    switch (group) {
    case 0: pthread_mutex_unlock(&mutex); break;
    case 1: atomic_store_explicit(&spin, 0, memory_order_release); break;
    case 2: atomic_store_explicit(&served, mine + 1, memory_order_release); break;
    case 3: pthread_rwlock_unlock(&rwlock); break;
    }
}

static void *move(void *of) {
    uint64_t thread = (uint64_t)of, seed = thread * 7 + 1;
    struct log *log = &bank->logs[thread];
    for (there++; there < THREADS;) sched_yield();
    for (int i = 0; i < MOVES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = seed >> 33 & 3, amount = seed >> 40 & 15;
        struct group *group = &bank->groups[at];
        uint64_t mine = lock(at);
        log->group = at;
        log->old[0] = group->money[0];
        log->old[1] = group->money[1];
        flush(log);
        fence();
        log->valid = 1;
        flush(log);
        fence();
        group->money[0] -= amount;
        group->money[1] += amount;
        flush(group);
        fence();
        log->valid = 0;
        flush(log);
        fence();
        unlock(at, mine);
        usleep(100);
    }
    return of;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    bank = pool(words[1], sizeof *bank, 0, running);
    if (running) {
        for (int i = 0; i < GROUPS; i++) bank->groups[i].money[0] = bank->groups[i].money[1] = 1000;
        flush_all(bank->groups, sizeof bank->groups);
        fence();
        bank->made = 1;
        flush(&bank->made);
        fence();
        pthread_t threads[THREADS];
        for (uint64_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, move, (void *)i)) return 4;
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        return 0;
    }
    if (!bank->made) return 0;
    for (int i = 0; i < THREADS; i++) {
        const struct log *log = &bank->logs[i];
        if (log->valid) memcpy(bank->groups[log->group % GROUPS].money, log->old, sizeof log->old);
    }
    for (int i = 0; i < GROUPS; i++)
        if (bank->groups[i].money[0] + bank->groups[i].money[1] != 2000) { printf("group %d is wrong\n", i); return 10; }
    return 0;
}
