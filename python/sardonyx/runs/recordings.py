"""The recordings that come with the program, by name: ``redis`` is ``traces/redis.parquet``.

An installed package has them inside it, a checkout beside its sources. A file of that name in the
current directory comes first; a folder does not, since it is no trace.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

SUFFIX = ".parquet"
#: The folder of recordings for ``compare --threads``, which do not run by default.
THREADS = "threads"
#: The folders of recordings: in the installed package, and in a checkout.
PLACES = (Path(__file__).parents[1] / "traces", Path(__file__).parents[3] / "traces")


@cache
def recordings() -> dict[str, Path]:
    """The path of each recording by its name, in the order of names."""
    return _in("")


@cache
def threaded() -> dict[str, Path]:
    """The paths of recordings for ``compare --threads``, which are not in ``recordings``."""
    return _in(THREADS)


def _in(part: str) -> dict[str, Path]:
    found = next(filter(None, (sorted((place / part).glob(f"*{SUFFIX}")) for place in PLACES)), ())
    return {path.stem: path for path in found}


def known() -> tuple[dict[str, Path], dict[str, Path]]:
    """Both, as the native module takes them."""
    return recordings(), threaded()


def recording(name: str) -> Path | None:
    """The path of the recording of this name."""
    return recordings().get(name) or threaded().get(name)


def path_of(text: str) -> str:
    """The path of the recording that ``text`` names; ``text`` itself if it names a file or none."""
    found = recording(text)
    return text if found is None or os.path.isfile(text) else str(found)
