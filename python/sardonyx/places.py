"""Where output goes, proved before work begins."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sardonyx._core import SardonyxError
from sardonyx.files import is_special


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
