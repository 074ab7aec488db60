"""The options that the commands of ``sardonyx crash-test`` share, and what they ask."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    LEFT_BY_SIGNAL,
    NOTHING_SAID,
    PATH,
    check_json_target,
    err,
    note,
    seconds_in,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.forms import Options
from sardonyx.cli.options import JsonTo
from sardonyx.cli.progress import watched_to_an_end
from sardonyx.files import check_target, write_text
from sardonyx.report.checks import Baseline, baseline_of, junit, read_baseline, sarif
from sardonyx.runs.crash_test import ACKNOWLEDGED, PLATFORMS, statuses, words
from sardonyx.runs.sources import check_known

RECORDING = typer.Argument(help="A recording of sardonyx trace record --pc.")
POOL = typer.Option(help="The mapped file to cut, or a folder of such files; repeatable.", **PATH)
NO_SOURCE = typer.Option("--no-source", help="Report without lines of code.")


#: Options that few callers of a search need.
RARE = (
    "ok",
    "baseline",
    "write_baseline",
    "memory_limit",
    "sarif",
    "junit",
    "seed",
    "jobs",
    "keep",
    "time_limit",
    "allow_failure",
)


@dataclass(frozen=True, kw_only=True)
class Judged(Options):
    """How one recovery is run and judged, and what is left of what fails."""

    ok: Annotated[str, typer.Option(help="Exit statuses that are no violation.")] = "0"
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit of one recovery; default: 50 times as long as it takes without a cut, "
            "and at least 2 s.",
        ),
    ] = None
    memory_limit: Annotated[
        str, typer.Option(metavar="BYTES", help="Memory limit of one recovery.")
    ] = "4G"
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Leave here what each cause's recovery was given, as it fails and as it passes.",
            **PATH,
        ),
    ] = None
    json_to: JsonTo = None

    def limits(self) -> dict[str, Any]:
        """What is asked of each recovery."""
        if self.keep is not None and self.keep.exists() and any(self.keep.iterdir()):
            raise _core.SardonyxError(f"--keep {self.keep}: is not empty; name another folder")
        limit = self.time_limit
        return {
            "ok": statuses(self.ok, "--ok "),
            "time_limit": None if limit is None else seconds_in("--time-limit", limit),
            "memory_limit": size_in_bytes("--memory-limit", self.memory_limit, 1 << 20),
            "keep": str(self.keep) if self.keep else None,
        }


@dataclass(frozen=True, kw_only=True)
class Searching(Judged):
    """How long a search goes on, on how many threads, and where its causes go."""

    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Total time, from the first recovery on.")
    ] = "50s"
    baseline: Annotated[
        Path | None,
        typer.Option(help="Causes that are accepted, from --write-baseline.", **PATH),
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option(help="Write the causes found here, as accepted from now on.", **PATH),
    ] = None
    sarif: Annotated[
        Path | None,
        typer.Option(help="Write the causes for code scanning, as SARIF 2.1.0.", **PATH),
    ] = None
    junit: Annotated[
        Path | None, typer.Option(help="Write the causes as failed tests, as JUnit's XML.", **PATH)
    ] = None
    allow_failure: Annotated[
        bool,
        typer.Option(
            "--allow-failure", help="The recorded program may have failed, or been ended early."
        ),
    ] = False
    seed: Annotated[
        int, typer.Option(min=0, max=2**50, help="Seed of the images that are drawn.")
    ] = 1
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, max=1024, help="Threads; 0 for one a processor.")
    ] = 0

    def effort(self) -> dict[str, Any]:
        """What is asked of the search as a whole."""
        return {
            "budget": seconds_in("--budget", self.budget),
            "seed": self.seed,
            "threads": self.jobs,
            "allow_failure": self.allow_failure,
        }

    def check_targets(self, inputs: Sequence[str] = ()) -> Baseline | None:
        """An error unless each report can be written; the baseline to hold the causes to."""
        for name in ("html", "sarif", "junit", "write_baseline"):
            target = getattr(self, name, None)
            if target is not None:
                check_target(target, inputs, f"--{name.replace('_', '-')} ")
        return None if self.baseline is None else read_baseline(self.baseline)

    def end(self, found: dict[str, Any]) -> None:
        """Write the reports for machines, and end with the status that was earned."""
        if self.sarif is not None:
            write_text(self.sarif, sarif(found, _core.VERSION))
        if self.junit is not None:
            write_text(self.junit, junit(found))
        if self.write_baseline is not None:
            write_text(self.write_baseline, baseline_of(found))
        end(found, self.json_to)


def searched(label: str, call: Callable[[_core.Progress], dict[str, Any]]) -> dict[str, Any]:
    """What a native search finds, with its progress shown; a signal ends it early."""
    found, by = watched_to_an_end(err, label, call, "recoveries")
    if by is not None and found.get("unsaid") and found["doubt"]["reason"] == "budget":
        found["unsaid"] = f"{by.name} ended it before each kind of moment had been tried once"
    return found | {"ended_by": by and by.name}


def unfinished(found: Mapping[str, Any]) -> str:
    """That passes were left out, which, and what would bring them."""
    more = "raise --budget" if found.get("ended_by") is None else f"{found['ended_by']} ended it"
    return f"the plan was not finished; {more}. Skipped: {', '.join(found['passes_left'])}"


def show_basis(people: Console, found: Mapping[str, Any]) -> None:
    """Print what an answer without a violation rests on, where that is little."""
    for line in found["rests_on"]:
        people.print(f"it rests on little: {line}", soft_wrap=True)


def end(found: dict[str, Any], json_to: str | None) -> None:
    """Write the JSON, and end with the status that was earned."""
    write_json(json_to, {"sardonyx": _core.VERSION} | found)
    if found.get("ended_by"):
        note(f"ended by {found['ended_by']} before the budget: this is what there was until then")
    if found["fails"] and not found.get("all_accepted"):
        raise typer.Exit(CHECK_FAILED)
    if found.get("ended_by"):
        raise typer.Exit(LEFT_BY_SIGNAL + signal.Signals[found["ended_by"]])
    if found.get("unsaid"):
        raise typer.Exit(NOTHING_SAID)


@dataclass(frozen=True, kw_only=True)
class Tested(Judged):
    """A recording, and the recovery that runs on its images."""

    recording: Annotated[str, RECORDING]
    pool: Annotated[list[Path], POOL]
    recover: Annotated[
        str,
        typer.Option(
            metavar="CMD",
            help="The program's recovery and check, with {pool} for the file ({pool2} for the "
            "second, {pools} for the folder of all) and {acks} for what had been printed.",
        ),
    ]
    platform: Annotated[
        str,
        typer.Option(
            help="What survives a cut: persistent memory (adr; eadr with the caches), or a file on "
            "a disk, by pages or by sectors; auto: pages if it only syncs (msync, fsync), else adr."
        ),
    ] = "auto"
    assume_persisted: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE:LINE",
            help="Count the stores of this line as persistent at once; repeatable.",
        ),
    ] = None
    no_source: Annotated[bool, NO_SOURCE] = False

    def question(self) -> dict[str, Any]:
        """What every question about the recording has."""
        check_json_target(self.json_to, [self.recording])
        check_known("platform", self.platform, PLATFORMS, "--platform: ")
        return self.limits() | {
            "recording": self.recording,
            "pool": str(self.pool[0]),
            "more_pools": tuple(str(pool) for pool in self.pool[1:]),
            "recover": words(self.recover, "--recover "),
            "platform": self.platform,
            "assume_persisted": tuple(self.assume_persisted or ()),
            "source": not self.no_source,
        }

    def replay(self, image: str, platform: str, assumed: Sequence[str]) -> list[str]:
        """The command that runs the recovery on one image."""
        parts = ["sardonyx", "crash-test", "replay", self.recording, image]
        parts += [part for pool in self.pool for part in ("--pool", str(pool))]
        parts += ["--recover", self.recover]
        if self.ok != "0":
            parts += ["--ok", self.ok]
        if self.platform != "auto" or platform != "adr":
            parts += ["--platform", platform]
        return parts + [part for place in assumed for part in ("--assume-persisted", place)]


@dataclass(frozen=True, kw_only=True)
class Oracle(Tested):
    """A recovery that is held to the operations of the run, in one order of its threads."""

    operations: Annotated[
        Path | None,
        typer.Option(
            help="The operations of the recorded run, one a line: what --recover prints must be "
            "what the program leaves of a beginning of them.",
            **PATH,
        ),
    ] = None
    apply: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Makes a pool, {pool}, of the operations in a file, {operations}.",
        ),
    ] = None
    acknowledged: Annotated[
        str,
        typer.Option(
            help="How operations were promised: by a printed line each (lines), or not (none)."
        ),
    ] = "lines"
    thread_order: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD@ROW", help="Cut only this order of the threads, as a report names it."
        ),
    ] = None

    def question(self) -> dict[str, Any]:
        """What the recovery's output is held to, too."""
        asked = super().question() | {"thread_order": self.thread_order}
        alone = self.operations is None and self.acknowledged != Oracle.acknowledged
        if (self.operations is None) != (self.apply is None) or alone:
            raise _core.SardonyxError(
                "--operations FILE and --apply 'CMD {pool} {operations}': give both, to hold the "
                "recovery to the operations of the run, or neither, and no --acknowledged"
            )
        check_known("way", self.acknowledged, ACKNOWLEDGED, "--acknowledged: ")
        if self.operations is None or self.apply is None:
            return asked
        if "{acks}" in self.recover:
            raise _core.SardonyxError(
                "--operations: what had been printed is looked at without the recovery; "
                "leave {acks} out of --recover"
            )
        return asked | {
            "operations": str(self.operations),
            "apply": words(self.apply, "--apply ", ("{pool}", "{operations}")),
            "acknowledged": self.acknowledged,
        }

    def replay(self, image: str, platform: str, assumed: Sequence[str]) -> list[str]:
        """The command that runs the recovery on one image, and holds it to the operations."""
        parts = super().replay(image, platform, assumed)
        if self.operations is not None:
            parts += ["--operations", str(self.operations), "--apply", str(self.apply)]
            if self.acknowledged != "lines":
                parts += ["--acknowledged", self.acknowledged]
        if self.thread_order is not None:
            parts += ["--thread-order", self.thread_order]
        return parts
