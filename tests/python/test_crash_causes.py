"""``sardonyx crash-test``: all causes of one run, creation, addresses, recoveries that are cut."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from test_cli_native import sardonyx
from test_crash_test import PROGRAMS, edited, recorded, refused

pytestmark = pytest.mark.machine


def built(where: Path, file: str, *edits: tuple[str, str]) -> str:
    """The program, with some of its text replaced."""
    edited(where, file, edits)
    shutil.copy(PROGRAMS / "pm.h", where)
    name, end = file.split(".")
    command = {"c": ["cc", "-O2", "-g"], "cpp": ["c++", "-O2", "-g"], "rs": ["rustc", "-O", "-g"]}
    subprocess.run([*command[end], "-o", name, file], cwd=where, check=True, capture_output=True)
    return f"./{name}"


def crashed(where: Path, program: str, *options: str, status: int = 0) -> dict[str, Any]:
    """What a crash test of ten seconds finds; ``shown`` is what people read."""
    ended = sardonyx(
        "crash-test", "search", "r.parquet", "--pool", "pool",
        "--recover", f"{program} {{pool}} check",
        "--budget", "10s", "--json", "r.json", *options, where=where, status=status,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((where / "r.json").read_text())
    return found | {"shown": ended.stdout}


def suspected(where: Path, file: str, found: dict[str, Any]) -> list[str]:
    """The text of the lines that are suspected first."""
    lines = (where / file).read_text().splitlines()
    return [lines[suspect["frame"]["line"] - 1].strip() for suspect in found["suspects"][:3]]


LAST = ("    f->last = number;\n    flush(&f->last);", "    f->last = number;")
NOW_EARLY = (
    "    flush(copy);\n    fence();\n    a->now = !a->now;",
    "    flush(copy);\n    a->now = !a->now;",
)


def test_a_value_that_is_never_flushed_hides_no_other_fault(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "both.c", LAST, NOW_EARLY), "--pc")
    found = crashed(tmp_path, "./both", "--sarif", "r.sarif", "--junit", "r.xml", status=1)
    lines = (tmp_path / "both.c").read_text().splitlines()
    late = {lines[s["frame"]["line"] - 1].strip() for c in found["causes"] for s in c["late"]}
    assert {"f->last = number;", "copy[7] = ~value;"} <= late
    # What was late in one round counts as persistent in the next.
    last = next(n for n, line in enumerate(lines, 1) if "f->last = number;" in line)
    assert found["rounds"] > 1 and f"both.c:{last}" in found["assumed"]
    assert all(f"both.c:{last}" in c["assumed"] for c in found["causes"] if c["round"])
    assert "never flushed" in found["shown"]
    fates = {
        lines[s["frame"]["line"] - 1].strip(): s["fate"] for c in found["causes"] for s in c["late"]
    }
    assert fates["f->last = number;"] == "never flushed"
    flush = next(n for n, line in enumerate(lines, 1) if "flush(copy);" in line)
    assert fates["copy[7] = ~value;"].startswith(f"flushed at both.c:{flush}, fenced too late")
    # Each cause's replay ends as the cause does, assumptions included.
    for cause in found["causes"]:
        replay = shlex.split(cause["replay"])[1:]
        assert cause["said"].split()[0] in sardonyx(*replay, where=tmp_path, status=1).stdout
    run = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]
    assert len(run["results"]) == len(found["causes"])
    places = {r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in run["results"]}
    assert {n for n, line in enumerate(lines, 1) if "f->last = number;" in line} <= places
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert int(suite.get("failures", "0")) == len(found["causes"])


def test_what_is_assumed_to_persist_is_no_fault(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "both.c", LAST), "--pc")
    found = crashed(tmp_path, "./both", status=1)
    place = found["causes"][0]["late"][0]["place"]
    assert crashed(tmp_path, "./both", "--assume-persisted", place)["violations"] == 0
    told = refused(
        tmp_path, "r.parquet", "--pool", "pool", "--recover", "./both {pool} check",
        "--assume-persisted", "both.c:1",
    )  # fmt: skip
    assert "no store to the pool is there" in told and place in told


def test_accepted_causes_are_no_failure_and_new_ones_are(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "both.c", LAST), "--pc")
    crashed(tmp_path, "./both", "--write-baseline", "base.json", status=1)
    found = crashed(tmp_path, "./both", "--baseline", "base.json")
    assert found["violations"] and all(cause["accepted"] for cause in found["causes"])
    # Lines that come before move it, and it stays accepted; another fault is none of it.
    moved = ('#include "pm.h"', '#include "pm.h"\n\n')
    recorded(tmp_path, built(tmp_path, "both.c", LAST, moved), "--pc")
    crashed(tmp_path, "./both", "--baseline", "base.json")
    recorded(tmp_path, built(tmp_path, "both.c", LAST, NOW_EARLY), "--pc")
    found = crashed(tmp_path, "./both", "--baseline", "base.json", status=1)
    assert {cause["accepted"] for cause in found["causes"]} == {True, False}
    (tmp_path / "base.json").write_text("{}")
    told = refused(
        tmp_path, "r.parquet", "--pool", "pool", "--recover", "./both {pool} check",
        "--baseline", "base.json",
    )  # fmt: skip
    assert "is not a baseline" in told


def test_two_stores_of_a_line_are_tried_apart_within_the_first_pass(tmp_path: Path) -> None:
    edit = (
        "    uint64_t *copy = a->copies[!a->now];\n    copy[0] = value;\n    copy[7] = ~value;",
        "    uint64_t *copy = a->copies[a->now];\n    copy[0] = value;\n    copy[7] = ~value;\n"
        "    if (value >= 100) { flush(copy); fence(); return; }",
    )
    recorded(tmp_path, built(tmp_path, "both.c", edit), "--pc")
    found = crashed(tmp_path, "./both", status=1)
    assert any("copy[" in line for line in suspected(tmp_path, "both.c", found))
    assert found["causes"][0]["kind"] in found["first_pass"]


MARK_EARLY = (
    "    flush(&h->buckets);\n    fence();\n    h->mark = MARK;",
    "    flush(&h->buckets);\n    h->mark = MARK;",
)
SLOTS = ("slots[i].value = 1;\n    flush_all(slots, 64 * sizeof *slots);", "slots[i].value = 1;")


def test_faults_of_creation_are_told_from_a_pool_that_is_not_made_yet(tmp_path: Path) -> None:
    program = built(tmp_path, "born.c")
    recorded(tmp_path, program, "--pc")
    sound = crashed(tmp_path, program)
    assert sound["violations"] == 0 and sound["creation"]["images"] > 0
    assert sound["creation"]["finished"] and sound["start"]["cut"] > 0
    # It divides by the number of buckets: signal 8.
    recorded(tmp_path, built(tmp_path, "born.c", MARK_EARLY), "--pc")
    found = crashed(tmp_path, program, "--creation", "orderly", status=1)
    assert found["causes"][0]["creation"] and found["causes"][0]["ended"] == "signal 8"
    assert "while the pool is made: " in found["shown"]
    assert crashed(tmp_path, program, "--creation", "skip")["violations"] == 0
    # Other data than were stored: another exit status than the untouched pool's.
    recorded(tmp_path, built(tmp_path, "born.c", SLOTS), "--pc")
    found = crashed(tmp_path, program, status=1)
    assert any("slots[i].value = 1;" in line for line in suspected(tmp_path, "born.c", found))
    assert crashed(tmp_path, program, "--creation", "orderly")["violations"] == 0


def test_what_is_made_sure_of_nowhere_is_a_fault_and_no_bad_check(tmp_path: Path) -> None:
    edit = ("    h->mark = MARK;\n    flush(&h->mark);", "    h->mark = MARK;")
    recorded(tmp_path, built(tmp_path, "born.c", edit), "--pc")
    found = crashed(tmp_path, "./born", "--jobs", "1", status=1)
    assert found["never_sure"] and "h->mark = MARK;" in suspected(tmp_path, "born.c", found)


def test_a_program_with_addresses_in_its_pool_is_recorded_where_it_wants_to_be(
    tmp_path: Path,
) -> None:
    program = built(tmp_path, "raw.c")
    recorded(tmp_path, program, "--pc")
    sound = crashed(tmp_path, program)
    assert sound["violations"] == 0 and sound["images"] > 100
    assert any("addresses of its own" in line for line in sound["notes"])
    # A recovery that maps it elsewhere hears why it dies.
    elsewhere = ("#define AT 0x10000000000ul", "#define AT 0")
    recorded(tmp_path, built(tmp_path, "raw.c"), "--pc")
    built(tmp_path, "raw.c", elsewhere)
    told = refused(
        tmp_path, "r.parquet", "--pool", "pool", "--recover", "./raw {pool} check", "--no-source"
    )
    assert re.search(r"addresses of its own.*0x10000000000", told)


def test_names_of_cpp_and_rust_are_readable(tmp_path: Path) -> None:
    early = ("        persist(entry);\n        entry->used = true;", "        entry->used = true;")
    recorded(tmp_path, built(tmp_path, "typed.cpp", early), "--pc")
    found = crashed(tmp_path, "./typed", status=1)
    functions = {f["function"] for c in found["causes"] for s in c["late"] for f in s["stack"]}
    assert any("store::Map<" in (name or "") and "insert" in name for name in functions), functions
    cut = (
        "        persist(&self.balances[from]);\n        persist(&self.balances[to]);\n",
        "        persist(&self.balances[from]);\n",
    )
    recorded(tmp_path, built(tmp_path, "ledger.rs", cut), "--pc")
    found = crashed(tmp_path, "./ledger", status=1)
    functions = {f["function"] for c in found["causes"] for s in c["late"] for f in s["stack"]}
    assert any("Ledger::transfer" in (name or "") for name in functions), functions
    assert not any("17h" in (name or "") for name in functions)


CLEARED_EARLY = (
    "    flush(f->left);\n    flush(f->right);\n    fence();\n    f->valid = 0;\n"
    "    flush(&f->valid);\n    fence();\n}\n\nint main",
    "    f->valid = 0;\n    flush(&f->valid);\n    fence();\n    flush(f->left);\n"
    "    flush(f->right);\n    fence();\n}\n\nint main",
)


def test_a_recovery_that_is_cut_must_be_recovered_from(tmp_path: Path) -> None:
    program = built(tmp_path, "redo.c")
    recorded(tmp_path, program, "--pc")
    found = crashed(tmp_path, program, "--recovery", "--depth", "2")
    assert sum(one["cuts_tried"] for one in found["inside"]) > 2
    assert {one["depth"] for one in found["inside"]} == {1, 2}
    recorded(tmp_path, built(tmp_path, "redo.c", CLEARED_EARLY), "--pc")
    assert crashed(tmp_path, program)["violations"] == 0
    found = crashed(tmp_path, program, "--recovery", "--keep", "kept", status=1)
    cause = next(c for one in found["inside"] for c in one["causes"])
    assert "recover" in {f["function"] for s in cause["late"] for f in s["stack"]}
    replay = shlex.split(cause["replay"])[1:]
    assert "left and right differ" in sardonyx(*replay, where=tmp_path, status=1).stdout


def test_a_recovery_that_is_cut_is_held_to_what_was_printed_before(tmp_path: Path) -> None:
    prints = (
        "            apply(f);\n",
        '            apply(f);\n            puts("x"); fflush(stdout);\n',
    )
    holds = (
        "    recover(f);\n",
        "    recover(f);\n    uint64_t bytes = 0;\n"
        '    FILE *acks = fopen(words[3], "r");\n'
        "    while (fgetc(acks) != EOF) bytes++;\n"
        '    if (f->left[0] < bytes / 2) { puts("a value is lost"); return 12; }\n',
    )
    # For a moment the log is forgotten, and what it says is not yet in its place.
    forgets = (
        "    if (!f->valid) return;\n",
        "    if (!f->valid) return;\n    uint64_t now = f->log[0];\n"
        "    f->log[0] = 0;\n    flush(f->log);\n    fence();\n    f->log[0] = now;\n",
    )
    for edits, status in (((), 0), ((forgets,), 1)):
        recorded(tmp_path, built(tmp_path, "redo.c", prints, holds, *edits), "--pc", "--acks")
        sardonyx(
            "crash-test", "search", "r.parquet", "--pool", "pool", "--recovery",
            "--recover", "./redo {pool} check {acks}", "--json", "r.json",
            where=tmp_path, status=status,
        )  # fmt: skip
        found = json.loads((tmp_path / "r.json").read_text())
        assert sum(one["cuts_tried"] for one in found["inside"]) > 2
        assert not found["violations"]
    ends = {c["said"].strip() for one in found["inside"] for c in one["causes"]}
    assert "a value is lost" in ends, ends


def test_a_kept_image_comes_with_a_command_for_gdb(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "both.c", NOW_EARLY), "--pc")
    found = crashed(tmp_path, "./both", "--keep", "kept", status=1)
    command = found["causes"][0]["gdb"]
    assert command in found["shown"]
    ended = subprocess.run(
        ["/bin/sh", "-c", command.replace("gdb --args", "exec")], cwd=tmp_path, check=False
    )
    assert f"exit status {ended.returncode}" == found["causes"][0]["ended"]


def test_a_program_that_writes_through_a_descriptor_hears_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "w.c").write_text(
        '#include "pm.h"\nint main(int c, char **w) { (void)c; int d = open(w[1], O_RDWR | O_CREAT,'
        ' 0644); ftruncate(d, 4096); mmap(0, 4096, 3, MAP_SHARED, d, 0); return write(d, "x", 1) '
        "!= 1; }\n"
    )
    shutil.copy(PROGRAMS / "pm.h", tmp_path)
    subprocess.run(["cc", "-g", "-w", "-o", "w", "w.c"], cwd=tmp_path, check=True)
    recorded(tmp_path, "./w", "--pc")
    told = refused(tmp_path, "r.parquet", "--pool", "pool", "--recover", "./w {pool}")
    assert "through a descriptor" in told and "stores through a mapping" in told
