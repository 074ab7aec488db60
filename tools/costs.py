"""What each test costs, and the rules that keep the tiers as they are.

Both runners of tests report here: seconds of processor time, with those of child processes. A test
above ``LISTED`` is listed. In a whole quick run one above ``MOST`` and above ``SHARE`` of all of
them is an error: a share, since another machine needs other seconds. So is one without the mark
``machine`` that starts a program of ``MACHINE``. Scripts of the same names notice that: they come
first in the PATH of tests without the mark.
"""

from __future__ import annotations

import fnmatch
import os
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "target/times.tsv"
HEAD = "runner\ttest\tseconds\tmark"
LISTED = 1.0
MOST = 3.0
SHARE = 0.035
SPIES = ROOT / "target/spies"
SEEN = SPIES / "seen"
#: Programs that `make test` neither needs nor starts.
MACHINE = (
    "apt-get",
    "borg",
    "chromium",
    "chromium-browser",
    "debootstrap",
    "fio",
    "google-chrome",
    "initdb",
    "mke2fs",
    "nbdcopy",
    "nbdinfo",
    "nbdkit",
    "nbdsh",
    "postgres",
    "qemu-img",
    "qemu-x86_64",
    "redis-cli",
    "redis-server",
    "sqlite3",
)


@dataclass(frozen=True)
class Cost:
    """One test: who ran it, its name, seconds of processor time, its mark."""

    runner: str
    test: str
    seconds: float
    mark: str | None

    def row(self) -> str:
        """Its line of the file."""
        return f"{self.runner}\t{self.test}\t{self.seconds:.2f}\t{self.mark or ''}"


def read() -> list[Cost]:
    """The measurements of the last runs; none where there was no run."""
    if not FILE.is_file():
        return []
    rows = [line.split("\t") for line in FILE.read_text().splitlines()[1:]]
    return [Cost(runner, test, float(took), mark or None) for runner, test, took, mark in rows]


def known(runner: str) -> dict[str, float]:
    """Seconds of each test of a runner in earlier runs."""
    return {cost.test: cost.seconds for cost in read() if cost.runner == runner}


def spies() -> Path:
    """The folder to put before PATH: scripts that write down that they were started, and fail."""
    SPIES.mkdir(parents=True, exist_ok=True)
    for name in MACHINE:
        place, new = SPIES / name, SPIES / f".{name}.{os.getpid()}"
        new.write_text(f'#!/bin/sh\necho "$SARDONYX_TEST\t{name}" >> "{SEEN}"\nexit 97\n')
        new.chmod(0o755)
        new.replace(place)
    return SPIES


def started() -> list[str]:
    """What the spies have seen since this was last asked, as errors."""
    if not SEEN.is_file():
        return []
    lines = sorted(set(SEEN.read_text().splitlines()))
    SEEN.unlink()
    seen = (line.partition("\t") for line in lines)
    return [f"{test} starts {name}: it needs the mark `machine`" for test, _, name in seen]


def judge(runner: str, costs: Iterable[Cost], whole: bool) -> list[str]:
    """Write the measurements down, list what is long, and return what breaks a rule.

    If ``whole``, the file keeps nothing of this runner's earlier runs. If not, no time is an error;
    neither with ``SARDONYX_TEST_SEED`` set, where tests try all that they can.
    """
    costs = list(costs)
    ran = {cost.test for cost in costs}
    earlier = [cost for cost in read() if cost.runner != runner or not whole]
    kept = [cost for cost in earlier if cost.runner != runner or cost.test not in ran]
    rows = sorted(kept + costs, key=lambda cost: (cost.runner, -cost.seconds, cost.test))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join([HEAD, *(cost.row() for cost in rows)]) + "\n")
    unmarked = [cost for cost in costs if cost.mark is None]
    for cost in sorted(unmarked, key=lambda cost: -cost.seconds):
        if cost.seconds > LISTED:
            print(f"{cost.seconds:6.1f} s  {cost.test}")
    for name, (number, seconds) in by_suite(costs).items():
        print(f"{seconds:6.0f} s  {number:4} tests: {name}")
    judged = whole and "SARDONYX_TEST_SEED" not in os.environ
    most = max(MOST, SHARE * sum(cost.seconds for cost in unmarked))
    long = [
        f"{cost.test} takes {cost.seconds:.1f} s of processor time, above {most:.1f}: "
        "shorten it, or give it the mark `slow`"
        for cost in unmarked
        if judged and cost.seconds > most
    ]
    return long + started()


def suites() -> dict[str, list[str]]:
    """The question that each suite answers, and patterns of its tests' names."""
    with (ROOT / "tests/suites.toml").open("rb") as file:
        told: dict[str, list[str]] = tomllib.load(file)
    return told


def by_suite(costs: Iterable[Cost]) -> dict[str, tuple[int, float]]:
    """The number of tests and their seconds, by the suite that they are in."""
    number: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for cost in costs:
        name = suite(cost.test)
        number[name] += 1
        seconds[name] += cost.seconds
    return {name: (number[name], seconds[name]) for name in suites() if number[name]}


def suite(test: str) -> str:
    """The suite of a test: the first that has a pattern for it."""
    for name, patterns in suites().items():
        if any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns):
            return name
    raise LookupError(f"no suite in tests/suites.toml has a pattern for {test}")
