"""What a comparison yields: runs, the facts about their traces, and the machine they ran on.

The document is plain JSON (``results.json``); this module is its typed model, its reader with
errors that name the place and the remedy, and its flat form for data tools. Units are in the
names (``_ns``, ``_nj``, ``_bytes``). Left out: every derived figure (speed-ups, means). Those
live in ``sardonyx.results_measures``.
"""

from __future__ import annotations

import errno
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas
    import pyarrow

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Scalar: TypeAlias = "bool | int | float | str"

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
    "data",
)

REMEDY = "write it again with `sardonyx compare ... --out DIR`"


class ResultsError(ValueError):
    """A results document that cannot be read: where the fault is, and what to do about it."""

    def __init__(self, place: str, problem: str, remedy: str = REMEDY) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place = place
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Cause:
    """What is booked under one cause in one run, summed over its requests. ``None``: not
    recorded.
    """

    latency_ns: float | None = None
    write_latency_ns: float | None = None
    read_latency_ns: float | None = None
    wait_ns: float | None = None
    energy_nj: float | None = None
    medium_reads: float | None = None
    medium_writes: float | None = None


@dataclass(frozen=True, slots=True)
class Locality:
    """Contents written this many times: how many contents, and how many of all writes they
    account for.
    """

    times: str
    contents: float | None
    contents_share: float | None
    writes: float | None
    writes_share: float | None


@dataclass(frozen=True, slots=True)
class Collisions:
    """Distinct contents of one trace whose fingerprint an earlier content had, the writes that
    meet such a fingerprint, and both relative to those of CRC-32.
    """

    fingerprint: str
    contents: float | None
    writes: float | None
    writes_share: float | None
    contents_to_crc32: float | None
    writes_to_crc32: float | None


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace and the facts counted in it, independent of any design."""

    name: str
    facts: Mapping[str, float | None]
    locality: tuple[Locality, ...] = ()
    collisions: tuple[Collisions, ...] = ()
    other: Mapping[str, Json] = field(default_factory=dict)
    """Whatever else the trace says about itself, such as its provenance; kept as it came."""

    @classmethod
    def of(cls, name: str, info: Mapping[str, Any]) -> Trace:
        """From what ``sardonyx trace info --json`` says."""
        return _read_trace(_Node({"name": name, "info": dict(info)}, name))


@dataclass(frozen=True, slots=True)
class Run:
    """One trace under one design. ``variant`` holds what differs from the machine; empty for the
    plain run.
    """

    trace: str
    design: str
    machine: str
    copies: int
    variant: Mapping[str, Scalar]
    metrics: Mapping[str, float | None]
    causes: Mapping[str, Cause]
    write_latency_cdf: tuple[tuple[float, float], ...] = ()
    read_latency_cdf: tuple[tuple[float, float], ...] = ()
    assumed: tuple[str, ...] = ()

    def metric(self, name: str) -> float | None:
        """The metric, or ``None`` where the run has none of that name."""
        return self.metrics.get(name)

    @property
    def variant_label(self) -> str:
        """``key=value`` pairs in key order; empty for the plain run."""
        return " ".join(f"{key}={self.variant[key]}" for key in sorted(self.variant))


@dataclass(frozen=True, slots=True)
class Assumption:
    """A parameter whose value no source gives."""

    parameter: str
    value: Json
    why: str


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    source: str
    parameters: Mapping[str, Json]
    assumed: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a comparison yielded."""

    version: str
    machine: Machine
    traces: tuple[Trace, ...]
    runs: tuple[Run, ...]

    def trace(self, name: str) -> Trace | None:
        return next((trace for trace in self.traces if trace.name == name), None)

    @property
    def designs(self) -> list[str]:
        """Designs that have a plain run, in order of first appearance; ``baseline`` first."""
        seen = dict.fromkeys(run.design for run in self.runs if not run.variant)
        return sorted(seen, key=lambda design: design != "baseline")

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a run: identity, every metric, every cause as
        ``cause.<cause>.<quantity>``.
        """
        metrics = sorted({name for run in self.runs for name in run.metrics})
        causes = _in_order({name for run in self.runs for name in run.causes})
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
        with _replacing(target) as scratch:
            pq.write_table(self.to_arrow(), scratch, compression="zstd")

    def to_pandas(self) -> pandas.DataFrame:
        """The flat rows as a data frame (needs pandas)."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_document(self) -> dict[str, Any]:
        """The JSON document: what ``from_document`` reads back to an equal value."""
        return {
            "sardonyx": self.version,
            "machine": {
                "name": self.machine.name,
                "source": self.machine.source,
                "parameters": dict(self.machine.parameters),
                "assumed": [
                    {"parameter": a.parameter, "value": a.value, "why": a.why}
                    for a in self.machine.assumed
                ],
            },
            "traces": [_trace_document(trace) for trace in self.traces],
            "runs": [_run_document(run) for run in self.runs],
        }

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
        root = _Node(document, source)
        machine = root["machine"]
        results = cls(
            version=root["sardonyx"].text(),
            machine=Machine(
                name=machine["name"].text(),
                source=machine.get("source").text(""),
                parameters=machine.get("parameters").mapping(),
                assumed=tuple(
                    Assumption(a["parameter"].text(), a.get("value").json(), a.get("why").text(""))
                    for a in machine.get("assumed").items()
                ),
            ),
            traces=tuple(_read_trace(node) for node in root.get("traces").items()),
            runs=tuple(_read_run(node) for node in root["runs"].items()),
        )
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


def as_results(value: Results | Mapping[str, Any] | str | os.PathLike[str]) -> Results:
    """Take results in any shape in which callers hold them: the model, the document, or a path."""
    if isinstance(value, Results):
        return value
    if isinstance(value, Mapping):
        return Results.from_document(value)
    return Results.load(value)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, complete or not at all; a device or a pipe just gets the text."""
    if is_special(path):
        Path(path).write_text(text, encoding="utf-8")
        return
    with _replacing(Path(path)) as scratch:
        scratch.write_text(text, encoding="utf-8")


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether this is a device, a pipe or the like: what a file must not take the place of."""
    place = Path(path)
    return place.exists() and not place.is_file() and not place.is_dir()


@contextmanager
def replaced_together(directory: Path) -> Iterator[Path]:
    """A scratch directory in this one; what is in it at the end replaces files of the same names.

    Nothing is replaced on failure, and nobody sees half of what belongs together for long.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sardonyx.", dir=directory) as name:
        scratch = Path(name)
        try:
            yield scratch
        except OSError as error:
            if error.filename is not None and Path(error.filename).parent == scratch:
                error.filename = str(directory / Path(error.filename).name)
            raise
        written = sorted(scratch.iterdir())
        for path in written:
            if (directory / path.name).is_dir():
                raise IsADirectoryError(errno.EISDIR, "Is a directory", str(directory / path.name))
        for path in written:
            path.replace(directory / path.name)


_CAUSE_FIELDS = tuple(f.name for f in fields(Cause))


def _in_order(causes: Iterable[str]) -> list[str]:
    rank = {cause: index for index, cause in enumerate(CAUSES)}
    return sorted(causes, key=lambda cause: (rank.get(cause, len(rank)), cause))


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A scratch name beside the target that replaces it on success and vanishes on failure.

    A link stays one: what it leads to is replaced.
    """
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not the target's own name, which may be as long as a name can be.
    handle, name = tempfile.mkstemp(prefix=".sardonyx.", dir=target.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        umask = os.umask(0)
        os.umask(umask)
        scratch.chmod(0o666 & ~umask)  # mkstemp's 0600 would hide the file from the group
        scratch.replace(target)
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            # The user knows the target, not the scratch name; pyarrow names no file at all.
            raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
        raise


class _Node:
    """A value of the document together with its place, so that every complaint can name it."""

    __slots__ = ("place", "value")

    def __init__(self, value: object, place: str) -> None:
        self.value = value
        self.place = place

    def _fail(self, wanted: str) -> ResultsError:
        shown = json.dumps(self.value, default=str)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        return ResultsError(self.place, f"expected {wanted}, found {shown}")

    def _child(self, key: str) -> str:
        root = "[" not in self.place and "," not in self.place
        return f"{self.place}, {key}" if root else f"{self.place}.{key}"

    def __getitem__(self, key: str) -> _Node:
        if not isinstance(self.value, Mapping):
            raise self._fail("an object")
        if key not in self.value:
            raise ResultsError(self.place, f"`{key}` is missing")
        return _Node(self.value[key], self._child(key))

    def get(self, key: str) -> _Node:
        """The member, or a node that holds ``None`` where it is absent."""
        if not isinstance(self.value, Mapping):
            raise self._fail("an object")
        return _Node(self.value.get(key), self._child(key))

    def text(self, default: str | None = None) -> str:
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, str):
            raise self._fail("a string")
        return self.value

    def number(self) -> float | None:
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._fail("a number or null")
        if not math.isfinite(self.value):
            raise self._fail("a finite number or null")
        return self.value

    def count(self, default: int) -> int:
        if self.value is None:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 1:
            raise self._fail("a whole number of at least 1")
        return self.value

    def scalar(self) -> Scalar:
        if not isinstance(self.value, bool | int | float | str):
            raise self._fail("a number, a string or a truth value")
        return self.value

    def json(self) -> Json:
        value: Any = self.value
        return value  # type: ignore[no-any-return]

    def mapping(self) -> dict[str, Json]:
        return {key: node.json() for key, node in self.members()}

    def members(self) -> list[tuple[str, _Node]]:
        if self.value is None:
            return []
        if not isinstance(self.value, Mapping):
            raise self._fail("an object")
        return [(str(key), _Node(v, self._child(str(key)))) for key, v in self.value.items()]

    def items(self) -> list[_Node]:
        if self.value is None:
            return []
        if isinstance(self.value, str) or not isinstance(self.value, Sequence):
            raise self._fail("a list")
        stem = self.place
        return [_Node(v, f"{stem}[{index}]") for index, v in enumerate(self.value)]


def _read_trace(node: _Node) -> Trace:
    name = node["name"].text()
    info = node.get("info")
    if info.value is None:
        return Trace(name, {})
    facts: dict[str, float | None] = {}
    other: dict[str, Json] = {}
    for key, member in info.members():
        if member.value is None or _is_number(member.value):
            facts[key] = member.number()
        elif key not in ("locality", "collisions"):
            other[key] = member.json()
    return Trace(
        name,
        facts,
        locality=tuple(
            Locality(n["times"].text(), *(n.get(k).number() for k in _LOCALITY_NUMBERS))
            for n in info.get("locality").items()
        ),
        collisions=tuple(
            Collisions(n["fingerprint"].text(), *(n.get(k).number() for k in _COLLISION_NUMBERS))
            for n in info.get("collisions").items()
        ),
        other=other,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LOCALITY_NUMBERS = ("contents", "contents_share", "writes", "writes_share")
_COLLISION_NUMBERS = (
    "contents",
    "writes",
    "writes_share",
    "contents_to_crc32",
    "writes_to_crc32",
)


def _read_run(node: _Node) -> Run:
    return Run(
        trace=node["trace"].text(),
        design=node["design"].text(),
        machine=node.get("machine").text(""),
        copies=node.get("copies").count(1),
        variant={key: n.scalar() for key, n in node.get("variant").members()},
        metrics={key: n.number() for key, n in node["metrics"].members()},
        causes={key: _read_cause(n) for key, n in node.get("causes").members()},
        write_latency_cdf=_read_cdf(node.get("write_latency_cdf")),
        read_latency_cdf=_read_cdf(node.get("read_latency_cdf")),
        assumed=tuple(n.text() for n in node.get("assumed").items()),
    )


def _read_cause(node: _Node) -> Cause:
    return Cause(**{name: node.get(name).number() for name in _CAUSE_FIELDS})


def _read_cdf(node: _Node) -> tuple[tuple[float, float], ...]:
    points: list[tuple[float, float]] = []
    for item in node.items():
        pair = [number for number in (n.number() for n in item.items()) if number is not None]
        if len(pair) != 2:
            raise ResultsError(item.place, "expected a pair [latency_ns, fraction]")
        ns, fraction = pair
        if ns < 0 or not 0 <= fraction <= 1 + 1e-9:
            raise ResultsError(item.place, "a latency below 0 or a fraction outside 0..1")
        if points and (ns < points[-1][0] or fraction < points[-1][1]):
            raise ResultsError(item.place, "the distribution falls; it must be cumulative")
        points.append((ns, min(fraction, 1.0)))
    return tuple(points)


def _trace_document(trace: Trace) -> dict[str, Any]:
    info: dict[str, Any] = dict(trace.facts) | dict(trace.other)
    info["locality"] = [
        {name: getattr(row, name) for name in ("times", *_LOCALITY_NUMBERS)}
        for row in trace.locality
    ]
    info["collisions"] = [
        {name: getattr(row, name) for name in ("fingerprint", *_COLLISION_NUMBERS)}
        for row in trace.collisions
    ]
    return {"name": trace.name, "info": info}


def _run_document(run: Run) -> dict[str, Any]:
    return {
        "trace": run.trace,
        "design": run.design,
        "machine": run.machine,
        "copies": run.copies,
        "variant": dict(run.variant),
        "metrics": dict(run.metrics),
        "causes": {
            cause: {name: getattr(booked, name) for name in _CAUSE_FIELDS}
            for cause, booked in run.causes.items()
        },
        "write_latency_cdf": [list(point) for point in run.write_latency_cdf],
        "read_latency_cdf": [list(point) for point in run.read_latency_cdf],
        "assumed": list(run.assumed),
    }
