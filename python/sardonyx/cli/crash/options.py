"""The options that the commands of ``sardonyx crash`` share, and what they ask of the explorer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx import _core
from sardonyx.cli import complete
from sardonyx.cli.common import MOST, size_in_bytes
from sardonyx.cli.forms import Options
from sardonyx.cli.options import JsonTo, Machine, Set, Tear
from sardonyx.questions import CrashQuestion, ProgramSource
from sardonyx.runs.crash_test import TEARS
from sardonyx.runs.crashes import FULL_ONE_IN, RECOVERY_CUTS
from sardonyx.runs.jobs import check_designs, parse_settings
from sardonyx.runs.sources import check_known, known_programs, parts

#: The designs of the SCA paper: those that promise something, and the one that does not.
DESIGNS = "sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"
PLATFORMS = ("adr", "eadr", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part")
SHARINGS = ("apart", "packed", "interleaved")
SHARING = "Lines of counters: apart, packed (log and data share), interleaved (cores too)."

Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=0, max=1024, help="Threads; 0 for one a processor.")
]


@dataclass(frozen=True, kw_only=True)
class Tried(Options):
    """Programs over designs, on a machine."""

    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM..",
            help="Programs (see sardonyx programs), or all of them: all.",
            autocompletion=complete.programs,
        ),
    ] = None
    designs: Annotated[
        str,
        typer.Option(
            "--designs",
            "-d",
            help="Designs, or MAPPING+POLICY, separated by commas.",
            autocompletion=complete.designs,
        ),
    ] = DESIGNS
    platform: Annotated[
        str,
        typer.Option(
            help="What reserve power drains at a cut: adr, eadr or none; or a CXL global "
            "persistent flush: gpf, gpf-failed, gpf-device or gpf-part."
        ),
    ] = "adr"
    cores: Annotated[
        int | None, typer.Option(min=1, max=64, help="Cores, each with a structure of its own.")
    ] = None
    transactions: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Transactions of each core.")
    ] = None
    transaction_size: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Size of a transaction's item: 64 to 4K.")
    ] = None
    footprint: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Size of each structure after setup: 4K to 1G."),
    ] = None
    mutant: Annotated[
        str | None, typer.Option(help="Plant this mistake in the program's transactions.")
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, max=2**50, help="Seed of keys, evictions, delays and samples.")
    ] = 1
    machine: Machine = "sca"
    settings: Set = None
    json_to: JsonTo = None

    def pairs(self) -> list[tuple[str, str]]:
        """Every program over every design."""
        if not self.programs:
            raise _core.SardonyxError(
                "no program is named; sardonyx programs lists them, all is all"
            )
        designs = check_designs(parts(self.designs))
        programs = known_programs() if self.programs == ["all"] else self.programs
        return [(program, design) for program in programs for design in designs]

    def below(self) -> dict[str, Any]:
        """The machine below, and the mistake in the program."""
        check_known("platform", self.platform, PLATFORMS, "--platform: ")
        return {
            "machine": self.machine,
            "overrides": parse_settings(self.settings or ()),
            "mutant": self.mutant,
            "platform": self.platform,
        }

    def item(self) -> int | None:
        """Bytes of a transaction's item."""
        text = self.transaction_size
        return None if text is None else size_in_bytes("--transaction-size", text, 64, 4096)

    def region(self) -> int | None:
        """Bytes of a structure."""
        text = self.footprint
        return None if text is None else size_in_bytes("--footprint", text, 4096, 2**30)

    def source(self, program: str, *, software_log: bool = True) -> ProgramSource:
        """The program of one run."""
        return ProgramSource(
            name=program,
            item_bytes=self.item() or 64,
            footprint=self.region() or 16_384,
            transactions=self.transactions or 200,
            seed=self.seed,
            software_log=software_log,
        )


@dataclass(frozen=True, kw_only=True)
class Logged(Tried):
    """Programs whose own undo log may be left out."""

    no_log: Annotated[
        bool,
        typer.Option("--no-log", help="The program keeps no undo log; the design's own stays."),
    ] = False

    def keeps_log(self) -> bool:
        """Whether programs keep an undo log of their own, where the design does not."""
        if self.no_log and self.mutant is not None:
            raise _core.SardonyxError(
                f"--no-log: there is no log to plant {self.mutant} in; leave one out"
            )
        return not self.no_log


@dataclass(frozen=True, kw_only=True)
class Cut(Logged):
    """Runs that are cut: where, how, and what comes after a cut."""

    tear: Tear = "lines"
    attack: Annotated[
        bool | None,
        typer.Option(
            "--attack/--no-attack",
            help="Have an attacker change the medium, after cuts and in runs; default: for "
            "designs with integrity.",
        ),
    ] = None
    recovery_cuts: Annotated[
        int,
        typer.Option(min=0, max=MOST, help="After every Nth cut, go on and cut again; 0: never."),
    ] = RECOVERY_CUTS
    full: Annotated[
        int,
        typer.Option(
            "--full",
            min=1,
            max=MOST,
            help="Check every Nth cut in full, the others by what it changed; 1: every cut.",
        ),
    ] = FULL_ONE_IN
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Directory of replay files; default: that of --json, else results/crash.",
        ),
    ] = None
    jobs: Jobs = 0

    def cut_how(self) -> dict[str, Any]:
        """How a cut is made, and what comes after it."""
        check_known("tear", self.tear, TEARS, "--tear: ")
        if self.tear != "lines" and self.platform != "adr":
            raise _core.SardonyxError(
                f"--tear {self.tear}: is for --platform adr; {self.platform} says its own"
            )
        return {
            "tear": self.tear,
            "recovery_cuts": self.recovery_cuts,
            "threads": self.jobs,
            "full_one_in": self.full,
            "attack": self.attack,
        }


def one_run(
    asked: Tried, sharing: str, *, software_log: bool = True, **how: Any
) -> list[CrashQuestion]:
    """One run of each program and design."""
    check_known("sharing", sharing, SHARINGS, "--sharing: ")
    return [
        CrashQuestion(
            program=asked.source(program, software_log=software_log),
            design=design,
            cores=asked.cores or 1,
            sharing=sharing,
            **asked.below(),
            **how,
        )
        for program, design in asked.pairs()
    ]
