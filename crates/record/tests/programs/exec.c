// `exec [-m FILE CHARACTER] PROGRAM ARGUMENTS` fills the file's first line through a shared mapping, then becomes the program;
// status 3 if that fails.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char **words = arguments + 1;
    if (count > 3 && !strcmp(words[0], "-m")) {
        int file = open(words[1], O_RDWR);
        char *map = mmap(0, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map == MAP_FAILED) return 4;
        memset(map, words[2][0], 64);
        words += 3;
    }
    if (words[0]) execv(words[0], words);
    return 3;
}
