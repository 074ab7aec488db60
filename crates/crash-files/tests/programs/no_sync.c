// Takes one sync out of a program: no fsync or fdatasync reaches a file whose path has $NO_SYNC in it. LD_PRELOAD.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int left_out(int fd) {
    char name[32], path[4096];
    sprintf(name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, getenv("NO_SYNC")) != NULL;
}

int fsync(int fd) { return left_out(fd) ? 0 : syscall(SYS_fsync, fd); }

int fdatasync(int fd) { return left_out(fd) ? 0 : syscall(SYS_fdatasync, fd); }

int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags) {
    return left_out(fd) ? 0 : syscall(SYS_sync_file_range, fd, offset, length, flags);
}
