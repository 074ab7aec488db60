"""The tutorial and its notebook, run as they stand: every command, and every line that is printed.

In a ``console`` block ``$`` begins a command, ``...`` stands for any lines, and ``# status 1`` says
how a command ends. A ``toml`` block whose first line is a comment with a name is that file.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the page's lines are the program's, where ``...`` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


def run(command: str, shown: list[str], where: Path) -> None:
    status = re.search(r"# status (\d)$", command)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=where,
        env=os.environ | {"PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == (int(status[1]) if status else 0), command + ended.stderr
    printed = [line.rstrip() for line in ended.stdout.splitlines()]
    assert matches(shown, printed), "\n".join([command, *shown, "---", *printed])


def test_the_matcher_can_fail() -> None:
    assert matches(["a", "...", "c"], ["a", "b", "b", "c"]) and matches(["..."], [])
    assert not matches(["a", "...", "c"], ["a", "b"]) and not matches([], ["a"])
    assert not matches(["a"], ["b"])


@pytest.mark.machine
def test_every_command_of_the_first_hour_prints_what_the_page_shows(tmp_path: Path) -> None:
    commands = 0
    for kind, text in BLOCK.findall((DOCS / "start/first-hour.md").read_text()):
        if kind == "toml":
            name = text.splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(text)
        if kind == "python":
            done = subprocess.run(
                [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
        if kind != "console":
            continue
        for each in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *shown = each.rstrip("\n").split("\n")
            run(command, shown, tmp_path)
            commands += 1
    assert commands >= 9


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((DOCS / "start/first-hour.ipynb").read_text())
    space: dict[str, Any] = {}
    tables = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "first-hour.ipynb", "exec"), space)
        if isinstance(last, ast.Expr):  # what a notebook shows
            value = eval(compile(ast.Expression(last.value), "first-hour.ipynb", "eval"), space)
            tables += bool(value._repr_html_()) if hasattr(value, "_repr_html_") else 0
    assert tables >= 4
