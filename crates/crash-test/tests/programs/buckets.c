// A hash whose buckets are one line each (a lock, three pairs, the next bucket), filled by two threads; it is doubled by copying when a chain
// gets long. libpmem. `buckets FILE run` and `buckets FILE check [ACKS]`.
#include <libpmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 3
#define ROOM (1u << 20)
#define KEYS 400

struct bucket { _Atomic uint64_t lock; volatile uint64_t key[ENTRIES]; volatile uint64_t value[ENTRIES]; volatile uint64_t next; };
struct table { uint64_t buckets, pad[7]; struct bucket bucket[]; };
struct header { uint64_t magic; volatile uint64_t table; _Atomic uint64_t used; uint64_t pad[5]; };

static char *base;
static struct header *head;
static pthread_rwlock_t growing = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;

static uint64_t take(size_t bytes) {
    uint64_t at = atomic_fetch_add(&head->used, (bytes + 63) & ~63ul);
    if (at + bytes > ROOM) exit(5);
    pmem_persist(&head->used, 8);
    return at;
}
static struct table *table(void) { return (struct table *)(base + head->table); }
static struct bucket *bucket_at(uint64_t at) { return (struct bucket *)(base + at); }
static uint64_t mix(uint64_t key) { return key * 0x9E3779B97F4A7C15ul >> 20; }

static void lock(struct bucket *b) { uint64_t no = 0; while (!atomic_compare_exchange_weak(&b->lock, &no, 1)) no = 0; }
static void unlock(struct bucket *b) { atomic_store(&b->lock, 0); }

static int put_locked(struct bucket *b, uint64_t key, uint64_t value, int persist) {
    int depth = 0;
    for (;; depth++) {
        for (int i = 0; i < ENTRIES; i++)
            if (!b->key[i]) {
                b->value[i] = value;
                b->key[i] = key; // the same line: in this order
                if (persist) pmem_persist((void *)b, sizeof *b);
                return depth;
            }
        if (!b->next) break;
        b = bucket_at(b->next);
    }
    uint64_t more = take(sizeof *b);
    struct bucket *n = bucket_at(more);
    n->value[0] = value;
    n->key[0] = key;
    pmem_persist(n, sizeof *n);
    b->next = more;
    if (persist) pmem_persist((void *)&b->next, 8);
    return depth + 1;
}

static void grow(void) {
    struct table *old = table();
    size_t bytes = sizeof(struct table) + old->buckets * 2 * sizeof(struct bucket);
    uint64_t at = take(bytes), chains = head->used;
    struct table *new = (struct table *)(base + at);
    new->buckets = old->buckets * 2;
    for (uint64_t i = 0; i < old->buckets; i++)
        for (struct bucket *b = &old->bucket[i];; b = bucket_at(b->next)) {
            for (int k = 0; k < ENTRIES; k++)
                if (b->key[k]) put_locked(&new->bucket[mix(b->key[k]) % new->buckets], b->key[k], b->value[k], 0);
            if (!b->next) break;
        }
    pmem_flush(new, bytes);
    pmem_flush(base + chains, head->used - chains);
    pmem_drain();
    head->table = at;
    pmem_persist((void *)&head->table, 8);
}

static void put(uint64_t key, uint64_t value) {
    pthread_rwlock_rdlock(&growing);
    struct bucket *b = &table()->bucket[mix(key) % table()->buckets];
    lock(b);
    int depth = put_locked(b, key, value, 1);
    unlock(b);
    uint64_t size = table()->buckets;
    pthread_rwlock_unlock(&growing);
    if (depth < 3) return;
    pthread_rwlock_wrlock(&growing);
    if (table()->buckets == size) grow();
    pthread_rwlock_unlock(&growing);
}

static void *work(void *number) {
    for (uint64_t key = 1 + (uintptr_t)number; key <= KEYS; key += 2) {
        put(key, key << 8 | 1);
        pthread_mutex_lock(&out);
        printf("%lu\n", key);
        fflush(stdout);
        pthread_mutex_unlock(&out);
    }
    return NULL;
}

static uint64_t get(uint64_t key) {
    for (struct bucket *b = &table()->bucket[mix(key) % table()->buckets];; b = bucket_at(b->next)) {
        for (int i = 0; i < ENTRIES; i++)
            if (b->key[i] == key) {
                if (!b->value[i]) { printf("key %lu has no value\n", key); exit(14); }
                return b->value[i];
            }
        if (!b->next) return 0;
        if (b->next >= ROOM) { puts("a chain leads nowhere"); exit(13); }
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    size_t length;
    base = pmem_map_file(words[1], running ? ROOM : 0, running ? PMEM_FILE_CREATE : 0, 0644, &length, NULL);
    if (!base) return 3;
    head = (struct header *)base;
    if (running) {
        head->used = sizeof *head;
        uint64_t at = take(sizeof(struct table) + 4 * sizeof(struct bucket));
        ((struct table *)(base + at))->buckets = 4;
        pmem_persist(base + at, sizeof(struct table));
        head->table = at;
        pmem_persist(head, sizeof *head);
        head->magic = 0xB0C;
        pmem_persist(head, 8);
        pthread_t threads[2];
        for (uintptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        return 0;
    }
    if (head->magic != 0xB0C) { puts("no table"); return 9; }
    for (uint64_t i = 0; i < table()->buckets; i++) table()->bucket[i].lock = 0;
    for (uint64_t key = 1; key <= KEYS; key++) {
        uint64_t value = get(key);
        if (value && value != (key << 8 | 1)) { printf("key %lu: %lx\n", key, value); return 10; }
    }
    FILE *acks = count > 3 ? fopen(words[3], "r") : NULL;
    for (uint64_t key; acks && fscanf(acks, "%lu", &key) == 1;)
        if (!get(key)) { printf("key %lu is lost\n", key); return 11; }
    return 0;
}
