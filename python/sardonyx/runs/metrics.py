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


def _by_name(text: str) -> Mapping[str, Figure]:
    return {each["name"]: Figure(**each) for each in json.loads(text)}


#: Figures of runs, by name, in the order of the page of metrics.
FIGURES = _by_name(_core.figures())
#: Figures of windows of merging in time.
OF_MERGING = _by_name(_core.merge_figures())
NAMES = frozenset(FIGURES)


def by_title() -> Mapping[str, Sequence[Figure]]:
    """The figures under each title of the page of metrics."""
    figures = {**FIGURES, **OF_MERGING}.values()
    titles = dict.fromkeys(figure.about for figure in figures)
    return {title: [one for one in figures if one.about == title] for title in titles}
