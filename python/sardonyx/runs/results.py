"""What a comparison yields: runs, the facts about their traces, and the machine they ran on.

The document is plain JSON (``results.json``); this module is its typed model, which pydantic reads
and writes, and its flat form for data tools. Units are in the names (``_ns``, ``_nj``,
``_bytes``). Left out: every derived figure (speed-ups, means), which ``measures`` has.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from sardonyx.files import FileError, is_special, replacing, write_text
from sardonyx.runs.sensitivity import Sensitivity

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: The causes under which the simulator books time, energy and traffic, in the order in which
#: reports show them.
CAUSES = (
    "ingress",
    "fingerprint",
    "lookup",
    "compare",
    "mapping",
    "counter",
    "encryption",
    "hazard",
    "reclaim",
    "log",
    "integrity",
    "link",
    "levelling",
    "data",
)


def in_order(causes: Iterable[str]) -> list[str]:
    """Causes as reports show them; those that are not known last."""
    rank = {cause: index for index, cause in enumerate(CAUSES)}
    return sorted(causes, key=lambda cause: (rank.get(cause, len(rank)), cause))


REMEDY = "write it again with `sardonyx compare ... --out DIR`"


class ResultsError(FileError):
    """A results document that cannot be read: where the fault is, and what to do about it."""

    def __init__(self, place: str, problem: str, remedy: str = REMEDY) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place = place

    @classmethod
    def of(cls, error: ValidationError, source: str) -> ResultsError:
        """The first thing that is wrong with the document ``source``."""
        first = error.errors()[0]
        loc, problem, context = list(first["loc"]), first["msg"], first.get("ctx", {})
        loc += context.get("at", [])
        if first["type"] == "missing":
            problem = f"`{loc.pop()}` is missing"
        elif wanted := _WANTED.get(first["type"], context.get("wanted")):
            shown = json.dumps(first["input"], default=str)
            shown = shown if len(shown) <= 40 else shown[:37] + "..."
            problem = f"expected {wanted}, found {shown}"
        inside = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
        return cls(f"{source}, {inside.lstrip('.')}" if inside else source, problem)


#: What pydantic's complaints ask for.
_WANTED = {
    "string_type": "a string",
    "list_type": "a list",
    "tuple_type": "a list",
    **dict.fromkeys(("dict_type", "dataclass_type", "model_type"), "an object"),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "greater_than_equal"),
        "a whole number of at least 1",
    ),
}


def _wanted(what: str) -> PydanticCustomError:
    return PydanticCustomError("wanted", "expected {wanted}", {"wanted": what})


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise _wanted("a number or null")
    if value is not None and not math.isfinite(value):
        raise _wanted("a finite number or null")
    return value


def _scalar(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise _wanted("a number, a string or a truth value")
    return value


def _cumulative(points: object) -> object:
    """Pairs of a latency and the fraction of requests within it, both growing."""
    if not isinstance(points, list | tuple):
        return points
    taken: list[tuple[float, float]] = []
    for index, pair in enumerate(points):

        def bad(problem: str, index: int = index) -> PydanticCustomError:
            return PydanticCustomError("distribution", problem, {"at": [index]})

        if not isinstance(pair, list | tuple) or len(pair) != 2 or None in map(_number, pair):
            raise bad("expected a pair [latency_ns, fraction]")
        ns, fraction = pair
        if ns < 0 or not 0 <= fraction <= 1 + 1e-9:
            raise bad("a latency below 0 or a fraction outside 0..1")
        if taken and (ns < taken[-1][0] or fraction < taken[-1][1]):
            raise bad("the distribution falls; it must be cumulative")
        taken.append((ns, min(fraction, 1.0)))
    return taken


Number: TypeAlias = Annotated[int | float | None, BeforeValidator(_number)]
Scalar: TypeAlias = Annotated[bool | int | float | str, BeforeValidator(_scalar)]
Distribution: TypeAlias = Annotated[tuple[tuple[float, float], ...], BeforeValidator(_cumulative)]


@dataclass(frozen=True, slots=True)
class Cause:
    """What is booked under one cause in one run, summed over its requests. ``None``: not
    recorded.
    """

    latency_ns: Number = None
    write_latency_ns: Number = None
    read_latency_ns: Number = None
    wait_ns: Number = None
    energy_nj: Number = None
    medium_reads: Number = None
    medium_writes: Number = None


@dataclass(frozen=True, slots=True)
class Locality:
    """Contents written this many times: how many contents, and how many of all writes they
    account for.
    """

    times: str
    contents: Number = None
    contents_share: Number = None
    writes: Number = None
    writes_share: Number = None


@dataclass(frozen=True, slots=True)
class Collisions:
    """Distinct contents of one trace whose fingerprint an earlier content had, the writes that
    meet such a fingerprint, and both relative to those of CRC-32.
    """

    fingerprint: str
    contents: Number = None
    writes: Number = None
    writes_share: Number = None
    contents_to_crc32: Number = None
    writes_to_crc32: Number = None


class Info(BaseModel, frozen=True, extra="allow"):
    """What a trace or a program says about itself, under the names of ``sardonyx trace info``."""

    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)
    locality: tuple[Locality, ...] = ()
    collisions: tuple[Collisions, ...] = ()

    @property
    def facts(self) -> dict[str, float | None]:
        """The numbers among it, independent of any design."""
        return {
            name: value
            for name, value in self.other.items()
            if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        }

    @property
    def other(self) -> dict[str, JsonValue]:
        """All but the lists of this class, as it came."""
        return self.__pydantic_extra__

    @model_serializer(mode="wrap")
    def _numbers_first(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        whole: dict[str, Any] = written(self)
        return self.facts | {name: whole[name] for name in self.other} | whole


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace, or program, and what was counted in it."""

    name: str
    info: Info = field(default_factory=Info)

    @property
    def facts(self) -> dict[str, float | None]:
        return self.info.facts

    @property
    def locality(self) -> tuple[Locality, ...]:
        return self.info.locality

    @property
    def collisions(self) -> tuple[Collisions, ...]:
        return self.info.collisions

    @property
    def program(self) -> str | None:
        """The program's name, if it is one and no trace."""
        name = self.info.other.get("program")
        return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class Sample:
    """Which part of a run was timed: ``windows`` of ``requests`` each, after ``ramp`` that do not
    count. ``timed`` requests of all ``of``; the rest changed state without a clock.

    The run's figures are then those of a window, the mean over all; with ``half_widths`` to either
    side 95 of 100 such intervals hold the whole run's.
    """

    windows: int
    requests: int
    ramp: int
    seed: int
    timed: int
    of: int
    half_widths: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds over which a run's figures are means, what each gave (``values``, in the order of
    the seeds), and half of each mean's 95 % interval.
    """

    seeds: tuple[int, ...]
    half_widths: dict[str, float] = field(default_factory=dict)
    values: dict[str, tuple[Number, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """Figures over time: a list each, of epochs that begin at ``begin_ns`` and are ``width_ns``
    long; the last may end early.
    """

    begin_ns: float
    width_ns: float
    columns: dict[str, tuple[Number, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnitUse:
    """A kind of on-chip unit: its uses, and the share of time in which it could begin no other."""

    name: str
    uses: int
    share: Number = None


@dataclass(frozen=True, slots=True)
class Worn:
    """Lines that were written ``least`` times or more, and less than twice that."""

    least: int
    lines: int
    writes: int


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the medium from the line ``first`` on, which is of ``region``; ``lines`` of it
    were written, one of them ``most`` times.
    """

    region: str
    first: int
    lines: int
    writes: int
    most: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a memory was in use, in shares of time (of queues: of slots and time), and how
    its lines were worn. Banks come channel after channel and rank after rank.
    """

    banks: tuple[Number, ...] = ()
    buses: tuple[Number, ...] = ()
    read_queues: Number = None
    write_queues: Number = None
    units: tuple[UnitUse, ...] = ()
    worn: tuple[Worn, ...] = ()
    map: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One trace under one design. ``variant`` holds what differs from the machine; empty for the
    plain run. ``sample`` says what was timed, if that was not all of it; ``seeds`` over which
    figures are means, if there were several.
    """

    trace: str
    design: str
    machine: str = ""
    copies: Annotated[int, Field(ge=1, strict=True)] = 1
    variant: dict[str, Scalar] = field(default_factory=dict)
    metrics: dict[str, Number] = field(kw_only=True)
    causes: dict[str, Cause] = field(default_factory=dict)
    write_latency_cdf: Distribution = ()
    read_latency_cdf: Distribution = ()
    assumed: tuple[str, ...] = ()
    sample: Sample | None = None
    epochs: Series | None = None
    usage: Usage | None = None
    seeds: Seeds | None = None

    def metric(self, name: str) -> float | None:
        """The metric, or ``None`` where the run has none of that name."""
        return self.metrics.get(name)

    @property
    def each_seed(self) -> list[Run]:
        """What it was under each of its seeds: the metrics alone; itself without several."""
        if self.seeds is None:
            return [self]
        values = self.seeds.values
        return [
            replace(self, seeds=None, metrics={name: each[index] for name, each in values.items()})
            for index in range(len(self.seeds.seeds))
        ]

    @property
    def variant_label(self) -> str:
        """``key=value`` pairs in key order; empty for the plain run."""
        return " ".join(f"{key}={self.variant[key]}" for key in sorted(self.variant))


@dataclass(frozen=True, slots=True)
class Assumption:
    """A parameter whose value no source gives."""

    parameter: str
    value: JsonValue = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    source: str = ""
    parameters: dict[str, JsonValue] = field(default_factory=dict)
    assumed: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Results:
    """Everything that a comparison yielded."""

    version: Annotated[str, Field(alias="sardonyx")]
    machine: Machine
    traces: tuple[Trace, ...] = ()
    runs: tuple[Run, ...] = field(kw_only=True)
    #: What depends on assumed keys, if that was asked.
    sensitivity: Sensitivity | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        traces = ", ".join(dict.fromkeys(run.trace for run in self.runs))
        designs = ", ".join(dict.fromkeys(run.design for run in self.runs))
        number = f"{len(self.runs)} {'run' if len(self.runs) == 1 else 'runs'}"
        return f"<Results on {self.machine.name}: {number}; traces {traces}; designs {designs}>"

    def _repr_html_(self) -> str:
        """The table of designs beside the baseline, for notebooks."""
        from sardonyx.runs.in_html import table

        return table(self)

    @property
    def designs(self) -> list[str]:
        """Designs that have a plain run, in order of first appearance; ``baseline`` first."""
        seen = dict.fromkeys(run.design for run in self.runs if not run.variant)
        return sorted(seen, key=lambda design: design != "baseline")

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a run: identity, every metric, every cause as
        ``cause.<cause>.<quantity>``; of means over seeds also ``half_width.<metric>``.
        """
        metrics = sorted({name for run in self.runs for name in run.metrics})
        causes = in_order({name for run in self.runs for name in run.causes})
        halves = sorted({n for run in self.runs if run.seeds for n in run.seeds.half_widths})
        rows = []
        for run in self.runs:
            row: dict[str, Any] = {
                "trace": run.trace,
                "design": run.design,
                "machine": run.machine,
                "copies": run.copies,
                "variant": run.variant_label,
            }
            row |= {name: run.metrics.get(name) for name in metrics}
            for cause in causes:
                booked = run.causes.get(cause)
                for quantity in _CAUSE_FIELDS:
                    row[f"cause.{cause}.{quantity}"] = booked and getattr(booked, quantity)
            for name in halves:
                row[f"half_width.{name}"] = run.seeds and run.seeds.half_widths.get(name)
            rows.append(row)
        return rows

    def to_arrow(self) -> pyarrow.Table:
        """The flat rows as an Arrow table: identity columns are strings, all others nullable
        doubles.
        """
        import pyarrow as pa

        rows = self.rows()
        names = list(rows[0]) if rows else ["trace", "design", "machine", "copies", "variant"]
        types = {"copies": pa.int64()} | dict.fromkeys(
            ("trace", "design", "machine", "variant"), pa.string()
        )
        schema = pa.schema([(name, types.get(name, pa.float64())) for name in names])
        columns = {name: [row[name] for row in rows] for name in names}
        return pa.table(columns, schema=schema)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the flat rows as Parquet, complete or not at all."""
        import pyarrow.parquet as pq

        target = Path(path)
        with replacing(target) as scratch:
            pq.write_table(self.to_arrow(), scratch, compression="zstd")

    def to_pandas(self) -> pandas.DataFrame:
        """The flat rows as a data frame (needs pandas)."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_document(self) -> dict[str, Any]:
        """The JSON document: what ``from_document`` reads back to an equal value."""
        document: dict[str, Any] = _ADAPTER.dump_python(self, by_alias=True)
        if self.sensitivity is None:
            del document["sensitivity"]
        for run in document["runs"]:
            for name in ("sample", "epochs", "usage", "seeds"):
                if run[name] is None:
                    del run[name]
        return document

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document, complete or not at all: to a temporary name, then renamed."""
        write_text(path, json.dumps(self.to_document(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a document; ``ResultsError`` names the file, the place in it and the remedy."""
        source = Path(path)
        if source.is_dir():
            source = source / "results.json"
        if is_special(source):  # it may have no end
            raise ResultsError(str(source), "is not a regular file")
        try:
            text = source.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise ResultsError(str(source), "no such file") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ResultsError(str(source), f"cannot be read ({error})") from error
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            place = f"{source}, line {error.lineno}, column {error.colno}"
            raise ResultsError(place, f"not JSON ({error.msg})") from error
        except (ValueError, RecursionError) as error:  # a number or a nesting without end
            raise ResultsError(str(source), f"cannot be read ({error})") from error
        return cls.from_document(document, str(source))

    @classmethod
    def from_document(cls, document: object, source: str = "results") -> Results:
        """Check a document and take it over. ``source`` names it in errors."""
        try:
            results = _ADAPTER.validate_python(document)
        except ValidationError as error:
            raise ResultsError.of(error, source) from error
        if not results.runs:
            raise ResultsError(f"{source}, runs", "there is no run in it")
        seen: set[tuple[object, ...]] = set()
        for index, run in enumerate(results.runs):
            key = (run.trace, run.design, run.machine, run.copies, run.variant_label)
            if key in seen:
                raise ResultsError(
                    f"{source}, runs[{index}]",
                    f"a second run of {run.design} on {run.trace} with the same variant",
                    "remove one of them, or give each its own variant",
                )
            seen.add(key)
        return results


_ADAPTER = TypeAdapter(Results)
_CAUSE_FIELDS = tuple(f.name for f in fields(Cause))
