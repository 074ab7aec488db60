"""One comparison as a list of independent jobs: named, checked before the first, run on threads.

A job is a trace under a design with settings of its own; the native call releases the
interpreter's lock, so threads are enough. Left out: how progress looks (``progress``) and what is
made of the runs (``results``).
"""

from __future__ import annotations

import difflib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from threading import enumerate as enumerate_threads
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.results import Results, Scalar

SYNTH = "synth:"
PROGRAM = "program:"
#: Seconds between two looks at how far the jobs are.
LOOK_EVERY = 0.1
#: Seconds that a call which was cancelled has to end.
GRACE = 3.0

Overrides: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Settings:
    """What all jobs of a comparison share."""

    machine: str = "esd"
    overrides: Overrides = ()
    limit: int | None = None
    warmup: int = 0
    copies: int = 1
    distinct: bool = False
    program: ProgramSettings = field(default_factory=lambda: ProgramSettings())


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """What the programs among a comparison's sources share; sizes are bytes."""

    transactions: int = 10_000
    transaction_size: int = 64
    footprint: int = 16 << 20
    seed: int = 0

    def source(self, name: str) -> str:
        """The source of the program ``name`` with these settings."""
        numbers = (self.transaction_size, self.footprint, self.transactions, self.seed)
        return ":".join([f"{PROGRAM}{name}", *map(str, numbers)])


@dataclass(eq=False, slots=True)
class Job:
    """One run to be: ``trace`` is its name in results, ``source`` where it is read from.

    ``copies`` overrides the comparison's.
    """

    trace: str
    source: str
    design: str
    variant: Mapping[str, Scalar] = field(default_factory=dict)
    copies: int | None = None
    progress: _core.Progress = field(default_factory=_core.Progress)
    state: str = "waiting"

    @property
    def label(self) -> str:
        """The job in a few words."""
        settings = " ".join(f"{key.split('.', 1)[-1]}={v}" for key, v in self.variant.items())
        return f"{self.trace} {self.design}" + (f" {settings}" if settings else "")


Watch: TypeAlias = Callable[[Sequence[Job]], None]


def parse_settings(pairs: Iterable[str]) -> list[tuple[str, str]]:
    """``key=value`` pairs as the command line takes them."""
    settings = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise _core.SardonyxError(
                f"--set {pair}: not of the form KEY=VALUE; for example --set esd.efit_bytes=65536"
            )
        settings.append((key.strip(), value.strip()))
    return settings


def named(sources: Sequence[str]) -> dict[str, str]:
    """Traces by the shortest name that tells them apart: stem, else file name, else path."""
    if not sources:
        raise _core.SardonyxError("no trace given; name at least one file, or synth:NAME")
    for name_of in (_stem, lambda source: Path(source).name, lambda source: source):
        names = [name_of(source) for source in sources]
        if len(set(names)) == len(names):
            return dict(zip(names, sources, strict=True))
    twice = next(source for source in sources if list(sources).count(source) > 1)
    raise _core.SardonyxError(f"{twice}: given twice; name each trace once")


def _stem(source: str) -> str:
    if source.startswith(PROGRAM):
        return source.split(":")[1]
    return source if source.startswith(SYNTH) else Path(source).stem


def resolved(sources: Sequence[str], program: ProgramSettings) -> list[str]:
    """The sources with names of programs, unless a file has that name, spelt out."""
    known = [str(p["name"]) for p in json.loads(_core.programs())["programs"]]
    return [
        program.source(source) if source in known and not Path(source).exists() else source
        for source in sources
    ]


def check_fits(jobs: Sequence[Job], settings: Settings) -> None:
    """An error unless every program fits its machine."""
    for job in jobs:
        if job.source.startswith(PROGRAM):
            given = [*settings.overrides, *_texts(job.variant)]
            _core.check_program(job.source, settings.machine, given, job.copies or settings.copies)


def check_trace(source: str) -> None:
    """An error unless the trace can be opened and read, or the generator is known."""
    if source.startswith(SYNTH):
        _check_synth(source)
    elif not source.startswith(PROGRAM):
        check_file(source, f", a program, or {SYNTH}NAME to generate one")
    _core.trace_info(source, 1, None)


def check_file(source: str, otherwise: str = "") -> None:
    """An error unless there is such a file; ``otherwise`` ends the remedy."""
    if not source:
        raise _core.SardonyxError(f"the trace's name is empty; give a trace file{otherwise}")
    path = Path(source)
    if path.is_dir():
        raise _core.SardonyxError(f"{source}: is a directory; name the trace files in it")
    if not path.exists():
        raise _core.SardonyxError(f"{source}: there is no such file; give a trace file{otherwise}")


def _check_synth(source: str) -> None:
    name, *numbers = source.removeprefix(SYNTH).split(":")
    known = [str(rung["name"]) for rung in json.loads(_core.ladder())]
    if name not in known:
        raise _core.SardonyxError(f"{source}: {unknown('generator', name, known)}")
    if len(numbers) > 2 or not all(part.isascii() and part.isdigit() for part in numbers):
        raise _core.SardonyxError(
            f"{source}: is not of the form {SYNTH}NAME[:RECORDS[:SEED]]; give whole numbers"
        )


def check_designs(names: Sequence[str]) -> list[str]:
    """The designs without repetition; an error names the nearest of an unknown one."""
    known = [str(design["name"]) for design in json.loads(_core.designs())]
    for name in names:
        if "+" in name:
            _core.guarantee(name)
        elif name not in known:
            raise _core.SardonyxError(f"--designs: {unknown('design', name, known)}")
    if not names:
        raise _core.SardonyxError(f"--designs: none given; the designs are {', '.join(known)}")
    return list(dict.fromkeys(names))


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """What to say of a name that is not known."""
    near = difflib.get_close_matches(name, known, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    return f'there is no {kind} "{name}"; {meant}known: {", ".join(known)}'


def check_machine(settings: Settings, jobs: Sequence[Job]) -> dict[str, Any]:
    """The machine as it will run; every job's own settings are tried on it as well."""
    given = list(settings.overrides)
    machine: dict[str, Any] = json.loads(_core.machine(settings.machine, given))
    for variant in {tuple(sorted(job.variant.items())): job.variant for job in jobs}.values():
        if variant:
            _core.machine(settings.machine, given + _texts(variant))
    return machine


def _texts(variant: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    def text(value: Scalar) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [(key, text(value)) for key, value in variant.items()]


def run(
    jobs: Sequence[Job],
    settings: Settings,
    machine: Mapping[str, Any],
    workers: int | None = None,
    watch: Watch | None = None,
) -> Results:
    """Run the jobs (the order in the results is theirs, whatever finishes first).

    Jobs that come to the same run share it. ``watch`` is called a few times a second with those
    that run. The first error, or an interrupt, cancels what still runs and is raised.
    """
    sources = {job.trace: job.source for job in jobs}
    with ending(workers or os.cpu_count() or 1, [job.progress for job in jobs]) as pool:
        shared: dict[tuple[object, ...], Future[dict[str, Any]]] = {}
        runs, own = [], []
        for job, effective in zip(jobs, _effective(jobs, settings), strict=True):
            same = (job.source, job.design, effective, job.copies)
            if same not in shared:
                shared[same] = pool.submit(_simulate, job, settings)
                own.append(job)
            runs.append(shared[same])
        infos = [
            pool.submit(_core.trace_info, source, settings.limit, None)
            for source in sources.values()
        ]
        _finish([*shared.values(), *infos], own, watch)
    document = {
        "sardonyx": _core.VERSION,
        "machine": {key: machine[key] for key in ("name", "source", "parameters", "assumed")},
        "traces": [
            {"name": name, "info": json.loads(info.result())}
            for name, info in zip(sources, infos, strict=True)
        ],
        "runs": [
            future.result() | {"trace": job.trace, "variant": dict(job.variant)}
            for job, future in zip(jobs, runs, strict=True)
        ],
    }
    return Results.from_document(document)


@contextmanager
def ending(workers: int, works: Iterable[_core.Progress]) -> Iterator[ThreadPoolExecutor]:
    """A pool whose threads are waited for; when broken off they are cancelled, and not for ever.

    What the native half cannot break off (a program's structure being built) goes on for a while,
    but nobody waits for it, and it writes nothing.
    """
    name = f"sardonyx-{next(_POOLS)}-"
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    try:
        yield pool
    except BaseException:
        for work in works:
            work.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + GRACE
        # By name: an interrupt may come before the pool itself knows its thread.
        while any(t.name.startswith(name) for t in enumerate_threads()):
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        raise
    pool.shutdown()


_POOLS = count()


def _effective(jobs: Sequence[Job], settings: Settings) -> list[str]:
    """What each job's machine comes to: a sweep passes the machine's own setting once, and that
    point is the plain run.
    """

    @cache
    def machine(variant: tuple[tuple[str, str], ...]) -> str:
        whole = json.loads(_core.machine(settings.machine, [*settings.overrides, *variant]))
        return json.dumps([whole["parameters"], whole["assumed"]], sort_keys=True)

    return [machine(tuple(_texts(job.variant))) for job in jobs]


def _finish(futures: Sequence[Future[Any]], jobs: Sequence[Job], watch: Watch | None) -> None:
    waiting = set(futures)
    while waiting:
        timeout = LOOK_EVERY if watch else None
        done, waiting = wait(waiting, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
        if watch:
            watch(jobs)


def _simulate(job: Job, settings: Settings) -> dict[str, Any]:
    job.state = "running"
    answer: dict[str, Any] = json.loads(
        _core.simulate(
            job.source,
            job.design,
            settings.machine,
            [*settings.overrides, *_texts(job.variant)],
            settings.limit,
            settings.warmup,
            job.copies or settings.copies,
            settings.distinct,
            job.progress,
        )
    )
    job.state = "done"
    return answer | {"design": job.design}
