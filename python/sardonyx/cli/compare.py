"""``sardonyx compare``: designs on traces and programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sardonyx import api
from sardonyx._core import SardonyxError
from sardonyx.cli.common import (
    MOST,
    PATH,
    check_json_target,
    err,
    for_people,
    note,
    output_directory,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.options import (
    Draws,
    JsonTo,
    Limit,
    Machine,
    Sensitivity,
    Set,
    Warmup,
    Workers,
    check_draws,
)
from sardonyx.cli.places import check_replaced, fresh, kept_runs, point_latest
from sardonyx.cli.progress import Watcher
from sardonyx.cli.report import save
from sardonyx.cli.sensitivity import sensitivity_table
from sardonyx.cli.sweep import View
from sardonyx.cli.tables import compare_table
from sardonyx.runs import jobs, origin
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Settings, parse_settings, parse_warmup
from sardonyx.runs.sources import ProgramSource, beyond


def compare(
    traces: Annotated[
        list[str],
        typer.Argument(
            help="Trace files, programs (`sardonyx programs`), or synth:NAME[:RECORDS[:SEED]]."
        ),
    ],
    designs: Annotated[
        str, typer.Option("--designs", "-d", help="Designs, separated by commas.")
    ] = ",".join(api.DESIGNS),
    machine: Machine = "esd",
    settings: Set = None,
    limit: Limit = None,
    warmup: Warmup = None,
    copies: Annotated[
        int,
        typer.Option(
            "--copies",
            "--cores",
            min=1,
            max=1024,
            help="Cores that run the trace or program, each in its own address space.",
        ),
    ] = 1,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Copies have contents of their own.")
    ] = False,
    transactions: Annotated[
        int, typer.Option(min=1, max=MOST, help="Transactions of each core's program.")
    ] = 10_000,
    transaction_size: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of a program's items: 64 to 4K.")
    ] = "64",
    footprint: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of each program's structure, as in 100M.")
    ] = "16M",
    seed: Annotated[
        int, typer.Option(min=0, max=MOST, help="Seed of the programs' keys and choices.")
    ] = 0,
    sensitivity: Sensitivity = False,
    draws: Draws = None,
    cache_sizes: Annotated[
        bool,
        typer.Option(
            "--cache-sizes", help="Also sweep ESD's cache sizes and policies on traces (Fig. 18)."
        ),
    ] = False,
    gone: Annotated[bool, typer.Option("--no-sensitivity", hidden=True)] = False,
    workers: Workers = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory of the results; default: a new one in results, to which "
            "results/latest leads.",
            **PATH,
        ),
    ] = None,
    json_to: JsonTo = None,
) -> None:
    """Run designs on traces: a table, results.json, results.parquet and report.html.

    [bold]Examples[/bold]

    sardonyx compare traces/*.parquet

    sardonyx compare traces/redis.parquet --designs baseline,esd --set esd.efit_bytes=65536

    sardonyx compare synth:rung-60 --limit 100000 --json -

    sardonyx compare traces/redis.parquet --cores 8 --distinct --warmup 50%

    sardonyx compare btree queue --machine sca --designs no-encryption,fca,sca --cores 4

    sardonyx compare traces/*.parquet --sensitivity --out results/all
    """
    if gone:
        raise SardonyxError(
            "--no-sensitivity: is gone, for nothing is swept unless asked; leave it out "
            "(--cache-sizes sweeps ESD's caches, --sensitivity varies assumed keys)"
        )
    checked_draws = check_draws(sensitivity, draws)
    count, share = parse_warmup(warmup or "0")
    overrides = parse_settings(settings or ())
    shared = Settings(machine, overrides, count, copies, distinct, share)
    program = ProgramSource(
        item_bytes=size_in_bytes("--transaction-size", transaction_size),
        footprint=size_in_bytes("--footprint", footprint),
        transactions=transactions,
        seed=seed,
    )
    chosen = [name.strip() for name in designs.split(",") if name.strip()]
    points = api.points(traces, chosen, limit, program, cache_sizes=cache_sizes)
    if sensitivity:
        api.check_sensitivity(points, checked_draws)
    jobs.check(points, shared)
    check_json_target(json_to, traces)
    for line in beyond(point.source for point in points):
        note(line)
    target = directory or fresh(points[0].trace)
    check_replaced(target)
    with output_directory(target):
        known = origin.origin(point.source for point in points)
        with Watcher(err) as watch:
            results = jobs.run(points, shared, workers, watch)
        if sensitivity:
            results = api.varied(
                points,
                shared,
                results,
                kept_runs(directory),
                workers=workers,
                draws=checked_draws,
                seed=seed,
                shown=partial(View, err),
                say=note,
            )
        comparison = Comparison(results)
        people = for_people(json_to)
        table = compare_table(comparison, people.width)
        try:
            report = save(comparison, target, known)
        except (OSError, SardonyxError):  # the runs took longer than it takes to make room
            people.print(table)
            raise
        if directory is None:
            point_latest(target)
    people.print(table)
    if results.sensitivity:
        people.print(sensitivity_table(results.sensitivity, people.width))
    write_json(json_to, comparison.results.to_document())
    people.print(f"report: {report}", soft_wrap=True)
