// An allocator of objects with a bitmap, and a stack of what was allocated: `arena FILE run` and `arena FILE check`.
#include "pm.h"

struct object { uint64_t next, payload[9]; uint64_t pad[6]; };
struct file { uint64_t top; uint64_t pad[7]; uint64_t bits[8]; struct object objects[128]; };

static uint64_t allocate(struct file *f) {
    for (uint64_t i = 1; i < 128; i++)
        if (!(f->bits[i / 64] >> i % 64 & 1)) {
            f->bits[i / 64] |= 1ul << i % 64;
            flush(&f->bits[i / 64]);
            fence();
            return i;
        }
    exit(5);
}

static void push(struct file *f, uint64_t value) {
    uint64_t i = allocate(f);
    struct object *o = &f->objects[i];
    for (int k = 0; k < 9; k++) o->payload[k] = value;
    o->next = f->top;
    flush_all(o, sizeof *o);
    fence();
    f->top = i;
    flush(&f->top);
    fence();
}

static void pop(struct file *f) {
    uint64_t i = f->top;
    f->top = f->objects[i].next;
    flush(&f->top);
    fence();
    f->bits[i / 64] &= ~(1ul << i % 64);
    flush(&f->bits[i / 64]);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct file *f = pool(words[1], sizeof *f, 0, running);
    if (running) {
        for (uint64_t i = 0; i < 60; i++) {
            push(f, i + 1);
            if (i % 4 == 3) pop(f);
        }
        return 0;
    }
    int left = 128;
    for (uint64_t i = f->top; i; i = f->objects[i].next) {
        if (i > 127 || !left--) { puts("the stack has no end"); return 12; }
        if (!(f->bits[i / 64] >> i % 64 & 1)) { printf("object %lu is free and in use\n", i); return 11; }
        for (int k = 0; k < 9; k++)
            if (f->objects[i].payload[k] != f->objects[i].payload[0] || !f->objects[i].payload[k]) {
                printf("object %lu is not whole\n", i);
                return 10;
            }
    }
    return 0;
}
