"""``sardonyx crash-test`` of programs that acknowledge: promises before persistence are caught."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine

#: ``STEP`` says what happens to record ``i``; the check refuses a pool that is not made, with the
#: status of a pool that lost what was promised.
SOURCE = r"""
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
struct pool { long magic, count, gap[510], record[512]; };
static struct pool *pool;
static int fd, other;
#define STORE pool->record[i] = i + 1; pool->count = i + 1;
#define RECORD pool->record[i] = i + 1;
#define COUNT pool->count = i + 1;
#define PAST _mm_stream_si64((long long *)&pool->record[i], i + 1); \
    _mm_stream_si64((long long *)&pool->count, i + 1);
#define FLUSH(x) __asm__ volatile("clflushopt %0" : "+m"(x));
#define FENCE _mm_sfence();
#define BOTH FLUSH(pool->record[i]) FLUSH(pool->count)
#define SEND if (send(9, "done\n", 5, 0) != 5) return 0;
#define TWO struct iovec two[] = {{"do", 2}, {"ne\n", 3}}; \
    struct msghdr m = {.msg_iov = two, .msg_iovlen = 2};
#define SENDMSG TWO if (sendmsg(9, &m, 0) != 5) return 0;
#define SENDMMSG TWO struct mmsghdr all[] = {{m}}; if (sendmmsg(9, all, 1, 0) != 1) return 0;
#define PWRITEV TWO (void)m; if (pwritev(10, two, 2, i * 5) != 5) return 0;
#define ACK if (write(1, "done\n", 5) != 5) return 0;
#define ALL for (long at = 0; at < 512; at += 8) FLUSH(pool->record[at]) FLUSH(pool->count)
static void *step(void *of) {
    long i = (long)of;
    STEP
    return 0;
}
static void *ack(void *of) {
    long i = (long)of;
    (void)i;
    LATER
    return 0;
}
int main(int argc, char **argv) {
    fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *pool)) return 3;
    pool = mmap(0, sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 3 && !strcmp(argv[2], "check")) {
        long done = 0;
        int c;
        for (FILE *acks = fopen(argv[3], "r"); (c = getc(acks)) != EOF;) done += c == '\n';
        if (pool->magic != 42 || pool->count < done) return 1;
        for (long i = 0; i < done; i++)
            if (pool->record[i] != i + 1) return 1;
        return 0;
    }
    other = open("other", O_RDWR | O_CREAT, 0600);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || dup2(ends[0], 9) != 9) return 3;
    if (dup2(other, 10) != 10) return 3;
    pool->magic = 42;
    BEGIN
    for (long i = 0; i < 12; i++) {
        pthread_t thread;
        step((void *)i);
        if (pthread_create(&thread, 0, ack, (void *)i) || pthread_join(thread, 0)) return 3;
    }
    END
    return 0;
}
"""
BEGIN = "FLUSH(pool->magic) FENCE msync(pool, sizeof *pool, MS_SYNC);"
SURE = "RECORD FLUSH(pool->record[i]) FENCE COUNT FLUSH(pool->count) FENCE"
#: What each does with a record, what another thread does then, what it does at the end, the
#: platform, and the store that is not persistent when it is acknowledged, if one is not.
PROGRAMS = {
    "never": ("STORE ACK", "", "", "adr", "pool->"),
    "by a message": ("STORE SEND", "", "ALL FENCE", "adr", "pool->"),
    **{
        f"by {call}": (f"STORE {call}", "", "ALL FENCE", "adr", "pool->")
        for call in ("SENDMSG", "SENDMMSG", "PWRITEV")
    },
    "sure, by a message": (f"{SURE} SEND", "", "", "adr", None),
    "nothing flushed at all": ("STORE ACK", "", "", "adr", "pool->"),
    "at the end": ("STORE ACK", "", "ALL FENCE", "adr", "pool->"),
    "after the promise": ("STORE ACK BOTH FENCE", "", "", "adr", "pool->"),
    "no fence": ("STORE BOTH ACK", "", "", "adr", "pool->"),
    "fence before the flush": ("STORE FENCE BOTH ACK", "", "", "adr", "pool->"),
    "only the count": ("STORE FLUSH(pool->count) FENCE ACK", "", "", "adr", "pool->"),
    "only the record": ("STORE FLUSH(pool->record[i]) FENCE ACK", "", "", "adr", "pool->"),
    "past the caches, no fence": ("PAST ACK", "", "FENCE", "adr", "_mm_stream"),
    "by another thread": ("STORE", "ACK", "ALL FENCE", "adr", "pool->"),
    "msync at the end": ("STORE ACK", "", "msync(pool, 8192, MS_SYNC);", "pages", "pool->"),
    "msync that does not wait": ("STORE msync(pool, 99, MS_ASYNC); ACK", "", "", "pages", "pool->"),
    "msync of one page": ("STORE msync(pool, 4096, MS_SYNC); ACK", "", "", "pages", "pool->"),
    "fsync of another file": ("STORE fsync(other); ACK", "", "", "pages", "pool->"),
    "sure": (f"{SURE} ACK", "", "", "adr", None),
    "sure past the caches": ("PAST FENCE ACK", "", "", "adr", None),
    "sure by another thread": (SURE, "ACK", "", "adr", None),
    "sure in the other": ("", f"{SURE} ACK", "", "adr", None),
    "sure by reserve power": ("STORE ACK", "", "", "eadr", None),
    "sure by msync": ("STORE msync(pool, 8192, MS_SYNC); ACK", "", "", "pages", None),
    "sure by fsync": ("STORE fsync(fd); ACK", "", "", "sectors", None),
    "nothing promised": ("STORE", "", "", "adr", None),
}  # fmt: skip


def searched(where: Path, name: str) -> dict[str, Any]:
    """Build and record a program, and search it with all defaults."""
    step, later, end, platform, fault = PROGRAMS[name]
    if name == "nothing promised":
        end = 'write(1, "bye", 3);'
    begin = "" if name == "nothing flushed at all" else BEGIN
    macros = [f"-DSTEP={step}", f"-DLATER={later}", f"-DEND={end}", f"-DBEGIN={begin}"]
    (where / "p.c").write_text(SOURCE)
    build = ["cc", "-O1", "-g", "-pthread", *macros, "-o", "p", "p.c"]
    subprocess.run(build, cwd=where, check=True)
    descriptor = "9" if "SEND" in step else "10" if "PWRITEV" in step else "1"
    acks = ("--acks",) if descriptor == "1" else ("--acks-fd", descriptor)
    record = ("--pc", *acks, "-o", "r.parquet", "--", "./p", "pool")
    sardonyx("trace", "record", *record, where=where)
    recover = ("--pool", "pool", "--recover", "./p {pool} check {acks}", "--platform", platform)
    status = int(fault is not None)
    sardonyx(
        "crash-test", "search", "r.parquet", *recover, "--json", "r.json",
        where=where, status=status,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_promise_before_it_is_persistent_is_caught_and_no_other(
    tmp_path: Path, name: str
) -> None:
    found = searched(tmp_path, name)
    fault = PROGRAMS[name][4]
    if fault is None:
        assert found["verdict"] == "no violation" and found["violations"] == 0
        assert found["cuts_tried"] == found["cuts"]
        return
    # Twelve promises are cut at, wherever fences are.
    assert found["cuts"] >= 12
    lines = (tmp_path / "p.c").read_text().splitlines()
    suspects = [each["place"] for each in found["suspects"]]
    places = [place for place in suspects if "p.c:" in place]
    found_lines = [lines[int(place.rpartition(":")[2]) - 1] for place in places]
    # Where the last sync alone makes all sure, the whole run is creation: from the magic on.
    whole = ("msync at the end", "nothing flushed at all")
    wanted = ("STEP", "magic") if name in whole else ("STEP",)
    assert any(word in line for line in found_lines for word in wanted), found_lines


def test_a_check_that_fails_now_and_then_is_no_cause(tmp_path: Path) -> None:
    searched(tmp_path, "sure")
    flaky = tmp_path / "flaky"
    # Some runs fail, by their numbers of processes.
    flaky.write_text(
        '#!/bin/sh\n[ "$(wc -l < "$2")" -lt 12 ] && [ $(($$ % 13)) -lt 2 ] && exit 1\n'
        'exec ./p "$1" check "$2"\n'
    )
    flaky.chmod(0o755)
    recover = ("--pool", "pool", "--recover", f"{flaky} {{pool}} {{acks}}", "--jobs", "1")
    ended = sardonyx("crash-test", "search", "r.parquet", *recover, where=tmp_path, status=3)
    assert "the recovery is flaky" in ended.stdout


def searched_with(where: Path, recover: str, status: int) -> str:
    words = ("--pool", "pool", "--recover", recover)
    ended = sardonyx("crash-test", "search", "r.parquet", *words, where=where, status=status)
    return ended.stdout


def test_a_green_answer_rests_on_something(tmp_path: Path) -> None:
    searched(tmp_path, "sure")
    assert "no violation" in searched_with(tmp_path, "./p {pool} check {acks}", 0)
    said = searched_with(tmp_path, "true {pool}", 3)
    assert "opens no copy" in said and "{pool}" in said
    words = ("--pool", "pool", "--recover", "cat {pool}")
    ended = sardonyx("crash-test", "search", "r.parquet", *words, where=tmp_path)
    assert "copes with all that the program wrote turned into zeros" in ended.stderr
    # Nothing was printed to that descriptor.
    record = ("--pc", "--acks-fd", "9", "-o", "r.parquet", "--", "./p", "pool")
    sardonyx("trace", "record", *record, where=tmp_path)
    said = searched_with(tmp_path, "./p {pool} check {acks}", 3)
    assert "{acks} is empty at every cut" in said and "--acks-fd" in said


def test_what_a_recovery_leaves_behind_is_ended(tmp_path: Path) -> None:
    searched(tmp_path, "sure")
    leaves = tmp_path / "leaves"
    leaves.write_text(
        '#!/bin/sh\nsetsid sleep 98765 > /dev/null 2>&1 &\nexec ./p "$1" check "$2"\n'
    )
    leaves.chmod(0o755)
    searched_with(tmp_path, f"{leaves} {{pool}} {{acks}}", 0)
    running = subprocess.run(["pgrep", "-f", "sleep 98765"], capture_output=True, check=False)
    assert running.stdout == b""


HANGS = r"""
#include <emmintrin.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct pool { long a, b, c, d, gap[60], ready; };
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096)) return 3;
    struct pool *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 2) {
        while (pool->ready && !pool->a) usleep(1000);
        return 0;
    }
    for (long i = 1; i < 40; i++) {
        pool->a = i;
        pool->b = i;
        pool->c = i;
        pool->d = i;
        pool->ready = i;
        _mm_clflush(&pool->ready);
        _mm_sfence();
    }
    return 0;
}
"""


def test_recoveries_that_hang_do_not_eat_the_budget_and_each_field_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "p.c").write_text(HANGS)
    subprocess.run(["cc", "-O1", "-g", "-o", "p", "p.c"], cwd=tmp_path, check=True)
    sardonyx("trace", "record", "--pc", "-o", "r.parquet", "--", "./p", "pool", where=tmp_path)
    recover = ("--pool", "pool", "--recover", "./p {pool} check")
    found = json.loads(
        sardonyx(
            "crash-test", "search", "r.parquet", *recover, "--json", "-", where=tmp_path, status=1
        ).stdout
    )
    # A time-out of 2 s each would leave room for some twenty.
    assert found["images"] > 50 and found["violations"] > 0
    ended = sardonyx("crash-test", "lint", "r.parquet", "--pool", "pool", where=tmp_path)
    lines = HANGS.splitlines()
    for field in "abcd":
        line = next(i for i, text in enumerate(lines, 1) if f"pool->{field} = i" in text)
        assert f"p.c:{line}" in ended.stdout, ended.stdout
