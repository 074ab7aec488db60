"""The report: one HTML file with every figure, that works without a network.

``write_report`` writes it; ``figures`` gives the same figures to notebooks, each with
``.plotly()``. What draws them is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.draw.figure import Figure, Missing
    from sardonyx.report.write import (
        figures,
        write_curve_report,
        write_merge_report,
        write_report,
        write_savings_report,
        write_sweep_report,
        write_trace_report,
    )

__all__ = [
    "Figure",
    "Missing",
    "figures",
    "write_curve_report",
    "write_merge_report",
    "write_report",
    "write_savings_report",
    "write_sweep_report",
    "write_trace_report",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("sardonyx.report.write"), name)
