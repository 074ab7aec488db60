"""docs/crash-test/real-programs.md: its programs are copied, and its commands run as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.machine

PAGE = Path(__file__).parents[2] / "docs/crash-test/real-programs.md"


def blocks(heading: str) -> list[tuple[str, str]]:
    """The language and text of each block below a heading of the page."""
    below = PAGE.read_text().split(f"\n### {heading}\n")[1]
    below = re.split(r"^##+ ", below, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```(\S*)\s(.*?)^```$", below, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("heading", ["In C", "In C++", "In Rust"])
def test_a_program_of_the_page_has_the_fault_that_the_page_shows(
    tmp_path: Path, heading: str
) -> None:
    (language, code), (_, commands), (_, shown) = blocks(heading)
    if language == "{literalinclude}":
        code = (PAGE.parent / code.split()[0]).read_text()
    name = code.split(":")[0].removeprefix("// ")
    (tmp_path / name).write_text(code)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", commands], cwd=tmp_path, env=os.environ | {"PATH": path, "COLUMNS": "120"},
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    printed = ended.stdout
    # The line of code, what became of it, and what the check said; rows and counts may differ.
    assert any(line in printed for line in re.findall(rf"^{name}:\d+ +\w\S+", shown, re.MULTILINE))
    for words in re.findall(r"\(never flushed\)|\(flushed at .*?\)|letter 0 .*", shown):
        assert words in printed, (words, printed)
    assert re.search(r"\d+ violations of \d+ cause", printed)
    # And mended it has none.
    last = printed.rpartition("recoveries in")[2]
    assert "no violation" in last and "violations of" not in last, printed
