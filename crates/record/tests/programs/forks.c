// `forks FOLDER` forks in many ways while files of the folder are mapped: a child that maps a file of its own, and a grandchild; two
// processes that take turns in a counter; a child that is killed, one that becomes another program, which is `forks FOLDER become`, and one that
// outlives its parent.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 300

static char *map(const char *folder, const char *name) {
    if (chdir(folder)) exit(3);
    int file = open(name, O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, 8192)) exit(3);
    char *at = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) exit(3);
    close(file);
    return at;
}

static volatile uint64_t *turn;

static void take_turns(uint64_t mine) {
    for (uint64_t i = mine; i < TURNS; i += 2) {
        while (*turn != i) sched_yield();
        *turn = i + 1;
    }
}

static void *thread(void *at) {
    memset(at, 't', 64);
    return at;
}

int main(int count, char **words) {
    if (count < 2) return 2;
    if (count > 2) {
        memset(map(words[1], "b") + 3072, 'x', 64);
        memset(map(words[1], "a") + 512, 'x', 64);
        return 0;
    }
    char private[128];
    memset(private, 'p', sizeof private);
    char *a = map(words[1], "a");
    turn = (uint64_t *)(a + 4096);

    int ready[2];
    if (pipe(ready)) return 4;
    pid_t child = fork();
    if (!child) {
        memset(private, 'c', sizeof private);
        char *b = map(words[1], "b");
        memset(b, 'b', 640);
        memset(a + 64, 'c', 64);
        pthread_t other;
        if (pthread_create(&other, 0, thread, a + 128) || pthread_join(other, 0)) _exit(5);
        pid_t grandchild = fork();
        if (!grandchild) {
            memset(b + 1024, 'g', 64);
            memset(a + 192, 'g', 64);
            _exit(0);
        }
        waitpid(grandchild, 0, 0);
        take_turns(1);
        if (write(ready[1], "x", 1) != 1) _exit(6);
        memset(a + 256, 'k', 64);
        kill(getpid(), SIGKILL);
    }
    char *c = map(words[1], "c");
    memset(c, 'C', 640);
    take_turns(0);
    if (read(ready[0], private, 1) != 1) return 6;
    waitpid(child, 0, 0);
    char *again = map(words[1], "b"); // which the child had mapped before
    memset(again + 2048, 'B', 64);

    child = vfork();
    if (!child) {
        execl(words[0], words[0], words[1], "become", (char *)0);
        _exit(7);
    }
    waitpid(child, 0, 0);
    child = fork();
    if (!child) {
        execl("/no/such/program", "none", (char *)0);
        memset(a + 320, 'f', 64);
        _exit(0);
    }
    waitpid(child, 0, 0);
    pthread_t other; // a thread of the parent's, after its children's
    if (pthread_create(&other, 0, thread, a + 384) || pthread_join(other, 0)) return 5;
    if (!fork()) {
        usleep(300000);
        memset(a + 448, 'o', 64);
        _exit(0);
    }
    return 0;
}
