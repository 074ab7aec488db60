// Fills pages and lets them go in every way, again and again at the same addresses: `frames DUMP FILE [BECOME]`.
// What pages held when they went is in DUMP.gone, what they hold at the end in DUMP, each a list of {address, length, bytes}.
// Each line says when and where it was stored, and all of its other bytes follow from that. With BECOME the program becomes
// itself at its end, with DUMP.next, and then pages that were there go with the first one.
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define STAMP 0x53a5d0718ace57a3ull
#define PAGES 48
#define BYTES (PAGES * 4096ul)
#define ROUNDS 5
static uint64_t epoch;
static int dump, gone;

static void must(int ok, const char *what) { if (!ok) { perror(what); _exit(9); } }
static void fill(void *start, size_t bytes, size_t step) {
    uint64_t now = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST);
    for (size_t at = 0; at < bytes; at += step) {
        volatile uint64_t *line = (uint64_t *)((char *)start + at);
        uint64_t s = now * 0x9e3779b97f4a7c15ull ^ (uint64_t)line;
        line[0] = STAMP; line[1] = now; line[2] = (uint64_t)line;
        for (int i = 3; i < 8; i++) line[i] = s = s * 6364136223846793005ull + 1442695040888963407ull;
    }
}
static void put(int f, const void *at, uint64_t bytes) {
    uint64_t head[2] = {(uint64_t)at, bytes};
    // At once, as threads put side by side.
    struct iovec both[2] = {{head, 16}, {(void *)at, bytes}};
    must(writev(f, both, 2) == (ssize_t)(16 + bytes), "dump");
}
static void *map(uintptr_t at, size_t bytes) {
    void *got = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    must(got != MAP_FAILED, "mmap");
    return got;
}
static void *thread(void *number) {
    char *mine = map(0x620000000 + (uintptr_t)number * 0x1000000, BYTES);
    fill(mine, BYTES, 64);
    put(gone, mine, BYTES);
    munmap(mine, BYTES);
    char on_stack[20000];
    memset(on_stack, (int)(uintptr_t)number, sizeof on_stack);
    __asm__ volatile("" : : "r"(on_stack) : "memory");
    return 0;
}
int main(int count, char **words) {
    must(count >= 3, "usage: frames DUMP FILE [BECOME]");
    char name[4096];
    snprintf(name, sizeof name, "%s.gone", words[1]);
    dump = open(words[1], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    gone = open(name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_APPEND, 0644);
    int file = open(words[2], O_RDWR | O_CLOEXEC);
    must(dump >= 0 && gone >= 0 && file >= 0, words[2]);
    epoch = (uint64_t)getpid() << 20 | (uint64_t)(count == 3) << 19;
    snprintf(name, sizeof name, "%s.private", words[2]);
    int private = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    snprintf(name, sizeof name, "%s.tail", words[2]);
    int tail = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    must(tail >= 0 && !ftruncate(tail, 4096), name);
    char page[4096];
    for (int i = 0; i < PAGES; i++) {
        memset(page, i + 1, sizeof page);
        must(write(private, page, sizeof page) == sizeof page, "write");
    }
    char *hidden = map(0x610000000, BYTES), *kept = map(0, BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        // Unmapped, and mapped at the same address.
        char *at = map(0x600000000, BYTES);
        fill(at, BYTES, 64);
        put(gone, at, BYTES);
        munmap(at, BYTES);
        at = map(0x600000000, BYTES);
        fill(at, BYTES, 64);
        // Mapped over, in part.
        put(gone, at + 8192, 8 * 4096);
        map((uintptr_t)at + 8192, 8 * 4096);
        fill(at + 8192, 8 * 4096, 64);
        // Dropped.
        put(gone, at + BYTES / 2, BYTES / 4);
        must(!madvise(at + BYTES / 2, BYTES / 4, MADV_DONTNEED), "madvise");
        must(!*(volatile uint64_t *)(at + BYTES / 2), "pages that were dropped hold zeros");
        fill(at + BYTES / 2, BYTES / 4, 64);
        // Moved with what it holds, partly stored to there, shrunk; and what fails, which leaves all as it was.
        at = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x608000000);
        must(at == (void *)0x608000000, "mremap");
        fill(at + 4096, BYTES / 3 / 4096 * 4096, 64);
        must(munmap(at + 1, BYTES) < 0 && mremap(at, BYTES, BYTES, 77) == MAP_FAILED, "what cannot be");
        must(mmap(at, BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, 999, 0) == MAP_FAILED, "no such descriptor");
        put(gone, at, BYTES);
        must(mremap(at, BYTES, BYTES / 2, 0) == at, "mremap to less");
        munmap(at, BYTES);
        // The heap.
        char *heap = sbrk(BYTES + 1000);
        heap = (char *)(((uintptr_t)heap + 4095) & ~4095ul);
        fill(heap, BYTES - 4096, 64);
        put(gone, heap, BYTES - 4096);
        sbrk(-(intptr_t)BYTES - 1000);
        // A private mapping of a file: some pages are read, some stored to.
        at = mmap((void *)0x604000000, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, private, 0);
        must(at != MAP_FAILED, "mmap");
        uint64_t sum = 0;
        for (size_t i = 0; i < BYTES / 8 * 3; i += 4096) sum += *(volatile uint64_t *)(at + i);
        fill(at + BYTES / 4, BYTES / 4, 4096);
        put(gone, at + BYTES / 4, BYTES / 4);
        munmap(at, BYTES);
        // The last sixteen bytes of a file's last page, at once, as the first touch: what lies above is no memory.
        at = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, tail, 0);
        must(at != MAP_FAILED, "mmap");
        _mm_storeu_si128((__m128i *)(at + 4096 - 16), _mm_set1_epi8(1));
        munmap(at, 2 * 4096);
        // A shared one: its lines are the file's, and other addresses have them too.
        at = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        fill(at, BYTES, 64);
        char *again = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        must(at != MAP_FAILED && again != MAP_FAILED, "mmap");
        munmap(at, BYTES);
        fill(again + BYTES / 2, BYTES / 4, 64);
        munmap(again, BYTES);
        // Hidden, while others displace it.
        must(!mprotect(hidden, BYTES, PROT_READ | PROT_WRITE), "mprotect");
        fill(hidden, BYTES, round ? 128 : 64);
        must(!mprotect(hidden, BYTES, PROT_NONE), "mprotect");
        pthread_t threads[3];
        for (uintptr_t i = 0; i < 3 && round > 1; i++) must(!pthread_create(threads + i, 0, thread, (void *)i), "thread");
        for (int i = 0; i < 3 && round > 1; i++) pthread_join(threads[i], 0);
        if (round % 2) {
            char *others = map(0, 3 << 20);
            fill(others, 3 << 20, 64);
            munmap(others, 3 << 20);
        }
        fill(kept, BYTES, round ? 192 : 64);
    }
    must(!mprotect(hidden, BYTES, PROT_READ), "mprotect");
    if (count > 3) {
        put(gone, kept, BYTES);
        put(gone, hidden, BYTES);
        snprintf(name, sizeof name, "%s.next", words[1]);
        execl(words[0], words[0], name, words[2], (char *)0);
        return 8;
    }
    put(dump, kept, BYTES);
    put(dump, hidden, BYTES);
    return 0;
}
