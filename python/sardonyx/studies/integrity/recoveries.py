"""Recoveries of integrity after a power cut: executed on media that fit, and by a law on 8 TB.

Each point is a medium that is filled, cut and recovered by the scheme's own code, whose accesses
are counted and then timed by the engine (``crates/crash/src/recovery_cost.rs``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx import _core
from sardonyx.papers.reproduction import Cell, Exhibit
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import Setting
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.studies.integrity.law import Law, fitted

LINE = 64
TB = 1 << 40
#: The size of the medium that recoveries are extrapolated to.
LARGE = 8 * TB
#: The key of the cache whose contents are lost at a cut.
CACHE = "integrity.cache.bytes"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is executed: lines of media, bytes of caches, and how many lines a line of the cache
    are written after all was written back.
    """

    lines: Sequence[int]
    caches: Sequence[int]
    since: Sequence[float]
    #: The lines of the medium at the points over caches and over writes.
    middle: int = 1 << 15
    #: The writes at the points over media.
    usual: float = 4.0


@dataclass(frozen=True, slots=True)
class Point:
    """One recovery that was executed; counts are of lines and hashes."""

    lines: int
    cache: int
    since: int
    reads: int
    hashes: int
    writes: int
    dirty: int
    seconds: float
    refused: bool

    def to_document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recoveries of one stack: over media, over caches, over what was written since."""

    design: str
    media: tuple[Point, ...]
    caches: tuple[Point, ...]
    since: tuple[Point, ...]

    def law(self, of: str) -> Law:
        """How ``reads``, ``hashes``, ``writes`` or ``seconds`` grow with the medium."""
        return fitted([(point.lines, getattr(point, of)) for point in self.media])

    def seconds(self, capacity: int = LARGE) -> float:
        """For a medium of so many bytes, by the law."""
        return self.law("seconds").at(capacity // LINE)

    def one_by_one(self, capacity: int = LARGE) -> float:
        """The same if each line that is read or written took 100 ns, one after the other."""
        lines = capacity // LINE
        return 100e-9 * (self.law("reads").at(lines) + self.law("writes").at(lines))

    def to_document(self) -> dict[str, Any]:
        laws = {of: self.law(of) for of in ("reads", "hashes", "writes", "seconds")}
        return {
            "design": self.design,
            "laws": {of: law.to_document() for of, law in laws.items()},
            "at_8_tb": {of: law.at(LARGE // LINE) for of, law in laws.items()},
            "media": [point.to_document() for point in self.media],
            "caches": [point.to_document() for point in self.caches],
            "since": [point.to_document() for point in self.since],
        }


def measured(
    designs: Sequence[str],
    machine: str,
    overrides: Sequence[Setting],
    sizes: Sizes,
    varied: Sequence[str],
    watch: Watch | None = None,
) -> dict[str, Recovery]:
    """The recoveries of every design; over caches and writes those of the designs ``varied``."""
    parameters = json.loads(_core.machine(machine, list(overrides)))["parameters"]
    standard = int(parameters[CACHE])
    middle = sizes.middle
    asked: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for design in designs:

        def point(lines: int, cache: int, share: float) -> tuple[int, int, int]:
            return lines, cache, int(share * cache // LINE)

        asked[design, "media"] = [point(lines, standard, sizes.usual) for lines in sizes.lines]
        sizes_of = sizes.caches if design in varied else ()
        shares = sizes.since if design in varied else ()
        asked[design, "caches"] = [point(middle, cache, sizes.usual) for cache in sizes_of]
        asked[design, "since"] = [point(middle, standard, share) for share in shares]
    tasks: dict[tuple[str, int, int, int], Task[str]] = {}
    for (design, _), points in asked.items():
        for lines, cache, since in points:
            settings = [*overrides, (CACHE, str(cache))]
            tasks.setdefault(
                (design, lines, cache, since),
                Task(
                    f"recovery {design}, {lines * LINE >> 10:,} KB",
                    _ask(design, machine, settings, lines, since),
                ),
            )
    answers = dict(zip(tasks, scheduler.run([*tasks.values()], watch=watch), strict=True))

    def found(design: str, axis: str) -> tuple[Point, ...]:
        return tuple(
            _point(json.loads(answers[design, lines, cache, since]), cache)
            for lines, cache, since in asked[design, axis]
        )

    return {
        design: Recovery(
            design, found(design, "media"), found(design, "caches"), found(design, "since")
        )
        for design in designs
    }


def _ask(
    design: str, machine: str, settings: list[Setting], lines: int, since: int
) -> Callable[[object], str]:
    def call(_: object) -> str:
        return _core.integrity_recovery(design, machine, settings, lines, lines, since)

    return call


def _point(answer: dict[str, Any], cache: int) -> Point:
    return Point(
        answer["lines"],
        cache,
        answer["since"],
        answer["reads"],
        answer["hashes"],
        answer["writes"],
        answer["dirty"],
        answer["time_ns"] / 1e9,
        answer["refused"],
    )


def written_seconds(seconds: float) -> str:
    """A time for people."""
    if seconds == 0:
        return "nothing to do"
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("s", 1.0)):
        if seconds >= size * (1 if unit == "s" else 2):
            return f"{seconds / size:,.3g} {unit}"
    for unit, size in (("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds * 1e9:,.3g} ns"


def _size(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:,.4g} {unit}"
    return f"{count} B"


def exhibits(found: dict[str, Recovery], shown: Sequence[str], sizes: Sizes) -> tuple[Exhibit, ...]:
    """The laws with their points, and what caches and dirty lines change; of the stacks ``shown``,
    and all others in JSON alone.
    """
    laws: dict[str, dict[str, Cell]] = {}
    others: dict[str, dict[str, Cell]] = {}
    for design in shown:
        recovery = found[design]
        row: dict[str, Cell] = {}
        for point in recovery.media:
            row[_size(point.lines * LINE)] = _cell(point)
        at = {of: recovery.law(of) for of in ("reads", "hashes", "writes", "seconds")}
        lines = LARGE // LINE
        row["8 TB, by the law"] = Cell(
            None,
            written_seconds(at["seconds"].at(lines)),
            f"{at['reads'].at(lines):,.4g} reads, {at['hashes'].at(lines):,.4g} hashes, "
            f"{at['writes'].at(lines):,.4g} writes",
            {},
            {},
        )
        row["law of reads"] = Cell(None, at["reads"].words, f"off by {at['reads'].off:.1%}", {}, {})
        law = at["seconds"]
        row["law of seconds"] = Cell(None, law.words, f"off by {law.off:.1%}", {}, {})
        laws[design] = row
        others[design] = {
            **{f"cache {_size(point.cache)}": _cell(point) for point in recovery.caches},
            **{
                f"{share:g} writes a line of it": _cell(point)
                for share, point in zip(sizes.since, recovery.since, strict=True)
            },
        }
    note = (
        "Each point: every line of the medium is written, all is written back, "
        f"{sizes.usual:g} times as many lines as the cache has are written, and the power goes; "
        "the recovery's own reads and writes are counted and timed by the engine on a memory that "
        "does nothing else. The last columns have the law that was fitted to these points, and by "
        "how much the point that is furthest from it is off. 8 TB were not executed."
    )
    more = (
        "The same at one size of the medium: other caches of MACs and nodes, and fewer or more "
        "lines written since all was written back."
    )
    documents = {"recoveries": [recovery.to_document() for recovery in found.values()]}
    return (
        Exhibit("recovery", "Recovery by size of the medium", "stack", laws, note, documents),
        Exhibit("recovery-caches", "Recovery by cache and writes", "stack", others, more, {}),
    )


def _cell(point: Point) -> Cell:
    said = f"{point.reads:,} reads, {point.writes:,} writes"
    return Cell(None, "refused" if point.refused else written_seconds(point.seconds), said, {}, {})
