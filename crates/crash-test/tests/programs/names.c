// Names of many lengths in one heap of bytes, and objects that point to them: `names FILE run` and `names FILE check`.
#include "pm.h"

struct object { uint64_t at, length, hash; };
struct file { uint64_t count, pad[7], top, more[7]; struct object objects[60]; char bytes[16384]; };

static uint64_t hash(const char *bytes, uint64_t length) {
    uint64_t h = 5381;
    for (uint64_t i = 0; i < length; i++) h = h * 33 + (unsigned char)bytes[i];
    return h;
}

static void add(struct file *f, uint64_t number) {
    struct object *o = &f->objects[f->count];
    o->at = f->top;
    o->length = 70 + number * 13 % 110;
    char *name = f->bytes + o->at;
    for (uint64_t i = 0; i < o->length; i++) name[i] = (char)('a' + (number + i) % 26);
    o->hash = hash(name, o->length);
    flush_all(name, o->length);
    flush_all(o, sizeof *o);
    f->top = o->at + o->length;
    flush(&f->top);
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
        for (uint64_t i = 0; i < 40; i++) add(f, i);
        return 0;
    }
    for (uint64_t i = 0; i < f->count && i < 60; i++) {
        struct object *o = &f->objects[i];
        if (o->at + o->length > f->top) { printf("name %lu lies in what is free\n", i); return 11; }
        if (o->hash != hash(f->bytes + o->at, o->length)) { printf("name %lu is not whole\n", i); return 10; }
    }
    return 0;
}
