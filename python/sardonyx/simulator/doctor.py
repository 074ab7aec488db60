"""``doctor``: what of the program works on this machine, by trying it.

What is tried is a small run of the command itself, so that its own error has the remedy.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from sardonyx.answer import Listed
from sardonyx.api.asked import Doctor
from sardonyx.draw.grid import grid
from sardonyx.runs.scheduler import Watch

#: A trial that takes more seconds than this has failed.
PATIENCE = 60


def answer(_: Doctor, __: Watch | None) -> Listed:
    """What was tried."""
    with TemporaryDirectory(prefix="sardonyx.") as scratch:
        checks = [
            ("simulator", "all designs, traces and programs", lambda: _simulates(scratch)),
            ("recorder", "trace record; crash-test of what it records", lambda: _records(scratch)),
            ("tracing of programs", "crash-test files", lambda: _follows(scratch)),
            ("nbdkit", "store serve", lambda: _program("nbdkit", "apt-get install nbdkit")),
            ("hq", "sweep --hq", _queue),
            ("xarray", "Results.to_xarray in Python", lambda: _module("xarray")),
        ]
        with ThreadPoolExecutor() as pool:
            missing = pool.map(lambda check: check[2](), checks)
            found = [
                {"what": what, "needed_for": needed_for, "missing": said}
                for (what, needed_for, _), said in zip(checks, missing, strict=True)
            ]
    return Listed("doctor", found)


def tell(people: Console, answer: Listed) -> None:
    """What works, and what is missing, with the remedy."""
    table = grid("", "what", "for", header_style="dim")
    for one in answer:
        state = Text("works", "green") if one["missing"] is None else Text("missing", "yellow")
        table.add_row(state, one["what"], one["needed_for"])
    people.print(table)
    for one in answer:
        if one["missing"] is not None:
            people.print(f"{one['what']}: {one['missing']}", soft_wrap=True)


def _ran(*words: str) -> str | None:
    """The error of one of our commands, if it ends with one."""
    command = (sys.executable, "-m", "sardonyx", *words)
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"`sardonyx {' '.join(words[:2])}` had not ended after {PATIENCE} s"
    if ended.returncode == 0:
        return None
    lines = (ended.stderr or ended.stdout).splitlines() or [f"status {ended.returncode}"]
    return lines[-1].removeprefix("error: ")


def _simulates(scratch: str) -> str | None:
    target = str(Path(scratch) / "compared")
    return _ran("compare", "synth:rung-60:1000", "--designs", "esd", "--out", target)


def _records(scratch: str) -> str | None:
    return _ran("trace", "record", "-o", str(Path(scratch) / "true.parquet"), "--", "true")


def _follows(scratch: str) -> str | None:
    folder = Path(scratch) / "files"
    folder.mkdir()
    words = ("crash-test", "files", "--files", str(folder), "--list", "--")
    return _ran(*words, "touch", str(folder / "new"))


def _program(name: str, remedy: str) -> str | None:
    return None if shutil.which(name) else f"no {name} in PATH; on Debian: {remedy}"


def _queue() -> str | None:
    if said := _module("hyperqueue", "'sardonyx[hq]'"):
        return said
    home = "https://github.com/It4innovations/hyperqueue/releases"
    return None if shutil.which("hq") else f"no hq in PATH; it is in HyperQueue's release: {home}"


def _module(name: str, package: str | None = None) -> str | None:
    there = importlib.util.find_spec(name) is not None
    return None if there else f"pip install {package or name}"
