// Mailboxes on libpmemobj: a list of messages a user, which atomic list functions extend and move; what a user has read and how much was sent
// are changed in transactions. `mailbox FILE run` and `mailbox FILE check [ACKS]`.
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USERS 4
POBJ_LAYOUT_BEGIN(mailbox);
POBJ_LAYOUT_ROOT(mailbox, struct office);
POBJ_LAYOUT_TOID(mailbox, struct message);
POBJ_LAYOUT_TOID(mailbox, char);
POBJ_LAYOUT_END(mailbox);

struct message { uint64_t number, length, sum; TOID(char) body; uint64_t pad[8]; POBJ_LIST_ENTRY(struct message) link; };
struct user { POBJ_LIST_HEAD(inbox, struct message) inbox, read; uint64_t unread, seen; };
struct office { struct user users[USERS]; uint64_t sent, delivered; PMEMmutex lock; };

static PMEMobjpool *pop;
static TOID(struct office) office;

static uint64_t digest(const char *p, size_t n) { uint64_t s = 7; while (n--) s = s * 131 + (unsigned char)*p++; return s; }

static int fill(PMEMobjpool *p, void *at, void *given) {
    struct message *m = at, *from = given;
    m->number = from->number;
    m->length = from->length;
    m->body = from->body;
    m->sum = from->sum;
    pmemobj_persist(p, m, sizeof *m);
    return 0;
}

static void send(uint64_t number) {
    struct user *u = &D_RW(office)->users[number % USERS];
    char text[200];
    int n = snprintf(text, sizeof text, "message %lu: %.*s", number, (int)(number * 13 % 100), "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua") + 1;
    struct message made = {.number = number, .length = n, .sum = digest(text, n)};
    TX_BEGIN(pop) {
        made.body = TX_ALLOC(char, n);
        TX_MEMCPY(D_RW(made.body), text, n);
        TX_ADD_FIELD(office, sent);
        D_RW(office)->sent++;
    } TX_ONABORT { exit(6); } TX_END
    POBJ_LIST_INSERT_NEW_TAIL(pop, &u->inbox, link, sizeof made, fill, &made);
    TX_BEGIN_PARAM(pop, TX_PARAM_MUTEX, &D_RW(office)->lock, TX_PARAM_NONE) {
        pmemobj_tx_add_range_direct(&u->unread, sizeof u->unread);
        u->unread++;
        TX_ADD_FIELD(office, delivered);
        D_RW(office)->delivered++;
    } TX_ONABORT { exit(6); } TX_END
}

static void read_one(struct user *u) {
    TOID(struct message) first = POBJ_LIST_FIRST(&u->inbox);
    if (TOID_IS_NULL(first)) return;
    POBJ_LIST_MOVE_ELEMENT_TAIL(pop, &u->inbox, &u->read, first, link, link);
    TX_BEGIN(pop) {
        pmemobj_tx_add_range_direct(&u->unread, 2 * sizeof(uint64_t));
        u->unread--;
        u->seen++;
    } TX_ONABORT { exit(6); } TX_END
}

static int count_list(struct inbox *list, uint64_t *count) {
    TOID(struct message) m;
    *count = 0;
    POBJ_LIST_FOREACH(m, list, link) {
        if (TOID_IS_NULL(D_RO(m)->body) || D_RO(m)->sum != digest(D_RO(D_RO(m)->body), D_RO(m)->length)) { printf("message %lu is damaged\n", D_RO(m)->number); return 10; }
        if (++*count > 1000) { puts("a list has no end"); return 12; }
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    pop = running ? pmemobj_create(words[1], POBJ_LAYOUT_NAME(mailbox), PMEMOBJ_MIN_POOL, 0644) : pmemobj_open(words[1], POBJ_LAYOUT_NAME(mailbox));
    if (!pop) return 3;
    office = POBJ_ROOT(pop, struct office);
    if (running) {
        for (uint64_t i = 1; i <= 60; i++) {
            send(i);
            if (i % 3 == 0) read_one(&D_RW(office)->users[i % USERS]);
            printf("%lu\n", i);
            fflush(stdout);
        }
        pmemobj_close(pop);
        return 0;
    }
    uint64_t acked = 0, all = 0, told = 0;
    FILE *acks = count > 3 ? fopen(words[3], "r") : NULL;
    for (int c; acks && (c = getc(acks)) != EOF;) acked += c == '\n';
    for (int i = 0; i < USERS; i++) {
        struct user *u = &D_RW(office)->users[i];
        uint64_t in, read;
        int wrong = count_list((struct inbox *)&u->inbox, &in);
        if (!wrong) wrong = count_list((struct inbox *)&u->read, &read);
        if (wrong) return wrong;
        all += in + read;
        told += u->unread + u->seen;
        if (u->seen > read || read - u->seen > 1) { printf("user %d has read %lu and not %lu\n", i, read, u->seen); return 13; }
    }
    if (all < acked) { printf("%lu messages of %lu\n", all, acked); return 11; }
    if (D_RO(office)->sent < all || D_RO(office)->sent > all + 1) { printf("%lu sent, %lu there\n", D_RO(office)->sent, all); return 14; }
    if (D_RO(office)->delivered != told || told > all || all - told > 1) { printf("%lu delivered, %lu told, %lu there\n", D_RO(office)->delivered, told, all); return 15; }
    pmemobj_close(pop);
    return 0;
}
