"""``sardonyx crash-test lint`` names what a thread used before another had made it persistent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine

SOURCE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
struct pool { long key, other, pad[6], copy, pad2[7]; pthread_mutex_t mutex; };
static struct pool *pool;
static volatile int stored, used;
#define FLUSH(x) __asm__ volatile("clwb %0" : "+m"(x) : : "memory");
#define FENCE __asm__ volatile("sfence" : : : "memory");
#define PERSIST(x) FLUSH(x) FENCE
#define COPY(x) pool->copy = x + 1;
#define KEEP PERSIST(pool->copy)
#define SAY if (write(1, "kept\n", 5) != 5) return 0;
#define LOCK pthread_mutex_lock(&pool->mutex);
#define FREE pthread_mutex_unlock(&pool->mutex);
static void *first(void *_) {
    BEFORE
    pool->key = 7; // STORE
    EARLY
    stored = 1;
    while (!used) sched_yield();
    PERSIST(pool->key)
    return _;
}
static void *second(void *_) {
    while (!stored) sched_yield();
    USE // LOAD
    used = 1;
    return _;
}
int main(int count, char **words) {
    int file = open(words[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *pool)) return 2;
    pool = mmap(0, sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    PERSIST(pool->mutex)
    return count - 2;
}
"""
#: What the second thread does, what the first does early and before, and how it ends.
CASES = {
    "persisted": ("COPY(pool->key) KEEP", "", "", "made its own persistent first"),
    "printed": ("COPY(pool->key) SAY", "", "", "printed first"),
    "persisted by the first": ("COPY(pool->key) KEEP", "PERSIST(pool->key)", "", None),
    "persisted by the second": ("COPY(pool->key) PERSIST(pool->key) KEEP", "", "", None),
    "another field": ("COPY(pool->other) KEEP", "", "", None),
    "not used": ("pool->copy = 3; KEEP", "", "", None),
    "nothing persisted": ("COPY(pool->key)", "", "", None),
    "a lock": ("LOCK pool->copy = 3; KEEP FREE", "PERSIST(pool->key)", "LOCK FREE", None),
}


@pytest.mark.parametrize("case", CASES)
def test_pairs_of_threads_are_named(tmp_path: Path, case: str) -> None:
    use, early, before, how = CASES[case]
    text = SOURCE.replace("USE //", f"{use} //").replace("EARLY", early).replace("BEFORE", before)
    (tmp_path / "race.c").write_text(text)
    command = ["cc", "-g", "-O1", "-Wall", "-pthread", "-o", "race", "race.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    record = ("trace", "record", "--pc", "--acks", "-o", "r.parquet", "--", "./race", "pool")
    sardonyx(*record, where=tmp_path)
    sardonyx(
        "crash-test", "lint", "r.parquet", "--pool", "pool", "--json", "r.json", where=tmp_path
    )
    found: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    pairs = [one for one in found["findings"] if one["fault"] == "used-too-early"]
    if how is None:
        assert pairs == []
        return
    lines = {
        mark: f"race.c:{number}"
        for number, line in enumerate(text.splitlines(), 1)
        for mark in ("STORE", "LOAD")
        if line.endswith(f"// {mark}")
    }
    assert [one["place"] for one in pairs] == [lines["STORE"]]
    assert pairs[0]["used"].startswith(f"loaded at {lines['LOAD']}, row ")
    assert pairs[0]["used"].endswith(how)
