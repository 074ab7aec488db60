// More threads at a time than the C library keeps stacks of, so that some are unmapped when they have ended.
#include <pthread.h>
#include <stdlib.h>

static void *fill(void *index) {
    volatile char bytes[1 << 16];
    for (int i = 0; i < (int)sizeof bytes; i++) bytes[i] = (char)(long)index;
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[64];
    int many = count > 1 ? atoi(arguments[1]) : 16;
    for (int round = 0; round < 3; round++) {
        for (long i = 0; i < many; i++)
            if (pthread_create(&threads[i], 0, fill, (void *)i)) return 1;
        for (int i = 0; i < many; i++) pthread_join(threads[i], 0);
    }
    return 0;
}
