"""Figures of the docs are tied to commands: what differs is found and written, and a tie that does
not hold is an error. The commands here are a script's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import figures
import figures_answers
import figures_pages
import pytest

PAGE = """# Speed

`sardonyx compare a --designs x` says that `x` takes 12.5 ns,
which is 40 % of `y`; it took 3 minutes.

| design | time | writes |
|---|---|---|
| `x` | 12.5 | 1,000 |
| `y` | 31.2 (4) | lost (7) |

```
design  time
x       12.5
y       31.2
```
"""

TIES = """
[commands.speed]
run = "sardonyx compare a --designs x"
quick = true

[names]
"time(design)" = "speed.run('a', design).metrics.time"

[[text]]
says = '''takes {time('x'):.1f} ns, which is {100 * time('x') / time('y'):.0f} % of `y`; it took
{host} minutes'''
command = "speed"

[[table]]
head = "design"
rows = "x"
cells."time" = "{time(row):.1f}"
cells."writes" = "{speed.run('a', row).metrics.writes:,d}"

[[table]]
head = "design"
rows = "y"
command = "speed"
cells."time" = "{time(row):.1f} ({host})"
cells."writes" = "{'lost (7)' if speed.run('a', row).metrics.lost else 1}"

[[output]]
command = "speed"
head = "design"
"""


def answer(x: float) -> dict[str, Any]:
    def run(design: str, **metrics: object) -> dict[str, Any]:
        return {"trace": "a", "design": design, "variant": {}, "metrics": metrics}

    return {"runs": [run("x", time=x, writes=1000), run("y", time=31.2, lost=True)]}


class Docs:
    """A folder with one page, its ties, and a program that answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.page = root / "docs/speed.md"
        self.ties = root / "docs/figures/speed.toml"
        self.ties.parent.mkdir(parents=True)
        self.page.write_text(PAGE)
        self.ties.write_text(TIES)
        self.program = root / "bin/sardonyx"
        self.program.parent.mkdir()
        self.says(12.5)

    def says(self, x: float) -> None:
        """The program's answer from now on; it notes each call."""
        (self.root / "answer").write_text(json.dumps(answer(x)))
        self.program.write_text(
            f"#!/bin/sh\necho called >> {self.root}/calls\n"
            'while [ "$1" != --json ]; do shift; done\n'
            f'cp {self.root}/answer "$2"\n'
            f"printf 'a note\\ndesign  time\\nx       {x}\\ny       31.2\\nmore\\n'\n"
        )
        self.program.chmod(0o755)

    @property
    def calls(self) -> int:
        path = self.root / "calls"
        return len(path.read_text().split()) if path.exists() else 0

    def check(self, *options: str) -> int:
        """The exit status of the tool."""
        with pytest.raises(SystemExit) as ended:
            figures.main(["--sardonyx", str(self.program), *options])
        return int(ended.value.code or 0)


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docs:
    for module in (figures, figures_answers, figures_pages):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(figures_answers, "KEPT", tmp_path / "kept")
    return Docs(tmp_path)


def test_every_tie_of_the_docs_holds() -> None:
    found, wrong = figures.pages([])
    assert not wrong
    assert all(page.figures for page in found)


def test_a_page_that_agrees(docs: Docs, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.check() == 0
    assert "figures: 0 of 7 differ; 0 not compared" in capsys.readouterr().out


def test_what_differs_is_named_with_its_line_and_command(
    docs: Docs, capsys: pytest.CaptureFixture[str]
) -> None:
    docs.says(15.6)
    assert docs.check() == 1
    said = capsys.readouterr().out.splitlines()
    by = "sardonyx compare a --designs x"
    assert said[0] == f"docs/speed.md:3: said 12.5, found 15.6: {by}"
    assert said[1] == f"docs/speed.md:4: said 40, found 50: {by}"
    assert said[2] == f"docs/speed.md:8: said 12.5, found 15.6: {by}"
    assert f"said x       12.5, found x       15.6: {by}" in said[3]
    assert docs.page.read_text() == PAGE


def test_writing_changes_those_figures_and_nothing_else(docs: Docs) -> None:
    docs.says(15.6)
    assert docs.check("--write") == 0
    assert docs.page.read_text() == PAGE.replace("12.5", "15.6").replace("40 %", "50 %")
    assert docs.check() == 0


def test_an_answer_is_kept_until_it_is_asked_anew(docs: Docs) -> None:
    docs.check()
    docs.check()
    assert docs.calls == 1
    docs.check("--fresh")
    assert docs.calls == 2


def test_another_program_is_asked_anew(docs: Docs) -> None:
    (docs.root / "python/sardonyx").mkdir(parents=True)
    docs.check()
    (docs.root / "python/sardonyx/_core.so").write_text("another")
    docs.check("--stale")
    assert docs.calls == 1
    docs.check()
    assert docs.calls == 2


def test_an_answer_can_be_given(docs: Docs, capsys: pytest.CaptureFixture[str]) -> None:
    (docs.root / "given.json").write_text(json.dumps(answer(15.6)))
    docs.ties.write_text(TIES.split("[[output]]")[0])
    given = f"sardonyx compare a --designs x={docs.root}/given.json"
    assert docs.check("--from", given) == 1
    assert docs.calls == 0
    assert "found 15.6" in capsys.readouterr().out


def test_an_answer_can_be_a_folder_of_results(
    docs: Docs, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs.root / "results").mkdir()
    (docs.root / "results/results.json").write_text(json.dumps(answer(15.6)))
    assert docs.check("--from", f"sardonyx compare a --designs x={docs.root}/results") == 1
    said = capsys.readouterr().out
    assert "found 15.6" in said
    assert "3 of 6 differ; 1 not compared" in said  # the folder has no lines of a terminal


def test_a_page_elsewhere_is_named(docs: Docs, capsys: pytest.CaptureFixture[str]) -> None:
    docs.page.rename(docs.root / "SPEED.md")
    docs.ties.write_text('page = "SPEED.md"\n' + TIES)
    docs.says(15.6)
    assert docs.check("--page", "SPEED.md") == 1
    assert "SPEED.md:3: said 12.5" in capsys.readouterr().out


def test_a_long_command_is_not_run_quickly(docs: Docs, capsys: pytest.CaptureFixture[str]) -> None:
    docs.ties.write_text(TIES.replace("quick = true", "minutes = 5"))
    assert docs.check("--quick") == 0
    assert docs.calls == 0
    assert "7 not compared" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("takes {", "needs {", "not in the page: needs {"),
        ("{time(row):.1f} ({host})", "{time(row):.1f}", "row y, column time: not in the page"),
        ('"time" = "{time(row):.1f}"', '"speed" = "{1:d}"', "the table has no column: speed"),
        ('rows = "x"', 'rows = "z"', "no row of the table design is named z"),
        ("--designs x", "--designs y", "not in the page: sardonyx compare a --designs y"),
        ("metrics.time", "metrics.tim", "LookupError: no tim; there are time, writes"),
        ("run('a', design)", "run('b', design)", "LookupError: 0 rows have"),
        ('command = "speed"\nhead', 'command = "sped"\nhead', "no command: sped"),
        ('rows = "y"', 'rows = ".*"', "column time: not in the page"),
        ("took\n{host}", "took {time('x'):.1f} or {host}", "not in the page"),
        ("[[output]]", "[[outputs]]", "no such part: outputs"),
        ("metrics.time", "metrics.none", "LookupError: no none"),
    ],
)
def test_a_tie_that_does_not_hold(
    docs: Docs, capsys: pytest.CaptureFixture[str], before: str, after: str, said: str
) -> None:
    assert before in TIES
    docs.ties.write_text(TIES.replace(before, after))
    assert docs.check() == 2
    assert said in capsys.readouterr().out


def test_words_that_are_there_twice_tie_nothing(
    docs: Docs, capsys: pytest.CaptureFixture[str]
) -> None:
    docs.page.write_text(PAGE + "\n" + PAGE.split("\n\n")[1])
    assert docs.check() == 2
    assert "2 times in the page" in capsys.readouterr().out


def test_a_figure_is_tied_once(docs: Docs, capsys: pytest.CaptureFixture[str]) -> None:
    more = "\n[[text]]\nsays = 'it took {host} minutes'\n"
    docs.ties.write_text(TIES + more)
    assert docs.check() == 2
    assert "line 4 is tied twice: 3" in capsys.readouterr().out


def test_nothing_and_no_number_are_no_figures() -> None:
    for value in (None, float("nan"), float("inf"), ""):
        with pytest.raises(LookupError, match="gives"):
            figures_answers.written(value, "")
    assert figures_answers.written(-0.0004, ".2f") == "0.00"
    assert figures_answers.written(-0.004, ".3f") == "-0.004"
    assert [figures_answers.prefixed(v) for v in (8_870_000, 119_400, 99.96)] == [
        "8.87 M",
        "119 k",
        "100",
    ]
