"""Jobs: what one simulation is asked, checked before the first one runs, and run into results.

A job is everything that determines its result, as one JSON document that the native module reads
(``crates/native/src/simulate.rs``). Left out: the threads (``scheduler``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

from sardonyx import _core, layers
from sardonyx.questions import Job, ProgramSource, SampleQuestion, Source, TraceSource
from sardonyx.runs import mixes, scheduler, sources
from sardonyx.runs.points import label, results
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import check_known
from sardonyx.runs.written import Written

#: A sample, such as 50x10000+2000.
_SAMPLE = re.compile(r"(\d{1,12})x(\d{1,12})(?:\+(\d{1,12}))?", re.ASCII)

#: A key of the machine and its value, as the command line takes them.
Setting: TypeAlias = tuple[str, str]


def is_key(name: str) -> bool:
    """Whether this names a key of a machine where other settings may stand too."""
    return "." in name or name in ("addresses", "arrivals")


@dataclass(frozen=True, slots=True)
class Settings:
    """What all jobs of a comparison share.

    ``warmup`` requests, or transactions of each core, and ``warmup_share`` of the run warm the
    machine up and are left out of the statistics.
    """

    machine: str = "esd"
    overrides: Sequence[Setting] = ()
    warmup: int = 0
    copies: int = 1
    #: The share of contents that each copy has for itself.
    distinct: float = 0.0
    warmup_share: float = 0.0
    #: The part of each trace that is timed; all of it if ``None``.
    sample: SampleQuestion | None = None
    #: Whether each read is compared with what was written last to its line.
    verify: bool = True
    #: Whether each thread of a recording has a core of its own.
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A run as results name it: ``variant`` is set on top of the comparison's machine.

    ``copies`` overrides the comparison's.
    """

    trace: str
    source: Source
    design: str
    variant: Mapping[str, Scalar] = field(default_factory=dict)
    copies: int | None = None

    def job(self, shared: Settings) -> Job:
        """What is simulated for it."""
        return Job(
            source=self.source,
            design=self.design,
            machine=shared.machine,
            overrides=(*shared.overrides, *texts(self.variant)),
            warmup=shared.warmup,
            warmup_share=shared.warmup_share,
            copies=self.copies or shared.copies,
            distinct=shared.distinct,
            sample=shared.sample,
            threads=shared.threads,
            verify=shared.verify,
        )


def texts(variant: Mapping[str, Scalar]) -> tuple[Setting, ...]:
    """Values as the machine's file would have them."""

    def text(value: Scalar) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return tuple((key, text(value)) for key, value in variant.items())


def parse_warmup(text: str) -> tuple[int, float]:
    """A number of requests and a share of the run: ``20000`` is one, ``50%`` the other."""
    number, percent, rest = text.strip().partition("%")
    if percent and not rest:
        try:
            share = float(number) / 100
        except ValueError:
            share = -1.0
        if 0 <= share < 1:
            return 0, share
    elif number.isascii() and number.isdigit() and int(number) <= 2**63 - 1:
        return int(number), 0.0
    raise _core.SardonyxError(
        f"--warmup {text}: is neither a number of requests nor a share below 100%; for example "
        "--warmup 20000 or --warmup 50%"
    )


def parse_sample(text: str, seed: int = 0) -> SampleQuestion:
    """Windows of a trace: ``50x10000`` are 50 of 10,000 requests each, ``50x10000+2000`` has 2,000
    more before each that are timed and do not count (else a tenth, and 1,000 at least).
    """
    numbers = _SAMPLE.fullmatch(text.strip())
    if numbers is None:
        raise _core.SardonyxError(
            f"--sample {text}: is not WINDOWSxREQUESTS or WINDOWSxREQUESTS+RAMP; for example "
            "--sample 50x10000"
        )
    windows, requests = int(numbers[1]), int(numbers[2])
    ramp = max(1000, requests // 10) if numbers[3] is None else int(numbers[3])
    return SampleQuestion(windows=windows, requests=requests, ramp=ramp, seed=seed)


def check_designs(names: Sequence[str]) -> list[str]:
    """The designs without repetition; an error names the nearest of an unknown one.

    A file of designs in Python stands for those that it registers.
    """
    names = layers.names(names)
    known = [str(design["name"]) for design in json.loads(_core.designs())]
    for name in names:
        if "+" in name or "@" in name:
            _core.guarantee(name)
        else:
            check_known("design", name, known, "--designs: ")
    if not names:
        raise _core.SardonyxError(f"--designs: none given; the designs are {', '.join(known)}")
    return list(dict.fromkeys(names))


def check(points: Sequence[Point], shared: Settings) -> None:
    """An error unless every machine can be had, every source be read, every program fits, and
    every sample can be taken.
    """
    jobs = [point.job(shared) for point in points]
    for overrides in dict.fromkeys(job.overrides for job in jobs):
        _core.machine(shared.machine, list(overrides))
    for source in dict.fromkeys(job.source for job in jobs):
        sources.check(source)
    # The places of a trace's addresses, and its moments, do not depend on the design.
    first = {(job.source, job.overrides, job.copies): job for job in reversed(jobs)}
    for job in jobs:
        if isinstance(job.source, ProgramSource) or job.sample is not None:
            _core.check_job(job.json())
    for job in reversed(first.values()):
        plain = isinstance(job.source, TraceSource) and job.sample is None
        if plain or job.threads:
            _core.check_job(job.json())


@dataclass(frozen=True, slots=True)
class Simulations:
    """Points to run under settings that they share."""

    settings: Settings
    points: Sequence[Point]

    def check(self) -> None:
        check(self.points, self.settings)

    def run(self, workers: int | None = None, watch: Watch | None = None) -> Results:
        return run(self.points, self.settings, workers, watch)


def run(
    points: Sequence[Point],
    shared: Settings,
    workers: int | None = None,
    watch: Watch | None = None,
    written: Written | None = None,
) -> Results:
    """Run the points, in their order in the results; those that come to the same run share it.

    Plain points come before their variants, for what is ``written`` is of these.
    """
    machine = _machine(shared.machine, shared.overrides)

    @cache
    def effective(overrides: tuple[Setting, ...]) -> str:
        whole = _machine(shared.machine, overrides)
        return json.dumps([whole["parameters"], whole["assumed"]], sort_keys=True)

    # A sweep passes the machine's own setting once, and that point is the plain run.
    keys: list[object] = []
    asked: dict[object, tuple[Point, Job]] = {}
    for point in points:
        job = point.job(shared)
        keys.append((job.source, job.design, job.copies, effective(job.overrides)))
        asked.setdefault(keys[-1], (point, job))
    traces = {point.trace: point.source for point in points}
    facts = [
        Task(f"{name}, facts", partial(_core.trace_info, sources.whole(source).json()))
        for name, source in traces.items()
    ]
    with (written or Written()).files(points) as besides:
        alone = mixes.alone(job for _, job in asked.values())
        runs = [
            Task(label(point), partial(_core.simulate, job.replace(**besides(point)).json()))
            for point, job in asked.values()
        ]
        answers = scheduler.run([*runs, *facts, *alone.values()], workers, watch)
    beside = dict(zip(alone, answers[len(runs) + len(facts) :], strict=True))
    simulated = {
        key: mixes.judged(job, answer, beside)
        for (key, (_, job)), answer in zip(asked.items(), answers, strict=False)
    }
    known = [
        {"name": name, "info": json.loads(answer)}
        for name, answer in zip(traces, answers[len(asked) :], strict=False)
    ]
    return results(machine, known, points, [json.loads(simulated[key]) for key in keys])


def _machine(name: str, overrides: Sequence[Setting]) -> dict[str, Any]:
    machine: dict[str, Any] = json.loads(_core.machine(name, list(overrides)))
    return machine
