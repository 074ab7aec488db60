"""Threads on a memory module: bandwidth, latency and write amplification beside measured points.

Left out: how they are shown and drawn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sardonyx import _core
from sardonyx.questions import AccessesQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.curves import Loads, rows_of
from sardonyx.runs.scheduler import Task, Watch

#: The quantities of a point, each with its unit.
QUANTITIES = {
    "gb_per_s": "GB/s",
    "line_ns": "ns a line",
    "access_ns": "ns an access",
    "write_amplification": "bytes written to the cells for one",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """A point of a measured figure: the load and what came of it, in the unit of ``quantity``."""

    figure: str
    operation: str
    order: str
    threads: int
    access_bytes: int
    outstanding: int
    fenced: bool
    bytes: int
    modules: int
    quantity: str
    measured: float

    @property
    def curve(self) -> tuple[str, str]:
        """The figure and the operation: a curve each."""
        return self.figure, self.operation

    @property
    def load(self) -> str:
        """The load in a few words."""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        span = f" of {self.bytes} B" if self.order == "halves" else ""
        return f"{threads}, {self.access_bytes} B {self.order}{span}"


COLUMNS = tuple(field.name for field in fields(Measured))


@dataclass(frozen=True, slots=True)
class Point:
    """A point of ours beside the measured one."""

    design: str
    beside: Measured
    value: float
    line_p99_ns: float | None

    @property
    def error(self) -> float:
        """How far it lies from the measured one, as a share of that."""
        return self.value / self.beside.measured - 1

    def to_document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "design": self.design,
            **asdict(self.beside),
            "value": self.value,
            "error": self.error,
            "line_p99_ns": self.line_p99_ns,
        }


def is_of_accesses(text: str) -> bool:
    """Whether a CSV has loads of threads, by its first line that is not a comment."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return next(lines, "").split(",")[0] == COLUMNS[0]


def read_measured(text: str, name: str) -> list[Measured]:
    """The points of a CSV with the columns ``COLUMNS``; lines that begin with # are comments."""
    return [_point(row, where) for where, row in rows_of(text, name, COLUMNS)]


def _point(row: list[str], where: str) -> Measured:
    try:
        figure, operation, order, *numbers, quantity, measured = row
        threads, access, outstanding, fenced, span, modules = (int(number) for number in numbers)
        load = (threads, access, outstanding, bool(fenced), span, modules)
        point = Measured(figure, operation, order, *load, quantity, float(measured))
        sound = (
            operation in ("read", "write", "store")
            and order in ("sequential", "random", "halves")
            and quantity in QUANTITIES
            and fenced in (0, 1)
            and min(threads, outstanding, modules, access // 64) > 0
            and 0 < point.measured < 1e9
        )
    except ValueError:
        sound = False
    if not sound:
        raise _core.SardonyxError(
            f"{where}: {','.join(row)}: give a figure's name, read, write or store, sequential, "
            "random or halves, six whole numbers, one of "
            f"{', '.join(QUANTITIES)}, and what was measured"
        )
    return point


@dataclass(frozen=True, kw_only=True)
class Accesses(Loads):
    """Measured loads of threads."""

    points: tuple[Measured, ...]
    in_order: bool = False

    def run(self, workers: int | None = None, watch: Watch | None = None) -> list[Point]:
        """All points, in the order of the measured ones."""

        def task(design: str, point: Measured) -> Task[Point]:
            return Task(f"{design}, {point.load}", lambda _: self._run(design, point))

        tasks = [task(design, point) for design in self.designs for point in self.points]
        return scheduler.run(tasks, workers, watch)

    def _run(self, design: str, of: Measured) -> Point:
        modules = (("medium.geometry.channels", str(of.modules)),)
        # A small region is gone through often, and a large one at least three times.
        often = 3 * of.bytes // 64 if of.order == "halves" else 0
        question = AccessesQuestion(
            design=design,
            machine=self.machine,
            overrides=(*modules, *self.sets),
            operation=of.operation,
            order=of.order,
            threads=of.threads,
            access_bytes=of.access_bytes,
            outstanding=of.outstanding,
            shuffled=not self.in_order,
            fenced=of.fenced,
            bytes=of.bytes,
            requests=max(self.requests, often),
            seed=self.seed,
        )
        found = json.loads(_core.accesses_point(question.json()))
        value = {
            "gb_per_s": found["bytes_per_second"] / 1e9,
            "line_ns": found["line"]["mean_ns"],
            "access_ns": found["access"]["mean_ns"],
            "write_amplification": found["write_amplification"],
        }[of.quantity]
        if value is None:
            raise _core.SardonyxError(
                f"{self.machine}: has no {of.quantity} of {of.operation}; write amplification is "
                "of writes, behind a buffer (medium.buffer.blocks)"
            )
        return Point(design, of, value, found["line"]["p99_ns"])


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a curve lies from the measured one: the mean of the absolute errors, as a share."""

    curve: tuple[str, str]
    points: int
    mean: float
    worst: Point


def agreements(points: Sequence[Point]) -> list[Agreement]:
    """Of each curve of the first design."""
    first = [point for point in points if point.design == points[0].design]
    curves = dict.fromkeys(point.beside.curve for point in first)
    of = {curve: [point for point in first if point.beside.curve == curve] for curve in curves}
    return [
        Agreement(
            curve,
            len(found),
            sum(abs(point.error) for point in found) / len(found),
            max(found, key=lambda point: abs(point.error)),
        )
        for curve, found in of.items()
    ]


def varied(points: Sequence[Measured]) -> str:
    """The column that differs most along a curve: what it is drawn over."""
    columns = ("threads", "access_bytes", "bytes")
    return max(columns, key=lambda name: len({getattr(point, name) for point in points}))
