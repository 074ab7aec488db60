"""What a trace holds, as bars in the terminal: duplicates and content locality (ESD Fig. 1 and 3).

The same figures to point at are in ``report.workloads``.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sardonyx.runs.facts import Trace
from sardonyx.runs.measures import written

#: The most columns of a bar, and of the text beside it.
LONGEST = 50
BESIDE = 30
EIGHTHS = " ▏▎▍▌▋▊▉"

DUPLICATES = (
    ("duplicates", "duplicate_rate"),
    ("zero lines", "zero_rate"),
    ("silent", "silent_write_rate"),
)


def trace_bars(trace: Trace, width: int = 80) -> RenderableType:
    """Both plots; nothing of a trace without writes."""
    if not trace.facts.get("writes"):
        return Group()
    length = max(10, min(LONGEST, width - BESIDE))
    shares = [(name, trace.facts.get(fact)) for name, fact in DUPLICATES]
    parts = [_plot("share of writes (ESD Fig. 1)", shares, length)]
    for title, attribute in (
        ("writes by how often their content comes (ESD Fig. 3)", "writes_share"),
        ("distinct contents, likewise", "contents_share"),
    ):
        rows = [(f"{row.times}×", getattr(row, attribute)) for row in trace.locality]
        if rows:
            parts.append(_plot(title, rows, length))
    return Group(*parts)


def _plot(title: str, rows: list[tuple[str, float | None]], length: int) -> Table:
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    table.add_column(style="dim", no_wrap=True, min_width=10)
    table.add_column(justify="right", no_wrap=True, min_width=8)
    table.add_column(no_wrap=True)
    for name, share in rows:
        shown = written(share, "%")
        if share is not None and 0 < share < 0.001:
            shown = f"{100 * share:.2g} %"
        table.add_row(name, shown, Text(_bar(share or 0.0, length), style="cyan"))
    return table


def _bar(share: float, length: int) -> str:
    """A bar to an eighth of a column; any share above nothing shows."""
    eighths = round(8 * length * min(share, 1.0))
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "")
