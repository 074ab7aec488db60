"""Which claims of a paper depend on assumed keys: the headline claims over fewer, smaller runs,
at both ends of each key's range and under all keys drawn together.

A claim's verdict is whether ours is what the paper's words say, and whether it is near its figure.
Left out: the runs (``sweeps.study``), and which runs the headline claims need (each paper).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.papers.claims import WITHIN, ClaimRow
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.conclusions import SIGN, Conclusion
from sardonyx.runs.jobs import Simulations
from sardonyx.runs.results import Results, Run
from sardonyx.runs.sensitivity import Sensitivity
from sardonyx.runs.stores import StoreRuns
from sardonyx.runs.tailbench import TimedRuns
from sardonyx.sweeps.study import Study
from sardonyx.sweeps.varying import MergedInTime, Setting, Simulated, Stored, Varying

#: What is said of nearness.
NEAR = f"{WITHIN:.0%}".replace("%", " %")


@dataclass(frozen=True, slots=True)
class Headlines:
    """The runs that a paper's headline claims need, its claims over them, and what was made smaller
    for it, in a sentence.
    """

    runs: Simulations | TimedRuns
    claims: Callable[[Comparison], Sequence[ClaimRow]]
    note: str


def study(
    headlines: Headlines, results: Results, folder: Path, seconds: float = 0.0, **options: Any
) -> Sensitivity:
    """What the headline claims depend on, over the results of their runs.

    ``seconds`` is what a run took of a processor, about; ``options`` are those of ``Study``.
    """
    known = varying(headlines.runs, seconds)

    def judge(runs: Sequence[Run | None], setting: Setting) -> Mapping[str, Conclusion]:
        return _conclusions(headlines, _with(results, known, setting, runs))

    return Study(
        known,
        results.runs,
        judge,
        lambda _: True,
        folder,
        note=headlines.note,
        **options,
    ).study()


def varying(runs: Simulations | TimedRuns | StoreRuns, seconds: float = 0.0) -> Varying:
    """The runs as they can be varied."""
    if isinstance(runs, Simulations):
        return Simulated(runs.points, runs.settings)
    if isinstance(runs, StoreRuns):
        return Stored(runs)
    return MergedInTime(runs, seconds)


def _with(
    results: Results, known: Varying, setting: Setting, runs: Sequence[Run | None]
) -> Results:
    """The results with other runs, on the machine that these were made on; a setting that no
    machine can have has no runs of its own.
    """
    try:
        parameters = known.parameters(setting)
    except _core.SardonyxError:
        parameters = results.machine.parameters
    return replace(
        results,
        machine=replace(results.machine, parameters=dict(parameters)),
        runs=tuple(run for run in runs if run is not None),
    )


def _conclusions(headlines: Headlines, results: Results) -> dict[str, Conclusion]:
    """The claims that the runs support, as conclusions."""
    everything = frozenset(range(len(headlines.runs.points)))
    found = {}
    for row in headlines.claims(Comparison(results)):
        if row.ours is None:
            continue
        claim = row.claim
        title = f"{claim.where}: {claim.metric.replace('_', ' ')}, {claim.stat}"
        each = Conclusion(
            claim.key, title, claim.design, "", "", row.ours, row.unit, says(row), everything
        )
        found[each.name] = each
    return found


def says(row: ClaimRow) -> dict[str, str]:
    """Whether our figure is what the paper's words say, and whether it is near the paper's."""
    found = {}
    if row.holds is not None:
        found[SIGN] = "as the paper says" if row.holds else "not as the paper says"
    if row.near is not None:
        found[NEAR] = f"within {NEAR} of the paper's" if row.near else f"not within {NEAR}"
    return found


def marked(rows: Sequence[ClaimRow], found: Sensitivity) -> tuple[ClaimRow, ...]:
    """The claims, where tried with only those assumed keys under which they flip."""
    judged = {each.name.split("|")[0] for each in found.headlines}
    marked = []
    for row in rows:
        keys = [flip.parameter for flip in found.flips if flip.measure == row.claim.key]
        tried = row.claim.key in judged
        marked.append(replace(row, assumed=tuple(dict.fromkeys(keys))) if tried else row)
    return tuple(marked)
