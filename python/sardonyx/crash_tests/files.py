"""``crash-test files``: a program that writes files, cut after each of its operations.

What happens in between is native (crates/crash-files); docs/crash/files.md explains it.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashTestFiles
from sardonyx.crash_tests import ready_made as checks
from sardonyx.crash_tests.searching import (
    answered,
    check_targets,
    effort,
    limits,
    reported,
    searched,
    show_basis,
    unfinished,
)
from sardonyx.crash_tests.served import served
from sardonyx.crash_tests.show import show_coverage
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import CrashFilesQuestion
from sardonyx.report.checks import accept
from sardonyx.runs.crash_test import words
from sardonyx.runs.scheduler import Watch

#: People are shown this many causes, and operations of each; --verbose and the JSON have all.
SHOWN = 5
OPERATIONS = 3
#: Where Debian has a server's programs, which are not in PATH.
POSTGRES = "/usr/lib/postgresql/*/bin"
#: A line of calls has this many characters at most, if not all are to be shown.
WIDTH = 100


def answer(asked: CrashTestFiles, watch: Watch | None) -> Answer:
    """What the recovery does on each folder that a cut can leave, or only what the program did."""
    check_folder(asked.files)
    check_program(asked.program)
    program = asked.program
    if asked.client is not None:
        program = served(program, asked.client, asked.ready, asked.stop)
    question = CrashFilesQuestion(
        program=program,
        files=str(asked.files),
        platform=asked.platform,
        sector=asked.sector,
        atomic_page=asked.atomic_page,
        acks_fd=asked.acks_fd,
        acks_socket=asked.acks_socket,
        record_limit=asked.record_limit,
    )
    check, _, acks = (asked.check or "").partition(" ")
    recover = ready_made(check, acks) if check else asked.recover
    if asked.list or recover is None:
        found = found_by(question, watch)
        return answered("crash-test files", found, found["notes"])
    question = question.replace(
        **limits(asked), **effort(asked), recover=recovery(recover), errors=asked.errors
    )
    baseline = check_targets(asked)
    found = found_by(question, watch)
    check_looked_at(check, asked.files)
    for cause in found["causes"]:
        cause["replay"] = replay(asked.keep, recover, cause["kept"])
    accept(found, baseline)
    answer = answered("crash-test files", found, notes(found), shown=asked.verbose)
    return reported(answer, asked)


def check_looked_at(name: str, folder: Path) -> None:
    """An error if the program has left nothing that a ready-made check looks at."""
    if name and next(checks.CHECKS[name].find(folder), None) is None:
        told = f"--check {name}: the program leaves no {checks.CHECKS[name].what} in {folder}"
        raise _core.SardonyxError(f"{told}; name the folder that has one, or give --recover")


def ready_made(name: str, acks: str) -> str:
    """The command of a ready-made check; an error if what it asks is not installed."""
    check = checks.CHECKS[name]
    if acks and not check.keyed:
        raise _core.SardonyxError(
            f"--check '{name} {acks}': holds nothing to what was printed; give --check {name}"
        )
    if check.tool.startswith("lib"):
        tool = ctypes.util.find_library(check.tool.removeprefix("lib"))
    else:
        places = [os.environ.get("PATH", os.defpath), *sorted(glob(POSTGRES), reverse=True)]
        tool = shutil.which(check.tool, path=os.pathsep.join(places)) if check.tool else "-"
    if tool is None:
        raise _core.SardonyxError(
            f"--check {name}: there is no {check.tool}; on Debian: apt-get install {check.package}"
        )
    return shlex.join(
        [sys.executable, "-I", "-S", checks.__file__, name, tool, "{dir}", *filter(None, [acks])]
    )


def recovery(command: str) -> tuple[str, ...]:
    """The words of a recovery that is given a folder."""
    if "{dir}" not in command:
        raise _core.SardonyxError(
            f"--recover '{command}': does not say where the folder goes; write {{dir}} there, as "
            "in 'check {dir}'"
        )
    return words(command, "--recover ", ())


def check_folder(folder: Path) -> None:
    """An error unless it is a folder that a program can work in."""
    if not folder.is_dir():
        raise _core.SardonyxError(
            f"--files {folder}: is no folder; name the one that the program works in, or make it: "
            f"mkdir -p {folder}"
        )


def check_program(program: Sequence[str]) -> None:
    """An error unless there is such a program."""
    if shutil.which(program[0]) is None:
        raise _core.SardonyxError(
            f"{program[0]}: is no program that can be run; give its path, or one in PATH"
        )


def found_by(question: CrashFilesQuestion, watch: Watch | None) -> dict[str, Any]:
    """What the native module finds."""

    def call(progress: _core.Progress) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(_core.crash_files(question.json(), progress))
        return found

    return searched(Path(question.program[0]).name, call, watch)


def replay(keep: Path | None, recover: str, number: int | None) -> str:
    """How a cause is seen again: its kept folder, or how to keep it."""
    if number is None:
        return "--errors makes that run again"
    if keep is None:
        return "--keep FOLDER leaves the folder that fails"
    place, copy = keep / f"{number}-fails", keep / f"{number}-copy"
    command = recover.replace("{dir}", str(copy))
    command = command.replace("{acks}", str(keep / f"{number}-acks"))
    return f"{shlex.join(['cp', '-r', str(place), str(copy)])} && {command}"


def notes(found: Mapping[str, Any]) -> list[str]:
    """What users may not expect of the answer."""
    lines = [*found["notes"]]
    if found["ended"] != "exit status 0" and found["program_said"]:
        lines.append(f"the program said: {found['program_said'].splitlines()[-1]}")
    causes = found["causes"]
    named = [one for cause in causes for role in ("early", "late") for one in cause[role]]
    silent = found["unsaid"] or not found["violations"]
    if not silent and named and not any(one["frame"] for one in named):
        lines.append(
            "no lines of source: the program has no debug information (-g), or is a script of a "
            "language whose frames are not read"
        )
    return lines


def _list(people: Console, listed: Sequence[dict[str, Any]]) -> None:
    counts = numbers("effects", "made sure")
    table = grid(*numbers(""), "operation", "where", *counts, header_style="bold")
    for one in listed:
        table.add_row(
            *(str(one[key]) for key in ("number", "operation", "place", "effects", "makes_sure"))
        )
    people.print(table)


def tell(people: Console, found: Answer) -> None:
    """What was recorded and tried, the verdict, and the causes; or the list alone."""
    if "list" in found:
        _list(people, found["list"])
        return
    people.print(
        f"{found['operations']:,} operations of {found['processes']} commands, {found['syncs']:,} "
        f"syncs, {found['acknowledgements']:,} acknowledgements; the program ended with "
        f"{found['ended']}",
        soft_wrap=True,
    )
    people.print(
        f"{found['images']:,} images at {found['cuts_tried']:,} of {found['cuts']:,} cuts on "
        f"{found['platform']}, {found['recoveries']:,} recoveries in {found['seconds']:.1f} s "
        f"({found['recoveries_per_second']:.0f} a second, {found['undisturbed_s'] * 1e3:.0f} ms "
        "alone)",
        soft_wrap=True,
    )
    for key, text in (
        ("refused", "images were refused as the untouched folder is, before anything was promised"),
        ("images_left_out", "more images were left out: causes that were found let them fail"),
        ("flaky", "images failed once and passed when they were run again: no cause"),
        ("unreduced", "violations were not brought down to operations: --budget ended first"),
    ):
        if found[key]:
            people.print(f"{found[key]:,} {text}", soft_wrap=True)
    if not found["finished"] and found["passes_left"] and not found["unsaid"]:
        people.print(unfinished(found), soft_wrap=True)
    if found["errors"]:
        unsaid = sum(bool(one["unsaid"]) for one in found["errors"])
        images = sum(one["images"] for one in found["errors"])
        people.print(
            f"{len(found['errors'])} runs with a call that failed, {images:,} images; of "
            f"{unsaid} runs nothing can be said: --json tells why",
            soft_wrap=True,
        )
    if found["unsaid"]:
        said = Text.assemble((found["verdict"], "yellow"), f": {found['unsaid']}")
        people.print(said, soft_wrap=True)
    elif not found["violations"]:
        people.print(Text(found["verdict"], style="green"))
        show_basis(people, found)
        show_coverage(people, found["coverage"], "change or sync files")
        for line in untested(found["untested"]):
            people.print(line, soft_wrap=True)
    else:
        _show_causes(people, found, verbose=bool(found.shown))


def untested(counts: Mapping[str, Any]) -> Iterator[str]:
    """What an answer without a violation does not rest on."""
    if counts["not_durable"]:
        shown = ", ".join(counts["not_durable_at"][:SHOWN])
        yield (
            f"{counts['not_durable']:,} of {counts['acknowledgements']:,} acknowledgements came "
            f"when nothing done since the one before was durable: {shown}"
        )
    if counts["overwritten"]:
        yield (
            f"{counts['overwritten']:,} of {counts['sectors']:,} written sectors were overwritten "
            "before they were durable: no cut has to leave their first values"
        )
    if counts["mapped"]:
        yield (
            f"{counts['mapped']:,} operations are stores to mapped files: values that were "
            "overwritten before the next operation are not known"
        )


def _show_causes(people: Console, found: dict[str, Any], *, verbose: bool) -> None:
    count, causes = found["violations"], found["causes"]
    first = found["first_violation_s"]
    people.print(
        Text.assemble(
            (f"{count:,} violation{'s' if count > 1 else ''}", "red"),
            f" of {len(causes):,} cause{'s' if len(causes) != 1 else ''}"
            + ("" if first is None else f", the first after {first:.1f} s"),
        )
    )
    new = [(number, cause) for number, cause in enumerate(causes, 1) if not cause["accepted"]]
    if len(new) < len(causes):
        accepted = len(causes) - len(new)
        people.print(f"{accepted} of {len(causes)} causes are accepted by the baseline")
    shown = len(new) if verbose else SHOWN
    for number, cause in new[:shown]:
        _show_cause(people, number, cause, verbose=verbose)
    if len(new) > shown:
        people.print(f"\nand {len(new) - shown} more causes; --verbose shows all")


def calls(one: Mapping[str, Any]) -> str:
    """An operation, and the calls that led to it from the user's line on, in one line."""
    line = ": ".join([str(one["operation"]), " < ".join(one["calls"])]).removesuffix(": ")
    room = WIDTH - len("   early: ")
    return line if len(line) <= room else line[: room - 3].rstrip(" <") + " .."


def _show_cause(people: Console, number: int, cause: Mapping[str, Any], *, verbose: bool) -> None:
    people.print()
    heading = Text.assemble(
        (f"{number}. ", "bold"), cause["summary"], f" ({cause['violations']} violations)"
    )
    people.print(heading, soft_wrap=True)
    for role in ("early", "late"):
        for one in cause[role] if verbose else cause[role][:OPERATIONS]:
            people.print(f"   {role}: {calls(one)}", soft_wrap=True)
            if one["fate"]:
                people.print(f"      {one['fate']}", soft_wrap=True)
            if verbose:
                people.print(f"      by {one['command']}, thread {one['thread']}", soft_wrap=True)
                for call in one["stack"]:
                    people.print(f"      {call}", soft_wrap=True)
    said, cut = cause["said"].splitlines(), cause["cut"]
    people.print(
        f"   cut {cut['number']}"
        + (f", after {cut['after']}" if cut["after"] else "")
        + f": {cause['ended']}"
        + (f": {said[-1]}" if said else ""),
        soft_wrap=True,
    )
    people.print(f"   {cause['replay']}", soft_wrap=True)
