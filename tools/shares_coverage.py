"""How often intervals of a share hold the true share: ``python tools/shares_coverage.py [TRIALS]``.

A world has workloads and cells whose effects, and one of each pair, are normal; a pair holds if
their sum is positive. In each trial new workloads and new cells are drawn. Printed are the share of
trials whose interval of ``intervals.crossed`` holds the world's share, its mean width, and the same
of Wilson's interval over cells, of the mean of these workloads (*these*) and of the world (*new*).
All draws follow a seed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from sardonyx.vary.intervals import crossed, proportion

#: Deviations of the effects of workloads, of cells and of pairs.
EFFECTS = ((1.0, 0.3, 0.5), (0.3, 1.0, 0.5), (0.7, 0.7, 0.7), (0.1, 0.5, 1.0))
SIZES = ((5, 40), (5, 200), (9, 200), (18, 40))
SHARES = (0.5, 0.7, 0.9, 0.97)


@dataclass(frozen=True, slots=True)
class World:
    """What is drawn; ``share`` is the share of all pairs that hold."""

    workloads: int
    cells: int
    effects: tuple[float, float, float]
    share: float

    def draw(self, generator: np.random.Generator) -> tuple[list[list[bool]], float]:
        """Workloads by cells, and the share of pairs of these workloads over all cells."""
        of_workload, of_cell, of_pair = self.effects
        level = NormalDist().inv_cdf(self.share) * float(
            np.hypot(np.hypot(*self.effects[:2]), of_pair)
        )
        own = level + of_workload * generator.standard_normal(self.workloads)
        sums = own[:, None] + of_cell * generator.standard_normal(self.cells)
        sums = sums + of_pair * generator.standard_normal((self.workloads, self.cells))
        deviation = float(np.hypot(of_cell, of_pair))
        these = float(np.mean([NormalDist().cdf(each / deviation) for each in own]))
        return (sums > 0).tolist(), these


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of trials: of the new interval, of Wilson's for other workloads, and for these."""

    both: float
    width: float
    cells_new: float
    cells_these: float


def coverage(world: World, trials: int, seed: int = 0) -> Coverage:
    """The coverage over so many trials."""
    generator = np.random.default_rng(seed)
    both = new = those = 0
    width = 0.0
    for _ in range(trials):
        holds, these = world.draw(generator)
        low, high = crossed(holds)
        both += low <= world.share <= high
        width += high - low
        # One workload in each cell, drawn evenly, as a sample of single programs has them.
        picked = generator.integers(world.workloads, size=world.cells)
        found = sum(holds[workload][cell] for cell, workload in enumerate(picked))
        low, high = proportion(found, world.cells)
        new += low <= world.share <= high
        those += low <= these <= high
    return Coverage(both / trials, width / trials, new / trials, those / trials)


def worlds() -> Iterator[World]:
    """All worlds that are tried."""
    for workloads, cells in SIZES:
        for effects in EFFECTS:
            for share in SHARES:
                yield World(workloads, cells, effects, share)


def main() -> None:
    """Print a line for each world."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("workloads cells effects share: both, width; cells alone: these, new")
    for world in worlds():
        found = coverage(world, trials)
        effects = "/".join(f"{each:g}" for each in world.effects)
        print(
            f"{world.workloads:2} {world.cells:3} {effects:11} {world.share:4}: {found.both:.0%} "
            f"{found.width:.2f}; {found.cells_these:.0%} {found.cells_new:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
