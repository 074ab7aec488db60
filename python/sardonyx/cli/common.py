"""What all commands share: consoles, errors as one line, JSON for programs, where output goes.

Exit status: 0, 1 (a check failed), 2 (bad input, with the place and the remedy) and 3 (the budget
ended before anything could be said). Nothing here knows any command.
"""

from __future__ import annotations

import errno
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from sardonyx._core import SardonyxError, WrongRead
from sardonyx.cli.forms import spread
from sardonyx.cli.help import CONTEXT, Command, Group
from sardonyx.cli.terminal import Terminal, discard, visible
from sardonyx.files import FileError, write_text
from sardonyx.places import check_target as check_target
from sardonyx.signals import Ended as Ended
from sardonyx.signals import ended as ended
from sardonyx.signals import ending_patiently as ending_patiently
from sardonyx.signals import handle_signals as handle_signals
from sardonyx.sizes import parse_size, parse_time

CHECK_FAILED = 1
BAD_INPUT = 2
NOTHING_SAID = 3
#: A status above this is a signal's number, as shells have it.
LEFT_BY_SIGNAL = 128
INTERRUPTED = LEFT_BY_SIGNAL + signal.SIGINT
#: The largest number of records, and the largest seed, that an option takes.
MOST = 2**63 - 1
#: This many bytes have to be free before work begins: a report, its results, and as much again.
ROOM = 8 << 20
#: The most characters of an error, roughly.
LONGEST = 1000
T = TypeVar("T")


#: Figures and tables for people. Names of files are never taken for markup.
out = Terminal(highlight=False, markup=False, emoji=False)
#: Progress, notes and errors.
err = Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def fail(message: str, status: int = BAD_INPUT) -> typer.Exit:
    """Say what is wrong in one line and give the exception that ends the program."""
    words = " ".join(message.split())
    if len(words) > LONGEST:  # somebody's input, quoted
        words = f"{words[: LONGEST // 2]} .. {words[-LONGEST // 2 :]}"
    err.print(Text.assemble(("error: ", "bold red"), visible(words)), soft_wrap=True)
    return typer.Exit(status)


def note(line: str) -> None:
    """Say on standard error what the user may not expect."""
    err.print(Text.assemble(("note: ", "bold"), visible(line)), soft_wrap=True)


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """Turn what users can cause into one line and an exit status; a bug keeps its traceback."""
    try:
        yield
    except WrongRead as error:
        raise fail(str(error), CHECK_FAILED) from error
    except (SardonyxError, FileError) as error:
        raise fail(str(error)) from error
    except Ended as error:
        raise fail(
            f"ended by {error}; no output was replaced", LEFT_BY_SIGNAL + error.signal
        ) from error
    except KeyboardInterrupt as error:
        raise fail("interrupted; no output was replaced", INTERRUPTED) from error
    except BrokenPipeError as error:
        discard(sys.stdout)
        raise typer.Exit(0) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        remedy = "make room there" if full else "check the path and its permissions"
        raise fail(f"{place}{error.strerror or error}; {remedy}") from error


def add_command(app: typer.Typer, command: Callable[..., Any], **settings: Any) -> None:
    """Offer the function as a command whose errors are one line, and whose options all count."""
    kind: type[Command] = settings.pop("cls", Command)
    marked = type(kind.__name__, (kind,), {"rare": getattr(command, "rare", frozenset())})
    context = CONTEXT | settings.pop("context_settings", {})
    register = app.command(cls=marked, context_settings=context, **settings)
    register(errors_as_lines()(spread(command)))


def subcommands(
    line: str, *commands: Callable[..., Any], remedy: Callable[[list[str]], str] | None = None
) -> typer.Typer:
    """Commands below one name; ``remedy`` ends the error for words that begin with none of them."""

    class Known(Group):
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if remedy is not None and args[0] not in self.commands:
                raise fail(f"{args[0]}: {remedy(args)}")
            return super().resolve_command(ctx, args)

    app = typer.Typer(
        cls=Known,
        context_settings=CONTEXT,
        help=line,
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    app.callback()(lambda: None)
    for command in commands:
        add_command(app, command)
    return app


def path_given(text: str) -> Path:
    """The path of an option or argument; ``Path("")`` would silently be the current directory."""
    if not text:
        raise typer.BadParameter('the name is empty; give one, or "." for the current directory')
    return Path(text)


#: Typer's settings for a path.
PATH: dict[str, Any] = {"parser": path_given, "metavar": "PATH"}


def check_space(place: Path, least: int = ROOM) -> None:
    """An error unless so many bytes are free where ``place`` is or will be."""
    there = next(each for each in (place, *place.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < least:
        raise SardonyxError(
            f"{place}: {free / 2**20:.1f} MiB are free there, and {least / 2**20:.0f} MiB are "
            "needed; make room, or name another place"
        )


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


def seconds_in(option: str, text: str) -> float:
    """Seconds from ``90s``, ``10m`` or ``2h``."""
    try:
        return parse_time(text)
    except ValueError as problem:
        raise SardonyxError(f"{option} {text}: {problem}") from None


def size_in_bytes(option: str, text: str, least: int = 0, most: int = 2**62) -> int:
    """Bytes from ``4096``, ``4K``, ``16M`` or ``1G``; an error if less or more than allowed."""
    try:
        size = parse_size(text)
    except ValueError as problem:
        raise SardonyxError(f"{option} {text}: {problem}") from None
    if not least <= size <= most:
        raise SardonyxError(f"{option} {text}: give {least:,} to {most:,} bytes")
    return size


def check_json_target(target: str | None, sources: Iterable[str] = ()) -> None:
    """An error unless the file of ``--json`` can be written later, and is none of the sources."""
    if target is not None and target != "-":
        if not target:
            raise SardonyxError("--json: the name is empty; name a file, or - for the output")
        check_target(Path(target), sources, "--json ", "a file, or - for the output")


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
    return err if err.is_terminal else Terminal(quiet=True)
