"""Instructions that a random request takes in the simulator, beside a table.

Each row of the benchmark ``requests`` runs twice under callgrind, the second time with more
requests, and the difference counts. It does not depend on the machine's load, so a row may be 2 %
off ``tests/instructions.tsv`` at most, either way: ``--write`` writes the table anew. Without
valgrind, or with another compiler or processor than the table's, nothing is counted. ``--where
ROW`` says instead which part of the simulator takes them, beside what each part may take.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests/instructions.tsv"
ROWS = ("engine", "no-encryption", "sca", "baseline", "esd", "dewrite")
#: Requests of a pass; the benchmark makes two passes.
FEW, MANY, PASSES = 4_000, 12_000, 2
BOUND = 0.02
#: Parts of the simulator: what they do, the names of their functions (the first that fits has one),
#: and what a request of the engine alone may spend there: the goal of 2,200, divided by us.
PARTS = (
    ("channel: selecting, commands, banks", "channel_acts|::issued$|wake_channel", 1000),
    ("queues: slots and lists", "engine::slots|::enqueue$|slots_are_free", 250),
    ("steps: making, starting, ending", "plan::steps|start_ready|start_fresh|::end$", 200),
    ("events and answers", "advance_until|::notify$|engine::booking|::answers$|add_notify", 350),
    ("plans and lines in flight", r"sardonyx::plan::", 200),
    ("medium's bytes", "medium::image|medium::segments", 100),
    ("design", "controller::|aes::|hashbrown", 0),
    ("the benchmark itself, and the rest", "", 100),
)


def build() -> str:
    """Build the benchmark as a release is built; its file."""
    command = ("cargo", "bench", "--workspace", "--bench", "requests", "--no-run", "--locked")
    told = subprocess.run(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False,
        env=os.environ | {"CARGO_PROFILE_RELEASE_DEBUG": "0"},
    )  # fmt: skip
    found = re.search(r"Executable .*\((.*)\)", told.stderr)
    if told.returncode or not found:
        raise SystemExit(told.stderr)
    return str(ROOT / found[1])


def counted(bench: str, row: str, requests: int, profile: str = os.devnull) -> int:
    """Instructions of a whole run; callgrind writes its profile to a file."""
    valgrind = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}")
    run = (*valgrind, bench, "--count", row, "--requests", str(requests))
    told = subprocess.run(run, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", told.stderr)
    if not found:
        raise SystemExit(f"instructions: callgrind says nothing of {row}: {told.stderr}")
    return int(found[1])


def by_function(profile: Path) -> Counter[str]:
    """Instructions of each function of a profile, without those that it calls."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    function, called = "", False
    for line in profile.read_text().splitlines():
        if found := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
            name = names.setdefault(found[1], found[2] or "")
            function = function if line.startswith("c") else name
        elif line.startswith("calls="):
            called = True
        elif found := re.fullmatch(r"(?:[+-]?\d+|\*) (\d+)", line):
            counts[function] += 0 if called else int(found[1])
            called = False
    return counts


def where(bench: str, row: str) -> None:
    """Say what each part of the simulator takes of a request."""
    with tempfile.TemporaryDirectory() as folder:
        profiles = [Path(folder, str(requests)) for requests in (FEW, MANY)]
        for requests, profile in zip((FEW, MANY), profiles, strict=True):
            counted(bench, row, requests, str(profile))
        few, many = map(by_function, profiles)
    of_part: Counter[str] = Counter()
    for function, count in many.items():
        part = next(part for part, names, _ in PARTS if re.search(names, function))
        of_part[part] += count - few[function]
    for part, _, budget in PARTS:
        of_a_request = of_part[part] / (PASSES * (MANY - FEW))
        print(f"{part:36} {of_a_request:7.0f}" + (f" of {budget:5}" if row == "engine" else ""))


def main() -> int:
    """Count and compare, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--write", action="store_true", help="write the table anew")
    either.add_argument("--where", choices=ROWS, help="the row whose instructions to divide")
    asked = parser.parse_args()
    write = asked.write
    version = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    here = f"{' '.join(version.stdout.split()[:2])}, {platform.machine()}"
    first, *lines = TABLE.read_text().splitlines() if TABLE.exists() else [""]
    if not shutil.which("valgrind"):
        print("skipped: instructions: there is no valgrind")
        return 0
    if asked.where:
        where(build(), asked.where)
        return 0
    if not write and first != here:
        print(f"skipped: instructions: the table is of {first}, and this is {here}")
        return 0
    known = dict(line.split("\t") for line in lines)
    bench, failed, rows = build(), 0, [here]
    for row in ROWS:
        more = counted(bench, row, MANY) - counted(bench, row, FEW)
        count = round(more / (PASSES * (MANY - FEW)))
        rows.append(f"{row}\t{count}")
        wanted = int(known.get(row, 0))
        off = not write and abs(count - wanted) > BOUND * wanted
        failed += off
        print(f"{row:14} {count:7} instructions a request, {wanted} in the table{' !' * off}")
    if write:
        TABLE.write_text("\n".join(rows) + "\n")
    elif failed:
        print(f"{failed} rows are off by more than 2 %; if that is meant, {sys.argv[0]} --write")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
