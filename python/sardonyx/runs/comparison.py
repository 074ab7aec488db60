"""Results compared: every workload beside every design, once, for whoever draws it."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.runs.measures import BASELINE, Measure, Two
from sardonyx.runs.programs import Programs
from sardonyx.runs.results import Results, Run, in_order
from sardonyx.runs.spread import Estimate, beside, mean_beside


class Comparison:
    """The plain runs of a results document as a grid of workloads by designs.

    A workload is a trace; where one trace ran on several machines or in several numbers of
    copies, each combination is a workload of its own and its label says so.
    """

    def __init__(self, results: Results) -> None:
        """Made once of results, for all that draw, tabulate or judge them."""
        self.results = results
        plain_runs = [run for run in results.runs if not run.variant]
        settings: dict[str, dict[tuple[str, int], None]] = {}
        for run in plain_runs:
            settings.setdefault(run.trace, {})[run.machine, run.copies] = None
        self._grid: dict[tuple[str, str], Run] = {}
        self.trace_of: dict[str, str] = {}
        for run in plain_runs:
            label = _workload_label(run, list(settings[run.trace]))
            self._grid[label, run.design] = run
            self.trace_of[label] = run.trace
        self.workloads = list(self.trace_of)
        self.designs = results.designs
        others = [design for design in self.designs if design != BASELINE]
        #: The other designs; empty without a baseline to compare them with.
        self.beside_baseline = others if BASELINE in self.designs else []
        self.programs = Programs(results)

    def run(self, workload: str, design: str) -> Run | None:
        return self._grid.get((workload, design))

    def runs(self, *designs: str) -> list[Run]:
        """The plain runs of these designs (of all designs when none is named)."""
        return [run for (_, d), run in self._grid.items() if not designs or d in designs]

    def estimate(self, measure: Two, workload: str, design: str, over: str) -> Estimate:
        """``measure`` of one design over another on one workload, with its interval over seeds."""
        run, base = self.run(workload, design), self.run(workload, over)
        return Estimate(None) if run is None or base is None else beside(measure, run, base)

    def value(self, measure: Two, workload: str, design: str, over: str) -> float | None:
        """``measure`` of one design over another on one workload."""
        return self.estimate(measure, workload, design, over).value

    def each(self, measure: Two, design: str, over: str = BASELINE) -> dict[str, float | None]:
        """``measure`` of one design over another, by workload."""
        return {label: self.value(measure, label, design, over) for label in self.workloads}

    def mean(self, measure: Measure, design: str) -> float | None:
        return self.estimated_mean(measure, design).value

    def estimated_mean(self, measure: Measure, design: str) -> Estimate:
        """The mean over workloads; of means over seeds that of each seed's, with its interval."""
        pairs = [(self.run(each, design), self.run(each, BASELINE)) for each in self.workloads]
        return mean_beside(measure.of, pairs, measure.mean)

    def causes(self) -> list[str]:
        """Causes that took part in any run, in report order."""
        return in_order({cause for run in self._grid.values() for cause in run.causes})


def _workload_label(run: Run, settings: Sequence[tuple[str, int]]) -> str:
    label = run.trace
    if len({copies for _, copies in settings}) > 1:
        label += f" ×{run.cores}"
    if len({machine for machine, _ in settings}) > 1:
        label += f" @{run.machine}"
    return label
