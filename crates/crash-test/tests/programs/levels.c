// A hash of two levels: a key has two places in the top level and two in the bottom one of half its size; tokens say which slots are taken.
// It grows by one level: the bottom one's items move to a new top. `levels FILE run` and `levels FILE check [ACKS]`.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#define SLOTS 4
#define ROOM (2u << 20)

typedef struct { uint8_t token[SLOTS]; uint8_t pad[4]; struct { uint64_t key, value; } slot[SLOTS]; uint8_t more[56]; } bucket_t;
typedef struct {
    volatile uint64_t magic, levels, items; // the top level has 1 << levels buckets
    volatile uint64_t top, bottom, interim, state, used;
} header_t;

static char *mem;
static header_t *h;

static void pflush(const volatile void *addr, size_t len) {
    for (uintptr_t p = (uintptr_t)addr & ~63ul; p < (uintptr_t)addr + len; p += 64)
        __asm__ volatile("clflushopt (%0)" ::"r"(p) : "memory");
}
static void asm_mfence(void) { __asm__ volatile("mfence" ::: "memory"); }

static uint64_t F(uint64_t key) { key = (key ^ (key >> 31)) * 0x7fb5d329728ea185ul; return key ^ (key >> 27); }
static uint64_t S(uint64_t key) { key = (key ^ (key >> 29)) * 0x81dadef4bc2dd44dul; return key ^ (key >> 33); }

static bucket_t *level(uint64_t offset) { return (bucket_t *)(mem + offset); }

static uint64_t alloc_level(uint64_t buckets) {
    uint64_t at = h->used;
    if (at + buckets * sizeof(bucket_t) > ROOM) exit(5);
    h->used = at + buckets * sizeof(bucket_t);
    pflush(&h->used, 8);
    asm_mfence();
    return at;
}

static int put_in(bucket_t *b, uint64_t key, uint64_t value) {
    for (int i = 0; i < SLOTS; i++)
        if (!b->token[i]) {
            b->slot[i].key = key;
            b->slot[i].value = value;
            pflush(&b->slot[i], sizeof b->slot[i]);
            asm_mfence();
            b->token[i] = 1;
            pflush(&b->token[i], 1);
            asm_mfence();
            return 1;
        }
    return 0;
}

static int put_level(uint64_t offset, uint64_t buckets, uint64_t key, uint64_t value) {
    return put_in(&level(offset)[F(key) % buckets], key, value) || put_in(&level(offset)[S(key) % buckets], key, value);
}

static void move_bottom(void) {
    uint64_t buckets = 1ul << (h->levels - 1);
    for (uint64_t b = 0; b < buckets; b++)
        for (int i = 0; i < SLOTS; i++) {
            bucket_t *from = &level(h->bottom)[b];
            if (!from->token[i]) continue;
            if (!put_level(h->interim, buckets * 4, from->slot[i].key, from->slot[i].value)) exit(6);
            from->token[i] = 0;
            pflush(&from->token[i], 1);
            asm_mfence();
        }
}

static void expand(void) {
    uint64_t interim = alloc_level(2ul << h->levels);
    h->interim = interim;
    h->state = 1;
    pflush(h, sizeof *h);
    asm_mfence();
    move_bottom();
    h->state = 2; // from here on recovery goes forward
    pflush(&h->state, 8);
    asm_mfence();
    h->bottom = h->top;
    h->top = h->interim;
    h->levels++;
    h->state = 0;
    pflush(h, sizeof *h);
    asm_mfence();
}

static void recover(void) {
    // All of the header is in one line, whose stores persist in order.
    if (h->state == 1) { move_bottom(); h->state = 2; }
    if (h->state == 2) {
        if (h->top != h->interim) h->bottom = h->top;
        if (h->top != h->interim) { h->top = h->interim; h->levels++; }
        else if ((2ul << h->levels) * sizeof(bucket_t) != h->used - h->interim && (1ul << h->levels) * sizeof(bucket_t) != h->used - h->interim) exit(7);
        else if ((1ul << h->levels) * sizeof(bucket_t) != h->used - h->interim) h->levels++;
        h->state = 0;
        pflush(h, sizeof *h);
        asm_mfence();
    }
}

static void insert(uint64_t key, uint64_t value) {
    for (;;) {
        uint64_t buckets = 1ul << h->levels;
        if (put_level(h->top, buckets, key, value) || put_level(h->bottom, buckets / 2, key, value)) return;
        expand();
    }
}

// The new value goes to a free slot of the bucket; both tokens are in one word.
static void update(uint64_t key, uint64_t value) {
    uint64_t buckets = 1ul << h->levels;
    bucket_t *all[4] = {&level(h->top)[F(key) % buckets], &level(h->top)[S(key) % buckets],
                        &level(h->bottom)[F(key) % (buckets / 2)], &level(h->bottom)[S(key) % (buckets / 2)]};
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < SLOTS; i++) {
            if (!all[n]->token[i] || all[n]->slot[i].key != key) continue;
            int free = 0;
            while (free < SLOTS && all[n]->token[free]) free++;
            if (free == SLOTS) return;
            all[n]->slot[free].key = key;
            all[n]->slot[free].value = value;
            pflush(&all[n]->slot[free], 16);
            asm_mfence();
            union { uint8_t token[4]; uint32_t word; } both;
            memcpy(both.token, all[n]->token, 4);
            both.token[i] = 0;
            both.token[free] = 1;
            *(volatile uint32_t *)all[n]->token = both.word;
            pflush(all[n]->token, 4);
            asm_mfence();
            return;
        }
}

static int count_of(uint64_t key, uint64_t *value) {
    uint64_t offsets[3] = {h->top, h->bottom, h->interim == h->top ? 0 : h->interim};
    uint64_t buckets[3] = {1ul << h->levels, 1ul << (h->levels - 1), 2ul << h->levels};
    int found = 0;
    for (int l = 0; l < 3; l++) {
        if (!offsets[l] || (l == 2 && !h->state)) continue;
        uint64_t a = F(key) % buckets[l], b = S(key) % buckets[l];
        for (int k = 0; k < (a == b ? 1 : 2); k++)
            for (int i = 0; i < SLOTS; i++) {
                bucket_t *one = &level(offsets[l])[k ? b : a];
                if (one->token[i] && one->slot[i].key == key) { found++; *value = one->slot[i].value; }
            }
    }
    return found;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    int file = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (file < 0 || (running && ftruncate(file, ROOM))) return 3;
    mem = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mem == MAP_FAILED) return 3;
    h = (header_t *)mem;
    uint64_t keys = 400;
    if (running) {
        h->used = 4096;
        h->levels = 3;
        h->top = alloc_level(8);
        h->bottom = alloc_level(4);
        pflush(h, sizeof *h);
        asm_mfence();
        h->magic = 0x1E7E15;
        pflush(&h->magic, 8);
        asm_mfence();
        for (uint64_t k = 1; k <= keys; k++) {
            insert(k, k * 5);
            if (k % 3 == 0) update(k / 3, k / 3 * 5);
            printf("%lu\n", k);
            fflush(stdout);
        }
        return 0;
    }
    if (h->magic != 0x1E7E15) { puts("no hash"); return 9; }
    recover();
    uint64_t acked = 0, value = 0;
    FILE *acks = count > 3 ? fopen(words[3], "r") : NULL;
    for (int c; acks && (c = getc(acks)) != EOF;) acked += c == '\n';
    for (uint64_t k = 1; k <= keys; k++) {
        int found = count_of(k, &value);
        if (found > 2) { printf("key %lu is there %d times\n", k, found); return 12; }
        if (found && value != k * 5) { printf("key %lu: value %lu\n", k, value); return 10; }
        if (!found && k <= acked) { printf("key %lu is lost\n", k); return 11; }
    }
    return 0;
}
