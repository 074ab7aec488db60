"""Run the Rust tests, a process each on all processors, and write down what each costs.

``python tools/rust_tests.py`` builds with the profile for tests (``.cargo/testing.toml``) and runs
what bears no mark. A mark is the reason of ``#[ignore]``: ``slow: ..`` and ``machine: ..`` run with
``--all`` too, ``by hand: ..`` with ``--show`` only. A test that prints a line ``skipped: why`` is
counted as skipped.

The processor time of each test, with its child processes, goes to ``target/times.tsv``;
``tools/costs.py`` has the rules.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import costs

ROOT = Path(__file__).parents[1]
CARGO = ("cargo", "--config", str(ROOT / ".cargo/testing.toml"))
MARKS = ("slow", "machine", "by hand")


@dataclass(frozen=True)
class Program:
    """A program of tests that cargo has built."""

    crate: str
    target: str
    file: str
    folder: str

    @property
    def name(self) -> str:
        """Its name in reports."""
        return self.crate if self.target == self.crate else f"{self.crate}/{self.target}"


@dataclass(frozen=True)
class Test:
    """One test of a program."""

    program: Program
    name: str
    mark: str | None

    @property
    def label(self) -> str:
        """Its name in reports: crate, target and path."""
        return f"{self.program.name}::{self.name}"


@dataclass(frozen=True)
class Ended:
    """How a test ended."""

    test: Test
    status: int
    seconds: float
    said: str

    @property
    def skipped(self) -> str | None:
        """Why it was skipped, if it was."""
        found = re.search(r"^skipped: (.*)$", self.said, re.MULTILINE)
        return found[1] if found else None


def build(arguments: list[str]) -> list[Program]:
    """Build all programs of tests; a failure ends this one."""
    command = (*CARGO, "test", "--release", "--locked", "--no-run")
    told = ("--message-format", "json-render-diagnostics")
    cargo = subprocess.run(
        (*command, *arguments, *told), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if cargo.returncode:
        raise SystemExit(cargo.returncode)
    programs = []
    for message in map(json.loads, cargo.stdout.splitlines()):
        if message["reason"] != "compiler-artifact" or not message["profile"]["test"]:
            continue
        if message["executable"] is None:
            continue
        manifest = Path(message["manifest_path"])
        crate = re.search(r"^name = \"(?:sardonyx-)?([^\"]+)", manifest.read_text(), re.MULTILINE)
        target = message["target"]["name"].replace("_", "-").removeprefix("sardonyx-")
        name = crate[1] if crate else manifest.parent.name
        programs.append(Program(name, target, message["executable"], str(manifest.parent)))
    return sorted(programs, key=lambda program: program.name)


def listed(program: Program, *options: str) -> list[str]:
    """The names of a program's tests."""
    command = (program.file, "--list", "--format", "terse", *options)
    out = subprocess.run(command, cwd=program.folder, capture_output=True, text=True, check=True)
    return [line.removesuffix(": test") for line in out.stdout.splitlines() if ": test" in line]


def tests(program: Program) -> Iterator[Test]:
    """All tests of a program with their marks, which a run of those that are ignored prints."""
    ignored = listed(program, "--ignored")
    marks = {}
    if ignored:
        command = (program.file, "--exact", *ignored)
        out = subprocess.run(
            command, cwd=program.folder, capture_output=True, text=True, check=True
        )
        said = re.findall(r"^test (\S+) \.\.\. ignored(?:, (.*))?$", out.stdout, re.MULTILINE)
        marks = dict(said)
    for name in listed(program):
        reason = marks.get(name)
        mark = None if reason is None else reason.partition(":")[0]
        if mark is not None and mark not in MARKS:
            raise SystemExit(
                f"{program.name}::{name}: the reason of #[ignore] begins with none of "
                f"`slow:`, `machine:` and `by hand:`"
            )
        yield Test(program, name, mark)


def run(test: Test, environment: dict[str, str]) -> Ended:
    """Run one test in a process of its own."""
    command = (test.program.file, "--exact", test.name, "--include-ignored", "--nocapture")
    reading, writing = os.pipe()
    with open(os.devnull) as nothing:
        process = subprocess.Popen(
            command,
            cwd=test.program.folder,
            env=environment | {"SARDONYX_TEST": test.label},
            stdin=nothing,
            stdout=writing,
            stderr=writing,
        )
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(test, process.returncode, usage.ru_utime + usage.ru_stime, said)


def main() -> int:
    """Build, run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="marked tests too")
    parser.add_argument(
        "--only", metavar="WORD", action="append", default=[], help="tests whose name has this"
    )
    parser.add_argument(
        "--show", metavar="WORD", default="", help="those, whatever their mark, and what they print"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("cargo", nargs="*", help="for cargo, as in -- --package sardonyx-trace")
    asked = parser.parse_args()
    programs = build(asked.cargo or ["--workspace"])
    every = [test for program in programs for test in tests(program)]
    marked = MARKS if asked.show else ("slow", "machine") if asked.all else ()
    words = [*asked.only, asked.show] if asked.show else asked.only
    chosen = [test for test in every if test.mark is None or test.mark in marked]
    chosen = [test for test in chosen if not words or any(word in test.label for word in words)]
    if not chosen:
        print(f"no test has {' or '.join(words)} in its name", file=sys.stderr)
        return 2
    known = costs.known("rust")
    chosen.sort(key=lambda test: -known.get(test.label, 1.0))
    spies = costs.spies()
    plain = os.environ | {"PATH": f"{spies}{os.pathsep}{os.environ['PATH']}"}
    ends: list[Ended] = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        starts = [
            pool.submit(run, test, dict(os.environ) if test.mark == "machine" else plain)
            for test in chosen
        ]
        for started in starts:
            ended = started.result()
            ends.append(ended)
            if ended.status or asked.show:
                print(f"---- {ended.test.label}, status {ended.status}\n{ended.said}")
    measured = [costs.Cost("rust", one.test.label, one.seconds, one.test.mark) for one in ends]
    wrong = costs.judge("rust", measured, whole=not words and not asked.cargo)
    skipped = [one for one in ends if one.skipped is not None and one.status == 0]
    for one in skipped:
        print(f"skipped {one.test.label}: {one.skipped}")
    failed = [one for one in ends if one.status]
    for one in failed:
        print(f"failed  {one.test.label}")
    for line in wrong:
        print(line)
    left = len(every) - len(chosen)
    total = sum(one.seconds for one in ends)
    print(
        f"Rust: {len(ends) - len(failed) - len(skipped)} passed, {len(failed)} failed, "
        f"{len(skipped)} skipped, {left} not asked for, {total:.0f} s of processor time"
    )
    # A run in which every test was skipped says nothing.
    return 1 if failed or wrong or len(skipped) == len(ends) else 0


if __name__ == "__main__":
    sys.exit(main())
