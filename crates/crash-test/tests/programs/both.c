// Accounts and their sum of all: `both FILE run` and `both FILE check`. Each has its own way to be made sure of.
#include "pm.h"

struct account { uint64_t now; uint64_t pad[7]; uint64_t copies[2][8]; };
struct file { uint64_t opened; uint64_t pad[7]; uint64_t last; uint64_t more[7]; struct account accounts[8]; };

static void put(struct file *f, int number, uint64_t value) {
    struct account *a = &f->accounts[number];
    uint64_t *copy = a->copies[!a->now];
    copy[0] = value;
    copy[7] = ~value;
    flush(copy);
    fence();
    a->now = !a->now;
    flush(&a->now);
    fence();
}

static void open_account(struct file *f, uint64_t number) {
    f->last = number;
    flush(&f->last);
    fence();
    f->opened = number;
    flush(&f->opened);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct file *f = pool(words[1], sizeof *f, 0, running);
    if (running) {
        for (int i = 0; i < 8; i++) put(f, i, 7);
        for (uint64_t i = 0; i < 40; i++) {
            open_account(f, i + 1);
            put(f, (int)(i * 3 % 8), i + 100);
        }
        return 0;
    }
    if (f->last < f->opened) { puts("the last account is unknown"); return 11; }
    for (int i = 0; i < 8; i++) {
        uint64_t *copy = f->accounts[i].copies[f->accounts[i].now & 1];
        if (copy[0] && copy[7] != ~copy[0]) { printf("account %d is torn\n", i); return 10; }
    }
    return 0;
}
