"""Where output goes, proved before work begins: nothing is replaced silently, room is there."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from sardonyx._core import SardonyxError
from sardonyx.files import check_space

RESULTS = Path("results")
LATEST = RESULTS / "latest"


def fresh(first: str) -> Path:
    """A new folder ``results/<time>-<first trace>``."""
    if os.path.lexists(LATEST) and not LATEST.is_symlink():
        raise SardonyxError(f"{LATEST}: is not a link to the newest results; move it or give --out")
    name = re.sub(r"[^\w.-]+", "-", first)[:60]
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    place, count = RESULTS / stem, 1
    while os.path.lexists(place):
        count += 1
        place = RESULTS / f"{stem}-{count}"
    return place


def kept_runs(directory: Path | None) -> Path:
    """Where the runs of a sensitivity are kept: with the results, or with those of all commands."""
    return (RESULTS if directory is None else directory) / "sensitivity"


def point_latest(place: Path) -> None:
    """``results/latest`` leads to this folder, and never to none between."""
    with tempfile.TemporaryDirectory(prefix=".sardonyx.", dir=RESULTS) as scratch:
        link = Path(scratch, "latest")
        link.symlink_to(place.name)
        link.replace(LATEST)


def check_replaced(directory: Path, mark: str = "results.json") -> str | None:
    """An error if files there are no results; a note if they are, for they will be replaced.

    ``mark`` is the file by which results of the command are known.
    """
    if not directory.is_dir():
        return None
    files = sorted(path.name for path in directory.iterdir() if not path.is_dir())
    if not files:
        return None
    if mark not in files:
        raise SardonyxError(
            f"--out {directory}: holds {files[0]} and no {mark}; name a new directory, or one that "
            "this command wrote"
        )
    from sardonyx.runs import origin  # what it needs takes longer than most of a short command

    date = origin.date_of(directory)
    return f"{directory}: the results there{f' of {date}' if date else ''} will be replaced"


@contextmanager
def output_directory(path: Path) -> Iterator[None]:
    """Make the directory and prove that a file can be written there; an error leaves no new one."""
    if path.exists() and not path.is_dir():
        raise SardonyxError(f"--out {path}: is a file; name a directory")
    if not all(place.is_dir() for place in path.parents if place.exists()):
        raise SardonyxError(f"--out {path}: is below a file; name another directory")
    check_space(path)
    made = [place for place in (path, *path.parents) if not place.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
        yield
    except BaseException:
        for place in made:
            with suppress(OSError):  # not made yet, or somebody else's files are in it by now
                place.rmdir()
        raise
