"""Crash tests of programs that write files: faulty ones and their mended twins."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sardonyx import cli
from typer.testing import CliRunner

CASES = Path(__file__).parents[2] / "crates/crash-files/tests/programs/cases.c"
#: On what a fault shows; all others show on ``ordered``.
PLATFORMS = {
    "create_without_folder": "strict",
    "rename_before_sync": "writeback",
    "journal_folder": "strict",
    "folder_in_folder": "strict",
    "move_between_folders": "strict",
}
#: Faults that show once a call fails.
ERRORS = {"error_ignored", "error_tried_again"}
#: What differs from one system's cp and sync to another's.
COPIES = {"write", "copy_file_range", "ioctl", "sync"}
NAMES = re.findall(r"ROW\((\w+)\),", CASES.read_text())


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cases, compiled."""
    program = tmp_path_factory.mktemp("cases") / "cases"
    command = ["cc", "-g", "-O1", "-o", str(program), str(CASES), "-lpthread"]
    subprocess.run(command, check=True)
    return program


def folder(place: Path) -> Path:
    """What the cases begin with."""
    for name in ("a", "b"):
        (place / name).mkdir(parents=True)
    (place / "a" / "f").write_text("old\n")
    for name in ("f", "h"):
        (place / name).write_text("old\n")
    (place / "both").write_text("old\nold\n")
    (place / "p").write_text("a" * 8192)
    return place


def search(place: Path, recover: str, program: str, *more: str) -> dict[str, Any]:
    """What is found, with the status that the command ended with."""
    line = ["crash-test", "files", "--files", str(place), "--recover", recover, "--json", "-"]
    ran = CliRunner().invoke(cli.app, [*line, *more, "--", *shlex.split(program)])
    assert ran.exit_code in (0, 1, 3), ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    return found | {"status": ran.exit_code}


def lines(case: str) -> set[str]:
    """The lines that a report has to name, one of them at least."""
    text = CASES.read_text().splitlines()
    marked = enumerate(text, 1)
    return {
        f"cases.c:{number}"
        for number, line in marked
        if case in line.partition("// FAULT ")[2].split()
    }


@pytest.mark.machine
@pytest.mark.parametrize("case", NAMES)
def test_a_fault_is_found_with_its_line(case: str, cases: Path, tmp_path: Path) -> None:
    place = folder(tmp_path / "d")
    found = search(
        place,
        f"{cases} {case} bad check {{dir}} {{acks}}",
        f"{cases} {case} bad run {place}",
        "--platform",
        PLATFORMS.get(case, "ordered"),
        "--budget",
        "10s",
        *(["--errors"] if case in ERRORS else []),
    )
    assert found["status"] == 1, found
    cause = found["causes"][0]
    named = {one["place"] for role in ("early", "late") for one in cause[role]}
    named |= {cause.get("promise", "").rpartition(" at ")[2]}
    assert named & lines(case), cause["summary"]


@pytest.mark.machine
@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("platform", ["ordered", "writeback", "strict"])
def test_a_mended_program_is_not_flagged(
    case: str, platform: str, cases: Path, tmp_path: Path
) -> None:
    place = folder(tmp_path / "d")
    found = search(
        place,
        f"{cases} {case} good check {{dir}} {{acks}}",
        f"{cases} {case} good run {place}",
        "--platform",
        platform,
        "--budget",
        "4s",
        *(["--errors"] if case in ERRORS else []),
    )
    assert found["status"] == 0 and found["images"] > 0, found
    assert found["causes"] == []


@pytest.mark.machine
def test_what_is_kept_fails_again(cases: Path, tmp_path: Path) -> None:
    place, kept = folder(tmp_path / "d"), tmp_path / "kept"
    case = f"{cases} append_without_sync bad"
    more = ("--keep", str(kept), "--sarif", str(tmp_path / "s"))
    found = search(place, f"{case} check {{dir}} {{acks}}", f"{case} run {place}", *more)
    ran = subprocess.run(["sh", "-c", found["causes"][0]["replay"]], capture_output=True)
    assert ran.returncode == 1
    assert b"a promise is broken" in ran.stdout
    result = json.loads((tmp_path / "s").read_text())["runs"][0]["results"][0]
    place_of = result["locations"][0]["physicalLocation"]
    named = f"cases.c:{place_of['region']['startLine']}"
    assert named in lines("append_without_sync")


@pytest.mark.machine
@pytest.mark.parametrize(
    ("recover", "program", "said"),
    [
        ("test -d {dir}", "true", "changed nothing below the folder"),
        ("test -f {dir}/none", "touch {place}/g", "fails on the folder as the program left it"),
        ("test -f {dir}/g", "touch {place}/g", "copes with nothing that is sure"),
        ("ls {dir}", "touch {place}/g", "the recovery opens no file of the folder"),
    ],
)
def test_of_what_says_nothing_nothing_is_said(
    recover: str, program: str, said: str, tmp_path: Path
) -> None:
    place = folder(tmp_path / "d")
    found = search(place, recover, program.format(place=place))
    assert found["status"] == 3
    assert said in found["unsaid"]


@pytest.mark.machine
def test_what_the_recovery_would_not_notice_is_said(tmp_path: Path) -> None:
    place = folder(tmp_path / "d")
    program = f"sh -c 'echo new > {place}/g; sync {place}/g; echo done'"
    found = search(place, "cat {dir}/g", program)
    assert not any("copes with" in note for note in found["notes"])
    check = "sh -c 'cat {dir}/* > {acks}; true'"
    found = search(place, check, program)
    assert found["status"] == 0
    assert sum("copes with" in note for note in found["notes"]) == 2


@pytest.mark.machine
def test_the_descriptor_of_promises_can_be_chosen(tmp_path: Path) -> None:
    place = folder(tmp_path / "d")
    text = (
        f"import os; os.dup2(os.open('{tmp_path}/log', 65), 5); os.write(1, b'noise')\n"
        f"open('{place}/g', 'w').write('new'); os.write(5, b'kept')"
    )
    program = shlex.join([sys.executable, "-c", text])
    check = "sh -c 'if grep -q noise {acks}; then exit 7; fi; ! grep -q kept {acks} || cat {dir}/g'"
    found = search(place, check, program, "--acks-fd", "5")
    assert found["status"] == 1 and "descriptor 5" in found["causes"][0]["summary"], found
    (place / "g").unlink()
    found = search(place, check, program)
    assert found["status"] == 3 and "exit status 7" in found["unsaid"], found


@pytest.mark.machine
def test_a_shell_script_is_followed_with_all_that_it_starts(tmp_path: Path) -> None:
    place = folder(tmp_path / "d")
    script = "cd $0; cp f g; sync g; mv g k; ln k l; mkdir m; rm l; echo done >> k; sync"
    line = ["crash-test", "files", "--files", str(place), "--list", "--json", "-", "--"]
    ran = CliRunner().invoke(cli.app, [*line, "sh", "-c", script, str(place)])
    assert ran.exit_code == 0, ran.output
    listed = json.loads(ran.stdout)["list"]
    names = [one["operation"].partition("(")[0] for one in listed]
    assert [name for name in names if name not in COPIES] == [
        *("open", "fsync", "rename", "link", "mkdir", "unlink"),
    ]
    effects, sure = (sum(one[key] for one in listed) for key in ("effects", "makes_sure"))
    assert effects == sure > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--files none --recover 'c {dir}' -- true", "--files none: is no folder"),
        ("--files . --recover c -- true", "--recover 'c': does not say where the folder goes"),
        ("--files . --recover 'c {dir}' -- no-such", "no-such: is no program that can be run"),
        ("--files . -- true", "--recover 'CMD {dir}': give the command"),
        ("--files . --list --seed 3 -- true", "--seed: does nothing with --list"),
        ("--files . --recover 'c {dir}' --platform adr -- true", "--platform: there is no"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli.app, ["crash-test", "files", *shlex.split(words)])
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())
