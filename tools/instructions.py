"""Instructions that a random request takes in the simulator, beside a table.

Each row of the benchmark ``requests`` runs twice under callgrind, the second time with more
requests, and the difference counts. It does not depend on the machine's load, so a row may be 2 %
off ``tests/instructions.tsv`` at most, either way: ``--write`` writes the table anew. Without
valgrind, or with another compiler or processor than the table's, nothing is counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests/instructions.tsv"
ROWS = ("engine", "no-encryption", "sca", "baseline", "esd", "dewrite")
#: Requests of a pass; the benchmark makes two passes.
FEW, MANY, PASSES = 4_000, 12_000, 2
BOUND = 0.02


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


def counted(bench: str, row: str, requests: int) -> int:
    """Instructions of a whole run."""
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    run = (*valgrind, bench, "--count", row, "--requests", str(requests))
    told = subprocess.run(run, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", told.stderr)
    if not found:
        raise SystemExit(f"instructions: callgrind says nothing of {row}: {told.stderr}")
    return int(found[1])


def main() -> int:
    """Count and compare, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table anew")
    write = parser.parse_args().write
    version = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    here = f"{' '.join(version.stdout.split()[:2])}, {platform.machine()}"
    first, *lines = TABLE.read_text().splitlines() if TABLE.exists() else [""]
    if not shutil.which("valgrind"):
        print("skipped: instructions: there is no valgrind")
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
