// Two threads that share a list without a lock and an array with one: `stack FILE run`. A node of the list is flushed, and the locked
// instruction that pushes it is the fence; one of the array is flushed under a mutex, and letting that go is the fence.
// `stack FILE check`.
#include "pm.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define NODES 10
struct node { uint64_t number, next, words[5], sum; };
struct lists {
    _Atomic uint64_t head;
    uint64_t pad[7], count, pad_too[7], array[2 * NODES], pad_more[4];
    struct node nodes[2][2][NODES];
};

static struct lists *lists;
static _Atomic int there;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t sum(const struct node *node) {
    uint64_t s = node->number * 41 + node->next;
    for (int i = 0; i < 5; i++) s = s * 37 + node->words[i];
    return s;
}

static uint64_t make(struct node *node, uint64_t number, uint64_t next) {
    node->number = number;
    node->next = next;
    for (int w = 0; w < 5; w++) node->words[w] = number * 10 + (uint64_t)w;
    node->sum = sum(node);
    flush(node);
    return (uint64_t)((char *)node - (char *)lists);
}

static void *push(void *of) {
    uint64_t thread = (uint64_t)of;
    for (there++; there < 2;) sched_yield();
    for (uint64_t i = 0; i < NODES; i++) {
        uint64_t head = lists->head;
        while (!atomic_compare_exchange_weak(&lists->head, &head, make(&lists->nodes[0][thread][i], i + 1, head)));
        flush(&lists->head);
        fence();
        usleep(500);
    }
    for (uint64_t i = 0; i < NODES; i++) {
        pthread_mutex_lock(&lock);
        uint64_t made = make(&lists->nodes[1][thread][i], i + 1, 0);
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        lists->array[lists->count] = made;
        flush(&lists->array[lists->count]);
        fence();
        lists->count++;
        flush(&lists->count);
        pthread_mutex_unlock(&lock);
        usleep(500);
    }
    return of;
}

static int holds(uint64_t at) {
    const struct node *node = (const struct node *)((const char *)lists + at);
    return at && at <= sizeof *lists - sizeof *node && node->sum == sum(node);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int running = !strcmp(words[2], "run");
    lists = pool(words[1], sizeof *lists, 0, running);
    if (running) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, push, (void *)1)) return 4;
        push(NULL);
        return pthread_join(thread, NULL);
    }
    int nodes = 0;
    for (uint64_t at = lists->head; at; at = ((const struct node *)((const char *)lists + at))->next)
        if (!holds(at) || ++nodes > 2 * NODES) { printf("the list is broken after %d nodes\n", nodes); return 10; }
    for (uint64_t i = 0; i < lists->count; i++)
        if (!holds(lists->array[i])) { printf("node %lu of the array is wrong\n", i); return 11; }
    return 0;
}
