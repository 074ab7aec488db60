// The queue of libpmemobj's examples, driven: `queues FILE run`, and `queues FILE check`.
#define main queue_main
#include "queue.c"
#undef main

#define CAPACITY 8
#define STEPS 40

static void text_of(size_t number, char *text) { sprintf(text, "entry %zu, %.*s", number, (int)(number % 40), "........................................"); }

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    PMEMobjpool *pop = running ? pmemobj_create(words[1], POBJ_LAYOUT_NAME(queue), PMEMOBJ_MIN_POOL, 0644)
                               : pmemobj_open(words[1], POBJ_LAYOUT_NAME(queue));
    if (!pop) { fprintf(stderr, "%s\n", pmemobj_errormsg()); return 3; }
    TOID(struct root) root = POBJ_ROOT(pop, struct root);
    if (running) {
        char text[100];
        if (queue_new(pop, &D_RW(root)->queue, CAPACITY)) return 4;
        struct queue *queue = D_RW(D_RW(root)->queue);
        for (size_t i = 0, in = 0; i < STEPS; i++) {
            if (i % 3 != 2 && queue_nentries(queue) < CAPACITY) {
                text_of(in++, text);
                if (queue_enqueue(pop, queue, text, strlen(text) + 1)) return 5;
            } else if (queue_dequeue(pop, queue)) return 6;
        }
    } else if (!TOID_IS_NULL(D_RO(root)->queue)) {
        struct queue *queue = D_RW(D_RW(root)->queue);
        if (queue->capacity != CAPACITY || queue_nentries(queue) > CAPACITY) { puts("no queue"); return 10; }
        for (size_t i = queue->front; i < queue->back; i++) {
            char text[100];
            text_of(i, text);
            TOID(struct entry) entry = queue->entries[i % CAPACITY];
            if (TOID_IS_NULL(entry) || D_RO(entry)->len != strlen(text) + 1 || strcmp(D_RO(entry)->data, text)) {
                printf("entry %zu is wrong\n", i);
                return 11;
            }
        }
        while (queue_nentries(queue)) // and each is there to be freed
            if (queue_dequeue(pop, queue)) return 12;
    }
    pmemobj_close(pop);
    return 0;
}
