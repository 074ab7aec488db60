"""``sardonyx crash-test`` names the places that never ran, and none that did."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine

#: Each ``AT(n, ..)`` is a place on a line of its own, which runs if its number is given.
BEGIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef PMEM
#include <libpmem.h>
#endif
static char *pool, **words;
static int file, count;
static int wants(int n) {
    for (int i = 2; i < count; i++)
        if (atoi(words[i]) == n) return 1;
    return 0;
}
#define FLUSH(p) __asm__ volatile("clwb (%0)" : : "r"(p) : "memory")
#define AT(n, what) if (wants(n)) what;
static void persist(char *at) { FLUSH(at); _mm_sfence(); }
static void by_kind(char *at, int kind) {
    switch (kind) {
        case 0: FLUSH(at); break;
        case 1: __asm__ volatile("clflushopt (%0)" : : "r"(at) : "memory"); break;
        default: __asm__ volatile("clflush (%0)" : : "r"(at) : "memory");
    }
}
"""
END = r"""
int main(int n, char **w) {
    count = n, words = w;
    file = open(w[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 1 << 16)) return 2;
    pool = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    by_kind(pool, 0);
    if (n > 2 && !strcmp(w[2], "check")) return 0;
    pool[0] = 1;
    persist(pool);
    body();
    return 0;
}
"""
KINDS = (
    "FLUSH(pool + {n} * 64)",
    "persist(pool + {n} * 64)",
    "msync(pool, 4096, MS_SYNC)",
    "fsync(file)",
    "_mm_stream_si64((long long *)(pool + {n} * 64), {n})",
)


def listed(where: Path, words: list[str], *options: str) -> set[tuple[str, str]] | None:
    """The places that never ran when the program ran so, as lines with what they do."""
    (where / "pool").unlink(missing_ok=True)
    record = ("trace", "record", "--pc", *options, "-o", "r.parquet")
    sardonyx(*record, "--", "./program", "pool", *words, where=where)
    ended = sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool", "--recover",
        "./program {pool} check", "--json", "r.json", where=where,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    coverage = found["coverage"]
    assert (coverage is None) == ("never ran is not known" in " ".join(ended.stderr.split()))
    if coverage is None:
        return None
    assert len(coverage["listed"]) == coverage["never_ran"] <= coverage["sites"]
    return {(site["place"], site["what"]) for site in coverage["listed"]}


def build(where: Path, text: str, *options: str) -> None:
    (where / "program.c").write_text(text)
    command = ["cc", "-g", "-Wall", *options, "-o", "program", "program.c", "-pthread", "-ldl"]
    subprocess.run(command, cwd=where, check=True)


def line_of(text: str, mark: str) -> str:
    found = [n for n, line in enumerate(text.splitlines(), 1) if mark in line]
    assert len(found) == 1, mark
    return f"program.c:{found[0]}"


@pytest.mark.parametrize("optimised", ["-O0", "-O2", "-O3"])
def test_what_never_ran_is_named_and_nothing_that_ran(tmp_path: Path, optimised: str) -> None:
    draw = random.Random(optimised)
    lines = [f"    AT({n}, {draw.choice(KINDS).format(n=n)})" for n in range(1, 41)]
    text = BEGIN + "static void body(void) {\n" + "\n".join(lines) + "\n}" + END
    build(tmp_path, text, optimised)
    for share in (0.2, 0.7):
        ran = [n for n in range(1, 41) if draw.random() < share]
        found = listed(tmp_path, [str(n) for n in ran])
        places = {line_of(text, f"    AT({n}, ") for n in range(1, 41) if n not in ran}
        assert found is not None and {place for place, _ in found} == places


THREADED = r"""
static void never(char *at) { persist(at); }   // never entered: its call is not named
static void *other(void *_) {
    AT(1, FLUSH(pool + 64)) // thread
    AT(2, FLUSH(pool + 128)) // thread too
    return _;
}
static __attribute__((noinline)) void tail(char *at) {
    at[0]++;
    persist(at); // tail
}
static void load(int twice) {
    for (int i = 0; i < 1 + twice; i++) {
        void *it = dlopen("./part.so", RTLD_NOW);
        void (*part)(char *, int) = (void (*)(char *, int))dlsym(it, "part");
        if (twice && i) mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        part(pool, i);
        dlclose(it);
    }
}
static void body(void) {
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    AT(3, tail(pool)) // call
    AT(4, load(1))
    AT(9, load(0))
    if (wants(5) && !fork()) {
        AT(6, FLUSH(pool + 256)) // child
        _exit(0);
    }
    wait(0);
    AT(7, execl(words[0], words[0], words[1], "8", (char *)0))
    AT(8, FLUSH(pool + 320)) // after exec
    AT(10, never(pool)) // never
}
"""
PART = r"""
#define FLUSH(p) __asm__ volatile("clwb (%0)" : : "r"(p) : "memory")
void part(char *pool, int second) {
    if (!second) FLUSH(pool + 512); // first
    else FLUSH(pool + 576); // second
}
"""


def test_threads_children_libraries_and_other_programs_count(tmp_path: Path) -> None:
    text = BEGIN + THREADED + END
    build(tmp_path, text, "-O1")
    (tmp_path / "part.c").write_text(PART)
    command = ["cc", "-g", "-O1", "-shared", "-fPIC", "-o", "part.so", "part.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    first, second = (n for n, line in enumerate(PART.splitlines(), 1) if "// " in line)
    marks = ("thread too", "tail", "call", "child", "after exec")
    at = {mark: line_of(text, f"// {mark}") for mark in marks}
    never = line_of(text, "static void never")

    def names(*words: str, options: tuple[str, ...] = ()) -> set[str] | None:
        found = listed(tmp_path, list(words), *options)
        return None if found is None else {place for place, _ in found}

    assert names("1", "3", "5", "6", "7") == {at["thread too"], never}
    parts = {f"part.c:{first}", f"part.c:{second}"}
    # A library that was unloaded, once and then loaded elsewhere.
    assert names("2", "9") is not None
    unloaded = names("2", "9") or set()
    assert unloaded & parts == {f"part.c:{second}"} and at["thread too"] not in unloaded
    assert not (names("4") or parts) & parts
    # A child that is not recorded may have run anything.
    assert names("5", "6", options=("--no-follow-fork",)) == set()


def test_instructions_for_other_processors_are_not_named(tmp_path: Path) -> None:
    text = BEGIN + "static void body(void) {\n    AT(1, by_kind(pool, 2)) // kind\n}" + END
    build(tmp_path, text, "-O1")
    assert listed(tmp_path, []) == {(line_of(text, "// kind"), "by_kind")}
