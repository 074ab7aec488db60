// Accounts in one file, the log of old values in another: `split FILE run` and `split FILE check`, the log in FILE.log.
#include "pm.h"

enum { ACCOUNTS = 16, EACH = 1000 };
struct account { uint64_t sum, pad[7]; };
struct accounts { uint64_t made, pad[7]; struct account accounts[ACCOUNTS]; };
struct log { uint64_t valid, pad[7], from, to, sums[2], more[4]; };

static void move(struct accounts *a, struct log *l, uint64_t from, uint64_t to, uint64_t sum) {
    l->from = from;
    l->to = to;
    l->sums[0] = a->accounts[from].sum;
    l->sums[1] = a->accounts[to].sum;
    flush(&l->from);
    fence();
    l->valid = 1;
    flush(&l->valid);
    fence();
    a->accounts[from].sum -= sum;
    a->accounts[to].sum += sum;
    flush(&a->accounts[from]);
    flush(&a->accounts[to]);
    fence();
    l->valid = 0;
    flush(&l->valid);
    fence();
}

static void undo(struct accounts *a, struct log *l) {
    if (!l->valid) return;
    a->accounts[l->from].sum = l->sums[0];
    a->accounts[l->to].sum = l->sums[1];
    flush(&a->accounts[l->from]);
    flush(&a->accounts[l->to]);
    fence();
    l->valid = 0;
    flush(&l->valid);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    char second[4096];
    snprintf(second, sizeof second, "%s.log", words[1]);
    struct accounts *a = pool(words[1], sizeof *a, 0, running);
    struct log *l = pool(second, sizeof *l, 0, running);
    if (running) {
        for (int i = 0; i < ACCOUNTS; i++) a->accounts[i].sum = EACH;
        flush_all(a->accounts, sizeof a->accounts);
        fence();
        a->made = 1;
        flush(&a->made);
        fence();
        for (uint64_t i = 0; i < 30; i++) move(a, l, i * 5 % 16, (i * 5 + 3) % 16, i + 1);
        return 0;
    }
    if (!a->made) return 4;
    undo(a, l);
    uint64_t sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) sum += a->accounts[i].sum;
    if (sum != ACCOUNTS * EACH) { printf("the sum is %lu\n", sum); return 10; }
    return 0;
}
