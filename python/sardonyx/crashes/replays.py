"""Replay files of ``sardonyx crash``: all that it takes to make one cut again.

A command line would have to name the machine, each setting of a pass, and the run; a file holds
them, and the line that is printed names the file. Left out: what the cut then shows.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.api.asked import CrashOnce, CrashRun
from sardonyx.crashes.attacks import not_promised
from sardonyx.files import FileError, read_text, write_text
from sardonyx.questions import AttackAsked, CrashQuestion, ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.crashes import RECOVERY_CUTS
from sardonyx.runs.scheduler import Watch
from sardonyx.values import read as read_value

#: A file with more bytes than this is not a replay file.
MOST_BYTES = 2**22


#: The command that makes the violation of a run again.
Again: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], str]


def of(asked: CrashRun | CrashOnce) -> Replays:
    """Where the replay files of a command go; an error unless they can be put there."""
    if asked.out.exists() and not asked.out.is_dir():
        raise _core.SardonyxError(f"--out {asked.out}: is not a directory; name one")
    return Replays(asked.out, asked.machine, asked.set, not asked.no_log, options(asked))


#: What a command of cuts may be given besides program, design, machine, settings and log.
OPTIONS = (
    *("platform", "cores", "sharing", "transactions", "transaction_size", "footprint", "mutant"),
    *("seed", "tear", "cuts", "recovery_cuts"),
)


def options(asked: CrashRun | CrashOnce) -> tuple[str, ...]:
    """The command, and the options that it was given or has by default."""
    command = "run" if isinstance(asked, CrashRun) else "once"
    given = ((name, getattr(asked, name, None)) for name in OPTIONS)
    words = (
        (f"--{name.replace('_', '-')}", str(value)) for name, value in given if value is not None
    )
    return (command, *(word for pair in words for word in pair))


@dataclass(frozen=True, slots=True)
class Replays:
    """Where the replay files of a command go, and what they all say of it."""

    folder: Path
    machine: str
    settings: Sequence[tuple[str, str]]
    software_log: bool
    #: The command's name and its other options.
    options: tuple[str, ...]

    def write(self, runs: Sequence[dict[str, Any]]) -> Again:
        """Write a file for each violation, and give the command of each by its place."""
        lines = {
            (number, id(each)): self.line(run, each)
            for number, run in enumerate(runs)
            for each in (*run["violations"], *not_promised(run))
        }
        places = {id(run): number for number, run in enumerate(runs)}
        return lambda run, violation: lines[places[id(run)], id(violation)]

    def line(self, run: Mapping[str, Any], violation: Mapping[str, Any]) -> str:
        """The command that makes the violation's cut alone; its file is written."""
        if violation["cut"] is None:
            return self.whole(run)
        asked = self.question(run, violation)
        design = re.sub(r"[^A-Za-z0-9+-]+", "-", run["design"])
        attack = violation.get("attack")
        kind = f"{attack['when']}-{attack['kind']}" if attack else violation["kind"]
        target = self.folder / f"{run['program']}-{design}-{kind}.json"
        document = {
            "sardonyx": _core.VERSION,
            "violation": violation["history"][0],
            "replay": asked.document(),
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(str(target), _text(document) + "\n")
        except OSError as error:
            return f"none: {target} cannot be written ({error.strerror}); give --out DIR"
        return shlex.join(["sardonyx", "crash", "replay", str(target)])

    def whole(self, run: Mapping[str, Any]) -> str:
        """The command again, for what no cut shows."""
        command, *options = self.options
        words = ["sardonyx", "crash", command, run["program"], "--designs", run["design"]]
        words += ["--machine", self.machine, *options]
        words += [word for key, value in self.settings for word in ("--set", f"{key}={value}")]
        words += [] if self.software_log else ["--no-log"]
        return shlex.join(words)

    def question(self, run: Mapping[str, Any], violation: Mapping[str, Any]) -> CrashQuestion:
        """The run of the violation's pass, cut where the violation is."""
        own = violation.get("run", run)
        planned = "passes" in run and "pass" in violation
        of_pass = run["passes"][violation["pass"]]["settings"] if planned else []
        settings = {key: value for key, value in (*of_pass, *self.settings)}
        machine = Path(self.machine)
        return CrashQuestion(
            program=ProgramSource(
                name=own["program"],
                item_bytes=own["transaction_bytes"],
                footprint=own["footprint_bytes"],
                transactions=own["transactions"],
                seed=own["seed"],
                software_log=self.software_log,
            ),
            design=own["design"],
            cores=own["cores"],
            sharing=own["sharing"],
            machine=str(machine.resolve()) if machine.is_file() else self.machine,
            overrides=tuple(settings.items()),
            mutant=own["mutant"],
            platform=run["platform"],
            tear=run["tear"],
            recovery_cuts=RECOVERY_CUTS if violation["recovery_cut"] is None else 1,
            cut=violation["cut"],
            one_attack=AttackAsked(**attack) if (attack := violation.get("attack")) else None,
            script=violation.get("script"),
        )


def _text(document: Mapping[str, Any]) -> str:
    """The document with one member a line, and the numbers of a script's entry on one."""
    text = json.dumps(document, indent=1)
    return re.sub(r"\[\s+(\d+),\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2, \3]", text)


def read(path: Path, threads: int, watch: Watch | None) -> CrashQuestion:
    """What a replay file asks; an error that says what to name if it is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"has more than {MOST_BYTES:,} bytes")
        document = json.loads(read_text(path))
        asked = read_value(CrashQuestion, {**document["replay"], "threads": threads})
    except FileError:
        raise
    except OSError as error:
        raise _core.SardonyxError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _core.SardonyxError(
            f"{path}: is not a replay file; name one that sardonyx crash has written"
        ) from error
    if asked.cut is None:
        raise _core.SardonyxError(f"{path}: names no cut; write the file again")
    if document.get("sardonyx") != _core.VERSION:
        old = f"{path} is of Sardonyx {document.get('sardonyx')}: the run may be another by now"
        scheduler.tell(watch, old)
    return asked
