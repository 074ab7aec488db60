// The tail queue of libpmemobj's examples and a count beside it, driven: `fifo FILE run`, and `fifo FILE check [ACKS]`.
#include <libpmemobj.h>
#include <stdio.h>
#include <string.h>
#include "pmemobj_list.h"

POBJ_LAYOUT_BEGIN(fifo);
POBJ_LAYOUT_ROOT(fifo, struct root);
POBJ_LAYOUT_TOID(fifo, struct node);
POBJ_LAYOUT_END(fifo);

POBJ_TAILQ_HEAD(head, struct node);
struct node { uint64_t number; POBJ_TAILQ_ENTRY(struct node) links; };
struct root { struct head head; uint64_t in, out; };

static void enter(PMEMobjpool *pool, TOID(struct root) root) {
    struct head *head = &D_RW(root)->head;
    TX_BEGIN(pool) {
        TX_ADD_FIELD(root, in);
        TOID(struct node) node = TX_NEW(struct node);
        D_RW(node)->number = D_RO(root)->in;
        POBJ_TAILQ_INSERT_TAIL(head, node, links);
        D_RW(root)->in++;
    } TX_END
}

static void leave(PMEMobjpool *pool, TOID(struct root) root) {
    struct head *head = &D_RW(root)->head;
    TX_BEGIN(pool) {
        TX_ADD_FIELD(root, out);
        TOID(struct node) node = POBJ_TAILQ_FIRST(head);
        POBJ_TAILQ_REMOVE_FREE(head, node, links);
        D_RW(root)->out++;
    } TX_END
}

static int check(PMEMobjpool *pool, TOID(struct root) root, const char *acks) {
    uint64_t next = D_RO(root)->out, acked = 0;
    TOID(struct node) node;
    POBJ_TAILQ_FOREACH(node, &D_RO(root)->head, links)
        if (D_RO(node)->number != next++) { puts("an entry is wrong"); return 10; }
    if (next != D_RO(root)->in) { puts("the count is wrong"); return 11; }
    next = D_RO(root)->in;
    POBJ_TAILQ_FOREACH_REVERSE(node, &D_RO(root)->head, links)
        if (next == D_RO(root)->out || D_RO(node)->number != --next) { puts("an entry is wrong, seen from the end"); return 12; }
    if (next != D_RO(root)->out) { puts("an entry is missing, seen from the end"); return 13; }
    FILE *file = acks ? fopen(acks, "r") : NULL;
    int c;
    while (file && (c = getc(file)) != EOF) acked += c == '\n';
    if (D_RO(root)->in + D_RO(root)->out < acked) { puts("too little is here"); return 14; }
    for (int i = 0; i < 4; i++) enter(pool, root); // what is there is nobody else's
    while (D_RO(root)->in != D_RO(root)->out) {
        TOID(struct node) first = POBJ_TAILQ_FIRST(&D_RO(root)->head);
        if (TOID_IS_NULL(first) || D_RO(first)->number != D_RO(root)->out) { puts("new entries spoil old ones"); return 15; }
        leave(pool, root);
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run"), status = 0;
    PMEMobjpool *pool = running ? pmemobj_create(words[1], POBJ_LAYOUT_NAME(fifo), PMEMOBJ_MIN_POOL, 0644)
                                : pmemobj_open(words[1], POBJ_LAYOUT_NAME(fifo));
    if (!pool) { fprintf(stderr, "%s\n", pmemobj_errormsg()); return 3; }
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    for (int i = 0; running && i < 36; i++) {
        if (i % 3 != 2) enter(pool, root);
        else leave(pool, root);
        printf("%d\n", i);
        fflush(stdout);
    }
    if (!running) status = check(pool, root, count > 3 ? words[3] : NULL);
    pmemobj_close(pool);
    return status;
}
