// Keys and values that take their operations from a file: `kv FILE apply OPERATIONS` prints `done` after each, `kv FILE dump` recovers and
// prints what is there. Operations: `put KEY VALUE`, `del KEY`, `swap KEY KEY`, which a log of new values makes whole. It has no check.
#include "pm.h"

#define KEYS 64
struct entry { uint64_t key, now, pad[6], values[2], more[6]; };
struct change { uint64_t entry, value; };
struct file { struct { uint64_t full, pad[7]; struct change changes[2]; uint64_t more[4]; } log; struct entry entries[KEYS]; };

static void store(struct entry *e, uint64_t value) {
    e->values[!e->now] = value;
    flush(e->values);
    fence();
    e->now = !e->now;
    flush(&e->now);
    fence();
}

static void redo(struct file *f) {
    for (int i = 0; i < 2; i++) {
        struct entry *e = &f->entries[f->log.changes[i].entry % KEYS];
        if (e->values[e->now] != f->log.changes[i].value) store(e, f->log.changes[i].value);
    }
    f->log.full = 0;
    flush(&f->log.full);
    fence();
}

static struct entry *find(struct file *f, uint64_t key) {
    for (int i = 0; i < KEYS; i++)
        if (f->entries[i].key == key) return &f->entries[i];
    return NULL;
}

static void put(struct file *f, uint64_t key, uint64_t value) {
    struct entry *e = find(f, key);
    if (e) { store(e, value); return; }
    e = find(f, 0);
    if (!e) exit(5);
    e->now = 0;
    e->values[0] = value;
    flush(e->values);
    flush(&e->now);
    fence();
    e->key = key;
    flush(&e->key);
    fence();
}

static void del(struct file *f, uint64_t key) {
    struct entry *e = find(f, key);
    if (!e) return;
    e->key = 0;
    flush(&e->key);
    fence();
}

static void swap(struct file *f, uint64_t one, uint64_t other) {
    struct entry *a = find(f, one), *b = find(f, other);
    if (!a || !b || a == b) return;
    f->log.changes[0] = (struct change){a - f->entries, b->values[b->now]};
    f->log.changes[1] = (struct change){b - f->entries, a->values[a->now]};
    flush(&f->log.changes);
    fence();
    f->log.full = 1;
    flush(&f->log.full);
    fence();
    redo(f);
}

static void apply(struct file *f, FILE *operations) {
    char name[8];
    uint64_t a, b;
    while (fscanf(operations, "%7s %lu", name, &a) == 2) {
        if (strcmp(name, "del") && fscanf(operations, "%lu", &b) != 1) exit(4);
        if (!strcmp(name, "put")) put(f, a, b);
        else if (!strcmp(name, "del")) del(f, a);
        else swap(f, a, b);
        puts("done");
        fflush(stdout);
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int applying = !strcmp(words[2], "apply");
    struct file *f = pool(words[1], sizeof *f, 0, applying);
    if (applying) {
        FILE *operations = fopen(words[3], "r");
        if (!operations) return 4;
        apply(f, operations);
        return 0;
    }
    if (f->log.full) redo(f);
    for (int i = 0; i < KEYS; i++)
        if (f->entries[i].key) printf("%lu = %lu\n", f->entries[i].key, f->entries[i].values[f->entries[i].now]);
    return 0;
}
