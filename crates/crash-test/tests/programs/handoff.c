// Two threads and a mapped file: `handoff FILE run`: one writes pages, the other says in an index that they are there. `handoff FILE check`.
// They wait for each other without a lock, which would be a fence.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 24
struct page { uint64_t number, words[6], sum; };
struct file { uint64_t count, pad[7], index[PAGES]; struct page pages[PAGES]; };

static void flush(const void *at) { __asm__ volatile("clwb %0" : : "m"(*(const char *)at) : "memory"); }
static void fence(void) { __asm__ volatile("sfence" ::: "memory"); }

static struct file *file;
static volatile uint64_t written, published;

static uint64_t sum(const struct page *page) {
    uint64_t s = page->number + 1;
    for (int i = 0; i < 6; i++) s = s * 37 + page->words[i];
    return s;
}

static void *writer(void *_) {
    for (uint64_t i = 0; i < PAGES; i++) {
        struct page *page = &file->pages[(i * 7) % PAGES];
        page->number = i;
        for (int w = 0; w < 6; w++) page->words[w] = i + w;
        page->sum = sum(page);
        flush(page);
        fence();
        written = i + 1;
        while (published <= i) sched_yield();
    }
    return _;
}

static void publish(void) {
    for (uint64_t i = 0; i < PAGES; i++) {
        while (written <= i) sched_yield();
        file->index[i] = (i * 7) % PAGES;
        flush(&file->index[i]);
        fence();
        file->count = i + 1;
        flush(&file->count);
        fence();
        published = i + 1;
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    int descriptor = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (descriptor < 0 || (running && ftruncate(descriptor, sizeof(struct file)))) return 3;
    file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (file == MAP_FAILED) return 3;
    if (running) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, writer, NULL)) return 4;
        publish();
        return pthread_join(thread, NULL);
    }
    if (file->count > PAGES) { puts("no count"); return 12; }
    for (uint64_t i = 0; i < file->count; i++) {
        const struct page *page = &file->pages[file->index[i] % PAGES];
        if (page->number != i || page->sum != sum(page)) { printf("page %lu is wrong\n", i); return 10; }
    }
    return 0;
}
