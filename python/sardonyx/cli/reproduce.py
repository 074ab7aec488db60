"""``sardonyx reproduce``: a paper's figures beside ours."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    MOST,
    PATH,
    check_json_target,
    err,
    for_people,
    note,
    output_directory,
    write_json,
)
from sardonyx.cli.flips import sensitivity_table
from sardonyx.cli.forms import Options
from sardonyx.cli.help import rare
from sardonyx.cli.options import (
    Draws,
    JsonTo,
    Limit,
    Sensitivity,
    Set,
    Warmup,
    Workers,
    check_draws,
)
from sardonyx.cli.places import check_replaced, kept_runs
from sardonyx.cli.progress import Watcher
from sardonyx.cli.report import print_beside, save
from sardonyx.cli.sweep import View
from sardonyx.papers import headlines
from sardonyx.papers.reproduction import Asked, BesidePaper, Plan, document
from sardonyx.papers.sample import Sample
from sardonyx.papers.sampling import (
    Sampled,
    Sampling,
    population_document,
)
from sardonyx.runs import origin
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Simulations, parse_settings
from sardonyx.runs.scheduler import processors
from sardonyx.runs.sensitivity import Sensitivity as Found
from sardonyx.runs.sources import check_known
from sardonyx.studies import names, reproductions

PAPERS = " or ".join(names())
#: The papers whose headline claims can be varied.
HEADLINED = ("esd", "sca", "easy-pm", "pageforge")


#: Wishes whose options are fields of another name.
OPTIONS = {"overrides": "settings"}


@dataclass(frozen=True, kw_only=True)
class Reproduce(Options):
    """The options of ``sardonyx reproduce``."""

    paper: Annotated[str, typer.Argument(help=f"The paper: {PAPERS}.")]
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            help="esd: recordings that stand in for its programs; default: the package's. "
            "pageforge: some of its applications, images of virtual machines."
        ),
    ] = None
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points; shorter traces, smaller programs.")
    ] = False
    machine: Annotated[
        str | None,
        typer.Option("--machine", "-m", help="Default: the machine of the paper's name."),
    ] = None
    settings: Set = None
    limit: Limit = None
    warmup: Warmup = None
    copies: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="esd: cores that each run a trace, with contents of their own; default: 8.",
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, max=MOST, help="Seed of generated traces and of programs.")
    ] = 0
    cells: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100_000,
            help="Cells of the sample; default: 200, of --quick 40 (pageforge: 40 and 8); 0 leaves "
            "the sample out.",
        ),
    ] = None
    population: Annotated[
        bool,
        typer.Option("--population", help="Run nothing: list what the sample's cells differ in."),
    ] = False
    sensitivity: Sensitivity = False
    draws: Draws = None
    workers: Workers = None
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Directory of the results; default: results/PAPER.", **PATH
        ),
    ] = None
    json_to: JsonTo = None


@rare("settings", "limit", "warmup", "copies", "seed", "cells", "population", "draws", "workers")
def reproduce(asked: Reproduce) -> None:
    """Print every claim of a paper beside our figure, and draw its figures.

    The headline claims are judged over a sample too: in cells that differ in all that the paper
    leaves open, in how many has ours the paper's sign, and which choices decide it?

    [bold]Examples[/bold]

    sardonyx reproduce esd --quick --out results/esd

    sardonyx reproduce sca --quick

    sardonyx reproduce recam --quick

    sardonyx reproduce easy-pm --quick --sensitivity

    sardonyx reproduce pageforge silo --quick --set window.phase=merging
    """
    known = reproductions()
    paper = asked.paper
    check_known("paper to reproduce", paper, list(known))
    draws = check_draws(asked.sensitivity, asked.draws)
    wishes = Asked(
        asked.traces or [],
        asked.machine or known[paper].machine,
        parse_settings(asked.settings or ()),
        asked.limit,
        asked.warmup,
        asked.copies,
        asked.quick,
        asked.seed,
    )
    plan = known[paper].plan(wishes)
    if asked.population:
        _population(asked, plan)
        return
    if asked.cells and plan.sampled is None:
        raise _core.SardonyxError(
            f"--cells {asked.cells}: this reproduction of {paper} has no sample; leave it out"
        )
    if asked.sensitivity:
        if plan.headlines is None:
            able = [name for name in known if name in HEADLINED]
            raise _core.SardonyxError(
                f"--sensitivity: {paper} has no runs of its headline claims to vary; those of "
                f"{', '.join(able)} have"
            )
        plan.headlines.runs.check()
    plan.runs.check()
    check_json_target(asked.json_to, asked.traces or ())
    target = asked.directory or Path("results") / paper
    check_replaced(target)
    unread = [OPTIONS.get(name, name) for name in wishes.unread()]
    _ = asked.workers  # of every form: `_reproduce` uses it
    asked.refuse_idle(f"for {paper}", unread=unread)
    _reproduce(asked, plan, target, draws)


def _population(asked: Reproduce, plan: Plan) -> None:
    """Print what the cells differ in, and the worlds that are samples of their own."""
    if plan.sampled is None:
        raise _core.SardonyxError(f"--population: this reproduction of {asked.paper} has no sample")
    _ = asked.directory  # where nothing is written
    found = population_document(plan.sampled)
    people = for_people(asked.json_to)
    for world in found["worlds"]:
        people.print(Text(f"world {world['name']}: {world['why']}"))
    for each in found["choices"]:
        line = f"{each['name']}: {each['value']} ({each['values']}). {each['why']}"
        people.print(Text(line), soft_wrap=True)
    write_json(asked.json_to, {"paper": asked.paper, **found})


def _reproduce(asked: Reproduce, plan: Plan, target: Path, draws: int) -> None:
    workers, json_to = asked.workers, asked.json_to
    cells = asked.cells
    if cells is None:
        of = plan.sampled
        cells = 0 if of is None else of.quick_cells if asked.quick else of.cells
    with output_directory(target):
        known_origin = origin.origin(
            [point.source for point in plan.runs.points]
            if isinstance(plan.runs, Simulations)
            else []
        )
        with Watcher(err) as watch:
            comparison = Comparison(plan.runs.run(workers, watch))
        with Watcher(err) as watch:
            exhibits = plan.measure(comparison, watch)
        rows = tuple(plan.claims(comparison))
        if asked.sensitivity and plan.headlines is not None:
            found = _sensitivity(plan.headlines, target, workers, draws, asked.seed)
            rows = headlines.marked(rows, found)
            comparison = Comparison(replace(comparison.results, sensitivity=found))
        sample = None
        if plan.sampled is not None and cells:
            sample = _sample(plan.sampled, comparison, target, workers, cells, asked.seed)
        beside = BesidePaper(rows, plan.note, exhibits, plan.verdict(comparison, rows), sample)
        report = save(comparison, target, known_origin, beside)
    people = for_people(json_to)
    print_beside(people, beside)
    people.print(Text(plan.note, style="dim"))
    if comparison.results.sensitivity:
        people.print(sensitivity_table(comparison.results.sensitivity, people.width))
    write_json(json_to, document(asked.paper, plan, beside, comparison))
    people.print(f"report: {report}", soft_wrap=True)


def _sample(
    of: Sampled, comparison: Comparison, target: Path, workers: int | None, cells: int, seed: int
) -> Sample:
    plain = [run for run in comparison.results.runs if not run.variant]
    return Sampling(
        of,
        cells,
        seed,
        target / "sample",
        frozenset(key for run in plain for key in run.assumed),
        comparison.results,
        {row.claim.key: row.ours for row in of.claims(comparison)},
        workers,
        partial(View, err),
        note,
    ).run()


def _sensitivity(
    of: headlines.Headlines, target: Path, workers: int | None, draws: int, seed: int
) -> Found:
    with Watcher(err) as watch:
        began, points = time.monotonic(), len(of.runs.points)
        started = of.runs.run(workers, watch)
        took = time.monotonic() - began
    return headlines.study(
        of,
        started,
        kept_runs(target),
        took * min(points, workers or processors()) / points,
        workers=workers,
        draws=draws,
        seed=seed,
        shown=partial(View, err),
        say=note,
    )
