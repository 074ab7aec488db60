// Entries of 40 bytes, so that some lie over two lines: `wide FILE run` and `wide FILE check`. An entry is whole before it counts.
#include "pm.h"

struct entry { uint64_t key, values[3], sum; };
struct file { uint64_t count, pad[7]; struct entry entries[200]; };

static uint64_t sum(const struct entry *e) { return e->key * 31 + e->values[0] * 7 + e->values[1] * 5 + e->values[2] * 3 + 1; }

static void append(struct file *f, uint64_t key) {
    struct entry *e = &f->entries[f->count];
    e->key = key;
    for (int i = 0; i < 3; i++) e->values[i] = key * 100 + i;
    e->sum = sum(e);
    flush_all(e, sizeof *e);
    fence();
    f->count++;
    flush(&f->count);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct file *f = pool(words[1], sizeof *f, 0, running);
    if (running) {
        for (uint64_t i = 0; i < 60; i++) append(f, i + 1);
        return 0;
    }
    for (uint64_t i = 0; i < f->count; i++)
        if (f->entries[i].sum != sum(&f->entries[i])) { printf("entry %lu is not whole\n", i); return 10; }
    return 0;
}
