"""How a command is run: consoles, errors as one line, JSON for programs, where output goes.

Exit status: 0, 1 (a check failed), 2 (bad input, with the place and the remedy) and 3 (the budget
ended before anything could be said).
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from click.exceptions import Exit
from rich.text import Text

from sardonyx._core import SardonyxError, WrongRead
from sardonyx.answer import module_of
from sardonyx.cli.terminal import Terminal, discard, visible
from sardonyx.files import FileError, check_target, write_text
from sardonyx.known import COMMANDS
from sardonyx.runs.recordings import path_of
from sardonyx.signals import Ended

CHECK_FAILED = 1
BAD_INPUT = 2
NOTHING_SAID = 3
#: A status above this is a signal's number, as shells have it.
LEFT_BY_SIGNAL = 128
INTERRUPTED = LEFT_BY_SIGNAL + signal.SIGINT
#: The largest number of records, and the largest seed, that an option takes.
MOST = 2**63 - 1
#: The most characters of an error, roughly.
LONGEST = 1000
T = TypeVar("T")


#: Figures and tables for people. Names of files are never taken for markup.
out = Terminal(highlight=False, markup=False, emoji=False)
#: Progress, notes and errors.
err = Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def fail(message: str, status: int = BAD_INPUT) -> Exit:
    """Say what is wrong in one line and give the exception that ends the program."""
    words = " ".join(message.split())
    if len(words) > LONGEST:  # somebody's input, quoted
        words = f"{words[: LONGEST // 2]} .. {words[-LONGEST // 2 :]}"
    err.print(Text.assemble(("error: ", "bold red"), visible(words)), soft_wrap=True)
    return Exit(status)


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
        raise Exit(0) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        remedy = "make room there" if full else "check the path and its permissions"
        raise fail(f"{place}{error.strerror or error}; {remedy}") from error


def run(
    command: str,
    question: Mapping[str, Any],
    given: Mapping[str, Any],
    to: str | None,
    paper: Mapping[str, Any],
) -> None:
    """Answer what is given of a command's question: its document goes ``to`` a file or to ``-``,
    what a ``paper`` takes of it to files by option.
    """
    with errors_as_lines():
        _answer(command, question, given, to, paper)


def _answer(
    command: str,
    question: Mapping[str, Any],
    given: Mapping[str, Any],
    to: str | None,
    paper: Mapping[str, Any],
) -> None:
    from sardonyx.api.command import ask
    from sardonyx.cli.progress import Watcher

    targets = [("--table", name) for name in [paper.get("table")] if name is not None]
    targets += [("--figure", name) for name in paper.get("figure", ())]
    targets += [("--html", name) for name in [paper.get("html")] if name is not None]
    targets += [("--json", to)] if to is not None and to != "-" else []
    _check_targets(targets, question, given)
    _check_figures(command, paper)
    line = COMMANDS[command]
    people = err if line.aside else for_people(to)
    people.notes = "notes" in paper
    try:
        with Watcher(err, line.unit, logged=line.logged) as watch:
            answer = ask(command, given, watch, anew=True)
    except Exception as error:
        if (answer := getattr(error, "answer", None)) is not None:
            answer.tell(people)
        raise
    for each in answer.notes:
        note(each)
    for each in answer.errors:
        fail(each)
    try:
        if "table" in paper:
            answer.files.extend(f"table: {name}" for name in answer.save_table(paper["table"]))
        if "figure" in paper:
            _draw(answer, paper)
        if "html" in paper:
            answer.report(paper["html"])
            answer.files.append(f"report: {paper['html']}")
    finally:
        answer.tell(
            people
        )  # a disk may be full, or a figure have another name, after hours of work
    if to is not None:
        write_json(to, answer.as_json())
    if answer.status:
        raise Exit(answer.status)


def _check_targets(
    targets: Sequence[tuple[str, str]], question: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """An error unless each file of an option can be written later, is none that the arguments name,
    and none that another option is to write.
    """
    words = [given.get(name, ()) for name, of in question.items() if "argument" in of]
    texts = [each for word in words for each in ([word] if isinstance(word, str) else word)]
    sources = [each for each in map(path_of, texts) if os.path.isfile(each)]
    others = [given[name] for name, of in question.items() if of.get("format") == "path"
              and given.get(name)]  # fmt: skip
    for option, to in targets:
        what = "a file, or - for the output" if option == "--json" else "a file"
        if not to:
            raise SardonyxError(f"{option}: the name is empty; name {what}")
        if option == "--table":
            from sardonyx.draw.tables import form_of

            form_of(Path(to), "--table ")
        elif option == "--figure":
            from sardonyx.draw.still import check

            check(Path(to), "--figure ")
        check_target(Path(to), sources, f"{option} ", what)
        for file in others:
            if os.path.realpath(file) == os.path.realpath(to):
                raise SardonyxError(f"{option} {to}: and {file} are one file; name another")
        others.append(to)


def _check_figures(command: str, paper: Mapping[str, Any]) -> None:
    """An error unless the command has figures, and their lengths are lengths."""
    if "figure" in paper and not hasattr(module_of(command), "groups"):
        raise SardonyxError(
            f"--figure {paper['figure'][0]}: {command} draws none; sardonyx report DIR draws those "
            "of what compare, reproduce and sweep wrote"
        )
    for name in ("figure-width", "figure-font"):
        if name in paper:
            from sardonyx.draw.still import points

            points(paper[name], f"--{name}")
            if "figure" not in paper:
                raise SardonyxError(f"--{name}: does nothing without --figure; leave it out")


def _draw(answer: Any, paper: Mapping[str, Any]) -> None:
    from sardonyx.draw.still import USUAL, save

    figures = answer.figures()
    width, font = paper.get("figure-width", USUAL), paper.get("figure-font", "8pt")
    for name in paper["figure"]:
        save(figures, Path(name), width, font, "--figure ")
        answer.files.append(f"figure: {name}")


def write_json(target: str, document: Mapping[str, Any] | Sequence[Any]) -> None:
    """The document to ``--json``: a file, or ``-`` for standard output."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_text(target, text)


def for_people(json_target: str | None) -> Terminal:
    """Where tables go: aside when standard output carries JSON, and then to a person only."""
    if json_target != "-":
        return out
    return err if err.is_terminal else Terminal(quiet=True)
