// Sums that move between cells, with a log of new values that the recovery applies: `mend FILE run` and `mend FILE check`. What is lost at
// one cell must be at another.
#include "pm.h"

struct file { struct { uint64_t full, pad[7], from, to, values[2], more[4]; } log; struct { int64_t value, pad[7]; } cells[16]; };

static void move(struct file *f, uint64_t from, uint64_t to, int64_t sum) {
    f->log.from = from;
    f->log.to = to;
    f->log.values[0] = f->cells[from].value - sum;
    f->log.values[1] = f->cells[to].value + sum;
    flush(&f->log.from);
    fence();
    f->log.full = 1;
    flush(&f->log.full);
    fence();
    f->cells[from].value -= sum;
    flush(&f->cells[from]);
    f->cells[to].value += sum;
    flush(&f->cells[to]);
    fence();
    f->log.full = 0;
    flush(&f->log.full);
    fence();
}

static void recover(struct file *f) {
    if (!f->log.full) return;
    f->cells[f->log.from].value = f->log.values[0];
    f->cells[f->log.to].value = f->log.values[1];
    flush(&f->cells[f->log.from]);
    flush(&f->cells[f->log.to]);
    fence();
    f->log.full = 0;
    flush(&f->log.full);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct file *f = pool(words[1], sizeof *f, 0, running);
    if (running) {
        for (uint64_t i = 0; i < 40; i++) move(f, i * 7 % 16, (i * 7 + 5) % 16, (int64_t)i + 1);
        return 0;
    }
    recover(f);
    int64_t all = 0;
    for (int i = 0; i < 16; i++) all += f->cells[i].value;
    if (all) { printf("%ld too much\n", all); return 10; }
    return 0;
}
