"""Jobs: what one simulation is asked, checked before the first one runs, and run into results.

A job is everything that determines its result, as one JSON document that the native module reads
(``crates/native/src/simulate.rs``). Left out: the threads (``scheduler``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from sardonyx import _core, layers
from sardonyx.questions import Job, SampleQuestion, Source
from sardonyx.runs import mixes, scheduler
from sardonyx.runs.points import results
from sardonyx.runs.recordings import known
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.written import Written
from sardonyx.values import read

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


def check_designs(names: Sequence[str]) -> list[str]:
    """The designs without repetition; an error names the nearest of an unknown one.

    A file of designs in Python stands for those that it registers.
    """
    return _core.check_designs(layers.names(names))


class Ran(NamedTuple):
    """A run of a plan as results name it, and the number of its job."""

    trace: str
    design: str
    variant: Mapping[str, Scalar]
    job: int


class Plan:
    """What a comparison comes to, as the native module has planned it."""

    def __init__(self, text: str) -> None:
        document = json.loads(text)
        self.machine: dict[str, Any] = document["machine"]
        self.points = [Ran(**each) for each in document["points"]]
        #: The runs that the points share, and those of each trace of a mix alone.
        self.jobs: list[dict[str, Any]] = document["jobs"]
        self.alone: list[dict[str, Any]] = document["alone"]
        self.traces: list[dict[str, Any]] = document["traces"]
        self.notes: list[str] = document["notes"]

    def sources(self) -> dict[str, Source]:
        """The source of each trace."""
        kinds: Any = Source
        return {each["name"]: read(kinds, each["source"]) for each in self.traces}

    def settings(self) -> Settings:
        """What its jobs share, if nothing is varied."""
        job = dict(self.jobs[0]["job"])
        job["overrides"] = tuple(tuple(pair) for pair in job["overrides"])
        job["sample"] = job["sample"] and SampleQuestion(**job["sample"])
        return Settings(**{each.name: job[each.name] for each in fields(Settings)})


def _planned(points: Sequence[Point], shared: Settings, *, check: bool) -> Plan:
    document = {
        "machine": shared.machine,
        "overrides": shared.overrides,
        "points": [
            {
                "trace": point.trace,
                "variant": dict(point.variant),
                "job": point.job(shared).document(),
            }
            for point in points
        ],
    }
    return Plan(_core.plan(json.dumps(document), known(), check))


def check(points: Sequence[Point], shared: Settings) -> None:
    """An error unless every machine can be had, every source be read, every program fits, and
    every sample can be taken.
    """
    _planned(points, shared, check=True)


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
) -> Results:
    """Run the points, in their order in the results; those that come to the same run share it."""
    return carry_out(_planned(points, shared, check=False), workers, watch)


def carry_out(
    plan: Plan,
    workers: int | None = None,
    watch: Watch | None = None,
    written: Written | None = None,
) -> Results:
    """Run a plan. Plain points come before their variants, for what is ``written`` is of these."""
    first = {point.job: point for point in reversed(plan.points)}
    files: AbstractContextManager[Any] = nullcontext(lambda _: {})
    if written is not None:
        files = written.files(plan.points)
    facts = [
        Task(f"{each['name']}, facts", partial(_core.trace_info, json.dumps(each["whole"])))
        for each in plan.traces
    ]
    alone = [
        Task(each["label"], partial(_core.simulate, json.dumps(each["job"]))) for each in plan.alone
    ]
    with files as besides:
        runs = [
            Task(
                planned["label"],
                partial(_core.simulate, json.dumps(planned["job"] | besides(first[number]))),
            )
            for number, planned in enumerate(plan.jobs)
        ]
        texts = scheduler.run([*runs, *facts, *alone], workers, watch)
    answers = [json.loads(text) for text in texts]
    ran, rest = answers[: len(runs)], answers[len(runs) :]
    beside = rest[len(facts) :]
    for answer, planned in zip(ran, plan.jobs, strict=True):
        if planned["alone"]:
            names = [plan.alone[number]["trace"] for number in planned["alone"]]
            mixes.judge(answer, names, [beside[number] for number in planned["alone"]])
    told = [
        {"name": each["name"], "info": info} for each, info in zip(plan.traces, rest, strict=False)
    ]
    return results(plan.machine, told, plan.points, [ran[point.job] for point in plan.points])
