"""Which conclusions of a comparison flip where an assumed key has another plausible value, as
results keep it. Left out: making the runs (``sweeps.study``), judging them (``conclusions``).
"""

from __future__ import annotations

from dataclasses import dataclass

#: Stands for the means over workloads, in place of a workload.
MEAN = ""
#: The number of draws of all keys together: a conclusion that flips in a tenth of all settings and
#: more is found with 95 % of certainty, since 0.9^30 is 4 %.
DRAWS = 30


@dataclass(frozen=True, slots=True)
class Tried:
    """One value of a key, alone, and what the headline figures are with it."""

    value: str
    figures: dict[str, float | None]
    #: The reason why it could not be run, if it could not.
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Varied:
    """An assumed key on which runs depend: its range, and what its ends do.

    ``reason`` says why these values; ``left_out`` why the key was not varied, if it was not.
    """

    parameter: str
    value: str
    why: str
    reason: str = ""
    low: str | None = None
    high: str | None = None
    others: tuple[str, ...] = ()
    designs: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure whose swings are drawn: of ``design`` beside ``over``, on the mean of workloads."""

    name: str
    title: str
    design: str
    over: str
    value: float | None
    unit: str = "x"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Flip:
    """A conclusion that is another one where one key has another value.

    ``kind`` is what of it flips; ``holds`` up to the value ``until``, and at ``since`` no more: for
    words the word, for numbers the ends of the last interval that was tried.
    """

    name: str
    measure: str
    title: str
    design: str
    over: str
    workload: str
    kind: str
    holds: str
    becomes: str
    value: float | None
    parameter: str
    until: str
    since: str
    at: str
    at_value: float | None
    unit: str = "x"


@dataclass(frozen=True, slots=True)
class Together:
    """A conclusion under draws of all keys together: in how many it is another one."""

    name: str
    title: str
    design: str
    over: str
    workload: str
    kind: str
    holds: str
    flips: int
    draws: int


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Which conclusions depend on which assumed key.

    ``runs`` are simulations, those of the bisections among them; ``conclusions`` are those that
    could be drawn. ``failures`` say what could not be run.
    """

    keys: tuple[Varied, ...]
    headlines: tuple[Headline, ...]
    flips: tuple[Flip, ...]
    together: tuple[Together, ...]
    draws: int
    seed: int
    runs: int
    conclusions: int
    failures: tuple[str, ...] = ()
    note: str = ""

    def by_conclusion(self) -> dict[tuple[str, str], list[Flip]]:
        """Flips of each conclusion and kind, in their order."""
        found: dict[tuple[str, str], list[Flip]] = {}
        for flip in self.flips:
            found.setdefault((flip.name, flip.kind), []).append(flip)
        return found

    @property
    def flipping(self) -> list[str]:
        """The keys under which anything flips, in the order of the flips."""
        return list(dict.fromkeys(flip.parameter for flip in self.flips))

    def flipped(self, measure: str, design: str, over: str, workload: str = MEAN) -> bool:
        """Whether what this figure says flips, under one key or under all together."""
        name = "|".join((measure, design, over, workload))
        return any(flip.name == name for flip in self.flips) or any(
            each.name == name and each.flips for each in self.together
        )

    def rows(self, headline: Headline) -> list[tuple[Varied, float, float]]:
        """The keys that move a headline figure, most first, and its least and most by each."""
        found = []
        if headline.value is None:
            return []
        for key in self.keys:
            values = [each.figures.get(headline.name) for each in key.tried]
            known = [value for value in values if value is not None]
            if known and any(value != headline.value for value in known):
                swing = [headline.value, *known]
                found.append((key, min(swing), max(swing)))
        return sorted(found, key=lambda row: row[1] - row[2])
