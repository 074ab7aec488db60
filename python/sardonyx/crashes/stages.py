"""``crash stages``: one run's cuts by the stage of the transaction (SCA, Table 1)."""

from __future__ import annotations

from rich.console import Console

from sardonyx.answer import Answer
from sardonyx.api.asked import CrashStages
from sardonyx.crashes import plans
from sardonyx.crashes.show import show_stages
from sardonyx.runs.crashes import explore
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashStages, watch: Watch | None) -> Answer:
    """The counts of each run."""
    runs = plans.one_run(asked, asked.sharing)
    return plans.ran("crash stages", runs, lambda: explore(runs, watch, stages=True), watch)


def tell(people: Console, answer: Answer) -> None:
    """A table a run."""
    show_stages(people, answer["runs"])
