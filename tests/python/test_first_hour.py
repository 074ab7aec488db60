"""The tutorial and the notebooks, run as they stand: every command, and every line that is printed.

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
from sardonyx import layers

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


def shown(page: str) -> list[Any]:
    """What the cells of a notebook show, run in the folder at hand.

    A cell that begins with ``%%writefile NAME`` is that file, as Jupyter takes it.
    """
    space: dict[str, Any] = {}
    values: list[Any] = []
    for cell in json.loads((DOCS / page).read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if text.startswith("%%writefile "):
            head, _, text = text.partition("\n")
            Path(head.split()[1]).write_text(text)
            continue
        tree = ast.parse(text)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, page, "exec"), space)
        if isinstance(last, ast.Expr):
            values.append(eval(compile(ast.Expression(last.value), page, "eval"), space))
    return values


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = shown("start/first-hour.ipynb")
    assert sum(hasattr(value, "_repr_html_") for value in values) >= 4


@pytest.mark.slow
def test_the_notebook_of_an_idea_shows_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(layers.VARIABLE, "")
    first, mended, gain, figure, spread, seeded = shown("simulator/idea.ipynb")
    assert first.startswith("broken: ") and mended.startswith("holds: data is lost at 0 of ")
    assert gain["merged_share"].max() > 0.3 and figure.data
    windows = spread["std"]
    assert windows["x264"] > 0.05 and windows.drop("x264").max() < 0.005
    assert spread["mean"].drop("x264").between(0.98, 1).all()
    assert seeded["merged_share"].max() < 0.01
    rates = seeded.set_index(["trace", "design"]).filter(like="transactions_per_second")
    for program in ("hash", "queue"):
        (one, half), (other, more) = rates.loc[program].to_numpy()
        assert abs(one - other) < half + more, program
