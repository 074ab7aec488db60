"""Several seeds of one run: each figure is the mean over them, with how far the mean may be off.

Programs and generated traces are drawn from a seed; a recorded trace is not. A figure of two runs
is taken of the runs of each seed, then their mean: what both owe to the seed is in no interval.
Left out: seeds as points of a sweep, which has a row for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from sardonyx import _core
from sardonyx.questions import MixSource, ProgramSource, SynthSource, TraceSource
from sardonyx.runs import jobs
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.results import Cause, Results, Run, Seeds, Trace
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.spread import estimate

MOST_SEEDS = 1000


@dataclass(frozen=True, slots=True)
class Seeded:
    """Points to run with ``number`` seeds each, from the source's own one on."""

    points: Sequence[Point]
    number: int

    def __post_init__(self) -> None:
        for point in self.points:
            if isinstance(point.source, TraceSource | MixSource):
                what = "mix" if isinstance(point.source, MixSource) else "recorded trace"
                raise _core.SardonyxError(
                    f"--seeds: {point.trace} is a {what}, which no seed changes; leave "
                    "--seeds out, or name programs and synth: traces alone"
                )

    @property
    def each(self) -> list[Point]:
        """A point for each seed, those of a point one after the other."""
        return [
            replace(
                point,
                trace=f"{point.trace}, seed {seed}",
                source=point.source.replace(seed=seed),
            )
            for point in self.points
            for seed in _seeds(point, self.number)
        ]

    def run(
        self, shared: Settings, workers: int | None = None, watch: Watch | None = None
    ) -> Results:
        """Run them, and give one run for each point."""
        results = jobs.run(self.each, shared, workers, watch)
        runs = [
            merged(
                point.trace,
                _seeds(point, self.number),
                results.runs[index * self.number : (index + 1) * self.number],
            )
            for index, point in enumerate(self.points)
        ]
        known = {trace.name: trace.info for trace in results.traces}
        first = {point.trace: _seeds(point, self.number)[0] for point in self.points}
        traces = [Trace(name, known[f"{name}, seed {seed}"]) for name, seed in first.items()]
        return replace(results, runs=tuple(runs), traces=tuple(traces))


def _seeds(point: Point, number: int) -> range:
    made = isinstance(point.source, SynthSource | ProgramSource)
    first = point.source.seed if made else 0  # type: ignore[union-attr]
    return range(first, first + number)


def merged(trace: str, seeds: Sequence[int], runs: Sequence[Run]) -> Run:
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
        trace,
        runs[0].design,
        runs[0].machine,
        runs[0].copies,
        dict(runs[0].variant),
        metrics={name: each.value for name, each in found.items()},
        causes={name: _cause([run.causes.get(name, Cause()) for run in runs]) for name in causes},
        assumed=tuple(dict.fromkeys(name for run in runs for name in run.assumed)),
        seeds=Seeds(
            tuple(seeds),
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
