"""What runs of programs under designs are asked, and how their answers are made.

Left out: what the commands ask beside that, and how their answers are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.api.command import CHECK_FAILED, Answer
from sardonyx.questions import (
    CrashExhaustive,
    CrashOnce,
    CrashQuestion,
    CrashRun,
    CrashStages,
    ProgramSource,
    TrialQuestion,
)
from sardonyx.runs import scheduler
from sardonyx.runs.crashes import explore, memory
from sardonyx.runs.jobs import check_designs
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import known_programs

Tried: TypeAlias = CrashRun | CrashOnce | CrashStages | CrashExhaustive
#: From this many bytes on, memory is mentioned.
NOTABLE = 2**30


def pairs(asked: Tried) -> Iterator[tuple[str, str]]:
    """Every program over every design."""
    designs = check_designs(asked.designs)
    for program in known_programs() if asked.programs == ("all",) else asked.programs:
        yield from ((program, design) for design in designs)


def below(asked: Tried) -> dict[str, Any]:
    """The machine below, and the mistake in the program."""
    return {
        "machine": asked.machine,
        "overrides": asked.set,
        "mutant": asked.mutant,
        "platform": asked.platform,
    }


def cut_how(asked: CrashRun | CrashOnce) -> dict[str, Any]:
    """How a cut is made, and what comes after it."""
    return {
        "tear": asked.tear,
        "recovery_cuts": asked.recovery_cuts,
        "threads": asked.jobs,
        "full_one_in": asked.full,
        "attack": asked.attack,
    }


def one_run(
    asked: CrashOnce | CrashStages | CrashExhaustive,
    sharing: str,
    *,
    transactions: int = 200,
    footprint: int = 16_384,
    **how: Any,
) -> list[CrashQuestion]:
    """One run of each program and design, of these sizes unless others are asked for."""
    return [
        CrashQuestion(
            program=ProgramSource(
                name=program,
                item_bytes=asked.transaction_size or 64,
                footprint=asked.footprint or footprint,
                transactions=asked.transactions or transactions,
                seed=asked.seed,
                software_log=isinstance(asked, CrashStages) or not asked.no_log,
            ),
            design=design,
            cores=asked.cores or 1,
            sharing=sharing,
            **below(asked),
            **how,
        )
        for program, design in pairs(asked)
    ]


def runs(
    questions: Sequence[CrashQuestion] | Sequence[TrialQuestion],
    watch: Watch | None,
    *,
    stages: bool = False,
) -> list[dict[str, Any]]:
    """What each shows; an error before any work if one cannot be asked or has no room."""
    needed = max(map(memory, questions))
    if needed >= NOTABLE:
        scheduler.tell(
            watch,
            f"a run needs about {needed / 2**30:.1f} GiB of memory, and some minutes for each "
            "GiB; a smaller --footprint or fewer --transactions need less",
        )
    return explore(questions, watch, stages=stages)


def answered(command: str, runs: list[dict[str, Any]], shown: Any = None) -> Answer:
    """The answer of a command; ``shown`` has the command that shows each violation again."""
    status = CHECK_FAILED if any(run.get("fails") for run in runs) else 0
    return Answer(command, {"sardonyx": _core.VERSION, "runs": runs}, status, shown=shown)
