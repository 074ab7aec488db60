// A cache of items in slabs of fixed classes, with a hash and an order of use that are in memory only and made anew from the slabs. libpmem.
// An update writes a new item before it unlinks the old; the larger number counts. `slabs FILE run` and `slabs FILE check [ACKS]`.
#include <libpmem.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLAB 4096
#define SLABS 64
#define BUCKETS 128
#define LINKED 1
#define KEYS 48

typedef struct item {
    struct item *h_next, *prev, *next; // of this run only
    uint64_t cas;
    uint32_t exptime, nbytes;
    uint16_t nkey;
    uint8_t it_flags, slabs_clsid;
    uint32_t sum;
    char data[];
} item;
typedef struct { uint64_t magic; uint64_t cas; uint32_t slabs; uint32_t pad; uint64_t more[5]; uint32_t clsid[SLABS]; char mem[]; } cache;

static const unsigned chunk[] = {0, 96, 192, 384};
static cache *c;
static item *hash[BUCKETS], *head, *tail, *freed[4];

static char *slab(uint32_t n) { return (char *)c + 4096 + (size_t)n * SLAB; }
static uint32_t digest(const char *p, size_t n) { uint32_t s = 5381; while (n--) s = s * 33 + (uint8_t)*p++; return s; }

static int grow_slab(int cls) {
    if (c->slabs == SLABS - 1) return 0;
    uint32_t n = c->slabs;
    pmem_memset_persist(slab(n), 0, SLAB);
    c->clsid[n] = cls;
    pmem_persist(&c->clsid[n], sizeof c->clsid[n]);
    c->slabs = n + 1;
    pmem_persist(&c->slabs, sizeof c->slabs);
    for (char *p = slab(n); p + chunk[cls] <= slab(n) + SLAB; p += chunk[cls]) {
        ((item *)p)->h_next = freed[cls];
        freed[cls] = (item *)p;
    }
    return 1;
}

static uint32_t bucket(const char *key, size_t n) { return digest(key, n) % BUCKETS; }

static void link_volatile(item *it) {
    uint32_t b = bucket(it->data, it->nkey);
    it->h_next = hash[b];
    hash[b] = it;
    it->prev = NULL;
    it->next = head;
    if (head) head->prev = it;
    head = it;
    if (!tail) tail = it;
}

static void do_item_unlink(item *it) {
    it->it_flags &= ~LINKED;
    pmem_persist(&it->it_flags, sizeof it->it_flags);
    for (item **p = &hash[bucket(it->data, it->nkey)]; *p; p = &(*p)->h_next)
        if (*p == it) { *p = it->h_next; break; }
    if (it->prev) it->prev->next = it->next; else head = it->next;
    if (it->next) it->next->prev = it->prev; else tail = it->prev;
    it->h_next = freed[it->slabs_clsid];
    freed[it->slabs_clsid] = it;
}

static item *do_item_alloc(const char *key, const char *value) {
    size_t need = sizeof(item) + strlen(key) + strlen(value) + 2;
    int cls = need <= chunk[1] ? 1 : need <= chunk[2] ? 2 : 3;
    while (!freed[cls] && (!grow_slab(cls))) do_item_unlink(tail);
    item *it = freed[cls];
    freed[cls] = it->h_next;
    it->nkey = strlen(key) + 1;
    it->nbytes = strlen(value) + 1;
    it->slabs_clsid = cls;
    it->exptime = 0;
    memcpy(it->data, key, it->nkey);
    memcpy(it->data + it->nkey, value, it->nbytes);
    it->sum = digest(it->data, it->nkey + it->nbytes);
    return it;
}

static void do_item_link(item *it) {
    it->cas = ++c->cas;
    pmem_flush(&c->cas, sizeof c->cas);
    pmem_flush(it, sizeof *it + it->nkey + it->nbytes);
    pmem_drain();
    it->it_flags |= LINKED;
    pmem_persist(&it->it_flags, sizeof it->it_flags);
    link_volatile(it);
}

static item *get(const char *key) {
    for (item *it = hash[bucket(key, strlen(key) + 1)]; it; it = it->h_next)
        if (!strcmp(it->data, key)) return it;
    return NULL;
}

static void set(const char *key, const char *value) {
    item *old = get(key), *it = do_item_alloc(key, value);
    do_item_link(it);
    if (old) do_item_unlink(old);
}

static int restore(void) {
    if (c->slabs > SLABS) return 1;
    for (uint32_t n = 0; n < c->slabs; n++) {
        if (c->clsid[n] < 1 || c->clsid[n] > 3) return 1;
        for (char *p = slab(n); p + chunk[c->clsid[n]] <= slab(n) + SLAB; p += chunk[c->clsid[n]]) {
            item *it = (item *)p;
            if (!(it->it_flags & LINKED)) continue;
            if (sizeof *it + it->nkey + it->nbytes > chunk[c->clsid[n]] || it->slabs_clsid != c->clsid[n]) return 2;
            if (it->sum != digest(it->data, it->nkey + it->nbytes)) return 3;
            item *other = get(it->data);
            if (other && other->cas == it->cas) return 4;
            if (other && other->cas > it->cas) continue;
            if (it->cas > c->cas) return 5;
            link_volatile(it);
        }
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    size_t length, bytes = 4096 + SLABS * SLAB;
    c = pmem_map_file(words[1], running ? bytes : 0, running ? PMEM_FILE_CREATE : 0, 0644, &length, NULL);
    if (!c) return 3;
    if (running) {
        c->magic = 0x51AB;
        pmem_persist(c, sizeof *c);
        for (int i = 0; i < KEYS * 5; i++) {
            char key[32], value[300];
            snprintf(key, sizeof key, "key-%d", i % KEYS);
            int n = snprintf(value, sizeof value, "%d:", i);
            memset(value + n, 'a' + i % 26, i * 37 % 250);
            value[n + i * 37 % 250] = 0;
            set(key, value);
            printf("%d\n", i);
            fflush(stdout);
        }
        return 0;
    }
    if (c->magic != 0x51AB) { puts("no cache"); return 9; }
    int wrong = restore();
    if (wrong) { printf("restore says %d\n", wrong); return 20 + wrong; }
    int acked = 0, at;
    FILE *acks = count > 3 ? fopen(words[3], "r") : NULL;
    for (int ch; acks && (ch = getc(acks)) != EOF;) acked += ch == '\n';
    for (int i = acked > KEYS ? acked - KEYS : 0; i < acked; i++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", i % KEYS);
        item *it = get(key);
        if (!it) { printf("%s is lost\n", key); return 11; }
        if (sscanf(it->data + it->nkey, "%d:", &at) != 1 || at < i) { printf("%s is as old as %d\n", key, at); return 12; }
    }
    return 0;
}
