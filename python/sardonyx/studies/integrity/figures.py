"""What integrity costs, drawn from any runs of a design with some and without."""

from __future__ import annotations

from sardonyx.draw.figure import (
    LINE_COLOURS,
    Figure,
    Head,
    Missing,
    Series,
    View,
    at_one,
    bar,
    label,
    layout,
)
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import Two, arithmetic_mean, assumed_by, ratio_of

TITLE = "Integrity"
#: The figures, each with its words.
VIEWS: dict[str, tuple[str, str]] = {
    "time": ("runtime_ns", "time / without integrity"),
    "writes": ("medium_writes", "writes to the medium / without integrity"),
    "energy": ("energy_nj", "energy / without integrity"),
}


def figures(comparison: Comparison) -> list[Figure | Missing]:
    """What each scheme costs; none without a design that has one beside the same without."""
    known = set(comparison.designs)
    guarded = [name.split("@") for name in comparison.designs if "@" in name]
    pairs = [(base, scheme) for base, scheme in guarded if base in known]
    if not pairs:
        return []
    bases = list(dict.fromkeys(base for base, _ in pairs))
    schemes = list(dict.fromkeys(scheme for _, scheme in pairs))
    views, table = [], Series("scheme", schemes, None)
    for name, (metric, axis) in VIEWS.items():
        of: Two = ratio_of(metric)
        data = []
        for index, base in enumerate(bases):
            values = [
                arithmetic_mean(comparison.each(of, f"{base}@{scheme}", base).values())
                for scheme in schemes
            ]
            colour = LINE_COLOURS[index % len(LINE_COLOURS)]
            hover = f"<b>{label(base)}</b>, %{{x}}<br>{name}: %{{y:.2f}}×"
            kept = table.add(f"{base}, {name}", "x", values)
            data.append(bar(base, table.axis, kept, colour, hover))
        shape = layout(axis, yaxis={"ticksuffix": "×"}, shapes=[at_one()])
        views.append(View(name, data, shape))
    head = Head("price-of-integrity", "What integrity costs", "")
    return [
        head.figure(
            "A run of each scheme below each design over the same design without integrity: the "
            "mean over the workloads.",
            "Lower is better. What a scheme promises, and what an attacker found, is in the table "
            "of a reproduction.",
            views,
            table.table(),
            assumed_by(comparison.results.runs, "time"),
        )
    ]
