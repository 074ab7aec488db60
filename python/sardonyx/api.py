"""Sardonyx from Python: ``compare`` and ``sweep`` as the command line has them, and the lists that
go with them.

Everything is checked before the first run; errors are ``SardonyxError`` with place and remedy.
Left out: writing files; ``Results`` has ``save``, ``to_parquet`` and ``to_pandas``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx import _core
from sardonyx.runs import sweeps
from sardonyx.runs.jobs import Point, Settings, check, check_designs, run, texts
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import ProgramSource, named
from sardonyx.sweeps import folder as folders
from sardonyx.sweeps import hq as hyperqueue
from sardonyx.sweeps import reading
from sardonyx.sweeps.folder import Folder
from sardonyx.sweeps.run import Sweep, View, read_shard

if TYPE_CHECKING:
    import pandas

#: ESD (HPCA'23) beside everything that it was compared with.
DESIGNS = ("baseline", "dedup-sha1", "dewrite", "esd")


def compare(
    traces: Sequence[str | os.PathLike[str]],
    designs: Sequence[str] = DESIGNS,
    machine: str | os.PathLike[str] = "esd",
    *,
    overrides: Mapping[str, Scalar] | None = None,
    limit: int | None = None,
    warmup: int = 0,
    warmup_share: float = 0.0,
    copies: int = 1,
    distinct: bool = False,
    program: ProgramSource | None = None,
    sensitivity: bool = False,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Results:
    """Run every design on every trace.

    ``traces`` are files, ``synth:NAME[:RECORDS[:SEED]]`` or the names of programs, which
    ``program`` sizes; ``machine`` is a preset's name or a
    TOML file's path; ``overrides`` sets its keys; ``limit`` ends each trace after so many records;
    ``warmup`` requests (of programs: transactions) change state and count nowhere, as does
    ``warmup_share`` of the run; ``copies`` cores run the trace at once,
    each in its own address space, with contents of its own if ``distinct``; ``sensitivity`` adds
    ESD's sweep over cache sizes and policies on traces, not on programs; ``jobs`` run at once
    (default: one a core).
    """
    settings = texts(overrides or {})
    shared = Settings(os.fspath(machine), settings, warmup, copies, distinct, warmup_share)
    names = [os.fspath(trace) for trace in traces]
    planned = points(names, designs, limit, program or ProgramSource(), sensitivity=sensitivity)
    check(planned, shared)
    return run(planned, shared, jobs, watch)


def points(
    traces: Sequence[str],
    designs: Sequence[str],
    limit: int | None,
    program: ProgramSource,
    *,
    sensitivity: bool,
) -> list[Point]:
    """The runs of a comparison; nothing but names has been checked."""
    chosen = check_designs(designs)
    sources = named(traces, limit, program)
    planned = [Point(name, source, d) for name, source in sources.items() for d in chosen]
    if sensitivity and "esd" in chosen:
        planned += [
            Point(name, source, "esd", variant)
            for name, source in sources.items()
            if not isinstance(source, ProgramSource)
            for variant in sweeps.variants()
        ]
    return planned


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
    ``hq`` is the folder of a HyperQueue server. A point that failed has its ``error``.
    """
    tables = {"axes": dict(axes or {}), "zip": [*zip], "set": dict(set or {})}
    given: dict[str, Any] = {name: table for name, table in tables.items() if table}
    if settings:
        given["sweep"] = settings
    if (file is None) == (not given):
        raise _core.SardonyxError("sweep: give a file, or what it would hold, and not both")
    folder = Folder(Path(out))
    plan = reading.read(given if file is None else file, folder.before)
    folder.check(plan)
    plan.check()
    if hq is not None:
        hyperqueue.run(plan, folder, Path(hq), view)
    else:
        share = None if shard is None else read_shard(shard)
        Sweep(plan, folder, jobs, share, view).run()
    return folders.frame(plan, folder)


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
        raise ValueError("a seed needs a number of records before it")
    parts = [name, *(str(part) for part in (records, seed) if part is not None)]
    return "synth:" + ":".join(parts)
