"""Writes docs/reference/metrics.md: what each figure of a result is.

The measures come from ``sardonyx.runs.measures``, the causes from ``sardonyx.runs.results``, the
figures of a run from the simulator, which declares each where it counts it.

    python tools/metrics_page.py            writes the page
"""

from __future__ import annotations

import json
from pathlib import Path

from sardonyx import _core
from sardonyx.runs.measures import MEASURES, Measure
from sardonyx.runs.metrics import by_title
from sardonyx.runs.results import CAUSES

PAGE = Path(__file__).parents[1] / "docs/reference/metrics.md"


def _measure(measure: Measure) -> str:
    better = {True: "more", False: "less", None: "neither"}[measure.higher_is_better]
    return f"| {measure.title} | `{measure.key}` | {measure.meaning} | {better} | {measure.mean} |"


def _row(name: str, meaning: str, *notes: str) -> str:
    said = ", ".join(note for note in notes if note)
    return f"* `{name}`: {meaning}" + (f" ({said})" if said else "")


def page() -> str:
    """The whole page."""
    booked = json.loads(_core.causes())
    lines = [
        "# Metrics",
        "",
        "What each figure of a result is. This page is written by `tools/metrics_page.py`. After a "
        "change run",
        "`.venv/bin/python tools/metrics_page.py`. A test compares the page with the program's "
        "tables and with runs of all designs.",
        "[glossary](../start/glossary.md) explains the words.",
        "",
        "## Columns of `compare`",
        "",
        "Each design beside the baseline on the same trace; the last column is the mean over "
        "traces. IPC is instructions per cycle,",
        "p99 the 99th percentile.",
        "",
        "| column | name | what it is | better | mean |",
        "|---|---|---|---|---|",
        *[_measure(measure) for measure in MEASURES.values()],
        "",
        "## Metrics of one run",
        "",
        "As in `results.json`. What does not apply to a run is null or left out. Counting begins "
        "after the warm-up. In brackets are the",
        "unit (else it is a count), and whether more or less is better, all else being equal.",
    ]
    for title, figures in by_title().items():
        rows = [_row(one.name, one.meaning, one.unit, one.better) for one in figures]
        lines += ["", f"### {title}", "", *rows]
    lines += [
        "",
        "## Causes",
        "",
        "Latency, waiting, energy and accesses to the medium are booked under the cause for which "
        "they occur. Latency is the part on",
        "the critical path of the program's requests.",
        "",
        *[f"* `{cause}`: {booked[cause]}" for cause in CAUSES],
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
