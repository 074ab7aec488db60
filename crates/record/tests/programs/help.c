// Two threads count in a mapped file by compare-and-swap and flush nothing. A third reads the count, makes it persistent
// for them, and then writes down, persistently, how far it was: `help FILE TIMES`.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct file { _Atomic uint64_t count; char apart[56]; uint64_t promised; };
static struct file *file;
static uint64_t times;
static _Atomic int counting = 2;

static void persist(void *at) { __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(at) : "memory"); }

static void *count(void *_) {
    for (uint64_t i = 0; i < times; i++) {
        uint64_t seen = atomic_load(&file->count);
        while (!atomic_compare_exchange_strong(&file->count, &seen, seen + 1)) {}
    }
    counting--;
    return _;
}

int main(int words, char **given) {
    int descriptor = open(given[1], O_RDWR | O_CREAT, 0600);
    if (words < 3 || descriptor < 0 || ftruncate(descriptor, 4096)) return 2;
    file = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    times = strtoul(given[2], 0, 10);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], 0, count, 0)) return 3;
    while (counting) {
        uint64_t seen = atomic_load(&file->count);
        persist(&file->count);
        file->promised = seen;
        persist(&file->promised);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return file->count != 2 * times;
}
