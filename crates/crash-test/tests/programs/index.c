// An index in one file of objects in another: `index FILE run` and `index FILE check`, the objects in FILE.objects. An object is whole
// before the index has it, and out of the index before its place is used again.
#include "pm.h"

enum { PLACES = 24, KEYS = 32 };
struct object { uint64_t key, value, sum, pad[5]; };
struct objects { uint64_t used[PLACES], pad[8]; struct object objects[PLACES]; };
struct index { uint64_t place[KEYS]; }; // plus 1; 0 for none

static uint64_t take(struct objects *o) {
    uint64_t place = 0;
    while (o->used[place]) place++;
    o->used[place] = 1;
    flush(&o->used[place]);
    return place;
}

static void put(struct index *i, struct objects *o, uint64_t key, uint64_t value) {
    uint64_t place = take(o);
    struct object *object = &o->objects[place];
    object->key = key;
    object->value = value;
    object->sum = key * 31 + value;
    flush(object);
    fence();
    uint64_t old = i->place[key];
    i->place[key] = place + 1;
    flush(&i->place[key]);
    fence();
    if (!old) return;
    o->used[old - 1] = 0;
    flush(&o->used[old - 1]);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    char second[4096];
    snprintf(second, sizeof second, "%s.objects", words[1]);
    struct index *i = pool(words[1], sizeof *i, 0, running);
    struct objects *o = pool(second, sizeof *o, 0, running);
    if (running) {
        for (uint64_t n = 0; n < 60; n++) put(i, o, n * 7 % 17, n + 1000);
        return 0;
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        if (!i->place[key]) continue;
        struct object *object = &o->objects[i->place[key] - 1];
        if (object->sum != object->key * 31 + object->value) { printf("object of key %lu is not whole\n", key); return 10; }
        if (object->key != key) { printf("key %lu has the object of another\n", key); return 11; }
        if (!o->used[i->place[key] - 1]) { printf("key %lu has an object that is free\n", key); return 12; }
    }
    return 0;
}
