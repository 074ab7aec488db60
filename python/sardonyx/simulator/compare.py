"""``compare``: designs on traces and programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from sardonyx import layers
from sardonyx._core import SardonyxError
from sardonyx.api.asked import Compare, Explore
from sardonyx.files import is_special
from sardonyx.places import check_target, fresh, kept_runs
from sardonyx.questions import ProgramSource
from sardonyx.runs import jobs, mixes, origin, scheduler
from sardonyx.runs.answers import answers
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings, check_designs, parse_sample, parse_warmup
from sardonyx.runs.recordings import path_of
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.seeds import Seeded
from sardonyx.runs.sensitivity import DRAWS
from sardonyx.runs.sources import beyond, named, program_names
from sardonyx.runs.written import Window, Written, parse_window
from sardonyx.simulator import kept

FILE = "results.json"


def place(asked: Compare) -> Path:
    """Where results go unless the user says so."""
    return fresh(next(iter(named(asked.traces, None, ProgramSource()))))


def answer(asked: Compare, watch: Watch | None) -> Results:
    """Every design on every trace; all is checked before the first run."""
    points = points_of(asked)
    count, share = parse_warmup(asked.warmup or "0")
    of_traces = {"addresses": asked.addresses, "arrivals": asked.arrivals}
    shared = Settings(
        asked.machine,
        (*asked.set, *((key, value) for key, value in of_traces.items() if value is not None)),
        count,
        asked.copies,
        float(asked.distinct),
        share,
        None if asked.sample is None else parse_sample(asked.sample, asked.seed),
        verify=asked.verify,
        threads=asked.threads,
    )
    if asked.sensitivity:
        check_sensitivity(points)
    seeded = None if asked.seeds is None else Seeded(points, asked.seeds)
    jobs.check(seeded.each if seeded else points, shared)
    written = _written(asked, len(points))
    for line in beyond(point.source for point in points):
        scheduler.tell(watch, line)
    known = origin.origin(
        (point.source for point in points), dict.fromkeys(point.design for point in points)
    )
    if seeded is not None:
        results = seeded.run(shared, asked.jobs, watch)
    else:
        results = jobs.run(points, shared, asked.jobs, watch, written)
    if asked.sensitivity:
        from sardonyx.vary import turning

        found = turning.of_comparison(
            points,
            shared,
            results.runs,
            kept_runs(asked.out),
            workers=asked.jobs,
            draws=DRAWS if asked.draws is None else asked.draws,
            seed=asked.seed,
            watch=watch,
        )
        results = replace(results, sensitivity=found)
    return replace(results, origin=known, files=written.named())


def points_of(asked: Compare | Explore) -> list[Point]:
    """The runs of a comparison; nothing but names has been checked."""
    sizes = ProgramSource(
        item_bytes=asked.transaction_size,
        footprint=asked.footprint,
        transactions=asked.transactions,
        seed=getattr(asked, "seed", 0) if program_names(asked.traces) else 0,
    )
    chosen = check_designs(asked.designs)
    sources = named(asked.traces, asked.limit, sizes)
    return [Point(name, source, d) for name, source in sources.items() for d in chosen]


def check_sensitivity(points: Sequence[Point]) -> None:
    """An error unless there are conclusions that could flip."""
    mixes.refuse("--sensitivity", {point.trace: point.source for point in points})
    layers.check_elsewhere({point.design: None for point in points})
    if len({point.design for point in points}) < 2:
        raise SardonyxError(
            "--sensitivity: there are no two designs to compare; give two, as in --designs "
            "baseline,esd"
        )


def _written(asked: Compare, points: int) -> Written:
    """The files of a run's requests that the user asks for."""
    files = {
        "--timeline": asked.timeline,
        "--requests": asked.requests,
        "--commands": asked.commands,
    }
    seen: dict[Path, str] = {}
    for option, target in files.items():
        if target is None:
            continue
        check_target(target, map(path_of, asked.traces), f"{option} ")
        if is_special(target):
            raise SardonyxError(f"{option} {target}: is a device or a pipe; name a file")
        other = seen.setdefault(target.resolve(), option)
        if other != option:
            raise SardonyxError(f"{option} {target}: is {other}'s file; name another")
    if asked.commands is not None and (points > 1 or asked.sensitivity):
        raise SardonyxError(
            f"--commands {asked.commands}: is of one run, and there are {points} or more; name one "
            "trace and one design"
        )
    given = asked.timeline_window
    window = Window() if given is None else parse_window(given)
    return Written(asked.timeline, window, asked.requests, asked.commands)


def tell(people: Console, results: Results) -> None:
    """Tables: designs beside the first, samples, mixes, what flips; then where files are."""
    from sardonyx.report.tables import compare_table, mix_table, sample_table

    people.print(compare_table(Comparison(results), people.width))
    if any(run.sample for run in results.runs):
        people.print(sample_table(results, people.width))
    if any(run.mix for run in results.runs):
        people.print(mix_table(results))
    if results.sensitivity:
        from sardonyx.report.sensitivity import sensitivity_table

        people.print(sensitivity_table(results.sensitivity))


def said(results: Results) -> dict[str, Any]:
    """The answers in words."""
    return {"answers": [each.to_document() for each in answers(Comparison(results))]}


def save(results: Results, folder: Path) -> Path:
    """Keep results in a folder, and give the report's path."""
    return kept.save(Comparison(results), folder, dict(results.origin))


def groups(results: Results) -> list[Any]:
    """The figures of its report."""
    from sardonyx.report import Figure, figures

    drawn = [each for each in figures(Comparison(results)) if isinstance(each, Figure)]
    return [SimpleNamespace(figures=drawn)]


def report(results: Results, path: str | os.PathLike[str]) -> None:
    """Write the report of these results."""
    from sardonyx.report import write_report

    write_report(Comparison(results), path)
