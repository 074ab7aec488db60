"""The kinds of subjects of a sweep, each a file that has one ``KIND``.

A new one is a file here and a line in ``KINDS``.
"""

from __future__ import annotations

from importlib import import_module

from sardonyx.sweeps.kinds.kind import Kind

#: Every kind, in the order in which messages name their lists.
KINDS: tuple[Kind, ...] = tuple(
    import_module(f"{__name__}.{file}").KIND
    for file in (
        "simulate",
        "crash",
        "merge",
        "merge_time",
        "store",
        "crash_test",
    )
)
