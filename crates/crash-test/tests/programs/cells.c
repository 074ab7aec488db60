// Cells of 16 bytes in a mapped file, with the instructions themselves: `cells FILE run` and `cells FILE check`. Each cell has two
// copies and a word that says which is valid.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CELLS 16
struct pair { uint64_t value, check; };
struct cell { uint64_t valid; uint64_t pad[7]; struct pair copies[2]; uint64_t more[4]; };
struct file { uint64_t ready; uint64_t pad[7]; struct cell cells[CELLS]; };

static void flush(const void *at) { __asm__ volatile("clwb %0" : : "m"(*(const char *)at) : "memory"); }
static void fence(void) { __asm__ volatile("sfence" ::: "memory"); }

static void update(struct cell *cell, uint64_t value) {
    struct pair *copy = &cell->copies[!cell->valid];
    copy->value = value;
    copy->check = ~value;
    flush(copy);
    fence();
    cell->valid = !cell->valid;
    flush(&cell->valid);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    int descriptor = open(words[1], running ? O_RDWR | O_CREAT : O_RDWR, 0644);
    if (descriptor < 0 || (running && ftruncate(descriptor, sizeof(struct file)))) return 3;
    struct file *file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (file == MAP_FAILED) return 3;
    if (running) {
        for (int i = 0; i < CELLS && !file->ready; i++) {
            file->cells[i].copies[0].check = ~0ul;
            flush(&file->cells[i].copies[0]);
        }
        fence();
        file->ready = 1;
        flush(&file->ready);
        fence();
        for (uint64_t i = 0; i < 60; i++) update(&file->cells[i * 5 % CELLS], i + 1);
        return 0;
    }
    if (!file->ready) return 0;
    for (int i = 0; i < CELLS; i++) {
        struct cell *cell = &file->cells[i];
        if (cell->valid > 1 || cell->copies[cell->valid].check != ~cell->copies[cell->valid].value) {
            printf("cell %d is wrong\n", i);
            return 10;
        }
    }
    return 0;
}
