// A tree of two kinds of nodes whose entries are shifted in place, 8 bytes at a time, and whose leaves are linked. A reader skips an entry
// whose pointer is its left neighbour's, so that a shift that was cut is harmless. `leaves FILE run` and `leaves FILE check [ACKS]`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

namespace {
constexpr int kEntries = 14;
constexpr std::size_t kRoom = 1 << 20;

inline void clwb(const volatile void *p) { asm volatile("clwb %0" : "+m"(*(volatile char *)p)); }
inline void persist(const volatile void *data, std::size_t len) {
    for (std::uintptr_t p = (std::uintptr_t)data & ~63ul; p < (std::uintptr_t)data + len; p += 64) clwb((void *)p);
    _mm_sfence();
}

struct entry { volatile std::uint64_t key, ptr; }; // stored in the order of the program, as these must be
struct page {
    std::uint64_t leftmost, sibling, level, lowest, pad[4];
    entry records[kEntries + 2];  // ends at a ptr of 0
};
struct meta { std::uint64_t magic, root, next, pad[5]; page pages[1]; };

meta *pool;
page *at(std::uint64_t number) { return &pool->pages[number]; }

std::uint64_t new_page(std::uint64_t level) {
    std::uint64_t number = pool->next;
    pool->next = number + 1;
    persist(&pool->next, 8);
    std::memset(at(number), 0, sizeof(page));
    at(number)->level = level;
    return number;
}

int count_of(const page *p) {
    int n = 0;
    while (n <= kEntries && p->records[n].ptr) n++;
    return n;
}

void insert_key(page *p, std::uint64_t key, std::uint64_t ptr, int n, bool flush) {
    p->records[n + 1].ptr = 0;
    if (flush && !(((std::uintptr_t)&p->records[n + 1].ptr) & 63)) persist(&p->records[n + 1].ptr, 8);
    int i = n - 1;
    for (; i >= 0; i--) {
        if (key >= p->records[i].key) break;
        p->records[i + 1].ptr = p->records[i].ptr;
        _mm_sfence();
        p->records[i + 1].key = p->records[i].key;
        if (flush && !((std::uintptr_t)&p->records[i + 1] & 63)) persist(&p->records[i + 1], 16);
    }
    std::uint64_t left = i >= 0 ? p->records[i].ptr : p->leftmost;
    p->records[i + 1].ptr = i < 0 && !left ? p->records[0].ptr : left;
    p->records[i + 1].key = key;
    p->records[i + 1].ptr = ptr;
    if (flush) persist(&p->records[i + 1], 16);
}

std::uint64_t insert(std::uint64_t number, std::uint64_t key, std::uint64_t value, std::uint64_t *up) {
    page *p = at(number);
    std::uint64_t key_up = key, ptr = value;
    if (p->level) {
        std::uint64_t child = p->leftmost;
        for (int i = 0; p->records[i].ptr; i++)
            if (key >= p->records[i].key) child = p->records[i].ptr;
        ptr = insert(child, key, value, &key_up);
        if (!ptr) return 0;
    }
    int n = count_of(p);
    if (n < kEntries) {
        insert_key(p, key_up, ptr, n, true);
        return 0;
    }
    int middle = n / 2;
    std::uint64_t fresh = new_page(p->level), split = p->records[middle].key;
    page *q = at(fresh);
    int to = 0;
    for (int i = p->level ? middle + 1 : middle; i < n; i++) insert_key(q, p->records[i].key, p->records[i].ptr, to++, false);
    if (p->level) q->leftmost = p->records[middle].ptr;
    q->sibling = p->sibling;
    q->lowest = split;
    persist(q, sizeof *q);
    p->sibling = fresh;
    persist(&p->sibling, 8);
    p->records[middle].ptr = 0;
    persist(&p->records[middle], sizeof(entry));
    if (key_up < split) insert_key(p, key_up, ptr, middle, true);
    else insert_key(q, key_up, ptr, to, true);
    *up = split;
    return fresh;
}

void put(std::uint64_t key, std::uint64_t value) {
    std::uint64_t up, fresh = insert(pool->root, key, value, &up);
    if (!fresh) return;
    std::uint64_t root = new_page(at(pool->root)->level + 1);
    at(root)->leftmost = pool->root;
    at(root)->records[0] = {up, fresh};
    persist(at(root), sizeof(page));
    pool->root = root;
    persist(&pool->root, 8);
}

std::uint64_t get(std::uint64_t key) {
    page *p = at(pool->root);
    while (p->level) {
        if (p->sibling && key >= at(p->sibling)->lowest) { p = at(p->sibling); continue; }
        std::uint64_t child = p->leftmost, before = p->leftmost;
        for (int i = 0; i <= kEntries && p->records[i].ptr; i++) {
            if (p->records[i].ptr == before) continue;
            before = p->records[i].ptr;
            if (key >= p->records[i].key) child = before;
        }
        p = at(child);
    }
    for (;; p = at(p->sibling)) {
        std::uint64_t before = p->leftmost;
        for (int i = 0; i <= kEntries && p->records[i].ptr; i++) {
            if (p->records[i].ptr == before) continue;
            before = p->records[i].ptr;
            if (p->records[i].key == key) return p->records[i].ptr;
        }
        if (!p->sibling || key < at(p->sibling)->lowest) return 0;
    }
}
}  // namespace

int main(int count, char **words) {
    if (count < 3) return 2;
    bool running = !std::strcmp(words[2], "run");
    int file = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (file < 0 || (running && ftruncate(file, kRoom))) return 3;
    pool = (meta *)mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const std::uint64_t keys = 300;
    if (running) {
        pool->next = 1;
        pool->root = new_page(0);
        persist(at(pool->root), sizeof(page));
        persist(pool, 64);
        pool->magic = 0x5EAF;
        persist(&pool->magic, 8);
        for (std::uint64_t i = 0; i < keys; i++) {
            std::uint64_t key = i * 7919 % 4096 + 1;
            put(key, key << 20 | i + 1);
            std::printf("%lu\n", key);
            std::fflush(stdout);
        }
        return 0;
    }
    if (pool->magic != 0x5EAF) { std::puts("no tree"); return 9; }
    std::uint64_t acked = 0;
    FILE *acks = count > 3 ? std::fopen(words[3], "r") : nullptr;
    for (int c; acks && (c = std::getc(acks)) != EOF;) acked += c == '\n';
    for (std::uint64_t i = 0; i < keys; i++) {
        std::uint64_t key = i * 7919 % 4096 + 1, value = get(key);
        if (value && value != (key << 20 | i + 1)) { std::printf("key %lu has a wrong value\n", key); return 10; }
        if (!value && i < acked) { std::printf("key %lu is lost\n", key); return 11; }
    }
    return 0;
}
