// A log with libpmem alone: `plog FILE run` appends, `plog FILE check [ACKS]` reads. A record is whole before the count says so.
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (1 << 20)
#define RECORDS 40
struct record { uint64_t number, length; char text[100]; uint64_t sum; };
struct log { char magic[8]; uint64_t count; uint64_t pad[6]; struct { uint64_t number, twice; } last; struct record records[]; };

static uint64_t sum(const struct record *r) {
    uint64_t s = r->number * 31 + r->length;
    for (uint64_t i = 0; i < r->length && i < sizeof r->text; i++) s = s * 33 + (unsigned char)r->text[i];
    return s;
}

static void append(struct log *log, uint64_t number) {
    struct record *r = &log->records[log->count];
    struct record made = {.number = number, .length = 20 + number % 80};
    memset(made.text, 'a' + (int)(number % 26), made.length);
    made.sum = sum(&made);
    pmem_memcpy_persist(r, &made, sizeof made);
    log->count++;
    pmem_persist(&log->count, 8);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    size_t length;
    int is_pmem;
    struct log *log = pmem_map_file(words[1], running ? SIZE : 0, running ? PMEM_FILE_CREATE : 0, 0644, &length, &is_pmem);
    if (!log) return 3;
    if (running) {
        memcpy(log->magic, "plog", 5);
        pmem_persist(log, sizeof *log);
        for (uint64_t i = 0; i < RECORDS; i++) {
            append(log, i);
            printf("%lu\n", i);
            fflush(stdout);
        }
    } else {
        if (memcmp(log->magic, "plog", 5)) { puts("no log"); return 9; }
        for (uint64_t i = 0; i < log->count; i++)
            if (log->records[i].number != i || log->records[i].sum != sum(&log->records[i])) {
                printf("record %lu of %lu is wrong\n", i, log->count);
                return 10;
            }
        uint64_t acked = 0;
        int c;
        FILE *file = count > 3 ? fopen(words[3], "r") : NULL;
        while (file && (c = getc(file)) != EOF) acked += c == '\n';
        if (log->count < acked) { printf("%lu records of %lu\n", log->count, acked); return 11; }
    }
    return 0;
}
