"""Where results are from: command, date, version, commit, and hashes of the traces.

It stands in ``origin.json`` beside ``results.json``, which the same inputs make the same.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.files import write_text
from sardonyx.questions import Source, TraceSource

NAME = "origin.json"


def commit() -> str | None:
    """What the package was built of, if it was built in a checkout (``tools/build_native.py``)."""
    place = resources.files("sardonyx") / "commit.txt"
    return place.read_text(encoding="utf-8").strip() if place.is_file() else None


def origin(sources: Iterable[Source]) -> dict[str, Any]:
    """The origin of what this process computes from ``sources``."""
    paths = dict.fromkeys(source.path for source in sources if isinstance(source, TraceSource))
    return {
        "command": shlex.join(["sardonyx", *sys.argv[1:]]),
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "sardonyx": _core.VERSION,
        "commit": commit(),
        "traces": [{"path": path, "sha256": _sha256(path)} for path in paths],
    }


def save(document: dict[str, Any], directory: Path) -> None:
    """Write the origin beside results."""
    write_text(directory / NAME, json.dumps(document, indent=1) + "\n")


def date_of(directory: Path) -> str | None:
    """When the results there were made, if they say so."""
    try:
        document = json.loads((directory / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    date = document.get("date") if isinstance(document, dict) else None
    return date if isinstance(date, str) else None


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
