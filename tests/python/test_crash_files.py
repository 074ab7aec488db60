"""Crash tests of programs that write files: faulty ones and their mended twins."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_cli_hostile import ended

CASES = Path(__file__).parents[2] / "crates/crash-files/tests/programs/cases.c"
#: On what a fault shows; all others show on ``ext4-ordered``.
PLATFORMS = {
    "create_without_folder": "strict",
    "rename_before_sync": "ext4-writeback",
    "journal_folder": "strict",
    "folder_in_folder": "strict",
    "move_between_folders": "strict",
}
#: Faults that show once a call fails.
ERRORS = {"error_ignored", "error_tried_again"}
#: What differs from one system's cp and sync to another's.
COPIES = {"write", "copy_file_range", "ioctl", "sync"}
NAMES = re.findall(r"ROW\((\w+)\),", CASES.read_text())


#: Cases that promise something. The others are given no promises, which would be empty.
PROMISING = set(re.findall(r"CASE\((\w+)\) {\n(?:(?!^}).*\n)*?.*ACK\(\);", CASES.read_text(), re.M))


def acks(case: str) -> str:
    """What a case's check is given for what the case has printed."""
    return "{acks}" if case in PROMISING else "/dev/null"


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
    status, out, err = ended(*line, *more, "--", *shlex.split(program))
    assert status in (0, 1, 3), err
    found: dict[str, Any] = json.loads(out)
    return found | {"status": status}


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
        f"{cases} {case} bad check {{dir}} {acks(case)}",
        f"{cases} {case} bad run {place}",
        "--platform",
        PLATFORMS.get(case, "ext4-ordered"),
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
@pytest.mark.parametrize("platform", ["ext4-ordered", "ext4-writeback", "xfs", "btrfs", "strict"])
def test_a_mended_program_is_not_flagged(
    case: str, platform: str, cases: Path, tmp_path: Path
) -> None:
    place = folder(tmp_path / "d")
    found = search(
        place,
        f"{cases} {case} good check {{dir}} {acks(case)}",
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


#: Writes three records to DIR/log: what is promised where, and how it ends, differs.
ENDINGS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const char *mode = argv[1];
    if (argc != 3 || chdir(argv[2])) return 2;
    int log = open("log", O_CREAT | O_WRONLY | O_APPEND, 0644), pair[2], say = 1;
    if (!strcmp(mode, "stderr")) say = 2;
    if (!strcmp(mode, "socket") && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) say = pair[0];
    int promises = say != 1;
    for (int i = 0; i < 3; i++) {
        char text[32];
        int n = sprintf(text, "rec %d\n", i);
        if (write(log, text, n) != n || (!promises && fsync(log))) return 3;
        if (write(say, text, n) != n) return 3;
    }
    if (!strcmp(mode, "abort")) abort();
    if (!strcmp(mode, "long")) pause();
    return !strcmp(mode, "exit1");
}
"""
#: Every line of what was promised must be in the log.
KEPT = (
    "sh -c 'touch {dir}/log; while read -r line; do "
    'grep -qx "$line" {dir}/log || exit 4; done < {acks}\''
)


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of ``ENDINGS``."""
    program = tmp_path_factory.mktemp("endings") / "endings"
    program.with_suffix(".c").write_text(ENDINGS)
    subprocess.run(["cc", "-o", str(program), f"{program}.c"], check=True)
    return program


@pytest.mark.machine
@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("stderr", ("--acks-fd", "2")),
        ("socket", ("--acks-socket",)),
        ("socket", ("--acks-fd", "4")),
    ],
)
def test_a_promise_that_nobody_listens_to_says_nothing(
    mode: str, names: tuple[str, ...], endings: Path, tmp_path: Path
) -> None:
    place = tmp_path / "d"
    place.mkdir()
    program = f"{endings} {mode} {place}"
    found = search(place, KEPT, program)
    assert found["status"] == 3 and found["doubt"]["reason"] == "nothing-printed"
    assert f"({names[0]}" in found["unsaid"] or names == ("--acks-fd", "4")
    (place / "log").unlink()
    found = search(place, KEPT, program, *names)
    assert found["status"] == 1, found["verdict"]


@pytest.mark.machine
@pytest.mark.parametrize(
    ("mode", "more", "reason"),
    [
        ("abort", (), "program-failed"),
        ("exit1", (), "program-failed"),
        ("long", ("--record-limit", "1s"), "recording-ended"),
    ],
)
def test_a_program_that_failed_says_nothing_unless_that_is_allowed(
    mode: str, more: tuple[str, ...], reason: str, endings: Path, tmp_path: Path
) -> None:
    place = tmp_path / "d"
    place.mkdir()
    program = f"{endings} {mode} {place}"
    found = search(place, KEPT, program, *more)
    assert (found["status"], found["doubt"]["reason"]) == (3, reason)
    (place / "log").unlink()
    found = search(place, KEPT, program, *more, "--allow-failure")
    assert (found["status"], found["doubt"]) == (0, None)


@pytest.mark.machine
def test_a_green_answer_says_what_it_rests_on(endings: Path, tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    line = ["crash-test", "files", "--files", str(place), "--recover"]
    program = ["--", str(endings), "plain", str(place)]
    for recover, told in (
        (KEPT, ""),
        ("sh -c 'cat {dir}/*; : {acks}'", "does not open {acks}"),
    ):
        status, out, _ = ended(*line, recover, *program)
        assert status == 0 and ("it rests on little" in out) == bool(told)
        assert told in " ".join(out.split())
        (place / "log").unlink()
    program[2:] = ["stderr", str(place)]
    status, out, _ = ended(*line, "sh -c 'cat {dir}/*; true'", *program)
    assert status == 0 and "the program syncs nothing" in " ".join(out.split())


#: The second promise has something durable behind it; a value is overwritten before its sync.
HOLLOW = """
import os, sys
os.chdir(sys.argv[1])
f, g = (os.open(name, os.O_CREAT | os.O_WRONLY) for name in "fg")
os.pwrite(f, b"a" * 512, 0)
os.write(1, b"first\\n")
os.pwrite(f, b"b" * 512, 0)
os.pwrite(g, b"c" * 512, 0)
os.fsync(g)
os.write(1, b"second\\n")
"""


@pytest.mark.machine
def test_a_green_answer_says_which_promises_and_values_it_does_not_test(tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    program = [sys.executable, "-c", HOLLOW, str(place)]
    line = ["crash-test", "files", "--files", str(place), "--recover", "sh -c 'cat {dir}/* {acks}'"]
    status, out, err = ended(*line, "--ok", "1", "--json", str(tmp_path / "j"), "--", *program)
    assert status == 0, err
    untested = json.loads((tmp_path / "j").read_text())["untested"]
    assert (untested["acknowledgements"], untested["not_durable"]) == (2, 1), untested
    assert [place.rpartition(":")[2] for place in untested["not_durable_at"]] == ["6"]
    assert (untested["sectors"], untested["overwritten"], untested["mapped"]) == (3, 1, 0)
    said = " ".join(out.split())
    assert "1 of 2 acknowledgements came when nothing done since the one before" in said
    assert "1 of 3 written sectors were overwritten before they were durable" in said


#: Two files, of which one or both lack their sync: in a script, and in Go.
TWO = """
import os, sys
place, bad = sys.argv[1], sys.argv[2]
files = {name: open(f"{place}/{name}", "ab", 0) for name in "ab"}
for each in files.values():
    os.fsync(each.fileno())
folder = os.open(place, os.O_RDONLY)
os.fsync(folder)
for i in range(3):
    for name, each in files.items():
        each.write(b"%s %d\\n" % (name.encode(), i))
        if name not in bad:
            os.fsync(each.fileno())
        os.write(1, b"%s %d\\n" % (name.encode(), i))
"""
BOTH = (
    "sh -c 'while read -r line; do "
    'cat {dir}/a {dir}/b | grep -qx "$line" || exit 4; done < {acks}\''
)


@pytest.mark.machine
def test_a_baseline_accepts_the_cause_of_one_file_and_not_of_another(tmp_path: Path) -> None:
    place, base = tmp_path / "d", str(tmp_path / "base.json")
    (tmp_path / "two.py").write_text(TWO)

    def found(bad: str, *more: str) -> dict[str, Any]:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return search(place, BOTH, f"{sys.executable} {tmp_path}/two.py {place} x{bad}", *more)

    def ran(bad: str, *more: str) -> dict[str, Any]:
        # The command is the same whatever the program reads, as of a script that was changed.
        (tmp_path / "two.py").write_text(TWO.replace("sys.argv[2]", repr(bad)))
        return found("", *more)

    assert ran("a", "--write-baseline", base)["status"] == 1
    assert ran("a", "--baseline", base)["status"] == 0
    other = ran("b", "--baseline", base)
    assert other["status"] == 1 and not any(cause["accepted"] for cause in other["causes"])
    both = ran("ab", "--baseline", base)
    assert both["status"] == 1 and {cause["accepted"] for cause in both["causes"]} == {True, False}


GO = """package main

import (
\t"fmt"
\t"os"
)

func first(place string) {
\tfile, _ := os.OpenFile(place+"/a", os.O_APPEND|os.O_WRONLY, 0)
\tfile.WriteString("a 0\\n") // FAULT
\tfmt.Println("a 0")
}

func second(place string) {
\tfile, _ := os.OpenFile(place+"/b", os.O_APPEND|os.O_WRONLY, 0)
\tfile.WriteString("b 0\\n") // FAULT
\tfmt.Println("b 0")
}

func main() {
\tfirst(os.Args[1])
\tsecond(os.Args[1])
}
"""


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here")
@pytest.mark.parametrize(
    "how",
    [(), ("-trimpath",), ("-buildmode=pie",), ("-ldflags=-s -w",), ("-ldflags=-s", "-trimpath")],
)
def test_two_faults_in_go_are_two_causes_with_their_lines(
    how: tuple[str, ...], tmp_path: Path
) -> None:
    place = tmp_path / "d"
    place.mkdir()
    for name in "ab":
        (place / name).touch()
    (tmp_path / "main.go").write_text(GO)
    (tmp_path / "go.mod").write_text("module app\n\ngo 1.19\n")
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOPROXY": "off"}
    build = ["go", "build", *how, "-o", "app", "."]
    subprocess.run(build, cwd=tmp_path, check=True, env=environment)
    found = search(place, BOTH, f"{tmp_path}/app {place}")
    assert found["status"] == 1 and len(found["causes"]) == 2, found["causes"]
    named = {one["place"] for cause in found["causes"] for one in cause["late"]}
    marked = list(enumerate(GO.splitlines(), 1))
    faulty = {f"main.go:{number}" for number, line in marked if "FAULT" in line}
    if stripped := any("-s" in word for word in how):
        # What was inlined hides the line that called it; the line that called that is shown then.
        faulty |= {f"main.go:{number}" for number, line in marked if "(os.Args[1])" in line}
    assert len(named) == 2 and (named <= faulty if stripped else named == faulty)


@pytest.mark.machine
@pytest.mark.parametrize("platform", ["ext4-ordered", "xfs"])
def test_a_file_that_is_moved_in_may_lack_its_data(platform: str, tmp_path: Path) -> None:
    place = folder(tmp_path / "d")
    (tmp_path / "new").write_text("new\n")
    program = f"mv -f {tmp_path}/new {place}/f"
    check = "grep -qx -e old -e new {dir}/f"
    found = search(place, check, program, "--platform", platform)
    assert found["status"] == 1, found["causes"]
    assert not any(cause["in_order"] for cause in found["causes"])


@pytest.mark.machine
def test_what_waits_for_another_process_holds_no_order(tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    # The writer opens the pipe first, and waits until the reader, which writes a file before, does.
    script = (
        "cd $0; mkfifo p; (echo x > p) & sleep 0.2; echo y > out; cat p >> out; sync out; sync .; "
        "rm p; wait; echo done"
    )
    program = shlex.join(["sh", "-c", script, str(place)])
    check = """sh -c '! grep -q done {acks} || test $(tr -d "[:space:]" < {dir}/out) = yx'"""
    found = search(place, check, program, "--record-limit", "9s")
    assert found["status"] == 0, found
    assert found["recorded_s"] < 9 and found["ended"] == "exit status 0"


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.machine
def test_a_folder_that_is_too_large_is_refused(grows: bool, tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    program = ["sleep", "0"]
    if grows:
        program = ["truncate", "-s", "1200M", str(place / "large")]
    else:
        with (place / "large").open("wb") as file:
            file.truncate(1200 << 20)
    line = ["crash-test", "files", "--files", str(place), "--recover", "cat {dir}/large", "--"]
    status, _, said = ended(*line, *program)
    assert status == 2 and "its files have more than 1073741824 bytes" in " ".join(said.split())


@pytest.mark.machine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("slow", ["recovery", "program"])
def test_a_signal_ends_what_is_slow(number: signal.Signals, slow: str, tmp_path: Path) -> None:
    place, began = tmp_path / "d", tmp_path / "began"
    place.mkdir()
    sleeps = f"touch {began}; sleep 98; cat {{dir}}/*"
    program = f"touch {place}/g"
    if slow == "program":
        program, sleeps = f"touch {place}/g {began}; sleep 98", "cat {dir}/*"
    line = [
        *(sys.executable, "-m", "sardonyx", "crash-test", "files", "--files", str(place)),
        *("--recover", f"sh -c '{sleeps}'", "--", "sh", "-c", program),
    ]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        while not began.exists():
            assert running.poll() is None, running.communicate()
            time.sleep(0.01)
        running.send_signal(number)
        # It would otherwise end with the sleep; the limit is far from either.
        out, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number, (out, err)


@pytest.mark.machine
def test_a_shell_script_is_followed_with_all_that_it_starts(tmp_path: Path) -> None:
    place = folder(tmp_path / "d")
    script = "cd $0; cp f g; sync g; mv g k; ln k l; mkdir m; rm l; echo done >> k; sync"
    line = ["crash-test", "files", "--files", str(place), "--list", "--json", "-", "--"]
    status, out, err = ended(*line, "sh", "-c", script, str(place))
    assert status == 0, err
    listed = json.loads(out)["list"]
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
        *(
            (f"--files . --recover 'c {{dir}}' {option}={number} -- true", option)
            for option in (
                *("--budget", "--record-limit", "--time-limit", "--memory-limit"),
                *("--seed", "--jobs", "--acks-fd", "--ok"),
            )
            for number in ("nan", "inf", "1e999", "-1", str(2**64))
        ),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = ended("crash-test", "files", *shlex.split(words))
    assert status == 2
    assert said in " ".join(err.split())
