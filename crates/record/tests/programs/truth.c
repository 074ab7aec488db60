// Writes memory in every way that a recorder could miss, then says what it holds: `truth DUMP MEGABYTES`.
// The dump is a list of {address, length, bytes}; the child writes its own to DUMP.child. Everything that is dumped was
// written by this program (or by the kernel for it) after it was mapped, so a complete trace knows every line of it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
static size_t part;                      // bytes of each thread's part
static uint8_t *arena;                   // one part for main, one for each thread, one for the child
static _Alignas(64) uint8_t fixed[1 << 20];   // in .bss
static _Alignas(64) atomic_ullong shared[512]; // all threads, falsely shared
static volatile sig_atomic_t handled;
static uint64_t seed = 88172645463325252ull;

static uint64_t next(uint64_t *s) { *s ^= *s << 13; *s ^= *s >> 7; return *s ^= *s << 17; }
static void must(int ok, const char *what) { if (!ok) { perror(what); _exit(9); } }
static void *map(size_t bytes) {
    void *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED, "mmap");
    return at;
}
static void random_bytes(uint8_t *at, size_t bytes) {
    int f = open("/dev/urandom", O_RDONLY);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(f, at + done, bytes - done);
        must(n > 0, "read");
        done += n;
    }
    close(f);
}
static void on_signal(int number) { handled += number > 0; fixed[handled] ^= 0x55; }

__attribute__((target("avx2"))) static void vectors(uint8_t *at, size_t bytes, uint64_t *s) {
    for (size_t i = 0; i + 96 < bytes; i += 61) { // crosses lines and pages
        __m256i v = _mm256_set1_epi64x((long long)next(s));
        _mm256_storeu_si256((__m256i *)(at + i), v);
        _mm_storeu_si128((__m128i *)(at + i + 33), _mm256_castsi256_si128(v));
        _mm256_maskstore_epi32((int *)(at + i + 60), _mm256_set_epi32(-1, 0, -1, 0, -1, 0, 0, -1), v);
    }
}
__attribute__((target("avx2,clflushopt,clwb"))) static void past_caches(uint8_t *at, size_t bytes, uint64_t *s) {
    for (size_t i = 0; i + 64 <= bytes; i += 64) {
        __m256i v = _mm256_set1_epi64x((long long)next(s));
        switch (i / 64 % 6) {
        case 0: _mm256_stream_si256((__m256i *)(at + i), v); _mm256_stream_si256((__m256i *)(at + i + 32), v); break;
        case 1: for (int k = 0; k < 8; k++) _mm_stream_si64((long long *)(at + i + 8 * k), (long long)next(s)); break;
        case 2: _mm_stream_si128((__m128i *)(at + i + 16), _mm256_castsi256_si128(v)); break; // part of a line
        case 3: _mm_stream_si32((int *)(at + i + 4), 7); at[i + 9] = 3; break;                // mixed with a store
        case 4: *(uint64_t *)(at + i + 8) = next(s); _mm_clflushopt(at + i); break;
        case 5: at[i] = 1; _mm_clwb(at + i); _mm_clflush(at + i); at[i + 1] = 2; break;
        }
        if (i % 4096 == 0) _mm_sfence();
    }
    _mm_mfence();
}
__attribute__((target("fxsr,xsave"))) static void states(uint8_t *at, size_t bytes) { // in lines that are theirs alone
    for (size_t i = 0; i + 4096 <= bytes; i += 4096) {
        for (size_t k = 0; k < 1024; k += 90) {
            long double number = (long double)(i + k) / 3;
            __asm__ volatile("fldt %1; fstpt %0" : "=m"(*(uint8_t(*)[10])(at + i + k)) : "m"(number));
        }
        __asm__ volatile("fnstenv %0; fldenv %0" : "=m"(*(uint8_t(*)[28])(at + i + 1072)));
        __asm__ volatile("fnsave %0; frstor %0" : "=m"(*(uint8_t(*)[108])(at + i + 1200)));
        _fxsave(at + i + 1536);
        memset(at + i + 2048 + 512, 0, 64);
        _xsave(at + i + 2048, 7);
    }
}
static void plain(uint8_t *at, size_t bytes, uint64_t *s) {
    for (size_t i = 0; i + 8 <= bytes; i += 8) *(uint64_t *)(at + i) = next(s);
    for (size_t k = 0; k < bytes / 64; k++) { // unaligned, of every size, anywhere
        size_t i = next(s) % (bytes - 16);
        switch (k % 4) {
        case 0: *(volatile uint64_t *)(at + i) = next(s); break;
        case 1: *(volatile uint32_t *)(at + i) += 5; break;
        case 2: *(volatile uint16_t *)(at + i) ^= 0x1234; break;
        case 3: at[i]++; break;
        }
    }
    memmove(at + 100, at + 3, bytes / 4);
    __asm__ volatile("cld; rep movsb" : : "D"(at + bytes / 2 + 7), "S"(at), "c"(bytes / 8) : "memory");
    __asm__ volatile("rep stosq" : : "D"(at + bytes / 4 * 3), "a"(0x1122334455667788), "c"(999l) : "memory");
}
static void atomics(uint64_t *s, int rounds) {
    for (int i = 0; i < rounds; i++) {
        size_t k = next(s) % 512;
        atomic_fetch_add(&shared[k], 3);
        atomic_exchange(&shared[(k + 1) % 512], next(s));
        unsigned long long was = atomic_load(&shared[(k + 2) % 512]);
        atomic_compare_exchange_strong(&shared[(k + 2) % 512], &was, was + 1);
        atomic_fetch_or(&shared[(k + 3) % 512], 1ull << (k % 64));
        ((volatile uint8_t *)shared)[k * 8 + 5]++; // and a plain store among them
    }
}
static void *thread(void *argument) {
    size_t number = (size_t)argument;
    uint64_t s = seed + number * 977;
    uint8_t *mine = arena + (1 + number) * part;
    plain(mine, part, &s);
    atomics(&s, 40000);
    vectors(mine, part / 2, &s);
    states(mine, part / 4 & ~4095ul);
    atomics(&s, 40000);
    past_caches(mine + part / 2, part / 4, &s);
    return 0;
}
static void put(int f, const void *at, uint64_t bytes) {
    uint64_t head[2] = {(uint64_t)at, bytes};
    must(write(f, head, 16) == 16, "dump");
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = write(f, (const char *)at + done, bytes - done);
        must(n > 0, "dump");
        done += n;
    }
}
int main(int count, char **words) {
    must(count == 3, "usage: truth DUMP MEGABYTES");
    part = (size_t)(atof(words[2]) * (1 << 20) / (THREADS + 2)) & ~4095ul;
    int dump = open(words[1], O_CREAT | O_TRUNC | O_WRONLY, 0644);
    must(dump >= 0, words[1]);
    arena = map((THREADS + 2) * part);
    random_bytes(fixed, sizeof fixed);
    random_bytes((uint8_t *)shared, sizeof shared);
    plain(arena, part, &seed);
    vectors(arena, part / 2, &seed);
    past_caches(arena + part / 2, part / 4, &seed);
    states(arena, part / 4 & ~4095ul);

    // The kernel writes: read at odd places, scattered reads, a socket, a signal frame.
    random_bytes(arena + 77, 100001);
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    must(write(pair[0], fixed, 9000) == 9000, "write");
    struct iovec list[3] = {{arena + 200003, 1000}, {arena + 300007, 3000}, {arena + 400001, 5000}};
    must(readv(pair[1], list, 3) == 9000, "readv");
    must(write(pair[0], fixed + 5000, 7000) == 7000, "write");
    struct msghdr message = {.msg_iov = list + 1, .msg_iovlen = 2};
    must(recvmsg(pair[1], &message, 0) == 7000, "recvmsg");
    must(write(pair[0], fixed + 50, 700) == 700, "write");
    must(recvfrom(pair[1], arena + 500009, 700, 0, 0, 0) == 700, "recvfrom");
    uint8_t *stack = map(1 << 16); // signal frames on a stack that is dumped
    memset(stack, 0xA5, 1 << 16);
    stack_t other = {.ss_sp = stack, .ss_size = 1 << 16};
    must(sigaltstack(&other, 0) == 0, "sigaltstack");
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    must(sigaction(SIGUSR1, &action, 0) == 0, "sigaction");
    for (int i = 0; i < 10; i++) raise(SIGUSR1);

    // Mappings: moved, dropped, mapped over, unmapped and used again.
    uint8_t *moved = map(1 << 20);
    plain(moved, 1 << 20, &seed);
    uint8_t *room = map(3 << 20);
    memset(room, 1, 3 << 20);
    munmap(room, 3 << 20);
    moved = mremap(moved, 1 << 20, 2 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    must(moved == room, "mremap");
    memset(moved + (1 << 20), 2, 1 << 20);
    plain(moved + 5000, 300000, &seed);
    uint8_t *dropped = map(1 << 20);
    memset(dropped, 0x77, 1 << 20);
    must(madvise(dropped, 1 << 20, MADV_DONTNEED) == 0, "madvise");
    for (size_t i = 0; i < 1 << 20; i += 64) dropped[i + 5] = (uint8_t)(i >> 6);
    must(mmap(dropped + 8192, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED, "over");
    for (size_t i = 8192; i < 12288; i += 64) dropped[i] = 9;

    fflush(0);
    pid_t child = fork();
    if (child == 0) {
        char name[4096];
        snprintf(name, sizeof name, "%s.child", words[1]);
        uint8_t *mine = arena + (THREADS + 1) * part;
        plain(mine, part, &seed);
        plain(arena, part, &seed); // must not be taken for the parent's
        int f = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
        put(f, mine, part);
        put(f, arena, part);
        _exit(0);
    }
    uint64_t other_seed = 7;
    plain(arena + (THREADS + 1) * part, part, &other_seed);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) must(!pthread_create(threads + i, 0, thread, (void *)i), "thread");
    atomics(&seed, 40000);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    int status = 1;
    must(waitpid(child, &status, 0) == child && status == 0, "child");
    pid_t second = fork(); // of a process that has had threads
    if (second == 0) { memset(arena, 0, part); _exit(0); }
    must(waitpid(second, &status, 0) == second && status == 0, "second child");

    put(dump, arena, (THREADS + 2) * part);
    put(dump, fixed, sizeof fixed);
    put(dump, (void *)shared, sizeof shared);
    put(dump, stack, 1 << 16);
    put(dump, moved, 2 << 20);
    put(dump, dropped, 1 << 20);
    return 0;
}
