"""``crash stages``: one run's cuts by the stage of the transaction (SCA, Table 1)."""

from __future__ import annotations

from rich.console import Console

from sardonyx.api.command import Answer
from sardonyx.crashes.tried import answered, one_run, runs
from sardonyx.draw.grid import grid, numbers
from sardonyx.questions import CrashStages
from sardonyx.runs.scheduler import Watch


def answer(asked: CrashStages, watch: Watch | None) -> Answer:
    """What each stage's cuts show of the two copies of the data."""
    asks = one_run(asked, asked.sharing)
    return answered("crash stages", runs(asks, watch, stages=True))


def tell(people: Console, answer: Answer) -> None:
    """The cuts by the stage of the transaction."""
    for run in answer["runs"]:
        title = f"{run['program']}, {run['design']}, {run['platform']}, by stage"
        columns = [key for key in run["stages"][0] if key != "stage"]
        heads = numbers(*(column.replace("_", " ") for column in columns))
        table = grid("stage", *heads, title=title, header_style="dim")
        for row in run["stages"]:
            table.add_row(row["stage"], *(f"{row[column]:,}" for column in columns))
        people.print(table)
