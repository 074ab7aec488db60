// An array that doubles: `grow FILE run` and `grow FILE check`. The new room is filled before one word says that it is the array.
#include "pm.h"

struct head { uint64_t where; uint64_t pad[7]; uint64_t count; uint64_t more[7]; };
struct room { uint64_t capacity; uint64_t pad[7]; uint64_t items[]; };

static struct room *at(struct head *h, uint64_t where) { return (struct room *)((char *)h + where); }

static void grow(struct head *h) {
    struct room *old = at(h, h->where);
    uint64_t bytes = sizeof *old + old->capacity * 8;
    uint64_t where = h->where + (bytes + 63) / 64 * 64;
    struct room *new = at(h, where);
    new->capacity = old->capacity * 2;
    memcpy(new->items, old->items, old->capacity * 8);
    flush_all(new, sizeof *new + old->capacity * 8);
    fence();
    h->where = where;
    flush(&h->where);
    fence();
    memset(old->items, 0xEE, old->capacity * 8);
    flush_all(old, bytes);
    fence();
}

static void push(struct head *h, uint64_t item) {
    if (h->count == at(h, h->where)->capacity) grow(h);
    struct room *room = at(h, h->where);
    room->items[h->count] = item;
    flush(&room->items[h->count]);
    fence();
    h->count++;
    flush(&h->count);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct head *h = pool(words[1], 1 << 20, 0, running);
    if (running) {
        if (!h->where) {
            at(h, 4096)->capacity = 4;
            flush(at(h, 4096));
            fence();
            h->where = 4096;
            flush(&h->where);
            fence();
        }
        for (uint64_t i = 0; i < 120; i++) push(h, i * 7 + 1);
        return 0;
    }
    if (!h->where) return 0;
    struct room *room = at(h, h->where);
    if (h->count > room->capacity) { printf("%lu items in room for %lu\n", h->count, room->capacity); return 11; }
    for (uint64_t i = 0; i < h->count; i++)
        if (room->items[i] != i * 7 + 1) { printf("item %lu is wrong\n", i); return 10; }
    return 0;
}
