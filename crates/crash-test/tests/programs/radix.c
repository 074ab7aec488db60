// A radix tree of four bytes whose nodes grow from 4 to 16 to 256 children, on libpmemobj: a grown node is made whole, and then its parent's
// pointer is exchanged. `radix FILE run` and `radix FILE check [ACKS]`.
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(radix);
POBJ_LAYOUT_ROOT(radix, struct root);
POBJ_LAYOUT_END(radix);

struct root { uint64_t tree, items, pad[6]; };
enum { N4 = 1, N16, N256, LEAF };
struct head { uint8_t type, pad[3]; uint32_t count; };
struct node4 { struct head h; uint8_t keys[8]; uint64_t child[4]; };
struct node16 { struct head h; uint8_t keys[16]; uint64_t child[16]; };
struct node256 { struct head h; uint64_t child[256]; };
struct leaf { struct head h; uint32_t key, pad; uint64_t value; char text[40]; };

static PMEMobjpool *pop;
static uint64_t uuid;
static void *at(uint64_t off) { return off ? pmemobj_direct((PMEMoid){uuid, off}) : NULL; }

static const size_t sizes[] = {0, sizeof(struct node4), sizeof(struct node16), sizeof(struct node256), sizeof(struct leaf)};
static uint64_t make(int type) {
    PMEMoid oid;
    if (pmemobj_zalloc(pop, &oid, sizes[type], type)) exit(5);
    struct head *h = pmemobj_direct(oid);
    h->type = type;
    return oid.off;
}

static uint64_t *find(struct head *h, uint8_t byte) {
    uint8_t *keys = NULL;
    uint64_t *child = NULL;
    switch (h->type) {
    case N4: keys = ((struct node4 *)h)->keys; child = ((struct node4 *)h)->child; break;
    case N16: keys = ((struct node16 *)h)->keys; child = ((struct node16 *)h)->child; break;
    case N256: return ((struct node256 *)h)->child[byte] ? &((struct node256 *)h)->child[byte] : NULL;
    default: puts("no node"); exit(13);
    }
    for (uint32_t i = 0; i < h->count; i++)
        if (keys[i] == byte) return &child[i];
    return NULL;
}

static int add(struct head *h, uint8_t byte, uint64_t to, int persist) {
    if (h->type == N256) {
        uint64_t *child = &((struct node256 *)h)->child[byte];
        *child = to;
        if (persist) pmemobj_persist(pop, child, sizeof *child);
        return 1;
    }
    uint32_t most = h->type == N4 ? 4 : 16;
    if (h->count == most) return 0;
    uint8_t *keys = h->type == N4 ? ((struct node4 *)h)->keys : ((struct node16 *)h)->keys;
    uint64_t *child = h->type == N4 ? ((struct node4 *)h)->child : ((struct node16 *)h)->child;
    keys[h->count] = byte;
    child[h->count] = to;
    if (persist) {
        pmemobj_flush(pop, &keys[h->count], 1);
        pmemobj_flush(pop, &child[h->count], 8);
        pmemobj_drain(pop);
    }
    h->count++;
    if (persist) pmemobj_persist(pop, &h->count, sizeof h->count);
    return 1;
}

static uint64_t grown(struct head *h) {
    uint64_t big = make(h->type + 1);
    struct head *to = at(big);
    uint8_t *keys = h->type == N4 ? ((struct node4 *)h)->keys : ((struct node16 *)h)->keys;
    uint64_t *child = h->type == N4 ? ((struct node4 *)h)->child : ((struct node16 *)h)->child;
    for (uint32_t i = 0; i < h->count; i++) add(to, keys[i], child[i], 0);
    pmemobj_persist(pop, to, sizes[to->type]);
    return big;
}

static void insert(uint64_t *ref, uint32_t key, uint64_t value) {
    for (int depth = 3;; depth--) {
        struct head *h = at(*ref);
        uint8_t byte = key >> depth * 8;
        uint64_t *next = find(h, byte);
        if (next) { ref = next; continue; }
        uint64_t below = make(LEAF);
        struct leaf *leaf = at(below);
        leaf->key = key;
        leaf->value = value;
        snprintf(leaf->text, sizeof leaf->text, "the value that is of key %u", key);
        pmemobj_persist(pop, leaf, sizeof *leaf);
        for (int d = 0; d < depth; d++) {
            uint64_t node = make(N4);
            add(at(node), key >> d * 8, below, 0);
            pmemobj_persist(pop, at(node), sizeof(struct node4));
            below = node;
        }
        if (!add(h, byte, below, 1)) {
            uint64_t old = *ref, big = grown(h);
            add(at(big), byte, below, 1);
            *ref = big;
            pmemobj_persist(pop, ref, sizeof *ref);
            PMEMoid gone = {uuid, old};
            pmemobj_free(&gone);
        }
        return;
    }
}

// Dense in the last two bytes, so that nodes grow once and twice.
static uint32_t key_of(uint32_t i) { return (i & 31) | (i >> 5) << 8; }

static struct leaf *get(uint64_t tree, uint32_t key) {
    for (int depth = 3; depth >= 0; depth--) {
        uint64_t *next = find(at(tree), key >> depth * 8);
        if (!next) return NULL;
        tree = *next;
    }
    return at(tree);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    pop = running ? pmemobj_create(words[1], POBJ_LAYOUT_NAME(radix), PMEMOBJ_MIN_POOL, 0644) : pmemobj_open(words[1], POBJ_LAYOUT_NAME(radix));
    if (!pop) return 3;
    PMEMoid oid = pmemobj_root(pop, sizeof(struct root));
    struct root *root = pmemobj_direct(oid);
    uuid = oid.pool_uuid_lo;
    uint32_t keys = 200;
    if (running) {
        root->tree = make(N4);
        pmemobj_persist(pop, at(root->tree), sizeof(struct node4));
        pmemobj_persist(pop, &root->tree, 8);
        for (uint32_t i = 1; i <= keys; i++) {
            insert(&root->tree, key_of(i), i);
            printf("%u\n", i);
            fflush(stdout);
        }
        pmemobj_close(pop);
        return 0;
    }
    if (!root->tree) { puts("no tree"); return 9; }
    uint32_t acked = 0;
    FILE *acks = count > 3 ? fopen(words[3], "r") : NULL;
    for (int c; acks && (c = getc(acks)) != EOF;) acked += c == '\n';
    for (uint32_t i = 1; i <= keys; i++) {
        uint32_t key = key_of(i);
        struct leaf *leaf = get(root->tree, key);
        char text[40];
        snprintf(text, sizeof text, "the value that is of key %u", key);
        if (leaf && (leaf->key != key || strcmp(leaf->text, text))) { printf("key %x has another's leaf\n", key); return 10; }
        if (!leaf && i <= acked) { printf("key %x is lost\n", key); return 11; }
    }
    pmemobj_close(pop);
    return 0;
}
