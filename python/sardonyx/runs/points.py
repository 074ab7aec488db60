"""What all runs share that become results, whatever they run: a name, one schedule, one document.

A family of runs (``jobs.Simulations``, ``stores.StoreRuns``, ``tailbench.TimedRuns``) says what its
points ask and which machine they are of. Sweeps have points by number, of any kind, and ask the
same questions (``sweeps.kinds``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from sardonyx import _core
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Watch


class Named(Protocol):
    """A run as results name it; ``variant`` is what tells it from the plain run of its design."""

    @property
    def trace(self) -> str: ...

    @property
    def design(self) -> str: ...

    @property
    def variant(self) -> Mapping[str, Scalar]: ...


class Runs(Protocol):
    """Points that become results."""

    @property
    def points(self) -> Sequence[Named]:
        """In their order in the results."""

    def check(self) -> None:
        """An error unless all of it can be run."""

    def run(self, workers: int | None = None, watch: Watch | None = None) -> Results:
        """Run it, so many at once."""


def label(point: Named) -> str:
    """The run in a few words; of a key its last name."""
    settings = (f"{key.split('.', 1)[-1]}={value}" for key, value in point.variant.items())
    return " ".join([point.trace, point.design, *settings])


def _kept(answer: Mapping[str, Any], point: Named) -> Mapping[str, Any]:
    """The parts of an answer that results keep: for a variant nothing over time, as there may be
    many.
    """
    left_out = {"epochs", "usage"} if point.variant else set[str]()
    return {name: value for name, value in answer.items() if name not in left_out}


def results(
    machine: Mapping[str, Any],
    traces: Iterable[Mapping[str, Any]],
    points: Sequence[Named],
    answers: Sequence[Mapping[str, Any]],
) -> Results:
    """What has been answered, as results of this machine."""
    names = ("name", "source", "parameters", "assumed")
    return Results.from_document(
        {
            "sardonyx": _core.VERSION,
            "machine": {name: machine[name] for name in names},
            "traces": list(traces),
            "runs": [
                {**_kept(answer, point), "trace": point.trace, "design": point.design}
                | {"variant": dict(point.variant)}
                for point, answer in zip(points, answers, strict=True)
            ],
        }
    )
