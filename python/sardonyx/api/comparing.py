"""Sardonyx from Python: ``compare`` and ``sweep`` as the command line has them, and the lists that
go with them.

Everything is checked before the first run; errors are ``SardonyxError`` with place and remedy.
Left out: writing files; ``Results`` has ``save``, ``to_parquet`` and ``to_pandas``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from sardonyx import _core, arguments, layers
from sardonyx.arguments import in_python
from sardonyx.questions import ProgramSource
from sardonyx.runs import mixes
from sardonyx.runs.jobs import Point, Settings, check, check_designs, parse_sample, run, texts
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.seeds import MOST_SEEDS, Seeded
from sardonyx.runs.sensitivity import DRAWS
from sardonyx.runs.sources import named
from sardonyx.runs.written import Window, Written, window_of

if TYPE_CHECKING:
    import pandas

    from sardonyx.sweeps.run import View

#: One name or path, or several.
Names: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
#: ESD (HPCA'23) and the designs that it was compared with.
DESIGNS = ("baseline", "dedup-sha1", "dewrite", "esd")


@in_python
def compare(
    traces: Names,
    designs: str | Iterable[str] = DESIGNS,
    machine: str | os.PathLike[str] | Mapping[str, Any] = "esd",
    *,
    overrides: Mapping[str, Scalar] | None = None,
    limit: int | None = None,
    warmup: int = 0,
    warmup_share: float = 0.0,
    copies: int = 1,
    distinct: bool = False,
    threads: bool = False,
    verify: bool = True,
    sample: str | None = None,
    program: ProgramSource | Mapping[str, int] | None = None,
    seeds: int | None = None,
    sensitivity: bool = False,
    draws: int = DRAWS,
    folder: str | os.PathLike[str] | None = None,
    timeline: str | os.PathLike[str] | None = None,
    window: tuple[int, int] | None = None,
    requests: str | os.PathLike[str] | None = None,
    commands: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Results:
    """Run every design on every trace.

    ``traces`` are files, recordings by name (``redis``), ``synth:NAME[:RECORDS[:SEED]]`` or the
    names of programs, which ``program`` sizes; one alone needs no list, nor does one of
    ``designs``. ``machine`` is a preset's name, a TOML file's path, or what such a file would hold,
    as in ``{"extends": "sca", "cores": 2}``; ``overrides`` sets its keys;
    ``limit`` ends each trace after so many records; ``warmup`` requests (of programs:
    transactions), or ``warmup_share`` of the run, warm the memory up and are left out of the
    statistics; ``copies`` cores run the trace at once, each in its own address space, with
    contents of its own if ``distinct``; with ``threads`` each thread of a recording has a core of
    its own, in one address space, and accesses to a line keep their order; ``verify`` holds each
    read to what was written last to its line, and another byte is an error; ``jobs`` run at once
    (default: one a core).

    ``sample`` times only some windows of each trace, as in ``"50x10000"`` (windows and requests of
    each; ``"50x10000+2000"`` has so many more before each that do not count): figures are then
    means over the windows, and ``Run.sample`` has half of their 95 % intervals. Where windows lie
    is drawn from the seed of ``program``. Not of programs, nor beside what is of whole runs.

    ``seeds`` runs programs and generated traces with so many seeds, from their own one on: each
    figure is then the mean, and ``Run.seeds`` has what each seed gave and half of the mean's 95 %
    interval.

    ``sensitivity`` also runs each assumed key at the ends of its range, and ``draws`` of all keys
    together: ``Results.sensitivity`` says which conclusions flip. Its runs are kept in ``folder``,
    where the same call finds them again; without one they are not kept.

    ``timeline`` is a file for Perfetto with the requests of ``window`` (a first number and an end),
    ``requests`` a Parquet file with a row for each request, ``commands`` the memory's commands of
    the one run as DRAMPower reads them (docs/simulator/timeline.md).
    """
    sets = arguments.table("overrides", overrides)
    if isinstance(machine, Mapping):
        machine, own = arguments.machine(machine)
        sets = own | sets
    sizes = arguments.program(program)
    shared = Settings(
        arguments.path("machine", machine),
        texts(sets),
        arguments.whole("warmup", warmup, 0),
        arguments.whole("copies", copies, 1, 1024),
        float(bool(distinct)),
        arguments.share("warmup_share", warmup_share),
        None if sample is None else parse_sample(arguments.text("sample", sample), sizes.seed),
        verify=bool(verify),
        threads=bool(threads),
    )
    planned = points(
        arguments.names("traces", traces),
        arguments.names("designs", designs),
        arguments.maybe_whole("limit", limit, 1),
        sizes,
    )
    jobs = arguments.maybe_whole("jobs", jobs, 1, 1024)
    draws = arguments.whole("draws", draws, 0, 10_000)
    place = None if folder is None else arguments.path("folder", folder)
    written = Written(
        None if timeline is None else Path(arguments.path("timeline", timeline)),
        Window() if window is None else window_of(*window),
        None if requests is None else Path(arguments.path("requests", requests)),
        None if commands is None else Path(arguments.path("commands", commands)),
    )
    if commands is not None and len(planned) > 1:
        raise _core.SardonyxError(f"commands: is of one run, and there are {len(planned)}")
    if sample is not None:
        check_whole(
            sensitivity=sensitivity, timeline=timeline, requests=requests, commands=commands
        )
    if seeds is not None:
        check_alone(
            sample=sample,
            sensitivity=sensitivity,
            timeline=timeline,
            requests=requests,
            commands=commands,
        )
        seeded = Seeded(planned, arguments.whole("seeds", seeds, 2, MOST_SEEDS))
        check(seeded.each, shared)
        return seeded.run(shared, jobs, watch)
    check(planned, shared)
    if not sensitivity:
        return run(planned, shared, jobs, watch, written)
    check_sensitivity(planned, draws)
    results = run(planned, shared, jobs, watch, written)
    with TemporaryDirectory(prefix="sardonyx.") as scratch:
        kept = Path(scratch if place is None else place)
        return varied(planned, shared, results, kept, workers=jobs, draws=draws)


def check_alone(**others: object) -> None:
    """An error if anything is asked for that is of single runs, beside several seeds."""
    for name, given in others.items():
        if given:
            option = "--" + name.replace("_", "-")
            raise _core.SardonyxError(
                f"{option}: is of single runs, and --seeds gives means over several; leave one of "
                "them out"
            )


def check_whole(**others: object) -> None:
    """An error if anything is asked for that is of whole runs, beside a sample."""
    for name, given in others.items():
        if given:
            raise _core.SardonyxError(
                f"--{name}: is of whole runs, and --sample times windows; leave one of them out"
            )


def check_sensitivity(planned: Sequence[Point], draws: int) -> None:
    """An error unless there are conclusions that could flip."""
    mixes.refuse("--sensitivity", {point.trace: point.source for point in planned})
    if draws < 0:
        raise _core.SardonyxError(f"draws = {draws}: give 0 or more")
    layers.check_elsewhere({point.design: None for point in planned})
    if len({point.design for point in planned}) < 2:
        raise _core.SardonyxError(
            "--sensitivity: there are no two designs to compare; give two, as in --designs "
            "baseline,esd"
        )


def varied(
    planned: Sequence[Point], shared: Settings, results: Results, folder: Path, **options: Any
) -> Results:
    """The results with what their conclusions depend on; runs are kept in ``folder``."""
    from sardonyx.sweeps import study

    found = study.of_comparison(planned, shared, results.runs, folder, **options)
    return replace(results, sensitivity=found)


def points(
    traces: Sequence[str],
    designs: Sequence[str],
    limit: int | None,
    program: ProgramSource,
) -> list[Point]:
    """The runs of a comparison; nothing but names has been checked."""
    chosen = check_designs(designs)
    sources = named(traces, limit, program)
    return [Point(name, source, d) for name, source in sources.items() for d in chosen]


@in_python
def sweep(
    file: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    axes: Mapping[str, Sequence[Any]] | None = None,
    zip: Sequence[Mapping[str, Sequence[Any]]] = (),  # noqa: A002 - the file's own word
    set: Mapping[str, Scalar] | None = None,  # noqa: A002
    jobs: int | None = None,
    shard: str | None = None,
    hq: str | os.PathLike[str] | None = None,
    view: View | None = None,
    **settings: Any,
) -> pandas.DataFrame:
    """Run every point of a sweep and give a row a point, in the order of its plan.

    The sweep is a ``file``, or what the file would hold: ``settings`` are the keys of ``[sweep]``
    (``traces``, ``designs``, ``limit`` ..), and ``axes``, ``zip`` and ``set`` its tables. ``out``
    keeps what is done, so that the same call goes on where one was broken off. ``jobs`` workers
    run at once; ``shard`` (``"3/16"``) runs a share and gives the rows that are there then;
    ``hq`` is the folder of a HyperQueue server. A string stands for a list of one.

    A design may be a name, a file of designs in Python (``"idea.py"``), or a class that is in a
    file: workers are other processes, which do not have what a program or a notebook defines.

    The frame has a column for each figure, and ``error``: what ended a point that failed, else
    none. Of a share it has the points that are done or have failed.

    Raises:
        SardonyxError: A point cannot be asked for, as is seen before the first one runs; a class is
            in no file; a file of a design changed meanwhile; or a point is missing at the end.
    """
    from sardonyx.sweeps import folder as folders
    from sardonyx.sweeps import hq as hyperqueue
    from sardonyx.sweeps import reading
    from sardonyx.sweeps.run import Sweep, read_shard

    together = [arguments.axes("zip", each) for each in zip]
    tables = {
        "axes": arguments.axes("axes", axes),
        "zip": together,
        "set": arguments.table("set", set),
    }
    for name in ("traces", "designs", "machines", "programs"):
        if name in settings:
            settings[name] = arguments.names(name, settings[name])
    jobs = arguments.maybe_whole("jobs", jobs, 1, 1024)
    given: dict[str, Any] = {name: table for name, table in tables.items() if table}
    if settings:
        given["sweep"] = settings
    if (file is None) == (not given):
        raise _core.SardonyxError("sweep: give a file, or what it would hold, and not both")
    folder = folders.Folder(Path(arguments.path("out", out)))
    plan = reading.read(given if file is None else file, folder.before)
    folder.check(plan)
    plan.check()
    if hq is not None:
        outcome = hyperqueue.run(plan, folder, Path(hq), view)
    else:
        share = None if shard is None else read_shard(shard)
        outcome = Sweep(plan, folder, jobs, share, view).run()
    return folders.frame(plan, folder, outcome.results)


def machines() -> list[dict[str, str]]:
    """The machines that come with the program: name and source."""
    known: list[dict[str, str]] = json.loads(_core.machines())
    return known


def programs() -> list[dict[str, str]]:
    """The persistent programs: name and a line."""
    known: list[dict[str, str]] = json.loads(_core.programs())["programs"]
    return known


def designs() -> list[dict[str, str]]:
    """The designs: name, source and a line."""
    known: list[dict[str, str]] = json.loads(_core.designs())
    return known


def synth(name: str, records: int | None = None, seed: int | None = None) -> str:
    """The name under which ``compare`` takes a generated trace of the locality ladder."""
    if seed is not None and records is None:
        raise _core.SardonyxError("seed: needs a number of records too; give records=..")
    arguments.maybe_whole("records", records, 1)
    arguments.maybe_whole("seed", seed, 0)
    parts = [name, *(str(part) for part in (records, seed) if part is not None)]
    return "synth:" + ":".join(parts)


def load(path: str | os.PathLike[str]) -> Results:
    """The results that ``sardonyx compare --out`` or ``Results.save`` have written."""
    return Results.load(path)
