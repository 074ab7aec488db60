"""Intervals of shares: over cells, and over workloads and cells both.

Words about a design are about programs, of which a paper has few. An interval over cells says what
other machines would show on these workloads; on other workloads it covers 26 to 98 %
(``tools/shares_coverage.py``). Left out: what is counted (``turning``, ``papers.sampling``), and
shares of variance (``indices``).
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.runs.sensitivity import Count
from sardonyx.runs.spread import student

NORMAL = 1.959964
#: The weight, in workloads, of one more workload of which half of the cells hold. Without it a
#: sample of five workloads that nearly all hold covers 78 %, because the sixth may fail.
UNSEEN = 0.1
#: The share of cells outside of the interval that is given with the median, at each end.
TAIL = 0.05


def proportion(number: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share of cases (Wilson, JASA 1927)."""
    return _wilson(number / of, of, NORMAL)


def count(judged: Sequence[bool | None]) -> Count | None:
    """In how many of those that can say it is so; nothing if none can."""
    known = [each for each in judged if each is not None]
    return Count(sum(known), len(known), *proportion(sum(known), len(known))) if known else None


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values is."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def crossed(holds: Sequence[Sequence[bool | None]]) -> tuple[float, float]:
    """The 95 % interval of the share of pairs of a workload and a cell in which something holds,
    over other workloads and other cells of the same kinds.

    ``holds`` has a row for each workload, two at least, with a value for each cell; ``None`` where
    a pair cannot say. The variance of the share is that of the means of workloads plus that of
    cells, less what both have of each pair (two-way random effects); its degrees of freedom are
    Satterthwaite's (Biometrics 1946). As in surveys of clusters (Korn and Graubard, Survey
    Methodology 1998) it gives a number of cases that would be as sure, for which the interval is
    Wilson's with Student's t. The crossed bootstrap (Owen, Annals of Applied Statistics 2007) has
    that variance too, but its percentiles cover 45 to 95 % of five workloads.
    """
    import numpy as np

    grid = np.array([[np.nan if x is None else float(x) for x in row] for row in holds])
    grid = grid[~np.isnan(grid).all(axis=1)][:, ~np.isnan(grid).all(axis=0)]
    workloads, cells = grid.shape
    if workloads < 2 or cells < 2:
        return 0.0, 1.0
    known = int((~np.isnan(grid)).sum())
    rows, columns = np.nanmean(grid, axis=1), np.nanmean(grid, axis=0)
    left = grid - rows[:, None] - columns[None, :] + np.nanmean(grid)
    freedom = max(1, known - workloads - cells + 1)
    of_pairs = float(np.nansum(left**2)) / freedom / known
    share = float((rows.sum() + UNSEEN / 2) / (workloads + UNSEEN))
    squares = float(((rows - share) ** 2).sum()) + UNSEEN * (0.5 - share) ** 2
    of_rows = squares / (workloads - 1 + UNSEEN) / workloads
    of_columns = float(columns.var(ddof=1)) / cells
    variance = max(of_rows + of_columns - of_pairs, of_rows, of_columns)
    degrees = variance**2 / (of_rows**2 / (workloads - 1) + of_columns**2 / (cells - 1))
    return _wilson(share, share * (1 - share) / variance, student(max(1, int(degrees))))


def _wilson(share: float, number: float, z: float) -> tuple[float, float]:
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * ((share * (1 - share) + z * z / (4 * number)) / number) ** 0.5
    half /= 1 + z * z / number
    return max(0.0, middle - half), min(1.0, middle + half)
