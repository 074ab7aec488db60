"""The trace commands: look at a trace, check it, convert it, generate one, cut one, mix several.

Each is one native call with a bar; what a trace file holds stands in
docs/simulator/trace-format.md. Left out: recording programs, which is in ``record``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx import _core
from sardonyx import report as pages
from sardonyx.cli import complete, record
from sardonyx.cli.bars import trace_bars
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    PATH,
    add_command,
    check_json_target,
    err,
    fail,
    for_people,
    note,
    write_json,
)
from sardonyx.cli.facts import facts_of, writable
from sardonyx.cli.forms import Options
from sardonyx.cli.help import CONTEXT, Group
from sardonyx.cli.options import JsonTo
from sardonyx.cli.progress import watched
from sardonyx.cli.tables import worth_warnings
from sardonyx.files import FileError, is_special, read_text
from sardonyx.questions import Conversion
from sardonyx.runs import mixes, sources
from sardonyx.runs.recordings import path_of
from sardonyx.runs.results import Info, Trace
from sardonyx.runs.sources import check_file, check_known, unknown

app = typer.Typer(
    cls=Group,
    context_settings=CONTEXT,
    help="Record programs; look at traces, check, convert, generate, cut and mix them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

OWN_FORMAT = "sardonyx"
FORMATS = (
    OWN_FORMAT,
    "nvmain",
    "ramulator-load-store",
    "ramulator-read-write",
    "ramulator-instructions",
    "ramulator-memory",
    "dramsim2",
    "dramsim3",
    "dramsys",
    "dramsys-relative",
    "champsim",
    "gem5-packets",
    "pinatrace",
    "lackey",
    "dynamorio",
)
#: Formats that our traces can be converted to.
WRITTEN = (OWN_FORMAT, "nvmain", "ramulator-load-store", "dramsim3", "champsim")
#: The words for a sound trace, by the part of the file under checksums.
SOUND = {
    "pages": "sound",
    "none": "sound as far as can be seen; no checksums",
}
FILLS = ("zero", "random", "unique")
#: Formats that count cycles, and the format whose addresses are positions in a device.
CLOCKED = ("nvmain", "dramsim2", "dramsim3", "dramsys", "dramsys-relative", "gem5-packets")
LEVELLED = "ramulator-read-write"
Source = Annotated[
    str,
    typer.Argument(
        help="A trace file or a recording.", autocompletion=complete.traces, callback=path_of
    ),
]
Target = Annotated[Path, typer.Argument(help="The file to write.", **PATH | {"metavar": "TARGET"})]


def _paths(texts: list[str]) -> list[str]:
    return [path_of(text) for text in texts]


def info(
    trace: Annotated[
        str,
        typer.Argument(
            help="A trace file, a recording, or synth:NAME.", autocompletion=complete.traces
        ),
    ],
    limit: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Use only the first N records.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw duplicates, locality and collisions as HTML.", **PATH),
    ] = None,
    json_to: JsonTo = None,
) -> None:
    """Count what is in a trace: records, duplicates, contents, collisions, locality.

    [bold]Example[/bold]: sardonyx trace info redis --plot redis.html
    """
    check_json_target(json_to, [path_of(trace)])
    (name, source), *_ = sources.named([trace], limit).items()
    mixes.refuse("trace info", {name: source})
    sources.check(source)
    for line in sources.beyond([source]):
        note(line)
    if plot is not None:
        writable(plot, json_to, [path_of(trace)])
    count = partial(_core.trace_info, source.json())
    facts = json.loads(watched(err, trace, count))
    people = for_people(json_to)
    facts_of(trace, facts, json_to)
    known = Trace(name, Info.of(facts))
    people.print(trace_bars(known, people.width))
    for warning in worth_warnings([known]):
        people.print(warning, soft_wrap=True)
    if plot is not None:
        pages.write_trace_report([known], plot, _core.VERSION)
        people.print(f"plots: {plot}", soft_wrap=True)


def check(
    traces: Annotated[
        list[str],
        typer.Argument(
            help="Trace files or recordings.", autocompletion=complete.traces, callback=_paths
        ),
    ],
    max_problems: Annotated[
        int, typer.Option(min=1, max=MOST, help="Problems shown of each trace.")
    ] = 20,
    json_to: JsonTo = None,
) -> None:
    """Check every row of traces; the exit status is 1 if any is broken, 2 if any is unreadable."""
    check_json_target(json_to, traces)
    reports: list[dict[str, Any]] = []
    broken = False
    unreadable = None
    people = for_people(json_to)
    for trace in traces:
        try:
            check_file(trace)
            found = watched(err, trace, partial(_core.trace_check, trace, max_problems))
        except _core.SardonyxError as error:  # the other files are still worth a look
            unreadable = fail(str(error))
            reports.append({"trace": trace, "error": str(error)})
            continue
        report = json.loads(found)
        reports.append({"trace": trace} | report)
        for problem in report["problems"]:
            people.print(f"{trace}, row {problem['row']}: {problem['problem']}", soft_wrap=True)
        bad = report.get("bad", len(report["problems"]))
        broken = broken or bad > 0
        verdict = f"{bad:,} bad" if bad else SOUND[report["checksums"]]
        people.print(f"{trace}: {report['records']:,} records, {verdict}", soft_wrap=True)
    write_json(json_to, reports)
    if unreadable is not None:
        raise unreadable
    if broken:
        raise typer.Exit(CHECK_FAILED)


@dataclass(frozen=True, kw_only=True)
class Convert(Options):
    """The options of ``sardonyx trace convert``."""

    source: Source
    target: Target
    from_format: Annotated[
        str | None, typer.Option("--from", help=f"Format of SOURCE: {', '.join(FORMATS)}.")
    ] = None
    to_format: Annotated[
        str | None, typer.Option("--to", help=f"Format of TARGET: {', '.join(WRITTEN)}.")
    ] = None
    data: Annotated[
        str, typer.Option("--data", help="What writes without bytes write: zero, random, unique.")
    ] = "unique"
    seed: Annotated[
        int, typer.Option(min=0, max=MOST, help="Seed of the contents that --data makes.")
    ] = 0
    clock_mhz: Annotated[
        float | None,
        typer.Option(
            "--clock-mhz",
            min=0.001,
            max=1e6,
            help="Clock that SOURCE's cycles count; default: nvmain 2000, dramsim3 "
            "1200; gem5-packets 1000, into which ticks are turned.",
        ),
    ] = None
    levels: Annotated[
        str | None,
        typer.Option(
            help="ramulator-read-write: sizes of channel, rank, bank group, bank, row and column "
            "in lines; default: 1,2,4,4,65536,128."
        ),
    ] = None
    json_to: JsonTo = None


def convert(asked: Convert) -> None:
    """Convert another simulator's trace to ours, or ours to another's.

    Files that end in .parquet are taken to be ours. Ours to ours writes the same records again,
    with checksums.

    [bold]Example[/bold]: sardonyx trace convert app.nvt app.parquet --from nvmain
    """
    source, target, json_to = asked.source, asked.target, asked.json_to
    check_json_target(json_to, [source])
    check_file(source)
    writable(target, json_to, [source])
    read = _format("--from", asked.from_format, source)
    write = _format("--to", asked.to_format, str(target))
    conversion = Conversion(
        source=source,
        target=str(target),
        from_format=read,
        to_format=write,
        data="unique",
        seed=0,
    )
    if read != OWN_FORMAT:
        check_known("filling", asked.data, FILLS, "--data: ")
        levelled = read == LEVELLED and asked.levels is not None
        conversion = conversion.replace(
            data=asked.data,
            seed=0 if asked.data == "zero" else asked.seed,
            clock_mhz=asked.clock_mhz if read in CLOCKED else None,
            levels=_levels(str(asked.levels)) if levelled else None,
        )
    asked.refuse_idle(
        f"from {read}: contents are made for traces of other simulators",
        {
            "clock_mhz": f"from {read}, which counts no cycles; {' and '.join(CLOCKED)} do",
            "levels": f"from {read}: only {LEVELLED} has levels",
            **({"seed": "with --data zero"} if read != OWN_FORMAT else {}),
        },
    )
    done = watched(err, source, partial(_core.trace_convert, conversion.json()))
    facts_of(str(target), json.loads(done), json_to)


def _levels(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 6 or not all(part.isascii() and part.isdigit() for part in parts):
        raise _core.SardonyxError(
            f"--levels {text}: give six whole numbers, as in 1,2,4,4,65536,128"
        )
    if any(len(part) > 18 for part in parts):
        raise _core.SardonyxError(f"--levels {text}: together at most 2^58 lines")
    return tuple(int(part) for part in parts)


def _format(option: str, given: str | None, path: str) -> str:
    known = ", ".join(FORMATS)
    if given is None:
        if path.endswith(".parquet"):
            return OWN_FORMAT
        raise _core.SardonyxError(f"{path}: of which format? give {option}, one of {known}")
    check_known("trace format", given, FORMATS, f"{option}: ")
    return given


def synth(
    spec: Annotated[
        str,
        typer.Argument(help="A rung of the locality ladder, or a JSON file of a specification."),
    ],
    target: Target,
    records: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Records to generate.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST, help="The same seed gives the same trace.")
    ] = 0,
    json_to: JsonTo = None,
) -> None:
    """Generate a trace with stated statistics.

    [bold]Example[/bold]: sardonyx trace synth rung-60 rung-60.parquet --seed 7
    """
    check_json_target(json_to, [spec])
    writable(target, json_to, [spec])
    stated = _spec(spec)
    if records is not None:
        stated["records"] = records
    done = watched(err, spec, partial(_core.trace_synth, json.dumps(stated), str(target), seed))
    facts_of(str(target), json.loads(done), json_to)


def _spec(name: str) -> dict[str, Any]:
    rungs: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in json.loads(_core.ladder())}
    if name in rungs:
        return rungs[name]
    if not Path(name).is_file() and (not name.endswith(".json") or is_special(name)):
        raise _core.SardonyxError(f"{unknown('generator', name, list(rungs))}, or a JSON file")
    try:
        stated = json.loads(read_text(name))
    except FileError:
        raise
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or nested without end
        raise _core.SardonyxError(f"{name}: is not JSON ({error}); mend it") from error
    if not isinstance(stated, dict):
        raise _core.SardonyxError(f"{name}: is not an object; see docs/simulator/trace-format.md")
    return stated


def cut(
    source: Source,
    target: Target,
    skip: Annotated[
        int, typer.Option(min=0, max=MOST, help="Records left out at the beginning.")
    ] = 0,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST, help="Records kept.")] = None,
    json_to: JsonTo = None,
) -> None:
    """Copy a stretch of a trace.

    [bold]Example[/bold]: sardonyx trace cut redis.parquet part.parquet --skip 1000 --limit 50000
    """
    check_json_target(json_to, [source])
    check_file(source)
    writable(target, json_to, [source])
    done = watched(err, source, partial(_core.trace_cut, source, str(target), skip, limit))
    facts_of(str(target), json.loads(done), json_to)


def mix(
    traces: Annotated[
        list[str],
        typer.Argument(
            help="Trace files or recordings, two or more.",
            autocompletion=complete.traces,
            callback=_paths,
        ),
    ],
    target: Annotated[Path, typer.Option("--output", "-o", help="The file to write.", **PATH)],
    json_to: JsonTo = None,
) -> None:
    """Mix traces into one, as if each program had run on a core of its own at the same pace.

    [bold]Example[/bold]: sardonyx trace mix redis.parquet cc1.parquet -o both.parquet
    """
    check_json_target(json_to, traces)
    for source in traces:
        check_file(source)
    writable(target, json_to, traces)
    title = " + ".join(traces)
    done = watched(err, title, partial(_core.trace_mix, traces, str(target)))
    facts_of(str(target), json.loads(done), json_to)


add_command(app, record.record, **record.SETTINGS)
for _command in (info, check, convert, synth, cut, mix):
    add_command(app, _command)
