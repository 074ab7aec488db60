"""The options that the commands of ``sardonyx crash-test`` share, and what they ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx import _core
from sardonyx.cli.common import PATH, check_json_target, seconds_in, size_in_bytes
from sardonyx.cli.forms import Options
from sardonyx.cli.options import JsonTo
from sardonyx.runs.crash_test import ACKNOWLEDGED, check_platform, statuses, words
from sardonyx.runs.sources import unknown

RECORDING = typer.Argument(help="A recording of sardonyx trace record --pc.")
POOL = typer.Option(help="The mapped file to cut, or a folder of such files; repeatable.", **PATH)
NO_SOURCE = typer.Option("--no-source", help="Report without lines of code.")


@dataclass(frozen=True, kw_only=True)
class Tested(Options):
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
    ok: Annotated[str, typer.Option(help="Exit statuses that are no violation.")] = "0"
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
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit of one recovery; default: 50 times as long as it takes without a cut.",
        ),
    ] = None
    memory_limit: Annotated[
        str, typer.Option(metavar="BYTES", help="Memory limit of one recovery.")
    ] = "4G"
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Leave each cause's two images here, one that fails and one that passes.", **PATH
        ),
    ] = None
    no_source: Annotated[bool, NO_SOURCE] = False
    json_to: JsonTo = None

    def question(self) -> dict[str, Any]:
        """What every question about the recording has."""
        check_json_target(self.json_to, [self.recording])
        check_platform(self.platform, "--platform: ")
        if self.keep is not None and self.keep.exists() and any(self.keep.iterdir()):
            raise _core.SardonyxError(f"--keep {self.keep}: is not empty; name another folder")
        limit = self.time_limit
        return {
            "recording": self.recording,
            "pool": str(self.pool[0]),
            "more_pools": tuple(str(pool) for pool in self.pool[1:]),
            "recover": words(self.recover, "--recover "),
            "ok": statuses(self.ok, "--ok "),
            "time_limit": None if limit is None else seconds_in("--time-limit", limit),
            "memory_limit": size_in_bytes("--memory-limit", self.memory_limit, 1 << 20),
            "platform": self.platform,
            "assume_persisted": tuple(self.assume_persisted or ()),
            "keep": str(self.keep) if self.keep else None,
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
        if self.acknowledged not in ACKNOWLEDGED:
            raise _core.SardonyxError(
                f"--acknowledged: {unknown('way', self.acknowledged, ACKNOWLEDGED)}"
            )
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
