/* Maps a file, "private" or "shared", loads its even pages, then stores to a byte of each page in the middle of line 7,
   and of line 9. */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    if (argc != 3) return 3;
    int kind = strcmp(argv[2], "shared") ? MAP_PRIVATE : MAP_SHARED;
    struct stat status;
    int file = open(argv[1], O_RDWR);
    if (file < 0 || fstat(file, &status)) return 1;
    volatile unsigned char *at =
        mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, kind, file, 0);
    if (at == MAP_FAILED) return 2;
    for (long page = 0; page < status.st_size; page += 8192)
        for (long line = page; line < page + 4096; line += 64) (void)at[line];
    for (long page = 0; page < status.st_size; page += 4096) at[page + 7 * 64 + 33] = 0xEE;
    for (long page = 0; page < status.st_size; page += 4096) at[page + 9 * 64 + 33] = 0xEE;
    return 0;
}
