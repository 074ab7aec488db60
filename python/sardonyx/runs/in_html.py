"""Results as a notebook shows them: the table of ``sardonyx compare`` in HTML.

The baseline's row is in units, the others are ratios to it; without one each row is in units.
"""

from __future__ import annotations

from html import escape

from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import BASELINE, MEASURES, plain, written
from sardonyx.runs.results import Results
from sardonyx.runs.spread import shown


def table(results: Results) -> str:
    """One HTML table: a row a workload and design, a column a measure."""
    comparison = Comparison(results)
    measures = list(MEASURES.values())
    beside = bool(comparison.beside_baseline)
    rows = []
    for workload in comparison.workloads:
        for design in comparison.designs:
            run = comparison.run(workload, design)
            if run is None:
                continue
            cells = []
            for measure in measures:
                if beside and design != BASELINE:
                    value, half = comparison.estimate(measure.of, workload, design, BASELINE)
                    cells.append(written(value, measure.unit) + shown(half, value, measure.unit))
                else:
                    own = run.metric(measure.base) if measure.base else None
                    unit = measure.base_unit
                    bare = "–" if own is None else plain(own)
                    cells.append(written(own, unit) if unit else bare)
            names = "".join(f"<th>{escape(name)}</th>" for name in (workload, design))
            values = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows.append(f"<tr>{names}{values}</tr>")
    heads = ("trace", "design", *(measure.title for measure in measures))
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    said = f"On {results.machine.name}. " + (
        "The baseline's row is absolute, the others are ratios to it."
        if beside
        else "Absolute figures: there is no baseline and another design to compare."
    )
    return (
        f"<table><caption>{escape(said)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
