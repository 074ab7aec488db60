"""All tests, one part after the other, whatever fails: ``make test-all``; or the parts named.

What a part prints goes to ``target/test-all/PART.log``; the last lines of a part that fails are
shown. The table at the end says how each part ended and what it took.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "target/test-all"
SHOWN = 40
PYTHON = sys.executable
#: The crates whose assertions are compiled in; `fresh` runs the quick tests without them.
ASSERTED = ("sardonyx", "sardonyx-crash", "sardonyx-merge", "sardonyx-trace", "sardonyx-workload")
CHECKED = [
    word
    for check in ("debug-assertions", "overflow-checks")
    for crate in ASSERTED
    for word in ("--config", f"profile.release.package.{crate}.{check}=true")
]


@dataclass(frozen=True)
class Part:
    """One part: its name, what it is for, its command."""

    name: str
    meaning: str
    command: tuple[str, ...]


PARTS = (
    Part("rust", "all Rust tests, more cases, a new seed, debug assertions, overflow an error",
         (PYTHON, "tools/rust_tests.py", "--all", "--", "--workspace", *CHECKED)),
    Part("python", "all Python tests", (PYTHON, "-m", "pytest")),
    Part("golden", "all golden files", (PYTHON, "tools/golden.py")),
    Part("tables", "tables of the docs whose commands are quick",
         (PYTHON, "tools/tables.py", "--quick")),
    Part("instructions", "instructions that a request takes, against a table",
         (PYTHON, "tools/instructions.py")),
    Part("arm", "the simulator's tests on AArch64, under QEMU", (PYTHON, "tools/arm.py")),
    Part("mutants", "changes to the engine and the layers that tests must notice",
         (PYTHON, "tools/mutants.py", "--minutes", "12")),
    Part("fresh", "the README's commands in bare roots of Debian 12 and 13",
         (PYTHON, "tools/fresh.py")),
)  # fmt: skip


def spent() -> float:
    """Seconds of processor time of the parts that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(part: Part) -> tuple[int, float, float]:
    """Run a part; its status, seconds, and seconds of processor time."""
    log = LOGS / f"{part.name}.log"
    print(f"{part.name}: {part.meaning}", flush=True)
    began, before = time.monotonic(), spent()
    with log.open("w") as out:
        ended = subprocess.run(
            part.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
    if ended.returncode:
        lines = log.read_text(errors="replace").splitlines()
        print(*lines[-SHOWN:], f"({log.relative_to(ROOT)})", sep="\n", flush=True)
    return ended.returncode, time.monotonic() - began, spent() - before


def main() -> int:
    """Run the parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(names))
    asked = parser.parse_args().parts
    unknown = [name for name in asked if name not in names]
    if unknown:
        parser.error(f"there is no part {unknown[0]}: the parts are {', '.join(names)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    rows = [(part, *run(part)) for part in PARTS if not asked or part.name in asked]
    print(f"\nseed {os.environ.get('SARDONYX_TEST_SEED', 'none')}")
    for part, status, seconds, processor in rows:
        said = "passed" if status == 0 else f"failed, status {status}"
        print(f"{part.name:12} {seconds / 60:6.1f} min {processor / 60:6.1f} of processor  {said}")
    failed = sum(status != 0 for _, status, _, _ in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
