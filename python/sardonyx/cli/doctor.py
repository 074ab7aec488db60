"""``sardonyx doctor``: what of the program works on this machine, by trying it.

What is tried is a small run of the command itself, so that its own error has the remedy.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from sardonyx.cli.common import check_json_target, out, write_json
from sardonyx.cli.options import JsonTo
from sardonyx.draw.grid import grid

#: A trial that takes more seconds than this has failed.
PATIENCE = 60


@dataclass(frozen=True)
class Found:
    """Something that was tried: what it is for, and what is missing, with the remedy."""

    what: str
    needed_for: str
    missing: str | None


def doctor(json_to: JsonTo = None) -> None:
    """Try what needs more than Sardonyx itself, and say what is missing and for what.

    The simulator, `crash`, `merge` of images and `store compare` need nothing else.
    """
    check_json_target(json_to)
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
                Found(what, needed_for, said)
                for (what, needed_for, _), said in zip(checks, missing, strict=True)
            ]
    table = grid("", "what", "for", header_style="dim")
    for one in found:
        state = Text("works", "green") if one.missing is None else Text("missing", "yellow")
        table.add_row(state, one.what, one.needed_for)
    if json_to != "-":
        out.print(table)
        for one in found:
            if one.missing is not None:
                out.print(f"{one.what}: {one.missing}", soft_wrap=True)
    write_json(json_to, [asdict(one) for one in found])


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
