// Transactions on a libpmemobj pool: `pool FILE`. The pool's memory is written through two mappings and flushed.
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(list);
POBJ_LAYOUT_ROOT(list, struct root);
POBJ_LAYOUT_TOID(list, struct node);
POBJ_LAYOUT_END(list);
struct node { TOID(struct node) next; uint64_t number; char text[200]; };
struct root { TOID(struct node) first; uint64_t count; };

int main(int count, char **words) {
    if (count != 2) return 2;
    PMEMobjpool *pool = pmemobj_create(words[1], POBJ_LAYOUT_NAME(list), PMEMOBJ_MIN_POOL, 0644);
    if (!pool) { fprintf(stderr, "%s\n", pmemobj_errormsg()); return 3; }
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    for (uint64_t i = 0; i < 2000; i++) {
        TX_BEGIN(pool) {
            TX_ADD(root);
            TOID(struct node) node = TX_NEW(struct node);
            D_RW(node)->next = D_RO(root)->first;
            D_RW(node)->number = i;
            memset(D_RW(node)->text, (int)i, sizeof D_RO(node)->text);
            D_RW(root)->first = node;
            D_RW(root)->count++;
        } TX_ONABORT { return 4; } TX_END
        if (i % 16 == 15) { // and some room to use again
            TX_BEGIN(pool) {
                TOID(struct node) node = D_RO(root)->first;
                TX_ADD(root);
                D_RW(root)->first = D_RO(node)->next;
                TX_FREE(node);
            } TX_END
        }
        if (i % 100 == 0) {
            PMEMoid copy;
            char text[5000];
            memset(text, (int)(i / 100), sizeof text);
            pmemobj_alloc(pool, &copy, sizeof text, 9, 0, 0);
            pmemobj_memcpy_persist(pool, pmemobj_direct(copy), text, sizeof text);
        }
    }
    pmemobj_close(pool);
    return 0;
}
