// What the small programs share: a mapped file, flushes and fences. At a fixed address a file is mapped as programs of persistent memory do
// it: with MAP_SYNC, or without it where the file system has none.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void flush(const volatile void *at) { __asm__ volatile("clwb %0" : : "m"(*(const volatile char *)at) : "memory"); }
static inline void fence(void) { __asm__ volatile("sfence" ::: "memory"); }
static inline void flush_all(const void *at, size_t bytes) {
    for (uintptr_t p = (uintptr_t)at & ~63ul; p < (uintptr_t)at + bytes; p += 64) flush((void *)p);
}

static inline void *pool(const char *path, size_t bytes, uintptr_t at, int running) {
    int descriptor = open(path, running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (descriptor < 0 || (running && ftruncate(descriptor, (off_t)bytes))) exit(3);
    void *file = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, descriptor, 0);
    if (file == MAP_FAILED) file = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (file == MAP_FAILED || (at && file != (void *)at)) exit(3);
    close(descriptor);
    return file;
}
