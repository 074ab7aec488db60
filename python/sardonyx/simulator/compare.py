"""``compare``: designs on traces and programs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from sardonyx import _core, layers
from sardonyx._core import SardonyxError
from sardonyx.api.asked import Compare
from sardonyx.files import check_target, is_special
from sardonyx.places import fresh, kept_runs
from sardonyx.runs import jobs, mixes, origin, scheduler
from sardonyx.runs.answers import answers
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point
from sardonyx.runs.recordings import known, path_of
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.seeds import merge
from sardonyx.runs.sensitivity import DRAWS
from sardonyx.runs.sources import MIX, SYNTH
from sardonyx.runs.written import Window, Written, parse_window
from sardonyx.simulator import kept

FILE = "results.json"


def place(asked: Compare) -> Path:
    """Where results go unless the user says so."""
    first = asked.traces[0] if asked.traces else ""
    return fresh(first if first.startswith((SYNTH, MIX)) else Path(first).stem)


def answer(asked: Compare, watch: Watch | None) -> Results:
    """Every design on every trace; all is checked before the first run."""
    asked = asked.replace(designs=layers.names(asked.designs))
    plan = jobs.Plan(_core.comparison(asked.json(), known()))
    points = points_of(plan) if asked.sensitivity else []
    written = _written(asked, len(plan.points))
    for line in plan.notes:
        scheduler.tell(watch, line)
    results = jobs.carry_out(plan, asked.jobs, watch, written)
    if asked.seeds is not None:
        results = merge(results, asked.seeds)
    if asked.sensitivity:
        from sardonyx.vary import turning

        conclusions = turning.of_comparison(
            points,
            plan.settings(),
            results.runs,
            kept_runs(asked.out),
            workers=asked.jobs,
            draws=DRAWS if asked.draws is None else asked.draws,
            seed=asked.seed,
            watch=watch,
        )
        results = replace(results, sensitivity=conclusions)
    paths = [each["source"].get("path") for each in plan.traces]
    made_of = origin.origin(paths, dict.fromkeys(asked.designs))
    return replace(results, origin=made_of, files=written.named() if written else [])


def points_of(plan: jobs.Plan) -> list[Point]:
    """The runs of a comparison, to be varied; an error unless conclusions could flip."""
    sources = plan.sources()
    mixes.refuse("--sensitivity", sources)
    layers.check_elsewhere({point.design: None for point in plan.points})
    if len({point.design for point in plan.points}) < 2:
        raise SardonyxError(
            "--sensitivity: there are no two designs to compare; give two, as in --designs "
            "baseline,esd"
        )
    return [Point(each.trace, sources[each.trace], each.design) for each in plan.points]


def _written(asked: Compare, points: int) -> Written | None:
    """The files of a run's requests that the user asks for."""
    files = {
        "--timeline": asked.timeline,
        "--requests": asked.requests,
        "--commands": asked.commands,
    }
    if not any(files.values()):
        return None
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
    from sardonyx.report.tables import compare_table, mix_table, noted, sample_table

    people.print(compare_table(Comparison(results), people.width, noted(people)))
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
    from sardonyx.report import figures

    return [SimpleNamespace(figures=figures(Comparison(results)))]


def report(results: Results, path: str | os.PathLike[str]) -> None:
    """Write the report of these results."""
    from sardonyx.report import write_report

    write_report(Comparison(results), path)
