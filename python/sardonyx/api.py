"""Sardonyx from Python: ``compare`` as the command line has it, and the lists that go with it.

Everything is checked before the first run; errors are ``SardonyxError`` with place and remedy.
Left out: writing files; ``Results`` has ``save``, ``to_parquet`` and ``to_pandas``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx import _core
from sardonyx.api_jobs import (
    PROGRAM,
    Job,
    ProgramSettings,
    Settings,
    Watch,
    check_designs,
    check_fits,
    check_machine,
    check_trace,
    named,
    resolved,
    run,
)
from sardonyx.report.sweeps import AMT_BYTES, EFIT_BYTES, POLICY
from sardonyx.reproduce_esd import POLICIES, SIZES
from sardonyx.results import Results, Scalar

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
    copies: int = 1,
    distinct: bool = False,
    program: ProgramSettings | None = None,
    sensitivity: bool = False,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Results:
    """Run every design on every trace.

    ``traces`` are files, ``synth:NAME[:RECORDS[:SEED]]`` or the names of programs, which
    ``program`` sizes; ``machine`` is a preset's name or a
    TOML file's path; ``overrides`` sets its keys; ``limit`` ends each trace after so many records;
    ``warmup`` requests change state and count nowhere; ``copies`` cores run the trace at once,
    each in its own address space, with contents of its own if ``distinct``; ``sensitivity`` adds
    ESD's sweep over cache sizes and policies on traces, not on programs; ``jobs`` runs at once
    (default: one a core).
    """
    texts = [
        (key, str(value).lower() if isinstance(value, bool) else str(value))
        for key, value in (overrides or {}).items()
    ]
    settings = Settings(
        os.fspath(machine), texts, limit, warmup, copies, distinct, program or ProgramSettings()
    )
    planned, known = prepare(
        [os.fspath(trace) for trace in traces], designs, settings, sensitivity=sensitivity
    )
    return run(planned, settings, known, jobs, watch)


def prepare(
    traces: Sequence[str], designs: Sequence[str], settings: Settings, *, sensitivity: bool
) -> tuple[list[Job], dict[str, Any]]:
    """The jobs of a comparison and its machine, all checked: nothing has run yet."""
    chosen = check_designs(designs)
    sources = named(resolved(traces, settings.program))
    planned = [Job(name, source, d) for name, source in sources.items() for d in chosen]
    if sensitivity and "esd" in chosen:
        planned += [
            Job(name, source, "esd", variant)
            for name, source in sources.items()
            if not source.startswith(PROGRAM)
            for variant in sensitivity_variants()
        ]
    machine = check_machine(settings, planned)
    for source in sources.values():
        check_trace(source)
    check_fits(planned, settings)
    return planned, machine


def sensitivity_variants() -> list[dict[str, Scalar]]:
    """ESD Fig. 18: hit rates over the size of EFIT under both policies, and over the AMT cache."""
    efit: list[dict[str, Scalar]] = [
        {EFIT_BYTES: size, POLICY: policy} for size in SIZES for policy in POLICIES
    ]
    return efit + [{AMT_BYTES: size} for size in SIZES]


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
