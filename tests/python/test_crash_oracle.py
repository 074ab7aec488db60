"""``sardonyx crash-test search --operations``: what is found where nobody has written a check."""

from __future__ import annotations

import json
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_cli_native import sardonyx
from test_crash_causes import built
from test_crash_test import PROGRAMS, refused

pytestmark = pytest.mark.machine

FAULTS = {
    fault["name"]: fault["edits"]
    for fault in tomllib.loads((PROGRAMS.parent / "faults.toml").read_text())["fault"]
    if fault["program"] == "kv"
}


def recorded(where: Path, *edits: list[str], options: tuple[str, ...] = ("--acks",)) -> None:
    """The run of ``kv`` on its operations, in ``r.parquet``."""
    built(where, "kv.c", *[(find, put) for _, find, put in edits])
    shutil.copy(PROGRAMS / "kv.operations", where)
    command = ["trace", "record", "--pc", *options, "-o", "r.parquet"]
    sardonyx(*command, "--", "./kv", "pool", "apply", "kv.operations", where=where)


ASKED = (
    "r.parquet", "--pool", "pool", "--recover", "./kv {pool} dump",
    "--operations", "kv.operations", "--apply", "./kv {pool} apply {operations}",
)  # fmt: skip


def crashed(where: Path, *options: str, status: int = 0) -> dict[str, Any]:
    sardonyx(
        "crash-test", "search", *ASKED, "--json", "r.json", *options, where=where, status=status
    )
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    return found


def test_a_sound_program_leaves_a_beginning_of_its_operations_at_every_cut(tmp_path: Path) -> None:
    recorded(tmp_path)
    found = crashed(tmp_path)
    count = len((tmp_path / "kv.operations").read_text().splitlines())
    assert found["verdict"] == "no violation" and found["images"] > 100
    assert (found["oracle"]["operations"], found["oracle"]["prefixes"]) == (count, count + 1)
    # Some operations change nothing, such as the removal of what is not there.
    assert count // 2 < found["oracle"]["outputs"] <= count + 1


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_without_a_check(tmp_path: Path, name: str) -> None:
    recorded(tmp_path, *FAULTS[name])
    found = crashed(tmp_path, status=1)
    lines = (tmp_path / "kv.c").read_text().splitlines()
    first = [lines[suspect["frame"]["line"] - 1] for suspect in found["suspects"][:3]]
    assert any("/*@*/" in line for line in first), first
    cause = found["causes"][0]
    assert "it prints" in cause["said"] and "operations leave" in cause["said"]
    shown = sardonyx(*shlex.split(cause["replay"])[1:], where=tmp_path, status=1).stdout
    assert "operations leave" in shown


def test_a_lost_operation_is_told_from_one_that_is_there_by_half(tmp_path: Path) -> None:
    recorded(tmp_path, *FAULTS["kv-removed-not-flushed"])
    found = crashed(tmp_path, "--html", "r.html", "--keep", "kept", status=1)
    said = {cause["said"] for cause in found["causes"]}
    assert all(one.endswith("were acknowledged") for one in said), said
    page = (tmp_path / "r.html").read_text()
    assert "41 beginnings of 40 operations" in page and "were acknowledged" in page
    assert "fenced too late" in page or "never flushed" in page
    assert "gdb --args ./kv kept/" in page
    recorded(tmp_path, *FAULTS["kv-log-not-flushed"])
    said = {cause["said"] for cause in crashed(tmp_path, status=1)["causes"]}
    assert any("it lacks `" in one and "and has `" in one for one in said), said


def test_without_a_promise_a_lost_operation_is_no_violation(tmp_path: Path) -> None:
    recorded(tmp_path, *FAULTS["kv-removed-not-flushed"], options=())
    kept = ["r.parquet", *ASKED[1:]]
    assert "does not keep what the program printed" in refused(tmp_path, *kept)
    found = crashed(tmp_path, "--acknowledged", "none", "--budget", "5s", status=1)
    assert all("were acknowledged" not in cause["said"] for cause in found["causes"])


def test_operations_that_tell_nothing_are_refused(tmp_path: Path) -> None:
    recorded(tmp_path)
    alone = ASKED[:5]
    with_file = ASKED[:7]
    for few in ((*alone, "--apply", "./kv {pool}"), (*alone, "--acknowledged", "none"), with_file):
        assert "give both" in refused(tmp_path, *few)
    assert "where the operations go" in refused(tmp_path, *with_file, "--apply", "./kv {pool}")
    assert "--acknowledged" in refused(tmp_path, *ASKED, "--acknowledged", "words")

    (tmp_path / "less").write_text("put 1 2\n")
    other = [word.replace("kv.operations", "less") for word in ASKED]
    assert "and there are 1 operations" in refused(tmp_path, *other)
    (tmp_path / "none").write_text("")
    nothing = [word.replace("kv.operations", "none") for word in ASKED]
    assert "holds no operation" in refused(tmp_path, *nothing)

    blind = [word.replace("./kv {pool} dump", "./kv {pool} dump >/dev/null") for word in ASKED]
    assert "prints the same of every beginning" in refused(tmp_path, *blind)
    moody = [word.replace("{pool} dump", "{pool} dump; date +%N") for word in ASKED]
    assert "do not end alike" in refused(tmp_path, *moody)
    broken = [word.replace("apply {operations}", "apply {operations}.gone") for word in ASKED]
    assert "--apply: fails on the first 0 operations" in refused(tmp_path, *broken)
