// A counter beside its log, committed by one store: `odd FILE run` and `odd FILE check`. One store is whole only within a line.
#include "pm.h"

struct __attribute__((packed, aligned(64))) file { char pad[48]; uint64_t commit; char rest[72]; uint64_t entries[512]; };

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct file *f = pool(words[1], sizeof *f, 0, running);
    if (running) {
        for (uint64_t i = 1; i < 100; i++) {
            f->entries[i] = i * 0x1000000010ul;
            flush(&f->entries[i]);
            fence();
            f->commit = i * 0x1000000010ul;
            flush_all(&f->commit, 8);
            fence();
        }
        return 0;
    }
    uint64_t commit = f->commit;
    if (commit % 0x1000000010ul || commit / 0x1000000010ul > 99 || f->entries[commit / 0x1000000010ul] != commit) {
        printf("commit %lx is none\n", commit);
        return 10;
    }
    return 0;
}
