"""Several seeds of one run: each figure is the mean over them, with how far the mean may be off.

Programs and generated traces are drawn from a seed; a recorded trace is not. A figure of two runs
is taken of the runs of each seed, then their mean: what both owe to the seed is in no interval.
Left out: seeds as points of a sweep, which has a row for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace

from sardonyx.runs.facts import Trace
from sardonyx.runs.results import Cause, Results, Run, Seeds
from sardonyx.runs.spread import estimate


def merge(results: Results, number: int) -> Results:
    """One run for each ``number`` of runs, which differ in their seeds alone."""
    each = [results.runs[at : at + number] for at in range(0, len(results.runs), number)]
    runs = [_merged([_told(run.trace) for run in seeds], seeds) for seeds in each]
    known = {trace.name: trace.info for trace in results.traces}
    first = {_told(seeds[0].trace)[0]: seeds[0].trace for seeds in each}
    traces = [Trace(name, known[seeded]) for name, seeded in first.items()]
    return replace(results, runs=tuple(runs), traces=tuple(traces))


def _told(trace: str) -> tuple[str, int]:
    """The trace and the seed that the name of a run's trace has."""
    name, _, seed = trace.rpartition(", seed ")
    return name, int(seed)


def _merged(seeded: Sequence[tuple[str, int]], runs: Sequence[Run]) -> Run:
    """One run of several that differ in their seeds: means, and what each seed gave.

    Distributions, epochs and usage are of one run each and have no mean; they are left out.
    """
    values = {
        name: tuple(run.metrics.get(name) for run in runs)
        for name in dict.fromkeys(name for run in runs for name in run.metrics)
    }
    found = {name: estimate(each) for name, each in values.items()}
    causes = dict.fromkeys(name for run in runs for name in run.causes)
    return Run(
        seeded[0][0],
        runs[0].design,
        runs[0].machine,
        runs[0].copies,
        dict(runs[0].variant),
        metrics={name: each.value for name, each in found.items()},
        causes={name: _cause([run.causes.get(name, Cause()) for run in runs]) for name in causes},
        assumed=tuple(dict.fromkeys(name for run in runs for name in run.assumed)),
        seeds=Seeds(
            tuple(seed for _, seed in seeded),
            {name: each.half for name, each in found.items() if each.half is not None},
            values,
        ),
    )


def _cause(booked: Sequence[Cause]) -> Cause:
    """The mean of the amounts under a cause; a run without the cause has zeros."""
    known = {
        each.name: [getattr(cause, each.name) or 0.0 for cause in booked]
        for each in fields(Cause)
        if any(getattr(cause, each.name) is not None for cause in booked)
    }
    return Cause(**{name: math.fsum(values) / len(values) for name, values in known.items()})


def said(results: Results) -> str:
    """How many seeds the results are means over, and which; nothing where they are not."""
    seeds = next((run.seeds.seeds for run in results.runs if run.seeds), ())
    return f"{len(seeds)}, {seeds[0]} to {seeds[-1]}" if seeds else ""
