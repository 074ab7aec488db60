"""The figures of one run of a trace or a program, as the simulator declares them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sardonyx import _core


@dataclass(frozen=True)
class Figure:
    """One figure: its name in results, the title that it stands under, its unit, the direction that
    is better (``less``, ``more``, or empty where neither is) and what it means.
    """

    name: str
    about: str
    unit: str
    better: str
    meaning: str


#: By name, in the order of the page of metrics.
FIGURES: Mapping[str, Figure] = {
    each["name"]: Figure(**each) for each in json.loads(_core.figures())
}

#: Their names.
NAMES = frozenset(FIGURES)


def by_title() -> Mapping[str, Sequence[Figure]]:
    """The figures under each title of the page of metrics."""
    titles = dict.fromkeys(figure.about for figure in FIGURES.values())
    of = {title: [f for f in FIGURES.values() if f.about == title] for title in titles}
    return of
