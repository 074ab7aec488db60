"""A cause varied alone: a sweep of one setting, and where a curve over its values passes a
limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sardonyx.runs.programs import KB, MB
from sardonyx.runs.results import Scalar


@dataclass(frozen=True, slots=True)
class Sweep:
    """One setting, its values, the machine's own first, and what it stands for; ``under`` is what
    else is set.
    """

    name: str
    key: str
    values: Sequence[int]
    meaning: str
    cores: int = 1
    under: Mapping[str, Scalar] | None = None

    def variant(self, value: int) -> dict[str, Scalar]:
        """The settings of a point."""
        return {**(self.under or {}), self.key: value}

    def written(self, value: int) -> str:
        """A value for people."""
        if not self.key.endswith("bytes"):
            return f"{value:,}"
        return f"{value // MB} MB" if value >= MB else f"{value // KB} KB"


def crossing(sweep: Sweep, of: Sequence[float | None], limit: float) -> str:
    """Between which values a curve passes ``limit``."""
    points = [(v, y) for v, y in zip(sweep.values, of, strict=True) if y is not None]
    if not points:
        return "not run"
    first = points[0][1] > limit
    for (before, _), (value, y) in pairwise(points):
        if (y > limit) != first:
            return f"between {sweep.written(before)} and {sweep.written(value)}"
    whole = f"{sweep.written(points[0][0])} to {sweep.written(points[-1][0])}"
    return f"{'everywhere' if first else 'nowhere'} in {whole}"
