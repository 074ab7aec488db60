"""What all commands share: consoles, errors as one line, JSON for programs, where output goes.

Exit status: 0, 1 (a check failed) and 2 (bad input, with the place and the remedy). Nothing here
knows any command.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from sardonyx._core import SardonyxError
from sardonyx.results import ResultsError, write_text

CHECK_FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
#: The largest number of records, and the largest seed, that an option takes.
MOST = 2**63 - 1
#: What may follow the number of a size.
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
T = TypeVar("T")

#: Figures and tables for people.
out = Console(highlight=False)
#: Progress, notes and errors.
err = Console(stderr=True, highlight=False)


def fail(message: str, status: int = BAD_INPUT) -> typer.Exit:
    """Say what is wrong in one line and give the exception that ends the program."""
    line = Text.assemble(("error: ", "bold red"), " ".join(message.split()))
    err.print(line, soft_wrap=True)
    return typer.Exit(status)


@contextmanager
def told() -> Iterator[None]:
    """Turn what users can cause into one line and an exit status; a bug keeps its traceback."""
    try:
        yield
    except (SardonyxError, ResultsError) as error:
        raise fail(str(error)) from error
    except KeyboardInterrupt as error:
        raise fail("interrupted; no output was replaced", INTERRUPTED) from error
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise fail(
            f"{place}{error.strerror or error}; check the path and its permissions"
        ) from error


@contextmanager
def output_directory(path: Path) -> Iterator[None]:
    """Make the directory and prove that a file can be written there; an error leaves no new one."""
    if path.exists() and not path.is_dir():
        raise SardonyxError(f"--out {path}: is a file; name a directory")
    if not all(place.is_dir() for place in path.parents if place.exists()):
        raise SardonyxError(f"--out {path}: is below a file; name another directory")
    made = [place for place in (path, *path.parents) if not place.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
        yield
    except BaseException:
        with suppress(OSError):  # somebody else's files are in it by now
            for place in made:
                place.rmdir()
        raise


def size_in_bytes(option: str, text: str, least: int = 0, most: int = 2**62) -> int:
    """Bytes from ``4096``, ``4K``, ``16M`` or ``1G``; an error if less or more than allowed."""
    number, unit = text[:-1], text[-1:].upper()
    if unit not in SUFFIXES:
        number, unit = text, ""
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise SardonyxError(f"{option} {text}: is no size; give bytes, as in 4096, 4K or 16M")
    size = int(number) * SUFFIXES[unit]
    if not least <= size <= most:
        raise SardonyxError(f"{option} {text}: give {least:,} to {most:,} bytes")
    return size


def check_json_target(target: str | None) -> None:
    """An error unless the file of ``--json`` can be written later."""
    if target is not None and target != "-":
        path = Path(target)
        if path.is_dir():
            raise SardonyxError(f"--json {path}: is a directory; name a file, or - for the output")
        if not path.parent.is_dir():
            raise SardonyxError(f"--json {path}: its directory does not exist; make it first")


def write_json(target: str | None, document: Mapping[str, Any] | Sequence[Any]) -> None:
    """The document to ``--json``: a file, or ``-`` for standard output."""
    if target is None:
        return
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_text(target, text)


def for_people(json_target: str | None) -> Console:
    """Where tables go: aside when standard output carries JSON, and then to a person only."""
    if json_target != "-":
        return out
    return err if err.is_terminal else Console(quiet=True)
