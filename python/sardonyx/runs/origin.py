"""Where results are from: command, date, version, commit, hashes of traces and designs in Python.

It stands in ``origin.json`` beside ``results.json``, which the same inputs make the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from sardonyx import _core, layers
from sardonyx.answer import ASKED
from sardonyx.files import open_regular, read_text, write_text

NAME = "origin.json"


def commit() -> str | None:
    """What the package was built of, if it was built in a checkout (``tools/build_native.py``)."""
    place = resources.files("sardonyx") / "commit.txt"
    return place.read_text(encoding="utf-8").strip() if place.is_file() else None


@dataclass(frozen=True, slots=True)
class Origin:
    """What results say of themselves; empty where they do not, for they are results all the same.

    ``hashes`` are the SHA-256 of files of traces, designs and machines, by path.
    """

    said: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    #: The command, and what it was asked.
    question: Mapping[str, Any] = field(default_factory=dict)


#: The command, where one command runs others.
LINE: ContextVar[str | None] = ContextVar("LINE", default=None)


def line() -> str:
    """The command that runs now."""
    return LINE.get() or shlex.join(["sardonyx", *sys.argv[1:]])


def origin(
    traces: Iterable[str | None] = (),
    designs: Iterable[str] = (),
    question: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The origin of what this process computes of ``designs`` from files of ``traces``, asked the
    ``question`` or that which is answered now.
    """
    paths = dict.fromkeys(path for path in traces if path is not None)
    asked = question or ASKED.get()
    machine = (asked or {}).get("machine")
    files = [machine] if isinstance(machine, str) and os.path.isfile(machine) else []
    return {
        "command": line(),
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "sardonyx": _core.VERSION,
        "commit": commit(),
        "traces": [{"path": path, "sha256": _sha256(path)} for path in paths],
        "designs": classes(designs),
        "machines": [{"path": path, "sha256": _sha256(path)} for path in files],
        "question": asked,
    }


def here() -> Origin:
    """What this process says of itself, but for the time: pages that no document stands behind have
    the same bytes each time.
    """
    said = {"command": line(), "commit": commit() or ""}
    return Origin({name: each for name, each in said.items() if each})


def classes(designs: Iterable[str]) -> list[dict[str, str]]:
    """Which of the designs are classes in Python, of which file, and the hash of what it held."""
    found = {each.name: each for design in designs for each in layers.parts_of(design)}
    return [
        {"name": name, "path": str(each.file or ""), "sha256": each.sha256}
        for name, each in found.items()
    ]


def save(document: dict[str, Any], directory: Path) -> None:
    """Write the origin beside results."""
    write_text(directory / NAME, json.dumps(document, indent=1) + "\n")


def load(directory: Path) -> Origin:
    """The origin beside results; what of it is missing or damaged is left out."""
    try:
        document = json.loads(read_text(directory / NAME))
    except (OSError, ValueError, RecursionError):
        return Origin()
    return read(document)


def read(document: object) -> Origin:
    """The parts of an origin that are of the form of :func:`origin`."""
    if not isinstance(document, dict):
        return Origin()
    names = ("command", "date", "sardonyx", "commit")
    said = {name: document[name] for name in names if isinstance(document.get(name), str)}
    lists = [document.get(name) for name in ("traces", "designs", "machines")]
    listed = [
        each for one in lists if isinstance(one, list) for each in one if isinstance(each, dict)
    ]
    hashes = {
        each["path"]: each["sha256"]
        for each in listed
        if isinstance(each.get("path"), str) and isinstance(each.get("sha256"), str)
    }
    asked = document.get("question")
    return Origin(said, hashes, asked if isinstance(asked, dict) else {})


def date_of(directory: Path) -> str | None:
    """When the results there were made, if they say so."""
    return load(directory).said.get("date")


def _sha256(path: str) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
