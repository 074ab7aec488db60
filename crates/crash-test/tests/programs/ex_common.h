// What libpmemobj's examples want of their common header, which Debian's package leaves out.
#ifndef EX_COMMON_H
#define EX_COMMON_H
#include <stdint.h>
#include <unistd.h>
#define CREATE_MODE_RW 0600
#define MIN(a, b) ((a) < (b) ? (a) : (b))
static inline int file_exists(const char *path) { return access(path, F_OK); }
static inline int find_last_set_64(uint64_t value) { return value ? 63 - __builtin_clzll(value) : -1; }
#endif
