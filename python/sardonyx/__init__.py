"""Sardonyx: a simulator of persistent, encrypted, deduplicated main memory.

``compare`` runs designs on traces and gives results that turn into a data frame, ``sweep`` runs
thousands of points into one. The other commands of the command line are functions of the same
name (``commands``). The simulator itself is the native module ``sardonyx._core``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx._core import VERSION as __version__
    from sardonyx._core import SardonyxError, Step, Stored, check_bits
    from sardonyx.api import (
        DESIGNS,
        Answer,
        call,
        cite,
        compare,
        crash,
        crash_files,
        crash_test,
        curve,
        designs,
        diff,
        estimate,
        explore,
        load,
        machines,
        merge,
        pack,
        programs,
        record,
        recordings,
        reproduce,
        show,
        store,
        sweep,
        synth,
        trace_info,
    )
    from sardonyx.layers import guard, mapping, policy
    from sardonyx.notebook import plot, plots
    from sardonyx.questions import ProgramSource
    from sardonyx.runs.frames import write_trace
    from sardonyx.runs.results import Results
    from sardonyx.tracing.frames import read_trace

__all__ = [
    "DESIGNS",
    "Answer",
    "ProgramSource",
    "Results",
    "SardonyxError",
    "Step",
    "Stored",
    "__version__",
    "call",
    "check_bits",
    "cite",
    "compare",
    "crash",
    "crash_files",
    "crash_test",
    "curve",
    "designs",
    "diff",
    "estimate",
    "explore",
    "guard",
    "load",
    "machines",
    "mapping",
    "merge",
    "pack",
    "plot",
    "plots",
    "policy",
    "programs",
    "read_trace",
    "record",
    "recordings",
    "reproduce",
    "show",
    "store",
    "sweep",
    "synth",
    "trace_info",
    "write_trace",
]

_HOMES = {
    "__version__": "_core",
    "SardonyxError": "_core",
    "Step": "_core",
    "Stored": "_core",
    "check_bits": "_core",
    "ProgramSource": "questions",
    "Results": "runs.results",
    "guard": "layers",
    "mapping": "layers",
    "policy": "layers",
    "plot": "notebook",
    "plots": "notebook",
    "read_trace": "tracing.frames",
    "write_trace": "runs.frames",
}


def __getattr__(name: str) -> Any:
    # Names are imported when first used, because the program sets its signals before anything slow.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES.get(name, 'api')}")
    value = getattr(module, "VERSION" if name == "__version__" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
