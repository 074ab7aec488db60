"""Files that points read, found by their content, and watched while points run.

A trace is known by its SHA-256. So a worker may have it under another path, and one that changed
while a sweep ran is told from the one that the sweep began with.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sardonyx import _core
from sardonyx.files import open_regular
from sardonyx.runs.recordings import recording

#: The folders in which a worker looks for traces, as a search path.
SEARCH = "SARDONYX_TRACES"
#: The prefix of a trace that is named by its content.
BY_CONTENT = "sha256:"
Signature = tuple[tuple[str, int, int, int], ...]


def content(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files below a folder."""
    if not path.is_dir():
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for file_path in _files(path):
        name = file_path.relative_to(path).as_posix()
        whole.update(f"{content(file_path)} {name}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    return sum(part[1] for part in signature(path))


def signature(path: Path) -> Signature:
    """What changes when a file is written: nothing is read."""
    found = []
    for file_path in _files(path):
        stat = file_path.stat()
        found.append((str(file_path), stat.st_size, stat.st_mtime_ns, stat.st_ino))
    return tuple(found)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for root, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if (file_path := Path(root, name)).is_file():
                yield file_path


class Changed(_core.SardonyxError):
    """An input is not what it was when the sweep began."""


@dataclass(slots=True)
class Input:
    """A file or folder as the sweep names it, where it is here, and what is in it."""

    name: str
    path: Path
    sha256: str
    bytes: int
    seen: Signature = ()

    def check(self) -> None:
        """An error if the content is another one by now; it is read only if the file changed."""
        try:
            now = signature(self.path)
            if now == self.seen:
                return
            found = content(self.path)
        except OSError as error:
            raise Changed(
                f"{self.path}: cannot be read any more ({error.strerror}); put it back and give "
                "the same command: what is done is kept"
            ) from error
        if found != self.sha256:
            raise changed(self.name, self.sha256, found)
        self.seen = now


def changed(name: str, before: str, now: str) -> Changed:
    """What to say of an input with another content."""
    return Changed(
        f"{name}: has changed since this sweep began (SHA-256 {before[:12]} then, {now[:12]} now); "
        "put the old one back and give the same command, for what is done is kept, or give "
        "another --out"
    )


@dataclass(frozen=True, slots=True)
class Inputs:
    """All files of a sweep by the names that it gives them."""

    known: dict[str, Input] = field(default_factory=dict)

    def check(self, names: Iterable[str]) -> None:
        """An error if one of these has changed."""
        for name in names:
            self.known[name].check()

    def __getitem__(self, name: str) -> Input:
        return self.known[name]


def locate(name: str, places: Iterable[Path], before: tuple[str, int] | None, remedy: str) -> Input:
    """The input of this name: the first that is below one of the places, else a recording's.

    If there is none of this name, it is looked for by content: that of the name, or that which
    it had when the sweep began. ``before`` is its SHA-256 and its bytes then, if the sweep has
    begun. ``remedy`` ends the error. A file of this name with another content is an error wherever
    copies of the old one are: results of the old one would stand under the new one's name.
    """
    places = list(places)
    search = [Path(place) for place in os.environ.get(SEARCH, "").split(os.pathsep) if place]
    wanted = name.removeprefix(BY_CONTENT) if name.startswith(BY_CONTENT) else None
    if wanted is None:
        if not name:
            raise _core.SardonyxError(f"an input's name is empty; {remedy}")
        named = recording(name)
        for path in (*(place / name for place in places), *filter(None, [named])):
            if not path.exists():
                continue
            found = Input(name, path, content(path), size(path), signature(path))
            if before is not None and before[0] != found.sha256:
                raise changed(str(path), before[0], found.sha256)
            return found
    if wanted is not None or before is not None:
        sha256, length = before or (wanted or "", None)
        for folder in (*search, *places, *(place / "traces" for place in places)):
            copy = _copy(folder, sha256, length, folders=folder in search)
            if copy is not None:
                return Input(name, *copy, size(copy[0]), signature(copy[0]))
    where = f" and no copy of it in {SEARCH}" if search else ""
    raise _core.SardonyxError(f"{name}: there is no such file{where}; {remedy}")


def _copy(
    folder: Path, sha256: str, length: int | None, *, folders: bool
) -> tuple[Path, str] | None:
    """A file or folder directly in this folder whose content has this hash, or begins with it."""
    if not folder.is_dir() or len(sha256) < 8:
        return None
    for path in sorted(folder.iterdir()):
        try:
            if not path.is_file() and not (folders and path.is_dir()):
                continue
            candidate = path.suffix == ".parquet" if length is None else size(path) == length
            if candidate and (found := content(path)).startswith(sha256):
                return path, found
        except OSError:
            continue
    return None
