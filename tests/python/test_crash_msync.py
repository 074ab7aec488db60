"""``sardonyx crash-test`` of a program that maps an ordinary file and syncs it page by page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from test_cli_native import sardonyx

pytestmark = pytest.mark.native
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
    test = ("crash-test", "r.parquet", "--pool", "pool", "--recover", "./paged {pool} check")
    sardonyx(*test, "--json", "r.json", where=tmp_path, status=int(is_broken))
    found = json.loads((tmp_path / "r.json").read_text())
    assert bool(found["violations"]) == is_broken
