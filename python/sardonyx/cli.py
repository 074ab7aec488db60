"""The command line: ``sardonyx`` and its commands, each a thin call of the library.

Standard output carries results, standard error progress and errors. ``cli_trace`` has the trace
commands, ``cli_common`` what all share. Left out: everything that computes.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sardonyx import (
    _core,
    api,
    api_jobs,
    cli_crash,
    cli_record,
    cli_trace,
    reproduce_esd,
    reproduce_sca,
    sca_stages,
)
from sardonyx.beside import NAME as BESIDE_PAPER
from sardonyx.beside import BesidePaper
from sardonyx.claims import ClaimRow
from sardonyx.cli_common import (
    BAD_INPUT,
    INTERRUPTED,
    LEFT_BY_SIGNAL,
    MOST,
    PATH,
    Ended,
    check_json_target,
    discard,
    err,
    fail,
    for_people,
    handle_signals,
    out,
    output_directory,
    size_in_bytes,
    told,
    write_json,
)
from sardonyx.progress import Watcher, bar
from sardonyx.report import write_report
from sardonyx.results import Results, replaced_together
from sardonyx.sca_stages import Table1
from sardonyx.tables import claims_table, compare_table, stages_table

app = typer.Typer(
    name="sardonyx",
    help="Simulate persistent, encrypted, deduplicated main memory, with every byte real.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli_trace.app.command(**cli_record.SETTINGS)(cli_record.record)
app.add_typer(cli_trace.app, name="trace")
app.command(name="crash")(cli_crash.crash)

JSON_HELP = "Write the same numbers as JSON to this file, or to standard output for -."
Machine = Annotated[
    str, typer.Option("--machine", "-m", help="A machine's name, or the path of its TOML file.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Set a key of the machine; repeatable."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=MOST, help="End each trace after so many records."),
]
Warmup = Annotated[
    int,
    typer.Option("--warmup", min=0, max=MOST, help="Requests that change state and count nowhere."),
]
Workers = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, help="Runs at once; default: one a core."),
]
JsonTo = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]
Out = Annotated[Path, typer.Option("--out", "-o", help="Directory of the results.", **PATH)]


def _version(asked: bool) -> None:
    if asked:
        out.print(f"sardonyx {_core.VERSION}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Simulate persistent, encrypted, deduplicated main memory, with every byte real."""


@app.command()
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
    warmup: Warmup = 0,
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
    sensitivity: Annotated[
        bool, typer.Option(help="Also sweep ESD's cache sizes and policies on traces (Fig. 18).")
    ] = True,
    jobs: Workers = None,
    directory: Out = Path("results"),
    json_to: JsonTo = None,
) -> None:
    """Run designs on traces: a table, results.json, results.parquet and report.html.

    [bold]Examples[/bold]

    sardonyx compare traces/*.parquet

    sardonyx compare traces/redis.parquet --designs baseline,esd --set esd.efit_bytes=65536

    sardonyx compare synth:rung-60 --limit 100000 --no-sensitivity --json -

    sardonyx compare btree queue --machine sca --designs no-encryption,fca,sca --cores 4
    """
    with told():
        shared = api_jobs.Settings(
            machine,
            api_jobs.parse_settings(settings or ()),
            limit,
            warmup,
            copies,
            distinct,
            api_jobs.ProgramSettings(
                transactions,
                size_in_bytes("--transaction-size", transaction_size),
                size_in_bytes("--footprint", footprint),
                seed,
            ),
        )
        chosen = [name.strip() for name in designs.split(",") if name.strip()]
        planned, known = api.prepare(traces, chosen, shared, sensitivity=sensitivity)
        check_json_target(json_to, traces)
        with output_directory(directory):
            with Watcher(err) as watch:
                results = api_jobs.run(planned, shared, known, jobs, watch)
            report = _save(results, directory)
        people = for_people(json_to)
        people.print(compare_table(results, people.width))
        write_json(json_to, results.to_document())
        people.print(f"report: {report}", soft_wrap=True)


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="The paper: esd or sca.")],
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            help="esd: recordings that stand in for its programs; default: traces/*.parquet."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points; shorter traces, smaller programs.")
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option("--machine", "-m", help="Default: the machine of the paper's name."),
    ] = None,
    settings: Set = None,
    limit: Limit = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            "--warmup", min=0, max=MOST, help="Requests, or transactions, that count nowhere."
        ),
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="esd: cores that each run a trace, with contents of their own; default: 1.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST, help="Seed of generated traces and of programs.")
    ] = 0,
    jobs: Workers = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Directory of the results; default: results/PAPER.", **PATH
        ),
    ] = None,
    json_to: JsonTo = None,
) -> None:
    """Print every claim of a paper beside our figure, and draw its figures.

    [bold]Examples[/bold]

    sardonyx reproduce esd --quick --out results/esd

    sardonyx reproduce sca --quick
    """
    with told():
        if paper not in REPRODUCTIONS:
            raise _core.SardonyxError(
                api_jobs.unknown("paper to reproduce", paper, list(REPRODUCTIONS))
            )
        given = api_jobs.parse_settings(settings or ())
        if copies is not None and paper != "esd":
            raise _core.SardonyxError(
                f"--copies: {paper} runs on the numbers of cores of its figures; leave it out"
            )
        several = copies or 1
        shared = api_jobs.Settings(
            machine or paper, given, limit, warmup or 0, several, distinct=several > 1
        )
        prepared = REPRODUCTIONS[paper](traces or [], shared, warmup, quick, seed)
        planned, shared = prepared.jobs, prepared.settings
        known = api_jobs.check_machine(shared, planned)
        for source in dict.fromkeys(job.source for job in planned):
            api_jobs.check_trace(source)
        api_jobs.check_fits(planned, shared)
        check_json_target(json_to, traces or ())
        target = directory or Path("results") / paper
        with output_directory(target):
            with Watcher(err) as watch:
                results = api_jobs.run(planned, shared, known, jobs, watch)
            rows = prepared.claims(results)
            table_1 = prepared.table_1()
            beside = BesidePaper(tuple(rows), prepared.note, table_1)
            report = _save(results, target, beside)
        people = for_people(json_to)
        people.print(claims_table(rows, people.width))
        if table_1 is not None:
            people.print(stages_table(table_1))
        people.print(Text(prepared.note, style="dim"))
        write_json(json_to, prepared.document(results, rows, table_1))
        people.print(f"report: {report}", soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _Reproduction:
    """What a paper's reproduction runs and what it makes of it."""

    jobs: list[api_jobs.Job]
    settings: api_jobs.Settings
    claims: Callable[[Results], list[ClaimRow]]
    document: Callable[[Results, Sequence[ClaimRow], Table1 | None], dict[str, Any]]
    note: str
    #: What is measured beside the runs.
    table_1: Callable[[], Table1 | None] = lambda: None


def _reproduce_esd(
    traces: Sequence[str], shared: api_jobs.Settings, _: int | None, quick: bool, seed: int
) -> _Reproduction:
    if quick and shared.limit is None:
        shared = replace(shared, limit=100_000)
    files = traces or sorted(str(path) for path in Path("traces").glob("*.parquet"))
    rungs = [(rung["name"], rung["records"]) for rung in json.loads(_core.ladder())]
    generated = {name: f"synth:{name}:{records}:{seed}" for name, records in rungs}
    recordings = api_jobs.named(files) if files else {}
    sources = recordings | generated
    plan = reproduce_esd.esd_plan(list(recordings), list(generated), quick)
    workloads = reproduce_esd.esd_workloads(recordings, generated)
    return _Reproduction(
        [api_jobs.Job(r.trace, sources[r.trace], r.design, r.variant) for r in plan],
        shared,
        lambda results: reproduce_esd.esd_claims(results, workloads),
        lambda results, rows, _: reproduce_esd.esd_document(
            results, rows, workloads, shared.limit, shared.copies
        ),
        reproduce_esd.stand_ins(workloads, shared.limit, shared.copies),
    )


def _reproduce_sca(
    traces: Sequence[str], shared: api_jobs.Settings, warmup: int | None, quick: bool, seed: int
) -> _Reproduction:
    if traces:
        raise _core.SardonyxError(f"{traces[0]}: sca runs programs of its own; name no trace")
    if shared.limit is not None:
        raise _core.SardonyxError(
            f"--limit {shared.limit}: ends traces, and sca runs programs; leave it out"
        )
    scale = replace(reproduce_sca.QUICK if quick else reproduce_sca.FULL, seed=seed)
    if warmup is not None:
        scale = replace(scale, warmup=warmup)

    def table_1() -> Table1:
        return sca_stages.measure(
            reproduce_sca.PROGRAMS,
            sca_stages.QUICK if quick else sca_stages.FULL,
            shared.machine,
            shared.overrides,
            seed,
            lambda label, call: bar(err, label, call),
        )

    def document(
        results: Results, rows: Sequence[ClaimRow], measured: Table1 | None
    ) -> dict[str, Any]:
        assert measured is not None
        return reproduce_sca.document(results, rows, scale, measured)

    return _Reproduction(
        [point.job(scale) for point in reproduce_sca.plan(scale)],
        replace(shared, warmup=scale.warmup),
        reproduce_sca.claims,
        document,
        reproduce_sca.stand_ins(scale),
        table_1,
    )


#: The papers that can be reproduced.
REPRODUCTIONS = {"esd": _reproduce_esd, "sca": _reproduce_sca}


@app.command()
def report(
    directory: Annotated[
        Path, typer.Argument(help="A directory that compare or reproduce wrote.", **PATH)
    ],
) -> None:
    """Print the table of saved results again and write their report.html anew."""
    with told():
        results = Results.load(directory)
        target = directory if directory.is_dir() else directory.parent
        path = target / "report.html"
        beside = BesidePaper.load(target)
        _write_report(results, path, beside)
        if beside.claims:
            out.print(claims_table(beside.claims, out.width))
        else:
            out.print(compare_table(results, out.width))
        if beside.table_1 is not None:
            out.print(stages_table(beside.table_1))
        out.print(f"report: {path}", soft_wrap=True)


@app.command()
def designs(json_to: JsonTo = None) -> None:
    """List the designs, each with a line and its source."""
    with told():
        check_json_target(json_to)
        _list(api.designs(), ("name", "line", "source"), json_to)


@app.command()
def programs(json_to: JsonTo = None) -> None:
    """List the persistent programs that compare takes, each with a line."""
    with told():
        check_json_target(json_to)
        _list(api.programs(), ("name", "line"), json_to)


@app.command()
def machines(json_to: JsonTo = None) -> None:
    """List the machines that come with the program, each with its source."""
    with told():
        check_json_target(json_to)
        _list(api.machines(), ("name", "source"), json_to)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A machine's name, or the path of its TOML file.")],
    settings: Set = None,
    json_to: JsonTo = None,
) -> None:
    """Print a machine's effective configuration as TOML: every key, with what is assumed.

    [bold]Example[/bold]: sardonyx show esd --set medium.timing.tRCD_ns=60 > mine.toml
    """
    with told():
        check_json_target(json_to)
        machine = json.loads(_core.machine(name, api_jobs.parse_settings(settings or ())))
        if json_to != "-":
            sys.stdout.write(machine["toml"])
        write_json(json_to, machine)


def _save(results: Results, directory: Path, beside: BesidePaper | None = None) -> Path:
    """Write everything that a comparison leaves, complete or not at all."""
    with replaced_together(directory) as scratch:
        results.save(scratch / "results.json")
        results.to_parquet(scratch / "results.parquet")
        if beside is not None:
            beside.save(scratch)
        _write_report(results, scratch / "report.html", beside or BesidePaper())
    if beside is None:  # an earlier reproduction's is not this one's
        (directory / BESIDE_PAPER).unlink(missing_ok=True)
    return directory / "report.html"


def _write_report(results: Results, path: Path, beside: BesidePaper) -> None:
    write_report(results, path, claims=beside.claims, note=beside.note, table_1=beside.table_1)


def _list(rows: list[dict[str, Any]], columns: tuple[str, ...], json_to: str | None) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for row in rows:
        table.add_row(*(Text(str(row.get(column, ""))) for column in columns))
    if json_to != "-":
        out.print(table)
    write_json(json_to, rows)


def main() -> None:
    """The command line: everything that ends it becomes one line and an exit status."""
    handle_signals()
    status = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        status = status or fail(f"standard output: {error.strerror}").exit_code
    if status > LEFT_BY_SIGNAL and any(
        not thread.daemon
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
    ):
        sys.stderr.flush()
        os._exit(status)  # a native call that cannot be broken off still runs
    raise SystemExit(status)


def _run() -> int:
    for argument in sys.argv[1:]:
        shown = argument.encode(errors="backslashreplace").decode()
        if shown != argument:  # reports and JSON cannot have it
            return fail(f"{shown}: is not UTF-8; rename the file").exit_code
    try:
        status = app(prog_name="sardonyx", standalone_mode=False)
    except typer.Abort:
        return fail("interrupted", INTERRUPTED).exit_code
    except typer.Exit as end:
        return end.exit_code
    except Ended as error:
        return fail(f"ended by {error}", LEFT_BY_SIGNAL + error.signal).exit_code
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED).exit_code
    except SystemExit:  # Rich, when nobody reads the help
        return 0
    except OSError as error:  # help or the version, to where nothing can be written
        discard(sys.stdout)
        return fail(f"standard output: {error.strerror}").exit_code
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        # What the parser of the command line found: an unknown option, a missing argument.
        context = getattr(error, "ctx", None)
        where = getattr(context, "command_path", "sardonyx")
        help_line = f"; see `{where} --help`" if message() else ""
        if not message():  # no_args_is_help has printed the help
            return BAD_INPUT
        return fail(f"{message().rstrip('.')}{help_line}").exit_code
    return status if isinstance(status, int) else 0
