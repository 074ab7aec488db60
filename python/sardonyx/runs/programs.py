"""Runs of persistent programs, found by what distinguishes them, and what is measured in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from sardonyx.runs.measures import Two, divide, gain_of, of_known, ratio_of, saved
from sardonyx.runs.results import Results, Run, Scalar
from sardonyx.runs.spread import Estimate, beside, mean_beside

KB, MB = 1 << 10, 1 << 20
#: The settings that SCA's figures vary, and Table 2's values.
COUNTER_CACHE = "encryption.counter_cache.bytes"
LATENCIES = {"read": ("medium.timing.tRCD_ns", 48.0), "write": ("medium.timing.tWR_ns", 300.0)}
#: The writes to the medium, in two units.
BYTES, ACCESSES = "medium_write_bytes", "medium_writes"


class Programs:
    """The runs of a results document by what distinguishes them: program, sizes, design, cores and
    settings. What a question leaves open is as in the program's plain runs.
    """

    def __init__(self, results: Results) -> None:
        sizes: dict[str, tuple[str, float, float]] = {}
        self.plain: dict[str, tuple[float, float]] = {}
        for trace in results.traces:
            program, facts = trace.program, trace.facts
            size, footprint = (facts.get(f"{of}_bytes") for of in ("transaction", "footprint"))
            if program is None or size is None or footprint is None:
                continue
            sizes[trace.name] = program, size, footprint
            if trace.name == program:
                self.plain[program] = size, footprint
        self._runs: dict[tuple[object, ...], Run] = {}
        for run in results.runs:
            if run.trace in sizes:
                key = (*sizes[run.trace], run.design, run.copies, run.variant_label)
                self._runs[key] = run
        self.names = list(self.plain)
        self.cores = sorted({run.copies for run in self._runs.values()})
        self._settings: Mapping[str, Scalar] = {}
        self.parameters = results.machine.parameters

    def under(
        self,
        settings: Mapping[str, Scalar],
        names: Sequence[str],
        footprint: int,
        cores: Sequence[int] | None = None,
    ) -> Programs:
        """The same runs, where ``settings`` and ``footprint`` count as plain, of a few programs."""
        view = copy(self)
        view._settings = settings
        view.plain = {name: (self.plain[name][0], footprint) for name in names}
        view.names = list(view.plain)
        view.cores = self.cores if cores is None else sorted(cores)
        return view

    def setting(self, settings: Mapping[str, Scalar]) -> dict[str, int]:
        """Programs that were run under just these settings, and the footprint."""
        return {
            str(key[0]): int(str(key[2]))
            for key, run in self._runs.items()
            if dict(run.variant) == dict(settings)
        }

    @property
    def designs(self) -> list[str]:
        """Designs of plain runs, in the order of the runs."""
        plain = {(program, *sizes) for program, sizes in self.plain.items()}
        return list(dict.fromkeys(str(key[3]) for key in self._runs if key[:3] in plain))

    def runs(self) -> list[Run]:
        return list(self._runs.values())

    def sizes(self) -> list[int]:
        """Transaction sizes that were run."""
        return sorted({int(str(key[1])) for key in self._runs})

    def footprints(self, setting: str) -> list[int]:
        """Footprints at which ``setting`` was varied in every program."""
        return sorted({int(str(key[2])) for key, _ in self._varied(setting)})

    def settings(self, name: str) -> list[float]:
        """Values to which runs of every program set ``name`` alone."""
        return sorted({float(run.variant[name]) for _, run in self._varied(name)})

    def _varied(self, setting: str) -> list[tuple[tuple[object, ...], Run]]:
        """Runs that differ from the plain ones only in ``setting``, if every program has one."""
        varied = [(key, run) for key, run in self._runs.items() if set(run.variant) == {setting}]
        of: dict[tuple[object, ...], set[object]] = {}
        for key, _ in varied:
            of.setdefault(key[1:], set()).add(key[0])
        return [(key, run) for key, run in varied if len(of[key[1:]]) == len(self.plain)]

    def _run(
        self,
        program: str,
        design: str,
        cores: int = 1,
        transaction_size: int | None = None,
        footprint: int | None = None,
        variant: Mapping[str, Scalar] | None = None,
    ) -> Run | None:
        size, bytes_ = self.plain[program]
        variant = {**self._settings, **(variant or {})}
        label = " ".join(f"{key}={variant[key]}" for key in sorted(variant))
        key = (program, transaction_size or size, footprint or bytes_, design, cores, label)
        return self._runs.get(key)

    def each(self, of: Two, a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, float | None]:
        """``of`` two runs of each program, which ``a`` and ``b`` select."""
        return {name: found.value for name, found in self.estimates(of, a, b).items()}

    def estimates(self, of: Two, a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Estimate]:
        """The same with the intervals of means over seeds."""
        found: dict[str, Estimate] = {}
        for program in self.names:
            first, second = self._run(program, **a), self._run(program, **b)
            if first is None or second is None:
                found[program] = Estimate(None)
            else:
                found[program] = beside(of, first, second)
        return found

    def estimated_mean(self, of: Two, a: Mapping[str, Any], b: Mapping[str, Any]) -> Estimate:
        """The arithmetic mean of ``of`` over programs, of seeds that of each seed's."""
        pairs = [(self._run(name, **a), self._run(name, **b)) for name in self.names]
        return mean_beside(of, pairs, "arithmetic")


#: The time of a transaction relative to another run's.
runtime_ratio = gain_of("transactions_per_second")
#: The transactions a second that a run lacks relative to another.
loss = saved(ratio_of("transactions_per_second"))


def overhead(run: Run, over: Run) -> float | None:
    """Time a transaction of ``run`` beyond that of ``over``, relative to it."""
    return of_known(lambda ratio: ratio - 1, runtime_ratio(run, over))


def speedup(run: Run, over: Run) -> float | None:
    """Transactions a second of ``run`` beyond those of ``over``, relative to them."""
    return overhead(over, run)


def per_transaction(run: Run, metric: str) -> float | None:
    return divide(run.metric(metric), run.metric("transactions"))


def traffic_ratio(metric: str) -> Two:
    """A metric a transaction of a run over that of another."""
    return lambda run, over: divide(per_transaction(run, metric), per_transaction(over, metric))


def miss_rate(run: Run) -> float | None:
    """Look-ups in the counter cache that missed."""
    return of_known(lambda hits: 1 - hits, run.metric("counter_cache_hit_rate"))


def counter_accesses(run: Run, kind: str) -> float | None:
    """Counter lines that were read from the medium or written to it: ``reads`` or ``writes``."""
    counters = run.causes.get("counter")
    return 0.0 if counters is None else float(getattr(counters, f"medium_{kind}"))


def l1_latency(run: Run, parameters: Mapping[str, Any]) -> float | None:
    """Mean nanoseconds of a load or store, from asking L1 to the line, waits for a memory that
    takes nothing included. A hit in any cache counts as one in L1, which no design changes.
    """
    names = ("reads", "cpu_cache_miss_rate", "mean_read_latency_ns", "core_memory_wait_ns")
    reads, missed, latency, wait = (run.metric(name) for name in names)
    if not reads or not missed or latency is None or wait is None:
        return None
    levels = [float(parameters[f"caches.{level}.latency_ns"]) for level in ("l1", "l2", "llc")]
    accesses = reads / missed
    return levels[0] + missed * (sum(levels[1:]) + latency) + wait * run.copies / accesses


def transactions_per_wall_second(run: Run) -> float | None:
    """How many transactions the simulator itself gets through in a second of real time."""
    requests, speed = run.metric("requests"), run.metric("requests_per_second")
    seconds = divide(requests, speed)
    return divide(run.metric("transactions"), seconds)


def written_size(size: int) -> str:
    """A size as people say it."""
    for unit, name in ((MB, "MB"), (KB, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"
