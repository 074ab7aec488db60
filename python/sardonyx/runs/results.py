"""What a comparison yields: runs, the facts about their traces, and the machine they ran on.

The document is plain JSON (``results.json``); this module is its typed model
and its flat form for data tools. Units are in the names (``_ns``, ``_nj``,
``_bytes``). Left out: every derived figure (speed-ups, means), which ``measures`` has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, overload

from sardonyx._core import SardonyxError
from sardonyx.answer import Answered
from sardonyx.files import FileError, read_text, write_text
from sardonyx.runs.facts import Number, Trace, number
from sardonyx.runs.sensitivity import Sensitivity
from sardonyx.runs.tabular import Tabular
from sardonyx.values import Checked, MisfitError, expected, read, written

if TYPE_CHECKING:
    import plotly.graph_objects

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
    "near",
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
    def of(cls, error: MisfitError, source: str) -> ResultsError:
        """The first thing that is wrong with the document ``source``."""
        place = error.place[:-1] if error.kind != "value" else error.place
        inside = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        return cls(f"{source}, {inside.lstrip('.')}" if inside else source, error.problem)


def read_json(path: Path) -> Any:
    """What is in a JSON file; ``ResultsError`` says why it cannot be read."""
    try:
        return json.loads(read_text(path))
    except FileError as error:
        raise ResultsError(str(path), "is not a regular file") from error
    except FileNotFoundError as error:
        raise ResultsError(str(path), "no such file") from error
    except json.JSONDecodeError as error:
        place = f"{path}, line {error.lineno}, column {error.colno}"
        raise ResultsError(place, f"not JSON ({error.msg})") from error
    except (OSError, ValueError, RecursionError) as error:  # also a nesting without end
        raise ResultsError(str(path), f"cannot be read ({error})") from error


def _scalar(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise expected("a number, a string or a truth value", value)
    return value


def _count(value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise expected("a whole number of at least 1", value)
    return value


def _maybe_count(value: object) -> object:
    return None if value is None else _count(value)


def _cumulative(points: object) -> object:
    """Pairs of a latency and the fraction of requests within it, both growing."""
    if not isinstance(points, list | tuple):
        raise expected("a list", points)
    taken: list[tuple[float, float]] = []
    for index, pair in enumerate(points):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or None in map(number, pair):
            raise MisfitError("expected a pair [latency_ns, fraction]", index)
        ns, fraction = pair
        if ns < 0 or not 0 <= fraction <= 1 + 1e-9:
            raise MisfitError("a latency below 0 or a fraction outside 0..1", index)
        if taken and (ns < taken[-1][0] or fraction < taken[-1][1]):
            raise MisfitError("the distribution falls; it must be cumulative", index)
        taken.append((float(ns), min(float(fraction), 1.0)))
    return tuple(taken)


#: The converters check all of them, so their types have nothing left to check.
Scalar: TypeAlias = Annotated[bool | int | float | str, Checked(_scalar)]
Distribution: TypeAlias = Annotated[tuple[tuple[float, float], ...], Checked(_cumulative)]


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
class Mixed:
    """A program of a mix: its instructions a cycle there, and alone on the same machine."""

    trace: str
    ipc: Number = None
    alone: Number = None

    @property
    def slowdown(self) -> float | None:
        """How much longer it takes for the others; nothing where cycles are counted."""
        return self.alone / self.ipc if self.alone and self.ipc else None


#: What one line shows of a run.
_SHOWN = ("ipc", "mean_write_latency_ns", "mean_read_latency_ns", "medium_writes", "energy_nj")


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """One trace under one design. ``variant`` holds what differs from the machine; empty for the
    plain run. ``sample`` says what was timed, if that was not all of it; ``seeds`` over which
    figures are means, if there were several.
    """

    trace: str
    design: str
    machine: str = ""
    copies: Annotated[int, Checked(_count)] = 1
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
    #: The programs of a mix.
    mix: tuple[Mixed, ...] | None = None
    #: The threads of the trace, if each copy of it ran on so many cores.
    threads: Annotated[int | None, Checked(_maybe_count)] = None
    #: The baseline's run beside it (``Results``), which is no part of the document.
    beside: Run | None = field(default=None, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        known = ((name, self.metrics.get(name)) for name in _SHOWN)
        shown = [f"{name}={value:.6g}" for name, value in known if value is not None]
        where = [self.trace, f"{self.copies} copies" if self.copies > 1 else "", self.variant_label]
        return f"<Run of {self.design} on {', '.join(filter(None, where))}: {', '.join(shown)}>"

    def __getattr__(self, name: str) -> Any:
        """A metric: ``run.ipc``."""
        if name.startswith("_") or name == "metrics" or name not in self.metrics:
            raise AttributeError(self._lacks(name))
        return self.metrics[name]

    def __getitem__(self, name: str) -> Number:
        """A metric, or a measure beside the baseline: ``run["ipc"]``, ``run["write_speedup"]``."""
        figures = {**self.ratios, **self.metrics}
        if name not in figures:
            raise KeyError(self._lacks(name))
        return figures[name]

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.metrics})

    def _lacks(self, name: str) -> str:
        known = [*self.metrics, *self.ratios]
        near = [each for each in known if name in each][:3] or get_close_matches(name, known)
        meant = f"did you mean {' or '.join(near)}?" if near else "run.metrics has all"
        return f"{self.design} on {self.trace} has no {name}; {meant}"

    @property
    def ratios(self) -> dict[str, float | None]:
        """What the summary shows of it beside the baseline on the same trace, by the keys of
        ``runs.measures``; empty where there is no baseline.
        """
        from sardonyx.runs.measures import MEASURES

        base = self.beside
        return {} if base is None else {key: each.of(self, base) for key, each in MEASURES.items()}

    @property
    def cores(self) -> int:
        """The cores that ran."""
        return self.copies * (self.threads or 1)

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
    value: Any = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    source: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    assumed: tuple[Assumption, ...] = ()


@dataclass(frozen=True, repr=False)
class Results(Tabular, Answered):
    """Everything that a comparison yielded."""

    #: The command that makes them.
    command: ClassVar[str] = "compare"  # type: ignore[misc]
    #: The version of the program.
    sardonyx: str
    machine: Machine
    traces: tuple[Trace, ...] = ()
    runs: tuple[Run, ...] = field(kw_only=True)
    #: The conclusions that depend on assumed keys, if the user asks for that.
    sensitivity: Sensitivity | None = field(default=None, kw_only=True)
    #: Where they are from (``runs.origin``); it is no part of the document.
    origin: Mapping[str, Any] = field(default_factory=dict, kw_only=True, compare=False)
    #: What was written beside them, a line each.
    files: list[str] = field(default_factory=list, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        from sardonyx.runs.measures import BASELINE

        def told(run: Run) -> tuple[object, ...]:
            return run.trace, run.machine, run.copies, run.variant_label

        bases = {told(run): run for run in self.runs if run.design == BASELINE}
        plain = {told(run)[:3]: run for run in bases.values() if not run.variant}
        for run in self.runs:
            if base := bases.get(told(run)) or plain.get(told(run)[:3]):
                object.__setattr__(run, "beside", base)  # a part of the results keeps what it had

    def __repr__(self) -> str:
        traces = ", ".join(dict.fromkeys(run.trace for run in self.runs))
        designs = ", ".join(dict.fromkeys(run.design for run in self.runs))
        number = f"{len(self.runs)} {'run' if len(self.runs) == 1 else 'runs'}"
        return f"<Results on {self.machine.name}: {number}; traces {traces}; designs {designs}>"

    def _repr_html_(self) -> str:
        """The table of designs relative to the baseline, for notebooks."""
        from sardonyx.runs.in_html import table

        return table(self)

    @property
    def designs(self) -> list[str]:
        """Designs that have a plain run, in order of first appearance; ``baseline`` first."""
        seen = dict.fromkeys(run.design for run in self.runs if not run.variant)
        return sorted(seen, key=lambda design: design != "baseline")

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    @overload
    def __getitem__(self, key: int | tuple[str, str]) -> Run: ...
    @overload
    def __getitem__(self, key: slice) -> Results: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | slice | str | tuple[str, str]) -> Any:
        """A run by its number, its trace and design (``results["redis", "esd"]``), or its design if
        there is one trace; the results of a trace, or of a slice.
        """
        if isinstance(key, int):
            return self.runs[key]
        if isinstance(key, slice):
            return replace(self, runs=self.runs[key])
        words = (key,) if isinstance(key, str) else key
        plain = [run for run in self.runs if not run.variant]
        found = [run for run in plain if words in ((run.design,), (run.trace, run.design))]
        if len(found) == 1:
            return found[0]
        traces = list(dict.fromkeys(run.trace for run in plain))
        if found:
            on = ", ".join(traces)
            raise KeyError(f"{key}: on {on}; give a trace too: results[TRACE, {key!r}]")
        if key in traces:
            return replace(self, runs=tuple(run for run in self.runs if run.trace == key))
        known = f"traces {', '.join(traces)}; designs {', '.join(self.designs)}"
        raise KeyError(f"{key}: no run of it; {known}")

    def best(self, figure: str = "ipc", trace: str | None = None) -> Run:
        """The plain run whose metric or measure is best, of all or of those on a trace."""
        from sardonyx.runs.measures import MEASURES
        from sardonyx.runs.metrics import FIGURES

        if figure in MEASURES:
            more = MEASURES[figure].higher_is_better
        else:
            better = FIGURES[figure].better if figure in FIGURES else ""
            more = {"more": True, "less": False}.get(better)
        if more is None:
            raise SardonyxError(
                f"{figure}: neither more nor less of it is better, or no run has it; "
                "take max(results, key=lambda run: run[NAME])"
            )
        of = [run for run in self.runs if not run.variant and trace in (None, run.trace)]
        known = [run for run in of if {**run.ratios, **run.metrics}.get(figure) is not None]
        if not known:
            raise SardonyxError(f"{figure}: no run has it{f' on {trace}' if trace else ''}")
        return max(known, key=lambda run: (run[figure] or 0) * (1 if more else -1))

    def plot(self, figure: str = "write-speedup") -> plotly.graph_objects.Figure:
        """A figure of the report, as Plotly draws it; an error names those that there are."""
        from sardonyx.notebook import plot

        return plot(self, figure)

    def to_document(self) -> dict[str, Any]:
        """The JSON document: what ``from_document`` reads back to an equal value."""
        document: dict[str, Any] = written(self)
        del document["origin"], document["files"]
        if self.sensitivity is None:
            del document["sensitivity"]
        for run in document["runs"]:
            for name in ("sample", "epochs", "usage", "seeds", "mix", "threads"):
                if run[name] is None:
                    del run[name]
        return document

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write them, complete or not at all: into a file named .json the document, else into a
        folder all that ``compare`` leaves, and give the report's path.
        """
        place = Path(path)
        if place.suffix != ".json":
            kept: Path = self._having("save").save(self, place)
            return kept
        write_text(place, json.dumps(self.to_document(), indent=1, allow_nan=False) + "\n")
        return place

    def as_json(self) -> dict[str, Any]:
        """The document of ``--json``: that of ``to_document``, and the answers in words."""
        said: dict[str, Any] = self._having("said").said(self)
        return self.to_document() | said

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a document; ``ResultsError`` names the file, the place in it and the remedy."""
        source = Path(path)
        if source.is_dir():
            source = source / "results.json"
        return cls.from_document(read_json(source), str(source))

    @classmethod
    def from_document(cls, document: object, source: str = "results") -> Results:
        """Check a document and take it over. ``source`` names it in errors."""
        if isinstance(document, dict):  # they follow from the runs
            document = {key: value for key, value in document.items() if key != "answers"}
        try:
            results = read(cls, document)
        except MisfitError as error:
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
            columns = run.epochs.columns if run.epochs else {}
            if len({len(values) for values in columns.values()}) > 1:
                raise ResultsError(
                    f"{source}, runs[{index}].epochs",
                    "its lists have several lengths",
                    "compare again: each has a value for every epoch",
                )
        return results
