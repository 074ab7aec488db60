"""Which conclusions depend on what is left open, as results keep it: over cells, each with another
value of every assumed key, and along the keys that decide.

Left out: drawing and running cells (``vary``), and the conclusions (``conclusions``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Stands for the means over workloads, in place of a workload.
MEAN = ""
#: The number of cells: a conclusion that turns in a twentieth of all settings and more is found
#: with 95 % of certainty, since 0.95^60 is 5 %.
DRAWS = 60
#: At most this many deciding choices are named.
NAMED = 4


@dataclass(frozen=True, slots=True)
class Share:
    """What a choice, or a pair beyond each alone, explains of the variance, with its interval;
    whether that is more than chance explains.
    """

    choices: tuple[str, ...]
    value: float
    low: float
    high: float
    stands_out: bool


def named(deciding: Sequence[Share]) -> list[Share]:
    """The deciding choices that stand out."""
    return [share for share in deciding if share.stands_out][:NAMED]


def decided(deciding: Sequence[Share]) -> str:
    """What decides a figure, for people."""
    if not deciding:
        return "nothing that could be told: it does not vary, or the cells are too few"
    shown = [f"{' x '.join(share.choices)} {share.value:.0%}" for share in named(deciding)]
    return ", ".join(shown) or "no choice that stands out"


@dataclass(frozen=True, slots=True)
class Count:
    """In how many of those that can say something is so, with the 95 % interval of the share."""

    number: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share of those that can say."""
        return self.number / self.of

    @property
    def written(self) -> str:
        """For people: ``30 of 40 [60, 86]``, with the interval in per cent."""
        return f"{self.number} of {self.of} [{100 * self.low:.0f}, {100 * self.high:.0f}]"


@dataclass(frozen=True, slots=True)
class Key:
    """A choice, or an assumed key on which runs depend: its usual value, what it may be, and why;
    ``left_out`` says why it is not varied, if it is not.
    """

    parameter: str
    value: str
    values: str
    why: str
    reason: str = ""
    designs: tuple[str, ...] = ()
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a conclusion turns along one key, all others having their usual values.

    It holds up to the value ``until``, and ``becomes`` another one at ``since``: for words the
    word, for numbers the ends of the last interval that was tried. ``at_value`` is the figure at
    the end ``at`` of the key's range.
    """

    parameter: str
    becomes: str
    until: str
    since: str
    at: str
    at_value: float | None


@dataclass(frozen=True, slots=True)
class Split:
    """The value of a choice that best tells the cells in which a conclusion holds from the others:
    in how many it holds ``within``, below a number or of this word, and in how many ``beyond``.
    """

    parameter: str
    value: str
    within: Count
    beyond: Count


@dataclass(frozen=True, slots=True)
class Said:
    """What a figure says by sign or by size: the word, in how many cells it holds, where the choice
    that decides parts these, and the keys along which it turns alone.
    """

    kind: str
    word: str
    holds: Count
    split: Split | None = None
    turns: tuple[Turn, ...] = ()

    @property
    def turned(self) -> int:
        """Cells in which it is another one."""
        return self.holds.of - self.holds.number


@dataclass(frozen=True, slots=True)
class Concluded:
    """A conclusion over cells: ``design`` beside ``over``, or the design alone; the median and the
    middle 90 % of its figure, and what decides that, most first.
    """

    measure: str
    title: str
    design: str
    over: str
    workload: str
    value: float | None
    unit: str
    median: float
    least: float
    most: float
    deciding: tuple[Share, ...]
    says: tuple[Said, ...]
    headline: bool = False

    @property
    def who(self) -> str:
        """The designs that it is about."""
        return f"{self.design} over {self.over}" if self.over else self.design

    @property
    def turned(self) -> bool:
        """Whether it is another one in some cell."""
        return any(each.turned for each in self.says)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Conclusions over cells: those that turn, and the headlines.

    ``runs`` are simulations, those along deciding keys among them. ``conclusions`` are those that
    could be drawn. ``failures`` say what could not be run.
    """

    cells: int
    seed: int
    runs: int
    keys: tuple[Key, ...]
    concluded: tuple[Concluded, ...]
    conclusions: int
    redrawn: int = 0
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def varied(self) -> list[Key]:
        """The keys that cells differ in."""
        return [key for key in self.keys if key.left_out is None]

    @property
    def turning(self) -> list[str]:
        """The keys along which a conclusion turns."""
        return list(
            dict.fromkeys(
                turn.parameter
                for each in self.concluded
                for said in each.says
                for turn in said.turns
            )
        )

    def flipped(self, measure: str, design: str, over: str, workload: str = MEAN) -> bool:
        """Whether what this figure says is something else in some cell."""
        wanted = (measure, design, over, workload)
        return any(
            each.turned
            for each in self.concluded
            if (each.measure, each.design, each.over, each.workload) == wanted
        )
