// What could go wrong when one callback stands for several accesses, and when jumps between pages are direct:
// `groups DUMP`. Exits with 0 if code that was replaced is what ran, and says what its memory holds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define PAGE 4096
static _Alignas(PAGE) uint8_t near[BYTES], far[BYTES];
static uint64_t value = 88172645463325252ull;
static volatile sig_atomic_t faults, gone;
static sigjmp_buf back;

static uint64_t next(void) { value ^= value << 13; value ^= value >> 7; return value ^= value << 17; }
static void must(int ok, int status) { if (!ok) _exit(status); }

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (gone) siglongjmp(back, 1);
    faults++;
    must(!mprotect((void *)((uintptr_t)info->si_addr / PAGE * PAGE), PAGE, PROT_READ | PROT_WRITE), 2);
}

// Stores to one line with others between them, which small caches evict it for: 1,024 and 4,096 bytes are the same set.
static void stores_apart(uint8_t *a, uint8_t *b) {
    __asm__ volatile("movq %2,(%0)\n movq %2,(%1)\n movq %2,1024(%1)\n movq %2,4096(%1)\n movq %3,8(%0)\n movq %2,8192(%1)\n movq %3,40(%0)"
                     : : "r"(a), "r"(b), "r"(next()), "r"(next()) : "memory");
}
// A load, others, then a store to its line through another register; and changes in place.
static void load_then_store(uint8_t *a, uint8_t *b) {
    __asm__ volatile("movq 16(%0),%%rax\n leaq 8(%0),%%rcx\n movq %2,(%1)\n movq 1024(%1),%%rdx\n addq %2,4096(%1)\n addq %2,16(%%rcx)\n"
                     "movups %%xmm0,-8(%%rcx)\n movq %2,24(%%rcx)\n incl 20(%0)"
                     : : "r"(a), "r"(b), "r"(next()) : "memory", "rax", "rcx", "rdx");
}
// The second store, or an access between two, faults; the handler lets it go on.
static void fault_within(uint8_t *a, uint8_t *readonly) {
    __asm__ volatile("movq %2,(%0)\n movq %2,(%1)\n movq %3,8(%0)" : : "r"(a), "r"(readonly), "r"(next()), "r"(next()) : "memory");
}
static void fault_at_second(uint8_t *a) {
    __asm__ volatile("movq %1,-8(%0)\n movq %2,(%0)\n movq %1,8(%0)" : : "r"(a), "r"(next()), "r"(next()) : "memory");
}
static void pushes(void) {
    __asm__ volatile("subq $128,%%rsp\n pushq %0\n pushq %1\n pushq %0\n subq $24,%%rsp\n movq %1,(%%rsp)\n movq 16(%%rsp),%%rax\n addq $24,%%rsp\n"
                     "popq %%rax\n popq %%rax\n popq %%rax\n addq $128,%%rsp" : : "r"(next()), "r"(next()) : "memory", "rax");
}

// Code in one page that jumps to the next, which changes.
static int (*jump)(void);
static uint8_t *code;
static void write_result(uint8_t result) {
    uint8_t move[] = {0xb8, result, 0, 0, 0, 0xc3}; // mov $result,%eax; ret
    memcpy(code + PAGE, move, sizeof move);
}
static void runs(int result) { for (int i = 0; i < 1000; i++) must(jump() == result, 20 + result); }
static void replaced_code(void) {
    int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    code = mmap(0, 2 * PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(code != MAP_FAILED, 3);
    code[0] = 0xe9; // jmp to the next page
    int32_t distance = PAGE - 5;
    memcpy(code + 1, &distance, 4);
    jump = (int (*)(void))(uintptr_t)code;
    write_result(1);
    runs(1);
    write_result(2); // stored to while it may run
    runs(2);
    must(!mprotect(code + PAGE, PAGE, PROT_READ | PROT_EXEC), 4);
    runs(2);
    must(!mprotect(code + PAGE, PAGE, PROT_READ | PROT_WRITE), 5);
    write_result(3);
    must(!mprotect(code + PAGE, PAGE, PROT_READ | PROT_EXEC), 6);
    runs(3);
    must(mmap(code + PAGE, PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED, 7);
    write_result(4);
    runs(4);
    uint8_t *other = mmap(0, PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t move[] = {0xb8, 5, 0, 0, 0, 0xc3};
    memcpy(other, move, sizeof move);
    must(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, code + PAGE) != MAP_FAILED, 8);
    runs(5);
    gone = 1;
    for (int how = 0; how < 2; how++) {
        must(how ? !munmap(code + PAGE, PAGE) : !mprotect(code + PAGE, PAGE, PROT_READ), 9);
        if (!sigsetjmp(back, 1)) { jump(); _exit(10 + how); }
    }
    gone = 0;
}

static void put(int f, const void *at, size_t bytes) { must(write(f, at, bytes) == (ssize_t)bytes, 11); }
static void dump(int f, const uint8_t *at, size_t bytes) {
    uint64_t head[2] = {(uintptr_t)at, bytes};
    put(f, head, sizeof head);
    put(f, at, bytes);
}

int main(int count, char **words) {
    must(count == 2, 12);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    for (size_t i = 0; i < BYTES; i += 8) { // known to the trace, all of it
        memcpy(near + i, &(uint64_t){next()}, 8);
        memcpy(far + i, &(uint64_t){next()}, 8);
    }
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i + 16384 < BYTES; i += 56) {
            stores_apart(near + i, far + i);
            load_then_store(near + i, far + i + 2048);
            if (i % 7 == 0) pushes();
        }
        for (size_t page = 64; page < 128; page++) {
            must(!mprotect(far + page * PAGE, PAGE, PROT_READ), 13);
            fault_within(near + page * 64 + 48, far + page * PAGE + 128);
            must(!mprotect(far + page * PAGE, PAGE, PROT_READ), 14);
            fault_at_second(far + page * PAGE);
        }
    }
    must(faults == 3 * 2 * 64, 15);
    replaced_code();
    int f = open(words[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    must(f >= 0, 16);
    dump(f, near, BYTES);
    dump(f, far, BYTES);
    return 0;
}
