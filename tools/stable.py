"""What a release promises (docs/start/stability.md), as lines of ``tests/stable.txt``.

``python tools/stable.py`` names what the snapshot has and the program has no more; with ``--write``
it writes the snapshot, at a release.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sardonyx import _core, api
from sardonyx.cli import common

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests/stable.txt"


def abi(header: str) -> Iterator[str]:
    """Functions, types and their fields."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.S)
    plain = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", plain, flags=re.M)
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", plain, re.S):
        # The order of fields is the layout.
        yield f"{name} {{ {' '.join(body.split())} }}"
    outside = re.sub(r"typedef struct \w+ \{.*?\} \w+;", "", plain, flags=re.S)
    for declared in re.findall(r"[\w ]+\*?\bsardonyx_\w+\(.*?\);", outside, re.S):
        yield " ".join(declared.split())


def python() -> Iterator[str]:
    """Functions and their parameters, with what may be left out."""
    for name in dir(api):
        function = getattr(api, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        yield f"{name}()"
        for each in inspect.signature(function).parameters.values():
            needed = "" if each.default is inspect.Parameter.empty else " = .."
            yield f"{name}({each.name}{needed})"


def trace() -> Iterator[str]:
    """Columns of a trace file."""
    for column in pq.read_schema(ROOT / "traces/redis.parquet"):
        yield f"{column.name}: {column.type}"


def fields(value: Any, place: str = "") -> Iterator[str]:
    """The names in a document, with their types; those below names of keys are all alike."""
    if isinstance(value, dict):
        for name, inner in value.items():
            below = "*" if place.endswith(("parameters", "variant", "causes")) else name
            yield from fields(inner, f"{place}.{below}".lstrip("."))
    elif isinstance(value, list):
        for inner in value[:1]:
            yield from fields(inner, f"{place}[]")
    else:
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else None
        yield f"{place}: {kind or type(value).__name__}"


def results() -> Iterator[str]:
    """Names in a comparison's document."""
    with tempfile.TemporaryDirectory() as place:
        found = api.compare("redis", designs=["baseline", "esd"], limit=300, out=place)
        yield from fields(json.loads(json.dumps(found.to_document())))


def keys() -> Iterator[str]:
    """Keys of all machines that come with the program."""
    for machine in json.loads(_core.machines()):
        yield from json.loads(_core.machine(machine["name"], []))["parameters"]


def statuses() -> Iterator[str]:
    """Exit statuses."""
    for name in ("CHECK_FAILED", "BAD_INPUT", "NOTHING_SAID"):
        yield f"{getattr(common, name)}: {name}"


def snapshot() -> list[str]:
    """A line for each promise."""
    parts = {
        "abi": abi((ROOT / "crates/c/include/sardonyx.h").read_text()),
        "python": python(),
        "trace": trace(),
        "results": results(),
        "key": keys(),
        "status": statuses(),
    }
    return sorted({f"{kind}\t{each}" for kind, found in parts.items() for each in found})


def broken(kept: list[str], now: list[str]) -> list[str]:
    """What was promised and is no more."""
    return sorted({*kept} - {*now})


def main() -> int:
    """Compare, or write."""
    now = snapshot()
    if "--write" in sys.argv[1:]:
        KEPT.write_text("\n".join(now) + "\n")
        return 0
    lost = broken(KEPT.read_text().splitlines(), now)
    print(*(f"gone: {each}" for each in lost), sep="\n")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
