"""The command line: ``sardonyx`` and its commands, each a thin call of the library.

Standard output carries results, standard error progress and errors. ``cli_trace`` has the trace
commands, ``cli_common`` what all share. Left out: everything that computes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sardonyx import _core, api, api_jobs, cli_record, cli_trace
from sardonyx import reproduce as reproduction
from sardonyx.claims import ClaimRow
from sardonyx.cli_common import (
    MOST,
    check_json_target,
    err,
    fail,
    for_people,
    out,
    output_directory,
    told,
    write_json,
)
from sardonyx.progress import Watcher
from sardonyx.report import write_report
from sardonyx.results import Results
from sardonyx.tables import claims_table, compare_table

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
Out = Annotated[Path, typer.Option("--out", "-o", help="Directory of the results.")]


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
        typer.Argument(help="Trace files, or synth:NAME[:RECORDS[:SEED]] for generated ones."),
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
            min=1, max=1024, help="Cores that run the trace, each in its own address space."
        ),
    ] = 1,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Copies have contents of their own.")
    ] = False,
    sensitivity: Annotated[
        bool, typer.Option(help="Also sweep ESD's cache sizes and policies (its Fig. 18).")
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
    """
    with told():
        shared = api_jobs.Settings(
            machine, api_jobs.parse_settings(settings or ()), limit, warmup, copies, distinct
        )
        chosen = [name.strip() for name in designs.split(",") if name.strip()]
        planned, known = api.prepare(traces, chosen, shared, sensitivity=sensitivity)
        check_json_target(json_to)
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
    paper: Annotated[str, typer.Argument(help="The paper: esd.")],
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings that stand in for its programs; default: traces/*.parquet."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points and at most 100,000 records a trace.")
    ] = False,
    machine: Machine = "esd",
    settings: Set = None,
    limit: Limit = None,
    warmup: Warmup = 0,
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Seed of the generated traces.")] = 0,
    jobs: Workers = None,
    directory: Out = Path("results/esd"),
    json_to: JsonTo = None,
) -> None:
    """Print every claim of a paper beside our figure, and draw its figures.

    [bold]Example[/bold]: sardonyx reproduce esd --quick --out results/esd
    """
    with told():
        if paper != "esd":
            raise _core.SardonyxError(api_jobs.unknown("paper to reproduce", paper, ["esd"]))
        if quick and limit is None:
            limit = 100_000
        shared = api_jobs.Settings(machine, api_jobs.parse_settings(settings or ()), limit, warmup)
        files = traces or sorted(str(path) for path in Path("traces").glob("*.parquet"))
        rungs = [(rung["name"], rung["records"]) for rung in json.loads(_core.ladder())]
        generated = {name: f"synth:{name}:{records}:{seed}" for name, records in rungs}
        recordings = api_jobs.named(files) if files else {}
        sources = recordings | generated
        plan = reproduction.esd_plan(list(recordings), list(generated), quick)
        planned = [api_jobs.Job(r.trace, sources[r.trace], r.design, r.variant) for r in plan]
        known = api_jobs.check_machine(shared, planned)
        for source in sources.values():
            api_jobs.check_trace(source)
        check_json_target(json_to)
        with output_directory(directory):
            with Watcher(err) as watch:
                results = api_jobs.run(planned, shared, known, jobs, watch)
            workloads = reproduction.esd_workloads(recordings, generated)
            rows = reproduction.esd_claims(results, workloads)
            note = reproduction.stand_ins(workloads)
            report = _save(results, directory, rows, note)
        people = for_people(json_to)
        people.print(claims_table(rows, people.width))
        people.print(Text(note, style="dim"))
        write_json(json_to, reproduction.esd_document(results, rows, workloads))
        people.print(f"report: {report}", soft_wrap=True)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="A directory that compare wrote.")],
) -> None:
    """Print the table of saved results again and write their report.html anew."""
    with told():
        results = Results.load(directory)
        target = directory if directory.is_dir() else directory.parent
        path = target / "report.html"
        write_report(results, path)
        out.print(compare_table(results, out.width))
        out.print(f"report: {path}", soft_wrap=True)


@app.command()
def designs(json_to: JsonTo = None) -> None:
    """List the designs, each with a line and its source."""
    with told():
        check_json_target(json_to)
        _list(api.designs(), ("name", "line", "source"), json_to)


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


def _save(
    results: Results, directory: Path, claims: Sequence[ClaimRow] = (), note: str = ""
) -> Path:
    """Write everything that a comparison leaves, each file complete or not at all."""
    results.save(directory / "results.json")
    results.to_parquet(directory / "results.parquet")
    path = directory / "report.html"
    write_report(results, path, claims=claims, note=note)
    return path


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
    """The ``sardonyx`` program."""
    try:
        status = app(prog_name="sardonyx", standalone_mode=False)
    except typer.Abort:
        status = fail("interrupted", 130).exit_code
    except typer.Exit as end:
        status = end.exit_code
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        # What the parser of the command line found: an unknown option, a missing argument.
        context = getattr(error, "ctx", None)
        where = getattr(context, "command_path", "sardonyx")
        help_line = f"; see `{where} --help`" if message() else ""
        if not message():  # no_args_is_help has printed the help
            raise SystemExit(2) from None
        status = fail(f"{message().rstrip('.')}{help_line}").exit_code
    sys.stdout.flush()
    raise SystemExit(status if isinstance(status, int) else 0)
