"""``reproduce``: a paper's figures beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.api.asked import Reproduce
from sardonyx.papers.reproduction import Asked, BesidePaper, Plan, document
from sardonyx.papers.sampling import Sampling, marked, population_document
from sardonyx.places import check_replaced, output_directory
from sardonyx.report.sensitivity import sensitivity_table
from sardonyx.report.tables import print_beside
from sardonyx.runs import origin, scheduler
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Simulations
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_known
from sardonyx.simulator import reproduce_all
from sardonyx.simulator.kept import save
from sardonyx.studies import reproductions

#: In the place of a paper: all of them.
ALL = "all"
#: Wishes that not all papers take.
WISHES = ("traces", "machine", "limit", "warmup", "copies")


def answer(asked: Reproduce, watch: Watch | None) -> Answer:
    """The paper's claims beside our figures, or what its sample's cells differ in."""
    if asked.paper == ALL:
        return reproduce_all.answer(asked, watch)
    known = reproductions()
    check_known("paper to reproduce", asked.paper, [*known, ALL])
    of = known[asked.paper]
    for wish in WISHES:
        given = getattr(asked, wish)
        if given and wish not in of.takes:
            option = given[0] if wish == "traces" else f"--{wish} {given}"
            raise SardonyxError(f"{option}: does nothing for {of.name}; leave it out{of.instead}")
    plan = of.plan(
        Asked(
            asked.traces,
            asked.machine or of.machine,
            asked.set,
            asked.limit,
            asked.warmup,
            asked.copies,
            asked.quick,
            asked.seed,
        )
    )
    if asked.population:
        if plan.sampled is None:
            raise SardonyxError(f"--population: this reproduction of {asked.paper} has no sample")
        return Answer("reproduce", {"paper": asked.paper, **population_document(plan.sampled)})
    if asked.cells and plan.sampled is None:
        raise SardonyxError(
            f"--cells {asked.cells}: this reproduction of {asked.paper} has no sample; leave it out"
        )
    if asked.sensitivity and (plan.sampled is None or asked.cells == 0):
        raise SardonyxError(
            "--sensitivity: is of the sample's cells, and there are none; give --cells 40, or "
            "leave it out"
        )
    plan.runs.check()
    target = asked.out or Path("results") / asked.paper
    if note := check_replaced(target):
        scheduler.tell(watch, note)
    with output_directory(target):
        comparison, beside, report = _reproduced(asked, plan, target, watch)
    found = Answer(
        "reproduce", document(asked.paper, plan, beside, comparison), shown=(comparison, beside)
    )
    found.files.append(f"report: {report}")
    return found


def _reproduced(
    asked: Reproduce, plan: Plan, target: Path, watch: Watch | None
) -> tuple[Comparison, BesidePaper, Path]:
    """Everything that is run, and what stands beside the paper, kept in the folder."""
    cells, of = asked.cells, plan.sampled
    if cells is None:
        cells = 0 if of is None else of.quick_cells if asked.quick else of.cells
    of_traces = plan.runs.points if isinstance(plan.runs, Simulations) else ()
    known = origin.origin(getattr(point.source, "path", None) for point in of_traces)
    stages = 2 + bool(of and cells)
    scheduler.tell(watch, f"stage 1 of {stages}: the paper's runs")
    comparison = Comparison(plan.runs.run(asked.jobs, watch))
    scheduler.tell(watch, f"stage 2 of {stages}: tables of the paper")
    exhibits = plan.measure(comparison, watch)
    rows = tuple(plan.claims(comparison))
    sample = None
    if of is not None and cells:
        scheduler.tell(watch, f"stage 3 of {stages}: {cells} cells of what the paper leaves open")
        plain = [run for run in comparison.results.runs if not run.variant]
        sample, found = Sampling(
            of,
            cells,
            asked.seed,
            target / "sample",
            frozenset(key for run in plain for key in run.assumed),
            comparison.results,
            {row.claim.key: row.ours for row in of.claims(comparison)},
            asked.jobs,
            watch,
        ).run(turning=asked.sensitivity)
        if found is not None:
            rows = marked(rows, found)
            comparison = Comparison(replace(comparison.results, sensitivity=found))
    beside = BesidePaper(rows, plan.note, exhibits, plan.verdict(comparison, rows), sample)
    return comparison, beside, save(comparison, target, known, beside)


def groups(answer: Answer) -> list[Any]:
    """The figures of its report."""
    from sardonyx.report import figures

    known = isinstance(answer.shown, tuple)
    return [SimpleNamespace(figures=figures(*answer.shown))] if known else []


def tell(people: Console, answer: Answer) -> None:
    """The verdict, the claims, the tables; or what the cells differ in."""
    if answer["paper"] == ALL:
        return reproduce_all.tell(people, answer)
    if answer.shown is None:
        for world in answer["worlds"]:
            people.print(Text(f"world {world['name']}: {world['why']}"))
        for each in answer["choices"]:
            line = f"{each['name']}: {each['value']} ({each['values']}). {each['why']}"
            people.print(Text(line), soft_wrap=True)
        return
    comparison, beside = answer.shown
    print_beside(people, beside)
    people.print(Text(beside.note, style="dim"))
    if comparison.results.sensitivity:
        people.print(sensitivity_table(comparison.results.sensitivity))
