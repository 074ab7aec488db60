// box.c: letters in a box, the last one being written. ./box FILE run, ./box FILE check
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct letter { char text[120]; uint64_t length; };
struct box { uint64_t count, pad[7]; struct letter letters[100]; };

static void persist(const void *at, size_t bytes) {
    for (uintptr_t p = (uintptr_t)at & ~63ul; p < (uintptr_t)at + bytes; p += 64)
        __asm__ volatile("clwb (%0)" : : "r"(p) : "memory");
    __asm__ volatile("sfence" ::: "memory");
}

static void write_letter(struct box *box, int number) {
    struct letter *letter = &box->letters[box->count];
    sprintf(letter->text, "letter %d", number);
    letter->length = strlen(letter->text);
    persist(letter->text, letter->length);
    box->count++;
    persist(&box->count, sizeof box->count);
}

int main(int count, char **words) {
    int file = count < 3 ? -1 : open(words[1], O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, sizeof(struct box))) return 2;
    struct box *box = mmap(NULL, sizeof *box, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (box == MAP_FAILED) return 2;
    if (!strcmp(words[2], "run")) {
        for (int i = 0; i < 20; i++) write_letter(box, i);
        return 0;
    }
    for (uint64_t i = 0; i < box->count; i++)
        if (strlen(box->letters[i].text) != box->letters[i].length) {
            printf("letter %lu should have %lu bytes\n", i, box->letters[i].length);
            return 1;
        }
    return 0;
}
