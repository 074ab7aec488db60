// A thread that fills items and one that counts them, which hears of each in another way: a join, a pipe, a condition, a semaphore, a barrier, a
// signal, a flag in memory, a futex. `waits FILE run`, `waits FILE check`.
#include "pm.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define WAYS 8
#define ITEMS (3 * WAYS)
struct item { uint64_t number, words[6], sum; };
struct items { uint64_t count, pad[7]; struct item items[ITEMS]; };

static struct items *items;
static int ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static pthread_t counter;
static volatile uint64_t flag;
static _Atomic uint32_t futex;
static uint64_t heard;

static uint64_t sum(const struct item *item) {
    uint64_t s = item->number + 1;
    for (int i = 0; i < 6; i++) s = s * 37 + item->words[i];
    return s;
}

static void on_signal(int _) { (void)_; }

static void tell(uint64_t i) {
    switch (i % WAYS) {
    case 1: if (write(ends[1], "x", 1) != 1) exit(6); break;
    case 2:
        pthread_mutex_lock(&lock);
        heard = i;
        pthread_cond_signal(&told);
        pthread_mutex_unlock(&lock);
        break;
    case 3: sem_post(&semaphore); break;
    case 4: pthread_barrier_wait(&barrier); break;
    case 5: pthread_kill(counter, SIGUSR1); break;
    case 6: flag = i; break;
    case 7: futex = (uint32_t)i; syscall(SYS_futex, &futex, FUTEX_WAKE, 1, NULL, NULL, 0); break;
    }
}

static void *fill(void *at) {
    uint64_t i = (uint64_t)at;
    struct item *item = &items->items[i];
    item->number = i + 1;
    for (int w = 0; w < 6; w++) item->words[w] = i * 10 + (uint64_t)w;
    item->sum = sum(item);
    flush(item);
    usleep(500);
    fence();
    tell(i);
    return at;
}

static void hear(uint64_t i, pthread_t thread) {
    char byte;
    int signal;
    sigset_t set;
    switch (i % WAYS) {
    case 0: pthread_join(thread, NULL); return;
    case 1: if (read(ends[0], &byte, 1) != 1) exit(6); break;
    case 2:
        pthread_mutex_lock(&lock);
        while (heard != i) pthread_cond_wait(&told, &lock);
        pthread_mutex_unlock(&lock);
        break;
    case 3: while (sem_wait(&semaphore)); break;
    case 4: pthread_barrier_wait(&barrier); break;
    case 5: sigemptyset(&set); sigaddset(&set, SIGUSR1); sigwait(&set, &signal); break;
    case 6: while (flag != i) sched_yield(); break;
    case 7: for (uint32_t old; (old = futex) != i;) syscall(SYS_futex, &futex, FUTEX_WAIT, old, NULL, NULL, 0); break;
    }
    pthread_detach(thread);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    items = pool(words[1], sizeof *items, 0, running);
    if (running) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        signal(SIGUSR1, on_signal);
        if (pipe(ends) || sem_init(&semaphore, 0, 0) || pthread_barrier_init(&barrier, NULL, 2)) return 4;
        counter = pthread_self();
        for (uint64_t i = 0; i < ITEMS; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, fill, (void *)i)) return 4;
            hear(i, thread);
            items->count = i + 1;
            flush(&items->count);
            fence();
        }
        return 0;
    }
    if (items->count > ITEMS) { puts("no count"); return 12; }
    for (uint64_t i = 0; i < items->count; i++) {
        const struct item *item = &items->items[i];
        if (item->number != i + 1 || item->sum != sum(item)) { printf("item %lu is wrong\n", i); return 10; }
    }
    return 0;
}
