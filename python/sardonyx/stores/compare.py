"""``store compare``: the resistive CAM and its rival on one stream of blocks."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import StoreCompare
from sardonyx.draw.grid import numbers
from sardonyx.questions import BlockTrace, Stream, Workload
from sardonyx.runs.results import Results, Run
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.stores import StorePoint, StoreQuestion, StoreRuns, known
from sardonyx.values import read

#: The suffix of figures of one operation's energy.
SPENT = "_energy_nj"


def answer(asked: StoreCompare, watch: Watch | None) -> Answer:
    """Each design on the workload."""
    questions = read(tuple[StoreQuestion, ...], json.loads(_core.store_runs(asked.json())))
    name = _named(questions[0].workload)
    points = [StorePoint(name, question) for question in questions]
    runs = StoreRuns(points, None if asked.dir is None else str(asked.dir))
    runs.check()
    return Answer("store compare", runs.run(asked.jobs, watch).to_document())


def _named(workload: Workload) -> str:
    """The workload, as results name it."""
    if isinstance(workload, Stream):
        return f"{workload.duplicates:.0%} duplicates"
    share = workload.duplicates if isinstance(workload, BlockTrace) else None
    assumed = "" if share is None else f", {share:.0%} duplicates assumed"
    return f"{workload.path}{assumed}"


def tell(people: Console, answer: Answer) -> None:
    results = Results.from_document(dict(answer))
    people.print(_table(results))
    for line in _energies(results) + _lives(results):
        people.print(Text(line))
    people.print(Text(_note(results), style="dim"))


def _table(results: Results) -> Table:
    heads = ("bytes", "writes", "duplicates", "writes/s", "operations/s", "energy")
    table = Table("design", *numbers(*heads), box=None)
    for run in results.runs:
        table.add_row(
            run.design,
            _bytes(run.metric("bytes") or 0),
            f"{run.metric('writes') or 0:,.0f}",
            f"{run.metric('duplicate_writes') or 0:,.0f}",
            _rate(run.metric("writes_per_second")),
            _rate(run.metric("operations_per_second")),
            energy(run),
        )
    return table


def energy(run: Run) -> str:
    """Joules between the ends of the bracket."""
    low, high = (run.metric(f"energy_nj_{end}") for end in ("low", "high"))
    if low is None or high is None:
        return "–"
    ends = [f"{nj / 1e9:,.3g}" for nj in (low, high)]
    return f"{ends[0]} J" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} J"


def _energies(results: Results) -> list[str]:
    """The parts of each store's energy, in the middle of the brackets, the largest first."""
    told = []
    for run in results.runs:
        by = {
            name.removesuffix(SPENT): value
            for name, value in run.metrics.items()
            if name.endswith(SPENT) and value
        }
        if not by:
            continue
        most = sorted(by.items(), key=lambda each: -each[1])
        parts = [f"{name} {nj / 1e9:,.3g} J ({nj / sum(by.values()):.1%})" for name, nj in most]
        told.append(f"{run.design}: energy by operation: {', '.join(parts)}.")
    return told


def _bytes(number: float) -> str:
    for size, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if number >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.0f}"


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return "–"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if per_second >= size:
            return f"{per_second / size:.2f} {letter}"
    return f"{per_second:.0f}"


def _lives(results: Results) -> list[str]:
    """The life of each store, if it worked like this day and night."""
    told = []
    for run in results.runs:
        low, high, least, most, years = (
            run.metric(f"years{end}")
            for end in ("_low", "_high", "_levelled_low", "_levelled_high", "")
        )
        if low is not None and high is not None and least is not None and most is not None:
            told.append(
                f"{run.design}: its most written row lasts {low:.3g} to {high:.3g} years at this "
                f"rate; were all rows written alike, {least:.3g} to {most:.3g}."
            )
        elif years is not None:
            told.append(f"{run.design}: its drive lasts {years:.3g} years at this rate.")
    return told


def _note(results: Results) -> str:
    assumed = ", ".join(f"{a.parameter} = {a.value}" for a in results.machine.assumed)
    words = [known(name).line for name in dict.fromkeys(run.design for run in results.runs)]
    words.append(f"Energies and what else is assumed: {assumed}.")
    return " ".join(words)
