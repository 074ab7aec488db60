"""What is derived from results: speed-ups, shares, reductions and their means.

Each measure is one small function of runs. Nothing is ever filled in: where an input is absent
the measure is ``None``. Definitions follow ESD (HPCA'23) Sec. IV; where the paper leaves one
open, the docstring says ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sardonyx.runs.results import Run
from sardonyx.runs.stores import designs

Mean = Literal["arithmetic", "geometric"]
Aspect = Literal["counts", "time", "energy", "space"]
#: A measure of one run, and one of a run relative to another.
One: TypeAlias = Callable[[Run], float | None]
Two: TypeAlias = Callable[[Run, Run], float | None]

BASELINE = "baseline"
#: The aspects that a † is for: counts and sizes depend only on the order of requests.
HANGING: tuple[Aspect, ...] = ("time", "energy")
LINE_BYTES = 64


def divide(numerator: float | None, denominator: float | None) -> float | None:
    """The quotient, or ``None`` where either is missing or the denominator is zero."""
    if numerator is None or denominator is None or denominator == 0:
        return None
    return numerator / denominator


def of_known(of: Callable[..., float | None], *values: float | None) -> float | None:
    """``of`` the values, or ``None`` where one is missing."""
    return None if None in values else of(*values)


def arithmetic_mean(values: Iterable[float | None]) -> float | None:
    """Over the values that exist; ``None`` where none does."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Over the values that exist; ``None`` where none does or one is not positive."""
    known = [value for value in values if value is not None]
    if not known or min(known) <= 0:
        return None
    return math.exp(math.fsum(math.log(value) for value in known) / len(known))


def mean(values: Iterable[float | None], kind: Mean) -> float | None:
    return arithmetic_mean(values) if kind == "arithmetic" else geometric_mean(values)


# ---- one run


def write_reduction(run: Run) -> float | None:
    """Share of write requests whose data never went to the medium (ESD Fig. 11)."""
    return run.metric("write_reduction")


def cause_share(run: Run, cause: str) -> float | None:
    """Share of the summed write latency booked under one cause (ESD Fig. 17); they add up to 1."""
    total = write_latency_total(run)
    if total is None:
        return None
    booked = run.causes.get(cause)
    return divide(booked.write_latency_ns if booked else 0.0, total)


def write_latency_total(run: Run) -> float | None:
    """Summed latency of all writes, from the causes."""
    known = [c.write_latency_ns for c in run.causes.values() if c.write_latency_ns is not None]
    return math.fsum(known) if known else None


def share_of_writes(run: Run, metric: str) -> float | None:
    return divide(run.metric(metric), run.metric("writes"))


# ---- one run beside another


def ratio_of(metric: str) -> Two:
    """A metric of a run over that of the other."""
    return lambda run, over: divide(run.metric(metric), over.metric(metric))


def gain_of(metric: str) -> Two:
    """A metric of the other run over that of this one: how many times better less of it is."""
    return lambda run, over: divide(over.metric(metric), run.metric(metric))


def saved(ratio: Two) -> Two:
    """What a ratio leaves of the other run's."""
    return lambda run, over: of_known(lambda value: 1 - value, ratio(run, over))


write_speedup = gain_of("mean_write_latency_ns")
read_speedup = gain_of("mean_read_latency_ns")
ipc_ratio = ratio_of("ipc")
energy_ratio = ratio_of("energy_nj")
energy_reduction = saved(energy_ratio)
#: The reduction of every write to the medium, with metadata and counters.
medium_write_reduction = saved(ratio_of("medium_writes"))
#: Tables with an entry for every line, as ESD and DeWrite count them (Sec. IV-G).
metadata_ratio = ratio_of("metadata_bytes")
#: The ratio of the entries in use only: rivals have fewer if much is duplicated.
metadata_in_use_ratio = ratio_of("metadata_bytes_in_use")


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of merit of a run beside the baseline's, with how it is written and averaged.

    ``base`` is the metric that the baseline's own row shows, in ``base_unit``.
    """

    key: str
    title: str
    meaning: str
    of: Two
    unit: Literal["x", "%", "ns", "GB/s"] = "x"
    mean: Mean = "geometric"
    aspect: Aspect = "time"
    #: ``None`` if neither is better.
    higher_is_better: bool | None = True
    base: str = ""
    base_unit: Literal["", "ns", "nj", "number", "GB/s"] = "ns"


_MEASURES = (
    Measure(
        "write_reduction",
        "Writes saved",
        "share of the program's writes that stored no line",
        lambda run, _: write_reduction(run),
        "%",
        "arithmetic",
        "counts",
    ),
    Measure(
        "medium_write_ratio",
        "Medium writes",
        "all writes of the design to its medium, counters and tables too, over "
        "those of the baseline",
        ratio_of("medium_writes"),
        aspect="counts",
        higher_is_better=False,
        base="medium_writes",
        base_unit="number",
    ),
    Measure(
        "write_speedup",
        "Write speed-up",
        "mean write latency of the baseline over that of the design",
        write_speedup,
        base="mean_write_latency_ns",
    ),
    Measure(
        "read_speedup",
        "Read speed-up",
        "mean read latency of the baseline over that of the design",
        read_speedup,
        base="mean_read_latency_ns",
    ),
    Measure(
        "ipc_ratio",
        "IPC",
        "instructions per cycle of the design over those of the baseline",
        ipc_ratio,
        base="ipc",
        base_unit="",
    ),
    Measure(
        "p99_write",
        "p99 write latency",
        "the time within which 99 of 100 writes of the design are done; not a ratio",
        lambda run, _: run.metric("p99_write_latency_ns"),
        "ns",
        higher_is_better=False,
        base="p99_write_latency_ns",
    ),
    Measure(
        "energy_ratio",
        "Energy",
        "energy of the design over that of the baseline",
        energy_ratio,
        aspect="energy",
        higher_is_better=False,
        base="energy_nj",
        base_unit="nj",
    ),
    Measure(
        "bandwidth",
        "Bandwidth",
        "what the design's medium has read and written in a second, counters and tables too; not "
        "a ratio",
        lambda run, _: run.metric("medium_gb_per_s"),
        "GB/s",
        higher_is_better=None,
        base="medium_gb_per_s",
        base_unit="GB/s",
    ),
)
MEASURES = {measure.key: measure for measure in _MEASURES}


def written(value: float | None, unit: str) -> str:
    """A value for people: three significant figures, its unit, a dash where there is none."""
    if value is None:
        return "–"
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "x":
        return f"{value:.2f}×" if abs(value) < 100 else f"{value:.0f}×"
    if unit == "GB/s":
        return f"{_three_figures(value)} GB/s"
    if unit == "ns":
        return _scaled(value, ((1e6, "ms"), (1e3, "µs"), (1, "ns")))
    if unit == "nj":
        return _scaled(value, ((1e9, "J"), (1e6, "mJ"), (1e3, "µJ"), (1, "nJ")))
    if unit == "number":
        sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
        return _scaled(value, sizes) if abs(value) >= sizes[-1][0] else f"{value:.0f}"
    return plain(value)


def _scaled(value: float, sizes: Sequence[tuple[float, str]]) -> str:
    rounded = abs(float(f"{value:.3g}"))  # 999.9 ns is 1.00 µs
    size, name = next((each for each in sizes if rounded >= each[0]), sizes[-1])
    return f"{_three_figures(value / size)} {name}"


def _three_figures(value: float) -> str:
    small = abs(float(f"{value:.3g}")) < 1000
    return f"{value:#.3g}".rstrip(".") if small else f"{value:,.0f}"


def plain(value: float) -> str:
    """A bare number: whole numbers with thousands separated, others to four significant figures."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"


def assumed_by(runs: Iterable[Run], aspect: Aspect) -> list[str]:
    """Assumed parameters on which figures of this aspect rest.

    Energy parameters (``_nj``, ``_fj``, ``_w``, and which rows a CAM activates) decide no time and
    no other count; all others may decide either, since the time of one request decides the order
    of the next. Space is decided by the designs' tables alone. Endurance decides lifetimes only, of
    which no figure here speaks. Copies set the number of cores themselves.
    """
    names = {name for run in runs for name in run.assumed if name != "cores" or run.copies == 1}
    names.discard("medium.endurance")
    every = [each for design in designs().values() for each in design.assumed]
    names -= {each.parameter for each in every if each.bears_on == "life"}
    if aspect != "energy":
        names = {name for name in names if not name.endswith(_ENERGY)}
        names -= {each.parameter for each in every if each.bears_on == "energy"}
    if aspect == "space":
        names = {name for name in names if not name.startswith(_NOT_SPACE)}
    return sorted(names)


_ENERGY = ("_nj", "_fj", "_w", "_nj_per_byte")
_NOT_SPACE = ("cores", "core.", "engine.", "medium.", "units.")
