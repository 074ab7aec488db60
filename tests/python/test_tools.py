"""The tools of the loop: the check of the machine, the rules of the tiers, a new design."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import costs
import new_design
import pytest
import tables

ROOT = Path(__file__).parents[2]


def program(folder: Path, name: str, text: str) -> None:
    """A shell script that stands for a program of the machine."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def checked(
    folder: Path, python: str = "python3", tier: str = "run", **variables: str
) -> tuple[int, list[str]]:
    """What the check of the machine says where the programs of ``folder`` come first."""
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)} | variables
    ended = subprocess.run(
        ("tools/check_machine.sh", python, str(folder / "venv"), tier),
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stderr.splitlines()


def sound(folder: Path) -> None:
    """Programs that lack nothing."""
    program(folder, "cargo", "exit 0")
    program(folder, "rustc", "echo 'rustc 1.95.0 (59807616e 2026-04-14)'")
    for name in ("cc", "python3", "rustfmt", "git"):
        program(folder, name, "exit 0")


def test_a_machine_with_all_that_is_needed_is_silent(tmp_path: Path) -> None:
    sound(tmp_path)
    assert checked(tmp_path) == (0, [])


def test_an_old_rust_is_one_line(tmp_path: Path) -> None:
    sound(tmp_path)
    program(tmp_path, "rustc", "echo 'rustc 1.85.1 (4eb161250 2025-03-15) (built from a tarball)'")
    status, lines = checked(tmp_path)
    assert status == 2 and len(lines) == 1
    assert "rustc 1.85.1 is older than 1.90; install Rust 1.90 or newer" in lines[0]


def test_each_thing_that_is_missing_is_a_line_with_its_remedy(tmp_path: Path) -> None:
    sound(tmp_path)
    program(tmp_path, "cc", "exit 1")
    program(tmp_path, "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    status, lines = checked(tmp_path)
    assert status == 2 and len(lines) == 2
    assert "no C compiler" in lines[0] and "apt-get install gcc libc6-dev" in lines[0]
    assert "cannot make an environment" in lines[1] and "python3-venv" in lines[1]
    program(tmp_path, "python3", "exit 1")
    assert "older than Python 3.11" in checked(tmp_path)[1][1]
    (tmp_path / "python3").unlink()
    assert "no python9;" in checked(tmp_path, "python9")[1][1]
    assert "no cargo and rustc" in checked(tmp_path, RUSTC="rustc-nowhere")[1][0]


def test_tests_need_more_and_a_build_does_not(tmp_path: Path) -> None:
    sound(tmp_path)
    assert checked(tmp_path, tier="test") == (0, [])
    program(
        tmp_path,
        "git",
        'test "$1" = --version || { echo "fatal: not a repository" >&2; exit 128; }',
    )
    program(tmp_path, "rustfmt", "exit 1")
    status, lines = checked(tmp_path, tier="test")
    assert status == 2 and len(lines) == 2
    assert "no rustfmt or no clippy; with rustup: rustup component add" in lines[0]
    assert "git does not know the files here (fatal: not a repository)" in lines[1]
    program(tmp_path, "git", "exit 127")
    assert "no git; on Debian, as root: apt-get install git" in checked(tmp_path, tier="test")[1][1]
    assert checked(tmp_path) == (0, [])


def test_nothing_is_installed_before_all_is_looked_for(tmp_path: Path) -> None:
    sound(tmp_path)
    for name in ("rustc", "apt-get", "sudo"):
        program(tmp_path, name, f"echo {name} >> {tmp_path}/called; exit 1")
    for target in ("test", "test-all"):
        ended = subprocess.run(
            ("make", target, f"VENV={tmp_path}/venv"),
            cwd=ROOT, env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 2 and "rustc does not run" in ended.stderr, ended.stderr
    assert set((tmp_path / "called").read_text().split()) == {"rustc"}
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    "said",
    [
        "WARNING: Retrying after connection broken by 'NewConnectionError(...: Failed to establish "
        "a new connection: [Errno -3] Temporary failure in name resolution')'\n"
        "ERROR: No matching distribution found for annotated-doc==0.0.7",
        "error: failed to get `a` as a dependency of package `b`\n\nCaused by:\n  [6] Could not "
        "resolve hostname (Could not resolve host: there)",
    ],
)
def test_offline_is_said_as_offline(said: str, tmp_path: Path) -> None:
    (tmp_path / "said").write_text(f"{said}\n")

    def ran(text: str) -> subprocess.CompletedProcess[str]:
        command = ("tools/online.sh", "sh", "-c", text)
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    ended = ran(f"cat {tmp_path}/said >&2; exit 1")
    assert ended.returncode == 2 and "\nmake: this machine is offline" in ended.stderr
    assert "Retrying" not in ended.stderr and ended.stderr.lower().startswith("error: ")
    ended = ran("echo 'ERROR: a hash differs' >&2; exit 3")
    assert (ended.returncode, ended.stderr) == (3, "ERROR: a hash differs\n")
    assert ran(f"cat {tmp_path}/said >&2").returncode == 0


def judged(monkeypatch: pytest.MonkeyPatch, folder: Path, *found: costs.Cost) -> list[str]:
    """What the rules say of some costs, written down in ``folder``."""
    for name, file in (("FILE", "times.tsv"), ("SPIES", "spies"), ("SEEN", "spies/seen")):
        monkeypatch.setattr(costs, name, folder / file)
    return costs.judge("python", found, whole=True)


def cost(test: str, seconds: float, mark: str | None = None) -> costs.Cost:
    return costs.Cost("python", f"tests/python/test_x.py::{test}", seconds, mark)


def test_a_long_test_needs_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SARDONYX_TEST_SEED", raising=False)
    found = (cost("quick", 0.1), cost("a", 1.5), cost("b", 9, "slow"), cost("c", 3.2))
    wrong = judged(monkeypatch, tmp_path, *found)
    assert len(wrong) == 1 and "test_x.py::c takes 3.2 s" in wrong[0] and "`slow`" in wrong[0]
    listed = capsys.readouterr().out
    assert "::a" in listed and "::c" in listed and "::b" not in listed and "quick" not in listed
    assert costs.read() == sorted(found, key=lambda one: -one.seconds)
    # On a machine of a quarter of the speed the same tests take four times the seconds.
    many = [cost(f"t{number}", 1) for number in range(40)]
    assert len(judged(monkeypatch, tmp_path, cost("c", 3.2), *many)) == 1
    slower = [replace(each, seconds=4 * each.seconds) for each in many]
    assert len(judged(monkeypatch, tmp_path, cost("c", 12.8), *slower)) == 1
    assert judged(monkeypatch, tmp_path, cost("c", 4), *slower) == []
    monkeypatch.setenv("SARDONYX_TEST_SEED", "5")
    assert judged(monkeypatch, tmp_path, *found) == []


def test_a_program_of_the_machine_needs_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judged(monkeypatch, tmp_path, cost("a", 0.1)) == []
    spy = costs.spies() / "nbdkit"
    ended = subprocess.run(
        [spy], env={"SARDONYX_TEST": "a", "PATH": os.environ["PATH"]}, check=False
    )
    assert ended.returncode == 97
    wrong = judged(monkeypatch, tmp_path, cost("a", 0.1))
    assert wrong == ["a starts nbdkit: it needs the mark `machine`"]
    assert judged(monkeypatch, tmp_path, cost("a", 0.1)) == []


def test_each_suite_has_a_question_and_the_last_takes_the_rest() -> None:
    assert len(costs.suites()) == 4 and all(name.endswith("?") for name in costs.suites())
    assert costs.suite("sardonyx/all::nvmain::any") == "Is timing right?"
    assert costs.suite("tests/python/test_crash_test.py::any") == "Does it survive?"
    assert costs.suite("tests/python/test_cli.py::any") == "Does it run at all?"
    assert costs.suite("tests/python/test_report_page.py::any") == "Does the whole product work?"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that a new design changes."""
    for folder in (new_design.MAPPINGS, new_design.TESTS):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / new_design.PAGE).parent.mkdir(parents=True)
    shutil.copy(ROOT / new_design.PAGE, tmp_path / new_design.PAGE)
    return tmp_path


@pytest.mark.parametrize("like", new_design.EXAMPLES)
def test_a_design_begins_as_an_example_under_its_own_name(tree: Path, like: str) -> None:
    files = new_design.begin(tree, "my-lines", like)
    made, listing, test, main, page = (file.read_text() for file in files)
    assert 'name: "my-lines"' in made and "my_lines." in made and "FIGURES" not in made
    assert not {like, new_design.snake(like), new_design.camel(like)} & set(made.split('"'))
    assert " my_lines }" in listing
    assert "fn my_lines_keeps" in test and "mod my_lines;" in main
    assert page.endswith("## my-lines\n\nWhat it does, in steps.\n")
    header = made[: made.index("\nuse ")]
    assert header.startswith("//! `my-lines`: say here") and "zeros" not in header
    (line,) = re.findall(r'line: "(.*)"', made)
    assert line == "say here in a line what it does"


@pytest.mark.slow
@pytest.mark.parametrize("like", new_design.EXAMPLES)
def test_what_a_design_begins_as_is_lint_clean_and_passes(tmp_path: Path, like: str) -> None:
    files = subprocess.check_output(("git", "ls-files", "-z"), cwd=ROOT, text=True).split("\0")
    for file in filter(None, files):
        if file.startswith(("crates/", "docs/", ".cargo/", "Cargo", "traces/", "python/")):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, tmp_path / file)
    new_design.begin(tmp_path, "my-lines", like)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "template"
    cargo = ("cargo", "--config", ".cargo/testing.toml")
    for words in (
        ("clippy", "--locked", "-p", "sardonyx", "--lib", "--", "-D", "warnings"),
        ("test", "--release", "--locked", "-p", "sardonyx-crash", "--test", "design", "my_lines"),
    ):
        ended = subprocess.run(
            (*cargo, *words), cwd=tmp_path, capture_output=True, text=True, check=False,
            env=os.environ | {"CARGO_TARGET_DIR": str(target)},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr[-3000:]
    assert "1 passed" in ended.stdout


def test_a_name_that_is_taken_or_none_is_refused(tree: Path) -> None:
    with pytest.raises(new_design.Refusal, match=r"zero_lines\.rs is there"):
        new_design.begin(tree, "zero-lines", "dedup-fold")
    with pytest.raises(new_design.Refusal, match="small letters"):
        new_design.begin(tree, "My_Lines", "zero-lines")


# ---- tables of the docs

PAGE = """# Page

<!-- table quick: sardonyx compare a | runs: design, metrics.time=time (ns), metrics.share% -->
| design | time (ns) | metrics.share |
|---|---|---|
| x | 9 | 50.0 % |
<!-- /table -->

<!-- table: sardonyx reproduce b | cells.rows -->
<!-- /table -->
"""
SAID = {
    "sardonyx compare a": {"runs": [{"design": "x", "metrics": {"time": 12345.6, "share": 0.5}}]},
    "sardonyx reproduce b": {
        "cells": {
            "rows": [
                {
                    "stage": "prepare",
                    "in_the_paper": True,
                    "log": {"ours": "kept", "paper": "kept", "agrees": True},
                    "data": {"ours": "lost", "paper": "kept", "agrees": False},
                }
            ]
        }
    },
}


def test_sizes_and_half_widths_of_an_exploration_are_cells() -> None:
    one = {"design": "esd", "sizes": {"a.bytes": 4096, "b.bytes": 8192}, "half": {"ipc": 0.17}}
    said = {"answer": "build esd", "front": [one]}
    assert tables.table(said, ".", "answer") == "| answer |\n| --- |\n| build esd |\n"
    made = tables.table(said, "front", "design, sizes=bytes on chip, half.ipc=±")
    assert made.endswith("| esd | a.bytes 4,096, b.bytes 8,192 | 0.17 |\n")


def test_a_table_that_differs_is_named_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr(tables, "ask", lambda command, _: SAID[command])

    def ran(*options: str) -> int:
        monkeypatch.setattr("sys.argv", ["tables.py", *options, str(page)])
        return tables.main()

    assert ran("--quick") == 1 and "compare a: the table differs" in capsys.readouterr().out
    assert page.read_text() == PAGE and ran("--write") == 0
    written = page.read_text()
    assert "| x | 12,346 | 50 % |" in written and "| 9 |" not in written
    assert "| prepare | kept | lost (the paper: kept) |" in written
    assert ran() == 0
    page.write_text(written.replace("metrics.time", "metrics.tim"))
    with pytest.raises(SystemExit, match=r"no tim in .*; there are time, share"):
        ran("--quick")
