"""``sardonyx crash-test`` of a program that forks: all its processes have one order."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_cli_native import sardonyx
from test_crash_test import built, crashed, named, recorded, refused

pytestmark = pytest.mark.machine

FENCE = ("        fence();\n    }", "    }")
FLUSH = ("        flush_all(cell, sizeof *cell);\n", "")
COUNT = (
    "            table->count = first + 2 * EACH;\n"
    "            flush(&table->count);\n            fence();\n"
)
OTHER = "            pid_t other = worker("
#: The server counts the second worker's cells before it forks it.
EARLY = ((COUNT, ""), (OTHER, COUNT + OTHER))


def test_a_server_and_its_workers_are_cut_in_one_order(tmp_path: Path) -> None:
    program = built(tmp_path, "workers")
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program)
    assert found["violations"] == 0 and found["finished"] and found["images"] > 100
    # Eight workers, one of which was killed; what it had stored is in the recording.
    assert found["notes"] == ["the program forked: its 10 processes are cut in one order"]


@pytest.mark.parametrize(
    ("edits", "right", "fate"),
    [
        ((FENCE,), "cell->", "never fenced"),  # the server's fence is not the worker's
        ((FLUSH,), "cell->", "never flushed"),
        (EARLY, "table->count", "flushed too late"),
    ],
)
def test_faults_between_processes_are_found(
    tmp_path: Path, edits: tuple[tuple[str, str], ...], right: str, fate: str
) -> None:
    program = built(tmp_path, "workers", *edits)
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, "--budget", "10s", status=1)
    lines = named(tmp_path, "workers", found)
    assert any(right in line for line in lines), lines
    late = [store for cause in found["causes"] for store in cause["late"]]
    assert any(fate in store["fate"] for store in late), late


SYNCED = """
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8192)) return 2;
    long *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!strcmp(argv[2], "check")) return page[512] && page[0] != 42;
    if (!fork()) {
        page[0] = 42;
        _exit(0);
    }
    wait(0);
#ifdef SYNC
    fsync(fd);
#endif
    page[512] = 1;
    msync(page + 512, 4096, MS_SYNC);
    return 0;
}
"""


@pytest.mark.parametrize("syncs", [True, False])
def test_a_sync_makes_sure_of_what_a_child_stored(tmp_path: Path, syncs: bool) -> None:
    (tmp_path / "paged.c").write_text(SYNCED)
    options = ["-DSYNC"] if syncs else []
    subprocess.run(["cc", "-g", *options, "-o", "paged", "paged.c"], cwd=tmp_path, check=True)
    recorded(tmp_path, "./paged", "--pc")
    found = crashed(tmp_path, "./paged", status=int(not syncs))
    assert found["platform"] == "pages" and bool(found["violations"]) != syncs


def test_children_that_are_left_out_are_said(tmp_path: Path) -> None:
    program = built(tmp_path, "workers")
    recorded(tmp_path, program, "--pc", "--no-follow-fork")
    test = ("r.parquet", "--pool", "pool", "--recover", f"{program} {{pool}} check")
    said = refused(tmp_path, *test)
    assert "which is not what the program left" in said and "a child that was left out" in said


@pytest.mark.parametrize("edits", [(), (FENCE,)])
def test_a_script_that_starts_the_program_is_recorded_with_it(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    program = built(tmp_path, "workers", *edits)
    record = ("trace", "record", "--pc", "-o", "r.parquet", "--json", "t.json")
    script = f"rm -f pool; {program} pool run; true"
    sardonyx(*record, "--", "sh", "-c", script, where=tmp_path)
    (trace,) = json.loads((tmp_path / "t.json").read_text())["traces"]
    assert not trace["notes"]
    found = crashed(tmp_path, program, status=len(edits))
    assert bool(found["violations"]) == bool(edits)
    # The shell lies at the addresses at which the program does.
    if edits:
        assert any("cell->" in line for line in named(tmp_path, "workers", found))


SPEAKS = """
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600), ends[2];
    if (fd < 0 || ftruncate(fd, 4096) || pipe(ends)) return 3;
    long *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pool[0] = 1;
    (void)!write(1, "own\\n", 4);
    if (!fork()) {
        pool[1] = 2;
        (void)!write(1, "child\\n", 6);
        dup2(ends[1], 1);
        (void)!write(1, "to the parent\\n", 14);
        execl("/bin/echo", "echo", "to the parent too", (char *)0);
    }
    wait(0);
    char text[64];
    (void)!read(ends[0], text, sizeof text);
    pool[2] = 3;
    (void)!write(1, "own again\\n", 10);
    return 0;
}
"""


def test_what_a_child_says_to_its_parent_is_no_promise(tmp_path: Path) -> None:
    (tmp_path / "s.c").write_text(SPEAKS)
    subprocess.run(["cc", "-O1", "-o", "s", "s.c"], cwd=tmp_path, check=True)
    record = ("--pc", "--acks", "-o", "r.parquet", "--", "./s", "pool")
    sardonyx("trace", "record", *record, where=tmp_path)
    metadata = pq.read_schema(tmp_path / "r.parquet").metadata
    acks = json.loads(metadata[b"sardonyx.trace"])["acks"]
    assert "".join(text for _, text in acks) == "own\nchild\nown again\n"
