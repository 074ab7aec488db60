"""``sardonyx crash-test`` of pools full of data: what a recovery wrote, of what it touched."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine

#: A recovery that leaves a stain, in one of several ways, and fails where it finds one.
STAIN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define BYTES (40ul << 20)
#define FAR (17ul << 20)
static void flush(const void *at) { __asm__ volatile("clwb %0" : : "m"(*(const char *)at)); }
static void fence(void) { __asm__ volatile("sfence" ::: "memory"); }
int main(int count, char **words) {
    int d = open(words[1], O_RDWR);
    char *m = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d, 0);
    if (d < 0 || m == MAP_FAILED) return 3;
    const char *how = words[2];
    if (!strcmp(how, "run")) {
        for (uint64_t i = 1; i < 30; i++) {
            *(uint64_t *)(m + i % 7 * 8192) = i;
            flush(m + i % 7 * 8192);
            fence();
        }
        return 0;
    }
    if (m[FAR] == 'S' || m[FAR + 4096] == 'S') { puts("a stain"); return 10; }
    if (!strcmp(how, "write")) return pwrite(d, "S", 1, FAR) != 1;
    if (!strcmp(how, "fork")) {
        if (!fork()) { m[FAR] = 'S'; _exit(0); }
        wait(NULL);
        return 0;
    }
    if (!strcmp(how, "left")) {
        if (!fork()) { m[FAR] = 'S'; sleep(100); _exit(0); }
        while (((volatile char *)m)[FAR] != 'S') usleep(100);
        return 0;
    }
    m[FAR] = 'S';
    if (!strcmp(how, "unmap")) munmap(m, BYTES);
    int over = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (!strcmp(how, "over")) mmap(m + FAR, 4096, PROT_READ, over, -1, 0);
    if (!strcmp(how, "discard")) madvise(m + FAR, 4096, MADV_DONTNEED);
    if (!strcmp(how, "move")) mremap(m, BYTES, 4096, 0);
    if (!strcmp(how, "exec")) execl("/bin/true", "true", NULL);
    if (!strcmp(how, "again")) {
        char *other = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, d, FAR);
        other[4096] = 'S';
    }
    if (!strcmp(how, "die")) *(volatile char *)0 = 0;
    return 0;
}
"""  # fmt: skip

WAYS = (
    "end", "unmap", "over", "discard", "move", "exec", "again", "write", "fork", "left",
)  # fmt: skip


@pytest.fixture(scope="module")
def stained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, and its recording in a pool of 40 MB that holds no zeros."""
    where = tmp_path_factory.mktemp("large")
    (where / "stain.c").write_text(STAIN)
    subprocess.run(["cc", "-O2", "-g", "-w", "-o", "stain", "stain.c"], cwd=where, check=True)
    with (where / "pool").open("wb") as file:
        for _ in range(40):
            file.write(os.urandom(1 << 16).replace(b"S", b"s") * 16)
    sardonyx("trace", "record", "--pc", "-o", "r.parquet", "--", "./stain", "pool", "run",
             where=where)  # fmt: skip
    return where


@pytest.mark.parametrize("how", WAYS)
def test_what_a_recovery_wrote_is_not_there_for_the_next(stained: Path, how: str) -> None:
    sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool",
        "--recover", f"./stain {{pool}} {how}",
        "--json", "r.json", "--jobs", "1", "--budget", "20s", where=stained,
    )  # fmt: skip
    found = json.loads((stained / "r.json").read_text())
    assert found["verdict"] == "no violation", found["causes"]
    assert found["images"] > 25 and found["repaired"]


def test_a_recovery_that_dies_leaves_nothing_either(stained: Path) -> None:
    # It dies of a signal at each image, which counts as good here; the shell says so.
    sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool", "--recover",
        "./stain {pool} die; test $? -eq 139", "--json", "r.json", "--jobs", "1", where=stained,
    )  # fmt: skip
    found = json.loads((stained / "r.json").read_text())
    assert found["verdict"] == "no violation", found["causes"]
