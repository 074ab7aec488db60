"""Files that appear complete or not at all, and never in the place of a device or a pipe; and files
that are read, which may be somebody else's.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from sardonyx._core import SardonyxError

#: The most bytes of a text that is read.
MOST_TEXT = 256 << 20


#: This many bytes have to be free before work begins: a report, its results, and as much again.
ROOM = 8 << 20


class FileError(SardonyxError, ValueError):
    """A file does not hold what it should: where the fault is, and what to do about it."""


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, complete or not at all; a device or a pipe just gets the text."""
    if is_special(path):
        Path(path).write_text(text, encoding="utf-8")
        return
    with replacing(Path(path)) as scratch:
        scratch.write_text(text, encoding="utf-8")


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """A regular file, open for reading. A pipe is not waited for, and a device may have no end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise FileError(f"{path}: is not a regular file; copy its contents to one")


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a regular file in UTF-8; other errors are those of ``Path.read_text``.

    Raises:
        FileError: It is no regular file, or larger than any that we write.
    """
    with open_regular(path) as file:
        # Its size says less: it may grow, and a file of the kernel's has none.
        text = file.read(MOST_TEXT + 1)
    if len(text) > MOST_TEXT:
        raise FileError(f"{path}: has more than {MOST_TEXT >> 20} MiB; name another file")
    return text.decode("utf-8")


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether this is a device, a pipe or the like: what a file must not take the place of."""
    place = Path(path)
    return place.exists() and not place.is_file() and not place.is_dir()


@contextmanager
def replaced_together(directory: Path) -> Iterator[Path]:
    """A scratch directory in this one; what is in it at the end replaces files of the same names.

    Nothing is replaced on failure, no new directory is left, and nobody sees half of what belongs
    together for long.
    """
    made = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        yield from _replaced_together(directory)
    except BaseException:
        for place in made:
            with suppress(OSError):  # not made yet, or somebody else's files are in it by now
                place.rmdir()
        raise


def _replaced_together(directory: Path) -> Iterator[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sardonyx.", dir=directory) as name:
        scratch = Path(name)
        try:
            yield scratch
        except OSError as error:
            said = error.filename
            if said is not None and Path(said).parent.resolve() == scratch.resolve():
                error.filename = str(directory / Path(error.filename).name)
            raise
        written = sorted(scratch.iterdir())
        for path in written:
            if (directory / path.name).is_dir():
                raise IsADirectoryError(errno.EISDIR, "Is a directory", str(directory / path.name))
        for path in written:
            path.replace(directory / path.name)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A scratch name beside the target that replaces it on success and vanishes on failure.

    A link stays one: what it leads to is replaced.
    """
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    # The scratch name leaves out the target's, which may be as long as a name can be.
    handle, name = tempfile.mkstemp(prefix=".sardonyx.", dir=target.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        umask = os.umask(0)
        os.umask(umask)
        scratch.chmod(0o666 & ~umask)  # mkstemp's 0600 would hide the file from the group
        scratch.replace(target)
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            # The user knows the target, and not the scratch name; pyarrow names no file at all.
            raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
        raise


def check_space(place: Path, least: int = ROOM) -> None:
    """An error unless so many bytes are free where ``place`` is or will be."""
    there = next(each for each in (place, *place.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < least:
        raise SardonyxError(
            f"{place}: {free / 2**20:.1f} MiB are free there, and {least / 2**20:.0f} MiB are "
            "needed; make room, or name another place"
        )


def check_target(
    target: Path, sources: Iterable[str] = (), option: str = "", what: str = "a file"
) -> None:
    """An error unless a file can be put there later, in the place of none of the sources."""
    try:
        if target.is_dir():
            raise SardonyxError(f"{option}{target}: is a directory; name {what}")
        if not target.parent.is_dir():
            raise SardonyxError(f"{option}{target}: its directory does not exist; make it first")
        for source in sources:
            if target.exists() and os.path.exists(source) and target.samefile(source):
                raise SardonyxError(f"{option}{target}: is also what is read; name another file")
        if target.is_symlink():
            target = Path(os.path.realpath(target))
        if os.path.lexists(target):
            target.stat()  # links in a circle have none
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            target.touch()
            target.unlink()
        if not is_special(target):
            with tempfile.TemporaryFile(dir=target.parent):
                pass
    except OSError as error:
        raise SardonyxError(
            f"{option}{target}: cannot be written: {error.strerror}; name {what} elsewhere"
        ) from error
