"""What a reproduction's sample says: each claim over cells, and which choices decide it.

Left out: how it is drawn and run (``papers.sampling``).
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.papers.claims import NO_PAPER, Kind, Unit
from sardonyx.runs.sensitivity import Count, Share, decided


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that was drawn: its usual value, what it may be, and why."""

    name: str
    value: str
    values: str
    why: str


@dataclass(frozen=True, slots=True)
class Alone:
    """A claim on one workload: the cells that have a figure, in how many of them it is as the
    paper's words say, and the median of ours.
    """

    workload: str
    cells: int
    holds: int
    median: float


@dataclass(frozen=True, slots=True)
class SampledClaim:
    """A claim over the cells that can give it: in how many ours is as the paper's words say
    (``holds``), has the paper's ``sign`` (nothing of a limit, and of a figure that is no change)
    and is ``near`` its figure (nothing of an order), the median and the middle 90 % of ours, and
    what decides it, most first.

    ``workloads`` have each of the workloads by itself, and ``pairs`` counts all of these: pairs of
    a workload and a cell, with an interval over other workloads and cells (``intervals.crossed``).
    ``point`` is our figure of the reproduction's own runs. A claim that no cell can give says why
    in ``reason``.
    """

    key: str
    where: str
    title: str
    design: str
    unit: Unit
    kind: Kind
    paper: float
    cells: int = 0
    holds: Count | None = None
    sign: Count | None = None
    near: Count | None = None
    median: float | None = None
    least: float | None = None
    most: float | None = None
    point: float | None = None
    deciding: tuple[Share, ...] = ()
    reason: str = ""
    workloads: tuple[Alone, ...] = ()
    pairs: Count | None = None
    #: The world in whose cells it is judged, if the sample has several.
    world: str = ""

    @property
    def decided(self) -> str:
        """What decides it, for people."""
        return decided(self.deciding)

    @property
    def words(self) -> str:
        """What is so in the cells where it holds."""
        return "no worse" if self.where == NO_PAPER else "as the paper says"


@dataclass(frozen=True, slots=True)
class Sample:
    """A reproduction's sample, as results keep it: ``cells`` machines, each with all ``workloads``.

    In ``redrawn`` cells a key has another value than the hypercube's, which the others ruled out.
    ``failures`` say what could not be run; ``lacking`` cells lack a run of it.
    """

    cells: int
    seed: int
    runs: int
    choices: tuple[Choice, ...]
    claims: tuple[SampledClaim, ...]
    note: str = ""
    redrawn: int = 0
    failures: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    lacking: int = 0
