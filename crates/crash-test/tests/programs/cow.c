// A search tree that is never changed in place, with libpmem: `cow FILE run` inserts keys by copying the path to them, and gives the old
// path back to a free list in the nodes themselves; `cow FILE check [ACKS]` walks it. The root's pointer is the only commit.
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 400
#define KEYS 40
struct node { uint64_t key, value, left, right, pad[5], sum; }; // children by number; 0 is none. Longer than a line.
struct pool { char magic[8]; uint64_t used, root, pad[5]; struct node nodes[NODES]; };

static struct pool *pool;
static uint64_t freed[NODES], frees, old[NODES], olds, fresh[NODES], freshes;

static uint64_t sum(const struct node *n) { return (n->key * 31 + n->value) * 31 + n->left * 7 + n->right; }

static uint64_t place(void) {
    uint64_t at = frees ? freed[--frees] : ++pool->used;
    fresh[freshes++] = at;
    return at;
}

// The number of a tree like that at `at`, with one key more.
static uint64_t with(uint64_t at, uint64_t key, uint64_t value) {
    struct node made = {.key = key, .value = value};
    if (at) {
        made = pool->nodes[at];
        old[olds++] = at;
        if (key < made.key) made.left = with(made.left, key, value);
        else if (key > made.key) made.right = with(made.right, key, value);
        else made.value = value;
    }
    made.sum = sum(&made);
    uint64_t to = place();
    pool->nodes[to] = made;
    return to;
}

static void insert(uint64_t key, uint64_t value) {
    olds = freshes = 0;
    uint64_t used = pool->used;
    uint64_t root = with(pool->root, key, value);
    for (uint64_t i = 0; i < freshes; i++) pmem_flush(&pool->nodes[fresh[i]], sizeof(struct node));
    if (pool->used != used) pmem_flush(&pool->used, 8);
    pmem_drain();
    pool->root = root;
    pmem_persist(&pool->root, 8);
    while (olds) freed[frees++] = old[--olds];
}

static uint64_t nodes;
static int walk(uint64_t at, uint64_t low, uint64_t high) {
    if (!at) return 0;
    const struct node *n = &pool->nodes[at];
    if (at > pool->used || ++nodes > NODES) return 13;
    if (n->sum != sum(n) || n->key < low || n->key >= high || n->value != n->key * n->key) return 10;
    int left = walk(n->left, low, n->key);
    return left ? left : walk(n->right, n->key + 1, high);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    size_t length;
    pool = pmem_map_file(words[1], running ? sizeof *pool : 0, running ? PMEM_FILE_CREATE : 0, 0644, &length, NULL);
    if (!pool) return 3;
    if (running) {
        memcpy(pool->magic, "cow", 4);
        pmem_persist(pool, 64);
        for (uint64_t i = 0; i < KEYS; i++) {
            uint64_t key = i * 17 % KEYS + 1;
            insert(key, key * key);
            printf("%lu\n", key);
            fflush(stdout);
        }
        return 0;
    }
    if (memcmp(pool->magic, "cow", 4)) { puts("no tree"); return 9; }
    int wrong = walk(pool->root, 1, KEYS + 1);
    if (wrong) { puts("no search tree"); return wrong; }
    uint64_t acked = 0;
    int c;
    FILE *file = count > 3 ? fopen(words[3], "r") : NULL;
    while (file && (c = getc(file)) != EOF) acked += c == '\n';
    if (nodes < acked) { printf("%lu keys of %lu\n", nodes, acked); return 11; }
    return 0;
}
