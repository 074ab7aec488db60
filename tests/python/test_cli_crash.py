"""``sardonyx crash`` over the real native module: what holds, what is caught, and bad input."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sardonyx import _core

pytestmark = pytest.mark.native
QUICK = ("--transactions", "30")


def crash(*arguments: str, where: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """The program as a shell runs it."""
    ended = subprocess.run(
        [sys.executable, "-m", "sardonyx", "crash", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended


def runs(text: str) -> list[dict[str, Any]]:
    """The runs of a document, without what depends on the host's speed."""
    found: list[dict[str, Any]] = json.loads(text)["runs"]
    for run in found:
        assert run.pop("cuts_per_second") > 0
    return found


def test_what_holds_and_what_is_caught(tmp_path: Path) -> None:
    designs = "sca,fca,no-atomicity,esd+sca"
    ended = crash("btree", "-d", designs, *QUICK, "--json", "-", where=tmp_path)
    found = runs(ended.stdout)
    assert [run["design"] for run in found] == designs.split(",")
    for run in found:
        assert run["cuts"] == run["positions"] > run["distinct_states"] > 0
        assert not run["fails"]
        caught = run["design"] == "no-atomicity"
        assert bool(run["recoverability_violations"]) == caught
        assert run["secrecy_violations"] == 0
    assert ended.stderr == ""


def test_a_mutant_fails_and_its_cut_replays(tmp_path: Path) -> None:
    planted = ("queue", "-d", "sca", *QUICK, "--mutant", "log-not-flushed", "--seed", "4")
    ended = crash(*planted, "--json", "a.json", where=tmp_path, status=1)
    (run,) = runs((tmp_path / "a.json").read_text())
    first = run["violations"][0]
    assert first["seed"] == 4 and first["count"] > 1
    assert f"seed 4, cut {first['cut']}" in first["history"][0]
    told = next(line for line in ended.stdout.splitlines() if line.startswith("  replay: "))
    _, _, *replay = shlex.split(told.removeprefix("  replay: "))
    assert replay[-2:] == ["--cut", str(first["cut"])]
    again = crash(*replay, "--json", "-", where=tmp_path, status=1)
    (replayed,) = runs(again.stdout)
    assert replayed["cuts"] == 1
    assert [v["kind"] for v in replayed["violations"]] == [first["kind"]]
    assert replayed["violations"][0]["line"] == first["line"]


def test_threads_and_repetition_change_nothing(tmp_path: Path) -> None:
    command = ("hash", "-d", "sca", *QUICK, "--cores", "2", "--mutant", "no-fence-after-log")
    answers = [
        runs(crash(*command, "-j", jobs, "--json", "-", where=tmp_path, status=1).stdout)
        for jobs in ("1", "2", "2")
    ]
    assert answers[0] == answers[1] == answers[2]


def test_secrecy_fails_apart_from_recoverability(tmp_path: Path) -> None:
    setting = ("--set", "encryption.global_counter=paper")
    ended = crash("btree", "-d", "sca", *QUICK, *setting, "--json", "-", where=tmp_path, status=1)
    (run,) = runs(ended.stdout)
    assert run["recoverability_violations"] == 0 < run["secrecy_violations"]
    assert {v["about"] for v in run["violations"]} == {"secrecy"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("btre",), 'did you mean "btree"?'),
        (("btree", "-d", "sac"), "sac"),
        (("btree", "-d", "esd+scaa"), "MAPPING+POLICY"),
        (("btree", "-d", ""), "none given"),
        (("btree", "--mutant", "typo"), "they are"),
        (("btree", "--platform", "ups"), "--platform"),
        (("btree", "--cuts", "some"), "--cuts some"),
        (("btree", "--transaction-size", "65"), "multiple of 64"),
        (("btree", "--transaction-size", "8K"), "64 to 4,096 bytes"),
        (("btree", "--footprint", "4T"), "--footprint 4T"),
        (("btree", "--set", "encryption.siblings=no"), "encryption.siblings"),
        (("btree", "--json", "nowhere/x.json"), "--json"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    ended = crash(*arguments, *QUICK, where=tmp_path, status=2)
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
    assert told in ended.stderr
    assert not list(tmp_path.iterdir())


def test_every_program_and_mutant_is_listed() -> None:
    known = json.loads(_core.programs())
    assert len(known["programs"]) == 5 and len(known["mutants"]) >= 10
    assert _core.guarantee("fca") == "every line"
