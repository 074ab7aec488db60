"""Figures of the report for notebooks: ``plot(results)``, as Plotly draws them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sardonyx._core import SardonyxError
from sardonyx.report import Figure, Missing, figures
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.results import Results

if TYPE_CHECKING:
    import plotly.graph_objects

__all__ = ["plot", "plots"]


def plots(results: Results) -> list[str]:
    """The names of the figures that ``plot`` draws of these results, in the report's order: one at
    least.

    Raises:
        SardonyxError: None can be drawn; it says what each of them lacks.
    """
    return _drawn(results, figures(Comparison(results)))


def _drawn(results: Results, found: Sequence[Figure | Missing]) -> list[str]:
    if names := [each.key for each in found if isinstance(each, Figure)]:
        return names
    reasons = [each.reason.rstrip(".") for each in found if isinstance(each, Missing)]
    if any(run.seeds for run in results.runs):
        reasons.insert(0, "Means over seeds have no figures of single runs; leave seeds out")
    raise SardonyxError(
        f"no figure can be drawn of these results: {'. '.join(dict.fromkeys(reasons))}"
    )


def plot(results: Results, figure: str = "write-speedup") -> plotly.graph_objects.Figure:
    """Draw a figure of the report; ``SardonyxError`` names those that there are.

    A figure with several views (a trace each) is drawn with its first; ``report.html`` has all.
    """
    listed = figures(Comparison(results))
    found = {each.key: each for each in listed}
    chosen = found.get(figure)
    if isinstance(chosen, Figure):
        return chosen.plotly()
    if chosen is not None:
        raise SardonyxError(
            f"figure = {figure!r}: cannot be drawn of these results; {chosen.reason}"
        )
    near = difflib.get_close_matches(figure, found, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise SardonyxError(
        f"figure = {figure!r}: there is none; {meant}known: {', '.join(_drawn(results, listed))}"
    )
