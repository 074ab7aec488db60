// A sorted list of raw pointers in a file that is mapped at one address: `raw FILE run` and `raw FILE check`.
#include "pm.h"

#define AT 0x10000000000ul
struct node { uint64_t key, twice; struct node *next; uint64_t pad[5]; };
struct head { struct node *first; uint64_t pad[7]; uint64_t used; uint64_t more[7]; struct node nodes[256]; };

static struct node *fresh(struct head *h) {
    struct node *node = &h->nodes[h->used];
    h->used++;
    flush(&h->used);
    fence();
    return node;
}

static void insert(struct head *h, uint64_t key) {
    struct node **link = &h->first;
    while (*link && (*link)->key < key) link = &(*link)->next;
    struct node *node = fresh(h);
    node->key = key;
    node->twice = key * 2;
    node->next = *link;
    flush(node);
    fence();
    *link = node;
    flush(link);
    fence();
}

static void delete(struct head *h, uint64_t key) {
    struct node **link = &h->first;
    while (*link && (*link)->key != key) link = &(*link)->next;
    struct node *gone = *link;
    if (!gone) return;
    *link = gone->next;
    flush(link);
    fence();
    gone->twice = 0;
    flush(gone);
    fence();
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    struct head *h = pool(words[1], sizeof *h, AT, running);
    if (running) {
        for (uint64_t i = 0; i < 40; i++) insert(h, i * 37 % 101 + 1);
        for (uint64_t i = 0; i < 10; i++) delete(h, i * 37 % 101 + 1);
        return 0;
    }
    uint64_t before = 0;
    for (struct node *node = h->first; node; before = node->key, node = node->next) {
        if (node->key <= before || node->twice != node->key * 2) { printf("node %lu is wrong\n", node->key); return 10; }
        if ((uint64_t)(node - h->nodes) >= h->used) { puts("a node that is free is linked"); return 11; }
    }
    return 0;
}
