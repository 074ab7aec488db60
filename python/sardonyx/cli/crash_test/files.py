"""``sardonyx crash-test files``: a program that writes files, cut after each of its operations.

What happens in between is native (crates/crash-files); docs/crash/files.md explains it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import PATH, check_json_target, for_people, note, seconds_in
from sardonyx.cli.crash_test.options import (
    RARE,
    Searching,
    end,
    searched,
    show_basis,
    unfinished,
)
from sardonyx.cli.help import rare
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import CrashFilesQuestion
from sardonyx.report.checks import accept
from sardonyx.runs.crash_files import (
    PLATFORMS,
    check_folder,
    check_program,
    crash_files,
    recovery,
)
from sardonyx.runs.sources import check_known

#: Settings of the command line: words after the program's name belong to the program.
SETTINGS: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True, "allow_interspersed_args": False},
}
#: People are shown this many causes, and operations of each; the JSON has all.
SHOWN = 5
OPERATIONS = 3


@dataclass(frozen=True, kw_only=True)
class Files(Searching):
    """The options of ``sardonyx crash-test files``."""

    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="What to run, after --.")
    ]
    files: Annotated[
        Path, typer.Option(help="The folder that the program works in; it is changed.", **PATH)
    ]
    recover: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="The program's recovery and check, with {dir} for the folder and {acks} for what "
            "had been printed.",
        ),
    ] = None
    acks_fd: Annotated[
        int,
        typer.Option(min=0, max=2**20, help="The program's descriptor whose text is in {acks}."),
    ] = 1
    acks_socket: Annotated[
        bool,
        typer.Option("--acks-socket", help="What it sends to any socket is in {acks} instead."),
    ] = False
    list_only: Annotated[
        bool, typer.Option("--list", help="Only list the operations, with their places.")
    ] = False
    platform: Annotated[
        str,
        typer.Option(
            help="What a cut may leave: ordered (ext4), writeback (ext4 with that mode), or strict "
            "(what POSIX promises, and no more)."
        ),
    ] = "ordered"
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Run the program again with a sync (EIO) or a write (ENOSPC) failing, one a run.",
        ),
    ] = False
    record_limit: Annotated[
        str, typer.Option(metavar="TIME", help="Time after which the program is ended.")
    ] = "50s"

    def recorded(self) -> dict[str, Any]:
        """What is asked of the recording."""
        check_json_target(self.json_to)
        check_known("platform", self.platform, PLATFORMS, "--platform: ")
        check_folder(self.files, "--files ")
        check_program(self.program)
        if self.acks_socket and self.acks_fd != Files.acks_fd:
            raise _core.SardonyxError(
                f"--acks-fd {self.acks_fd}, --acks-socket: both say what is in {{acks}}; give one"
            )
        return {
            "program": tuple(self.program),
            "files": str(self.files),
            "platform": self.platform,
            "acks_fd": self.acks_fd,
            "acks_socket": self.acks_socket,
            "record_limit": seconds_in("--record-limit", self.record_limit),
        }

    def searched(self, recover: str) -> dict[str, Any]:
        """What is asked of the search."""
        return (
            self.limits()
            | self.effort()
            | {
                "recover": recovery(recover, "--recover "),
                "errors": self.errors,
            }
        )


@rare(*RARE, "record_limit", "acks_fd", "acks_socket")
def files(asked: Files) -> None:
    """Run a program that writes files, and its own recovery on what each cut could leave.

    The program is followed with all that it starts, and each operation on the folder is recorded.

    [bold]Examples[/bold]

    sardonyx crash-test files --files data --recover './app check {dir} {acks}' -- ./app run data

    sardonyx crash-test files --files data --list -- ./app run data
    """
    question = asked.recorded()
    if asked.list_only:
        asked.refuse_idle("with --list")
        _list(for_people(asked.json_to), ask(CrashFilesQuestion(**question)), asked.json_to)
        return
    if asked.recover is None:
        raise _core.SardonyxError(
            "--recover 'CMD {dir}': give the command that checks a folder, or --list to see what "
            "the program does"
        )
    question |= asked.searched(asked.recover)
    baseline = asked.check_targets()
    found = ask(CrashFilesQuestion(**question))
    for cause in found["causes"]:
        cause["replay"] = replay(asked, cause["kept"])
    accept(found, baseline)
    show(for_people(asked.json_to), found)
    asked.end(found)


def ask(question: CrashFilesQuestion) -> dict[str, Any]:
    """What the native module finds."""
    return searched(Path(question.program[0]).name, lambda p: crash_files(question, p))


def replay(asked: Files, number: int | None) -> str:
    """How a cause is seen again: its kept folder, or how to keep it."""
    if number is None:
        return "--errors makes that run again"
    if asked.keep is None:
        return "--keep FOLDER leaves the folder that fails"
    place, copy = asked.keep / f"{number}-fails", asked.keep / f"{number}-copy"
    command = (asked.recover or "").replace("{dir}", str(copy))
    command = command.replace("{acks}", str(asked.keep / f"{number}-acks"))
    return f"{shlex.join(['cp', '-r', str(place), str(copy)])} && {command}"


def _list(people: Console, found: dict[str, Any], json_to: str | None) -> None:
    for line in found["notes"]:
        note(line)
    counts = numbers("effects", "made sure")
    table = grid(*numbers(""), "operation", "where", *counts, header_style="bold")
    for one in found["list"]:
        table.add_row(
            *(str(one[key]) for key in ("number", "operation", "place", "effects", "makes_sure"))
        )
    people.print(table)
    end(found, json_to)


def show(people: Console, found: dict[str, Any]) -> None:
    """What was recorded and tried, the verdict, and the causes."""
    for line in found["notes"]:
        note(line)
    people.print(
        f"{found['operations']:,} operations of {found['processes']} commands, {found['syncs']:,} "
        f"syncs, {found['acknowledgements']:,} acknowledgements; the program ended with "
        f"{found['ended']}",
        soft_wrap=True,
    )
    if found["ended"] != "exit status 0" and found["program_said"]:
        note(f"the program said: {found['program_said'].splitlines()[-1]}")
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
    else:
        _show_causes(people, found)


def _show_causes(people: Console, found: dict[str, Any]) -> None:
    count, causes = found["violations"], found["causes"]
    first = found["first_violation_s"]
    people.print(
        Text.assemble(
            (f"{count:,} violation{'s' if count > 1 else ''}", "red"),
            f" of {len(causes):,} cause{'s' if len(causes) != 1 else ''}"
            + ("" if first is None else f", the first after {first:.1f} s"),
        )
    )
    named = [one for cause in causes for role in ("early", "late") for one in cause[role]]
    if named and not any(one["frame"] for one in named):
        note("no lines of source: the program has no debug information (-g), or is a script")
    new = [(number, cause) for number, cause in enumerate(causes, 1) if not cause["accepted"]]
    if len(new) < len(causes):
        accepted = len(causes) - len(new)
        people.print(f"{accepted} of {len(causes)} causes are accepted by the baseline")
    for number, cause in new[:SHOWN]:
        _show_cause(people, number, cause)
    if len(new) > SHOWN:
        people.print(f"\nand {len(new) - SHOWN} more causes; --json has all")


def _show_cause(people: Console, number: int, cause: Mapping[str, Any]) -> None:
    people.print()
    heading = Text.assemble(
        (f"{number}. ", "bold"), cause["summary"], f" ({cause['violations']} violations)"
    )
    people.print(heading, soft_wrap=True)
    for role in ("early", "late"):
        for one in cause[role][:OPERATIONS]:
            calls = " < ".join(call for call in one["stack"] if not call.startswith("? "))
            people.print(
                f"   {role}: {one['operation']} of {one['command']}, thread {one['thread']}"
                + (f" ({one['fate']})" if one["fate"] else "")
                + (f": {calls}" if calls else ""),
                soft_wrap=True,
            )
    said, cut = cause["said"].splitlines(), cause["cut"]
    people.print(
        f"   cut {cut['number']}"
        + (f", after {cut['after']}" if cut["after"] else "")
        + f": {cause['ended']}"
        + (f": {said[-1]}" if said else ""),
        soft_wrap=True,
    )
    people.print(f"   {cause['replay']}", soft_wrap=True)
