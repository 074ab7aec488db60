"""``sardonyx compare``: designs on traces and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sardonyx import api
from sardonyx._core import SardonyxError
from sardonyx.cli import complete
from sardonyx.cli.common import (
    MOST,
    PATH,
    check_json_target,
    err,
    for_people,
    note,
    output_directory,
    write_json,
)
from sardonyx.cli.forms import Options
from sardonyx.cli.help import rare
from sardonyx.cli.options import (
    FOOTPRINT,
    Addresses,
    Arrivals,
    Designs,
    Draws,
    Footprint,
    JsonTo,
    Limit,
    Machine,
    Sample,
    Sensitivity,
    Set,
    Transactions,
    TransactionSize,
    Warmup,
    Workers,
    check_draws,
    sized,
)
from sardonyx.cli.places import check_replaced, fresh, kept_runs, point_latest
from sardonyx.files import check_target, is_special
from sardonyx.questions import ProgramSource
from sardonyx.runs import jobs, origin
from sardonyx.runs.jobs import Point, Setting, Settings, parse_sample, parse_settings, parse_warmup
from sardonyx.runs.recordings import path_of
from sardonyx.runs.seeds import MOST_SEEDS, Seeded
from sardonyx.runs.sources import PROGRAM, beyond, parts, program_names
from sardonyx.runs.written import DEFAULT, Window, Written, parse_window

DESIGNS = ",".join(api.DESIGNS)


@dataclass(frozen=True, kw_only=True)
class Compare(Options):
    """The options of ``sardonyx compare``."""

    traces: Annotated[
        list[str],
        typer.Argument(
            help="Trace files, recordings (`sardonyx recordings`), programs (`sardonyx programs`), "
            "or synth:NAME[:RECORDS[:SEED]].",
            autocompletion=complete.workloads,
        ),
    ]
    designs: Designs = DESIGNS
    machine: Machine = "esd"
    settings: Set = None
    limit: Limit = None
    addresses: Addresses = None
    arrivals: Arrivals = None
    warmup: Warmup = None
    sample: Sample = None
    copies: Annotated[
        int,
        typer.Option(
            "--copies",
            "--cores",
            min=1,
            max=1024,
            help="Cores that run the trace or program, each in its own address space.",
        ),
    ] = 1
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Give each copy contents of its own.")
    ] = False
    threads: Annotated[
        bool,
        typer.Option(
            "--threads",
            help="Play each thread of a recording on a core of its own, in one address space.",
        ),
    ] = False
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Do not hold reads to what was written.")
    ] = False
    transactions: Transactions = PROGRAM.transactions
    transaction_size: TransactionSize = str(PROGRAM.item_bytes)
    footprint: Footprint = FOOTPRINT
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=MOST, help="Seed of programs' keys and choices, and of where windows lie."
        ),
    ] = 0
    seeds: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_SEEDS,
            help="Run programs and synth: traces with N seeds; figures are means with "
            "their 95 % intervals.",
        ),
    ] = None
    sensitivity: Sensitivity = False
    draws: Draws = None
    timeline: Annotated[
        Path | None,
        typer.Option(
            "--timeline", help="Draw requests over banks and units, for Perfetto.", **PATH
        ),
    ] = None
    window: Annotated[
        str | None,
        typer.Option(
            "--timeline-window",
            metavar="FIRST..END",
            help=f"The requests that are drawn, as in 1000..2000; default: the first {DEFAULT:,} "
            "that count.",
        ),
    ] = None
    requests: Annotated[
        Path | None,
        typer.Option(
            "--requests", help="Write each request's times and causes, as Parquet.", **PATH
        ),
    ] = None
    commands: Annotated[
        Path | None,
        typer.Option(
            "--commands",
            help="Write the memory's commands, one run's, as DRAMPower reads them.",
            **PATH,
        ),
    ] = None
    workers: Workers = None
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory of the results; default: a new one in results, to which "
            "results/latest leads.",
            **PATH,
        ),
    ] = None
    json_to: JsonTo = None


@rare(
    "addresses",
    "arrivals",
    "distinct",
    "sample",
    "threads",
    "no_verify",
    "transactions",
    "transaction_size",
    "footprint",
    "seed",
    "seeds",
    "draws",
    "window",
    "commands",
    "workers",
)
def compare(asked: Compare) -> None:
    """Run designs on traces: a table, results.json, results.parquet and report.html.

    [bold]Examples[/bold]

    sardonyx compare redis

    sardonyx compare redis --designs baseline,esd --set esd.efit_bytes=65536

    sardonyx compare synth:rung-60 --limit 100000 --json -

    sardonyx compare redis --cores 8 --distinct --warmup 50%

    sardonyx compare x264-threads --threads

    sardonyx compare btree queue --machine sca --designs no-encryption,fca,sca --cores 4

    sardonyx compare traces/*.parquet --sensitivity --out results/all

    sardonyx compare long.parquet --sample 50x10000

    sardonyx compare btree --machine sca --designs fca,sca --seeds 5

    sardonyx compare redis --designs esd --timeline redis.json.gz
    """
    draws = check_draws(asked.sensitivity, asked.draws)
    count, share = parse_warmup(asked.warmup or "0")
    programs = program_names(asked.traces)
    runs_traces = len(programs) < len(asked.traces)
    overrides = parse_settings(asked.settings or ())
    if runs_traces:
        overrides += _traces(asked)
    distinct = float(runs_traces and asked.copies > 1 and asked.distinct)
    sample = parse_sample(asked.sample, asked.seed) if runs_traces and asked.sample else None
    shared = Settings(
        *(asked.machine, overrides, count, asked.copies, distinct, share, sample),
        verify=not asked.no_verify,
        threads=asked.threads,
    )
    chosen = parts(asked.designs)
    limit, sizes = asked.limit if runs_traces else None, ProgramSource()
    if programs:
        sizes = sized(asked.transactions, asked.transaction_size, asked.footprint, asked.seed)
    points = api.points(asked.traces, chosen, limit, sizes)
    if asked.sensitivity:
        api.check_sensitivity(points, draws)
    seeded = _seeded(asked, points)
    jobs.check(seeded.each if seeded else points, shared)
    check_json_target(asked.json_to, map(path_of, asked.traces))
    written = _written(asked, len(points), sampled=sample is not None)
    for line in beyond(point.source for point in points):
        note(line)
    target = asked.directory or fresh(points[0].trace)
    check_replaced(target)
    # The seed of programs is also that of the draws.
    seed = asked.seed if programs or asked.sensitivity or asked.sample else 0
    _ = asked.workers  # of every form: `_compare` uses it
    forms = {
        "limit": "without a trace",
        "addresses": "without a trace",
        "arrivals": "without a trace",
        "sample": "without a trace",
        "distinct": "without a trace in several --copies",
        "window": "without --timeline",
    }
    asked.refuse_idle("without a program", forms)
    study = {"draws": draws, "seed": seed} if asked.sensitivity else None
    _compare(asked, points, shared, written, seeded, target, study)


def _traces(asked: Compare) -> tuple[Setting, ...]:
    given = {"addresses": asked.addresses, "arrivals": asked.arrivals}
    return tuple((key, value) for key, value in given.items() if value is not None)


def _written(asked: Compare, points: int, *, sampled: bool) -> Written:
    """The files of a run's requests that the user asks for."""
    files = {
        "--timeline": asked.timeline,
        "--requests": asked.requests,
        "--commands": asked.commands,
    }
    if sampled:
        whole = {option.removeprefix("--"): target for option, target in files.items()}
        api.check_whole(sensitivity=asked.sensitivity, **whole)
    for option, target in files.items():
        if target is None:
            continue
        check_target(target, map(path_of, asked.traces), f"{option} ")
        if is_special(target):
            raise SardonyxError(f"{option} {target}: is a device or a pipe; name a file")
    if asked.commands is not None and (points > 1 or asked.sensitivity):
        raise SardonyxError(
            f"--commands {asked.commands}: is of one run, and there are {points} or more; name one "
            "trace and one design"
        )
    given = [each.resolve() for each in files.values() if each is not None]
    if asked.commands is not None and given.count(asked.commands.resolve()) > 1:
        raise SardonyxError(f"--commands {asked.commands}: is another option's file; name another")
    if asked.timeline is None:
        return Written(requests=asked.requests, commands=asked.commands)
    if asked.requests is not None and asked.requests.resolve() == asked.timeline.resolve():
        raise SardonyxError(f"--requests {asked.requests}: is --timeline's file; name another")
    window = Window() if asked.window is None else parse_window(asked.window)
    return Written(asked.timeline, window, asked.requests, asked.commands)


def _seeded(asked: Compare, points: Sequence[Point]) -> Seeded | None:
    """The points with several seeds each, if the user asks for that."""
    if asked.seeds is None:
        return None
    api.check_alone(
        sensitivity=asked.sensitivity,
        sample=asked.sample,
        timeline=asked.timeline,
        requests=asked.requests,
        commands=asked.commands,
    )
    return Seeded(points, asked.seeds)


def _compare(
    asked: Compare,
    points: Sequence[Point],
    shared: Settings,
    written: Written,
    seeded: Seeded | None,
    target: Path,
    study: Mapping[str, int] | None,
) -> None:
    """Run it, vary its assumed keys if there is a ``study``, and show, write and draw all of it."""
    from sardonyx.cli.progress import Watcher
    from sardonyx.cli.report import save
    from sardonyx.cli.tables import compare_table, mix_table, sample_table
    from sardonyx.runs.answers import answers
    from sardonyx.runs.comparison import Comparison

    workers, json_to = asked.workers, asked.json_to
    with output_directory(target):
        known = origin.origin(
            (point.source for point in points), dict.fromkeys(point.design for point in points)
        )
        with Watcher(err) as watch:
            if seeded is None:
                results = jobs.run(points, shared, workers, watch, written)
            else:
                results = seeded.run(shared, workers, watch)
        if study is not None:
            from sardonyx.cli.sweep import View

            results = api.varied(
                points,
                shared,
                results,
                kept_runs(asked.directory),
                workers=workers,
                **study,
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
        if asked.directory is None:
            point_latest(target)
    people.print(table)
    if shared.sample:
        people.print(sample_table(results, people.width))
    if any(run.mix for run in results.runs):
        people.print(mix_table(results))
    if results.sensitivity:
        from sardonyx.cli.flips import sensitivity_table

        people.print(sensitivity_table(results.sensitivity, people.width))
    if json_to is not None:
        said = {"answers": [each.to_document() for each in answers(comparison)]}
        write_json(json_to, comparison.results.to_document() | said)
    if written.timeline is not None:
        where = "open it at https://ui.perfetto.dev"
        people.print(f"timeline: {written.timeline} ({where})", soft_wrap=True)
    if written.requests is not None:
        people.print(f"requests: {written.requests}", soft_wrap=True)
    if written.commands is not None:
        people.print(f"commands: {written.commands}", soft_wrap=True)
    people.print(f"report: {report}", soft_wrap=True)
