"""Writes docs/metrics.md: what each figure of a result is.

The measures come from ``sardonyx.runs.measures``, the causes from ``sardonyx.runs.results``, the
metrics from ``sardonyx.runs.metrics``.

    python tools/metrics_page.py            writes the page
"""

from __future__ import annotations

from pathlib import Path

from sardonyx.runs.measures import MEASURES, Measure
from sardonyx.runs.metrics import GROUPS
from sardonyx.runs.results import CAUSES

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

#: What a measure of ``MEASURES`` is, by its key.
MEASURED = {
    "write_reduction": "share of the program's writes that stored no line",
    "medium_write_ratio": "all writes of the design to its medium, counters and tables too, over "
    "those of the baseline",
    "write_speedup": "mean write latency of the baseline over that of the design",
    "read_speedup": "mean read latency of the baseline over that of the design",
    "ipc_ratio": "instructions per cycle of the design over those of the baseline",
    "p99_write": "the time within which 99 of 100 writes of the design are done; not a ratio",
    "energy_ratio": "energy of the design over that of the baseline",
}

#: What is booked under each cause.
BOOKED = {
    "ingress": "waiting to be admitted",
    "fingerprint": "computing a fingerprint",
    "lookup": "looking a fingerprint up, on chip or in the medium",
    "compare": "reading a similar line and comparing it",
    "mapping": "the mapping table",
    "counter": "encryption counters",
    "encryption": "computing one-time pads",
    "hazard": "waiting for an earlier request's use of the same line",
    "reclaim": "reference counts, inverse table and free map",
    "data": "the program's own lines",
    "log": "records of a hardware log, and what a recovery puts back from it",
}


def _measure(measure: Measure) -> str:
    better = "more" if measure.higher_is_better else "less"
    meaning = MEASURED[measure.key]
    return f"| {measure.title} | `{measure.key}` | {meaning} | {better} | {measure.mean} |"


def page() -> str:
    """The whole page."""
    lines = [
        "# Metrics",
        "",
        "What each figure of a result is. This page is written by `tools/metrics_page.py`. After a "
        "change run",
        "`.venv/bin/python tools/metrics_page.py`. A test compares the page with the program's "
        "tables and with runs of all designs.",
        "[glossary.md](glossary.md) explains the words.",
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
        "As in `results.json`. The unit is in the name: `_ns` is nanoseconds, `_nj` nanojoules. "
        "What does not apply to a run is",
        "null or left out. Counting begins after the warm-up.",
    ]
    for title, metrics in GROUPS.items():
        rows = [f"| `{name}` | {meaning} |" for name, meaning in metrics.items()]
        lines += ["", f"### {title}", "", "| name | what it is |", "|---|---|", *rows]
    lines += [
        "",
        "## Causes",
        "",
        "Latency, waiting, energy and accesses to the medium are booked under the cause for which "
        "they occur. Latency is the part on",
        "the critical path of the program's requests.",
        "",
        "| cause | what is booked under it |",
        "|---|---|",
        *[f"| `{cause}` | {BOOKED[cause]} |" for cause in CAUSES],
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
