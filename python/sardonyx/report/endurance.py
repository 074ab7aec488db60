"""The figure of wear: lifetimes, writes and flipped bits beside the baseline's.

ESD speaks of endurance in Sec. IV-B and shows the share of writes removed (Fig. 11) alone.
"""

from __future__ import annotations

from sardonyx.draw.figure import Figure, Head, Missing, Series, View, at_one, layout
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import assumed_by, ratio_of

#: The metrics of wear, each with its description.
WEAR = (
    ("lifetime_ideal_years", "lifetime, all lines worn alike"),
    ("lifetime_none_years", "lifetime, no line ever moved"),
    ("medium_writes", "line writes, metadata and counters too"),
    ("bits_flipped", "bits flipped"),
)


def wear(comparison: Comparison) -> Figure | Missing:
    """How long the medium lasts (ESD Sec. IV-B speaks of endurance, and shows writes alone)."""
    head = Head("wear", "Wear and lifetime", "ESD Sec. IV-B")
    if not comparison.beside_baseline:
        return head.missing("This needs a `baseline` run and another design.")
    series = Series("workload", comparison.workloads, "geometric")
    views = []
    for metric, view in WEAR:
        of = ratio_of(metric)
        values = {d: comparison.each(of, d).values() for d in comparison.beside_baseline}
        hover = f" on %{{x}}<br>{view}: %{{y:.2f}}×"
        data = series.designs(values, hover, comparison.designs, column=f"{{}}, {view}")
        if any(value for trace in data for value in trace["y"]):
            shape = layout(f"{view} / baseline's", shapes=[at_one()], yaxis={"ticksuffix": "×"})
            views.append(View(view, data, shape))
    if not views:
        return head.missing("No run of these results counts its wear.")
    return head.figure(
        "What the design does to the array, relative to the baseline on the same trace.",
        "Lifetime is the cells' endurance over the rate of writes, of all lines together or of the "
        "line written most (metadata lines too), so a design that lets the program run faster also "
        "wears faster. Years stand in results.json. The rightmost group is the geometric mean.",
        views,
        series.table(),
        assumed_by(comparison.runs(), "time"),
    )
