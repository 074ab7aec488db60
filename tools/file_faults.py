"""How many images it takes to find each fault that is planted in programs that write files.

``python tools/file_faults.py [--seeds N] [--write] [NAME..]`` builds the programs of
crates/crash-files/tests/programs, runs each fault with all images in one order and with those first
that differ in what the recovery reads, and prints both counts, medians over seeds; ``--write``
writes docs/tables/crash-files-order.tsv. Stores of keys need their libraries' headers.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sardonyx import _core
from sardonyx.crash_tests.files import ready_made

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "crates/crash-files/tests/programs"
TABLE = ROOT / "docs/tables/crash-files-order.tsv"
sys.path.insert(0, str(ROOT / "tests/python"))
#: Quantiles of the distribution.
QUANTILES = (0.25, 0.5, 0.75, 0.9, 1.0)
#: Stores, and the files whose syncs are left out.
STORES = {
    "lmdb": ["data.mdb"],
    "leveldb": [".log", ".ldb", "MANIFEST"],
    "rocksdb": [".log", ".sst", "MANIFEST"],
}


@dataclass(frozen=True)
class Fault:
    """A fault: its program and recovery, both with {dir}, and the file system on which it shows."""

    name: str
    program: list[str]
    recover: list[str]
    platform: str = "ext4-ordered"


def planted(made: Path) -> Iterator[Fault]:
    """Every fault, once its program is compiled."""
    from test_crash_files import ERRORS, NAMES, PLATFORMS, acks

    cases = str(made / "cases")
    subprocess.run(
        ["cc", "-g", "-O1", "-o", cases, str(PROGRAMS / "cases.c"), "-lpthread"], check=True
    )
    for name in NAMES:
        if name not in ERRORS:
            check = [cases, name, "bad", "check", "{dir}", acks(name)]
            run = [cases, name, "bad", "run", "{dir}"]
            yield Fault(name, run, check, PLATFORMS.get(name, "ext4-ordered"))
    shim = str(made / "no_sync.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, str(PROGRAMS / "no_sync.c")], check=True)
    for name, syncs in STORES.items():
        store = ["cc", "-g", "-w", f"-DSTORE={name}", "-o", str(made / name)]
        if subprocess.run([*store, str(PROGRAMS / "stores.c"), f"-l{name}"]).returncode:
            print(f"{name}: no headers, left out", file=sys.stderr)
            continue
        for sync in syncs:
            run = ["env", f"LD_PRELOAD={shim}", f"NO_SYNC={sync}", str(made / name), "{dir}"]
            yield Fault(f"{name} without {sync}", run, shlex.split(ready_made(name, "{acks}")))


def images(fault: Fault, made: Path, seed: int, reads_first: bool, budget: float) -> int | None:
    """The number of images up to the first violation, if the budget brings one."""
    from test_crash_files import folder

    place = made / "d"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if fault.program[0] != "env":
        folder(place)
    asked = {
        "program": [word.replace("{dir}", str(place)) for word in fault.program],
        "files": str(place),
        "recover": fault.recover,
        "platform": fault.platform,
        "reads_first": reads_first,
        "seed": seed,
        "threads": 1,
        "budget": budget,
        "ok": [0],
    }
    found = json.loads(_core.crash_files(json.dumps(asked), None))
    first: int | None = found["first_violation_images"]
    return first


def main() -> None:
    """Run the faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=20)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for fault in planted(Path(folder)):
            if asked.names and fault.name not in asked.names:
                continue
            counts: list[float] = []
            for reads_first in (False, True):
                some = [
                    images(fault, Path(folder), seed, reads_first, asked.budget)
                    for seed in range(1, asked.seeds + 1)
                ]
                counts.append(float(statistics.median(one or float("inf") for one in some)))
            rows.append((fault.name, counts[0], counts[1]))
            print(*rows[-1], sep="\t", flush=True)
    lines = ["fault\tin one order\tread first"]
    lines += ["\t".join((name, f"{old:g}", f"{new:g}")) for name, old, new in rows]
    for quantile in QUANTILES:
        told = [f"**{quantile:.0%} of {len(rows)}**"]
        for column in (1, 2):
            ordered = sorted(float(row[column]) for row in rows)
            told.append(f"{ordered[max(0, round(quantile * len(ordered)) - 1)]:g}")
        lines.append("\t".join(told))
        print(lines[-1])
    if asked.write:
        TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
