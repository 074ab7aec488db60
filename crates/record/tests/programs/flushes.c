// Flushes lines whose address was computed since the last load or store: `flushes DUMP`. The dump is the list of the
// addresses that were flushed, in order, as the comments on the assembly have them.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 50
#define EACH 13
static uint64_t flushed[ROUNDS * EACH];

int main(int count, char **words) {
    if (count != 2) return 2;
    uint8_t *region = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) return 3;
    memset(region, 2, 1 << 20); // each page has a frame
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t *at = region + i * 5 * 1024, *to = at;
        uint64_t step = 3 + i % 2, scratch;
        at[0] = 1;
        __asm__ volatile(
            "clwb (%0)\n add $64, %0\n clwb (%0)\n add $64, %0\n clflushopt (%0)\n"   // 0 64 128
            "lea 64(%0), %0\n clflush (%0)\n"                                        // 192
            "shl $6, %1\n clwb (%0,%1)\n clwb 64(%0,%1,2)\n"                         // 192 + s, 256 + 2s (s: 64 steps)
            "mov %0, %2\n sub $-128, %2\n clwb (%2)\n"                               // 320
            "xchg %0, %2\n clflushopt 64(%0)\n"                                      // 384
            "dec %1\n and $-64, %1\n add %1, %0\n inc %1\n clwb -1(%0,%1)\n"         // 320 + s - 64 (+ 1 - 1, twice)
            "push %0\n add $1024, %0\n clwb (%0)\n pop %0\n clwb (%0)\n"             // + 1024; as pushed
            "test %1, %1\n jz 1f\n add $64, %0\n 1: clwb (%0)\n"                     // + 64
            "mov $2, %%ecx\n 2: add $64, %0\n dec %%ecx\n jnz 2b\n clwb (%0)\n"      // + 192
            : "+&r"(to), "+&r"(step), "=&r"(scratch) : : "rcx", "memory", "cc");
        uint64_t a = (uint64_t)at, s = 64 * (3 + i % 2), t = s - 64, b = a + 320 + t;
        uint64_t these[EACH] = {a, a + 64, a + 128, a + 192, a + 192 + s, a + 256 + 2 * s, a + 320, a + 384,
                                b + t, b + 1024, b, b + 64, b + 192};
        for (int k = 0; k < EACH; k++) flushed[i * EACH + k] = these[k];
    }
    FILE *dump = fopen(words[1], "wb");
    return !dump || fwrite(flushed, sizeof flushed, 1, dump) != 1 || fclose(dump) != 0;
}
