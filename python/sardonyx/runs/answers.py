"""The answer of results in words: on how many workloads, over which range, the mean, what lifts it.

Whoever prints a conclusion takes it from here: reports, the terminal, ``diff``, the docs' tables.
So a mean that one workload makes is never said alone, and no two places disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.runs.comparison import Comparison
from sardonyx.runs.conclusions import EQUAL, PROGRAMS, TRACES, Compared
from sardonyx.runs.measures import BASELINE, geometric_mean, written

#: ``better`` or ``worse`` if most workloads say so and the mean does not contradict them.
Tone: TypeAlias = Literal["better", "worse", "mixed"]
#: The design that programs are compared with.
PLAIN = "no-encryption"
#: Without one of fewer workloads than this, the rest is no population.
FEW = 3


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure of merit over workloads: ``ratios`` as it is written, ``gains`` above 1 better."""

    better: str
    worse: str
    ratios: Mapping[str, float]
    gains: Mapping[str, float]

    def count(self) -> tuple[int, int]:
        """The numbers of workloads with a better and with a worse figure; the rest are equal."""
        gains = self.gains.values()
        return sum(g > 1 + EQUAL for g in gains), sum(g < 1 - EQUAL for g in gains)

    @property
    def mean(self) -> float | None:
        return geometric_mean(self.ratios.values())

    @property
    def tone(self) -> Tone:
        """Better or worse only if more than half of the workloads agree with the mean."""
        better, worse = self.count()
        mean = geometric_mean(self.gains.values()) or 1.0
        if 2 * better > len(self.gains) and mean > 1:
            return "better"
        return "worse" if 2 * worse > len(self.gains) and mean < 1 else "mixed"

    def lifting(self) -> tuple[str, float] | None:
        """The workload without which the mean is on the other side of 1, and that mean."""
        mean = geometric_mean(self.gains.values())
        if mean is None or len(self.gains) < FEW or abs(mean - 1) <= EQUAL:
            return None
        most = (max if mean > 1 else min)(self.gains, key=lambda name: self.gains[name])
        rest = geometric_mean(gain for name, gain in self.gains.items() if name != most)
        if rest is None or (rest > 1) == (mean > 1):
            return None
        return most, geometric_mean(r for name, r in self.ratios.items() if name != most) or 1.0

    def text(self) -> str:
        """As in "reads slower on 5 of 6, faster on 1 (0.76x to 4.94x; mean 1.11x, 0.82x without
        stockfish)".
        """
        of = len(self.gains)
        lowest, highest = (written(end(self.ratios.values()), "x") for end in (min, max))
        parts = list(zip(self.count(), (self.better, self.worse), strict=True))
        (most, words), (fewer, others) = sorted(parts, key=lambda part: -part[0])
        if of == 1:
            return f"{words} ({lowest})" if most else f"neither {self.better} nor {self.worse}"
        said = f"{words} on {most} of {of}"
        if fewer:
            said += f", {others.partition(' ')[2]} on {fewer}"
        shown = f"{lowest} to {highest}; mean {written(self.mean, 'x')}"
        if lifting := self.lifting():
            shown += f", {written(lifting[1], 'x')} without {lifting[0]}"
        return f"{said} ({shown})"


def of_figure(name: str, ratios: Mapping[str, float], *, more: bool) -> Spread:
    """A figure over another of the same name, by workload; ``more`` of it is better, or less."""
    higher, lower = f"{name} higher", f"{name} lower"
    if more:
        return Spread(higher, lower, ratios, ratios)
    return Spread(lower, higher, ratios, {key: 1 / ratio for key, ratio in ratios.items()})


@dataclass(frozen=True, slots=True)
class Answer:
    """What results say of one design beside another, a :class:`Spread` for each figure."""

    design: str
    over: str
    spreads: Sequence[Spread]

    def text(self) -> str:
        """The whole answer, in a sentence."""
        return f"{self.design} beside {self.over}: {'; '.join(s.text() for s in self.spreads)}."

    def to_document(self) -> dict[str, str]:
        """Plain JSON: the designs, and the sentence without them."""
        said = "; ".join(spread.text() for spread in self.spreads)
        return {"design": self.design, "over": self.over, "says": said}


def answers(comparison: Comparison) -> list[Answer]:
    """The answer for each design beside the baseline; of programs beside no encryption."""
    programs = any(run.metric("transactions") for run in comparison.runs())
    over = PLAIN if programs and BASELINE not in comparison.designs else BASELINE
    if over not in comparison.designs:
        return []
    kinds = [kind for kind in (PROGRAMS if programs else TRACES) if kind.key != "p99_write"]
    found = []
    for design in comparison.designs:
        spreads = [
            each for kind in kinds if (each := _spread(comparison, kind, design, over)) is not None
        ]
        if design != over and spreads:
            found.append(Answer(design, over, spreads))
    return found


def _spread(comparison: Comparison, kind: Compared, design: str, over: str) -> Spread | None:
    ratios = comparison.each(kind.of, design, over)
    gains = comparison.each(kind.gain, design, over)
    known = [name for name, ratio in ratios.items() if ratio and gains[name]]
    if not known:
        return None
    return Spread(
        kind.better,
        kind.worse,
        {name: ratios[name] or 0.0 for name in known},
        {name: gains[name] or 0.0 for name in known},
    )
