"""Curves of a memory under a steady load: bandwidth and latency, beside measured ones where there
are any.

Left out: how they are shown and drawn.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any

from sardonyx import _core
from sardonyx.files import FileError, read_text
from sardonyx.questions import CurveQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import check_designs
from sardonyx.runs.scheduler import Task, Watch

#: The points of a curve as shares of the largest bandwidth, if nothing was measured.
SHARES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
COLUMNS = ("reads_percent", "gb_per_s", "read_ns")


@dataclass(frozen=True, slots=True)
class Measured:
    """A point of a measured curve; the last one of a curve is its end, where more is asked for than
    goes through.
    """

    reads_percent: int
    gb_per_s: float
    read_ns: float


@dataclass(frozen=True, slots=True)
class Point:
    """A point of ours: what was asked for (``None``: as much as goes through), what came, and what
    was measured there. Bandwidths in GB a second (10^9 bytes), latencies in nanoseconds.
    """

    design: str
    reads_percent: int
    offered: float | None
    gb_per_s: float
    read_ns: float | None
    read_p99_ns: float | None
    write_ns: float | None
    outstanding: float
    measured: Measured | None = None

    @property
    def error(self) -> float | None:
        """How far the read latency lies from the measured one, as a share of it."""
        if self.measured is None or self.read_ns is None:
            return None
        return self.read_ns / self.measured.read_ns - 1

    @property
    def bandwidth_error(self) -> float | None:
        """The same of the bandwidth, at the end of a curve."""
        if self.measured is None or self.offered is not None:
            return None
        return self.gb_per_s / self.measured.gb_per_s - 1

    def to_document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "design": self.design,
            "reads_percent": self.reads_percent,
            "offered_gb_per_s": self.offered,
            "gb_per_s": self.gb_per_s,
            "read_ns": self.read_ns,
            "read_p99_ns": self.read_p99_ns,
            "write_ns": self.write_ns,
            "outstanding": self.outstanding,
            "measured_gb_per_s": self.measured.gb_per_s if self.measured else None,
            "measured_read_ns": self.measured.read_ns if self.measured else None,
            "error": self.error,
            "bandwidth_error": self.bandwidth_error,
        }


def shipped(machine: str) -> str | None:
    """What was measured of the machine of that name, if the package has it: its CSV."""
    found = files("sardonyx").joinpath("measured", f"{machine}.csv")
    return found.read_text("utf-8") if found.is_file() else None


def read_measured(text: str, name: str) -> list[Measured]:
    """The points of a CSV with the columns ``COLUMNS``; lines that begin with # are comments."""
    points = []
    for where, row in rows_of(text, name, COLUMNS):
        try:
            percent, bandwidth, latency = int(row[0]), float(row[1]), float(row[2])
        except (ValueError, IndexError):
            percent, bandwidth, latency = -1, 0.0, 0.0
        if len(row) != 3 or not (0 < percent <= 100 and 0 < bandwidth < 1e6 and 0 < latency < 1e9):
            raise _core.SardonyxError(
                f"{where}: {','.join(row)}: give a share of reads of 1 to 100 %, GB a second and "
                "nanoseconds"
            )
        points.append(Measured(percent, bandwidth, latency))
    return points


def rows_of(text: str, name: str, columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The rows of a CSV with these columns, each with its place; # begins a comment."""
    numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(n, line) for n, line in numbered if not line.startswith("#")]
    rows = csv.reader(line for _, line in lines)
    if tuple(next(rows, ())) != tuple(columns):
        raise _core.SardonyxError(f"{name}: its first line is not {','.join(columns)}")
    found = [(f"{name}:{number}", row) for (number, _), row in zip(lines[1:], rows, strict=True)]
    if not found:
        raise _core.SardonyxError(f"{name}: has no points")
    return found


@dataclass(frozen=True, kw_only=True)
class Loads:
    """Loads on designs of one machine."""

    machine: str
    designs: tuple[str, ...]
    sets: tuple[tuple[str, str], ...] = ()
    requests: int = 60_000
    seed: int = 1

    def check(self) -> None:
        """Refuse what no run could be made of, before one is."""
        check_designs(self.designs)
        _core.machine(self.machine, list(self.sets))

    def as_measured(self) -> bool:
        """Whether the machine is as it was measured, without a design."""
        return not self.sets and self.designs == ("no-encryption",)


@dataclass(frozen=True, kw_only=True)
class Curves(Loads):
    """Steady loads, from little to as much as goes through."""

    #: Shares in percent, a curve for each.
    reads: tuple[int, ...]
    outstanding: int = 256
    streams: int = 16
    bytes: int = 1 << 30
    measured: tuple[Measured, ...] = ()

    def run(self, workers: int | None = None, watch: Watch | None = None) -> list[Point]:
        """All points, curve by curve: first their ends, which say what the others are offered."""

        def task(design: str, percent: int, offered: float | None) -> Task[Point]:
            call = partial(self._point, design, percent, offered)
            return Task(f"{design}, {percent} % reads", lambda _: call())

        plain = scheduler.run([task(*curve, None) for curve in self._curves()], workers, watch)
        ends = [self._end(end) for end in plain]
        wanted = [point for end in ends for point in self._loads(end)]
        tasks = [task(end.design, end.reads_percent, offered) for end, offered in wanted]
        points = scheduler.run(tasks, workers, watch)
        of: dict[tuple[str, int], list[Point]] = {}
        for point in (*points, *ends):
            of.setdefault((point.design, point.reads_percent), []).append(point)
        return [point for curve in self._curves() for point in of[curve]]

    def _curves(self) -> list[tuple[str, int]]:
        return [(design, percent) for design in self.designs for percent in self.reads]

    def _measured(self, percent: int) -> list[Measured]:
        return [point for point in self.measured if point.reads_percent == percent]

    def _end(self, end: Point) -> Point:
        """The end of a curve beside the end of the measured one."""
        measured = self._measured(end.reads_percent)
        return replace(end, measured=measured[-1]) if measured else end

    def _loads(self, end: Point) -> list[tuple[Point, float]]:
        measured = self._measured(end.reads_percent)
        if measured:
            return [(end, point.gb_per_s) for point in measured[:-1]]
        return [(end, share * end.gb_per_s) for share in SHARES]

    def _point(self, design: str, percent: int, offered: float | None) -> Point:
        question = CurveQuestion(
            design=design,
            machine=self.machine,
            overrides=self.sets,
            reads_per_mille=percent * 10,
            bytes_per_second=None if offered is None else offered * 1e9,
            outstanding=self.outstanding,
            streams=self.streams,
            bytes=self.bytes,
            requests=self.requests,
            seed=self.seed,
        )
        found = json.loads(_core.curve_point(question.json()))
        measured = [at for at in self._measured(percent) if at.gb_per_s == offered]
        return Point(
            design=design,
            reads_percent=percent,
            offered=offered,
            gb_per_s=found["bytes_per_second"] / 1e9,
            read_ns=found["read"]["mean_ns"],
            read_p99_ns=found["read"]["p99_ns"],
            write_ns=found["write"]["mean_ns"],
            outstanding=found["outstanding"],
            measured=measured[0] if measured else None,
        )


def file_text(path: str) -> str:
    """The text of a file of points."""
    try:
        return read_text(path)
    except FileError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise _core.SardonyxError(f"{path}: {reason}; name a CSV file of points") from None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far curves lie from measured ones: means of the absolute errors, as shares."""

    points: int
    mean: float
    worst: Point
    #: The mean error of the bandwidths at the ends of the curves.
    ends: float


def agreement(points: Sequence[Point]) -> Agreement | None:
    """Of the points beside which something was measured; ``None`` without any."""
    beside = [point for point in points if point.error is not None]
    if not beside:
        return None
    ends = [abs(point.bandwidth_error) for point in beside if point.bandwidth_error is not None]
    return Agreement(
        points=len(beside),
        mean=sum(abs(point.error or 0.0) for point in beside) / len(beside),
        worst=max(beside, key=lambda point: abs(point.error or 0.0)),
        ends=sum(ends) / len(ends) if ends else 0.0,
    )
