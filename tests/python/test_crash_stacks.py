"""Crash tests of programs in languages without debug information: each fault at its own line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_crash_files import BOTH, search

#: Two records, each in a file of its own that nobody syncs, by a function that both share.
PYTHON = """\
import sys


def put(file, text):
    file.write(text)


def first(place):
    with open(f"{place}/a", "ab", 0) as file:
        put(file, b"a 0\\n")
        %s
    print("a 0", flush=True)


def second(place):
    with open(f"{place}/b", "ab", 0) as file:
        file.write(
            b"b 0\\n",
        )
        %s
    print("b 0", flush=True)


first(sys.argv[1])
second(sys.argv[1])
"""


def python(version: str) -> str:
    """An interpreter of a version; the test is skipped if there is none."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    places = [sys.executable] if version == own else []
    places += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")))
    for place in [*places, f"python{version}"]:
        if shutil.which(place) and not subprocess.run([place, "-c", ""], check=False).returncode:
            return place
    pytest.skip(f"there is no Python {version} here")


def faults(place: Path, program: str, *more: str) -> dict[str, Any]:
    """What is found of a program that writes to two empty files."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in "ab":
        (place / name).touch()
    return search(place, BOTH, program, *more)


def late(found: dict[str, Any]) -> list[str]:
    """The place of each cause's first late operation."""
    return sorted(cause["late"][0]["place"] for cause in found["causes"])


@pytest.mark.machine
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_two_faults_in_python_are_two_causes_with_their_lines(version: str, tmp_path: Path) -> None:
    interpreter, script = python(version), tmp_path / "two.py"
    place, base = tmp_path / "d", str(tmp_path / "base.json")

    def ran(first: str, *more: str) -> dict[str, Any]:
        script.write_text(PYTHON % (first, "pass"))
        return faults(place, f"{interpreter} {script} {place}", *more)

    found = ran("pass")
    assert found["status"] == 1 and late(found) == ["two.py:17", "two.py:5"], found
    stacks = {tuple(cause["late"][0]["stack"]) for cause in found["causes"]}
    assert stacks == {
        ("put two.py:5", "first two.py:10", "<module> two.py:24"),
        ("second two.py:17", "<module> two.py:25"),
    }
    one = ran("import os; os.fsync(file.fileno())", "--write-baseline", base)
    assert late(one) == ["two.py:17"]
    both = ran("pass", "--baseline", base)
    assert both["status"] == 1
    assert [cause["accepted"] for cause in both["causes"]].count(True) == 1


@pytest.mark.machine
def test_python_that_calls_a_library_is_named_by_its_own_line(tmp_path: Path) -> None:
    script = tmp_path / "box.py"
    script.write_text(
        "import pathlib, sys\nfor name in 'ab':\n"
        "    pathlib.Path(sys.argv[1], name).write_text(f'{name} 0\\n')\n"
        "    print(f'{name} 0', flush=True)\n"
    )
    found = faults(tmp_path / "d", f"{python('3.11')} {script} {tmp_path}/d")
    assert found["status"] == 1 and set(late(found)) == {"box.py:3"}
