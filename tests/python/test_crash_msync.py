"""``sardonyx crash-test`` of a program that maps an ordinary file and syncs it page by page."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine

SOURCE = """
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8192)) return 2;
    long *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!strcmp(argv[2], "check")) return page[512] && page[0] != 42;
    page[0] = 42;
    msync(page, 4096, HOW);
    page[512] = 1;
    msync(page + 512, 4096, MS_SYNC);
    return 0;
}
"""


@pytest.mark.parametrize(("how", "is_broken"), [("MS_SYNC", False), ("MS_ASYNC", True)])
def test_msync_makes_sure_only_if_it_waits(tmp_path: Path, how: str, is_broken: bool) -> None:
    (tmp_path / "paged.c").write_text(SOURCE)
    build = ["cc", "-O1", "-g", f"-DHOW={how}", "-o", "paged", "paged.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    record = (
        "trace",
        "record",
        "--level",
        "cpu",
        "-o",
        "r.parquet",
        "--",
        "./paged",
        "pool",
        "run",
    )
    sardonyx(*record, where=tmp_path)
    test = (
        "crash-test",
        "search",
        "r.parquet",
        "--pool",
        "pool",
        "--recover",
        "./paged {pool} check",
    )
    sardonyx(*test, "--json", "r.json", where=tmp_path, status=int(is_broken))
    found = json.loads((tmp_path / "r.json").read_text())
    assert bool(found["violations"]) == is_broken


LETTERS = """
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct letter { uint64_t first, gap[519], last, rest[503]; };
struct box { uint64_t count, gap[63], copy, rest[447]; struct letter letters[10]; };
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct box))) return 2;
    struct box *box = mmap(0, sizeof *box, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!strcmp(argv[2], "check")) {
        uint64_t promised = 0;
        FILE *acks = fopen(argv[3], "r");
        while (fscanf(acks, "stored %lu ", &promised) == 1) ;
        if (box->count < promised) return 3;
        if (box->copy < box->count) return 4;
        for (uint64_t i = 0; i < box->count; i++)
            if (box->letters[i].first != i + 1 || box->letters[i].last != i + 1) return 5;
        return 0;
    }
    for (uint64_t n = 1; n <= 10; n++) {
        struct letter *letter = &box->letters[n - 1];
        letter->first = n;
        letter->last = n; // last
#ifdef EARLY
        box->copy = n;
        box->count = n; // early
#endif
#if defined SHORT
        msync(letter, 4096, MS_SYNC);
#elif defined REFUSED
        msync(letter, 4096, MS_SYNC);
        msync(&letter->last, 8, MS_SYNC);
#elif defined ASYNC
        msync(letter, 4096, MS_SYNC);
        msync((char *)letter + 4096, 4096, MS_ASYNC);
#else
        msync(letter, sizeof *letter, MS_SYNC);
#endif
        box->copy = n; // copy
        box->count = n; // count
#ifndef NEVER
        if (n % 3 == 0) msync(box, 4096, MS_SYNC);
        else if (n % 3 == 1) fsync(fd);
        else fdatasync(fd);
#endif
        printf("stored %lu\\n", n);
        fflush(stdout);
    }
    return 0;
}
"""
RUST = """
use std::os::fd::AsRawFd;
unsafe extern "C" {
    fn mmap(at: *mut u64, bytes: usize, may: i32, how: i32, file: i32, from: i64) -> *mut u64;
}
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut open = std::fs::OpenOptions::new();
    let file = open.read(true).write(true).create(true).open(&words[1]).unwrap();
    file.set_len(11 * 4096).unwrap();
    let all = unsafe { mmap(std::ptr::null_mut(), 11 * 4096, 3, 1, file.as_raw_fd(), 0) };
    let all = unsafe { std::slice::from_raw_parts_mut(all, 11 * 512) };
    if words[2] == "check" {
        let whole = (1..=all[0] as usize).all(|n| all[n * 512] == n as u64);
        std::process::exit(i32::from(!whole));
    }
    for n in 1..=10 {
        all[n * 512] = n as u64; // page
        if cfg!(clean) {
            file.sync_data().unwrap();
        }
        all[0] = n as u64; // count
        file.sync_all().unwrap();
    }
}
"""


def _tested(where: Path, *options: str, check: str, status: int) -> dict[str, Any]:
    """What a crash test of ``program`` says."""
    record = ("trace", "record", "--pc", "--acks", "-o", "r.parquet", "--", "./program")
    if not (where / "r.parquet").exists():
        sardonyx(*record, "pool", "run", where=where)
    asked = ("crash-test", "search", "r.parquet", "--pool", "pool", "--recover", check, *options)
    sardonyx(*asked, "--json", "r.json", where=where, status=status)
    told: dict[str, Any] = json.loads((where / "r.json").read_text())
    return told


def _letters(where: Path, fault: str) -> None:
    """Build the box of letters with a fault."""
    (where / "box.c").write_text(LETTERS)
    build = ["cc", "-O1", "-g", f"-D{fault}", "-o", "program", "box.c"]
    subprocess.run(build, cwd=where, check=True)


def _line(source: str, marked: str) -> int:
    """The line that ends so."""
    lines = source.splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"// {marked}"))


CHECK = "./program {pool} check {acks}"


@pytest.mark.parametrize(
    ("fault", "marked"),
    [
        ("SHORT", "last"),
        ("REFUSED", "last"),
        ("ASYNC", "last"),
        ("EARLY", "early"),
        ("NEVER", "count"),
    ],
)
def test_a_fault_of_a_file_on_a_disk_is_found_to_its_line(
    tmp_path: Path, fault: str, marked: str
) -> None:
    _letters(tmp_path, fault)
    found = _tested(tmp_path, check=CHECK, status=1)
    assert found["platform"] == "pages"
    assert found["suspects"][0]["place"] == f"box.c:{_line(LETTERS, marked)}"
    cause = found["causes"][0]
    assert "--platform pages" in cause["replay"]
    replay = _tested(tmp_path, *shlex_tail(cause["replay"]), check=CHECK, status=1)
    assert replay["fails"]


def shlex_tail(command: str) -> list[str]:
    """The options of a replay that are not those of every crash test."""
    parts = shlex.split(command)
    return parts[parts.index(CHECK) + 1 :]


def test_a_clean_file_is_never_flagged_by_pages_and_a_torn_page_is_by_sectors(
    tmp_path: Path,
) -> None:
    _letters(tmp_path, "CLEAN")
    clean = _tested(tmp_path, check=CHECK, status=0)
    assert clean["platform"] == "pages"
    assert clean["finished"]
    assert clean["images"] > 30
    # The count and its copy are of one page and of two sectors, and the check wants the copy first.
    torn = _tested(tmp_path, "--platform", "sectors", check=CHECK, status=1)
    places = {suspect["place"] for suspect in torn["suspects"][:2]}
    assert f"box.c:{_line(LETTERS, 'copy')}" in places
    # Lines of persistent memory tear there as sectors do.
    _tested(tmp_path, "--platform", "adr", check=CHECK, status=1)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_program_in_rust_that_syncs(tmp_path: Path, is_clean: bool) -> None:
    (tmp_path / "pages.rs").write_text(RUST)
    flags = ["--cfg", "clean"] if is_clean else []
    build = ["rustc", "--edition", "2024", "-g", "-O", *flags, "-o", "program", "pages.rs"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    check = "./program {pool} check"
    for platform in ("pages", "sectors"):
        options = ("--platform", platform)
        found = _tested(tmp_path, *options, check=check, status=int(not is_clean))
        assert found["images"] > 20
    if not is_clean:
        places = [suspect["place"] for suspect in found["suspects"][:2]]
        assert set(places) == {f"pages.rs:{_line(RUST, name)}" for name in ("page", "count")}


def test_what_a_disk_cannot_be_asked(tmp_path: Path) -> None:
    _letters(tmp_path, "CLEAN")
    _tested(tmp_path, check=CHECK, status=0)
    test = ("crash-test", "search", "r.parquet", "--pool", "pool", "--recover", CHECK)
    for options, said in (
        (("--platform", "pages", "--tear", "words"), "--tear words"),
        (("--platform", "disk"), "--platform"),
    ):
        assert said in sardonyx(*test, *options, where=tmp_path, status=2).stderr
