"""How far a mean over seeds may be off: half of its 95 % interval, of one run or of two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sardonyx.runs.measures import Mean, Two, mean
from sardonyx.runs.results import Run

#: Student's t of 1 to 9 degrees of freedom that 95 of 100 values do not exceed either way.
_T = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216)
_NORMAL = 1.959964


class Estimate(NamedTuple):
    """A figure, and half of its 95 % interval where it is a mean over seeds."""

    value: float | None
    half: float | None = None


def estimate(values: Sequence[float | None]) -> Estimate:
    """The mean of a value for each seed, and half of its 95 % interval (Student's t); nothing
    unless each seed has a value.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return Estimate(None)
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return Estimate(mean)
    variance = math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return Estimate(mean, student(len(known) - 1) * math.sqrt(variance / len(known)))


def student(freedom: int) -> float:
    """What 95 of 100 values of Student's t with so many degrees of freedom do not exceed either
    way: from 10 on the expansion about the normal's (Abramowitz and Stegun, 26.7.5).
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def beside(of: Two, run: Run, over: Run) -> Estimate:
    """A figure of a run beside another: of seeds that both have the mean of the pairs' figures."""
    if run.seeds is None or over.seeds is None or run.seeds.seeds != over.seeds.seeds:
        return Estimate(of(run, over))
    pairs = zip(run.each_seed, over.each_seed, strict=True)
    return estimate([of(one, other) for one, other in pairs])


def mean_beside(of: Two, pairs: Iterable[tuple[Run | None, Run | None]], kind: Mean) -> Estimate:
    """The mean of a figure over pairs of runs; of seeds that of each seed's mean."""
    known = [(run, over) for run, over in pairs if run is not None and over is not None]
    seeds = {len(run.seeds.seeds) if run.seeds else 0 for pair in known for run in pair}
    if len(seeds) != 1 or 0 in seeds:
        return Estimate(mean([of(run, over) for run, over in known], kind))
    split = [zip(run.each_seed, over.each_seed, strict=True) for run, over in known]
    return estimate(
        [mean([of(run, over) for run, over in each], kind) for each in zip(*split, strict=True)]
    )


def shown(half: float | None, value: float | None, unit: str) -> str:
    """What is written behind a value: points of a share, else percent of the value."""
    if half is None or value is None:
        return ""
    if unit == "%":
        return f" ±{100 * half:.1f} pp"
    return f" ±{100 * half / abs(value):.1f} %" if value else ""
