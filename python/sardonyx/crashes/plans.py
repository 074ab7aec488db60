"""What commands about cuts share: which programs run over which designs, and with what status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx import _core
from sardonyx.answer import CHECK_FAILED, Answer
from sardonyx.api.asked import CrashExhaustive, CrashOnce, CrashRun, CrashStages
from sardonyx.questions import CrashQuestion, ExhaustiveQuestion, ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.crashes import Question, memory
from sardonyx.runs.jobs import check_designs
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import known_programs

#: From this many bytes on, memory is mentioned.
NOTABLE = 2**30


def pairs(asked: CrashRun | CrashOnce | CrashStages | CrashExhaustive) -> list[tuple[str, str]]:
    """Every program over every design."""
    designs = check_designs(asked.designs)
    programs = known_programs() if asked.programs == ("all",) else asked.programs
    return [(program, design) for program in programs for design in designs]


def one_run(
    asked: CrashOnce | CrashStages | CrashExhaustive,
    sharing: str,
    *,
    footprint: int = 16_384,
    transactions: int = 200,
    **how: Any,
) -> list[CrashQuestion]:
    """One run of each program and design."""
    return [
        CrashQuestion(
            program=ProgramSource(
                name=program,
                item_bytes=asked.transaction_size or 64,
                footprint=asked.footprint or footprint,
                transactions=asked.transactions or transactions,
                seed=asked.seed,
                software_log=not getattr(asked, "no_log", False),
            ),
            design=design,
            cores=asked.cores or 1,
            sharing=sharing,
            machine=asked.machine,
            overrides=asked.set,
            mutant=asked.mutant,
            platform=asked.platform,
            **how,
        )
        for program, design in pairs(asked)
    ]


def cut_how(asked: CrashRun | CrashOnce) -> dict[str, Any]:
    """How a cut is made, and what comes after it."""
    return {
        "tear": asked.tear,
        "recovery_cuts": asked.recovery_cuts,
        "threads": asked.jobs,
        "full_one_in": asked.full,
        "attack": asked.attack,
    }


def ran(
    command: str,
    asked: Sequence[Question],
    explore: Callable[[], list[dict[str, Any]]],
    watch: Watch | None,
) -> Answer:
    """What came of the runs, with the status that they have earned."""
    sized = [each for each in asked if not isinstance(each, ExhaustiveQuestion)]
    needed = max(map(memory, sized), default=0)
    if needed >= NOTABLE:
        scheduler.tell(
            watch,
            f"a run needs about {needed / 2**30:.1f} GiB of memory, and some minutes for each "
            "GiB; a smaller --footprint or fewer --transactions need less",
        )
    runs = explore()
    status = CHECK_FAILED if any(run.get("fails") for run in runs) else 0
    return Answer(command, {"sardonyx": _core.VERSION, "runs": runs}, status)
