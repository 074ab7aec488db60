// A table that is made in a new file: `born FILE run` and `born FILE check`. The mark is stored when all else is there.
#include "pm.h"

#define MARK 0x62617462
struct head { uint64_t mark; uint64_t pad[7]; uint64_t buckets, start; uint64_t more[6]; };
struct slot { uint64_t key, value; };

static struct slot *find(struct head *h, uint64_t key) {
    struct slot *slots = (struct slot *)((char *)h + h->start);
    return &slots[key % h->buckets];
}

static void make(struct head *h) {
    h->start = 4096;
    struct slot *slots = (struct slot *)((char *)h + h->start);
    for (int i = 0; i < 64; i++) slots[i].value = 1;
    flush_all(slots, 64 * sizeof *slots);
    h->buckets = 64;
    flush(&h->buckets);
    fence();
    h->mark = MARK;
    flush(&h->mark);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct head *h = pool(words[1], 65536, 0, running);
    if (running) {
        if (h->mark != MARK) make(h);
        for (uint64_t key = 1; key < 40; key++) {
            struct slot *slot = find(h, key);
            slot->key = key;
            flush(slot);
            fence();
        }
        return 0;
    }
    if (h->mark != MARK) { puts("no table yet"); return 4; }
    for (uint64_t key = 1; key < 40; key++)
        if (find(h, key)->value != 1) { printf("slot of %lu lost its value\n", key); return 10; }
    return 0;
}
