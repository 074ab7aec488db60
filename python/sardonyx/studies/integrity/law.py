"""How what was counted grows with the medium: what can be said of one that nobody executes.

A law is fitted to executed points and shown with them. Left out: laws of more than one size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The laws by which a count may grow, the slowest first.
SHAPES: Mapping[str, Callable[[float], float]] = {
    "constant": lambda _: 0.0,
    "a level of the tree": lambda lines: math.log(lines, 8),
    "a line": lambda lines: lines,
}
#: A law whose points are all within this share of it is preferred to one that grows faster.
CLOSE = 0.02


@dataclass(frozen=True, slots=True)
class Law:
    """``start + slope`` times what it grows with, of lines of the medium; ``off`` is the largest
    share by which an executed point differs from it.
    """

    grows_with: str
    start: float
    slope: float
    off: float
    points: tuple[tuple[float, float], ...]

    def at(self, lines: float) -> float:
        """What it gives for a medium of so many lines."""
        return max(0.0, self.start + self.slope * SHAPES[self.grows_with](lines))

    @property
    def words(self) -> str:
        """The law in a few words."""
        if self.grows_with == "constant":
            return f"{self.start:,.4g}, whatever the size"
        return f"{self.start:,.4g} + {self.slope:,.4g} {self.grows_with}"

    def to_document(self) -> dict[str, Any]:
        return {
            "grows_with": self.grows_with,
            "start": self.start,
            "slope": self.slope,
            "largest_gap": self.off,
            "points": [list(point) for point in self.points],
        }


def fitted(points: Sequence[tuple[float, float]]) -> Law:
    """The slowest law that all points are close to; if there is none, the one they are closest to.

    Points are pairs of lines of the medium and a count; ``ValueError`` if there is none.
    """
    if not points:
        raise ValueError("a law needs a point")
    laws = [_least_squares(name, points) for name in SHAPES]
    return next((law for law in laws if law.off <= CLOSE), min(laws, key=lambda law: law.off))


def _least_squares(name: str, points: Sequence[tuple[float, float]]) -> Law:
    x = [SHAPES[name](lines) for lines, _ in points]
    y = [count for _, count in points]
    middle_x, middle_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((one - middle_x) ** 2 for one in x)
    together = math.fsum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    # No count falls with the medium: if points do, that is chance.
    slope = max(0.0, together / spread) if spread else 0.0
    start = middle_y - slope * middle_x
    gaps = [_off(start + slope * a, b) for a, b in zip(x, y, strict=True)]
    return Law(name, start, slope, max(gaps), tuple(points))


def _off(law: float, count: float) -> float:
    """The share by which a law is off a point."""
    return 0.0 if law == count else abs(law - count) / max(abs(law), abs(count))
