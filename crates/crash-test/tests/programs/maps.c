// The maps of libpmemobj's examples, driven: `maps KIND FILE run [INSERTS [REMOVALS]]` makes a pool and works on it,
// `maps KIND FILE check [ACKS]` opens it and holds it against the states that the work goes through, one operation at a time.
// What is done stands on standard output, a line an operation.
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "map.h"
#include "map_btree.h"
#include "map_ctree.h"
#include "map_hashmap_atomic.h"
#include "map_hashmap_rp.h"
#include "map_hashmap_tx.h"
#include "map_rbtree.h"
#include "map_skiplist.h"

POBJ_LAYOUT_BEGIN(maps);
POBJ_LAYOUT_ROOT(maps, struct root);
POBJ_LAYOUT_TOID(maps, struct value);
POBJ_LAYOUT_END(maps);

// Keys that the check inserts.
#define FIRST_NEW 200
#define NEW 8
struct value { uint64_t key; };
struct root { TOID(struct map) map; uint64_t inserts, removals; uint64_t ready; };

static const struct { const char *name; const struct map_ops *ops; } KINDS[] = {
    {"btree", MAP_BTREE}, {"ctree", MAP_CTREE}, {"rbtree", MAP_RBTREE},
    {"hashmap_tx", MAP_HASHMAP_TX}, {"hashmap_atomic", MAP_HASHMAP_ATOMIC}, {"skiplist", MAP_SKIPLIST},
    {"hashmap_rp", MAP_HASHMAP_RP},
};

// Keys in an order that makes trees split, turn and merge; each once.
static uint64_t key_of(uint64_t i) { return (i * 37 + 11) % 101 + 1; }
static uint64_t removed(uint64_t i, uint64_t inserts) { return key_of((i * 7 + 3) % inserts); }

static void constructor(PMEMobjpool *pool, void *object, void *key) {
    ((struct value *)object)->key = *(uint64_t *)key;
    pmemobj_persist(pool, object, sizeof(struct value));
}

static struct map_ctx *ctx;
// Whether the map allocates its values; the hash maps are given numbers instead.
static int owns;

static int insert(TOID(struct map) map, uint64_t key) {
    return owns ? map_insert_new(ctx, map, key, sizeof(struct value), TOID_TYPE_NUM(struct value), constructor, &key)
                : map_insert(ctx, map, key, (PMEMoid){1, key});
}

static int run(PMEMobjpool *pool, TOID(struct root) root, uint64_t inserts, uint64_t removals) {
    D_RW(root)->inserts = inserts;
    D_RW(root)->removals = removals;
    pmemobj_persist(pool, D_RW(root), sizeof(struct root));
    if (map_create(ctx, &D_RW(root)->map, NULL)) return 4;
    D_RW(root)->ready = 1;
    pmemobj_persist(pool, &D_RW(root)->ready, 8);
    for (uint64_t i = 0; i < inserts; i++) {
        uint64_t key = key_of(i);
        if (insert(D_RO(root)->map, key)) return 5;
        printf("insert %lu\n", key);
        fflush(stdout);
    }
    for (uint64_t i = 0; i < removals; i++) {
        if (owns && map_remove_free(ctx, D_RO(root)->map, removed(i, inserts))) return 6;
        if (!owns && OID_IS_NULL(map_remove(ctx, D_RO(root)->map, removed(i, inserts)))) return 6;
        printf("remove %lu\n", removed(i, inserts));
        fflush(stdout);
    }
    return 0;
}

static unsigned char here[256];
static uint64_t found;
static int wrong(uint64_t key, PMEMoid value, void *_) {
    (void)_;
    if (key > 255 || here[key] || OID_IS_NULL(value)) return 1;
    if ((owns ? ((struct value *)pmemobj_direct(value))->key : value.off) != key) return 1;
    here[key] = 1;
    found++;
    return 0;
}

static int check(PMEMobjpool *pool, TOID(struct root) root, const char *acks) {
    (void)pool;
    if (!D_RO(root)->ready) return 0;
    if (map_check(ctx, D_RO(root)->map)) { puts("the map is not one"); return 10; }
    if (map_foreach(ctx, D_RO(root)->map, wrong, NULL)) { puts("an entry is wrong"); return 11; }
    if (ctx->ops->count && map_count(ctx, D_RO(root)->map) != found) { puts("the count is wrong"); return 12; }
    for (uint64_t key = 1; key < 256; key++)
        if (ctx->ops->lookup && !map_lookup(ctx, D_RO(root)->map, key) != !here[key]) {
            printf("look-up of %lu differs\n", key);
            return 13;
        }
    uint64_t acked = 0, inserts = D_RO(root)->inserts, removals = D_RO(root)->removals;
    if (acks) {
        FILE *file = fopen(acks, "r");
        int c;
        while (file && (c = getc(file)) != EOF) acked += c == '\n';
    }
    unsigned char state[256] = {0};
    uint64_t steps = 0, last = 0;
    int known = 0;
    for (uint64_t i = 0; i <= inserts + removals; i++, steps++) {
        if (!memcmp(state, here, sizeof state)) { known = 1; last = i; }
        if (i < inserts) state[key_of(i)] = 1;
        else if (i < inserts + removals) state[removed(i - inserts, inserts)] = 0;
    }
    if (!known) { puts("no state that there ever was"); return 14; }
    // What is there is nobody else's: new entries leave it alone.
    for (uint64_t key = FIRST_NEW; key < FIRST_NEW + NEW; key++) {
        if (insert(D_RO(root)->map, key)) { printf("%lu cannot be inserted\n", key); return 17; }
        state[key] = 1;
    }
    for (uint64_t key = 1; key < FIRST_NEW; key++) state[key] = here[key];
    memset(here, 0, sizeof here);
    if (map_foreach(ctx, D_RO(root)->map, wrong, NULL) || memcmp(state, here, sizeof here)) {
        puts("new entries spoil old ones");
        return 18;
    }
    // What is there must be there to be freed.
    for (uint64_t key = 1; key < 256; key++)
        if (here[key] && (owns ? map_remove_free(ctx, D_RO(root)->map, key) : OID_IS_NULL(map_remove(ctx, D_RO(root)->map, key)))) {
            printf("%lu cannot be removed\n", key);
            return 16;
        }
    if (last < acked) { printf("%lu operations were done, %lu are here\n", acked, last); return 15; }
    return 0;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    const struct map_ops *ops = NULL;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(words[1], KINDS[i].name)) ops = KINDS[i].ops;
    if (!ops) return 2;
    int running = !strcmp(words[3], "run");
    PMEMobjpool *pool = running ? pmemobj_create(words[2], POBJ_LAYOUT_NAME(maps), PMEMOBJ_MIN_POOL, 0644)
                                : pmemobj_open(words[2], POBJ_LAYOUT_NAME(maps));
    if (!pool) { fprintf(stderr, "%s\n", pmemobj_errormsg()); return 3; }
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    ctx = map_ctx_init(ops, pool);
    owns = strncmp(words[1], "hashmap", 7) != 0;
    int status;
    if (running) {
        status = run(pool, root, count > 4 ? strtoul(words[4], 0, 0) : 40, count > 5 ? strtoul(words[5], 0, 0) : 20);
    } else {
        if (D_RO(root)->ready && ops->init) map_init(ctx, D_RO(root)->map);
        status = check(pool, root, count > 4 ? words[4] : NULL);
    }
    map_ctx_free(ctx);
    pmemobj_close(pool);
    return status;
}
