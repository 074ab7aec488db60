// Keys and values in a log, one file, and a checkpoint in another: `logkv FILE run` uses FILE and FILE.check. When the log is full the live
// entries are written to the other half of the checkpoint, its number says which half counts, and the log begins anew in the next epoch.
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG 8192
#define KEYS 32
struct record { uint32_t length, sum; uint64_t epoch; char bytes[]; };
struct log { uint64_t magic, tail, pad[6]; char data[LOG]; };
struct half { uint64_t epoch, count, sum, pad[5]; struct { uint64_t key; char value[56]; } entry[KEYS]; };
struct checkpoint { uint64_t magic, current, pad[6]; struct half half[2]; };

static struct log *lg;
static struct checkpoint *cp;
static char now[KEYS][56];

static uint32_t crc(const void *p, size_t n, uint32_t sum) {
    const uint8_t *b = p;
    while (n--) { sum ^= *b++; for (int i = 0; i < 8; i++) sum = sum >> 1 ^ (0xEDB88320u & -(sum & 1)); }
    return sum;
}

static uint64_t epoch(void) { return cp->half[cp->current & 1].epoch; }

static void checkpoint(void) {
    struct half *h = &cp->half[(cp->current + 1) & 1];
    uint64_t next = epoch() + 1;
    h->count = 0;
    for (int k = 0; k < KEYS; k++) {
        if (!now[k][0]) continue;
        h->entry[h->count].key = k;
        pmem_memcpy_nodrain(h->entry[h->count].value, now[k], 56);
        h->count++;
    }
    h->epoch = next;
    h->sum = crc(h->entry, h->count * 64, 0);
    pmem_flush(h, sizeof *h);
    pmem_drain();
    cp->current++;
    pmem_persist(&cp->current, 8);
    lg->tail = 0;
    pmem_persist(&lg->tail, 8);
}

static void put(int key, const char *value) {
    char buffer[128];
    struct record *r = (struct record *)buffer;
    int n = snprintf(r->bytes, 100, "%d=%s", key, value) + 1;
    r->length = (sizeof *r + n + 7) & ~7u;
    r->epoch = epoch();
    r->sum = crc(r->bytes, n, r->length);
    if (lg->tail + r->length > LOG) {
        checkpoint();
        r->epoch = epoch();
    }
    pmem_memcpy_nodrain(lg->data + lg->tail, r, r->length);
    pmem_drain();
    lg->tail += r->length;
    pmem_persist(&lg->tail, sizeof lg->tail);
    strcpy(now[key], value);
}

static int recover(void) {
    struct half *h = &cp->half[cp->current & 1];
    if (h->count > KEYS || (h->count && h->sum != crc(h->entry, h->count * 64, 0))) { puts("the checkpoint is damaged"); return 20; }
    for (uint64_t i = 0; i < h->count; i++) memcpy(now[h->entry[i].key % KEYS], h->entry[i].value, 56);
    for (uint64_t at = 0; at < lg->tail;) {
        struct record *r = (struct record *)(lg->data + at);
        if (r->length < sizeof *r || r->length > 128) { puts("a record without a length"); return 21; }
        if (r->epoch == h->epoch) {
            if (r->sum != crc(r->bytes, strlen(r->bytes) + 1, r->length)) { puts("a record is damaged"); return 22; }
            int key = atoi(r->bytes);
            strcpy(now[key % KEYS], strchr(r->bytes, '=') + 1);
        }
        at += r->length;
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    char other[4096];
    snprintf(other, sizeof other, "%s.check", words[1]);
    size_t length;
    lg = pmem_map_file(words[1], running ? sizeof *lg : 0, running ? PMEM_FILE_CREATE : 0, 0644, &length, NULL);
    cp = pmem_map_file(other, running ? sizeof *cp : 0, running ? PMEM_FILE_CREATE : 0, 0644, &length, NULL);
    if (!lg || !cp) return 3;
    if (running) {
        cp->half[0].epoch = 1;
        pmem_persist(cp->half, sizeof(struct half));
        cp->magic = 0xCEC;
        pmem_persist(&cp->magic, 8);
        lg->magic = 0x106;
        pmem_persist(lg, 64);
        for (int i = 0; i < 500; i++) {
            char value[56];
            snprintf(value, sizeof value, "%d.%.*s", i, i * 7 % 40, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
            put(i * 5 % KEYS, value);
            printf("%d\n", i);
            fflush(stdout);
        }
        return 0;
    }
    if (lg->magic != 0x106 || cp->magic != 0xCEC) { puts("no store"); return 9; }
    int wrong = recover();
    if (wrong) return wrong;
    int acked = 0;
    FILE *acks = count > 3 ? fopen(words[3], "r") : NULL;
    for (int c; acks && (c = getc(acks)) != EOF;) acked += c == '\n';
    for (int i = acked > KEYS ? acked - KEYS : 0; i < acked; i++) {
        int got = now[i * 5 % KEYS][0] ? atoi(now[i * 5 % KEYS]) : -1;
        if (got < i || got > i + KEYS || (got - i) % KEYS) { printf("key %d is of %d and not of %d\n", i * 5 % KEYS, got, i); return 11; }
    }
    return 0;
}
