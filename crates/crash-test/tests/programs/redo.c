// Two values that change together, with a redo log, and a recovery that applies the log: `redo FILE run` and `redo FILE check`.
#include "pm.h"

struct file { uint64_t valid; uint64_t pad[7]; uint64_t log[8]; uint64_t left[8]; uint64_t right[8]; uint64_t clean; uint64_t more[7]; };

static void apply(struct file *f) {
    f->left[0] = f->log[0];
    f->right[0] = ~f->log[0];
    flush(f->left);
    flush(f->right);
    fence();
    f->valid = 0;
    flush(&f->valid);
    fence();
}

static void recover(struct file *f) {
    if (!f->valid) return;
    f->left[0] = f->log[0];
    f->right[0] = ~f->log[0];
    flush(f->left);
    flush(f->right);
    fence();
    f->valid = 0;
    flush(&f->valid);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct file *f = pool(words[1], sizeof *f, 0, running);
    if (running) {
        for (uint64_t i = 1; i < 30; i++) {
            f->log[0] = i;
            flush(f->log);
            fence();
            f->valid = 1;
            flush(&f->valid);
            fence();
            apply(f);
        }
        return 0;
    }
    recover(f);
    if (f->left[0] && f->left[0] != ~f->right[0]) { puts("left and right differ"); return 10; }
    return 0;
}
