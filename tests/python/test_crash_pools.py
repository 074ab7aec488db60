"""``sardonyx crash-test`` of programs with several pools: one order, and nothing left unsaid."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx
from test_crash_test import PROGRAMS, edited, refused

pytestmark = pytest.mark.machine

BOTH = ("--pool", "pool", "--pool", "pool.objects")
CHECK = ("--recover", "./index {pool} check")
#: The place in the index may persist before the object that it is of.
EARLY = ("    flush(object);\n    fence();\n", "    flush(object);\n")


def build(where: Path, name: str, *edits: tuple[str, str]) -> None:
    edited(where, f"{name}.c", edits)
    command = ["cc", "-O2", "-g", f"-I{PROGRAMS}", "-o", name, f"{name}.c", "-lpthread"]
    subprocess.run(command, cwd=where, check=True)


def record(where: Path, *command: str, pool: str = "pool") -> None:
    sardonyx("trace", "record", "--pc", "-o", "r.parquet", "--", *command, pool, "run", where=where)


def crash(where: Path, *options: str, status: int = 0) -> dict[str, Any]:
    search = ("crash-test", "search", "r.parquet", *options, "--json", "r.json")
    sardonyx(*search, where=where, status=status)
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    return found


def test_a_place_that_persists_before_the_object_in_the_other_pool(tmp_path: Path) -> None:
    build(tmp_path, "index")
    record(tmp_path, "./index")
    sound = crash(tmp_path, *BOTH, *CHECK)
    assert sound["verdict"] == "no violation" and not sound["not_cut"] and sound["images"] > 300
    assert [pool["name"] for pool in sound["pools"]] == ["pool", "pool.objects"]
    assert all(pool["lines_stored_to"] > 2 for pool in sound["pools"])

    for file in tmp_path.glob("pool*"):
        file.unlink()
    build(tmp_path, "index", EARLY)
    record(tmp_path, "./index")
    found = crash(tmp_path, *BOTH, *CHECK, "--keep", "kept", "--html", "r.html", status=1)
    cause = found["causes"][0]
    assert {store["pool"] for store in cause["early"]} == {"pool"}
    assert {store["pool"] for store in cause["late"]} == {"pool.objects"}
    lines = (tmp_path / "index.c").read_text().splitlines()
    named = [lines[suspect["frame"]["line"] - 1] for suspect in found["suspects"][:2]]
    assert any("i->place[key] = place + 1" in line for line in named), named
    assert "pool.objects 0x" in (tmp_path / "r.html").read_text()
    # The command of the report, the images that are kept, and a copy of one fail alike.
    replay = sardonyx(*shlex.split(cause["replay"])[1:], where=tmp_path, status=1).stdout
    assert "fails" in replay and "2:" in found["causes"][0]["passes"], cause
    fails = int(cause["ended"].removeprefix("exit status "))
    for image, status in (("1-fails", fails), ("1-passes", 0)):
        kept = f"kept/{image}.pool/pool"
        assert subprocess.run(["./index", kept, "check"], cwd=tmp_path).returncode == status
    copied, under = cause["gdb"].split(" && gdb --args ")
    subprocess.run(copied, shell=True, cwd=tmp_path, check=True)
    assert subprocess.run(under, shell=True, cwd=tmp_path).returncode == fails


def test_pools_are_given_by_number_by_folder_and_under_their_own_names(tmp_path: Path) -> None:
    build(tmp_path, "index", EARLY)
    (tmp_path / "pools").mkdir()
    record(tmp_path, "./index", pool="pools/pool")
    of = ("--pool", "pools", "--jobs", "1")  # of several workers, one or another is first
    counts = set()
    for command in ("./index {pool} check", "./index {pools}/pool check"):
        counts.add(crash(tmp_path, *of, "--recover", command, status=1)["violations"])
    moved = "sh -c 'ln {pool1} {pools}/a; ln {pool2} {pools}/a.objects; ./index {pools}/a check'"
    counts.add(crash(tmp_path, *of, "--recover", moved, status=1)["violations"])
    # The same whatever the way: three ways to say where the pools are.
    assert len(counts) == 1 and counts != {0}
    lint = sardonyx("crash-test", "lint", "r.parquet", *of[:2], where=tmp_path).stdout
    lint = lint.replace("\n", "")  # long paths are broken
    assert "pools/pool and " in lint and "pool.objects" in lint


def test_a_pool_that_nobody_names_is_said(tmp_path: Path) -> None:
    build(tmp_path, "split")
    record(tmp_path, "./split")
    # This check makes the log anew, so that the recovery of the accounts alone copes at the end.
    check = "sh -c 'truncate -s 256 {pool}.log; ./split {pool} check'"
    said = sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool", "--recover", check,
        "--json", "r.json",
        where=tmp_path, status=1,
    )  # fmt: skip
    assert "pool.log (" in said.stderr and "another --pool" in said.stderr
    found = json.loads((tmp_path / "r.json").read_text())
    assert len(found["not_cut"]) == 1 and "pool.log" in found["not_cut"][0]
    # Nothing of it fails: and yet the verdict is not that of a whole plan.
    said = sardonyx(
        "crash-test",
        "search",
        "r.parquet",
        "--pool",
        "pool",
        "--recover",
        "head -c 1 {pool}",
        where=tmp_path,
    )
    assert "no violation in what was tried" in said.stdout and "not cut: " in said.stdout
    both = ("--pool", "pool", "--pool", "pool.log")
    said = sardonyx(
        "crash-test", "search", "r.parquet", *both, "--recover", "head -c 1 {pool}", where=tmp_path
    )
    assert "not cut" not in said.stdout
    assert "did not open its copy of" in said.stderr


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    build(tmp_path, "index")
    record(tmp_path, "./index")
    (tmp_path / "empty").mkdir()
    of = ("r.parquet", *BOTH)
    assert "{pool3} stands for no pool" in refused(
        tmp_path, *of, "--recover", "./index {pool} {pool3}"
    )
    twice = ("r.parquet", "--pool", "pool", "--pool", "./pool")
    assert "twice" in refused(tmp_path, *twice, *CHECK)
    assert "no file of the folder empty" in refused(
        tmp_path, "r.parquet", "--pool", "empty", *CHECK
    )
    own = f"sh -c 'cat {tmp_path}/pool.objects > /dev/null; ./index {{pool}} check'"
    assert "the program's own" in refused(tmp_path, *of, "--recover", own)


def test_large_pools_are_put_right_page_by_page_each(tmp_path: Path) -> None:
    """A recovery that leaves a stain in either pool, one of them too large to be compared."""
    (tmp_path / "stain.c").write_text(STAIN)
    subprocess.run(["cc", "-O2", "-g", "-o", "stain", "stain.c"], cwd=tmp_path, check=True)
    for name, size in (("large", 40 << 20), ("small", 1 << 20)):
        (tmp_path / name).write_bytes(b"x" * size)
    sardonyx(
        "trace", "record", "--pc", "-o", "r.parquet", "--", "./stain", "large", "small", "run",
        where=tmp_path,
    )  # fmt: skip
    for which in "01":
        check = f"./stain {{pool}} {{pool2}} {which}"
        found = crash(tmp_path, "--pool", "large", "--pool", "small", "--recover", check)
        assert found["verdict"] == "no violation" and found["recoveries"] > 40


STAIN = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
    char *at[2];
    long sizes[2] = {40 << 20, 1 << 20};
    for (int i = 0; i < 2; i++) {
        int d = open(words[i + 1], O_RDWR);
        at[i] = mmap(0, sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED, d, 0);
        if (at[i] == MAP_FAILED) return 3;
    }
    if (!strcmp(words[3], "run")) {
        for (int i = 1; i < 30; i++) {
            char *to = at[i % 2] + i * 8192;
            *to = (char)i;
            __asm__ volatile("clwb %0; sfence" : "+m"(*to));
        }
        return 0;
    }
    for (int i = 0; i < 2; i++)
        if (at[i][600000] == 'S') { puts("a stain"); return 10; }
    at[words[3][0] - '0'][600000] = 'S';
    return 0;
}
"""
