"""Files that are nearly right, to every command that reads one (``hostile_files.py``).

``SARDONYX_CASES=10000`` makes more of the cases.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hostile_files
import pytest

CASES = int(os.environ.get("SARDONYX_CASES", "1000"))


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a right file of each kind."""
    folder = tmp_path_factory.mktemp("right")
    hostile_files.seeds(folder)
    return folder


def test_the_right_files_are_read(right: Path, tmp_path: Path) -> None:
    """Otherwise all that follows would try the first check alone."""
    here = tmp_path / "here"
    shutil.copytree(right, here)
    before = Path.cwd()
    os.chdir(here)
    try:
        for name, lines in hostile_files.COMMANDS.items():
            for line in lines:
                status, _, said = hostile_files.ran(line.format(name))
                assert status in (0, 1, 3), f"{line}: {said}"
                shutil.rmtree("out", ignore_errors=True)
    finally:
        os.chdir(before)


def test_a_few_that_are_nearly_right(right: Path, tmp_path: Path) -> None:
    for number in range(60):
        wrong = hostile_files.Case(number, 1).check(right, tmp_path / f"case-{number}")
        assert wrong is None, f"case {number}: {wrong}"


@pytest.mark.slow
@pytest.mark.machine
def test_many_that_are_nearly_right_write_only_where_they_may(tmp_path: Path) -> None:
    """In processes of their own, whose system calls are followed where strace is there."""
    words = ["--cases", str(CASES), "--seed", "2"]
    if shutil.which("strace"):
        words.append("--watch")
    command = [sys.executable, hostile_files.__file__, *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
