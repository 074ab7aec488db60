// A server that forks workers, two at a time: `workers FILE run`: each fills some cells of a table and ends, and the server counts the
// cells when it has waited for both. One worker is killed in the middle of its work, and another takes over. `workers FILE check`.
#include "pm.h"
#include <signal.h>
#include <sys/wait.h>

#define CELLS 24
#define EACH 3
struct cell { uint64_t number, words[6], sum; };
struct table { uint64_t count, pad[7]; struct cell cells[CELLS]; };

static uint64_t sum(const struct cell *cell) {
    uint64_t s = cell->number + 1;
    for (int i = 0; i < 6; i++) s = s * 37 + cell->words[i];
    return s;
}

static void fill(struct table *table, uint64_t first, int dies) {
    for (uint64_t i = first; i < first + EACH; i++) {
        struct cell *cell = &table->cells[i];
        cell->number = i + 1;
        for (int w = 0; w < 6; w++) cell->words[w] = i * 10 + (uint64_t)w;
        cell->sum = sum(cell);
        if (dies && i == first + 1) kill(getpid(), SIGKILL);
        flush_all(cell, sizeof *cell);
        fence();
    }
}

static pid_t worker(struct table *table, uint64_t first, int dies) {
    pid_t child = fork();
    if (child < 0) exit(4);
    if (child) return child;
    fill(table, first, dies);
    _exit(0);
}

static void finished(struct table *table, pid_t child, uint64_t first) {
    int status;
    if (waitpid(child, &status, 0) != child) exit(5);
    if (status) finished(table, worker(table, first, 0), first);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct table *table = pool(words[1], sizeof *table, 0, running);
    if (running) {
        for (uint64_t first = 0; first < CELLS; first += 2 * EACH) {
            pid_t one = worker(table, first, first == 2 * EACH);
            pid_t other = worker(table, first + EACH, 0);
            finished(table, one, first);
            finished(table, other, first + EACH);
            table->count = first + 2 * EACH;
            flush(&table->count);
            fence();
        }
        return 0;
    }
    if (table->count > CELLS) { puts("no count"); return 12; }
    for (uint64_t i = 0; i < table->count; i++) {
        const struct cell *cell = &table->cells[i];
        if (cell->number != i + 1 || cell->sum != sum(cell)) { printf("cell %lu is wrong\n", i); return 10; }
    }
    return 0;
}
