"""``crash stages``: one run's cuts by the stage of the transaction (SCA, Table 1)."""

from __future__ import annotations

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashStages
from sardonyx.crashes import plans
from sardonyx.crashes.show import show_stages
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashStages, watch: Watch | None) -> Answer:
    """The counts of each run."""
    return plans.ran(asked, _core.crash_stages, watch)


def tell(people: Console, answer: Answer) -> None:
    """A table a run."""
    show_stages(people, answer["runs"])
